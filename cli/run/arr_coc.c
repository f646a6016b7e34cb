// weir run arr-coc: the devices and their pipelines, the inputs, and the run.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/common/options.h"
#include "cli/common/own.h"
#include "cli/common/signals.h"
#include "cli/run/run.h"
#include "io/npy.h"

// The devices of a run, and their pipelines.

static void open_devices(struct run *run)
{
    weir_device *list[CLI_DEVICES_MAX];
    const struct weir_load_entry *entry;
    run->runtime = cli_open(run->config);
    if (run->by_ranks)
        cli_devices_of_rank(run->runtime, &run->wanted);
    run->device_count = cli_devices_open(run->runtime, &run->wanted, list);
    run->devices = cli_allocate(run->device_count, sizeof *run->devices);
    for (uint32_t i = 0; i < run->device_count; i++)
        run->devices[i] = (struct run_device){
            .run = run,
            .device = list[i],
            .info = *weir_device_get_info(list[i]),
        };
    run->shown = run->devices;
    run->shown_count = run->device_count;
    run->module_version = "";
    for (size_t i = 0; (entry = weir_load_report_entry(weir_runtime_report(run->runtime), i)); i++)
        if (entry->outcome == WEIR_LOAD_USED &&
            strcmp(entry->module, weir_runtime_backend(run->runtime)) == 0)
            run->module_version = entry->version;
}

void run_prepare_output(const struct run *run)
{
    char message[512];
    if (!weir_file_make_folders(run->output, 0777))
        cli_fail(CLI_FAILED,
                 "the output directory '%s' cannot be made: %s; name another with --output",
                 run->output, strerror(errno));
    weir_file_writer *probe =
        weir_file_writer_create(cli_text("%s/.weir-probe", run->output), message, sizeof message);
    if (!probe)
        cli_fail(CLI_FAILED,
                 "nothing can be written to the output directory '%s': %s; make it writable "
                 "or name another with --output",
                 run->output, strerror(errno));
    weir_file_writer_destroy(&probe);
}

static void destroy_pipelines(void *object)
{
    struct run *run = object;
    for (uint32_t i = 0; i < run->device_count; i++)
        weir_arr_coc_destroy(&run->devices[i].arr_coc);
    WEIR_IGNORE(weir_pipeline_group_destroy(&run->group));
}

static void run_create_pipelines(struct run *run, struct weir_arr_coc_params *params)
{
    cli_own(destroy_pipelines, run);
    cli_fine(weir_pipeline_group_create(WEIR_PARAMS(weir_pipeline_group, .label = "arr-coc"),
                                        &run->group));
    for (uint32_t i = 0; i < run->device_count; i++) {
        params->pipeline.group = run->group;
        params->pipeline.device = run->devices[i].device;
        params->user = &run->devices[i];
        cli_fine(weir_arr_coc_create(params, &run->devices[i].arr_coc));
    }
    run->sizes = params->sizes;
    weir_pipeline_group_get_statistics(run->group, &run->statistics);
    for (uint32_t i = 0; i < run->statistics.stage_count && i < RUN_STAGES; i++)
        run->stages[i] = run->statistics.stages[i].name;
}

// weir run arr-coc: from the command line to the output files. Everything that can be
// checked before work begins is checked first, in this order: names, output directory,
// weights and query, configuration and device, images.

enum {
    IMAGE_LIMIT = 1 << 20,
    REPEAT_LIMIT = 1000000000,
    DECODERS_LIMIT = 128
};

static const char about[] =
    "Runs photographs (PNG, JPEG) through the ARR-COC pipeline: texture, relevance and\n"
    "allocation, on a queue each. For each IMAGE, whose file name without its extension is\n"
    "NAME, it writes NAME.tokens.npy, NAME.patches.npy, NAME.relevance.npy, NAME.scores.npy,\n"
    "NAME.overlay.png and NAME.json, and ends with a table of times. A folder stands for the\n"
    "images in it.\n\n"
    "A Y4M stream, from a file or, as -, from standard input, is run frame by frame:\n\n"
    "  ffmpeg -i film.mp4 -pix_fmt yuv420p -f yuv4mpegpipe - | weir run arr-coc -\n\n"
    "NAME.jsonl has a line for each frame then.";

// Returns how many operands there are.
static size_t parse(struct run *run, int argc, char **argv)
{
    const struct cli_option options[] = {
        CLI_CONFIG(&run->config),
        {"query", "Q.npy", "the query; without it, normal numbers from a seed", CLI_FILE,
         &run->query_path, 0, 0},
        {"weights", "W",
         "the weights, a safetensors file; without it, the\nseeded ones that "
         "come with weir",
         CLI_FILE, &run->weights_path, 0, 0},
        {"output", "DIR", "where to write; made if missing; without it, out", CLI_FOLDER,
         &run->output, 0, 0},
        {"devices", "LIST",
         "run on several devices, such as 0,1 (see `weir\ndevices`), or all; without it, on one",
         CLI_TEXT, &run->asked_devices, 0, 0},
        {"ranks", NULL,
         "share the images with the other ranks that `weir\nlaunch`, mpirun or torchrun started",
         CLI_FLAG, &run->by_ranks, 0, 0},
        {"live", NULL,
         "of a stream: drop the oldest frames that wait when it is\nfaster than they are run",
         CLI_FLAG, &run->live, 0, 0},
        {"overlay", "KIND", "of a stream: also draw its frames, as png or y4m", CLI_TEXT,
         &run->overlay, 0, 0},
        {"frames", "N", "of a stream: end after N frames", CLI_COUNT, &run->frame_limit, 1,
         UINT64_MAX},
        {"decoders", "N",
         "threads that decode images, for each device (as many as\nprocessors, up to 16; 1 where "
         "the processor is the device)",
         CLI_COUNT, &run->decoders, 1, DECODERS_LIMIT},
        {"stop", NULL,
         "of images: end at the first one that fails; without it,\nthe others are run", CLI_FLAG,
         &run->stops, 0, 0},
        {"repeat", "N", "run each image N times; files are written once", CLI_COUNT, &run->repeat,
         1, REPEAT_LIMIT},
        {"quiet", NULL, "print errors and nothing else", CLI_FLAG, &run->quiet, 0, 0},
        {"json", NULL, "print the closing figures as JSON", CLI_FLAG, &run->json, 0, 0},
    };
    const struct cli_usage usage =
        CLI_FORM("weir run arr-coc", "IMAGE...", "an image", 1, IMAGE_LIMIT, about, options);
    return cli_parse(&usage, argc, argv);
}

// Weights and query.

CLI_DESTROYER(finish_npy, weir_io_npy_finish)

// [D], or one row of a matrix [1, D].
static const float *read_query(const struct run *run, size_t wanted)
{
    static struct weir_io_npy query;
    struct weir_io_error error;
    if (!weir_io_npy_read(run->query_path, WEIR_IO_F32, &query, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    cli_own(finish_npy, &query);
    const bool vector = query.rank == 1 || (query.rank == 2 && query.shape[0] == 1);
    if (!vector || query.count != wanted) {
        char shape[WEIR_IO_SHAPE_TEXT];
        cli_fail(CLI_FAILED,
                 "%s: the query has the shape %s; the weights %s want [%zu]: use the query that "
                 "belongs to these weights",
                 run->query_path, weir_io_shape_text(query.rank, query.shape, shape),
                 run->weights_path, wanted);
    }
    if (!weir_io_check_finite(run->query_path, "query", query.data, wanted, &error))
        cli_fail(CLI_FAILED, "%s", error.message);
    return query.data;
}

// Overrides settings of the file that do not fit this command: no frame may be dropped, and times are kept unless the
// file sets `timing`. Returns the setting `full` where it did not fit, else NULL.
static const struct weir_setting *adjust(const struct run *run,
                                         struct weir_pipeline_params *pipeline)
{
    const struct weir_setting *full = weir_runtime_setting(run->runtime, "pipeline", "full");
    const struct weir_setting *timing = weir_runtime_setting(run->runtime, "pipeline", "timing");
    const bool fits = pipeline->full == WEIR_PIPELINE_BLOCK;
    pipeline->full = WEIR_PIPELINE_BLOCK;
    if (strcmp(timing->origin, "default") == 0)
        pipeline->timing = true;
    return fits ? NULL : full;
}

// Running.

static void cancel(void *user)
{
    struct run *run = user;
    if (run->kind->cancel)
        run->kind->cancel(run);
    WEIR_IGNORE(weir_pipeline_group_cancel(run->group));
}

static void run_frames(struct run *run)
{
    cli_signals_defer(cancel, run);
    // The length of a stream is not known.
    cli_progress_start(&run->progress, !run->quiet && !run->video && run_rank(run) == 0,
                       run->image_count * run->repeat, "frames/s");
    cli_progress_update(&run->progress, 0, "first, the driver compiles kernels");
    run->kind->submit(run);
    WEIR_IGNORE(weir_pipeline_group_drain(run->group, WEIR_FOREVER));
    weir_pipeline_group_get_statistics(run->group, &run->statistics);
    for (uint32_t i = 0; i < run->device_count; i++)
        weir_pipeline_get_statistics(weir_arr_coc_pipeline(run->devices[i].arr_coc),
                                     &run->devices[i].statistics);
    if (run->kind->end)
        run->kind->end(run);
    cli_progress_end(&run->progress);
    cli_signals_resume();
}

// Opens the device and runs the images, once weights and query are read.
static int run_on_device(struct run *run, const weir_arr_coc_weights *weights, const float *query)
{
    struct weir_arr_coc_params params = {
        .weights = weights,
        .query = query,
        .deliver = run->kind->deliver,
    };
    open_devices(run);
    cli_fine(weir_arr_coc_params_from_settings(run->runtime, &params));
    const struct weir_setting *full = adjust(run, &params.pipeline);
    run->max_pixels = params.max_pixels;
    run->kind->open(run, &params); // with --ranks rank 0 prints from here on
    if (full)
        cli_warning("%s: full = %s is not for this command, which runs every image it is given",
                    full->origin, full->text);
    if (params.max_pixels == 0)
        return run_report(run, false);
    run_create_pipelines(run, &params);
    if (run->kind->begin)
        run->kind->begin(run);
    run_frames(run);
    if (run_rank(run) > 0)
        return cli_signal() ? CLI_SIGNALLED + cli_signal() : CLI_OK;
    return run_report(run, true);
}

static int run_with_inputs(struct run *run)
{
    if (!run->weights_path)
        cli_note("no --weights: using arr_coc_weights.safetensors, which comes with Weir and is "
                 "made from a seed; no trained weights are public");
    const weir_arr_coc_weights *weights = cli_load_weights(&run->weights_path);
    const size_t wanted = weights->query_size;
    if (run->query_path)
        return run_on_device(run, weights, read_query(run, wanted));
    float *query = cli_allocate(wanted, sizeof *query);
    weir_arr_coc_seeded_query(RUN_QUERY_SEED, query, wanted);
    cli_note("no --query: using %zu normal numbers from seed %d", wanted, RUN_QUERY_SEED);
    return run_on_device(run, weights, query);
}

static void check_operands(const struct run *run, size_t count)
{
    static const char *const kinds[] = {"png", "y4m", NULL};
    const char *of_images = run->by_ranks     ? "--ranks"
                            : run->repeat > 1 ? "--repeat"
                            : run->stops      ? "--stop"
                            : run->decoders   ? "--decoders"
                                              : NULL;
    const char *of_streams = run->live          ? "--live"
                             : run->overlay     ? "--overlay"
                             : run->frame_limit ? "--frames"
                                                : NULL;
    if (count > 1 && run->video_path)
        cli_fail(CLI_USAGE, "'%s' is a stream, which is run by itself; run the others without it",
                 run->video_path);
    if (run->video_path && of_images)
        cli_fail(CLI_USAGE, "%s is for images; '%s' is a stream", of_images, run->video_path);
    if (!run->video_path && of_streams)
        cli_fail(CLI_USAGE, "%s is for a Y4M stream: a file, or - for standard input", of_streams);
    if (run->by_ranks && run->stops)
        cli_fail(CLI_USAGE,
                 "--stop and --ranks cannot be combined: ranks have no common first failure");
    if (run->overlay)
        cli_choose("overlay", run->overlay, kinds);
}

// Operands: images, and folders, which stand for the images in them, sorted.

// The last part of the path without its extension; ".png" stays ".png".
const char *run_make_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    return cli_text("%.*s", (int)length, base);
}

static void add_image(struct run *run, size_t *capacity, const char *path)
{
    const char *name = run_make_name(path);
    if (name[0] == '\0')
        cli_fail(CLI_USAGE, "'%s' names no file; name an image, or a folder with images", path);
    run->images = cli_grow(run->images, run->image_count, capacity, sizeof *run->images);
    run->images[run->image_count++] = (struct run_image){.run = run, .path = path, .name = name};
}

static int has_image_name(const struct dirent *entry)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(entry->d_name, '.');
    for (size_t i = 0; dot && dot != entry->d_name && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static void add_folder(struct run *run, size_t *capacity, const char *folder)
{
    const bool ends = folder[strlen(folder) - 1] == '/';
    struct dirent **entries;
    const int count = scandir(folder, &entries, has_image_name, alphasort);
    if (count < 0)
        cli_fail(CLI_USAGE, "the folder '%s' cannot be read: %s", folder, strerror(errno));
    if (count == 0)
        cli_fail(CLI_USAGE,
                 "the folder '%s' has no image: no name in it ends in .jpg, .jpeg or .png", folder);
    for (int i = 0; i < count; i++) {
        add_image(run, capacity, cli_text("%s%s%s", folder, ends ? "" : "/", entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
}

static int compare_names(const void *a, const void *b)
{
    const struct run_image *const *left = a;
    const struct run_image *const *right = b;
    const int order = strcmp((*left)->name, (*right)->name);
    if (order != 0)
        return order;
    return *left < *right ? -1 : *left > *right; // both are elements of one array
}

static void refuse_equal_names(const struct run *run)
{
    struct run_image **sorted = cli_allocate(run->image_count, sizeof *sorted);
    for (size_t i = 0; i < run->image_count; i++)
        sorted[i] = &run->images[i];
    qsort(sorted, run->image_count, sizeof(struct run_image *), compare_names);
    for (size_t i = 1; i < run->image_count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            cli_fail(CLI_USAGE,
                     "'%s' and '%s' would both write %s/%s.json and the other files of that "
                     "name; rename one, or run them with two --output directories",
                     sorted[i - 1]->path, sorted[i]->path, run->output, sorted[i]->name);
}

static void free_results(void *object)
{
    struct run *run = object;
    for (size_t i = 0; i < run->image_count; i++)
        free(run->images[i].result.memory);
}

// Whether the operand is a Y4M stream; for a file, by its first bytes.
static bool is_video(const char *path)
{
    char magic[9] = "";
    const char *dot = strrchr(path, '.');
    if (strcmp(path, "-") == 0 || (dot && strcmp(dot, ".y4m") == 0))
        return true;
    // A pipe is not opened: what is read from it is gone.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool is = fd >= 0 && pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
                    memcmp(magic, "YUV4MPEG2", sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

// Images, or one stream.
static void name_inputs(struct run *run, char **paths, size_t count)
{
    size_t capacity = 0;
    struct stat what;
    for (size_t i = 0; i < count && !run->video_path; i++)
        run->video_path = is_video(paths[i]) ? paths[i] : NULL;
    check_operands(run, count);
    run->kind = run->video_path ? &run_video : run->by_ranks ? &run_by_ranks : &run_images;
    if (run->video_path)
        return;
    for (size_t i = 0; i < count; i++)
        if (stat(paths[i], &what) == 0 && S_ISDIR(what.st_mode))
            add_folder(run, &capacity, paths[i]);
        else
            add_image(run, &capacity, paths[i]);
    cli_own(free_results, run);
    refuse_equal_names(run);
}

int cli_run_arr_coc(int argc, char **argv)
{
    static struct run run = {.repeat = 1};
    const size_t count = parse(&run, argc, argv);
    cli_quiet = run.quiet || run.by_ranks; // until the rank is known: rank 0 prints
    cli_log_to_stderr();
    if (run.by_ranks && run.asked_devices)
        cli_fail(CLI_USAGE, "--ranks and --devices cannot be combined: each rank has one device; "
                            "start more ranks");
    run.wanted = cli_devices_read(run.asked_devices);
    run.output = run.output ? run.output : "out";
    name_inputs(&run, argv, count);
    if (!run.by_ranks)
        run_prepare_output(&run);
    cli_signals_start();
    return run_with_inputs(&run);
}
