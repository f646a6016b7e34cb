// The job `submit`: what calls cost the thread that submits, through Weir and by the driver's own calls: on
// CUDA a copy, a launch, a record and a wait, together and each alone; on OpenCL long operations end to end,
// and empty launches. Waiting for the device is not timed, except where it says so.

#include "tests/bench/jobs/drivers.h"

#define LONG_NS 25000

static const struct submit_kind cuda_kinds[] = {
    {"sequence", "copy, launch, record, wait", 0, SUBMIT_SEQUENCE},
    {"sequence_no_context", "the same, no context current for Weir", 0,
     SUBMIT_SEQUENCE | SUBMIT_NO_CONTEXT},
    {"copy", "copy of 4 KiB up", 0, SUBMIT_COPY},
    {"launch", "launch with 3 arguments", 0, SUBMIT_LAUNCH},
    {"record", "record", 0, SUBMIT_RECORD},
    {"wait", "wait for another queue", SUBMIT_RECORD, SUBMIT_WAIT},
    {"round_trip", "launch, record, and the host waits", 0,
     SUBMIT_LAUNCH | SUBMIT_RECORD | SUBMIT_SYNC},
};
static const struct submit_kind long_kinds[] = {
    {"long", "operations of 25 us and more, end to end", 0, SUBMIT_SPIN},
};
static const struct submit_kind empty_kinds[] = {
    {"empty", "empty launches", 0, SUBMIT_EMPTY},
    {"empty_set_once", "empty launches, the peer's arguments set once", 0,
     SUBMIT_EMPTY | SUBMIT_SET_ONCE},
};

// What is measured on one device, beside which side. PoCL's serial device, its second one here, runs an empty launch
// within its submit.
struct part {
    size_t device; // of PoCL, where that is; else the first one
    const char *key;
    const struct side_calls *calls;
    const struct submit_kind *kinds;
    size_t count;
    bool to_the_end; // the wait for the device is timed too
};

static const struct part parts[] = {
    {0, "cuda", &side_cuda_calls, cuda_kinds, BENCH_COUNT(cuda_kinds), false},
    {0, "opencl_long", &side_opencl_calls, long_kinds, 1, true},
    {1, "opencl_empty", &side_opencl_calls, empty_kinds, 2, true},
};

// As many steps as make an operation of at least LONG_NS on this device.
static void calibrate(struct submit *s)
{
    const uint64_t operations = s->operations;
    double ns = 0;
    s->operations = 50;
    for (s->spins = 1000; s->spins < UINT64_C(1) << 40 && ns < LONG_NS; s->spins += s->spins / 2)
        ns = bench_submit_time(s, &s->kinds[0], 1);
    s->operations = operations;
    if (ns < LONG_NS)
        cli_fail(CLI_SETUP, "no operation of %d us could be made", LONG_NS / 1000);
}

static size_t device_for(weir_runtime *runtime, const struct part *part)
{
    struct weir_device_info info;
    size_t left = part->device;
    for (size_t i = 0; i < weir_device_count(runtime); i++)
        if (weir_device_describe(runtime, i, &info) == WEIR_OK &&
            strcmp(info.platform, "Portable Computing Language") == 0 && left-- == 0)
            return i;
    return 0;
}

static void run_part(const struct part *part, uint64_t operations, struct side *sides,
                     weir_runtime *runtime)
{
    const bool is_cuda = part->kinds == cuda_kinds;
    struct submit s = {.kinds = part->kinds,
                       .count = part->count,
                       .operations = operations,
                       .spins = is_cuda ? 0 : 1000,
                       .copied = SUBMIT_BYTES,
                       .added = 1,
                       .to_the_end = part->to_the_end,
                       .sides = {&sides[0], &sides[1]}};
    weir_device *device = cli_device(runtime, cli_text("%zu", device_for(runtime, part)), NULL);
    if (!bench_submit_open(&sides[0], &side_weir_calls, device) ||
        !bench_submit_open(&sides[1], part->calls, device))
        return;
    bench_submit_check(&s);
    if (part->kinds == long_kinds)
        calibrate(&s);
    bench_submit_measure(&s, part->key,
                         cli_text("beside %s on %s, ns %s", part->calls->name,
                                  weir_device_get_info(device)->name,
                                  part->to_the_end ? "an operation" : "a call"));
}

// NULL after a note where the backend is absent.
static weir_runtime *open_runtime(const char *backend, const char *name)
{
    weir_runtime *runtime;
    if (weir_open(WEIR_PARAMS(weir_open, .config_path = bench.config ? bench.config : "",
                              .backend = backend, .plugins = ""),
                  &runtime) == WEIR_OK) {
        cli_own_runtime(runtime);
        return runtime;
    }
    bench_note("not measured: %s: %.250s", name, weir_last_error()->message);
    return NULL;
}

// Each part has objects of its own, since they are destroyed when all is done.
static void run(void *user)
{
    static struct side sides[BENCH_COUNT(parts)][2];
    const uint64_t operations = *(const uint64_t *)user;
    bench_parameter("operations", (double)operations);
    // PoCL lists its serial device only if POCL_DEVICES asks for it before PoCL is loaded.
    setenv("POCL_DEVICES", "pthread basic", 0);
    weir_runtime *runtime = open_runtime("cuda", "CUDA");
    for (size_t i = 0; i < BENCH_COUNT(parts); i++) {
        if (i == 1)
            runtime = open_runtime("opencl", "OpenCL");
        if (runtime)
            run_part(&parts[i], operations, sides[i], runtime);
    }
}

int job_submit(int argc, char **argv)
{
    static uint64_t operations = 10000;
    static const struct cli_option options[] = {
        {"operations", "N", "calls in a turn (10000)", CLI_COUNT, &operations, 1, 100000000},
    };
    static const struct bench_program program = {
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_devices = true,
        .run = run,
    };
    return bench_main(&program, &operations, argc, argv);
}
