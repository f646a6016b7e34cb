// The job `images`: images a second that threads decode, and that the ARR-COC pipeline works on as they come,
// beside the decoder alone, into as many pinned buffers as the pipeline has slots, and the pipeline alone on
// images that are in its slots already.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/arr_coc.h"
#include "cli/common/processors.h"
#include "cli/common/share.h"
#include "io/image.h"

enum {
    IMAGES_MOST = 64,
    THREADS_MOST = 128,
    QUERY_SEED = 1
};

enum way {
    DECODER,
    PIPELINE,
    BOTH,
    WAYS
};

static const char *const way_names[] = {"decoder alone", "pipeline alone", "both"};
static const char *const thread_words[] = {"all", NULL};

struct image {
    struct images *owner;
    const char *path;
    struct weir_io_image_info info;
    struct weir_arr_coc_frame frame;
    struct arr_coc_results results; // of the first frame
};

// A number of threads, with its pipeline.
struct row {
    uint32_t threads, slots;
    weir_arr_coc *arr_coc;
    struct bench_samples rate[WAYS]; // images a second
    struct bench_samples busy[WAYS]; // processors that the process kept busy
    struct bench_samples of_slower;  // both, over the slower one alone
};

struct images {
    const char *asked_threads, *weights_path;
    uint64_t frames, slots;
    struct bench_list threads;
    struct bench *bench;
    weir_arr_coc_weights *weights;
    float *query;
    struct image images[IMAGES_MOST];
    size_t image_count, image_bytes; // of the largest image, decoded
    struct row rows[BENCH_LIST_MAX];
    weir_buffer *pinned[WEIR_PIPELINE_SLOTS_MAX];
    struct weir_arr_coc_sizes sizes;
    bool decodes;      // frames are decoded as they are loaded
    bool checking;     // results are compared with those of the first frame
    atomic_bool right; // so far
};

// Frames. `load` runs on the threads that prepare frames, `deliver` on another one of the pipeline.

static weir_status read_image(const struct image *image, void *rgb, size_t capacity)
{
    struct weir_io_image_info info;
    struct weir_io_error error;
    struct weir_error detail = {.status = WEIR_ERROR_IO};
    if (weir_io_image_read(image->path, 0, rgb, capacity, &info, &error))
        return WEIR_OK;
    snprintf(detail.message, sizeof detail.message, "%s", error.message);
    return weir_error_set(&detail);
}

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct image *image = user;
    *out_width = image->info.width;
    *out_height = image->info.height;
    return image->owner->decodes ? read_image(image, rgb, capacity) : WEIR_OK;
}

static bool take_first(struct image *image)
{
    const struct images *images = image->owner;
    char message[256];
    return !images->bench->runs_kernels ||
           arr_coc_results_check(&image->results, &images->sizes, message, sizeof message) ||
           bench_fail_result(images->bench, "%s: wrong results: %s; nothing was timed", image->path,
                             message);
}

static bool compare(struct image *image, const struct weir_arr_coc_output *output)
{
    const struct images *images = image->owner;
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
    struct images *images = user;
    if (!atomic_load(&images->right))
        return;
    if (result->status != WEIR_OK)
        atomic_store(&images->right,
                     bench_fail(images->bench, CLI_FAILED, "%s",
                                result->error ? result->error->message : "a frame was dropped"));
    else if (images->checking)
        atomic_store(&images->right, compare(frame->user, output));
}

static bool run_frames(struct images *images, const struct row *row, uint64_t count)
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

// The decoder alone: threads that take the next image, and a buffer that no other one has, until all are decoded.

struct share {
    struct images *images;
    atomic_uint_fast64_t next;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t freed;
    weir_buffer *free[WEIR_PIPELINE_SLOTS_MAX]; // a ring: from `taken` to `left`
    uint64_t taken, left;
    uint32_t slots;
    struct weir_error problem; // the first
};

static weir_buffer *take_buffer(struct share *share)
{
    pthread_mutex_lock(&share->lock);
    while (share->taken == share->left)
        pthread_cond_wait(&share->freed, &share->lock);
    weir_buffer *buffer = share->free[share->taken++ % share->slots];
    pthread_mutex_unlock(&share->lock);
    return buffer;
}

static void leave_buffer(struct share *share, weir_buffer *buffer, bool fine)
{
    pthread_mutex_lock(&share->lock);
    if (!fine && share->problem.status == WEIR_OK)
        share->problem = *weir_last_error();
    share->free[share->left++ % share->slots] = buffer;
    pthread_cond_signal(&share->freed);
    pthread_mutex_unlock(&share->lock);
}

static bool decode_to(const struct images *images, uint64_t number, weir_buffer *buffer)
{
    void *rgb;
    if (weir_host_begin(buffer, 0, images->image_bytes, WEIR_ACCESS_WRITE, &rgb) < 0)
        return false;
    const weir_status status =
        read_image(&images->images[number % images->image_count], rgb, images->image_bytes);
    weir_host_end(buffer, 0, images->image_bytes, WEIR_ACCESS_WRITE);
    return status == WEIR_OK;
}

static void *decode(void *argument)
{
    struct share *share = argument;
    bool fine = true;
    for (uint64_t number;
         fine && (number = atomic_fetch_add(&share->next, 1)) < share->images->frames;) {
        weir_buffer *buffer = take_buffer(share);
        fine = decode_to(share->images, number, buffer);
        leave_buffer(share, buffer, fine);
    }
    return NULL;
}

static bool decode_all(struct images *images, const struct row *row)
{
    struct share share = {.images = images, .slots = row->slots, .left = row->slots};
    pthread_t running[THREADS_MOST];
    uint32_t started = 0;
    memcpy(share.free, images->pinned, sizeof share.free);
    pthread_mutex_init(&share.lock, NULL);
    pthread_cond_init(&share.freed, NULL);
    while (started < row->threads && pthread_create(&running[started], NULL, decode, &share) == 0)
        started++;
    for (uint32_t i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    pthread_cond_destroy(&share.freed);
    pthread_mutex_destroy(&share.lock);
    if (started < row->threads)
        return bench_fail(images->bench, CLI_FAILED, "a thread cannot be started");
    if (share.problem.status == WEIR_OK)
        return true;
    weir_error_set(&share.problem);
    return bench_fail_weir(images->bench);
}

// Opening.

static bool name_images(struct images *images)
{
    struct bench *bench = images->bench;
    for (size_t i = 0; i < bench->operand_count; i++) {
        struct image *image = &images->images[images->image_count++];
        struct weir_io_error error;
        image->owner = images;
        image->path = bench->operands[i];
        image->frame = (struct weir_arr_coc_frame){.load = load, .user = image};
        if (!weir_io_image_probe(image->path, &image->info, &error))
            return bench_fail(bench, CLI_FAILED, "%s", error.message);
        const size_t bytes = (size_t)weir_io_image_bytes(&image->info);
        images->image_bytes = bytes > images->image_bytes ? bytes : images->image_bytes;
    }
    return true;
}

static bool load_weights(struct images *images)
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
    weir_arr_coc_seeded_query(QUERY_SEED, images->query, size);
    return true;
}

static bool make_row(struct images *images, size_t index)
{
    struct row *row = &images->rows[index];
    const uint64_t asked = images->threads.values[index];
    struct weir_arr_coc_params params = {
        .struct_size = sizeof params,
        .weights = images->weights,
        .query = images->query,
        .query_size = weir_arr_coc_weights_query_size(images->weights),
        .deliver = deliver,
        .user = images,
    };
    row->threads = asked == BENCH_WORD ? cli_processors(THREADS_MOST) : (uint32_t)asked;
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

// With as many pinned buffers as the row with the most slots has.
static bool make_all(struct images *images)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "images",
                                              .size = images->image_bytes,
                                              .placement = WEIR_PLACE_HOST};
    uint32_t count = 0;
    for (size_t i = 0; i < images->threads.count; i++) {
        if (!make_row(images, i))
            return false;
        count = images->rows[i].slots > count ? images->rows[i].slots : count;
    }
    for (uint32_t i = 0; i < count; i++)
        if (weir_buffer_create(images->bench->device, &params, &images->pinned[i]) != WEIR_OK)
            return bench_fail_weir(images->bench);
    return true;
}

// Each slot gets an image, which the pipeline alone then works on.
static bool check_results(struct images *images)
{
    images->decodes = images->checking = true;
    for (size_t i = 0; i < images->threads.count; i++)
        if (!run_frames(images, &images->rows[i], images->image_count + images->rows[i].slots))
            return false;
    images->checking = false;
    return true;
}

static void close_images(struct images *images)
{
    for (size_t i = 0; i < images->threads.count; i++)
        weir_arr_coc_destroy(&images->rows[i].arr_coc);
    for (size_t i = 0; i < WEIR_PIPELINE_SLOTS_MAX; i++)
        weir_buffer_destroy(&images->pinned[i]);
    for (size_t i = 0; i < images->image_count; i++)
        arr_coc_results_finish(&images->images[i].results);
    free(images->query);
    weir_arr_coc_weights_destroy(&images->weights);
}

// Measuring.

static void keep(const struct images *images, struct bench_samples *samples, double value)
{
    if (images->bench->turn > 0)
        samples->values[samples->count++] = value;
}

static bool time_way(struct images *images, struct row *row, enum way way, double *out_rate)
{
    const uint64_t worked_ns = cli_processor_time_ns();
    const uint64_t began_ns = cli_now_ns();
    images->decodes = way == BOTH;
    if (way == DECODER ? !decode_all(images, row) : !run_frames(images, row, images->frames))
        return false;
    const double took_ns = (double)(cli_now_ns() - began_ns);
    *out_rate = (double)images->frames * 1e9 / took_ns;
    bench_keep(images->bench, &row->rate[way], *out_rate);
    keep(images, &row->busy[way], (double)(cli_processor_time_ns() - worked_ns) / took_ns);
    return true;
}

static bool time_row(struct images *images, struct row *row)
{
    double rate[WAYS];
    for (int i = 0; i < WAYS; i++) {
        const enum way way = (enum way)((images->bench->turn + (uint64_t)i) % WAYS);
        if (!time_way(images, row, way, &rate[way]))
            return false;
    }
    keep(images, &row->of_slower,
         rate[BOTH] / (rate[DECODER] < rate[PIPELINE] ? rate[DECODER] : rate[PIPELINE]));
    return true;
}

static bool measure(struct images *images)
{
    for (bench_start(images->bench, images->threads.count * WAYS); bench_turn(images->bench);)
        for (size_t i = 0; i < images->threads.count; i++)
            if (!time_row(images, &images->rows[i]))
                return false;
    return true;
}

static void report(struct images *images)
{
    static const struct bench_column columns[] = {
        {"threads", "threads", BENCH_NUMBER, 0},
        {"slots", "slots", BENCH_NUMBER, 0},
        {"decoder", "decoder alone", BENCH_SPREAD, 1},
        {"pipeline", "pipeline alone", BENCH_SPREAD, 1},
        {"both", "both", BENCH_SPREAD, 1},
        {"of_slower", "both / slower alone", BENCH_SPREAD, 3},
        {"decoder_busy", "processors: decoder", BENCH_SPREAD, 2},
        {"pipeline_busy", "pipeline", BENCH_SPREAD, 2},
        {"both_busy", "both", BENCH_SPREAD, 2},
    };
    struct bench *bench = images->bench;
    struct bench_table *table =
        bench_table(bench, "images", "images a second", columns, sizeof columns / sizeof *columns);
    snprintf(bench->plot.title, sizeof bench->plot.title, "Images through ARR-COC");
    snprintf(bench->plot.x_name, sizeof bench->plot.x_name, "threads that decode");
    snprintf(bench->plot.y_name, sizeof bench->plot.y_name, "images a second");
    bench_parameter(bench, "frames", (double)images->frames);
    bench_parameter(bench, "processors", cli_processors(UINT32_MAX));
    for (size_t i = 0; i < images->threads.count; i++) {
        const struct row *row = &images->rows[i];
        bench_put_number(table, row->threads);
        bench_put_number(table, row->slots);
        for (int way = 0; way < WAYS; way++) {
            const struct bench_spread spread = bench_spread(&row->rate[way]);
            bench_put(table, &row->rate[way]);
            cli_plot_add(cli_plot_series(&bench->plot, way_names[way]),
                         (struct cli_plot_point){row->threads, spread.median, spread.minimum,
                                                 spread.maximum});
        }
        bench_put(table, &row->of_slower);
        for (int way = 0; way < WAYS; way++)
            bench_put(table, &row->busy[way]);
    }
}

static bool check_options(struct bench *bench, void *user)
{
    struct images *images = user;
    images->bench = bench;
    return bench_parse_list(bench, "threads", images->asked_threads, thread_words, 1, THREADS_MOST,
                            &images->threads) &&
           (bench->operand_count > 0 || bench_fail(bench, CLI_USAGE, "no image was named"));
}

static bool run(struct bench *bench, void *user)
{
    struct images *images = user;
    if (images->frames == 0)
        images->frames = bench->limits->unified_memory ? 20 : 2000;
    const bool fine = name_images(images) && load_weights(images) && make_all(images) &&
                      check_results(images) && measure(images);
    if (fine)
        report(images);
    close_images(images);
    return fine;
}

static int images_main(int argc, char **argv)
{
    static struct images images = {.asked_threads = "all"};
    const struct cli_option options[] = {
        {"threads", "LIST", "threads that decode; all: as many as processors (all)", CLI_TEXT,
         &images.asked_threads, 0, 0},
        {"frames", "N", "images of a run (20 where the processor is the device, else\n2000)",
         CLI_COUNT, &images.frames, 1, 1000000},
        {"slots", "N",
         "of the pipeline; without it as many as it has for two images of\neach thread", CLI_COUNT,
         &images.slots, 1, WEIR_PIPELINE_SLOTS_MAX},
        {"weights", "W", "the weights; without it, the seeded ones that come\nwith weir", CLI_FILE,
         &images.weights_path, 0, 0},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "images",
        .about = "Measures images a second that threads decode and the ARR-COC pipeline works on,\n"
                 "beside the decoder alone into pinned memory, and the pipeline alone.\n",
        .operands = "IMAGE...",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .opens_device = true,
        .check = check_options,
        .run = run,
    };
    return bench_main(&program, &images, argc, argv);
}

const struct cli_command job_images = {
    .name = "images",
    .summary = "images a second, decoded and run through the vision pipeline",
    .main = images_main,
};
