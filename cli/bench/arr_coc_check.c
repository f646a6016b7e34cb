// Frames through a line of slots, and the check of what comes out.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/arr_coc.h"
#include "cli/runtime/results.h"
#include "pipelines/arr_coc/patches.h"

// Frames are in pinned memory: a slot's memory is written when the slot first gets an
// image, and is reused with the same bytes from then on, as with a camera that writes
// there itself. The host decodes and copies nothing while times are taken.

// Frames. Both run on threads of the pipelines; the main thread waits meanwhile.

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    struct arr_coc_line *line = user;
    const struct arr_coc_image *image = line->image;
    const size_t bytes = (size_t)3 * image->width * image->height;
    size_t i = 0;
    pthread_mutex_lock(&line->lock);
    while (i + 1 < ARR_COC_FILLED_MOST && line->filled[i].memory && line->filled[i].memory != rgb)
        i++;
    if (line->filled[i].memory != rgb || line->filled[i].image != image) {
        if (rgb && bytes <= capacity)
            memcpy(rgb, image->rgb, bytes);
        line->filled[i] = (struct arr_coc_filled){rgb, image};
    }
    pthread_mutex_unlock(&line->lock);
    *out_width = image->width;
    *out_height = image->height;
    return WEIR_OK;
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct arr_coc_line *line = frame->user;
    struct arr_coc_bench *a = line->owner;
    struct arr_coc_image *image = &a->images[line->image - a->images];
    (void)user;
    if (line->checking && line->right && result->status == WEIR_OK && output)
        line->right =
            arr_coc_results_judge(a->bench, &image->results, output, &a->sizes, image->name);
}

static bool end_frames(struct arr_coc_line *line, const struct arr_coc_image *image, uint64_t count,
                       uint64_t succeeded_before)
{
    struct bench *bench = line->owner->bench;
    struct weir_pipeline_statistics after;
    if (weir_pipeline_group_drain(line->group, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(bench);
    weir_pipeline_group_get_statistics(line->group, &after);
    return after.succeeded - succeeded_before == count ||
           bench_fail(bench, CLI_FAILED, "%s: %" PRIu64 " of %" PRIu64 " frames failed",
                      image->name, count - (after.succeeded - succeeded_before), count);
}

bool arr_coc_line_run(struct arr_coc_line *line, const struct arr_coc_image *image, uint64_t count)
{
    struct weir_pipeline_statistics before;
    line->image = image;
    weir_pipeline_group_get_statistics(line->group, &before);
    for (uint64_t i = 0; i < count; i++)
        if (weir_pipeline_group_submit(line->group, &line->frame) != WEIR_OK)
            return bench_fail_weir(line->owner->bench);
    return end_frames(line, image, count, before.succeeded);
}

bool arr_coc_line_run_slots(struct arr_coc_line *line, const struct arr_coc_image *image,
                            uint64_t rounds)
{
    const uint64_t count = rounds * line->slots;
    struct weir_pipeline_statistics before;
    line->image = image;
    weir_pipeline_group_get_statistics(line->group, &before);
    for (uint32_t d = 0; d < line->devices; d++)
        for (uint64_t i = 0; i < count; i++)
            if (weir_pipeline_submit(weir_arr_coc_pipeline(line->arr_coc[d]), &line->frame) !=
                WEIR_OK)
                return bench_fail_weir(line->owner->bench);
    return end_frames(line, image, count * line->devices, before.succeeded);
}

// The pipelines.

static bool create_pipeline(struct arr_coc_line *line, uint32_t device, bool timing)
{
    struct arr_coc_bench *a = line->owner;
    struct weir_arr_coc_params params = {
        .struct_size = sizeof params,
        .weights = a->weights,
        .query = a->query,
        .query_size = weir_arr_coc_weights_query_size(a->weights),
        .deliver = deliver,
        .group = line->group,
    };
    if (weir_arr_coc_params_from_settings(a->bench->runtime, &params) != WEIR_OK)
        return bench_fail_weir(a->bench);
    params.device = a->copies[device].device;
    params.max_pixels = arr_coc_most_pixels(a);
    params.slot_count = line->slots;
    params.full = WEIR_PIPELINE_BLOCK;
    params.backlog = 0;
    params.timing = timing;
    params.graphs = line->graphs;
    return bench_fine(a->bench, weir_arr_coc_create(&params, &line->arr_coc[device]));
}

bool arr_coc_line_create(struct arr_coc_bench *a, struct arr_coc_line *line, uint32_t devices,
                         uint32_t slots, bool graphs, bool timing)
{
    line->owner = a;
    line->devices = devices;
    line->slots = slots;
    line->graphs = graphs;
    line->frame = (struct weir_arr_coc_frame){.load = load, .user = line};
    pthread_mutex_init(&line->lock, NULL);
    if (weir_pipeline_group_create(NULL, &line->group) != WEIR_OK)
        return bench_fail_weir(a->bench);
    for (uint32_t d = 0; d < devices; d++)
        if (!create_pipeline(line, d, timing))
            return false;
    a->sizes = *weir_arr_coc_get_sizes(line->arr_coc[0]);
    a->result_bytes = weir_arr_coc_result_bytes(line->arr_coc[0]);
    return true;
}

void arr_coc_line_destroy(struct arr_coc_line *line)
{
    if (!line->owner)
        return;
    for (uint32_t d = 0; d < line->devices; d++)
        weir_arr_coc_destroy(&line->arr_coc[d]);
    WEIR_IGNORE(weir_pipeline_group_destroy(&line->group));
    pthread_mutex_destroy(&line->lock);
}

// Finds bytes of a frame that are lost, stale, or another frame's: all frames have the same bits, and the
// patches of the first are those that follow from its own relevance. The arithmetic itself is compared
// with float64 by the tests.

enum {
    QUERY_SEED = 1
};

// Keeping.

static bool results_fit(const struct weir_arr_coc_output *output,
                        const struct weir_arr_coc_sizes *sizes)
{
    return output->patch_count <= sizes->grid * sizes->grid &&
           output->patch_count <=
               sizes->budget / (WEIR_ARR_COC_SIDE_LEAST * WEIR_ARR_COC_SIDE_LEAST) &&
           output->token_count <= sizes->budget;
}

static bool results_take(struct arr_coc_results *results, const struct weir_arr_coc_output *output,
                         const struct weir_arr_coc_sizes *sizes)
{
    struct weir_arr_coc_output copy = *output;
    results->memory = malloc(cli_results_place(&copy, sizes, NULL));
    if (results->memory)
        cli_results_copy(output, sizes, results->memory, &results->output);
    return results->memory;
}

void arr_coc_results_finish(struct arr_coc_results *results)
{
    free(results->memory);
    *results = (struct arr_coc_results){0};
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

static bool results_check(const struct weir_arr_coc_output *output,
                          const struct weir_arr_coc_sizes *sizes, char *message,
                          size_t message_size)
{
    const size_t patches = (size_t)sizes->grid * sizes->grid;
    int32_t *wanted = malloc(patches * WEIR_ARR_COC_PATCH_NUMBERS * sizeof *wanted);
    bool fine = are_numbers(output->relevance, patches) &&
                are_numbers(output->scores, 3 * patches) && are_numbers(output->balance, 3) &&
                are_numbers(output->tokens, (size_t)output->token_count * WEIR_ARR_COC_CHANNELS);
    if (!fine)
        snprintf(message, message_size, "not all of the results are numbers");
    else if (!wanted)
        snprintf(message, message_size, "no memory for the check");
    fine = fine && wanted && check_patches(output, sizes, wanted, message, message_size);
    free(wanted);
    return fine;
}

bool arr_coc_results_judge(struct bench *bench, struct arr_coc_results *first,
                           const struct weir_arr_coc_output *output,
                           const struct weir_arr_coc_sizes *sizes, const char *name)
{
    char message[256];
    if (!results_fit(output, sizes))
        return bench_fail_result(bench,
                                 "%s: wrong results: %u patches and %u tokens; nothing was timed",
                                 name, (unsigned)output->patch_count,
                                 (unsigned)output->token_count);
    bench->checked++;
    if (!first->memory) {
        if (!results_take(first, output, sizes))
            return bench_fail(bench, CLI_FAILED, "no memory for the results");
        return !bench->runs_kernels || results_check(output, sizes, message, sizeof message) ||
               bench_fail_result(bench, "%s: wrong results: %s; nothing was timed", name, message);
    }
    return cli_results_same(&first->output, output, sizes) ||
           bench_fail_result(bench,
                             "%s: a frame gave other results than the first one; nothing "
                             "was timed",
                             name);
}

bool arr_coc_load(struct bench *bench, const char *path, weir_arr_coc_weights **out_weights,
                  float **out_query)
{
    struct weir_io_error error;
    char found[4608];
    if (!path && !cli_find_weights(found, sizeof found)) {
        bench->code = CLI_FAILED;
        return false;
    }
    if (!weir_arr_coc_weights_load(path ? path : found, out_weights, &error))
        return bench_fail(bench, CLI_FAILED, "%s", error.message);
    const size_t size = weir_arr_coc_weights_query_size(*out_weights);
    *out_query = malloc(size * sizeof **out_query);
    if (!*out_query)
        return bench_fail(bench, CLI_FAILED, "no memory for a query of %zu numbers", size);
    weir_arr_coc_seeded_query(QUERY_SEED, *out_query, size);
    return true;
}
