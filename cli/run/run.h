// What the files of `weir run arr-coc` share. The main thread submits; the
// pipeline's threads load and deliver; a writer thread turns results into files; a
// signal (cli/common/signals.h) cancels the run.
#ifndef WEIR_CLI_RUN_H
#define WEIR_CLI_RUN_H

#include <stdatomic.h>

#include "cli/common/cli.h"
#include <weir/comm.h>

#include "base/workers.h"
#include "cli/common/output.h"
#include "cli/common/progress.h"
#include "cli/runtime/open.h"
#include "io/image.h"
#include "patterns/pipeline.h"
#include "patterns/statistics.h"
#include "pipelines/arr_coc/arr_coc.h"

enum {
    RUN_STAGES = WEIR_ARR_COC_STAGES_MAX
};

// Times of all successful runs of one image.
struct run_times {
    uint64_t count;
    uint64_t latency_min_ns;
    uint64_t latency_max_ns;
    uint64_t latency_total_ns;
    uint64_t timed; // runs with stage times
    uint64_t busy_ns[RUN_STAGES];
};

// The first frames. Until one has succeeded on each device frames run alone; those after them are
// warm.
struct run_first {
    bool told; // that it takes long
    bool done;
    struct weir_pipeline_statistics statistics; // so far
    // How long each stage of each device waited between its last frame of these and the next,
    // added up.
    uint64_t gaps_ns[RUN_STAGES];
};

struct run;

// A device, with its pipeline.
struct run_device {
    struct run *run;
    weir_device *device;
    weir_arr_coc *arr_coc;
    struct weir_device_info info;
    struct weir_pipeline_statistics statistics; // of all its frames
    // When the stages of the last of its first frames ended, and whether the gaps after it are counted.
    uint64_t ends_ns[RUN_STAGES];
    bool gaps_known;
};

struct run_image {
    struct run *run;
    const char *path;
    const char *name; // of the output files
    struct weir_io_image_info info;
    struct weir_arr_coc_frame frame;
    atomic_bool failed; // an error was printed; no further run is started
    // Used by the delivering thread, and after `queued` by the writer.
    uint64_t delivered;
    uint64_t different; // runs whose results were not those of the first
    bool queued;
    struct run_times times;
    struct cli_results result;       // of the first successful run
    const struct run_device *device; // of these results
    struct weir_task task;           // the writer's
    bool written;
};

// Writes the files of images, each a task.
struct run_writer {
    struct weir_workers workers; // one
    struct run_image *latest[8]; // of those that it got, in turn
    uint64_t count;              // of all
};

// What is run. The main thread calls all slots but `deliver`, which the pipelines' threads call, one at a time, and
// `cancel`, which a signal calls.
struct run_kind {
    // Before the pipelines are made: opens it, and sets params->max_pixels, to 0 if nothing is left to run.
    void (*open)(struct run *run, struct weir_arr_coc_params *params);
    void (*begin)(struct run *run); // once the pipelines are there; may be NULL
    void (*submit)(struct run *run);
    // That of weir_arr_coc_params; `device` is a struct run_device.
    void (*deliver)(void *device, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result);
    void (*cancel)(struct run *run); // before the pipelines are cancelled; may be NULL
    void (*end)(struct run *run);    // after the last frame was delivered; may be NULL
    // The exit code, with a message if it is no success.
    int (*count)(const struct run *run);
    // What the closing figures say of a video, as a row of text and as JSON; NULL: the run has images.
    void (*add)(struct weir_table *table, const struct run *run);
    json_t *(*describe)(const struct run *run);
};

extern const struct run_kind run_images, run_by_ranks, run_video;

struct run {
    // As on the command line.
    const char *config;
    const char *query_path;
    const char *weights_path;
    const char *output;
    const char *asked_devices;
    uint64_t repeat;
    uint64_t decoders; // threads that load images; 0: by the device
    bool stops;        // at the first image that fails
    bool quiet;
    bool json;
    bool by_ranks;
    bool live;
    const char *overlay;    // "png" or "y4m"; NULL: none
    uint64_t frame_limit;   // 0: none
    const char *video_path; // NULL: images

    const struct run_kind *kind;
    struct run_image *images;
    size_t image_count;

    weir_runtime *runtime;
    struct cli_devices wanted;
    struct run_device *devices;
    uint32_t device_count;
    weir_pipeline_group *group; // of the devices' pipelines
    struct run_ranks *ranks;    // NULL: without --ranks
    struct run_video *video;    // NULL: images
    // The devices that are reported: this process's or, at rank 0, those of all ranks.
    const struct run_device *shown;
    uint32_t shown_count;
    const char *module_version;
    struct weir_arr_coc_sizes sizes;
    const char *stages[RUN_STAGES]; // names; NULL after the last
    uint64_t max_pixels;            // the configuration's cap

    atomic_bool stopped; // an image has failed, and `stops`

    struct run_writer writer;
    struct cli_progress progress;
    uint64_t delivered;                         // frames
    struct weir_pipeline_statistics statistics; // of all frames
    struct run_first first;
    struct weir__histogram latency; // of warm frames
};

// The seed of the query that is used without --query.
#define RUN_QUERY_SEED 1

// Functions whose comment says nothing else end the command after an error, and what they make is the
// command's (cli/common/own.h).

// images.c. Slots of run_images that a run by ranks has too. Opening reads the images' headers, with `stops` up to the first
// that cannot be used, marks those that cannot be as failed, and sets the pixels of the largest; beginning starts the
// thread that writes files, and ending waits until all are written.
void run_open_images(struct run *run, struct weir_arr_coc_params *params);
void run_begin_images(struct run *run);
void run_end_images(struct run *run);
int run_count_images(const struct run *run);

// Tells what a frame gave: counts, the sides of its patches, the weights of its balance.
void run_describe_output(json_t *object, const struct weir_arr_coc_output *output);

// Submits the image once. False when the run was cancelled.
bool run_submit_image(struct run *run, struct run_image *image);

// Adds one delivered run to the image: its times, and its results if it is the first, else a comparison with those
// of the first. The image fails if memory runs out.
void run_take_result(struct run_image *image, const struct run_device *device,
                     const struct weir_arr_coc_output *output,
                     const struct weir_pipeline_result *result);

// One frame more of the image, and of all, is delivered; after its last the image is written.
void run_end_delivery(struct run *run, struct run_image *image);

// arr_coc.c. Creates the output directory and checks that it can be written to.
void run_prepare_output(const struct run *run);
// "NAME" for DIR/NAME.png.
const char *run_make_name(const char *path);

// ranks.c: images as the work of several processes, each of which is a rank and has a device.
//
// This process's rank, 0 without ranks.
uint32_t run_rank(const struct run *run);

// report.c. Takes the figures of one frame that succeeded.
void run_take_figures(struct run_device *device, const struct weir_pipeline_result *result);

// After each of the first frames was submitted: waits for it, says so if that takes long, and takes its figures, and
// whether these frames are done.
void run_take_first(struct run *run);

// Counts the failures, and prints the closing figures if anything was run or a program is to read them. Returns the
// exit code.
int run_report(const struct run *run, bool was_run);

// overlay.c: the photo, dimmed, under the relevance map, with frames around the chosen patches, and a legend.
//
// An RGB picture.
struct canvas {
    uint32_t width;
    uint32_t height;
    unsigned char *rgb;
};

// Draws the overlay of `photo` (RGB8). The picture has the photo's aspect ratio, and a longer side of
// 1200 to 2400 pixels. False if out of memory.
//
// Ownership: `out_canvas->rgb` is the caller's, to be freed with free(); NULL after a failure.
bool cli_overlay_draw(const unsigned char *photo, const struct weir_arr_coc_output *output,
                      uint32_t grid, struct canvas *out_canvas);

#endif
