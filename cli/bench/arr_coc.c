// weir bench arr-coc: frames a second of the vision pipeline with one slot and with
// more, on one device and on several, beside the rate of bare copies of the same bytes
// in and out.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/work.h"
#include "cli/runtime/open.h"
#include "io/image.h"
#include "patterns/pipeline.h"
#include "pipelines/arr_coc/arr_coc.h"
#include "pipelines/arr_coc/weights.h"

enum {
    ARR_COC_IMAGES_MOST = 8,
    ARR_COC_PIPELINES_MOST = 16,
    ARR_COC_SLOTS_MOST = 32,
    ARR_COC_DEVICES_MOST = 8,
    ARR_COC_STAGES = WEIR_ARR_COC_STAGES_MAX,
    ARR_COC_FRAMES_MOST = 1000000
};

// Queues and buffers for bare copies to a device and back. `device` is the caller's.
struct arr_coc_copies {
    weir_device *device;
    weir_queue *up, *down;
    weir_buffer *up_host, *up_device, *down_host, *down_device;
};

struct arr_coc_image {
    char name[64];
    unsigned char *rgb;
    uint32_t width, height;
    struct cli_results results;     // of the first pipeline
    struct bench_samples copies[2]; // frames a second, of one device, and of all
    struct bench_samples stage_us[ARR_COC_STAGES];
    struct bench_samples rate[ARR_COC_PIPELINES_MOST];
};

struct arr_coc_line {
    struct arr_coc_bench *owner;
    weir_pipeline_group *group;
    weir_arr_coc *arr_coc[ARR_COC_DEVICES_MOST];
    uint32_t devices;
    uint32_t slots; // of each device
    bool graphs;
    const struct arr_coc_image *image; // the one that is run now
    bool fills;                        // the slots' memory
    bool checking;
    struct weir_arr_coc_frame frame; // stands for all of them
};

struct arr_coc_bench {
    const char *asked_devices, *weights_path;
    uint64_t frames, size;
    struct bench_list slots, graphs;
    size_t line_count;
    struct cli_devices wanted;
    char first[16]; // index of the first device
    uint32_t device_count;
    weir_arr_coc_weights *weights;
    float *query;
    struct arr_coc_image images[ARR_COC_IMAGES_MOST];
    size_t image_count;
    struct arr_coc_line lines[ARR_COC_PIPELINES_MOST];
    struct arr_coc_line timed; // one slot, with times of the stages
    struct weir_arr_coc_sizes sizes;
    struct arr_coc_copies copies[ARR_COC_DEVICES_MOST];
    size_t result_bytes;
};

// Those of one device, then those of all.
static inline size_t arr_coc_lines_of_one(const struct arr_coc_bench *a)
{
    return a->slots.count * a->graphs.count;
}

// Finds bytes of a frame that are lost, stale, or another frame's: all frames have the same bits, and the patches of
// the first are those that follow from its own relevance. The arithmetic is compared with float64 by the tests.

enum {
    QUERY_SEED = 1
};

static bool results_fit(const struct weir_arr_coc_output *output,
                        const struct weir_arr_coc_sizes *sizes)
{
    return output->patch_count <= sizes->grid * sizes->grid &&
           output->patch_count <=
               sizes->budget / (WEIR_ARR_COC_SIDE_LEAST * WEIR_ARR_COC_SIDE_LEAST) &&
           output->token_count <= sizes->budget;
}

static bool are_numbers(const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static bool results_follow(const struct weir_arr_coc_output *output,
                           const struct weir_arr_coc_sizes *sizes)
{
    const size_t patches = (size_t)sizes->grid * sizes->grid;
    const size_t size = WEIR_ARR_COC_PATCH_NUMBERS * sizeof(int32_t);
    int32_t *wanted = malloc(patches * size);
    uint32_t count = 0;
    int64_t tokens = 0;
    const bool fine =
        wanted && are_numbers(output->relevance, patches) &&
        are_numbers(output->scores, 3 * patches) && are_numbers(output->balance, 3) &&
        are_numbers(output->tokens, (size_t)output->token_count * WEIR_ARR_COC_CHANNELS) &&
        weir_arr_coc_expect_patches(output->relevance, (uint32_t)patches, sizes->budget, wanted,
                                    &count, &tokens) &&
        count == output->patch_count && tokens == output->token_count &&
        memcmp(wanted, output->patches, count * size) == 0;
    free(wanted);
    return fine;
}

// Keeps a frame's results in `first`, if that is empty, after a check that they can be those of an image, else compares
// them with `first`, bit by bit. False after bench_wrong().
static bool results_judge(struct cli_results *first, const struct weir_arr_coc_output *output,
                          const struct weir_arr_coc_sizes *sizes, const char *name)
{
    if (!results_fit(output, sizes))
        return bench_wrong("%s: wrong results: %u patches and %u tokens; nothing was timed", name,
                           (unsigned)output->patch_count, (unsigned)output->token_count);
    bench.checked++;
    if (first->memory)
        return cli_results_same(&first->output, output, sizes) ||
               bench_wrong("%s: a frame gave other results than the first one; nothing was timed",
                           name);
    if (!cli_results_keep(output, sizes, first))
        return bench_wrong("no memory for the results");
    return !bench.runs_kernels || results_follow(output, sizes) ||
           bench_wrong("%s: wrong results: not all are numbers, or the patches are not those of "
                       "the relevance; nothing was timed",
                       name);
}

// Frames through a line of slots.

// Frames are in pinned memory: a slot's memory is written before times are taken, and is
// reused with the same bytes from then on, as with a camera that writes there itself. The
// host decodes and copies nothing while times are taken.

// Of the largest image.
static uint64_t arr_coc_most_pixels(const struct arr_coc_bench *a)
{
    uint64_t most = 0;
    for (size_t i = 0; i < a->image_count; i++) {
        const uint64_t pixels = (uint64_t)a->images[i].width * a->images[i].height;
        most = pixels > most ? pixels : most;
    }
    return most;
}

// Frames. Both run on threads of the pipelines; the main thread waits meanwhile.

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct arr_coc_line *line = user;
    const struct arr_coc_image *image = line->image;
    const size_t bytes = (size_t)3 * image->width * image->height;
    if (line->fills && rgb && bytes <= capacity)
        memcpy(rgb, image->rgb, bytes);
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
    if (line->checking && result->status == WEIR_OK && output)
        (void)results_judge(&image->results, output, &a->sizes, image->name);
}

static uint64_t succeeded(const struct arr_coc_line *line)
{
    struct weir_pipeline_statistics statistics;
    weir_pipeline_group_get_statistics(line->group, &statistics);
    return statistics.succeeded;
}

static void end_frames(struct arr_coc_line *line, const struct arr_coc_image *image, uint64_t count,
                       uint64_t before)
{
    cli_fine(weir_pipeline_group_drain(line->group, WEIR_FOREVER));
    const uint64_t failed = count - (succeeded(line) - before);
    if (failed)
        cli_fail(CLI_FAILED, "%s: %" PRIu64 " of %" PRIu64 " frames failed", image->name, failed,
                 count);
}

// Runs `count` frames, and waits for them. The slots have the image's bytes.
static void run_line(struct arr_coc_line *line, const struct arr_coc_image *image, uint64_t count)
{
    const uint64_t before = succeeded(line);
    line->image = image;
    for (uint64_t i = 0; i < count; i++)
        cli_fine(weir_pipeline_group_submit(line->group, &line->frame));
    end_frames(line, image, count, before);
}

// The same, `rounds` frames in every slot of every device, which get the bytes.
static void run_slots(struct arr_coc_line *line, const struct arr_coc_image *image, uint64_t rounds)
{
    const uint64_t count = rounds * line->slots, before = succeeded(line);
    line->image = image;
    line->fills = true;
    for (uint32_t d = 0; d < line->devices; d++)
        for (uint64_t i = 0; i < count; i++)
            cli_fine(weir_pipeline_submit(weir_arr_coc_pipeline(line->arr_coc[d]), &line->frame));
    end_frames(line, image, count * line->devices, before);
    line->fills = false;
}

// The pipelines.

static void destroy_line(void *object)
{
    struct arr_coc_line *line = object;
    for (uint32_t d = 0; d < line->devices; d++)
        weir_arr_coc_destroy(&line->arr_coc[d]);
    WEIR_IGNORE(weir_pipeline_group_destroy(&line->group));
}

static void create_pipeline(struct arr_coc_line *line, uint32_t device, bool timing)
{
    struct arr_coc_bench *a = line->owner;
    struct weir_arr_coc_params params = {
        .weights = a->weights,
        .query = a->query,
        .deliver = deliver,
    };
    cli_fine(weir_arr_coc_params_from_settings(bench.runtime, &params));
    params.max_pixels = arr_coc_most_pixels(a);
    params.pipeline = (struct weir_pipeline_params){
        .device = a->copies[device].device,
        .slot_count = line->slots,
        .timing = timing,
        .graphs = line->graphs,
        .group = line->group,
    };
    a->sizes = params.sizes;
    cli_fine(weir_arr_coc_create(&params, &line->arr_coc[device]));
}

// Pipelines with so many slots on each of the first devices.
static void create_line(struct arr_coc_bench *a, struct arr_coc_line *line, uint32_t devices,
                        uint32_t slots, bool graphs, bool timing)
{
    line->owner = a;
    line->devices = devices;
    line->slots = slots;
    line->graphs = graphs;
    line->frame = (struct weir_arr_coc_frame){.load = load, .user = line};
    cli_own(destroy_line, line);
    cli_fine(weir_pipeline_group_create(NULL, &line->group));
    for (uint32_t d = 0; d < devices; d++)
        create_pipeline(line, d, timing);
    a->result_bytes = weir_arr_coc_result_bytes(line->arr_coc[0]);
}

CLI_DESTROYER(destroy_weights, weir_arr_coc_weights_destroy)

// The weights of a file, or those that come with the command, and a query.
static void load_weights(struct arr_coc_bench *a)
{
    struct weir_io_error error;
    const char *path = a->weights_path ? a->weights_path : cli_find_weights();
    if (!weir_arr_coc_weights_load(path, &a->weights, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    cli_own(destroy_weights, &a->weights);
    const size_t size = weir_arr_coc_weights_query_size(a->weights);
    a->query = cli_allocate(size, sizeof *a->query);
    weir_arr_coc_seeded_query(QUERY_SEED, a->query, size);
}

static const char *const graph_words[] = {"off", "on", NULL};

// Bare copies of as many bytes as the frames of a pipeline have.

static void make_copies(struct arr_coc_bench *a, struct arr_coc_copies *c)
{
    const size_t up = (size_t)(3 * arr_coc_most_pixels(a)), down = a->result_bytes;
    bench_queue(c->device, "bench/up", 0, &c->up);
    bench_queue(c->device, "bench/down", 0, &c->down);
    bench_buffer(c->device, "copies", up, WEIR_PLACE_HOST, &c->up_host);
    bench_buffer(c->device, "copies", up, WEIR_PLACE_DEVICE, &c->up_device);
    bench_buffer(c->device, "copies", down, WEIR_PLACE_HOST, &c->down_host);
    bench_buffer(c->device, "copies", down, WEIR_PLACE_DEVICE, &c->down_device);
    bench_work_spoil(c->up_host, up);
    bench_fill(c->down, c->down_device, down);
}

static void run_copies(struct arr_coc_bench *a, uint32_t devices, size_t up_bytes)
{
    for (uint64_t i = 0; i < a->frames * devices; i++) {
        const struct arr_coc_copies *c = &a->copies[i % devices];
        cli_fine(weir_queue_copy(c->up, c->up_device, 0, c->up_host, 0, up_bytes));
        cli_fine(weir_queue_copy(c->down, c->down_host, 0, c->down_device, 0, a->result_bytes));
    }
    for (uint32_t d = 0; d < devices; d++) {
        cli_fine(weir_queue_flush(a->copies[d].up));
        cli_fine(weir_queue_flush(a->copies[d].down));
    }
    for (uint32_t d = 0; d < devices; d++) {
        bench_sync(a->copies[d].up);
        bench_sync(a->copies[d].down);
    }
}

// Images.

static void read_image(struct arr_coc_bench *a, const char *path)
{
    struct arr_coc_image *image = &a->images[a->image_count++];
    struct weir_io_image_info info;
    struct weir_io_error error;
    const char *slash = strrchr(path, '/');
    if (!weir_io_image_probe(path, &info, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    const size_t bytes = (size_t)weir_io_image_bytes(&info);
    image->rgb = cli_allocate(bytes, 1);
    if (!weir_io_image_read(path, 0, image->rgb, bytes, &info, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    snprintf(image->name, sizeof image->name, "%s", slash ? slash + 1 : path);
    image->width = info.width;
    image->height = info.height;
}

static void make_noise(struct arr_coc_bench *a)
{
    struct arr_coc_image *image = &a->images[a->image_count++];
    const size_t bytes = (size_t)(3 * a->size * a->size);
    uint32_t state = 1;
    image->rgb = cli_allocate(bytes, 1);
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        image->rgb[i] = (unsigned char)(state >> 24);
    }
    snprintf(image->name, sizeof image->name, "noise %ux%u", (unsigned)a->size, (unsigned)a->size);
    image->width = image->height = (uint32_t)a->size;
}

static void make_images(struct arr_coc_bench *a)
{
    const size_t count = bench.operand_count;
    if (count > ARR_COC_IMAGES_MOST)
        cli_fail(CLI_USAGE, "%zu images were named, and at most %d are measured", count,
                 ARR_COC_IMAGES_MOST);
    for (size_t i = 0; i < count; i++)
        read_image(a, bench.operands[i]);
    if (count == 0)
        make_noise(a);
}

// The pipelines.

static void make_lines(struct arr_coc_bench *a)
{
    const size_t one = arr_coc_lines_of_one(a);
    a->line_count = one * (a->device_count > 1 ? 2 : 1);
    for (size_t i = 0; i < a->line_count; i++)
        create_line(a, &a->lines[i], i < one ? 1 : a->device_count,
                    (uint32_t)a->slots.values[i % a->slots.count],
                    a->graphs.values[i % one / a->slots.count] == BENCH_WORD + 1, false);
    if (bench.limits->timing_history > 0)
        create_line(a, &a->timed, 1, 1, false, true);
    else
        bench_note("not measured: times of the stages, which this device does not keep");
}

// The first is the benchmark's.
static void open_devices(struct arr_coc_bench *a)
{
    weir_device *list[CLI_DEVICES_MAX];
    struct cli_devices rest = {.count = 0};
    const uint32_t there = (uint32_t)weir_device_count(bench.runtime);
    const uint32_t wanted = a->wanted.all ? there : a->wanted.count;
    for (uint32_t i = 1; i < wanted && i < ARR_COC_DEVICES_MOST; i++)
        rest.indices[rest.count++] = a->wanted.all ? i : a->wanted.indices[i];
    a->copies[0].device = bench.device;
    a->device_count = 1 + (rest.count ? cli_devices_open(bench.runtime, &rest, list) : 0);
    for (uint32_t i = 1; i < a->device_count; i++)
        a->copies[i].device = list[i - 1];
}

static void destroy_results(void *object)
{
    struct arr_coc_bench *a = object;
    for (size_t k = 0; k < a->image_count; k++)
        free(a->images[k].results.memory);
}

// Each pipeline runs each image until all slots have been used twice.
static void check_results(struct arr_coc_bench *a)
{
    cli_own(destroy_results, a);
    for (size_t k = 0; k < a->image_count; k++)
        for (size_t i = 0; i < a->line_count; i++) {
            struct arr_coc_line *line = &a->lines[i];
            line->checking = true;
            run_slots(line, &a->images[k], 2);
            run_line(line, &a->images[k], 1);
            line->checking = false;
            bench_judge();
        }
}

// Measuring.

// Serves the time of a frame under this name.
static void keep_rate(struct bench_samples *samples, uint64_t frames, uint64_t began,
                      const char *name)
{
    const double ns = (double)(cli_now_ns() - began) / (double)frames;
    bench_keep(samples, 1e9 / ns);
    bench_figure(&(struct bench_samples){0}, ns * 1e-6, "%s", name);
}

static void time_copies(struct arr_coc_bench *a, struct arr_coc_image *image, uint32_t devices,
                        struct bench_samples *samples)
{
    const uint64_t began = cli_now_ns();
    run_copies(a, devices, (size_t)3 * image->width * image->height);
    keep_rate(samples, a->frames * devices, began, "frame_copies");
}

static void time_line(struct arr_coc_bench *a, size_t index, struct arr_coc_image *image)
{
    struct arr_coc_line *line = &a->lines[index];
    const uint64_t frames = a->frames * line->devices;
    char name[64];
    snprintf(name, sizeof name, "frame_%u_slots%s", (unsigned)line->slots,
             line->graphs ? "_graphs" : "");
    run_slots(line, image, 1); // puts the image into every slot
    const uint64_t began = cli_now_ns();
    run_line(line, image, frames);
    keep_rate(&image->rate[index], frames, began, name);
}

static void time_stages(struct arr_coc_bench *a, struct arr_coc_image *image)
{
    const uint64_t frames = a->frames < 20 ? a->frames : 20;
    struct weir_pipeline_statistics before, after;
    run_slots(&a->timed, image, 1);
    weir_pipeline_group_get_statistics(a->timed.group, &before);
    run_line(&a->timed, image, frames);
    weir_pipeline_group_get_statistics(a->timed.group, &after);
    for (uint32_t i = 0; i < after.stage_count; i++)
        bench_keep(&image->stage_us[i],
                   (double)(after.stages[i].busy_ns - before.stages[i].busy_ns) / (double)frames *
                       1e-3);
}

static void time_image(struct arr_coc_bench *a, struct arr_coc_image *image)
{
    time_copies(a, image, 1, &image->copies[0]);
    if (a->device_count > 1)
        time_copies(a, image, a->device_count, &image->copies[1]);
    if (a->timed.owner)
        time_stages(a, image);
    for (size_t i = 0; i < a->line_count; i++)
        time_line(a, i, image);
}

// Tables and the plot.

static void report_copies(struct arr_coc_bench *a)
{
    struct bench_table *table =
        bench_table("copies", "bare copies of the frames, in two queues of a device");
    for (size_t k = 0; k < a->image_count; k++)
        for (uint32_t all = 0; all < (a->device_count > 1 ? 2 : 1); all++) {
            const struct arr_coc_image *image = &a->images[k];
            bench_text(table, "image", "image", image->name);
            bench_number(table, "devices", "devices", all ? a->device_count : 1);
            bench_number(table, "bytes_in", "bytes in", 3.0 * image->width * image->height);
            bench_number(table, "bytes_out", "bytes out", (double)a->result_bytes);
            bench_value(table, "frames_per_second", "frames/s", 1, image->copies[all]);
            // Where the processor copies, the copies' rate is far above the pipeline's scale.
            if (!all && bench.limits->copy_engines_to_device > 0)
                bench_plot_bar("bare copies", image->name, image->copies[0]);
        }
}

static void plot_line(struct arr_coc_bench *a, const struct arr_coc_image *image, size_t index)
{
    const struct arr_coc_line *line = &a->lines[index];
    char devices[32] = "", name[80];
    if (line->devices > 1)
        snprintf(devices, sizeof devices, ", %u devices", (unsigned)line->devices);
    snprintf(name, sizeof name, "%u slot%s%s%s", (unsigned)line->slots, line->slots == 1 ? "" : "s",
             line->graphs ? ", graphs" : "", devices);
    bench_plot_bar(name, image->name, image->rate[index]);
}

static void report_rate(struct arr_coc_bench *a, struct bench_table *table,
                        const struct arr_coc_image *image, size_t index)
{
    const struct arr_coc_line *line = &a->lines[index];
    const struct bench_samples rate = image->rate[index];
    bench_text(table, "image", "image", image->name);
    bench_number(table, "devices", "devices", line->devices);
    bench_number(table, "slots", "slots", line->slots);
    bench_text(table, "graphs", "graphs", graph_words[line->graphs]);
    bench_value(table, "frames_per_second", "frames/s", 1, rate);
    bench_value(table, "of_copies", "x bare copies", 3,
                bench_ratio(rate, image->copies[line->devices > 1]));
    bench_value(table, "speed_up", "x first", 2, bench_ratio(rate, image->rate[0]));
    bench_value(table, "of_one_device", "x one device", 3,
                bench_ratio(rate, image->rate[index % arr_coc_lines_of_one(a)]));
    plot_line(a, image, index);
}

static void report_rates(struct arr_coc_bench *a)
{
    struct bench_table *table = bench_table("frames", "the pipeline, from pinned memory");
    for (size_t k = 0; k < a->image_count; k++)
        for (size_t i = 0; i < a->line_count; i++)
            report_rate(a, table, &a->images[k], i);
}

static void report_stages(struct arr_coc_bench *a)
{
    struct bench_table *table =
        bench_table("stages", "busy time of a frame's stages, one frame at a time");
    struct weir_pipeline_statistics statistics;
    if (!a->timed.owner)
        return;
    weir_pipeline_group_get_statistics(a->timed.group, &statistics);
    for (size_t k = 0; k < a->image_count; k++)
        for (uint32_t i = 0; i < statistics.stage_count; i++) {
            bench_text(table, "image", "image", a->images[k].name);
            bench_text(table, "stage", "stage", statistics.stages[i].name);
            bench_value(table, "busy_us", "us", 1, a->images[k].stage_us[i]);
        }
}

static void report(struct arr_coc_bench *a)
{
    bench_parameter("frames", (double)a->frames);
    bench_parameter("side", a->sizes.side);
    bench_plot("ARR-COC: frames a second by slots", "", "frames/s");
    report_copies(a);
    report_rates(a);
    report_stages(a);
}

// The command.

static void check(void *user)
{
    struct arr_coc_bench *a = user;
    a->wanted = cli_devices_read(a->asked_devices);
    if (a->wanted.count > ARR_COC_DEVICES_MOST)
        cli_fail(CLI_USAGE, "%u devices are named, and at most %d are measured",
                 (unsigned)a->wanted.count, ARR_COC_DEVICES_MOST);
    if (a->asked_devices) {
        snprintf(a->first, sizeof a->first, "%u",
                 a->wanted.all ? 0u : (unsigned)a->wanted.indices[0]);
        bench.select = a->first;
    }
    if (arr_coc_lines_of_one(a) * (a->asked_devices ? 2 : 1) > ARR_COC_PIPELINES_MOST)
        cli_fail(CLI_USAGE, "more than %d pipelines; name fewer numbers of slots",
                 ARR_COC_PIPELINES_MOST);
    if (bench.serve && (a->asked_devices || bench.operand_count > 1))
        cli_fail(CLI_USAGE, "--serve measures one image on one device; leave the others out");
}

static void run(void *user)
{
    struct arr_coc_bench *a = user;
    if (a->frames == 0)
        a->frames = bench.limits->unified_memory ? 10 : 500;
    open_devices(a);
    make_images(a);
    load_weights(a);
    make_lines(a);
    for (uint32_t d = 0; d < a->device_count; d++)
        make_copies(a, &a->copies[d]);
    check_results(a);
    for (bench_start(); bench_turn();)
        for (size_t k = 0; k < a->image_count; k++)
            time_image(a, &a->images[k]);
    report(a);
}

int cli_bench_arr_coc(int argc, char **argv)
{
    static struct arr_coc_bench a = {
        .size = 1024,
        .slots = {.text = "1,2,3,6", .minimum = 1, .maximum = ARR_COC_SLOTS_MOST},
        .graphs = {.text = "off", .words = graph_words, .most = 2},
    };
    static const struct cli_option options[] = {
        {"size", "N", "without an IMAGE: pixels of a side of a noise frame (1024)", CLI_COUNT,
         &a.size, 1, 16384},
        {"slots", "LIST", "numbers of slots; the first is compared with (1,2,3,6)", CLI_VALUES,
         &a.slots, 0, 0},
        {"graphs", "LIST", "off, on or both: each frame is a launch of a graph (off)", CLI_VALUES,
         &a.graphs, 0, 0},
        {"devices", "LIST",
         "on the first of these devices, and on all of them: 0,1 (see\n`weir devices`), or all",
         CLI_TEXT, &a.asked_devices, 0, 0},
        {"frames", "N",
         "frames of a run on a device (10 where the processor is the device,\nelse 500)", CLI_COUNT,
         &a.frames, 1, ARR_COC_FRAMES_MOST},
        {"weights", "W", "the weights; without it, the seeded ones that come\nwith weir", CLI_FILE,
         &a.weights_path, 0, 0},
    };
    static const struct bench_program program = {
        .about = "Measures frames a second of the ARR-COC pipeline, whose frames lie in pinned\n"
                 "memory, beside bare copies of as many bytes in and out; on each IMAGE, or on\n"
                 "noise.\n\n"
                 "  weir bench arr-coc --plot frames.svg\n"
                 "  weir bench arr-coc coffee.png chelsea.png --slots 1,3 --graphs off,on\n"
                 "  weir bench arr-coc --devices 0,1 --slots 4 --graphs on",
        .operands = "[IMAGE]...",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .serves = true,
        .check = check,
        .run = run,
    };
    return bench_main(&program, &a, argc, argv);
}
