// The job `submit`: what calls cost the thread that submits, through Weir and by the driver's own calls: on
// CUDA a copy, a launch, a record and a wait, together and each alone; on OpenCL long operations end to end,
// and empty launches. Waiting for the device is not timed, except where it says so.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/runtime/open.h"
#include "kernels/conformance/conformance.h"
#include "tests/bench/jobs/raw.h"

enum {
    BATCH = 200, // between two waits for the device: well below what makes a driver block
    NUMBERS = 1024,
    BYTES = 4 * NUMBERS,
    LAUNCHED = 64,
    SEED = 12345,
    LONG_NS = 25000,
    ROWS_MOST = 8
};

// One kind of operation; several ones of a table are in its order.
enum step {
    COPY = 1,
    LAUNCH = 2,
    RECORD = 4,
    WAIT = 8,
    SYNC = 16,
    SPIN = 32, // a long kernel
    EMPTY = 64,
    SET_ONCE = 128 // the raw side does not set its arguments again
};

struct kind {
    const char *name, *about;
    unsigned prepare, steps; // the former are repeated before, and not timed
    bool without_context;    // on the thread, for Weir; the driver's calls need one
};

#define SEQUENCE (COPY | LAUNCH | RECORD | WAIT)

static const struct kind cuda_kinds[] = {
    {"sequence", "copy, launch, record, wait", 0, SEQUENCE, false},
    {"sequence_no_context", "the same, no context current for Weir", 0, SEQUENCE, true},
    {"copy", "copy of 4 KiB up", 0, COPY, false},
    {"launch", "launch with 3 arguments", 0, LAUNCH, false},
    {"record", "record", 0, RECORD, false},
    {"wait", "wait for another queue", RECORD, WAIT, false},
    {"round_trip", "launch, record, and the host waits", 0, LAUNCH | SYNC, false},
};
static const struct kind long_kinds[] = {
    {"long", "operations of 25 us and more, end to end", 0, SPIN, false}};
static const struct kind empty_kinds[] = {{"empty", "empty launches", 0, EMPTY, false},
                                          {"empty_set_once",
                                           "empty launches, the peer's arguments set once", 0,
                                           EMPTY | SET_ONCE, false}};

struct table {
    const char *key, *title, *other;
    const struct kind *kinds;
    size_t count;
    bool to_the_end; // the wait for the device is timed too
};

struct submit {
    uint64_t operations;
};

struct sides {
    uint64_t operations, spins;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue, *other;
    weir_program *program;
    weir_kernel *increment, *spin;
    weir_buffer *memory, *pinned;
    struct weir_event events[BATCH];
    bool (*raw_repeat)(struct sides *s, unsigned steps, size_t count);
    bool (*raw_finish)(struct sides *s);
    struct raw_cuda cu;
    CUstream streams[2];
    CUevent raw_events[BATCH];
    CUdeviceptr raw_memory;
    uint32_t *raw_pinned;
    CUfunction function;
    struct raw_opencl cl;
    cl_command_queue cl_queue;
    cl_mem cl_buffer;
    cl_kernel cl_spin, cl_increment;
    struct {
        struct bench_samples weir, other;
    } rows[ROWS_MOST];
};

// Weir's calls.

static weir_status weir_step(struct sides *s, unsigned steps, struct weir_event *event)
{
    const struct weir_extent one = weir_dim(1, 1, 1), block = weir_dim(LAUNCHED, 1, 1);
    const struct weir_argument range = weir_inout(s->memory, 0, BYTES);
    weir_status status = WEIR_OK;
    if (steps & COPY)
        status = weir_queue_copy(s->queue, s->memory, 0, s->pinned, 0, BYTES);
    if (steps & LAUNCH && status == WEIR_OK)
        status =
            weir_queue_launch(s->queue, s->increment, one, block, range, 1u, (uint32_t)LAUNCHED);
    if (steps & SPIN)
        status = weir_queue_launch(s->queue, s->spin, one, one, range, (uint32_t)SEED, s->spins);
    if (steps & EMPTY)
        status = weir_queue_launch(s->queue, s->increment, one, one, range, 1u, 0u);
    if (steps & (RECORD | SYNC) && status == WEIR_OK)
        status = weir_queue_record(s->queue, event);
    if (steps & WAIT && status == WEIR_OK)
        status = weir_queue_wait(s->other, *event);
    if (steps & SYNC && status == WEIR_OK)
        status = weir_event_sync(*event, WEIR_FOREVER);
    return status;
}

static bool repeat(struct sides *s, bool weir, unsigned steps, size_t count)
{
    weir_status status = WEIR_OK;
    if (!weir)
        return s->raw_repeat(s, steps, count);
    for (size_t i = 0; i < count && status == WEIR_OK; i++)
        status = weir_step(s, steps, &s->events[i]);
    return status == WEIR_OK;
}

static void run_steps(struct sides *s, bool weir, const char *about, unsigned steps, size_t count)
{
    if (!repeat(s, weir, steps, count))
        cli_fail(CLI_SETUP, "'%s' failed by %s: %s", about,
                 weir ? "Weir" : "the driver's own calls", weir ? weir_last_error_text() : "");
}

static void finish(struct sides *s, bool weir)
{
    if (weir) {
        bench_sync(s->queue);
        bench_sync(s->other);
    } else if (!s->raw_finish(s)) {
        cli_fail(CLI_SETUP, "the driver refused a wait");
    }
}

// The driver's calls.

static bool cuda_repeat(struct sides *s, unsigned steps, size_t count)
{
    const struct raw_cuda *cu = &s->cu;
    uint32_t by = 1, n = LAUNCHED;
    void *parameters[] = {&s->raw_memory, &by, &n};
    unsigned code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (steps & COPY)
            code |= cu->cuMemcpyHtoDAsync(s->raw_memory, s->raw_pinned, BYTES, s->streams[0]);
        if (steps & LAUNCH)
            code |= cu->cuLaunchKernel(s->function, 1, 1, 1, LAUNCHED, 1, 1, 0, s->streams[0],
                                       parameters, NULL);
        if (steps & (RECORD | SYNC))
            code |= cu->cuEventRecord(s->raw_events[i], s->streams[0]);
        if (steps & WAIT)
            code |= cu->cuStreamWaitEvent(s->streams[1], s->raw_events[i], 0);
        if (steps & SYNC)
            code |= cu->cuEventSynchronize(s->raw_events[i]);
    }
    return code == 0;
}

static bool cuda_finish(struct sides *s)
{
    return s->cu.cuStreamSynchronize(s->streams[0]) == 0 &&
           s->cu.cuStreamSynchronize(s->streams[1]) == 0;
}

static bool cl_launch(struct sides *s, cl_kernel kernel, const void *second, size_t second_size,
                      const void *third, size_t third_size)
{
    static const size_t one = 1;
    const struct raw_opencl *cl = &s->cl;
    return (!second || (cl->clSetKernelArg(kernel, 0, sizeof s->cl_buffer, &s->cl_buffer) == 0 &&
                        cl->clSetKernelArg(kernel, 1, second_size, second) == 0 &&
                        cl->clSetKernelArg(kernel, 2, third_size, third) == 0)) &&
           cl->clEnqueueNDRangeKernel(s->cl_queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL) == 0;
}

static bool opencl_repeat(struct sides *s, unsigned steps, size_t count)
{
    static const uint32_t seed = SEED, by = 1, none = 0;
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++)
        fine = steps & SPIN
                   ? cl_launch(s, s->cl_spin, &seed, sizeof seed, &s->spins, sizeof s->spins)
                   : cl_launch(s, s->cl_increment, steps & SET_ONCE ? NULL : &by, sizeof by, &none,
                               sizeof none);
    return fine;
}

static bool opencl_finish(struct sides *s)
{
    return s->cl.clFinish(s->cl_queue) == 0;
}

// Measuring.

// Nanoseconds a repetition.
static double time_side(struct sides *s, const struct table *table, const struct kind *kind,
                        bool weir)
{
    uint64_t total = 0;
    if (s->cu.context)
        s->cu.cuCtxSetCurrent(weir && kind->without_context ? NULL : s->cu.context);
    for (uint64_t done = 0; done < s->operations;) {
        const uint64_t left = s->operations - done;
        const size_t count = left < BATCH ? (size_t)left : BATCH;
        if (kind->prepare)
            run_steps(s, weir, kind->about, kind->prepare, count);
        const uint64_t began = cli_now_ns();
        run_steps(s, weir, kind->about, kind->steps, count);
        const uint64_t submitted = cli_now_ns();
        finish(s, weir);
        total += (table->to_the_end ? cli_now_ns() : submitted) - began;
        done += count;
    }
    if (s->cu.context)
        s->cu.cuCtxSetCurrent(s->cu.context);
    return (double)total / (double)s->operations;
}

static void report(struct sides *s, const struct table *table)
{
    const struct bench_column columns[] = {
        {"name", "call", BENCH_TEXT, 0},        {"about", "", BENCH_TEXT, 0},
        {"weir_ns", "Weir", BENCH_SPREAD, 1},   {"other_ns", table->other, BENCH_SPREAD, 1},
        {"added_ns", "added", BENCH_SPREAD, 1}, {"ratio", "ratio", BENCH_SPREAD, 3},
    };
    char title[256];
    snprintf(title, sizeof title, "beside %s on %s, ns %s", table->title,
             weir_device_get_info(s->device)->name, table->to_the_end ? "an operation" : "a call");
    struct bench_table *to = bench_table(table->key, title, columns);
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_samples *weir = &s->rows[i].weir, *other = &s->rows[i].other;
        const struct bench_samples added = bench_difference(weir, other);
        const struct bench_samples ratio = bench_ratio(weir, other);
        bench_row(to, table->kinds[i].name, table->kinds[i].about, weir, other, &added, &ratio);
    }
}

// The order of the two changes from turn to turn.
static void measure(struct sides *s, const struct table *table)
{
    memset(s->rows, 0, sizeof s->rows);
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < table->count; i++)
            for (int side = 0; side < 2; side++) {
                const bool weir = (bench.turn + (unsigned)side) % 2 == 0;
                bench_keep(weir ? &s->rows[i].weir : &s->rows[i].other,
                           time_side(s, table, &table->kinds[i], weir));
            }
    report(s, table);
}

// Set-up.

static void open_weir(struct sides *s, size_t index)
{
    char select[24];
    snprintf(select, sizeof select, "%zu", index);
    s->device = cli_device(s->runtime, select, NULL);
    bench_queue(s->device, "bench", 0, &s->queue);
    bench_queue(s->device, "bench", 0, &s->other);
    bench_kernel(s->device, &conformance_kernels, "increment", &s->program, &s->increment);
    bench_kernel(s->device, &conformance_kernels, "spin", &s->program, &s->spin);
    bench_buffer(s->device, "bench", BYTES, WEIR_PLACE_DEVICE, &s->memory);
    bench_buffer(s->device, "bench", BYTES, WEIR_PLACE_HOST, &s->pinned);
    uint32_t *numbers = bench_begin(s->pinned, WEIR_ACCESS_WRITE);
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    bench_end(s->pinned, WEIR_ACCESS_WRITE);
}

// False after a note where it is absent.
static bool open_runtime(struct sides *s, const char *backend, const char *name)
{
    if (weir_open_at(WEIR_PARAMS(weir_open, .config_path = "", .backend = backend, .plugins = ""),
                     &s->runtime, NULL, 0) == WEIR_OK) {
        cli_own_runtime(s->runtime);
        return true;
    }
    bench_note("not measured: %s: %.250s", name, weir_last_error()->message);
    return false;
}

// CUDA.

static bool open_driver(struct sides *s)
{
    struct raw_cuda *cu = &s->cu;
    if (!raw_cuda_open("raw CUDA", &conformance_kernels, cu))
        return false;
    s->raw_repeat = cuda_repeat;
    s->raw_finish = cuda_finish;
    s->function = raw_cuda_function(cu, "increment");
    s->raw_memory = raw_cuda_memory(cu, BYTES);
    s->raw_pinned = raw_cuda_pinned(cu, BYTES);
    for (int i = 0; i < 2; i++)
        s->streams[i] = raw_cuda_stream(cu);
    for (int i = 0; i < BATCH; i++)
        s->raw_events[i] = raw_cuda_event(cu);
    for (uint32_t i = 0; i < NUMBERS; i++)
        s->raw_pinned[i] = i;
    return true;
}

// Both sides run the sequence and launch twice more; their results are compared with the expected ones.
static void check_cuda(struct sides *s)
{
    uint32_t found[NUMBERS];
    for (int weir = 0; weir < 2; weir++) {
        run_steps(s, weir, "the check", SEQUENCE, 1);
        run_steps(s, weir, "the check", LAUNCH, 2);
        finish(s, weir);
    }
    cli_fine(weir_download(s->queue, found, s->memory, 0, BYTES));
    RAW_CU(&s->cu, cuMemcpyDtoHAsync, s->raw_pinned, s->raw_memory, BYTES, s->streams[0]);
    finish(s, false);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t right = i < LAUNCHED ? i + 3 : i;
        if (found[i] != right || s->raw_pinned[i] != right)
            cli_fail(CLI_FAILED,
                     "on CUDA number %u must be %u; Weir's is %u, that of the raw "
                     "driver calls %u; nothing was timed",
                     (unsigned)i, (unsigned)right, (unsigned)found[i], (unsigned)s->raw_pinned[i]);
        s->raw_pinned[i] = i;
    }
    bench.checked += 2;
}

static void run_cuda(struct sides *s)
{
    static const struct table table = {"cuda",     "raw driver calls",      "raw CUDA",
                                       cuda_kinds, BENCH_COUNT(cuda_kinds), false};
    if (!open_runtime(s, "cuda", "CUDA"))
        return;
    open_weir(s, 0);
    if (!open_driver(s))
        return;
    check_cuda(s);
    measure(s, &table);
}

// OpenCL.

static bool open_plain(struct sides *s)
{
    struct raw_opencl *cl = &s->cl;
    if (!raw_opencl_open("plain OpenCL", weir_device_get_info(s->device)->name,
                         &conformance_kernels, cl))
        return false;
    s->raw_repeat = opencl_repeat;
    s->raw_finish = opencl_finish;
    s->cl_queue = raw_opencl_queue(cl);
    s->cl_buffer = raw_opencl_buffer(cl, 0, BYTES);
    s->cl_spin = raw_opencl_kernel(cl, "spin");
    s->cl_increment = raw_opencl_kernel(cl, "increment");
    return true;
}

// Nothing is timed unless both sides give the same number.
static void check_opencl(struct sides *s)
{
    uint32_t weir = 0, raw = 1;
    run_steps(s, true, "the check", SPIN, 1);
    run_steps(s, false, "the check", SPIN, 1);
    cli_fine(weir_download(s->queue, &weir, s->memory, 0, sizeof weir));
    RAW_CL(&s->cl, clEnqueueReadBuffer, s->cl_queue, s->cl_buffer, CL_TRUE, 0, sizeof raw, &raw, 0,
           NULL, NULL);
    bench.checked++;
    if (weir != raw)
        cli_fail(CLI_FAILED, "Weir and plain OpenCL gave different results; nothing was timed");
}

// As many steps as make an operation of at least LONG_NS on this device.
static void calibrate(struct sides *s, const struct table *table)
{
    const uint64_t operations = s->operations;
    double ns = 0;
    s->operations = 50;
    for (s->spins = 1000; s->spins < UINT64_C(1) << 40 && ns < LONG_NS; s->spins += s->spins / 2)
        ns = time_side(s, table, &table->kinds[0], false);
    s->operations = operations;
    if (ns < LONG_NS)
        cli_fail(CLI_SETUP, "no operation of %d us could be made", LONG_NS / 1000);
}

// A part on each of PoCL's devices, of which the serial one runs an empty launch within its submit; their
// names are those before PoCL 6, and since.
static const struct {
    const char *names[2];
    struct table table;
} parts[] = {{{"pthread", "cpu"}, {"opencl_long", "plain OpenCL", "OpenCL", long_kinds, 1, true}},
             {{"basic", "cpu-minimal"},
              {"opencl_empty", "plain OpenCL", "OpenCL", empty_kinds, 2, true}}};

// "cpu" begins the name of the serial device too.
static bool has_name(const char *name, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strncmp(name, wanted, length) == 0 && strncmp(name + length, "-minimal", 8) != 0;
}

// PoCL's first device for the part, else the first device of all.
static size_t device_for(weir_runtime *runtime, size_t part)
{
    struct weir_device_info info;
    for (size_t i = 0; i < weir_device_count(runtime); i++)
        if (weir_device_describe(runtime, i, &info) == WEIR_OK && cli_is_pocl(&info) &&
            (has_name(info.name, parts[part].names[0]) ||
             has_name(info.name, parts[part].names[1])))
            return i;
    return 0;
}

static void run_part(struct sides *s, size_t part)
{
    const struct table *table = &parts[part].table;
    s->spins = 1000;
    open_weir(s, device_for(s->runtime, part));
    if (!open_plain(s))
        return;
    check_opencl(s);
    if (table->kinds == long_kinds)
        calibrate(s, table);
    measure(s, table);
}

// Each part has objects of its own, since they are destroyed when all is done.
static void run(void *user)
{
    static struct sides sides[1 + BENCH_COUNT(parts)];
    const struct submit *submit = user;
    bench_parameter("operations", (double)submit->operations);
    for (size_t i = 0; i < BENCH_COUNT(sides); i++)
        sides[i].operations = submit->operations;
    run_cuda(&sides[0]);
    // PoCL lists its serial device only if POCL_DEVICES asks for it before PoCL is loaded.
    setenv("POCL_DEVICES", "pthread basic", 0);
    if (!open_runtime(&sides[1], "opencl", "OpenCL"))
        return;
    for (size_t i = 0; i < BENCH_COUNT(parts); i++) {
        sides[1 + i].runtime = sides[1].runtime;
        run_part(&sides[1 + i], i);
    }
}

static int submit_main(int argc, char **argv)
{
    static struct submit submit = {.operations = 10000};
    static const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &submit.operations, 1, 100000000},
    };
    static const struct bench_program program = {
        .group = "jobs",
        .name = "submit",
        .about = "Measures what calls cost through Weir beside the same calls of the driver: raw\n"
                 "CUDA, and plain OpenCL. What is not on this machine is left out with a note.\n",
        .options = options,
        .option_count = BENCH_COUNT(options),
        .run = run,
    };
    return bench_main(&program, &submit, argc, argv);
}

const struct cli_command job_submit = {
    .name = "submit",
    .summary = "the cost of calls beside the driver's own",
    .main = submit_main,
};
