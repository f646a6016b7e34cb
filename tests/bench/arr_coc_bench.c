// Frames a second of the ARR-COC pipeline with one, two and three slots, and where
// the time goes. Decoding is left out: loading copies an image from memory.
//
// The results of every pipeline are held against the float64 reference before
// anything is timed. Runs of all configurations alternate, so that what else the
// machine does falls on all of them alike.
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/pipelines/measure.h"
#include "tests/support/made_images.h"

enum {
    IMAGES = 2,
    PIPELINES = 3,
    STAGES = 3,
    RUNS_MAX = 101
};

static const struct weir_arr_coc_sizes sizes = {1024, 32, 4096};
static const char *const image_names[IMAGES] = {"coffee.png", "noise 1024x1024"};

static const char usage[] =
    "usage: arr_coc_bench [--frames N] [--runs N] [--device N] [--json]\n"
    "Times the ARR-COC pipeline on a device of the chain that WEIR_BACKEND names.\n"
    "  --frames N  frames of a run, 1 to 100000 (default 20)\n"
    "  --runs N    runs of each configuration, 1 to 101 (default 11)\n"
    "  --device N  the device's number (default 0)\n"
    "  --json      print one JSON object\n";

// One run of one configuration.
struct sample {
    double frames_per_second;
    double busy_ms[STAGES]; // a frame
    double overlap_ms;      // a frame: time saved over one stage at a time
};

struct options {
    int frames;
    int runs;
    int device;
    bool json;
};

struct bench {
    struct options options;
    struct rig rig;
    struct rig_image images[IMAGES];
    weir_arr_coc *pipelines[PIPELINES]; // with 1, 2, 3 slots
    struct sample samples[IMAGES][PIPELINES][RUNS_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Setting up.

static bool make_pipelines(struct bench *bench)
{
    for (uint32_t i = 0; i < PIPELINES; i++) {
        struct weir_arr_coc_params params = rig_params(&bench->rig, &sizes, 1024 * 1024);
        params.slot_count = i + 1;
        params.timing = true;
        if (weir_arr_coc_create(&params, &bench->pipelines[i]) != WEIR_OK) {
            fprintf(stderr, "arr_coc_bench: %s\n", weir_last_error_text());
            return false;
        }
    }
    return true;
}

static bool make_images(struct bench *bench)
{
    bench->images[1] = rig_image_make(1024, 1024);
    made_image_noise(1024, 1024, 1, bench->images[1].rgb);
    return rig_image_read(weir_test_runfile("tests/data/images/coffee.png"), &bench->images[0]);
}

// Checking.

static bool within_bounds(const char *name, const struct distances *far)
{
    if (far->texture <= 2e-5 && far->own_relevance <= 1e-4 && far->own_scores <= 1e-4 &&
        far->own_balance <= 1e-4 && far->tokens <= 5e-5)
        return true;
    fprintf(stderr,
            "arr_coc_bench: %s: results are not those of the reference: texture %g, "
            "relevance %g, tokens %g\n",
            name, far->texture, far->own_relevance, far->tokens);
    return false;
}

// Against the reference with one slot; the others must have the same bits.
static bool check_image(struct bench *bench, int image)
{
    const size_t floats = (size_t)WEIR_ARR_COC_CHANNELS * sizes.side * sizes.side;
    float *texture = rig_alloc(floats, sizeof *texture);
    struct rig_frame frames[PIPELINES];
    struct expected expected;
    struct distances far;
    bool ok = true;

    for (int i = 0; i < PIPELINES; i++) {
        rig_frame_init(&frames[i], &bench->images[image], sizes.grid);
        ok = ok && rig_run(bench->pipelines[i], &frames[i], 1) &&
             rig_same_bits(&frames[0], &frames[i]);
    }
    if (ok) {
        expected_init(&expected, &bench->rig, &sizes, &bench->images[image]);
        ok = weir_arr_coc_download_texture(bench->pipelines[0], texture) == WEIR_OK &&
             measure(&expected, &bench->rig, &frames[0], texture, &far) &&
             within_bounds(image_names[image], &far);
        expected_finish(&expected);
    }
    for (int i = 0; i < PIPELINES; i++)
        rig_frame_finish(&frames[i]);
    free(texture);
    return ok;
}

// Timing.

static bool time_run(struct bench *bench, int image, int index, struct sample *out)
{
    weir_pipeline *pipeline = weir_arr_coc_pipeline(bench->pipelines[index]);
    const double frames = bench->options.frames;
    struct weir_pipeline_statistics before, after;
    struct rig_frame frame;

    // One frame stands for all: nothing of it changes but what it delivers.
    rig_frame_init(&frame, &bench->images[image], 0);
    weir_pipeline_get_statistics(pipeline, &before);
    uint64_t begin = now_ns();
    for (int i = 0; i < bench->options.frames; i++)
        if (weir_pipeline_submit(pipeline, &frame.frame) != WEIR_OK)
            return false;
    if (weir_pipeline_drain(pipeline, WEIR_FOREVER) != WEIR_OK)
        return false;
    uint64_t end = now_ns();
    weir_pipeline_get_statistics(pipeline, &after);

    out->frames_per_second = frames * 1e9 / (double)(end - begin);
    for (int i = 0; i < STAGES; i++)
        out->busy_ms[i] =
            (double)(after.stages[i].busy_ns - before.stages[i].busy_ns) / frames / 1e6;
    out->overlap_ms = (double)(after.overlap_ns - before.overlap_ns) / frames / 1e6;
    return after.succeeded - before.succeeded == (uint64_t)bench->options.frames &&
           after.timed_frames - before.timed_frames == (uint64_t)bench->options.frames;
}

static bool time_all(struct bench *bench)
{
    for (int run = 0; run < bench->options.runs; run++)
        for (int image = 0; image < IMAGES; image++)
            for (int i = 0; i < PIPELINES; i++)
                if (!time_run(bench, image, i, &bench->samples[image][i][run])) {
                    fprintf(stderr, "arr_coc_bench: a frame failed or was not timed\n");
                    return false;
                }
    return true;
}

// Reporting.

struct spread {
    double median, least, most;
};

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Of the figure that stands `offset` bytes into each sample.
static struct spread spread_of(const struct bench *bench, int image, int index, size_t offset)
{
    const int runs = bench->options.runs;
    double values[RUNS_MAX];
    for (int run = 0; run < runs; run++)
        memcpy(&values[run], (const char *)&bench->samples[image][index][run] + offset,
               sizeof values[run]);
    qsort(values, (size_t)runs, sizeof *values, compare_doubles);
    return (struct spread){values[runs / 2], values[0], values[runs - 1]};
}

static const struct figure {
    const char *name;
    size_t offset;
} figures[] = {
    {"frames_per_second", offsetof(struct sample, frames_per_second)},
    {"texture_ms", offsetof(struct sample, busy_ms)},
    {"relevance_ms", offsetof(struct sample, busy_ms) + sizeof(double)},
    {"allocation_ms", offsetof(struct sample, busy_ms) + 2 * sizeof(double)},
    {"overlap_ms", offsetof(struct sample, overlap_ms)},
};
enum {
    FIGURES = sizeof figures / sizeof *figures
};

static void print_table(const struct bench *bench)
{
    printf("%s on %s (%s), %ld processors, %d runs of %d frames: median (least … most)\n",
           weir_runtime_backend(bench->rig.runtime), weir_device_get_info(bench->rig.device)->name,
           weir_device_get_info(bench->rig.device)->driver, sysconf(_SC_NPROCESSORS_ONLN),
           bench->options.runs, bench->options.frames);
    printf("%-16s %5s", "image", "slots");
    for (int i = 0; i < FIGURES; i++)
        printf("  %-26s", figures[i].name);
    printf("\n");
    for (int image = 0; image < IMAGES; image++)
        for (int index = 0; index < PIPELINES; index++) {
            printf("%-16s %5d", image_names[image], index + 1);
            for (int i = 0; i < FIGURES; i++) {
                struct spread s = spread_of(bench, image, index, figures[i].offset);
                char text[64];
                snprintf(text, sizeof text, "%.2f (%.2f … %.2f)", s.median, s.least, s.most);
                printf("  %-28s", text);
            }
            printf("\n");
        }
}

static json_t *json_of_row(const struct bench *bench, int image, int index)
{
    json_t *row = json_pack("{s:s, s:i}", "image", image_names[image], "slots", index + 1);
    for (int i = 0; i < FIGURES; i++) {
        struct spread s = spread_of(bench, image, index, figures[i].offset);
        json_object_set_new(row, figures[i].name,
                            json_pack("{s:f, s:f, s:f}", "median", s.median, "least", s.least,
                                      "most", s.most));
    }
    return row;
}

static void print_json(const struct bench *bench)
{
    const struct weir_device_info *info = weir_device_get_info(bench->rig.device);
    json_t *rows = json_array();
    for (int image = 0; image < IMAGES; image++)
        for (int index = 0; index < PIPELINES; index++)
            json_array_append_new(rows, json_of_row(bench, image, index));
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:o}", "backend",
                  weir_runtime_backend(bench->rig.runtime), "device", info->name, "driver",
                  info->driver, "processors", (int)sysconf(_SC_NPROCESSORS_ONLN), "runs",
                  bench->options.runs, "frames", bench->options.frames, "rows", rows);
    json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(root);
}

// The program.

static bool parse_number(const char *text, int least, int most, int *out)
{
    char *end = NULL;
    errno = 0;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || value < least || value > most)
        return false;
    *out = (int)value;
    return true;
}

static bool parse_options(int argc, char **argv, struct options *out)
{
    *out = (struct options){.frames = 20, .runs = 11};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            out->json = true;
            continue;
        }
        bool ok = strcmp(argv[i], "--frames") == 0   ? parse_number(value, 1, 100000, &out->frames)
                  : strcmp(argv[i], "--runs") == 0   ? parse_number(value, 1, RUNS_MAX, &out->runs)
                  : strcmp(argv[i], "--device") == 0 ? parse_number(value, 0, 1000, &out->device)
                                                     : false;
        if (!ok) {
            fprintf(stderr, "arr_coc_bench: '%s%s%s' was not expected\n%s", argv[i],
                    value ? " " : "", value ? value : "", usage);
            return false;
        }
        i++;
    }
    return true;
}

static bool run(struct bench *bench)
{
    if (!make_images(bench) || !make_pipelines(bench))
        return false;
    for (int image = 0; image < IMAGES; image++)
        if (!check_image(bench, image))
            return false;
    if (!time_all(bench))
        return false;
    if (bench->options.json)
        print_json(bench);
    else
        print_table(bench);
    return true;
}

int main(int argc, char **argv)
{
    static struct bench bench;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (!parse_options(argc, argv, &bench.options))
        return EXIT_FAILURE;
    // Where the build puts modules, from the folder that `bazel run` starts in.
    setenv("WEIR_MODULE_PATH", "lib/weir", 0);
    if (!rig_open(&bench.rig, (size_t)bench.options.device, RIG_WEIGHTS))
        return EXIT_FAILURE;
    bool ok = run(&bench);
    for (int i = 0; i < PIPELINES; i++)
        weir_arr_coc_destroy(&bench.pipelines[i]);
    for (int i = 0; i < IMAGES; i++)
        rig_image_finish(&bench.images[i]);
    rig_close(&bench.rig);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
