// The images of a run: their sizes, loading and submitting them, and the files of their results.
#include <unistd.h>

#include "base/file.h"
#include "cli/common/own.h"
#include "cli/common/signals.h"
#include "cli/run/run.h"
#include "io/npy.h"

// Loading them, and their results.

// frame->load of every image.
static weir_status load_image(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                              uint32_t *out_height)
{
    struct run_image *image = user;
    struct weir_io_image_info info;
    struct weir_io_error error;
    if (weir_io_image_read(image->path, image->run->max_pixels, rgb, capacity, &info, &error)) {
        *out_width = info.width;
        *out_height = info.height;
        return WEIR_OK;
    }
    struct weir_error detail = {.status = WEIR_ERROR_IO};
    snprintf(detail.message, sizeof detail.message, "%s", error.message);
    return weir_error_set(&detail);
}

enum {
    DECODERS_USUAL = 16
};

// Where the processor is the device, kernels need it. Images that there are not need no thread, and
// each thread has two slots of the pipeline.
static uint32_t count_decoders(const struct run *run)
{
    const struct weir_limits *limits = weir_device_limits(run->devices[0].device);
    const uint64_t frames = run->image_count * run->repeat;
    const uint32_t most = limits->unified_memory ? 1 : DECODERS_USUAL;
    const uint32_t share = weir_workers_processors() / run->device_count;
    const uint32_t usual = share < most ? share : most;
    const uint64_t asked = run->decoders ? run->decoders : usual ? usual : 1;
    return (uint32_t)(asked < frames ? asked : frames);
}

void run_open_images(struct run *run, struct weir_arr_coc_params *params)
{
    params->max_pixels = 0;
    for (size_t i = 0; i < run->image_count; i++) {
        run->images[i].frame.load = load_image;
        run->images[i].frame.user = &run->images[i];
    }
    for (size_t i = 0; i < run->image_count && !atomic_load(&run->stopped); i++) {
        struct run_image *image = &run->images[i];
        struct weir_io_error error;
        if (weir_io_image_probe(image->path, &image->info, &error) &&
            weir_io_image_check_pixels(image->path, &image->info, run->max_pixels, &error)) {
            const uint64_t pixels = (uint64_t)image->info.width * image->info.height;
            params->max_pixels = pixels > params->max_pixels ? pixels : params->max_pixels;
        } else if (!run->ranks) { // with ranks the one that has the image tells it
            cli_error("%s", error.message);
            image->failed = true;
            atomic_store(&run->stopped, run->stops);
        }
    }
    params->pipeline.prepare_threads = count_decoders(run);
    params->pipeline.slot_count +=
        params->pipeline.slot_count ? 2 * params->pipeline.prepare_threads : 0;
    if (params->pipeline.slot_count > WEIR_PIPELINE_SLOTS_MAX)
        params->pipeline.slot_count = WEIR_PIPELINE_SLOTS_MAX;
    // Without an image a rank has its share of failures.
    params->max_pixels += run->ranks && params->max_pixels == 0;
}

void run_take_result(struct run_image *image, const struct run_device *device,
                     const struct weir_arr_coc_output *output,
                     const struct weir_pipeline_result *result)
{
    const struct weir_arr_coc_sizes *sizes = &device->run->sizes;
    const uint64_t latency = result->latency_ns;
    struct run_times *times = &image->times;
    if (times->count++ == 0 || latency < times->latency_min_ns)
        times->latency_min_ns = latency;
    if (latency > times->latency_max_ns)
        times->latency_max_ns = latency;
    times->latency_total_ns += latency;
    times->timed += result->spans != NULL;
    for (uint32_t i = 0; result->spans && i < result->stage_count; i++)
        times->busy_ns[i] += result->spans[i].end_ns - result->spans[i].begin_ns;
    if (image->result.memory) {
        image->different += !cli_results_same(&image->result.output, output, sizes);
        return;
    }
    image->device = device;
    if (!cli_results_keep(output, sizes, &image->result) && !atomic_exchange(&image->failed, true))
        cli_error("%s: no memory for its results", image->path);
}

// The files of one image. Each is written atomically; when one fails, those already
// written are removed, so that an image has all its files or none. The JSON is written
// last: if it exists, so do the others.

// The picture. The photo is read again: keeping every photo until its results
// are written would take more memory than reading takes time.
static bool write_overlay(const struct run_image *image, const char *path,
                          struct weir_io_error *error)
{
    const struct weir_arr_coc_output *out = &image->result.output;
    const size_t size = (size_t)3 * out->width * out->height;
    struct weir_io_image_info info;
    unsigned char *photo = malloc(size);
    if (!photo)
        return weir_io_fail(error, path, "no memory to draw it");
    bool fine = weir_io_image_read(image->path, 0, photo, size, &info, error);
    if (fine && (info.width != out->width || info.height != out->height))
        fine = weir_io_fail(error, image->path, "the file changed while it was run");
    struct canvas canvas = {0};
    if (fine && !cli_overlay_draw(photo, out, image->run->sizes.grid, &canvas))
        fine = weir_io_fail(error, path, "no memory to draw it");
    fine = fine && weir_io_png_write_rgb8(path, canvas.width, canvas.height, canvas.rgb, error);
    free(canvas.rgb);
    free(photo);
    return fine;
}

// The JSON.

void run_describe_output(json_t *object, const struct weir_arr_coc_output *output)
{
    json_t *sides = json_array();
    for (uint32_t i = 0; i < output->patch_count; i++)
        cli_json_append(sides, json_integer(output->patches[(size_t)3 * i + 1]));
    cli_json_set(object, "tokens", json_integer(output->token_count));
    cli_json_set(object, "patches", json_integer(output->patch_count));
    cli_json_set(object, "sides", sides);
    cli_json_set(object, "weights",
                 json_pack("{s:f, s:f, s:f}", "propositional", (double)output->balance[0],
                           "perspectival", (double)output->balance[1], "participatory",
                           (double)output->balance[2]));
}

static json_t *describe_device(const struct run *run, const struct weir_device_info *device)
{
    json_t *object = json_object();
    cli_json_set(object, "module", cli_json_string(weir_runtime_backend(run->runtime)));
    cli_json_set(object, "module_version", cli_json_string(run->module_version));
    cli_json_set(object, "name", cli_json_string(device->name));
    cli_json_set(object, "platform", cli_json_string(device->platform));
    cli_json_set(object, "driver", cli_json_string(device->driver));
    return object;
}

static json_t *describe_times(const struct run *run, const struct run_times *times)
{
    json_t *object = json_object();
    const uint64_t mean = times->count ? times->latency_total_ns / times->count : 0;
    cli_json_set(object, "runs", weir_json_count(times->count));
    cli_json_set(object, "latency_min_ns", weir_json_count(times->latency_min_ns));
    cli_json_set(object, "latency_mean_ns", weir_json_count(mean));
    cli_json_set(object, "latency_max_ns", weir_json_count(times->latency_max_ns));
    json_t *stages = json_object();
    for (int i = 0; times->timed > 0 && i < RUN_STAGES && run->stages[i]; i++)
        cli_json_set(stages, run->stages[i], weir_json_count(times->busy_ns[i] / times->timed));
    cli_json_set(object, "stage_mean_ns", stages);
    return object;
}

static json_t *describe(const struct run_image *image)
{
    const struct run *run = image->run;
    json_t *root = json_object();
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "image",
                 json_pack("{s:o, s:s, s:I, s:I}", "path", cli_json_string(image->path), "kind",
                           image->info.kind, "width", (json_int_t)image->info.width, "height",
                           (json_int_t)image->info.height));
    cli_json_set(root, "weights_file", cli_json_string(run->weights_path));
    cli_json_set(root, "query_file",
                 run->query_path ? cli_json_string(run->query_path) : json_null());
    if (!run->query_path)
        cli_json_set(root, "query_seed", json_integer(RUN_QUERY_SEED));
    cli_json_set(root, "side", json_integer(run->sizes.side));
    cli_json_set(root, "grid", json_integer(run->sizes.grid));
    cli_json_set(root, "budget", json_integer(run->sizes.budget));
    run_describe_output(root, &image->result.output);
    cli_json_set(root, "device", describe_device(run, &image->device->info));
    cli_json_set(root, "times", describe_times(run, &image->times));
    return root;
}

static bool write_json(const struct run_image *image, const char *path, struct weir_io_error *error)
{
    size_t size;
    json_t *root = describe(image);
    char *text = cli_json_text(root, CLI_JSON_TEXT, &size);
    if (!text)
        return weir_io_fail(error, path, "no memory to write it");
    const bool ok = weir_file_write(path, text, size, error->message, sizeof error->message);
    free(text);
    return ok;
}

// All of them, or none and an error.
static bool write_files(const struct run_image *image)
{
    const struct weir_arr_coc_output *out = &image->result.output;
    const uint64_t grid = image->run->sizes.grid;
    // An array, or what is written by a function.
    const struct {
        const char *suffix;
        bool (*write)(const struct run_image *image, const char *path, struct weir_io_error *error);
        const void *data;
        enum weir_io_dtype dtype;
        int rank;
        uint64_t shape[3];
    } files[] = {
        {"tokens.npy",
         NULL,
         out->tokens,
         WEIR_IO_F32,
         2,
         {out->token_count, WEIR_ARR_COC_CHANNELS}},
        {"patches.npy", NULL, out->patches, WEIR_IO_I32, 2, {out->patch_count, 3}},
        {"relevance.npy", NULL, out->relevance, WEIR_IO_F32, 2, {grid, grid}},
        {"scores.npy", NULL, out->scores, WEIR_IO_F32, 3, {3, grid, grid}},
        {.suffix = "overlay.png", .write = write_overlay},
        {.suffix = "json", .write = write_json},
    };
    char paths[sizeof files / sizeof *files][4608];
    struct weir_io_error error;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s.%s", image->run->output, image->name,
                 files[i].suffix);
        if (files[i].write ? files[i].write(image, paths[i], &error)
                           : weir_io_npy_write(paths[i], files[i].dtype, files[i].rank,
                                               files[i].shape, files[i].data, &error))
            continue;
        cli_error("%s", error.message);
        while (i-- > 0)
            unlink(paths[i]);
        return false;
    }
    return true;
}

// A thread turns results into files, so that compressing a picture does not hold a slot of the pipeline.

static void write_image(void *user)
{
    struct run_image *image = user;
    image->written = write_files(image);
    if (!image->written)
        image->failed = true;
    free(image->result.memory);
    image->result.memory = NULL;
}

// Waits for the one that was pushed before the latest ones, or writes it, so that results do not fill the memory.
static void push(struct run *run, struct run_image *image)
{
    struct run_writer *writer = &run->writer;
    struct run_image **place =
        &writer->latest[writer->count++ % (sizeof writer->latest / sizeof *writer->latest)];
    if (*place)
        weir_workers_wait(&writer->workers, &(*place)->task);
    *place = image;
    image->queued = true;
    image->task = (struct weir_task){.run = write_image, .user = image};
    weir_workers_post(&writer->workers, &image->task, 1);
}

static void await_writer(struct run_writer *writer)
{
    for (size_t i = 0; i < sizeof writer->latest / sizeof *writer->latest; i++)
        if (writer->latest[i])
            weir_workers_wait(&writer->workers, &writer->latest[i]->task);
}

static void finish_writer(void *object)
{
    struct run_writer *writer = object;
    await_writer(writer);
    weir_workers_finish(&writer->workers);
}

void run_begin_images(struct run *run)
{
    static const struct weir_lock_kind kind = {"the lock of the thread that writes files", 0};
    weir_workers_init(&run->writer.workers, &kind);
    cli_own(finish_writer, &run->writer);
    (void)weir_workers_start(&run->writer.workers, 1);
}

void run_end_images(struct run *run)
{
    // Images interrupted before their last run: the results that they have are kept.
    for (size_t i = 0; i < run->image_count; i++)
        if (!run->images[i].queued && run->images[i].result.memory)
            push(run, &run->images[i]);
    await_writer(&run->writer);
}

// Delivery. Runs on threads of the pipelines, one frame at a time.

static void report_failure(struct run_image *image, const struct weir_pipeline_result *result)
{
    if (result->status >= 0 || atomic_exchange(&image->failed, true))
        return;
    if (image->run->stops) {
        atomic_store(&image->run->stopped, true);
        WEIR_IGNORE(weir_pipeline_group_cancel(image->run->group));
    }
    if (result->error && result->error->status == WEIR_ERROR_IO) {
        cli_error("%s", result->error->message);
        return;
    }
    weir_error_set(result->error);
    cli_error("%s: %s%s%s%s", image->path, result->stage[0] ? "stage " : "", result->stage,
              result->stage[0] ? ": " : "", weir_last_error_text());
}

void run_end_delivery(struct run *run, struct run_image *image)
{
    image->delivered++;
    cli_progress_update(&run->progress, ++run->delivered, image->name);
    if (image->delivered == run->repeat && image->result.memory)
        push(run, image);
}

static void deliver(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct run_device *device = user;
    struct run_image *image = frame->user;
    if (output) {
        run_take_figures(device, result);
        run_take_result(image, device, output, result);
    } else {
        report_failure(image, result);
    }
    run_end_delivery(device->run, image);
}

// Until a frame has succeeded on each device, frames run one at a time, so that only the first
// frames' times include what the driver compiles at first launches. False when the run was
// cancelled.
bool run_submit_image(struct run *run, struct run_image *image)
{
    if (atomic_load(&run->stopped))
        return false;
    const weir_status status = weir_pipeline_group_submit(run->group, &image->frame);
    if (status == WEIR_CANCELLED)
        return false;
    if (status != WEIR_OK) {
        cli_error("%s: %s", image->path, weir_last_error_text());
        image->failed = true;
    } else if (!run->first.done) {
        run_take_first(run);
    }
    return true;
}

static void submit_all(struct run *run)
{
    for (size_t i = 0; i < run->image_count; i++) {
        struct run_image *image = &run->images[i];
        for (uint64_t n = 0; n < run->repeat && !image->failed && !cli_signal(); n++)
            if (!run_submit_image(run, image))
                return;
    }
}

int run_count_images(const struct run *run)
{
    size_t failed = 0;
    size_t written = 0;
    for (size_t i = 0; i < run->image_count; i++) {
        const struct run_image *image = &run->images[i];
        failed += image->failed;
        written += image->written;
        if (image->different > 0)
            cli_error("%s: %llu of its runs gave other results than the first; the device or "
                      "its driver is not deterministic",
                      image->path, (unsigned long long)image->different);
        failed += !image->failed && image->different > 0;
    }
    if (cli_signal())
        cli_error("interrupted: %zu of %zu images are finished and kept", written,
                  run->image_count);
    else if (atomic_load(&run->stopped))
        cli_error("stopped at the first image that failed: %zu of %zu images are finished and kept",
                  written, run->image_count);
    else if (failed > 0 && run->image_count > 1)
        cli_error("%zu of %zu images failed", failed, run->image_count);
    return cli_signal() ? CLI_SIGNALLED + cli_signal() : failed > 0 ? CLI_FAILED : CLI_OK;
}

const struct run_kind run_images = {
    .open = run_open_images,
    .begin = run_begin_images,
    .submit = submit_all,
    .deliver = deliver,
    .end = run_end_images,
    .count = run_count_images,
};
