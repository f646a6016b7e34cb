// The job `submit`: what calls cost the thread that submits, through Weir and by the driver's own calls: on
// CUDA a copy, a launch, a record and a wait, together and each alone; on OpenCL long operations end to end,
// and empty launches. Waiting for the device is not timed, except where it says so.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/work.h"
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

struct sides {
    struct bench *bench;
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

static bool finish(struct sides *s, bool weir)
{
    return weir ? weir_queue_sync(s->queue, WEIR_FOREVER) == WEIR_OK &&
                      weir_queue_sync(s->other, WEIR_FOREVER) == WEIR_OK
                : s->raw_finish(s);
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

// Nanoseconds a repetition; negative on failure.
static double time_side(struct sides *s, const struct table *table, const struct kind *kind,
                        bool weir)
{
    uint64_t total = 0;
    bool fine = true;
    if (s->cu.context)
        s->cu.cuCtxSetCurrent(weir && kind->without_context ? NULL : s->cu.context);
    for (uint64_t done = 0; done < s->operations && fine;) {
        const uint64_t left = s->operations - done;
        const size_t count = left < BATCH ? (size_t)left : BATCH;
        fine = kind->prepare == 0 || repeat(s, weir, kind->prepare, count);
        const uint64_t began = cli_now_ns();
        fine = fine && repeat(s, weir, kind->steps, count);
        const uint64_t submitted = cli_now_ns();
        fine = fine && finish(s, weir);
        total += (table->to_the_end ? cli_now_ns() : submitted) - began;
        done += count;
    }
    if (s->cu.context)
        s->cu.cuCtxSetCurrent(s->cu.context);
    return fine ? (double)total / (double)s->operations : -1;
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
    struct bench_table *to =
        bench_table(s->bench, table->key, title, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < table->count; i++) {
        const struct bench_samples *weir = &s->rows[i].weir, *other = &s->rows[i].other;
        const struct bench_samples added = bench_difference(weir, other);
        const struct bench_samples ratio = bench_ratio(weir, other);
        bench_row(to, table->kinds[i].name, table->kinds[i].about, weir, other, &added, &ratio);
    }
}

// The order of the two changes from turn to turn.
static bool measure(struct sides *s, const struct table *table)
{
    struct bench *bench = s->bench;
    memset(s->rows, 0, sizeof s->rows);
    for (bench_start(bench); bench_turn(bench);)
        for (size_t i = 0; i < table->count; i++) {
            const bool weir_first = bench->turn % 2 == 0;
            const double first = time_side(s, table, &table->kinds[i], weir_first);
            const double second = time_side(s, table, &table->kinds[i], !weir_first);
            if (first < 0 || second < 0)
                return bench_fail(bench, CLI_SETUP, "'%s' failed while it was timed: %s",
                                  table->kinds[i].about, weir_last_error_text());
            bench_keep(bench, &s->rows[i].weir, weir_first ? first : second);
            bench_keep(bench, &s->rows[i].other, weir_first ? second : first);
        }
    report(s, table);
    return true;
}

// Set-up.

static bool open_weir(struct sides *s, size_t index)
{
    struct bench *bench = s->bench;
    char select[24];
    void *pointer;
    snprintf(select, sizeof select, "%zu", index);
    if (!bench_fine(bench,
                    weir_device_open_at(s->runtime, WEIR_PARAMS(weir_device, .select = select),
                                        &s->device, NULL, 0)) ||
        !bench_queue_on(bench, s->device, "bench", &s->queue) ||
        !bench_queue_on(bench, s->device, "bench", &s->other) ||
        !bench_kernel_on(bench, s->device, &conformance_kernels, "increment", &s->program,
                         &s->increment) ||
        !bench_kernel_on(bench, s->device, &conformance_kernels, "spin", &s->program, &s->spin) ||
        !bench_buffer_on(bench, s->device, "bench", BYTES, WEIR_PLACE_DEVICE, &s->memory) ||
        !bench_buffer_on(bench, s->device, "bench", BYTES, WEIR_PLACE_HOST, &s->pinned) ||
        !bench_fine(bench, weir_host_begin(s->pinned, 0, BYTES, WEIR_ACCESS_WRITE, &pointer)))
        return false;
    for (uint32_t i = 0; i < NUMBERS; i++)
        ((uint32_t *)pointer)[i] = i;
    return bench_fine(bench, weir_host_end(s->pinned, 0, BYTES, WEIR_ACCESS_WRITE));
}

static void close_sides(struct sides *s)
{
    weir_buffer_destroy(&s->pinned);
    weir_buffer_destroy(&s->memory);
    weir_kernel_destroy(&s->spin);
    weir_kernel_destroy(&s->increment);
    weir_program_destroy(&s->program);
    weir_queue_destroy(&s->other);
    weir_queue_destroy(&s->queue);
    WEIR_IGNORE(weir_device_close(&s->device));
}

// The null backend where the wanted one is absent, with a note.
static bool open_runtime(struct sides *s, const char *backend, const char *name, bool *out_absent)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "",
                                            .backend = backend,
                                            .plugins = ""};
    *out_absent = weir_open_at(&params, &s->runtime, NULL, 0) < 0;
    if (*out_absent)
        bench_note(s->bench, "not measured: %s: %s", name, weir_last_error()->message);
    return !*out_absent;
}

// CUDA.

static bool open_driver(struct sides *s)
{
    struct raw_cuda *cu = &s->cu;
    char message[512];
    s->raw_repeat = cuda_repeat;
    s->raw_finish = cuda_finish;
    if (!raw_cuda_open(cu, &conformance_kernels, message, sizeof message))
        return bench_fail(s->bench, CLI_SETUP, "%s", message);
    bool fine = cu->cuModuleGetFunction(&s->function, cu->module, "increment") == 0 &&
                cu->cuMemAlloc(&s->raw_memory, BYTES) == 0 &&
                cu->cuMemHostAlloc((void **)&s->raw_pinned, BYTES, 0) == 0;
    for (int i = 0; i < 2 && fine; i++)
        fine = cu->cuStreamCreateWithPriority(&s->streams[i], CU_STREAM_NON_BLOCKING, 0) == 0;
    for (int i = 0; i < BATCH && fine; i++)
        fine = cu->cuEventCreate(&s->raw_events[i], CU_EVENT_DISABLE_TIMING) == 0;
    for (uint32_t i = 0; i < NUMBERS && fine; i++)
        s->raw_pinned[i] = i;
    return fine || bench_fail(s->bench, CLI_SETUP, "raw driver calls cannot set up the same work");
}

static void close_driver(struct sides *s)
{
    struct raw_cuda *cu = &s->cu;
    for (int i = 0; i < BATCH; i++)
        if (s->raw_events[i])
            cu->cuEventDestroy(s->raw_events[i]);
    for (int i = 0; i < 2; i++)
        if (s->streams[i])
            cu->cuStreamDestroy(s->streams[i]);
    if (s->raw_pinned)
        cu->cuMemFreeHost(s->raw_pinned);
    if (s->raw_memory)
        cu->cuMemFree(s->raw_memory);
    raw_cuda_close(cu);
}

// Both sides run the sequence and launch twice more; their results are compared with the expected ones.
static bool check_cuda(struct sides *s)
{
    uint32_t found[2][NUMBERS];
    for (int weir = 0; weir < 2; weir++)
        if (!repeat(s, weir, SEQUENCE, 1) || !repeat(s, weir, LAUNCH, 2) || !finish(s, weir))
            return bench_fail(s->bench, CLI_SETUP, "the %s failed: %s",
                              weir ? "calls of Weir" : "raw driver calls", weir_last_error_text());
    if (weir_download(s->queue, found[1], s->memory, 0, BYTES) != WEIR_OK)
        return bench_fail_weir(s->bench);
    if (s->cu.cuMemcpyDtoHAsync(s->raw_pinned, s->raw_memory, BYTES, s->streams[0]) != 0 ||
        !cuda_finish(s))
        return bench_fail(s->bench, CLI_SETUP, "the raw driver calls of the peer failed");
    memcpy(found[0], s->raw_pinned, BYTES);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t right = i < LAUNCHED ? i + 3 : i;
        if (found[1][i] != right || found[0][i] != right)
            return bench_fail_result(s->bench,
                                     "on CUDA number %u must be %u; Weir's is %u, that of the raw "
                                     "driver calls %u; nothing was timed",
                                     (unsigned)i, (unsigned)right, (unsigned)found[1][i],
                                     (unsigned)found[0][i]);
    }
    s->bench->checked += 2;
    return true;
}

static bool run_cuda(struct sides *s)
{
    static const struct table table = {
        "cuda", "raw driver calls", "raw CUDA", cuda_kinds, sizeof cuda_kinds / sizeof *cuda_kinds,
        false};
    bool absent;
    if (!open_runtime(s, "cuda", "CUDA", &absent))
        return absent;
    bool fine = open_weir(s, 0);
    fine = fine && open_driver(s) && check_cuda(s) && measure(s, &table);
    close_driver(s);
    close_sides(s);
    WEIR_IGNORE(weir_close(&s->runtime));
    return fine;
}

// OpenCL.

static bool open_plain(struct sides *s)
{
    struct raw_opencl *cl = &s->cl;
    char message[512];
    cl_int code = 0;
    s->raw_repeat = opencl_repeat;
    s->raw_finish = opencl_finish;
    if (!raw_opencl_open(cl, weir_device_get_info(s->device)->name, &conformance_kernels, message,
                         sizeof message))
        return bench_fail(s->bench, CLI_SETUP, "%s", message);
    return ((s->cl_queue = cl->clCreateCommandQueue(cl->context, cl->device, 0, &code)) &&
            (s->cl_buffer =
                 cl->clCreateBuffer(cl->context, CL_MEM_READ_WRITE, BYTES, NULL, &code)) &&
            (s->cl_spin = cl->clCreateKernel(cl->program, "spin", &code)) &&
            (s->cl_increment = cl->clCreateKernel(cl->program, "increment", &code))) ||
           bench_fail(s->bench, CLI_SETUP, "plain OpenCL cannot set up the same work");
}

static void close_plain(struct sides *s)
{
    struct raw_opencl *cl = &s->cl;
    if (s->cl_increment)
        cl->clReleaseKernel(s->cl_increment);
    if (s->cl_spin)
        cl->clReleaseKernel(s->cl_spin);
    if (s->cl_buffer)
        cl->clReleaseMemObject(s->cl_buffer);
    if (s->cl_queue)
        cl->clReleaseCommandQueue(s->cl_queue);
    s->cl_increment = s->cl_spin = NULL;
    s->cl_buffer = NULL;
    s->cl_queue = NULL;
    raw_opencl_close(cl);
}

// Nothing is timed unless both sides give the same number.
static bool check_opencl(struct sides *s)
{
    uint32_t weir = 0, raw = 1;
    if (!repeat(s, true, SPIN, 1) || !repeat(s, false, SPIN, 1) ||
        weir_download(s->queue, &weir, s->memory, 0, sizeof weir) != WEIR_OK ||
        s->cl.clEnqueueReadBuffer(s->cl_queue, s->cl_buffer, CL_TRUE, 0, sizeof raw, &raw, 0, NULL,
                                  NULL) != 0)
        return bench_fail(s->bench, CLI_SETUP, "an operation failed: %s", weir_last_error_text());
    s->bench->checked++;
    return weir == raw ||
           bench_fail_result(s->bench,
                             "Weir and plain OpenCL gave different results; nothing was timed");
}

// As many steps as make an operation of at least LONG_NS on this device.
static bool calibrate(struct sides *s, const struct table *table)
{
    const uint64_t operations = s->operations;
    double ns = 0;
    s->operations = 50;
    for (s->spins = 1000; s->spins < UINT64_C(1) << 40 && ns >= 0 && ns < LONG_NS;
         s->spins += s->spins / 2)
        ns = time_side(s, table, &table->kinds[0], false);
    s->operations = operations;
    return ns >= LONG_NS ||
           bench_fail(s->bench, CLI_SETUP, "no operation of %d us could be made", LONG_NS / 1000);
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

static bool run_opencl(struct sides *s)
{
    bool absent, fine = true;
    // PoCL lists its serial device only if POCL_DEVICES asks for it before PoCL is loaded.
    setenv("POCL_DEVICES", "pthread basic", 0);
    if (!open_runtime(s, "opencl", "OpenCL", &absent))
        return absent;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && fine; i++) {
        const struct table *table = &parts[i].table;
        s->spins = 1000;
        fine = open_weir(s, device_for(s->runtime, i));
        fine = fine && open_plain(s) && check_opencl(s) &&
               (table->kinds != long_kinds || calibrate(s, table)) && measure(s, table);
        close_plain(s);
        close_sides(s);
    }
    WEIR_IGNORE(weir_close(&s->runtime));
    return fine;
}

static bool run(struct bench *bench, void *user)
{
    struct sides *s = user;
    s->bench = bench;
    bench_parameter(bench, "operations", (double)s->operations);
    return run_cuda(s) && run_opencl(s);
}

static int submit_main(int argc, char **argv)
{
    static struct sides s = {.operations = 10000};
    const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &s.operations, 1, 100000000},
    };
    const struct bench_program program = {
        .group = "jobs",
        .name = "submit",
        .about = "Measures what calls cost through Weir beside the same calls of the driver: raw\n"
                 "CUDA, and plain OpenCL. What is not on this machine is left out with a note.\n",
        .options = options,
        .option_count = sizeof options / sizeof *options,
        .run = run,
    };
    return bench_main(&program, &s, argc, argv);
}

const struct cli_command job_submit = {
    .name = "submit",
    .summary = "the cost of calls beside the driver's own",
    .main = submit_main,
};
