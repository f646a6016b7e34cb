// The device, its queues, buffers and graphs, and work on them that is timed.
#include <stdarg.h>
#include <stdio.h>

#include "cli/calibrate/calibrate.h"
#include "cli/runtime/open.h"
#include "kernels/bench/bench.h"

#define LARGE_GPU ((size_t)64 << 20)
#define LARGE_CPU ((size_t)4 << 20)
#define LARGE_VIRTUAL ((size_t)16 << 20) // the bytes are copied too
#define SMALL ((size_t)4 << 10)

// Failures.

bool cal_fail_weir(struct calibration *c)
{
    c->code = cli_weir_error();
    return false;
}

bool cal_fail(struct calibration *c, int code, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_error("%s", text);
    c->code = code;
    return false;
}

// Work.

bool cal_reserve_queues(struct calibration *c, size_t count)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = "calibrate"};
    for (; c->queue_count < count; c->queue_count++)
        if (weir_queue_create(c->device, &params, &c->queues[c->queue_count]) < 0)
            return cal_fail_weir(c);
    return true;
}

static weir_status do_nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

// Kernels of different queues have numbers of their own.
static weir_status submit_one(struct calibration *c, size_t queue, const struct cal_work *work)
{
    const size_t bytes = CAL_BLOCK * sizeof(uint32_t);
    weir_queue *on = c->queues[queue];
    switch (work->kind) {
    case CAL_LAUNCH:
        return weir_queue_launch(on, c->kernel, weir_dim(1, 1, 1), weir_dim(CAL_BLOCK, 1, 1),
                                 weir_inout(c->numbers, queue * bytes, bytes), work->rounds,
                                 (uint32_t)CAL_BLOCK);
    case CAL_CALL:
        return weir_queue_host_call(on, do_nothing, NULL);
    case CAL_GRAPH:
    case CAL_CHAIN:
    case CAL_LONG:
    case CAL_FORK:
        return weir_queue_graph(on, c->graphs[work->kind - CAL_GRAPH]);
    default:
        return weir_queue_copy(on, c->to[work->kind], 0, c->from[work->kind], 0, work->bytes);
    }
}

bool cal_submit(struct calibration *c, size_t queue, const struct cal_work *work, uint64_t count)
{
    for (; count > 0; count--)
        if (submit_one(c, queue, work) < 0)
            return cal_fail_weir(c);
    return true;
}

bool cal_sync(struct calibration *c, size_t queue)
{
    struct weir_event end;
    return (weir_queue_record(c->queues[queue], &end) == WEIR_OK &&
            weir_event_sync(end, WEIR_FOREVER) == WEIR_OK) ||
           cal_fail_weir(c);
}

bool cal_gate(struct calibration *c, size_t queue)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    return cal_submit(c, queue, &large, c->gate_count);
}

bool cal_prepare(struct calibration *c, size_t queue, const struct cal_work *work)
{
    return cal_submit(c, queue, work, 1) && cal_sync(c, queue);
}

bool cal_time(struct calibration *c, const struct cal_work *work, uint64_t count, double *out_ns)
{
    *out_ns = 0;
    if (!cal_prepare(c, 0, work))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_submit(c, 0, work, count) || !cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

static bool time_turns(struct calibration *c, const struct cal_work *works, size_t kinds,
                       uint64_t turns, double *out_ns)
{
    const struct cal_work small = {.kind = CAL_UP, .bytes = c->sizes[0]};
    if (!cal_prepare(c, 0, &small))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_gate(c, 0))
        return false;
    for (uint64_t i = 0; i < kinds * turns; i++)
        if (!cal_submit(c, 0, &works[i % kinds], 1))
            return false;
    if (!cal_sync(c, 0))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

bool cal_each(struct calibration *c, const struct cal_work *works, size_t kinds, uint64_t turns,
              double *out_ns)
{
    double few = 0, many = 0;
    *out_ns = 0;
    if (!time_turns(c, works, kinds, turns, &few) || !time_turns(c, works, kinds, 2 * turns, &many))
        return false;
    *out_ns = (many - few) / (double)turns;
    return true;
}

// Both at once, each on a queue of its own.
static bool time_pair(struct calibration *c, const struct cal_work *a, const struct cal_work *b,
                      double *out_ns)
{
    if (!cal_prepare(c, 0, a) || !cal_prepare(c, 1, b))
        return false;
    const uint64_t began = cli_now_ns();
    if (!cal_submit(c, 0, a, 1) || !cal_submit(c, 1, b, 1))
        return false;
    if (weir_queue_flush(c->queues[1]) < 0)
        return cal_fail_weir(c);
    if (!cal_sync(c, 0) || !cal_sync(c, 1))
        return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

bool cal_hidden(struct calibration *c, enum cal_kind a, enum cal_kind b, double *out_share)
{
    const struct cal_work one = {.kind = a, .bytes = c->large};
    const struct cal_work other = {.kind = b, .bytes = c->large};
    double one_ns = 0, other_ns = 0, both_ns = 0;
    *out_share = 0;
    if (!cal_time(c, &one, 1, &one_ns) || !cal_time(c, &other, 1, &other_ns) ||
        !time_pair(c, &one, &other, &both_ns))
        return false;
    *out_share = (one_ns + other_ns - both_ns) / (one_ns < other_ns ? one_ns : other_ns);
    return true;
}

bool cal_submits(struct calibration *c, size_t queues, const struct cal_work *works, size_t kinds,
                 double *out_ns)
{
    *out_ns = 0;
    for (size_t i = 0; i < queues; i++)
        if (!cal_prepare(c, i, &works[0]))
            return false;
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < CAL_SUBMITS; i++)
        if (!cal_submit(c, i / kinds % queues, &works[i % kinds], 1))
            return false;
    *out_ns = (double)(cli_now_ns() - began) / CAL_SUBMITS;
    for (size_t i = 0; i < queues; i++)
        if (!cal_sync(c, i))
            return false;
    return true;
}

// The device.

static bool open_device(struct calibration *c)
{
    const struct weir_device_params params = {.struct_size = sizeof params,
                                              .label = "calibrate",
                                              .select = c->select};
    if (cli_open(c->config, NULL, &c->runtime) < 0 ||
        (weir_device_open)(c->runtime, &params, &c->device) < 0)
        return cal_fail_weir(c);
    c->limits = weir_device_limits(c->device);
    cli_clock_use(weir_runtime_extension(c->runtime, WEIR_HOST_CLOCK));
    return true;
}

static bool create_buffer(struct calibration *c, size_t size, weir_placement placement,
                          weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = "calibrate",
                                              .size = size,
                                              .placement = placement};
    return weir_buffer_create(c->device, &params, out_buffer) == WEIR_OK || cal_fail_weir(c);
}

static bool create_buffers(struct calibration *c)
{
    const size_t numbers = CAL_QUEUES * (CAL_BLOCK * sizeof(uint32_t));
    const bool cpu = c->limits->unified_memory && !c->limits->copy_engines_to_device;
    const size_t most = cli_clock_is_virtual() ? LARGE_VIRTUAL : cpu ? LARGE_CPU : LARGE_GPU;
    for (size_t size = SMALL; size <= most; size *= 4)
        c->sizes[c->size_count++] = c->large = size;
    c->gate_count = 1;
    return create_buffer(c, c->large, WEIR_PLACE_HOST, &c->from[CAL_UP]) &&
           create_buffer(c, c->large, WEIR_PLACE_DEVICE, &c->to[CAL_UP]) &&
           create_buffer(c, c->large, WEIR_PLACE_DEVICE, &c->from[CAL_DOWN]) &&
           create_buffer(c, c->large, WEIR_PLACE_HOST, &c->to[CAL_DOWN]) &&
           create_buffer(c, c->large, WEIR_PLACE_DEVICE, &c->from[CAL_WITHIN]) &&
           create_buffer(c, c->large, WEIR_PLACE_DEVICE, &c->to[CAL_WITHIN]) &&
           create_buffer(c, numbers, WEIR_PLACE_DEVICE, &c->numbers);
}

static bool create_kernel(struct calibration *c)
{
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .label = "calibrate",
                                               .bundle = &bench_kernels};
    return (weir_program_create(c->device, &params, &c->program) == WEIR_OK &&
            weir_kernel_create(c->program, "advance", &c->kernel) == WEIR_OK) ||
           cal_fail_weir(c);
}

// Graphs.

static const struct cal_work single = {.kind = CAL_LAUNCH, .rounds = 1};

// The first queue's kernel, and after it one in each of several queues, which the first waits for.
static bool submit_fork(struct calibration *c)
{
    struct weir_event event;
    if (!cal_submit(c, 0, &single, 1))
        return false;
    if (weir_queue_record(c->queues[0], &event) < 0)
        return cal_fail_weir(c);
    for (size_t i = 1; i < CAL_BRANCHES; i++)
        if (weir_queue_wait(c->queues[i], event) < 0)
            return cal_fail_weir(c);
    for (size_t i = 0; i < CAL_BRANCHES; i++)
        if (!cal_submit(c, i, &single, 1))
            return false;
    for (size_t i = 1; i < CAL_BRANCHES; i++)
        if (weir_queue_record(c->queues[i], &event) < 0 || weir_queue_wait(c->queues[0], event) < 0)
            return cal_fail_weir(c);
    return true;
}

static bool create_graph(struct calibration *c, enum cal_kind kind)
{
    if (weir_capture_begin(c->queues[0]) < 0)
        return cal_fail_weir(c);
    const uint64_t length = kind == CAL_LONG ? CAL_LENGTH : kind == CAL_CHAIN ? 2 : 1;
    if (!(kind == CAL_FORK ? submit_fork(c) : cal_submit(c, 0, &single, length))) {
        weir_capture_cancel(c->queues[0]);
        return false;
    }
    return weir_capture_end(c->queues[0], NULL, &c->graphs[kind - CAL_GRAPH]) == WEIR_OK ||
           cal_fail_weir(c);
}

static bool create_graphs(struct calibration *c)
{
    for (int kind = CAL_GRAPH; kind < CAL_KINDS; kind++)
        if (!create_graph(c, (enum cal_kind)kind))
            return false;
    return true;
}

// Runs the kernel once on zeros.
static bool runs_kernels(struct calibration *c, bool *out_runs)
{
    const uint32_t zero = 0;
    uint32_t number = 0;
    if (weir_queue_fill(c->queues[0], c->numbers, 0, CAL_BLOCK * sizeof zero, &zero, sizeof zero) <
        0)
        return cal_fail_weir(c);
    if (!cal_submit(c, 0, &single, 1))
        return false;
    if (weir_download(c->queues[0], &number, c->numbers, 0, sizeof number) < 0)
        return cal_fail_weir(c);
    *out_runs = number != 0;
    return true;
}

static bool check_times(struct calibration *c)
{
    bool runs = false;
    if (cli_clock_is_virtual())
        return true;
    if (!runs_kernels(c, &runs))
        return false;
    return runs ||
           cal_fail(c, CLI_SETUP,
                    "the device '%s' of the backend %s runs no kernels, so its times tell "
                    "nothing of a GPU; choose another backend, or a modelled GPU with weir "
                    "sim",
                    weir_device_get_info(c->device)->name, weir_runtime_backend(c->runtime));
}

bool cal_open(struct calibration *c)
{
    return open_device(c) && cal_reserve_queues(c, CAL_BRANCHES) && create_kernel(c) &&
           create_buffers(c) && check_times(c) && create_graphs(c);
}

void cal_close(struct calibration *c)
{
    for (size_t i = 0; i < c->queue_count; i++)
        weir_queue_destroy(&c->queues[i]);
    for (size_t i = 0; i < CAL_COPIES; i++) {
        weir_buffer_destroy(&c->from[i]);
        weir_buffer_destroy(&c->to[i]);
    }
    weir_buffer_destroy(&c->numbers);
    for (size_t i = 0; i < CAL_KINDS - CAL_GRAPH; i++)
        weir_graph_destroy(&c->graphs[i]);
    weir_kernel_destroy(&c->kernel);
    weir_program_destroy(&c->program);
    cli_clock_use(NULL);
    if (weir_device_close(&c->peer) < 0)
        cal_fail_weir(c);
    c->code = cli_close(&c->device, &c->runtime, c->code);
}
