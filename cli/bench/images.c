// weir bench images: JPEGs a second that are decoded on several threads and run through the ARR-COC
// pipeline, beside the decoder alone, into memory of its threads' and into pinned buffers, and the pipeline
// alone.
#include "cli/bench/images.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/processors.h"
#include "cli/common/share.h"

static const char *const thread_words[] = {"all", NULL};

// Frames. `load` runs on the threads that prepare frames, `deliver` on another one of the pipeline.

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct images_image *image = user;
    struct weir_io_image_info info;
    struct weir_io_error error;
    *out_width = image->info.width;
    *out_height = image->info.height;
    if (!image->owner->decodes || weir_io_image_read(image->path, 0, rgb, capacity, &info, &error))
        return WEIR_OK;
    struct weir_error detail = {.status = WEIR_ERROR_IO};
    snprintf(detail.message, sizeof detail.message, "%s", error.message);
    return weir_error_set(&detail);
}

static bool take_first(struct images_image *image)
{
    const struct images_bench *images = image->owner;
    char message[256];
    return !images->bench->runs_kernels ||
           arr_coc_results_check(&image->results, &images->sizes, message, sizeof message) ||
           bench_fail_result(images->bench, "%s: wrong results: %s; nothing was timed", image->path,
                             message);
}

static bool compare(struct images_image *image, const struct weir_arr_coc_output *output)
{
    const struct images_bench *images = image->owner;
    struct arr_coc_results own;
    if (!arr_coc_results_fit(output, &images->sizes))
        return bench_fail_result(images->bench, "%s: wrong results: %u patches and %u tokens",
                                 image->path, (unsigned)output->patch_count,
                                 (unsigned)output->token_count);
    if (!arr_coc_results_take(&own, output, images->sizes.grid))
        return bench_fail(images->bench, CLI_FAILED, "no memory for the results");
    images->bench->checked++;
    if (!image->results.memory) {
        image->results = own;
        return take_first(image);
    }
    const bool same = arr_coc_results_same(&image->results, &own);
    arr_coc_results_finish(&own);
    return same || bench_fail_result(images->bench,
                                     "%s: a frame gave other results than the first one; nothing "
                                     "was timed",
                                     image->path);
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct images_bench *images = user;
    if (!atomic_load(&images->right))
        return;
    if (result->status != WEIR_OK)
        atomic_store(&images->right,
                     bench_fail(images->bench, CLI_FAILED, "%s",
                                result->error ? result->error->message : "a frame was dropped"));
    else if (images->checking)
        atomic_store(&images->right, compare(frame->user, output));
}

static bool run_frames(struct images_bench *images, const struct images_row *row, uint64_t count)
{
    weir_pipeline *pipeline = weir_arr_coc_pipeline(row->arr_coc);
    atomic_store(&images->right, true);
    for (uint64_t i = 0; i < count; i++)
        if (weir_pipeline_submit(pipeline, &images->images[i % images->image_count].frame) !=
            WEIR_OK)
            return bench_fail_weir(images->bench);
    return (weir_pipeline_drain(pipeline, WEIR_FOREVER) == WEIR_OK ||
            bench_fail_weir(images->bench)) &&
           atomic_load(&images->right);
}

// Opening.

static bool add_image(struct images_bench *images, const char *path)
{
    struct images_image *image = &images->images[images->image_count];
    struct weir_io_error error;
    image->owner = images;
    image->path = path;
    image->frame = (struct weir_arr_coc_frame){.load = load, .user = image};
    if (!weir_io_image_probe(path, &image->info, &error))
        return bench_fail(images->bench, CLI_FAILED, "%s", error.message);
    images->image_count++;
    return true;
}

static bool name_images(struct images_bench *images)
{
    struct bench *bench = images->bench;
    if (bench->operand_count == 0) {
        images->made = images_make(bench, (uint32_t)images->size, (int)images->quality);
        if (!images->made)
            return false;
        snprintf(images->made_path, sizeof images->made_path, "/proc/self/fd/%d",
                 fileno(images->made));
        return add_image(images, images->made_path);
    }
    for (size_t i = 0; i < bench->operand_count; i++)
        if (!add_image(images, bench->operands[i]))
            return false;
    return true;
}

static bool load_weights(struct images_bench *images)
{
    struct weir_io_error error;
    char found[4608], message[9000];
    struct bench *bench = images->bench;
    if (!images->weights_path &&
        !cli_share_file("arr_coc_weights.safetensors",
                        "pipelines/arr_coc/weights/arr_coc_weights.safetensors", found,
                        sizeof found, message, sizeof message))
        return bench_fail(bench, CLI_FAILED, "no weights: %s; name a file with --weights", message);
    if (!weir_arr_coc_weights_load(images->weights_path ? images->weights_path : found,
                                   &images->weights, &error))
        return bench_fail(bench, CLI_FAILED, "%s", error.message);
    const size_t size = weir_arr_coc_weights_query_size(images->weights);
    images->query = malloc(size * sizeof *images->query);
    if (!images->query)
        return bench_fail(bench, CLI_FAILED, "no memory for a query of %zu numbers", size);
    weir_arr_coc_seeded_query(IMAGES_QUERY_SEED, images->query, size);
    return true;
}

static size_t largest(const struct images_bench *images)
{
    size_t most = 0;
    for (size_t i = 0; i < images->image_count; i++) {
        const size_t bytes = (size_t)weir_io_image_bytes(&images->images[i].info);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool make_row(struct images_bench *images, size_t index)
{
    struct images_row *row = &images->rows[index];
    const uint64_t asked = images->threads.values[index];
    struct weir_arr_coc_params params = {
        .struct_size = sizeof params,
        .weights = images->weights,
        .query = images->query,
        .query_size = weir_arr_coc_weights_query_size(images->weights),
        .deliver = deliver,
        .user = images,
    };
    row->threads = asked == BENCH_WORD ? cli_processors(IMAGES_THREADS_MOST) : (uint32_t)asked;
    if (weir_arr_coc_params_from_settings(images->bench->runtime, &params) != WEIR_OK)
        return bench_fail_weir(images->bench);
    params.device = images->bench->device;
    params.max_pixels = images->image_bytes / 3;
    params.full = WEIR_PIPELINE_BLOCK;
    row->slots =
        (params.slot_count ? params.slot_count : WEIR_ARR_COC_STAGES_MAX + 1) + 2 * row->threads;
    if (images->slots)
        row->slots = (uint32_t)images->slots;
    if (row->slots > WEIR_PIPELINE_SLOTS_MAX)
        row->slots = WEIR_PIPELINE_SLOTS_MAX;
    params.slot_count = row->slots;
    params.prepare_threads = row->threads;
    if (weir_arr_coc_create(&params, &row->arr_coc) != WEIR_OK)
        return bench_fail_weir(images->bench);
    images->sizes = *weir_arr_coc_get_sizes(row->arr_coc);
    return true;
}

// As many as the row with the most slots has.
static bool make_pinned(struct images_bench *images)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "images",
                                              .size = images->image_bytes,
                                              .placement = WEIR_PLACE_HOST};
    uint32_t count = 0;
    for (size_t i = 0; i < images->threads.count; i++)
        count = images->rows[i].slots > count ? images->rows[i].slots : count;
    for (uint32_t i = 0; i < count; i++)
        if (weir_buffer_create(images->bench->device, &params, &images->pinned[i]) != WEIR_OK)
            return bench_fail_weir(images->bench);
    return true;
}

static bool make_all(struct images_bench *images)
{
    images->image_bytes = largest(images);
    for (size_t i = 0; i < images->threads.count; i++)
        if (!make_row(images, i))
            return false;
    return make_pinned(images);
}

// Each slot gets an image, which the pipeline alone then works on.
static bool check_results(struct images_bench *images)
{
    images->decodes = images->checking = true;
    for (size_t i = 0; i < images->threads.count; i++)
        if (!run_frames(images, &images->rows[i], images->image_count + images->rows[i].slots))
            return false;
    images->checking = false;
    return true;
}

static void close_images(struct images_bench *images)
{
    for (size_t i = 0; i < images->threads.count; i++)
        weir_arr_coc_destroy(&images->rows[i].arr_coc);
    for (size_t i = 0; i < WEIR_PIPELINE_SLOTS_MAX; i++)
        weir_buffer_destroy(&images->pinned[i]);
    for (size_t i = 0; i < images->image_count; i++)
        arr_coc_results_finish(&images->images[i].results);
    free(images->query);
    weir_arr_coc_weights_destroy(&images->weights);
    if (images->made)
        (void)fclose(images->made);
}

// Measuring.

static bool run_way(struct images_bench *images, struct images_row *row, enum images_way way)
{
    images->decodes = way == IMAGES_BOTH;
    if (way == IMAGES_DECODER || way == IMAGES_PINNED)
        return images_decode(images, row->threads, way == IMAGES_PINNED ? row->slots : 0);
    return run_frames(images, row, images->frames);
}

static void keep(const struct images_bench *images, struct bench_samples *samples, double value)
{
    if (images->bench->turn > 0)
        samples->values[samples->count++] = value;
}

static bool time_way(struct images_bench *images, struct images_row *row, enum images_way way,
                     double *out_rate)
{
    const uint64_t worked_ns = cli_processor_time_ns();
    const uint64_t began_ns = cli_now_ns();
    if (!run_way(images, row, way))
        return false;
    const double took_ns = (double)(cli_now_ns() - began_ns);
    const double busy_ns = (double)(cli_processor_time_ns() - worked_ns);
    *out_rate = (double)images->frames * 1e9 / took_ns;
    bench_keep(images->bench, &row->rate[way], *out_rate);
    keep(images, &row->busy[way], busy_ns / took_ns);
    keep(images, &row->cost[way], busy_ns / 1e6 / (double)images->frames);
    return true;
}

static double slower(double a, double b)
{
    return a < b ? a : b;
}

static bool time_row(struct images_bench *images, struct images_row *row)
{
    double rate[IMAGES_WAYS];
    for (int i = 0; i < IMAGES_WAYS; i++) {
        const enum images_way way =
            (enum images_way)((images->bench->turn + (uint64_t)i) % IMAGES_WAYS);
        if (!time_way(images, row, way, &rate[way]))
            return false;
    }
    keep(images, &row->of_slower,
         rate[IMAGES_BOTH] / slower(rate[IMAGES_DECODER], rate[IMAGES_PIPELINE]));
    keep(images, &row->of_slower_pinned,
         rate[IMAGES_BOTH] / slower(rate[IMAGES_PINNED], rate[IMAGES_PIPELINE]));
    return true;
}

static bool measure(struct images_bench *images)
{
    for (bench_start(images->bench, images->threads.count * IMAGES_WAYS);
         bench_turn(images->bench);)
        for (size_t i = 0; i < images->threads.count; i++)
            if (!time_row(images, &images->rows[i]))
                return false;
    return true;
}

// The command.

static bool check(struct bench *bench, void *user)
{
    struct images_bench *images = user;
    images->bench = bench;
    return bench_parse_list(bench, "threads", images->asked_threads, thread_words, 1,
                            IMAGES_THREADS_MOST, &images->threads) &&
           (bench->operand_count <= IMAGES_MOST ||
            bench_fail(bench, CLI_USAGE, "%zu images were named, and at most %d are measured",
                       bench->operand_count, IMAGES_MOST));
}

static bool run(struct bench *bench, void *user)
{
    struct images_bench *images = user;
    if (images->frames == 0)
        images->frames = bench->limits->unified_memory ? 20 : 2000;
    const bool fine = name_images(images) && load_weights(images) && make_all(images) &&
                      check_results(images) && measure(images);
    if (fine)
        images_report(images);
    close_images(images);
    return fine;
}

static int images_main(int argc, char **argv)
{
    static struct images_bench images = {.asked_threads = "all", .size = 1024, .quality = 90};
    const struct cli_option options[] = {
        {"threads", "LIST", "threads that decode; all: as many as processors (all)", CLI_TEXT,
         &images.asked_threads, 0, 0},
        {"frames", "N", "images of a run (20 where the processor is the device, else\n2000)",
         CLI_COUNT, &images.frames, 1, IMAGES_FRAMES_MOST},
        {"slots", "N",
         "of the pipeline; without it as many as it has for two images of\neach thread", CLI_COUNT,
         &images.slots, 1, WEIR_PIPELINE_SLOTS_MAX},
        {"size", "N", "without an IMAGE: pixels of a side of a made JPEG (1024)", CLI_COUNT,
         &images.size, 1, 16384},
        {"quality", "N", "of that JPEG (90)", CLI_COUNT, &images.quality, 1, 100},
        {"weights", "W", "the weights; without it, the seeded ones that come\nwith weir", CLI_FILE,
         &images.weights_path, 0, 0},
    };
    const struct bench_program program = {
        .name = "images",
        .about =
            "Measures images a second that threads decode, into pinned memory from which they\n"
            "are uploaded, and the ARR-COC pipeline works on; beside the decoder alone, into\n"
            "memory of each thread's and into as many pinned buffers as the pipeline has slots,\n"
            "and the pipeline alone on images that are decoded already.\n\n"
            "  weir bench images --threads 1,4,all\n"
            "  weir bench images photo.jpg --frames 500",
        .operands = "[IMAGE]...",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check,
        .run = run,
    };
    return bench_main(&program, &images, argc, argv);
}

const struct cli_command cli_bench_images = {
    .name = "images",
    .summary = "JPEGs a second, decoded and run through the vision pipeline",
    .main = images_main,
};
