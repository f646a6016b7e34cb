// What stage 3 must make of the relevance that stage 2 left, by docs/arr-coc.md, and
// the channels of a token that do not depend on the image. The whole arithmetic is
// held against float64 by the tests; here it is found out whether bytes of a frame are
// lost, old, or another frame's.
#include "cli/bench_arr_coc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANNELS = WEIR_ARR_COC_CHANNELS,
    SIDE_LEAST = 8,
    SIDE_RANGE = 12,
    Y = 9, // channels of a token
    X = 10
};

// Keeping.

bool arr_coc_results_fit(const struct weir_arr_coc_output *output,
                         const struct weir_arr_coc_sizes *sizes)
{
    return output->patch_count <= sizes->grid * sizes->grid &&
           output->patch_count <= sizes->budget / (SIDE_LEAST * SIDE_LEAST) &&
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
        {output->patches, (size_t)output->patch_count * 3 * sizeof(int32_t)},
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

struct ranked {
    float relevance;
    int32_t index;
};

static int by_relevance(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->relevance != right->relevance)
        return left->relevance < right->relevance ? 1 : -1;
    return left->index < right->index ? -1 : 1;
}

static int32_t whole_root(int64_t value)
{
    int32_t root = 0;
    while ((int64_t)(root + 1) * (root + 1) <= value)
        root++;
    return root;
}

static bool are_numbers(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static bool check_patches(const struct weir_arr_coc_output *output,
                          const struct weir_arr_coc_sizes *sizes, const struct ranked *ranked,
                          char *message, size_t message_size)
{
    const size_t patches = (size_t)sizes->grid * sizes->grid;
    int64_t used = 0;
    uint32_t count = 0;
    bool ended = false;
    for (size_t i = 0; i < patches && !ended; i++) {
        int32_t side = SIDE_LEAST + (int32_t)floorf(fmaf(SIDE_RANGE, ranked[i].relevance, 0.5f));
        const int32_t *patch = output->patches + (size_t)3 * count;
        if (used + (int64_t)side * side > sizes->budget) {
            ended = true;
            side = whole_root(sizes->budget - used);
            if (side < SIDE_LEAST)
                break;
        }
        if (count == output->patch_count || patch[0] != ranked[i].index || patch[1] != side ||
            patch[2] != used) {
            snprintf(message, message_size,
                     "patch %u must be number %d with side %d and first token %lld", count,
                     (int)ranked[i].index, (int)side, (long long)used);
            return false;
        }
        used += (int64_t)side * side;
        count++;
    }
    if (count == output->patch_count && used == output->token_count)
        return true;
    snprintf(message, message_size, "there are %u patches with %u tokens, and must be %u with %lld",
             (unsigned)output->patch_count, (unsigned)output->token_count, (unsigned)count,
             (long long)used);
    return false;
}

// The mean place of a cell is its middle, to half a pixel where pixels lie in it in part.
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
    struct ranked *ranked = malloc(patches * sizeof *ranked);
    if (!ranked) {
        snprintf(message, message_size, "no memory for the check");
        return false;
    }
    for (size_t i = 0; i < patches; i++)
        ranked[i] = (struct ranked){output->relevance[i], (int32_t)i};
    qsort(ranked, patches, sizeof *ranked, by_relevance);
    const bool fine = check_patches(output, sizes, ranked, message, message_size) &&
                      check_places(output, sizes, message, message_size);
    free(ranked);
    return fine;
}
