// The cost and the accuracy of the plugin `trace`: for a machine with a GPU, and for
// others with a smaller job. docs/trace-timing.md describes the figures.
//
//     trace_bench [--size MIB] [--turns N] [--cupti PATH|auto]
//
// A job of copy, compute, copy through patterns/chunks, in depth-first order, in so many
// chunks: the time of a run without the plugin, with it, and with it but without CUPTI,
// interleaved. Then copies in one direction on four queues, which must not overlap each other. Then the cost of a submit
// on the null backend. Lines begin with "ok", "FAIL" or "-"; exit status 1 if one
// failed.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/report.h>
#include <weir/weir.h>

#include "base/clock.h"
#include "kernels/bench/bench.h"
#include "patterns/chunks.h"

enum {
    TURNS_MOST = 101,
    BLOCK = 256,
    MODES = 3,
    QUEUES = 4,
    COPIES = 32,
    SUBMITS = 500,
};

static const char *const mode_names[MODES] = {"plain", "traced", "traced, events"};
static const uint32_t chunk_counts[] = {1, 4, 16, 64};

static const char *cupti = "auto";
static size_t mebibytes;
static int turns = 11;
static char folder[] = "/tmp/weir-trace-bench.XXXXXX";
static int failures;

static void say(const char *result, const char *format, ...) WEIR_PRINTF(2, 3);

static void say(const char *result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-4s  ", result);
    vprintf(format, arguments);
    printf("\n");
    fflush(stdout);
    va_end(arguments);
    failures += strcmp(result, "FAIL") == 0;
}

static bool on_cuda(void)
{
    const char *backend = getenv("WEIR_BACKEND");
    return backend && strcmp(backend, "cuda") == 0;
}

static int by_size(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

// A runtime with or without the plugin, and the job on its device.

struct job {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *host;
    weir_buffer *memory;
    weir_chunks *chunks;
    char path[128]; // of the trace; "" without
};

static const char *trace_path(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    return path;
}

static weir_status open_runtime(struct job *job, int mode, const char *backend, const char *name)
{
    const char *section = getenv("WEIR_TEST_SECTION"); // [cuda], except `cupti`
    char text[1024];
    const bool cuda = !backend && on_cuda();
    if (mode > 0)
        snprintf(job->path, sizeof job->path, "%s", trace_path(name));
    snprintf(text, sizeof text, "%s\n%s%s\n[trace]\n%s%s\nbuffer = 65536\n",
             section ? section
             : cuda  ? "[cuda]"
                     : "",
             cuda ? "cupti = " : "", cuda ? (mode == 2 ? "off" : cupti) : "",
             mode > 0 ? "file = " : "", job->path);
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "bench.ini", .config_text = text,
                                 .backend = backend, .plugins = mode > 0 ? "trace" : ""),
                     &job->runtime);
}

static weir_status make_buffer(struct job *job, weir_placement placement, size_t size,
                               weir_buffer **out_buffer)
{
    return weir_buffer_create(job->device,
                              WEIR_PARAMS(weir_buffer, .label = "numbers", .size = size,
                                          .placement = placement),
                              out_buffer);
}

static weir_status compute(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct job *job = user;
    const uint32_t count = (uint32_t)chunk->count;
    return weir_queue_launch(queue, job->kernel, weir_dim((count + BLOCK - 1) / BLOCK, 1, 1),
                             weir_dim(BLOCK, 1, 1),
                             weir_inout(job->memory, chunk->in_offset, chunk->in_size),
                             mebibytes >= 256 ? 1024u : 64u, count);
}

static weir_status make_job(struct job *job, uint32_t chunk_count)
{
    const size_t size = mebibytes << 20;
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &bench_kernels};
    weir_status status = weir_device_open(job->runtime, NULL, &job->device);
    if (status == WEIR_OK)
        status = weir_program_create(job->device, &program, &job->program);
    if (status == WEIR_OK)
        status = weir_kernel_create(job->program, "advance", &job->kernel);
    if (status == WEIR_OK)
        status = make_buffer(job, WEIR_PLACE_HOST, size, &job->host);
    if (status == WEIR_OK)
        status = make_buffer(job, WEIR_PLACE_DEVICE, size, &job->memory);
    if (status < 0 || chunk_count == 0)
        return status;
    return weir_chunks_create(WEIR_PARAMS(weir_chunks, .device = job->device, .label = "bench",
                                          .element_count = size / 4, .in_bytes = 4, .out_bytes = 4,
                                          .granularity = BLOCK, .src = {job->host, 0},
                                          .in = {job->memory, 0}, .out = {job->memory, 0},
                                          .dst = {job->host, 0}, .kernel = compute, .user = job,
                                          .order = WEIR_CHUNKS_DEPTH_FIRST,
                                          .chunk_count = chunk_count),
                              &job->chunks);
}

static void close_job(struct job *job)
{
    weir_chunks_destroy(&job->chunks);
    weir_buffer_destroy(&job->host);
    weir_buffer_destroy(&job->memory);
    weir_kernel_destroy(&job->kernel);
    weir_program_destroy(&job->program);
    if (weir_device_close(&job->device) < 0 || weir_close(&job->runtime) < 0)
        say("FAIL", "%s", weir_last_error_text());
}

static double run_once(struct job *job)
{
    struct weir_event done;
    const uint64_t before = weir_clock_now_ns();
    if (weir_chunks_run(job->chunks, NULL, 0, &done) < 0 ||
        weir_event_sync(done, WEIR_FOREVER) < 0) {
        say("FAIL", "%s", weir_last_error_text());
        return 0;
    }
    return (double)(weir_clock_now_ns() - before) * 1e-6;
}

static double percent(double share)
{
    return 100 * share;
}

// The job in chunks.

static void bench_chunks(uint32_t chunk_count)
{
    double times[MODES][TURNS_MOST];
    struct job jobs[MODES] = {{NULL}};
    char name[64];
    const int modes = on_cuda() ? MODES : 2;
    bool fine = true;
    for (int mode = 0; mode < modes && fine; mode++) {
        snprintf(name, sizeof name, "chunks-%" PRIu32 "-%d", chunk_count, mode);
        fine = open_runtime(&jobs[mode], mode, NULL, name) == WEIR_OK &&
               make_job(&jobs[mode], chunk_count) == WEIR_OK;
        if (!fine)
            say("FAIL", "%s", weir_last_error_text());
    }
    for (int turn = -2; turn < turns && fine; turn++)
        for (int mode = 0; mode < modes; mode++) {
            const double time = run_once(&jobs[mode]);
            if (turn >= 0)
                times[mode][turn] = time;
        }
    for (int mode = 0; mode < modes; mode++)
        if (jobs[mode].runtime)
            close_job(&jobs[mode]);
    if (!fine)
        return;
    const double plain = median(times[0], turns);
    for (int mode = 1; mode < modes; mode++) {
        const double traced = median(times[mode], turns);
        say(traced <= plain * 1.05 || mebibytes < 1024 ? "ok" : "FAIL",
            "%" PRIu32 " chunks, %zu MiB, %s: %.3f ms, plain %.3f ms (%.3f..%.3f), ratio %.4f",
            chunk_count, mebibytes, mode_names[mode], traced, plain, times[0][0],
            times[0][turns - 1], traced / plain);
    }
}

// One direction on four queues.

static void copy_one_way(struct job *job)
{
    weir_queue *queues[QUEUES] = {NULL};
    const size_t size = (mebibytes << 20) / COPIES;
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < QUEUES && status == WEIR_OK; i++)
        status = weir_queue_create(job->device, NULL, &queues[i]);
    for (size_t i = 0; i < COPIES && status == WEIR_OK; i++)
        status =
            weir_queue_copy(queues[i % QUEUES], job->memory, i * size, job->host, i * size, size);
    for (size_t i = 0; i < QUEUES; i++) {
        if (status == WEIR_OK)
            status = weir_queue_sync(queues[i], WEIR_FOREVER);
        weir_queue_destroy(&queues[i]);
    }
    if (status < 0)
        say("FAIL", "%s", weir_last_error_text());
}

// Sum of the durations over the union: 1 when none overlaps another.
static void judge_one_way(const struct job *job, const char *mode, bool one_engine)
{
    struct weir_report_overlap overlap;
    weir_report *made = NULL;
    if (weir_report_read(job->path, NULL, &made) < 0 ||
        weir_report_get_overlap(made, "copy", "copy", &overlap) < 0) {
        say("FAIL", "%s", weir_last_error_text());
        weir_report_destroy(&made);
        return;
    }
    const struct weir_report_summary *summary = weir_report_get_summary(made);
    const bool fine = overlap.most <= 0.001 && summary->speedup_most <= 1.001;
    say(!one_engine || !overlap.applies ? "-"
        : fine                          ? "ok"
                                        : "FAIL",
        "one direction on four queues, %s: overlap %.2f..%.2f %%, speed-up %.4f..%.4f%s%s", mode,
        percent(overlap.least), percent(overlap.most), summary->speedup_least,
        summary->speedup_most, overlap.applies ? "" : "; n/a: ", overlap.reason);
    weir_report_destroy(&made);
}

static void bench_one_way(int mode)
{
    struct job job = {NULL};
    char name[32];
    snprintf(name, sizeof name, "one-way-%d", mode);
    if (open_runtime(&job, mode, NULL, name) < 0 || make_job(&job, 0) < 0) {
        say("FAIL", "%s", weir_last_error_text());
        return;
    }
    const bool one_engine = weir_device_limits(job.device)->copy_engines_to_device == 1;
    copy_one_way(&job);
    close_job(&job);
    judge_one_way(&job, mode_names[mode], one_engine);
}

// A submit on the null backend, where there is little other work.

static double submit_ns(struct job *job, double *out_region_ns)
{
    double times[TURNS_MOST];
    weir_queue *queue;
    if (weir_queue_create(job->device, NULL, &queue) < 0)
        return 0;
    for (int turn = -40; turn < TURNS_MOST; turn++) {
        const uint64_t before = weir_clock_now_ns();
        for (int i = 0; i < SUBMITS; i++)
            WEIR_IGNORE(weir_queue_copy(queue, job->memory, 0, job->host, 0, 64));
        if (turn >= 0)
            times[turn] = (double)(weir_clock_now_ns() - before) / SUBMITS;
        weir_clock_sleep_ns(5000000); // the writer keeps up
    }
    weir_queue_destroy(&queue);
    const uint64_t before = weir_clock_now_ns();
    for (uint64_t i = 0; i < 100000; i++) {
        weir_region_push(job->runtime, "region", i);
        weir_region_pop(job->runtime);
    }
    *out_region_ns = (double)(weir_clock_now_ns() - before) / 100000;
    return median(times, TURNS_MOST);
}

static void bench_submit(void)
{
    double times[2] = {0, 0};
    double regions[2] = {0, 0};
    for (int mode = 0; mode < 2; mode++) {
        struct job job = {NULL};
        if (open_runtime(&job, mode, "null", "submit") < 0 ||
            weir_device_open(job.runtime, NULL, &job.device) < 0 ||
            make_buffer(&job, WEIR_PLACE_HOST, 4096, &job.host) < 0 ||
            make_buffer(&job, WEIR_PLACE_DEVICE, 4096, &job.memory) < 0) {
            say("FAIL", "%s", weir_last_error_text());
            return;
        }
        times[mode] = submit_ns(&job, &regions[mode]);
        close_job(&job);
    }
    say("-", "a submit on null: %.1f ns plain, %.1f traced, %.1f more", times[0], times[1],
        times[1] - times[0]);
    say("-", "push and pop of a region: %.1f ns plain, %.1f traced", regions[0], regions[1]);
}

static bool read_arguments(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        if (i + 1 < count && strcmp(arguments[i], "--size") == 0)
            mebibytes = strtoul(arguments[++i], NULL, 10);
        else if (i + 1 < count && strcmp(arguments[i], "--turns") == 0)
            turns = (int)strtol(arguments[++i], NULL, 10);
        else if (i + 1 < count && strcmp(arguments[i], "--cupti") == 0)
            cupti = arguments[++i];
        else
            return false;
    }
    return turns > 0 && turns <= TURNS_MOST;
}

int main(int count, char **arguments)
{
    mebibytes = on_cuda() ? 1024 : 16;
    if (!read_arguments(count, arguments) || mebibytes == 0 || !mkdtemp(folder)) {
        fprintf(stderr, "usage: trace_bench [--size MIB] [--turns N] [--cupti PATH|auto]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof chunk_counts / sizeof *chunk_counts; i++)
        bench_chunks(chunk_counts[i]);
    for (int mode = 1; mode < (on_cuda() ? MODES : 2); mode++)
        bench_one_way(mode);
    bench_submit();
    printf("-     traces: %s\n", folder);
    return failures > 0;
}
