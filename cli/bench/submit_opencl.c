// Weir on OpenCL beside plain OpenCL. Both sides submit the same launches to one
// in-order queue and wait for it every WINDOW operations, so that neither runs
// into a driver's limit on pending work.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/peer_opencl.h"
#include "cli/bench/submit.h"
#include "cli/common/progress.h"
#include "cli/runtime/devices.h"
#include "kernels/conformance/conformance.h"

enum {
    WINDOW = 500,
    BUFFER_BYTES = 4096,
    SEED = 12345,
    LONG_NS = 25000
};

struct side_by_side {
    weir_device *device;
    weir_queue *queue;
    weir_program *program;
    weir_kernel *spin;
    weir_kernel *increment;
    weir_buffer *buffer;
    bench_cl *peer;
    uint64_t steps; // of a long operation
    char name[128]; // the device's
};

// The ways of doing one operation.
enum way {
    WEIR_LONG,
    PEER_LONG,
    WEIR_EMPTY,
    PEER_EMPTY,
    PEER_EMPTY_SET_ONCE
};

static bool do_one(struct side_by_side *s, enum way way)
{
    const struct weir_extent one = weir_dim(1, 1, 1);
    switch (way) {
    case WEIR_LONG:
        return weir_queue_launch(s->queue, s->spin, one, one,
                                 weir_inout(s->buffer, 0, BUFFER_BYTES), (uint32_t)SEED,
                                 s->steps) == WEIR_OK;
    case PEER_LONG:
        return bench_cl_spin(s->peer, SEED, s->steps);
    case WEIR_EMPTY:
        return weir_queue_launch(s->queue, s->increment, one, one,
                                 weir_inout(s->buffer, 0, BUFFER_BYTES), 1u, 0u) == WEIR_OK;
    case PEER_EMPTY:
        return bench_cl_empty(s->peer, true);
    case PEER_EMPTY_SET_ONCE:
        return bench_cl_empty(s->peer, false);
    }
    return false;
}

static bool finish(struct side_by_side *s, enum way way)
{
    if (way == WEIR_LONG || way == WEIR_EMPTY)
        return weir_queue_sync(s->queue, WEIR_FOREVER) == WEIR_OK;
    return bench_cl_finish(s->peer);
}

// Nanoseconds an operation, from the first submit to the end of the last;
// negative on failure.
static double time_way(struct side_by_side *s, enum way way, uint64_t operations)
{
    const uint64_t began = cli_now_ns();
    for (uint64_t i = 0; i < operations; i++) {
        if (!do_one(s, way))
            return -1;
        if ((i + 1) % WINDOW == 0 && !finish(s, way))
            return -1;
    }
    if (!finish(s, way))
        return -1;
    return (double)(cli_now_ns() - began) / (double)operations;
}

// How many steps make an operation of at least LONG_NS on this device.
static bool calibrate(struct side_by_side *s)
{
    for (s->steps = 1000; s->steps < UINT64_C(1) << 40; s->steps += s->steps / 2) {
        const double ns = time_way(s, PEER_LONG, 50);
        if (ns < 0)
            return false;
        if (ns >= LONG_NS)
            return true;
    }
    return false;
}

// Nothing is timed unless both sides give the same number.
static bool same_results(struct side_by_side *s)
{
    uint32_t weir = 0, peer = 1;
    return do_one(s, WEIR_LONG) && do_one(s, PEER_LONG) &&
           weir_download(s->queue, &weir, s->buffer, 0, sizeof weir) == WEIR_OK &&
           bench_cl_read(s->peer, &peer) && weir == peer;
}

static weir_status make_weir(struct side_by_side *s, weir_runtime *runtime, size_t index)
{
    char select[32];
    snprintf(select, sizeof select, "%zu", index);
    const struct weir_device_params device = {.struct_size = sizeof device, .select = select};
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "bench"};
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .label = "bench",
                                                .bundle = &conformance_kernels};
    const struct weir_buffer_params buffer = {.struct_size = sizeof buffer,
                                              .label = "bench",
                                              .size = BUFFER_BYTES};
    weir_status status;
    if ((status = (weir_device_open)(runtime, &device, &s->device)) ||
        (status = weir_queue_create(s->device, &queue, &s->queue)) ||
        (status = weir_program_create(s->device, &program, &s->program)) ||
        (status = weir_kernel_create(s->program, "spin", &s->spin)) ||
        (status = weir_kernel_create(s->program, "increment", &s->increment)))
        return status;
    return weir_buffer_create(s->device, &buffer, &s->buffer);
}

static const char *opencl_source(void)
{
    for (uint32_t i = 0; i < conformance_kernels.image_count; i++)
        if (weir_image_is(&conformance_kernels.images[i], WEIR_IMAGE_OPENCL_C))
            return conformance_kernels.images[i].data;
    return "";
}

static void destroy(struct side_by_side *s)
{
    bench_cl_close(&s->peer);
    weir_buffer_destroy(&s->buffer);
    weir_kernel_destroy(&s->increment);
    weir_kernel_destroy(&s->spin);
    weir_program_destroy(&s->program);
    weir_queue_destroy(&s->queue);
    weir_device_close(&s->device);
}

// `pairs` holds ways two by two, Weir's and the other, one pair a row.
static bool take_turns(struct submit *submit, struct side_by_side *s, struct submit_row *rows,
                       const enum way (*pairs)[2], size_t pair_count)
{
    for (bench_start(submit->bench, 2 * pair_count); bench_turn(submit->bench);)
        for (size_t i = 0; i < pair_count; i++) {
            const double weir = time_way(s, pairs[i][0], submit->operations);
            const double other = time_way(s, pairs[i][1], submit->operations);
            if (weir < 0 || other < 0)
                return bench_fail(submit->bench, CLI_SETUP,
                                  "an operation failed on '%s' while it was timed: %s", s->name,
                                  weir_last_error_text());
            bench_keep(submit->bench, &rows[i].weir, weir);
            bench_keep(submit->bench, &rows[i].other, other);
        }
    return true;
}

static bool measure_long(struct submit *submit, struct side_by_side *s)
{
    static const enum way pairs[][2] = {{WEIR_LONG, PEER_LONG}};
    struct submit_row rows[] = {
        {.name = "long", .about = "operations of 25 us and more, end to end"}};
    char title[256];
    if (!calibrate(s))
        return bench_fail(submit->bench, CLI_SETUP, "no operation of %d us could be made on '%s'",
                          LONG_NS / 1000, s->name);
    if (!take_turns(submit, s, rows, pairs, 1))
        return false;
    snprintf(title, sizeof title, "beside plain OpenCL on %s, ns an operation", s->name);
    submit_table(submit->bench, "opencl_long", title, "OpenCL", rows, 1, true);
    return true;
}

static bool measure_empty(struct submit *submit, struct side_by_side *s)
{
    static const enum way pairs[][2] = {{WEIR_EMPTY, PEER_EMPTY},
                                        {WEIR_EMPTY, PEER_EMPTY_SET_ONCE}};
    struct submit_row rows[] = {
        {.name = "empty", .about = "empty launches"},
        {.name = "empty_set_once", .about = "empty launches, the peer's arguments set once"},
    };
    char title[256];
    if (!take_turns(submit, s, rows, pairs, 2))
        return false;
    snprintf(title, sizeof title, "beside plain OpenCL on %s, ns an operation", s->name);
    submit_table(submit->bench, "opencl_empty", title, "OpenCL", rows, 2, true);
    return true;
}

static bool open_side_by_side(struct submit *submit, struct side_by_side *s, weir_runtime *runtime,
                              size_t index)
{
    struct weir_device_info info;
    char message[512];
    if (weir_device_describe(runtime, index, &info) != WEIR_OK ||
        make_weir(s, runtime, index) != WEIR_OK)
        return bench_fail_weir(submit->bench);
    snprintf(s->name, sizeof s->name, "%s", info.name);
    s->peer = bench_cl_open(info.name, opencl_source(), BUFFER_BYTES, message, sizeof message);
    if (!s->peer)
        return bench_fail(submit->bench, CLI_SETUP, "%s", message);
    if (!same_results(s))
        return bench_fail_result(
            submit->bench,
            "Weir and plain OpenCL gave different results on '%s'; nothing was timed", info.name);
    submit->bench->checked++;
    return true;
}

static bool measure_device(struct submit *submit, weir_runtime *runtime, size_t index,
                           bool (*measure)(struct submit *, struct side_by_side *))
{
    struct side_by_side s = {.steps = 1000};
    const bool fine = open_side_by_side(submit, &s, runtime, index) && measure(submit, &s);
    destroy(&s);
    return fine;
}

// What is measured, and the names of PoCL's devices for it: before PoCL 6, and since. The serial device
// runs an empty launch within its submit.
static const struct part {
    const char *names[2];
    bool (*measure)(struct submit *, struct side_by_side *);
} parts[] = {{{"pthread", "cpu"}, measure_long}, {{"basic", "cpu-minimal"}, measure_empty}};

// "cpu" begins the name of the serial device too.
static bool has_name(const char *name, const char *wanted)
{
    const size_t length = strlen(wanted);
    return strncmp(name, wanted, length) == 0 && strncmp(name + length, "-minimal", 8) != 0;
}

// PoCL's first device for the part; -1: none.
static long find_of_pocl(weir_runtime *runtime, const struct part *part)
{
    struct weir_device_info info;
    for (size_t i = 0; i < weir_device_count(runtime); i++)
        if (weir_device_describe(runtime, i, &info) == WEIR_OK && cli_is_pocl(&info) &&
            (has_name(info.name, part->names[0]) || has_name(info.name, part->names[1])))
            return (long)i;
    return -1;
}

// The index of the device that the configuration chooses; -1: it cannot be opened.
static long find_chosen(weir_runtime *runtime)
{
    struct weir_device_info info;
    weir_device *device = NULL;
    long found = -1;
    if ((weir_device_open)(runtime, NULL, &device) != WEIR_OK)
        return -1;
    for (size_t i = 0; i < weir_device_count(runtime) && found < 0; i++)
        if (weir_device_describe(runtime, i, &info) == WEIR_OK &&
            strcmp(info.name, weir_device_get_info(device)->name) == 0)
            found = (long)i;
    weir_device_close(&device);
    return found;
}

// PoCL has a device for each part, unless the configuration chooses another than the first of all.
static bool measure_part(struct submit *submit, weir_runtime *runtime, const struct part *part)
{
    const long chosen = find_chosen(runtime);
    const long pocl = chosen > 0 ? -1 : find_of_pocl(runtime, part);
    if (chosen < 0)
        return bench_fail_weir(submit->bench);
    return measure_device(submit, runtime, (size_t)(pocl >= 0 ? pocl : chosen), part->measure);
}

bool submit_opencl(struct submit *submit)
{
    weir_runtime *runtime = NULL;
    bool fine = true;
    // PoCL lists its serial device only if POCL_DEVICES asks for it before PoCL is loaded.
    setenv("POCL_DEVICES", "pthread basic", 0);
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .backend = "opencl",
                                            .plugins = ""};
    if ((weir_open)(&params, &runtime) < 0) {
        bench_note(submit->bench, "not measured: OpenCL: %s", weir_last_error()->message);
        return true;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts && fine; i++)
        fine = measure_part(submit, runtime, &parts[i]);
    weir_close(&runtime);
    return fine;
}
