// The images of a run: their names, their sizes, loading them, and their results.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/run/run.h"
#include "cli/runtime/results.h"

// frame->load of every image.
static weir_status run_load_image(void *user, unsigned char *rgb, size_t capacity,
                                  uint32_t *out_width, uint32_t *out_height)
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

// The last part of the path without its extension; ".png" stays ".png".
static char *make_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    char *name = malloc(length + 1);
    if (!name)
        return NULL;
    memcpy(name, base, length);
    name[length] = '\0';
    return name;
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

static bool refuse_equal_names(const struct run *run)
{
    struct run_image **sorted = malloc(run->image_count * sizeof *sorted);
    bool fine = sorted != NULL;
    if (!sorted)
        cli_error("no memory for the list of images");
    for (size_t i = 0; fine && i < run->image_count; i++)
        sorted[i] = &run->images[i];
    if (fine)
        qsort(sorted, run->image_count, sizeof(struct run_image *), compare_names);
    for (size_t i = 1; fine && i < run->image_count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            cli_error("'%s' and '%s' would both write %s/%s.json and the other files of that "
                      "name; rename one, or run them with two --output directories",
                      sorted[i - 1]->path, sorted[i]->path, run->output, sorted[i]->name);
            fine = false;
        }
    free(sorted);
    return fine;
}

bool run_name_images(struct run *run, char **paths)
{
    run->images = calloc(run->image_count, sizeof *run->images);
    if (!run->images) {
        cli_error("no memory for the list of images");
        return false;
    }
    for (size_t i = 0; i < run->image_count; i++) {
        struct run_image *image = &run->images[i];
        image->run = run;
        image->path = paths[i];
        image->frame.load = run_load_image;
        image->frame.user = image;
        atomic_init(&image->failed, false);
        image->name = make_name(paths[i]);
        if (!image->name) {
            cli_error("no memory for the list of images");
            return false;
        }
        if (image->name[0] == '\0') {
            cli_error("'%s' names no file; name an image, or a folder with images", paths[i]);
            return false;
        }
    }
    return refuse_equal_names(run);
}

void run_probe_images(struct run *run, uint64_t *out_max_pixels)
{
    *out_max_pixels = 0;
    for (size_t i = 0; i < run->image_count && !atomic_load(&run->stopped); i++) {
        struct run_image *image = &run->images[i];
        struct weir_io_error error;
        if (!weir_io_image_probe(image->path, &image->info, &error) ||
            !weir_io_image_check_pixels(image->path, &image->info, run->max_pixels, &error)) {
            // With ranks the one that has the image tells it.
            if (!run->ranks) {
                cli_error("%s", error.message);
                image->failed = true;
                atomic_store(&run->stopped, run->stops);
            }
            continue;
        }
        const uint64_t pixels = (uint64_t)image->info.width * image->info.height;
        if (pixels > *out_max_pixels)
            *out_max_pixels = pixels;
    }
}

// Like mkdir -p.
static bool make_directories(const char *path)
{
    char partial[4096];
    const int length = snprintf(partial, sizeof partial, "%s", path);
    if (length < 0 || (size_t)length >= sizeof partial) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (char *at = partial + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(partial, 0777) != 0 && errno != EEXIST)
            return false;
        *at = '/';
    }
    return mkdir(partial, 0777) == 0 || errno == EEXIST;
}

bool run_prepare_output(const struct run *run)
{
    char path[4352];
    char message[512];
    if (!make_directories(run->output)) {
        cli_error("the output directory '%s' cannot be made: %s; name another with --output",
                  run->output, strerror(errno));
        return false;
    }
    snprintf(path, sizeof path, "%s/.weir-probe", run->output);
    weir_file_writer *probe = weir_file_writer_create(path, message, sizeof message);
    if (!probe) {
        cli_error("nothing can be written to the output directory '%s': %s; make it writable "
                  "or name another with --output",
                  run->output, strerror(errno));
        return false;
    }
    weir_file_writer_destroy(&probe);
    return true;
}

static bool copy_result(struct run_result *result, const struct weir_arr_coc_output *output,
                        const struct weir_arr_coc_sizes *sizes)
{
    struct weir_arr_coc_output copy = *output;
    result->memory = malloc(cli_results_place(&copy, sizes, NULL));
    if (result->memory)
        cli_results_copy(output, sizes, result->memory, &result->output);
    return result->memory;
}

static void add_times(struct run_times *times, const struct weir_pipeline_result *result)
{
    const uint64_t latency = result->latency_ns;
    if (times->count == 0 || latency < times->latency_min_ns)
        times->latency_min_ns = latency;
    if (latency > times->latency_max_ns)
        times->latency_max_ns = latency;
    times->latency_total_ns += latency;
    times->count++;
    if (!result->spans)
        return;
    times->timed++;
    for (uint32_t i = 0; i < result->stage_count && i < RUN_STAGES; i++)
        times->busy_ns[i] += result->spans[i].end_ns - result->spans[i].begin_ns;
}

bool run_take_result(struct run_image *image, const struct run_device *device,
                     const struct weir_arr_coc_output *output,
                     const struct weir_pipeline_result *result)
{
    const struct weir_arr_coc_sizes *sizes = &device->run->facts.sizes;
    add_times(&image->times, result);
    if (!image->result.memory) {
        image->device = device;
        return copy_result(&image->result, output, sizes);
    }
    if (!cli_results_same(&image->result.output, output, sizes))
        image->different++;
    return true;
}

void run_free_images(struct run *run)
{
    for (size_t i = 0; run->images && i < run->image_count; i++) {
        free(run->images[i].name);
        free(run->images[i].result.memory);
    }
    free(run->images);
    run->images = NULL;
}
