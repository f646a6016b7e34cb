// The job `submit`: what calls cost the thread that submits, through Weir and by the driver's own calls: on
// CUDA a copy, a launch, a record and a wait, together and each alone; on OpenCL long operations end to end,
// and empty launches. Waiting for the device is not timed, except where it says so.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/runtime/open.h"
#include "kernels/conformance/conformance.h"
#include "tests/bench/jobs/side.h"

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

enum kernel {
    INCREMENT,
    SPIN_KERNEL
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
    {"round_trip", "launch, record, and the host waits", 0, LAUNCH | RECORD | SYNC, false},
};
static const struct kind long_kinds[] = {
    {"long", "operations of 25 us and more, end to end", 0, SPIN, false}};
static const struct kind empty_kinds[] = {{"empty", "empty launches", 0, EMPTY, false},
                                          {"empty_set_once",
                                           "empty launches, the peer's arguments set once", 0,
                                           EMPTY | SET_ONCE, false}};

// What is measured on one device, beside which side. PoCL's serial device runs an empty launch within its submit;
// the names of PoCL's devices are those before PoCL 6, and since.
struct part {
    const char *devices[2]; // NULL: the first one
    const char *key, *other;
    const struct side_calls *calls;
    const struct kind *kinds;
    size_t count;
    bool to_the_end; // the wait for the device is timed too
};

static const struct part parts[] = {
    {{NULL}, "cuda", "raw CUDA", &side_cuda_calls, cuda_kinds, BENCH_COUNT(cuda_kinds), false},
    {{"pthread", "cpu"}, "opencl_long", "OpenCL", &side_opencl_calls, long_kinds, 1, true},
    {{"basic", "cpu-minimal"}, "opencl_empty", "OpenCL", &side_opencl_calls, empty_kinds, 2, true},
};

// Of one part.
struct submit {
    const struct part *part;
    uint64_t operations, spins;
    struct side weir, raw;
    struct {
        struct bench_samples weir, other;
    } rows[ROWS_MOST];
};

static void run_steps(const struct submit *s, struct side *side, unsigned steps, size_t count)
{
    const struct side_calls *calls = side->calls;
    const struct side_launch launch = {INCREMENT, 0, BYTES, 1, LAUNCHED, 1, LAUNCHED, false, false};
    const struct side_launch spin = {SPIN_KERNEL, 0, BYTES, 1, 1, SEED, s->spins, true, false};
    const struct side_launch empty = {INCREMENT, 0, BYTES, 1, 1, 1, 0, false, steps & SET_ONCE};
    for (unsigned i = 0; i < count; i++) {
        if (steps & COPY)
            calls->copy(side, 0, true, 0, 0, BYTES);
        if (steps & LAUNCH)
            calls->launch(side, 0, &launch);
        if (steps & SPIN)
            calls->launch(side, 0, &spin);
        if (steps & EMPTY)
            calls->launch(side, 0, &empty);
        if (steps & RECORD)
            calls->record(side, 0, i);
        if (steps & WAIT)
            calls->wait(side, 1, i);
        if (steps & SYNC)
            calls->sync(side, i);
    }
}

static void finish(struct side *side)
{
    side->calls->finish(side, 0);
    side->calls->finish(side, 1);
}

// Measuring.

// Nanoseconds a repetition.
static double time_side(struct submit *s, const struct kind *kind, struct side *side)
{
    uint64_t total = 0;
    if (kind->without_context && side == &s->weir)
        s->raw.cu.cuCtxSetCurrent(NULL);
    for (uint64_t done = 0; done < s->operations;) {
        const uint64_t left = s->operations - done;
        const size_t count = left < BATCH ? (size_t)left : BATCH;
        if (kind->prepare)
            run_steps(s, side, kind->prepare, count);
        const uint64_t began = cli_now_ns();
        run_steps(s, side, kind->steps, count);
        const uint64_t submitted = cli_now_ns();
        finish(side);
        total += (s->part->to_the_end ? cli_now_ns() : submitted) - began;
        done += count;
    }
    if (s->raw.cu.context)
        s->raw.cu.cuCtxSetCurrent(s->raw.cu.context);
    return (double)total / (double)s->operations;
}

static void report(struct submit *s)
{
    const struct part *part = s->part;
    const struct bench_column columns[] = {
        {"name", "call", BENCH_TEXT, 0},        {"about", "", BENCH_TEXT, 0},
        {"weir_ns", "Weir", BENCH_SPREAD, 1},   {"other_ns", part->other, BENCH_SPREAD, 1},
        {"added_ns", "added", BENCH_SPREAD, 1}, {"ratio", "ratio", BENCH_SPREAD, 3},
    };
    char title[256];
    snprintf(title, sizeof title, "beside %s on %s, ns %s", part->calls->name,
             weir_device_get_info(s->weir.weir.device)->name,
             part->to_the_end ? "an operation" : "a call");
    struct bench_table *to = bench_table(part->key, title, columns);
    for (size_t i = 0; i < part->count; i++) {
        const struct bench_samples *weir = &s->rows[i].weir, *other = &s->rows[i].other;
        const struct bench_samples added = side_difference(weir, other);
        const struct bench_samples ratio = bench_ratio(weir, other);
        bench_row(to, part->kinds[i].name, part->kinds[i].about, weir, other, &added, &ratio);
    }
}

// The order of the two changes from turn to turn.
static void measure(struct submit *s)
{
    for (bench_start(); bench_turn();)
        for (size_t i = 0; i < s->part->count; i++)
            for (unsigned k = 0; k < 2; k++) {
                const bool weir = (bench.turn + k) % 2 == 0;
                bench_keep(weir ? &s->rows[i].weir : &s->rows[i].other,
                           time_side(s, &s->part->kinds[i], weir ? &s->weir : &s->raw));
            }
    report(s);
}

// Set-up.

// Kernels, memory and, where copies are measured, pinned memory with the numbers that memory has.
static void make(struct submit *s, struct side *side)
{
    uint32_t numbers[NUMBERS];
    for (uint32_t i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    side_queues(side, 2);
    side->calls->kernel(side, INCREMENT, "increment");
    side->calls->kernel(side, SPIN_KERNEL, "spin");
    side->calls->memory(side, 0, BYTES);
    if (s->part->kinds != cuda_kinds)
        return;
    side->calls->pinned(side, 0, BYTES);
    side->calls->upload(side, numbers, BYTES);
    side->calls->copy(side, 0, false, 0, 0, BYTES);
    finish(side);
}

// Nothing is timed unless both sides give the expected numbers, or the same one of a long kernel.
static void check(struct submit *s)
{
    struct side *const sides[] = {&s->weir, &s->raw};
    const bool is_cuda = s->part->kinds == cuda_kinds;
    uint32_t found[2][NUMBERS];
    for (int k = 0; k < 2; k++) {
        run_steps(s, sides[k], is_cuda ? SEQUENCE : SPIN, 1);
        if (is_cuda)
            run_steps(s, sides[k], LAUNCH, 2);
        finish(sides[k]);
        sides[k]->calls->download(sides[k], found[k], BYTES);
        bench.checked++;
    }
    for (uint32_t i = 0; i < (is_cuda ? NUMBERS : 1); i++) {
        const uint32_t right = !is_cuda ? found[1][i] : i < LAUNCHED ? i + 3 : i;
        if (found[0][i] != right || found[1][i] != right)
            cli_fail(CLI_FAILED,
                     "number %u must be %u; Weir's is %u, that of %s %u; nothing was timed",
                     (unsigned)i, (unsigned)right, (unsigned)found[0][i], s->part->calls->name,
                     (unsigned)found[1][i]);
    }
}

// As many steps as make an operation of at least LONG_NS on this device.
static void calibrate(struct submit *s)
{
    const uint64_t operations = s->operations;
    double ns = 0;
    s->operations = 50;
    for (s->spins = 1000; s->spins < UINT64_C(1) << 40 && ns < LONG_NS; s->spins += s->spins / 2)
        ns = time_side(s, &s->part->kinds[0], &s->raw);
    s->operations = operations;
    if (ns < LONG_NS)
        cli_fail(CLI_SETUP, "no operation of %d us could be made", LONG_NS / 1000);
}

// "cpu" begins the name of the serial device too.
static bool has_name(const char *name, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strncmp(name, wanted, length) == 0 && strncmp(name + length, "-minimal", 8) != 0;
}

// PoCL's first device for the part, else the first device of all.
static size_t device_for(weir_runtime *runtime, const struct part *part)
{
    struct weir_device_info info;
    for (size_t i = 0; part->devices[0] && i < weir_device_count(runtime); i++)
        if (weir_device_describe(runtime, i, &info) == WEIR_OK && cli_is_pocl(&info) &&
            (has_name(info.name, part->devices[0]) || has_name(info.name, part->devices[1])))
            return i;
    return 0;
}

static void run_part(struct submit *s, weir_runtime *runtime)
{
    char select[24];
    snprintf(select, sizeof select, "%zu", device_for(runtime, s->part));
    s->spins = 1000;
    s->weir.calls = &side_weir_calls;
    s->weir.weir.device = cli_device(runtime, select, NULL);
    s->raw.cl.wanted = weir_device_get_info(s->weir.weir.device)->name;
    s->weir.calls->load(&s->weir, &conformance_kernels);
    make(s, &s->weir);
    if (!side_open(&s->raw, s->part->calls, &conformance_kernels))
        return;
    make(s, &s->raw);
    check(s);
    if (s->part->kinds == long_kinds)
        calibrate(s);
    measure(s);
}

// NULL after a note where it is absent.
static weir_runtime *open_runtime(const char *backend, const char *name)
{
    weir_runtime *runtime;
    if (weir_open_at(WEIR_PARAMS(weir_open, .config_path = "", .backend = backend, .plugins = ""),
                     &runtime, NULL, 0) == WEIR_OK) {
        cli_own_runtime(runtime);
        return runtime;
    }
    bench_note("not measured: %s: %.250s", name, weir_last_error()->message);
    return NULL;
}

// Each part has objects of its own, since they are destroyed when all is done.
static void run(void *user)
{
    static struct submit all[BENCH_COUNT(parts)];
    const uint64_t operations = *(const uint64_t *)user;
    bench_parameter("operations", (double)operations);
    // PoCL lists its serial device only if POCL_DEVICES asks for it before PoCL is loaded.
    setenv("POCL_DEVICES", "pthread basic", 0);
    weir_runtime *runtime = open_runtime("cuda", "CUDA");
    for (size_t i = 0; i < BENCH_COUNT(parts); i++) {
        all[i].part = &parts[i];
        all[i].operations = operations;
        if (i == 1)
            runtime = open_runtime("opencl", "OpenCL");
        if (runtime)
            run_part(&all[i], runtime);
    }
}

static int submit_main(int argc, char **argv)
{
    static uint64_t operations = 10000;
    static const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &operations, 1, 100000000},
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
    return bench_main(&program, &operations, argc, argv);
}

const struct cli_command job_submit = {
    .name = "submit",
    .summary = "the cost of calls beside the driver's own",
    .main = submit_main,
};
