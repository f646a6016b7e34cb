// The device, its queues, buffers and graphs, and work on them that is timed.
#include "cli/calibrate/calibrate.h"
#include "kernels/bench/bench.h"

#define LARGE_GPU ((size_t)64 << 20)
#define LARGE_CPU ((size_t)4 << 20)
#define LARGE_VIRTUAL ((size_t)16 << 20) // the bytes are copied too
#define SMALL ((size_t)4 << 10)

// Work.

void cal_reserve_queues(struct calibration *c, size_t count)
{
    for (; c->queue_count < count; c->queue_count++)
        bench_queue(c->bench->device, "calibrate", 0, &c->queues[c->queue_count]);
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

void cal_submit(struct calibration *c, size_t queue, const struct cal_work *work, uint64_t count)
{
    for (; count > 0; count--)
        cli_fine(submit_one(c, queue, work));
}

void cal_sync(struct calibration *c, size_t queue)
{
    struct weir_event end;
    cli_fine(weir_queue_record(c->queues[queue], &end));
    cli_fine(weir_event_sync(end, WEIR_FOREVER));
}

void cal_gate(struct calibration *c, size_t queue)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    cal_submit(c, queue, &large, c->gate_count);
}

void cal_prepare(struct calibration *c, size_t queue, const struct cal_work *work)
{
    cal_submit(c, queue, work, 1);
    cal_sync(c, queue);
}

double cal_time(struct calibration *c, const struct cal_work *work, uint64_t count)
{
    cal_prepare(c, 0, work);
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, work, count);
    cal_sync(c, 0);
    return (double)(cli_now_ns() - began);
}

static double time_turns(struct calibration *c, const struct cal_work *works, size_t kinds,
                         uint64_t turns)
{
    const struct cal_work small = {.kind = CAL_UP, .bytes = c->sizes[0]};
    cal_prepare(c, 0, &small);
    const uint64_t began = cli_now_ns();
    cal_gate(c, 0);
    for (uint64_t i = 0; i < kinds * turns; i++)
        cal_submit(c, 0, &works[i % kinds], 1);
    cal_sync(c, 0);
    return (double)(cli_now_ns() - began);
}

double cal_each(struct calibration *c, const struct cal_work *works, size_t kinds, uint64_t turns)
{
    const double few = time_turns(c, works, kinds, turns);
    return (time_turns(c, works, kinds, 2 * turns) - few) / (double)turns;
}

// Both at once, each on a queue of its own.
static double time_pair(struct calibration *c, const struct cal_work *a, const struct cal_work *b)
{
    cal_prepare(c, 0, a);
    cal_prepare(c, 1, b);
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, a, 1);
    cal_submit(c, 1, b, 1);
    cli_fine(weir_queue_flush(c->queues[1]));
    cal_sync(c, 0);
    cal_sync(c, 1);
    return (double)(cli_now_ns() - began);
}

double cal_hidden(struct calibration *c, enum cal_kind a, enum cal_kind b)
{
    const struct cal_work one = {.kind = a, .bytes = c->large};
    const struct cal_work other = {.kind = b, .bytes = c->large};
    const double one_ns = cal_time(c, &one, 1), other_ns = cal_time(c, &other, 1);
    return (one_ns + other_ns - time_pair(c, &one, &other)) /
           (one_ns < other_ns ? one_ns : other_ns);
}

double cal_submits(struct calibration *c, size_t queues, const struct cal_work *works, size_t kinds)
{
    for (size_t i = 0; i < queues; i++)
        cal_prepare(c, i, &works[0]);
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < CAL_SUBMITS; i++)
        cal_submit(c, i / kinds % queues, &works[i % kinds], 1);
    const double ns = (double)(cli_now_ns() - began) / CAL_SUBMITS;
    for (size_t i = 0; i < queues; i++)
        cal_sync(c, i);
    return ns;
}

// The device.

static void create_buffers(struct calibration *c)
{
    const weir_placement host = WEIR_PLACE_HOST, device = WEIR_PLACE_DEVICE;
    const bool cpu = c->bench->limits->kind == WEIR_DEVICE_CPU;
    const size_t most = cli_clock_is_virtual() ? LARGE_VIRTUAL : cpu ? LARGE_CPU : LARGE_GPU;
    weir_device *on = c->bench->device;
    for (size_t size = SMALL; size <= most; size *= 4)
        c->sizes[c->size_count++] = c->large = size;
    c->gate_count = 1;
    for (int kind = CAL_UP; kind <= CAL_WITHIN; kind++) {
        bench_buffer(on, "calibrate", c->large, kind == CAL_UP ? host : device, &c->from[kind]);
        bench_buffer(on, "calibrate", c->large, kind == CAL_DOWN ? host : device, &c->to[kind]);
    }
    bench_buffer(on, "calibrate", CAL_QUEUES * (CAL_BLOCK * sizeof(uint32_t)), device, &c->numbers);
}

// Graphs.

static const struct cal_work single = {.kind = CAL_LAUNCH, .rounds = 1};

// The first queue's kernel, and after it one in each of several queues, which the first waits for.
static void submit_fork(struct calibration *c)
{
    struct weir_event event;
    cal_submit(c, 0, &single, 1);
    cli_fine(weir_queue_record(c->queues[0], &event));
    for (size_t i = 1; i < CAL_BRANCHES; i++)
        cli_fine(weir_queue_wait(c->queues[i], event));
    for (size_t i = 0; i < CAL_BRANCHES; i++)
        cal_submit(c, i, &single, 1);
    for (size_t i = 1; i < CAL_BRANCHES; i++) {
        cli_fine(weir_queue_record(c->queues[i], &event));
        cli_fine(weir_queue_wait(c->queues[0], event));
    }
}

CLI_DESTROYER(destroy_graph, weir_graph_destroy)

static void create_graph(struct calibration *c, enum cal_kind kind)
{
    const uint64_t length = kind == CAL_LONG ? CAL_LENGTH : kind == CAL_CHAIN ? 2 : 1;
    weir_graph **graph = &c->graphs[kind - CAL_GRAPH];
    cli_fine(weir_capture_begin(c->queues[0]));
    if (kind == CAL_FORK)
        submit_fork(c);
    else
        cal_submit(c, 0, &single, length);
    cli_fine(weir_capture_end(c->queues[0], NULL, graph));
    cli_own(destroy_graph, graph, NULL);
}

// Runs the kernel once on zeros.
static void check_times(struct calibration *c)
{
    static const uint32_t zero = 0;
    const size_t bytes = CAL_BLOCK * sizeof zero;
    uint32_t number = 0;
    if (cli_clock_is_virtual())
        return;
    cli_fine(weir_queue_fill(c->queues[0], c->numbers, 0, bytes, &zero, sizeof zero));
    cal_submit(c, 0, &single, 1);
    cli_fine(weir_download(c->queues[0], &number, c->numbers, 0, sizeof number));
    if (number == 0)
        cli_fail(
            CLI_SETUP,
            "the device '%s' of the backend %s runs no kernels, so its times tell nothing of a "
            "GPU; choose another backend, or a modelled GPU with weir sim",
            weir_device_get_info(c->bench->device)->name, weir_runtime_backend(c->bench->runtime));
}

void cal_open(struct calibration *c)
{
    create_buffers(c);
    cal_reserve_queues(c, CAL_BRANCHES);
    bench_kernel(c->bench->device, &bench_kernels, "advance", &c->program, &c->kernel);
    check_times(c);
    for (int kind = CAL_GRAPH; kind < CAL_KINDS; kind++)
        create_graph(c, (enum cal_kind)kind);
}
