// weir bench arr-coc: frames a second of the vision pipeline with one slot and with
// more, beside the rate of bare copies of the same bytes in and out.
//
// Frames are in pinned memory: a slot's memory is written when the slot first gets an
// image, and is reused with the same bytes from then on, as with a camera that writes
// there itself. The host decodes and copies nothing while times are taken.
#include "cli/bench/arr_coc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/work.h"
#include "cli/common/share.h"
#include "io/image.h"

enum {
    IMAGES_MOST = 8,
    PIPELINES_MOST = 16,
    SLOTS_MOST = 32,
    STAGES = WEIR_ARR_COC_STAGES_MAX,
    FRAMES_MOST = 1000000,
    QUERY_SEED = 1
};

static const char *const graph_words[] = {"off", "on", NULL};

struct image {
    char name[64];
    unsigned char *rgb;
    uint32_t width, height;
    struct arr_coc_results results; // of the first pipeline
    struct bench_samples copies;    // frames a second
    struct bench_samples stage_us[STAGES];
    struct bench_samples rate[PIPELINES_MOST];
};

// The image whose bytes are in a slot's pinned memory.
struct filled {
    unsigned char *memory;
    const struct image *image;
};

struct line {
    struct arr_coc_bench *owner;
    weir_arr_coc *arr_coc;
    uint32_t slots;
    bool graphs;
    struct filled filled[SLOTS_MOST];
    const struct image *image; // the one that is run now
    bool checking;
    bool first; // of the image: its results are kept
    bool right;
    struct weir_arr_coc_frame frame; // stands for all of them
};

struct arr_coc_bench {
    const char *asked_slots, *asked_graphs, *weights_path;
    uint64_t frames, size;
    struct bench_list slots, graphs;
    size_t line_count;
    struct bench *bench;
    weir_arr_coc_weights *weights;
    float *query;
    struct image images[IMAGES_MOST];
    size_t image_count;
    struct line lines[PIPELINES_MOST];
    struct line timed; // one slot, with times of the stages
    struct weir_arr_coc_sizes sizes;
    weir_queue *up, *down;
    weir_buffer *up_host, *up_device, *down_host, *down_device;
    size_t result_bytes;
};

// Frames. Both run on threads of the pipeline's; the main thread waits meanwhile.

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    struct line *line = user;
    const struct image *image = line->image;
    const size_t bytes = (size_t)3 * image->width * image->height;
    size_t i = 0;
    while (i + 1 < SLOTS_MOST && line->filled[i].memory && line->filled[i].memory != rgb)
        i++;
    if (line->filled[i].memory != rgb || line->filled[i].image != image) {
        if (rgb && bytes <= capacity)
            memcpy(rgb, image->rgb, bytes);
        line->filled[i] = (struct filled){rgb, image};
    }
    *out_width = image->width;
    *out_height = image->height;
    return WEIR_OK;
}

static bool check_first(struct line *line, struct image *image)
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
    struct line *line = frame->user;
    struct arr_coc_bench *a = line->owner;
    struct image *image = &a->images[line->image - a->images];
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

static bool run_frames(struct line *line, const struct image *image, uint64_t count)
{
    struct bench *bench = line->owner->bench;
    weir_pipeline *pipeline = weir_arr_coc_pipeline(line->arr_coc);
    struct weir_pipeline_statistics before, after;
    line->image = image;
    weir_pipeline_get_statistics(pipeline, &before);
    for (uint64_t i = 0; i < count; i++)
        if (weir_pipeline_submit(pipeline, &line->frame) != WEIR_OK)
            return bench_fail_weir(bench);
    if (weir_pipeline_drain(pipeline, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(bench);
    weir_pipeline_get_statistics(pipeline, &after);
    return after.succeeded - before.succeeded == count ||
           bench_fail(bench, CLI_FAILED, "%s: %" PRIu64 " of %" PRIu64 " frames failed",
                      image->name, count - (after.succeeded - before.succeeded), count);
}

// Images.

static bool read_image(struct arr_coc_bench *a, const char *path)
{
    struct image *image = &a->images[a->image_count];
    struct weir_io_image_info info;
    struct weir_io_error error;
    const char *slash = strrchr(path, '/');
    if (!weir_io_image_probe(path, &info, &error))
        return bench_fail(a->bench, CLI_FAILED, "%s", error.message);
    const size_t bytes = (size_t)weir_io_image_bytes(&info);
    image->rgb = malloc(bytes);
    if (!image->rgb)
        return bench_fail(a->bench, CLI_FAILED, "%s: no memory for its pixels", path);
    a->image_count++;
    if (!weir_io_image_read(path, 0, image->rgb, bytes, &info, &error))
        return bench_fail(a->bench, CLI_FAILED, "%s", error.message);
    snprintf(image->name, sizeof image->name, "%s", slash ? slash + 1 : path);
    image->width = info.width;
    image->height = info.height;
    return true;
}

static bool make_noise(struct arr_coc_bench *a)
{
    struct image *image = &a->images[a->image_count];
    const size_t bytes = (size_t)(3 * a->size * a->size);
    uint32_t state = 1;
    image->rgb = malloc(bytes);
    if (!image->rgb)
        return bench_fail(a->bench, CLI_FAILED, "no memory for a frame of noise");
    a->image_count++;
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        image->rgb[i] = (unsigned char)(state >> 24);
    }
    snprintf(image->name, sizeof image->name, "noise %ux%u", (unsigned)a->size, (unsigned)a->size);
    image->width = image->height = (uint32_t)a->size;
    return true;
}

static bool make_images(struct arr_coc_bench *a)
{
    if (a->bench->operand_count > IMAGES_MOST)
        return bench_fail(a->bench, CLI_USAGE, "%zu images were named, and at most %d are measured",
                          a->bench->operand_count, IMAGES_MOST);
    for (size_t i = 0; i < a->bench->operand_count; i++)
        if (!read_image(a, a->bench->operands[i]))
            return false;
    return a->bench->operand_count > 0 || make_noise(a);
}

static uint64_t most_pixels(const struct arr_coc_bench *a)
{
    uint64_t most = 0;
    for (size_t i = 0; i < a->image_count; i++) {
        const uint64_t pixels = (uint64_t)a->images[i].width * a->images[i].height;
        most = pixels > most ? pixels : most;
    }
    return most;
}

// The pipelines.

static bool load_weights(struct arr_coc_bench *a)
{
    struct weir_io_error error;
    char found[4608], message[9000];
    if (!a->weights_path && !cli_share_file("arr_coc_weights.safetensors",
                                            "pipelines/arr_coc/weights/arr_coc_weights.safetensors",
                                            found, sizeof found, message, sizeof message))
        return bench_fail(a->bench, CLI_FAILED, "no weights: %s; name a file with --weights",
                          message);
    if (!weir_arr_coc_weights_load(a->weights_path ? a->weights_path : found, &a->weights, &error))
        return bench_fail(a->bench, CLI_FAILED, "%s", error.message);
    const size_t size = weir_arr_coc_weights_query_size(a->weights);
    a->query = malloc(size * sizeof *a->query);
    if (!a->query)
        return bench_fail(a->bench, CLI_FAILED, "no memory for a query of %zu numbers", size);
    weir_arr_coc_seeded_query(QUERY_SEED, a->query, size);
    return true;
}

static bool create_line(struct arr_coc_bench *a, struct line *line, uint32_t slots, bool graphs,
                        bool timing)
{
    struct weir_arr_coc_params params = {
        .struct_size = sizeof params,
        .weights = a->weights,
        .query = a->query,
        .query_size = weir_arr_coc_weights_query_size(a->weights),
        .deliver = deliver,
    };
    line->owner = a;
    line->slots = slots;
    line->graphs = graphs;
    line->frame = (struct weir_arr_coc_frame){.load = load, .user = line};
    if (weir_arr_coc_params_from_settings(a->bench->runtime, &params) != WEIR_OK)
        return bench_fail_weir(a->bench);
    params.device = a->bench->device;
    params.max_pixels = most_pixels(a);
    params.slot_count = slots;
    params.full = WEIR_PIPELINE_BLOCK;
    params.backlog = 0;
    params.timing = timing;
    params.graphs = graphs;
    if (weir_arr_coc_create(&params, &line->arr_coc) != WEIR_OK)
        return bench_fail_weir(a->bench);
    a->sizes = *weir_arr_coc_get_sizes(line->arr_coc);
    a->result_bytes = weir_arr_coc_result_bytes(line->arr_coc);
    return true;
}

static bool make_lines(struct arr_coc_bench *a)
{
    const bool can_time = a->bench->limits->timing_history > 0;
    a->line_count = a->slots.count * a->graphs.count;
    for (size_t i = 0; i < a->line_count; i++)
        if (!create_line(a, &a->lines[i], (uint32_t)a->slots.values[i % a->slots.count],
                         a->graphs.values[i / a->slots.count] == BENCH_WORD + 1, false))
            return false;
    if (!can_time)
        bench_note(a->bench, "not measured: times of the stages, which this device does not keep");
    return !can_time || create_line(a, &a->timed, 1, false, true);
}

static bool fill_down(struct arr_coc_bench *a)
{
    return (weir_queue_fill(a->down, a->down_device, 0, a->result_bytes, "", 1) == WEIR_OK &&
            weir_queue_sync(a->down, WEIR_FOREVER) == WEIR_OK) ||
           bench_fail_weir(a->bench);
}

static bool make_copies(struct arr_coc_bench *a)
{
    const size_t up = (size_t)(3 * most_pixels(a));
    struct bench *bench = a->bench;
    return bench_queue(bench, "bench/up", 0, &a->up) &&
           bench_queue(bench, "bench/down", 0, &a->down) &&
           bench_buffer(bench, "up", up, WEIR_PLACE_HOST, &a->up_host) &&
           bench_buffer(bench, "up", up, WEIR_PLACE_DEVICE, &a->up_device) &&
           bench_buffer(bench, "down", a->result_bytes, WEIR_PLACE_HOST, &a->down_host) &&
           bench_buffer(bench, "down", a->result_bytes, WEIR_PLACE_DEVICE, &a->down_device) &&
           bench_work_spoil(bench, a->up_host, up) && fill_down(a);
}

// Each pipeline runs each image until all slots have been used twice.
static bool check_results(struct arr_coc_bench *a)
{
    for (size_t k = 0; k < a->image_count; k++)
        for (size_t i = 0; i < a->line_count; i++) {
            struct line *line = &a->lines[i];
            line->checking = line->right = true;
            if (!run_frames(line, &a->images[k], 2 * line->slots + 1) || !line->right)
                return false;
            line->checking = false;
        }
    return true;
}

// Measuring.

static bool time_copies(struct arr_coc_bench *a, struct image *image)
{
    const size_t up = (size_t)3 * image->width * image->height;
    const uint64_t began = cli_now_ns();
    for (uint64_t i = 0; i < a->frames; i++)
        if (weir_queue_copy(a->up, a->up_device, 0, a->up_host, 0, up) != WEIR_OK ||
            weir_queue_copy(a->down, a->down_host, 0, a->down_device, 0, a->result_bytes) !=
                WEIR_OK)
            return bench_fail_weir(a->bench);
    if (weir_queue_flush(a->up) != WEIR_OK || weir_queue_flush(a->down) != WEIR_OK ||
        weir_queue_sync(a->up, WEIR_FOREVER) != WEIR_OK ||
        weir_queue_sync(a->down, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(a->bench);
    bench_keep(a->bench, &image->copies, (double)a->frames * 1e9 / (double)(cli_now_ns() - began));
    return true;
}

static bool time_line(struct arr_coc_bench *a, size_t index, struct image *image)
{
    struct line *line = &a->lines[index];
    if (!run_frames(line, image, line->slots)) // puts the image into every slot
        return false;
    const uint64_t began = cli_now_ns();
    if (!run_frames(line, image, a->frames))
        return false;
    bench_keep(a->bench, &image->rate[index],
               (double)a->frames * 1e9 / (double)(cli_now_ns() - began));
    return true;
}

static bool time_stages(struct arr_coc_bench *a, struct image *image)
{
    const uint64_t frames = a->frames < 20 ? a->frames : 20;
    weir_pipeline *pipeline = weir_arr_coc_pipeline(a->timed.arr_coc);
    struct weir_pipeline_statistics before, after;
    weir_pipeline_get_statistics(pipeline, &before);
    if (!run_frames(&a->timed, image, frames))
        return false;
    weir_pipeline_get_statistics(pipeline, &after);
    for (uint32_t i = 0; i < after.stage_count; i++)
        bench_keep(a->bench, &image->stage_us[i],
                   (double)(after.stages[i].busy_ns - before.stages[i].busy_ns) / (double)frames *
                       1e-3);
    return true;
}

static bool measure(struct arr_coc_bench *a)
{
    const bool timed = a->timed.arr_coc != NULL;
    const uint64_t steps = a->image_count * (a->line_count + 1 + (timed ? STAGES : 0));
    for (bench_start(a->bench, steps); bench_turn(a->bench);)
        for (size_t k = 0; k < a->image_count; k++) {
            if (!time_copies(a, &a->images[k]) || (timed && !time_stages(a, &a->images[k])))
                return false;
            for (size_t i = 0; i < a->line_count; i++)
                if (!time_line(a, i, &a->images[k]))
                    return false;
        }
    return true;
}

// Reporting.

static void plot_rate(struct cli_plot *plot, const char *series, const char *image,
                      const struct bench_samples *rate)
{
    const struct bench_spread spread = bench_spread(rate);
    cli_plot_add(cli_plot_series(plot, series),
                 (struct cli_plot_point){(double)cli_plot_group(plot, image), spread.median,
                                         spread.minimum, spread.maximum});
}

static void report_copies(struct arr_coc_bench *a)
{
    static const struct bench_column columns[] = {
        {"image", "image", BENCH_TEXT, 0},
        {"bytes_in", "bytes in", BENCH_NUMBER, 0},
        {"bytes_out", "bytes out", BENCH_NUMBER, 0},
        {"frames_per_second", "frames/s", BENCH_SPREAD, 1},
    };
    const struct weir_limits *limits = a->bench->limits;
    struct bench_table *table = bench_table(a->bench, "copies",
                                            "bare copies of the frames, in two "
                                            "queues",
                                            columns, 4);
    for (size_t k = 0; k < a->image_count; k++) {
        const struct image *image = &a->images[k];
        bench_put_text(table, "%s", image->name);
        bench_put_number(table, 3.0 * image->width * image->height);
        bench_put_number(table, (double)a->result_bytes);
        bench_put(table, &image->copies);
        // Where the processor copies, the copies' rate is far above the pipeline's scale.
        if (limits->copy_engines_to_device > 0)
            plot_rate(&a->bench->plot, "bare copies", image->name, &image->copies);
    }
}

static void report_rates(struct arr_coc_bench *a)
{
    static const struct bench_column columns[] = {
        {"image", "image", BENCH_TEXT, 0},
        {"slots", "slots", BENCH_NUMBER, 0},
        {"graphs", "graphs", BENCH_TEXT, 0},
        {"frames_per_second", "frames/s", BENCH_SPREAD, 1},
        {"of_copies", "x bare copies", BENCH_SPREAD, 3},
        {"speed_up", "x first", BENCH_SPREAD, 2},
    };
    struct bench_table *table = bench_table(a->bench, "frames", "the pipeline, from pinned memory",
                                            columns, sizeof columns / sizeof *columns);
    for (size_t k = 0; k < a->image_count; k++)
        for (size_t i = 0; i < a->line_count; i++) {
            const struct image *image = &a->images[k];
            const struct bench_samples share = bench_ratio(&image->rate[i], &image->copies);
            const struct bench_samples gain = bench_ratio(&image->rate[i], &image->rate[0]);
            char name[32];
            bench_put_text(table, "%s", image->name);
            bench_put_number(table, a->lines[i].slots);
            bench_put_text(table, "%s", graph_words[a->lines[i].graphs]);
            bench_put(table, &image->rate[i]);
            bench_put(table, &share);
            bench_put(table, &gain);
            snprintf(name, sizeof name, "%u slot%s%s", (unsigned)a->lines[i].slots,
                     a->lines[i].slots == 1 ? "" : "s", a->lines[i].graphs ? ", graphs" : "");
            plot_rate(&a->bench->plot, name, image->name, &image->rate[i]);
        }
}

static void report_stages(struct arr_coc_bench *a)
{
    static const struct bench_column columns[] = {
        {"image", "image", BENCH_TEXT, 0},
        {"stage", "stage", BENCH_TEXT, 0},
        {"busy_us", "us", BENCH_SPREAD, 1},
    };
    struct bench_table *table = bench_table(a->bench, "stages",
                                            "busy time of a frame's stages, "
                                            "one frame at a time",
                                            columns, 3);
    struct weir_pipeline_statistics statistics;
    if (!a->timed.arr_coc)
        return;
    weir_pipeline_get_statistics(weir_arr_coc_pipeline(a->timed.arr_coc), &statistics);
    for (size_t k = 0; k < a->image_count; k++)
        for (uint32_t i = 0; i < statistics.stage_count; i++) {
            bench_put_text(table, "%s", a->images[k].name);
            bench_put_text(table, "%s", statistics.stages[i].name);
            bench_put(table, &a->images[k].stage_us[i]);
        }
}

static void report(struct arr_coc_bench *a)
{
    struct cli_plot *plot = &a->bench->plot;
    bench_parameter(a->bench, "frames", (double)a->frames);
    bench_parameter(a->bench, "side", a->sizes.side);
    snprintf(plot->title, sizeof plot->title, "ARR-COC: frames a second by slots");
    snprintf(plot->y_name, sizeof plot->y_name, "frames/s");
    report_copies(a);
    report_rates(a);
    report_stages(a);
}

static void destroy_all(struct arr_coc_bench *a)
{
    for (size_t i = 0; i < PIPELINES_MOST; i++)
        weir_arr_coc_destroy(&a->lines[i].arr_coc);
    weir_arr_coc_destroy(&a->timed.arr_coc);
    weir_buffer_destroy(&a->down_device);
    weir_buffer_destroy(&a->down_host);
    weir_buffer_destroy(&a->up_device);
    weir_buffer_destroy(&a->up_host);
    weir_queue_destroy(&a->down);
    weir_queue_destroy(&a->up);
    for (size_t k = 0; k < a->image_count; k++) {
        arr_coc_results_finish(&a->images[k].results);
        free(a->images[k].rgb);
    }
    free(a->query);
    weir_arr_coc_weights_destroy(&a->weights);
}

// The command.

static bool check(struct bench *bench, void *user)
{
    struct arr_coc_bench *a = user;
    a->bench = bench;
    return bench_parse_list(bench, "slots", a->asked_slots, NULL, 1, SLOTS_MOST, &a->slots) &&
           bench_parse_list(bench, "graphs", a->asked_graphs, graph_words, 0, 0, &a->graphs) &&
           (a->graphs.count <= 2 ||
            bench_fail(bench, CLI_USAGE, "--graphs takes off, on or both")) &&
           (a->slots.count * a->graphs.count <= PIPELINES_MOST ||
            bench_fail(bench, CLI_USAGE, "more than %d pipelines; name fewer numbers of slots",
                       PIPELINES_MOST));
}

static bool run(struct bench *bench, void *user)
{
    struct arr_coc_bench *a = user;
    if (a->frames == 0)
        a->frames = bench->limits->unified_memory ? 10 : 500;
    const bool fine = make_images(a) && load_weights(a) && make_lines(a) && make_copies(a) &&
                      check_results(a) && measure(a);
    if (fine)
        report(a);
    destroy_all(a);
    return fine;
}

static int arr_coc_main(int argc, char **argv)
{
    static struct arr_coc_bench a = {.asked_slots = "1,2,3,6", .asked_graphs = "off", .size = 1024};
    const struct cli_option options[] = {
        {"size", "N", "without an IMAGE: pixels of a side of a noise frame (1024)", CLI_COUNT,
         &a.size, 1, 16384},
        {"slots", "LIST", "numbers of slots; the first is compared with (1,2,3,6)", CLI_TEXT,
         &a.asked_slots, 0, 0},
        {"graphs", "LIST", "off, on or both: each frame is a launch of a graph (off)", CLI_TEXT,
         &a.asked_graphs, 0, 0},
        {"frames", "N", "frames of a run (10 where the processor is the device,\nelse 500)",
         CLI_COUNT, &a.frames, 1, FRAMES_MOST},
        {"weights", "W", "the weights; without it, the seeded ones that come\nwith weir", CLI_FILE,
         &a.weights_path, 0, 0},
    };
    const struct bench_program program = {
        .name = "arr-coc",
        .about = "Measures frames a second of the ARR-COC pipeline, whose frames lie in pinned\n"
                 "memory, beside bare copies of as many bytes in and out; on each IMAGE, or on\n"
                 "noise.\n\n"
                 "  weir bench arr-coc --plot frames.svg\n"
                 "  weir bench arr-coc coffee.png chelsea.png --slots 1,3 --graphs off,on",
        .operands = "[IMAGE]...",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check,
        .run = run,
    };
    return bench_main(&program, &a, argc, argv);
}

const struct cli_command cli_bench_arr_coc = {
    .name = "arr-coc",
    .summary = "frames/s of the vision pipeline, beside bare copies",
    .main = arr_coc_main,
};
