// weir run arr-coc with a Y4M stream in place of images. The main thread reads frames into a ring of memory
// and submits them; a frame's memory has the next one when it is delivered, so an endless stream needs no
// more. Delivery writes a frame's line, and its overlay, at once.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for fopencookie()
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/common/own.h"
#include "cli/common/signals.h"
#include "cli/run/run.h"
#include "io/y4m.h"

enum {
    SLOTS_UNSET = RUN_STAGES + 1,
    DROPPED_MOST = 32 // frames that were dropped and wait for those before them
};

struct video_frame {
    struct weir_arr_coc_frame frame;
    struct run_video *video;
    unsigned char *planes;
    uint64_t number; // from 0
};

struct run_video {
    struct run *run;
    const char *name; // of the output files
    int fd;
    int wake;     // an eventfd: an interrupt ends a read
    FILE *stream; // of read_some()
    struct weir_io_y4m y4m;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct video_frame *frames; // number n is in place n % frame_count
    size_t frame_count;
    uint64_t delivered; // with the lock
    FILE *lines;
    FILE *overlay;      // of --overlay y4m
    unsigned char *rgb; // of a frame that is drawn
    uint64_t failures;
    atomic_bool broken; // an output file
    bool damaged;       // the stream, for the main thread
};

// The stream.

static ssize_t read_some(void *user, char *to, size_t size)
{
    struct run_video *video = user;
    struct pollfd wanted[2] = {{.fd = video->fd, .events = POLLIN},
                               {.fd = video->wake, .events = POLLIN}};
    for (;;) {
        const int ready = poll(wanted, 2, -1);
        if (ready < 0 && errno != EINTR)
            return -1;
        if (wanted[1].revents) {
            errno = ECANCELED;
            return -1;
        }
        const ssize_t got = ready > 0 ? read(video->fd, to, size) : -1;
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got;
    }
}

static void open_stream(struct run_video *video)
{
    const char *path = video->run->video_path;
    const bool standard = strcmp(path, "-") == 0;
    struct weir_io_error error;
    video->wake = eventfd(0, EFD_CLOEXEC);
    video->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    video->stream = fopencookie(video, "r", (cookie_io_functions_t){.read = read_some});
    if (video->fd < 0 || video->wake < 0 || !video->stream)
        cli_fail(CLI_FAILED, "%s: the stream cannot be opened: %s", path, strerror(errno));
    if (weir_io_y4m_open(&video->y4m, standard ? "standard input" : path, video->stream,
                         video->run->max_pixels, &error))
        return;
    if (!cli_signal())
        cli_error("%s", error.message);
    cli_end(CLI_FAILED);
}

// The ring.

// The next frame's memory, once the frame that had it before is delivered: frames are in their order.
static struct video_frame *take_frame(struct run_video *video)
{
    const uint64_t number = video->y4m.frames;
    struct video_frame *frame = &video->frames[number % video->frame_count];
    pthread_mutex_lock(&video->lock);
    while (number - video->delivered >= video->frame_count)
        pthread_cond_wait(&video->freed, &video->lock);
    pthread_mutex_unlock(&video->lock);
    frame->number = number;
    return frame;
}

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct video_frame *frame = user;
    const struct weir_io_y4m *y4m = &frame->video->y4m;
    weir_io_y4m_rgb(y4m, frame->planes, rgb);
    *out_width = y4m->width;
    *out_height = y4m->height;
    return WEIR_OK;
}

static void make_frames(struct run_video *video, size_t count)
{
    video->frames = cli_allocate(count, sizeof *video->frames);
    video->frame_count = count;
    video->rgb = cli_allocate((size_t)3 * video->y4m.width, video->y4m.height);
    for (size_t i = 0; i < count; i++)
        video->frames[i] = (struct video_frame){.frame = {.load = load, .user = &video->frames[i]},
                                                .video = video,
                                                .planes = cli_allocate(1, video->y4m.frame_bytes)};
}

// The outputs.

static void stop(struct run_video *video, const char *why)
{
    if (!video->broken)
        cli_error("%s", why);
    video->broken = true;
    WEIR_IGNORE(weir_pipeline_group_cancel(video->run->group));
}

static void break_off(struct run_video *video, const char *path)
{
    char why[4736];
    snprintf(why, sizeof why, "%s cannot be written: %s", path, strerror(errno));
    stop(video, why);
}

static FILE *create_file(struct run_video *video, const char *suffix)
{
    char path[4608];
    snprintf(path, sizeof path, "%s/%s.%s", video->run->output, video->name, suffix);
    const int descriptor = weir_file_open_to_write(path, O_TRUNC);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file)
        return file;
    break_off(video, path);
    if (descriptor >= 0)
        close(descriptor);
    return NULL;
}

static json_t *describe_frame(const struct video_frame *frame, const struct run_device *device,
                              const struct weir_arr_coc_output *output,
                              const struct weir_pipeline_result *result)
{
    json_t *line = json_object();
    const char *status = result->status == WEIR_OK          ? "ok"
                         : result->status == WEIR_DROPPED   ? "dropped"
                         : result->status == WEIR_CANCELLED ? "cancelled"
                                                            : "failed";
    cli_json_set(line, "frame", weir_json_count(frame->number));
    cli_json_set(line, "status", json_string(status));
    cli_json_set(line, "latency_ns", weir_json_count(result->latency_ns));
    if (result->status == WEIR_OK || result->error)
        cli_json_set(line, "device", json_integer(device - device->run->devices));
    if (output)
        run_describe_output(line, output);
    if (result->error)
        cli_json_set(line, "error", cli_json_string(result->error->message));
    return line;
}

static void write_line(struct run_video *video, json_t *line)
{
    size_t size;
    char *text = cli_json_text(line, CLI_JSON_LINE, &size);
    if (!text) {
        errno = ENOMEM;
        break_off(video, "a frame's line");
        return;
    }
    if (video->run->json && (fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0))
        break_off(video, "standard output");
    if (fwrite(text, 1, size, video->lines) != size || fflush(video->lines) != 0)
        break_off(video, "the frames' lines");
    free(text);
}

static void write_png(struct run_video *video, const struct video_frame *frame,
                      const struct canvas *canvas)
{
    char path[4608];
    struct weir_io_error error;
    snprintf(path, sizeof path, "%s/%s.%06" PRIu64 ".overlay.png", video->run->output, video->name,
             frame->number);
    if (!weir_io_png_write_rgb8(path, canvas->width, canvas->height, canvas->rgb, &error))
        stop(video, error.message);
}

static void write_picture(struct run_video *video, const struct canvas *canvas)
{
    const bool first = !video->overlay;
    if (first)
        video->overlay = create_file(video, "overlay.y4m");
    if (video->overlay &&
        !((!first || weir_io_y4m_begin(video->overlay, canvas->width, canvas->height,
                                       video->y4m.rate, video->y4m.per)) &&
          weir_io_y4m_write_rgb8(video->overlay, canvas->width, canvas->height, canvas->rgb)))
        break_off(video, "the overlay");
}

static void write_overlay(struct run_video *video, const struct video_frame *frame,
                          const struct weir_arr_coc_output *output)
{
    struct canvas canvas;
    weir_io_y4m_rgb(&video->y4m, frame->planes, video->rgb);
    if (!cli_overlay_draw(video->rgb, output, video->run->sizes.grid, &canvas)) {
        errno = ENOMEM;
        break_off(video, "the overlay");
        return;
    }
    if (strcmp(video->run->overlay, "png") == 0)
        write_png(video, frame, &canvas);
    else
        write_picture(video, &canvas);
    free(canvas.rgb);
}

static void deliver(void *user, struct weir_arr_coc_frame *delivered,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    const struct run_device *device = user;
    struct run *run = device->run;
    struct run_video *video = run->video;
    struct video_frame *frame = delivered->user;
    if (output)
        run_take_figures(user, result);
    // Of the first frame that fails; the lines have all.
    if (result->status < 0 && video->failures++ == 0) {
        weir_error_set(result->error);
        cli_error("%s: frame %" PRIu64 ": %s%s%s", run->video_path, frame->number, result->stage,
                  result->stage[0] ? ": " : "", weir_last_error_text());
    }
    if (!video->broken)
        write_line(video, describe_frame(frame, device, output, result));
    if (output && run->overlay && !video->broken)
        write_overlay(video, frame, output);
    cli_progress_update(&run->progress, ++run->delivered, video->name);
    pthread_mutex_lock(&video->lock);
    video->delivered++;
    pthread_cond_signal(&video->freed);
    pthread_mutex_unlock(&video->lock);
}

// The run.

static void close_video(void *object)
{
    struct run_video *video = object;
    const bool closed = !video->overlay || fclose(video->overlay) == 0;
    if ((video->lines && fclose(video->lines) != 0) || !closed) {
        cli_error("%s: its results cannot be written: %s", video->run->video_path, strerror(errno));
        cli_fail_late();
    }
    if (video->stream)
        fclose(video->stream);
    if (video->fd > STDIN_FILENO)
        close(video->fd);
    if (video->wake >= 0)
        close(video->wake);
    pthread_cond_destroy(&video->freed);
    pthread_mutex_destroy(&video->lock);
}

// Opens the stream and its outputs, and sets the size and the policy.
static void open_video(struct run *run, struct weir_arr_coc_params *params)
{
    struct run_video *video = cli_allocate(1, sizeof *video);
    const bool standard = strcmp(run->video_path, "-") == 0;
    video->run = run;
    video->name = standard ? "stdin" : run_make_name(run->video_path);
    video->fd = video->wake = -1;
    pthread_mutex_init(&video->lock, NULL);
    pthread_cond_init(&video->freed, NULL);
    run->video = video;
    // For the newest frame, at most one waits on each device.
    params->pipeline.full = run->live ? WEIR_PIPELINE_DROP_OLDEST : WEIR_PIPELINE_BLOCK;
    params->pipeline.backlog =
        run->live && params->pipeline.backlog == 0 ? 1 : params->pipeline.backlog;
    cli_own(close_video, video);
    open_stream(video);
    params->max_pixels = (uint64_t)video->y4m.width * video->y4m.height;
    video->lines = create_file(video, "jsonl");
    if (!video->lines)
        cli_end(CLI_FAILED);
    // One frame more than the pipelines hold, so that the next is read meanwhile.
    const size_t slots = params->pipeline.slot_count ? params->pipeline.slot_count : SLOTS_UNSET;
    const size_t backlog = params->pipeline.backlog ? params->pipeline.backlog : slots;
    make_frames(video, run->device_count * (slots + backlog) + 1 + (run->live ? DROPPED_MOST : 0));
}

// Ends a read.
static void wake(struct run *run)
{
    const uint64_t one = 1;
    if (write(run->video->wake, &one, sizeof one) < 0)
        cli_error("the interrupt cannot be passed on: %s", strerror(errno));
}

// False when the run is to end.
static bool submit(struct run *run, struct video_frame *frame)
{
    const weir_status status = weir_pipeline_group_submit(run->group, &frame->frame);
    if (status != WEIR_OK) {
        if (status < 0 && !cli_signal()) {
            cli_error("%s: %s", run->video_path, weir_last_error_text());
            run->video->damaged = true;
        }
        return false;
    }
    if (!run->first.done)
        run_take_first(run);
    return true;
}

// Reads and submits frames until the stream ends, is damaged, or an interrupt.
static void submit_all(struct run *run)
{
    struct run_video *video = run->video;
    struct weir_io_error error;
    const uint64_t most = run->frame_limit ? run->frame_limit : UINT64_MAX;
    while (video->y4m.frames < most && !cli_signal() && !video->broken) {
        struct video_frame *frame = take_frame(video);
        bool there;
        if (!weir_io_y4m_next(&video->y4m, frame->planes, &there, &error)) {
            if (!cli_signal())
                cli_error("%s", error.message);
            video->damaged = true;
        }
        if (!there || !submit(run, frame))
            break;
    }
    if (video->y4m.frames == 0 && !video->damaged && !cli_signal()) {
        cli_error("%s: the stream has no frame", video->y4m.name);
        video->damaged = true;
    }
}

static int count_failures(const struct run *run)
{
    const struct run_video *video = run->video;
    const struct weir_pipeline_statistics *s = &run->statistics;
    if (cli_signal()) {
        cli_error("interrupted: %" PRIu64 " frames are finished and kept", s->succeeded);
        return CLI_SIGNALLED + cli_signal();
    }
    if (s->failed > 0)
        cli_error("%" PRIu64 " of %" PRIu64 " frames failed", s->failed, s->accepted);
    return s->failed > 0 || video->broken || video->damaged ? CLI_FAILED : CLI_OK;
}

static double frames_per_second(const struct weir_io_y4m *y4m)
{
    return y4m->per ? (double)y4m->rate / y4m->per : 0;
}

static void add_row(struct weir_table *table, const struct run *run)
{
    const struct weir_pipeline_statistics *s = &run->statistics;
    const struct weir_io_y4m *y4m = &run->video->y4m;
    weir_table_add(table, "video");
    weir_table_add(table,
                   "%" PRIu32 "x%" PRIu32 ", %.6g frames/s: %" PRIu64 " frames run, %" PRIu64
                   " dropped, %" PRIu64 " failed; %s/%s.jsonl has a line for each",
                   y4m->width, y4m->height, frames_per_second(y4m), s->succeeded, s->dropped,
                   s->failed, run->output, run->video->name);
}

static json_t *describe(const struct run *run)
{
    const struct weir_io_y4m *y4m = &run->video->y4m;
    json_t *object = json_object();
    cli_json_set(object, "path", cli_json_string(run->video_path));
    cli_json_set(object, "name", cli_json_string(run->video->name));
    cli_json_set(object, "width", json_integer(y4m->width));
    cli_json_set(object, "height", json_integer(y4m->height));
    cli_json_set(object, "frames_per_second", json_real(frames_per_second(y4m)));
    cli_json_set(object, "frames", weir_json_count(y4m->frames));
    cli_json_set(object, "dropped", weir_json_count(run->statistics.dropped));
    return object;
}

const struct run_kind run_video = {
    .open = open_video,
    .submit = submit_all,
    .deliver = deliver,
    .cancel = wake,
    .count = count_failures,
    .add = add_row,
    .describe = describe,
};
