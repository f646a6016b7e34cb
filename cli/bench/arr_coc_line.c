// Frames are in pinned memory: a slot's memory is written when the slot first gets an
// image, and is reused with the same bytes from then on, as with a camera that writes
// there itself. The host decodes and copies nothing while times are taken.
#include <inttypes.h>
#include <string.h>

#include "cli/bench/arr_coc_parts.h"

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

static bool check_first(struct arr_coc_line *line, struct arr_coc_image *image)
{
    char message[256];
    if (!line->owner->bench->runs_kernels ||
        arr_coc_results_check(&image->results, &line->owner->sizes, message, sizeof message))
        return true;
    return bench_fail_result(line->owner->bench, "%s: wrong results: %s; nothing was timed",
                             image->name, message);
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct arr_coc_line *line = frame->user;
    struct arr_coc_bench *a = line->owner;
    struct arr_coc_image *image = &a->images[line->image - a->images];
    struct arr_coc_results own;
    (void)user;
    if (!line->checking || !line->right || result->status != WEIR_OK || !output)
        return;
    if (!arr_coc_results_fit(output, &a->sizes)) {
        line->right = bench_fail_result(a->bench,
                                        "%s: wrong results: %u patches and %u tokens; nothing was "
                                        "timed",
                                        image->name, (unsigned)output->patch_count,
                                        (unsigned)output->token_count);
        return;
    }
    if (!arr_coc_results_take(&own, output, a->sizes.grid)) {
        line->right = bench_fail(a->bench, CLI_FAILED, "no memory for the results");
        return;
    }
    a->bench->checked++;
    if (!image->results.memory) {
        image->results = own;
        line->right = check_first(line, image);
        return;
    }
    if (!arr_coc_results_same(&image->results, &own))
        line->right =
            bench_fail_result(a->bench,
                              "%s: a frame with %u slots gave other results than the "
                              "first frame with %u; nothing was timed",
                              image->name, (unsigned)line->slots, (unsigned)a->lines[0].slots);
    arr_coc_results_finish(&own);
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
    return weir_arr_coc_create(&params, &line->arr_coc[device]) == WEIR_OK ||
           bench_fail_weir(a->bench);
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
    weir_pipeline_group_destroy(&line->group);
    pthread_mutex_destroy(&line->lock);
}
