// weir bench arr-coc: frames a second of the vision pipeline with one slot and with
// more, on one device and on several, beside the rate of bare copies of the same bytes
// in and out.
#include <inttypes.h>

#include "cli/bench/bench.h"
#include "io/image.h"

enum {
    IMAGES_MOST = 8,
    LINES_MOST = 16,
    SLOTS_MOST = 32,
    FRAMES_MOST = 1000000,
    QUERY_SEED = 1
};

// Queues and buffers for bare copies to a device and back.
struct copies {
    weir_queue *up, *down;
    weir_buffer *up_host, *up_device, *down_host, *down_device;
};

struct image {
    const char *name;
    unsigned char *rgb;
    size_t bytes;
    uint32_t width, height;
    struct cli_results results;     // of the first pipeline
    struct bench_samples copies[2]; // frames a second, of one device, and of all
    struct bench_samples stage_us[WEIR_ARR_COC_STAGES_MAX];
    struct bench_samples rate[LINES_MOST];
};

// Pipelines with so many slots on each of the first devices.
struct line {
    struct frames *owner;
    weir_pipeline_group *group;
    weir_arr_coc *arr_coc[CLI_DEVICES_MAX];
    uint32_t devices;
    uint32_t slots; // of each device
    bool graphs;
    bool timing;
    struct image *image; // the one that is run now
    bool fills;          // the slots' memory
    bool checking;
    struct weir_arr_coc_frame frame; // stands for all of them
};

struct frames {
    const char *asked_devices, *weights_path;
    uint64_t count, size;
    struct bench_list slots, graphs;
    weir_arr_coc_weights *weights;
    float *query;
    struct image images[IMAGES_MOST];
    size_t image_count;
    size_t image_bytes; // of the largest one
    struct line lines[LINES_MOST];
    size_t lines_of_one, line_count; // those of one device, then those of all
    struct line timed;               // one slot, with times of the stages
    struct weir_arr_coc_sizes sizes;
    struct copies copies[CLI_DEVICES_MAX];
    size_t result_bytes;
};

// Finds bytes of a frame that are lost, stale, or another frame's: all frames have the same bits, and the patches of
// the first are those that follow from its own relevance. The arithmetic is compared with float64 by the tests.

static bool results_follow(const struct weir_arr_coc_output *output,
                           const struct weir_arr_coc_sizes *sizes, const char *name)
{
    const uint32_t patches = sizes->grid * sizes->grid;
    const size_t tokens = (size_t)output->token_count * WEIR_ARR_COC_CHANNELS;
    struct weir_io_error error;
    if (!weir_io_check_finite(name, "scores", output->scores, 3 * (size_t)patches, &error) ||
        !weir_io_check_finite(name, "balance", output->balance, 3, &error) ||
        !weir_io_check_finite(name, "tokens", output->tokens, tokens, &error))
        return bench_wrong("%s: wrong results; nothing was timed", error.message);
    return weir_arr_coc_follows(output->relevance, patches, sizes->budget, output->patches,
                                output->patch_count, output->token_count) ||
           bench_wrong("%s: wrong results: the patches are not those of the relevance; nothing was "
                       "timed",
                       name);
}

// Keeps a frame's results in `first`, if that is empty, after a check that they can be those of an image, else compares
// them with `first`, bit by bit. False after bench_wrong().
static bool results_judge(struct cli_results *first, const struct weir_arr_coc_output *output,
                          const struct weir_arr_coc_sizes *sizes, const char *name)
{
    const uint32_t least = WEIR_ARR_COC_SIDE_LEAST * WEIR_ARR_COC_SIDE_LEAST;
    if (output->patch_count > sizes->grid * sizes->grid ||
        output->patch_count > sizes->budget / least || output->token_count > sizes->budget)
        return bench_wrong("%s: wrong results: %u patches and %u tokens; nothing was timed", name,
                           (unsigned)output->patch_count, (unsigned)output->token_count);
    bench.checked++;
    if (first->memory)
        return cli_results_same(&first->output, output, sizes) ||
               bench_wrong("%s: a frame gave other results than the first one; nothing was timed",
                           name);
    if (!cli_results_keep(output, sizes, first))
        return bench_wrong("no memory for the results");
    return !bench.runs_kernels || results_follow(output, sizes, name);
}

// Frames through a line of slots.
//
// Frames are in pinned memory: a slot's memory is written before times are taken, and is
// reused with the same bytes from then on, as with a camera that writes there itself. The
// host decodes and copies nothing while times are taken.

// Both run on threads of the pipelines; the main thread waits meanwhile.

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct line *line = user;
    const struct image *image = line->image;
    if (line->fills && rgb && image->bytes <= capacity)
        memcpy(rgb, image->rgb, image->bytes);
    *out_width = image->width;
    *out_height = image->height;
    return WEIR_OK;
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct line *line = frame->user;
    struct image *image = line->image;
    if (line->checking && result->status == WEIR_OK && output)
        (void)results_judge(&image->results, output, &line->owner->sizes, image->name);
}

// Runs frames, and waits for them: `count` of them in slots that have the image's bytes; or, with `fills`, so many in
// every slot of every device, which get the bytes.
static void run_line(struct line *line, struct image *image, uint64_t count, bool fills)
{
    struct weir_pipeline_statistics statistics;
    line->image = image;
    line->fills = fills;
    for (uint64_t i = 0; !fills && i < count; i++)
        cli_fine(weir_pipeline_group_submit(line->group, &line->frame));
    for (uint64_t i = 0; fills && i < count * line->slots * line->devices; i++)
        cli_fine(
            weir_pipeline_submit(weir_arr_coc_pipeline(line->arr_coc[i / (count * line->slots)]),
                                 &line->frame));
    cli_fine(weir_pipeline_group_drain(line->group, WEIR_FOREVER));
    weir_pipeline_group_get_statistics(line->group, &statistics);
    if (statistics.failed)
        cli_fail(CLI_FAILED, "%s: %" PRIu64 " frames failed", image->name, statistics.failed);
}

// The pipelines.

static void destroy_line(void *object)
{
    struct line *line = object;
    for (uint32_t d = 0; d < line->devices; d++)
        weir_arr_coc_destroy(&line->arr_coc[d]);
    WEIR_IGNORE(weir_pipeline_group_destroy(&line->group));
}

static void create_pipeline(struct line *line, uint32_t device)
{
    struct frames *a = line->owner;
    struct weir_arr_coc_params params = {
        .weights = a->weights,
        .query = a->query,
        .deliver = deliver,
    };
    cli_fine(weir_arr_coc_params_from_settings(bench.runtime, &params));
    params.max_pixels = a->image_bytes / 3;
    params.pipeline = (struct weir_pipeline_params){
        .device = bench.devices[device],
        .slot_count = line->slots,
        .timing = line->timing,
        .graphs = line->graphs,
        .group = line->group,
    };
    a->sizes = params.sizes;
    cli_fine(weir_arr_coc_create(&params, &line->arr_coc[device]));
}

static void create_line(struct frames *a, struct line *line)
{
    line->owner = a;
    line->frame = (struct weir_arr_coc_frame){.load = load, .user = line};
    cli_own(destroy_line, line);
    cli_fine(weir_pipeline_group_create(NULL, &line->group));
    for (uint32_t d = 0; d < line->devices; d++)
        create_pipeline(line, d);
    a->result_bytes = weir_arr_coc_result_bytes(line->arr_coc[0]);
}

static void make_lines(struct frames *a)
{
    a->line_count = a->lines_of_one * (bench.device_count > 1 ? 2 : 1);
    for (size_t i = 0; i < a->line_count; i++) {
        struct line *line = &a->lines[i];
        line->devices = i < a->lines_of_one ? 1 : bench.device_count;
        line->slots = (uint32_t)a->slots.values[i % a->slots.count];
        line->graphs = a->graphs.values[i % a->lines_of_one / a->slots.count] == BENCH_WORD + 1;
        create_line(a, line);
    }
    a->timed = (struct line){.devices = 1, .slots = 1, .timing = true};
    if (bench.limits->timing_history > 0)
        create_line(a, &a->timed);
    else
        bench_note("not measured: times of the stages, which this device does not keep");
}

// And a query.
static void load_weights(struct frames *a)
{
    a->weights = cli_load_weights(&a->weights_path);
    const size_t size = a->weights->query_size;
    a->query = cli_allocate(size, sizeof *a->query);
    weir_arr_coc_seeded_query(QUERY_SEED, a->query, size);
}

// Bare copies of as many bytes as the frames of a pipeline have.

static void make_copies(struct frames *a, weir_device *device, struct copies *c)
{
    const size_t up = a->image_bytes, down = a->result_bytes;
    bench_queue(device, "bench/up", 0, &c->up);
    bench_queue(device, "bench/down", 0, &c->down);
    bench_buffer(device, "copies", up, WEIR_PLACE_HOST, &c->up_host);
    bench_buffer(device, "copies", up, WEIR_PLACE_DEVICE, &c->up_device);
    bench_buffer(device, "copies", down, WEIR_PLACE_HOST, &c->down_host);
    bench_buffer(device, "copies", down, WEIR_PLACE_DEVICE, &c->down_device);
    cli_fine(weir_queue_fill(c->up, c->up_host, 0, up, "", 1));
    bench_sync(c->up);
    bench_fill(c->down, c->down_device, down);
}

static void run_copies(struct frames *a, uint32_t devices, size_t up_bytes)
{
    for (uint64_t i = 0; i < a->count * devices; i++) {
        const struct copies *c = &a->copies[i % devices];
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

static void add_image(struct frames *a, const char *name, uint32_t width, uint32_t height)
{
    struct image *image = &a->images[a->image_count++];
    image->name = name;
    image->width = width;
    image->height = height;
    image->bytes = (size_t)3 * width * height;
    image->rgb = cli_allocate(image->bytes, 1);
    a->image_bytes = image->bytes > a->image_bytes ? image->bytes : a->image_bytes;
}

static void read_image(struct frames *a, const char *path)
{
    struct weir_io_image_info info;
    struct weir_io_error error;
    const char *slash = strrchr(path, '/');
    if (!weir_io_image_probe(path, &info, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    add_image(a, slash ? slash + 1 : path, info.width, info.height);
    const struct image *image = &a->images[a->image_count - 1];
    if (!weir_io_image_read(path, 0, image->rgb, image->bytes, &info, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
}

static void make_images(struct frames *a)
{
    if (bench.operand_count > IMAGES_MOST)
        cli_fail(CLI_USAGE, "%zu images were named, and at most %d are measured",
                 bench.operand_count, IMAGES_MOST);
    for (size_t i = 0; i < bench.operand_count; i++)
        read_image(a, bench.operands[i]);
    if (bench.operand_count == 0) {
        const uint32_t side = (uint32_t)a->size;
        uint32_t state = 1;
        add_image(a, cli_text("noise %ux%u", (unsigned)side, (unsigned)side), side, side);
        for (size_t i = 0; i < a->images[0].bytes; i++) {
            state = state * 1664525u + 1013904223u;
            a->images[0].rgb[i] = (unsigned char)(state >> 24);
        }
    }
}

static void destroy_results(void *object)
{
    struct frames *a = object;
    for (size_t k = 0; k < a->image_count; k++)
        free(a->images[k].results.memory);
}

// Each pipeline runs each image until all slots have been used twice.
static void check_results(struct frames *a)
{
    cli_own(destroy_results, a);
    for (size_t i = 0; i < a->image_count * a->line_count; i++) {
        struct image *image = &a->images[i / a->line_count];
        struct line *line = &a->lines[i % a->line_count];
        line->checking = true;
        run_line(line, image, 2, true);
        run_line(line, image, 1, false);
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
    bench_serve(ns * 1e-6, "%s", name);
}

static void time_copies(struct frames *a, struct image *image, uint32_t devices,
                        struct bench_samples *samples)
{
    const uint64_t began = cli_now_ns();
    run_copies(a, devices, image->bytes);
    keep_rate(samples, a->count * devices, began, "frame_copies");
}

static void time_line(struct frames *a, size_t index, struct image *image)
{
    struct line *line = &a->lines[index];
    const uint64_t frames = a->count * line->devices;
    char name[64];
    snprintf(name, sizeof name, "frame_%u_slots%s", (unsigned)line->slots,
             line->graphs ? "_graphs" : "");
    run_line(line, image, 1, true); // puts the image into every slot
    const uint64_t began = cli_now_ns();
    run_line(line, image, frames, false);
    keep_rate(&image->rate[index], frames, began, name);
}

static void time_stages(struct frames *a, struct image *image)
{
    const uint64_t frames = a->count < 20 ? a->count : 20;
    struct weir_pipeline_statistics before, after;
    run_line(&a->timed, image, 1, true);
    weir_pipeline_group_get_statistics(a->timed.group, &before);
    run_line(&a->timed, image, frames, false);
    weir_pipeline_group_get_statistics(a->timed.group, &after);
    for (uint32_t i = 0; i < after.stage_count; i++)
        bench_keep(&image->stage_us[i],
                   (double)(after.stages[i].busy_ns - before.stages[i].busy_ns) / (double)frames *
                       1e-3);
}

static void time_image(struct frames *a, struct image *image)
{
    time_copies(a, image, 1, &image->copies[0]);
    if (bench.device_count > 1)
        time_copies(a, image, bench.device_count, &image->copies[1]);
    if (a->timed.owner)
        time_stages(a, image);
    for (size_t i = 0; i < a->line_count; i++)
        time_line(a, i, image);
}

// Tables and the plot.

static void report_copies(struct frames *a, struct bench_table *table, const struct image *image,
                          bool all)
{
    bench_text(table, "image", "image", image->name);
    bench_number(table, "devices", "devices", all ? bench.device_count : 1);
    bench_number(table, "bytes_in", "bytes in", (double)image->bytes);
    bench_number(table, "bytes_out", "bytes out", (double)a->result_bytes);
    bench_value(table, "frames_per_second", "frames/s", 1, image->copies[all]);
    // Where the processor copies, the copies' rate is far above the pipeline's scale.
    if (!all && bench.limits->copy_engines_to_device > 0)
        bench_plot_bar("bare copies", image->name, image->copies[0]);
}

static void report_rate(struct frames *a, struct bench_table *table, const struct image *image,
                        size_t index)
{
    const struct line *line = &a->lines[index];
    const struct bench_samples rate = image->rate[index];
    bench_text(table, "image", "image", image->name);
    bench_number(table, "devices", "devices", line->devices);
    bench_number(table, "slots", "slots", line->slots);
    bench_text(table, "graphs", "graphs", bench_off_on[line->graphs]);
    bench_value(table, "frames_per_second", "frames/s", 1, rate);
    bench_value(table, "of_copies", "x bare copies", 3,
                bench_ratio(rate, image->copies[line->devices > 1]));
    bench_value(table, "speed_up", "x first", 2, bench_ratio(rate, image->rate[0]));
    bench_value(table, "of_one_device", "x one device", 3,
                bench_ratio(rate, image->rate[index % a->lines_of_one]));
    bench_plot_bar(bench_slots(line->slots, line->graphs, line->devices), image->name, rate);
}

static void report(struct frames *a)
{
    struct bench_table *copies =
        bench_table("copies", "bare copies of the frames, in two queues of a device");
    struct bench_table *frames = bench_table("frames", "the pipeline, from pinned memory");
    struct bench_table *stages =
        bench_table("stages", "busy time of a frame's stages, one frame at a time");
    bench_parameter("frames", (double)a->count);
    bench_parameter("side", a->sizes.side);
    bench_plot("ARR-COC: frames a second by slots", "", "frames/s");
    for (size_t k = 0; k < a->image_count; k++) {
        report_copies(a, copies, &a->images[k], false);
        if (bench.device_count > 1)
            report_copies(a, copies, &a->images[k], true);
        for (size_t i = 0; i < a->line_count; i++)
            report_rate(a, frames, &a->images[k], i);
        if (a->timed.owner) {
            struct weir_pipeline_statistics statistics;
            weir_pipeline_group_get_statistics(a->timed.group, &statistics);
            for (uint32_t i = 0; i < statistics.stage_count; i++) {
                bench_text(stages, "image", "image", a->images[k].name);
                bench_text(stages, "stage", "stage", statistics.stages[i].name);
                bench_value(stages, "busy_us", "us", 1, a->images[k].stage_us[i]);
            }
        }
    }
}

// The command.

static void check(void *user)
{
    struct frames *a = user;
    bench.wanted = cli_devices_read(a->asked_devices);
    a->lines_of_one = a->slots.count * a->graphs.count;
    if (a->lines_of_one * (a->asked_devices ? 2 : 1) > LINES_MOST)
        cli_fail(CLI_USAGE, "more than %d pipelines; name fewer numbers of slots", LINES_MOST);
    if (bench.serve && (a->asked_devices || bench.operand_count > 1))
        cli_fail(CLI_USAGE, "--serve measures one image on one device; leave the others out");
}

static void run(void *user)
{
    struct frames *a = user;
    if (a->count == 0)
        a->count = bench.limits->unified_memory ? 10 : 500;
    make_images(a);
    load_weights(a);
    make_lines(a);
    for (uint32_t d = 0; d < bench.device_count; d++)
        make_copies(a, bench.devices[d], &a->copies[d]);
    check_results(a);
    for (bench_start(); bench_turn();)
        for (size_t k = 0; k < a->image_count; k++)
            time_image(a, &a->images[k]);
    report(a);
}

int cli_bench_arr_coc(int argc, char **argv)
{
    static struct frames a = {
        .size = 1024,
        .slots = {.text = "1,2,3,6", .minimum = 1, .maximum = SLOTS_MOST},
        .graphs = {.text = "off", .words = bench_off_on, .most = 2},
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
         &a.count, 1, FRAMES_MOST},
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
        .serves = true,
        .check = check,
        .run = run,
    };
    return bench_main(&program, &a, argc, argv);
}
