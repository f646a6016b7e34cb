// Finds bytes of a frame that are lost, stale, or another frame's: its patches are compared
// with those that follow from its own relevance, and the channels of its tokens that do
// not depend on the image with their known values. The arithmetic itself is compared with
// float64 by the tests.
#include "cli/bench/arr_coc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines/arr_coc/patches.h"

enum {
    CHANNELS = WEIR_ARR_COC_CHANNELS,
    Y = 9, // channels of a token
    X = 10
};

// Keeping.

bool arr_coc_results_fit(const struct weir_arr_coc_output *output,
                         const struct weir_arr_coc_sizes *sizes)
{
    return output->patch_count <= sizes->grid * sizes->grid &&
           output->patch_count <=
               sizes->budget / (WEIR_ARR_COC_SIDE_LEAST * WEIR_ARR_COC_SIDE_LEAST) &&
           output->token_count <= sizes->budget;
}

bool arr_coc_results_take(struct arr_coc_results *results, const struct weir_arr_coc_output *output,
                          uint32_t grid)
{
    const size_t map = (size_t)grid * grid * sizeof(float);
    const struct {
        const void *from;
        size_t size;
    } parts[] = {
        {output->relevance, map},
        {output->scores, 3 * map},
        {output->balance, 3 * sizeof(float)},
        {output->patches,
         (size_t)output->patch_count * WEIR_ARR_COC_PATCH_NUMBERS * sizeof(int32_t)},
        {output->tokens, (size_t)output->token_count * CHANNELS * sizeof(float)},
    };
    char *places[sizeof parts / sizeof *parts];
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        size += parts[i].size;
    char *at = malloc(size);
    *results = (struct arr_coc_results){.output = *output, .memory = at, .size = size};
    if (!at)
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; at += parts[i++].size)
        memcpy(places[i] = at, parts[i].from, parts[i].size);
    results->output.relevance = (const float *)(const void *)places[0];
    results->output.scores = (const float *)(const void *)places[1];
    results->output.balance = (const float *)(const void *)places[2];
    results->output.patches = (const int32_t *)(const void *)places[3];
    results->output.tokens = (const float *)(const void *)places[4];
    return true;
}

void arr_coc_results_finish(struct arr_coc_results *results)
{
    free(results->memory);
    *results = (struct arr_coc_results){0};
}

bool arr_coc_results_same(const struct arr_coc_results *a, const struct arr_coc_results *b)
{
    return a->size == b->size && a->output.patch_count == b->output.patch_count &&
           a->output.token_count == b->output.token_count &&
           memcmp(a->memory, b->memory, a->size) == 0;
}

// Checking.

static bool are_numbers(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

// `wanted` has room for all patches that there can be.
static bool check_patches(const struct weir_arr_coc_output *output,
                          const struct weir_arr_coc_sizes *sizes, int32_t *wanted, char *message,
                          size_t message_size)
{
    uint32_t count;
    int64_t tokens;
    if (!weir_arr_coc_expect_patches(output->relevance, sizes->grid * sizes->grid, sizes->budget,
                                     wanted, &count, &tokens)) {
        snprintf(message, message_size, "no memory for the check");
        return false;
    }
    for (uint32_t i = 0; i < count && i < output->patch_count; i++) {
        const int32_t *patch = output->patches + (size_t)WEIR_ARR_COC_PATCH_NUMBERS * i;
        const int32_t *other = wanted + (size_t)WEIR_ARR_COC_PATCH_NUMBERS * i;
        if (memcmp(patch, other, WEIR_ARR_COC_PATCH_NUMBERS * sizeof *patch) == 0)
            continue;
        snprintf(message, message_size,
                 "patch %u must be number %d with side %d and first token %d", (unsigned)i,
                 (int)other[0], (int)other[1], (int)other[2]);
        return false;
    }
    if (count == output->patch_count && tokens == output->token_count)
        return true;
    snprintf(message, message_size, "there are %u patches with %u tokens, and must be %u with %lld",
             (unsigned)output->patch_count, (unsigned)output->token_count, (unsigned)count,
             (long long)tokens);
    return false;
}

// A cell's mean position is its middle, within half a pixel where pixels lie across its
// edge.
static bool check_places(const struct weir_arr_coc_output *output,
                         const struct weir_arr_coc_sizes *sizes, char *message, size_t message_size)
{
    const double patch_share = 1.0 / sizes->grid; // of the image's side
    const double tolerance = 0.5 / sizes->side + 1e-5;
    for (uint32_t i = 0; i < output->patch_count; i++) {
        const int32_t *patch = output->patches + (size_t)3 * i;
        const int32_t row = patch[0] / (int32_t)sizes->grid,
                      column = patch[0] % (int32_t)sizes->grid;
        for (int32_t k = 0; k < patch[1] * patch[1]; k++) {
            const float *token = &output->tokens[(size_t)(patch[2] + k) * CHANNELS];
            const int32_t cell_row = k / patch[1], cell_column = k % patch[1];
            const double y = (row + (cell_row + 0.5) / patch[1]) * patch_share;
            const double x = (column + (cell_column + 0.5) / patch[1]) * patch_share;
            if (fabs(token[Y] - y) < tolerance && fabs(token[X] - x) < tolerance)
                continue;
            snprintf(message, message_size,
                     "token %d says that it is at %g, %g of the image, and is at %g, %g",
                     (int)(patch[2] + k), (double)token[Y], (double)token[X], y, x);
            return false;
        }
    }
    return true;
}

bool arr_coc_results_check(const struct arr_coc_results *results,
                           const struct weir_arr_coc_sizes *sizes, char *message,
                           size_t message_size)
{
    const struct weir_arr_coc_output *output = &results->output;
    const size_t patches = (size_t)sizes->grid * sizes->grid;
    if (!are_numbers(output->relevance, 4 * patches + 3) ||
        !are_numbers(output->tokens, (size_t)output->token_count * CHANNELS)) {
        snprintf(message, message_size, "not all of the results are numbers");
        return false;
    }
    int32_t *wanted = malloc(patches * WEIR_ARR_COC_PATCH_NUMBERS * sizeof *wanted);
    if (!wanted) {
        snprintf(message, message_size, "no memory for the check");
        return false;
    }
    const bool fine = check_patches(output, sizes, wanted, message, message_size) &&
                      check_places(output, sizes, message, message_size);
    free(wanted);
    return fine;
}
