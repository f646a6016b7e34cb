// What graphs take beside their kernels.
#include "cli/calibrate/calibrate.h"

static const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};

// The first queue's kernel, and after it one in each of several queues, which the first waits for.
static bool submit_fork(struct calibration *c)
{
    struct weir_event event;
    if (!cal_submit(c, 0, &launch, 1))
        return false;
    if (weir_queue_record(c->queues[0], &event) < 0)
        return cal_fail_weir(c);
    for (size_t i = 1; i < CAL_BRANCHES; i++)
        if (weir_queue_wait(c->queues[i], event) < 0)
            return cal_fail_weir(c);
    for (size_t i = 0; i < CAL_BRANCHES; i++)
        if (!cal_submit(c, i, &launch, 1))
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
    if (!(kind == CAL_FORK ? submit_fork(c) : cal_submit(c, 0, &launch, length))) {
        weir_capture_cancel(c->queues[0]);
        return false;
    }
    return weir_capture_end(c->queues[0], NULL, &c->graphs[kind - CAL_GRAPH]) == WEIR_OK ||
           cal_fail_weir(c);
}

bool cal_create_graphs(struct calibration *c)
{
    for (int kind = CAL_GRAPH; kind < CAL_KINDS; kind++)
        if (!create_graph(c, (enum cal_kind)kind))
            return false;
    return true;
}

static bool measure_node_submit(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, lengthy = {.kind = CAL_LONG};
    double two = 0;
    (void)at;
    if (!cal_submits(c, &chain, &two) || !cal_submits(c, &lengthy, out_ns))
        return false;
    *out_ns = (*out_ns - two) / (CAL_LENGTH - 2);
    return true;
}

// Each branch but the first has a node, too.
static bool measure_branch(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, fork = {.kind = CAL_FORK};
    double plain = 0;
    (void)at;
    if (!cal_submits(c, &chain, &plain) || !cal_submits(c, &fork, out_ns))
        return false;
    *out_ns = (*out_ns - plain) / (CAL_BRANCHES - 1) - c->figures[CAL_SUBMIT_NODE].value;
    return true;
}

// A kernel of a graph takes less than one of a queue, so both lengths are of graphs.
static bool measure_node(struct calibration *c, double *out_two, double *out_ns)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, lengthy = {.kind = CAL_LONG};
    double all = 0;
    if (!cal_each(c, &chain, CAL_IN_A_ROW, out_two) || !cal_each(c, &lengthy, CAL_IN_A_ROW, &all))
        return false;
    *out_ns = (all - *out_two) / (CAL_LENGTH - 2);
    return true;
}

static bool measure_begin(struct calibration *c, size_t at, double *out_ns)
{
    double two = 0, node = 0;
    (void)at;
    if (!measure_node(c, &two, &node))
        return false;
    *out_ns = two - 2 * node;
    return true;
}

static bool measure_gap(struct calibration *c, size_t at, double *out_ns)
{
    double two = 0, node = 0;
    (void)at;
    if (!measure_node(c, &two, &node) || !cal_each(c, &launch, CAL_IN_A_ROW, out_ns))
        return false;
    *out_ns -= node;
    return true;
}

bool cal_measure_gap(struct calibration *c)
{
    return cal_figure_measure(c, measure_gap, 0, &c->figures[CAL_KERNEL_GAP]);
}

// The kernels of the branches run at once, as far as there is room for them.
static bool measure_join(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, fork = {.kind = CAL_FORK};
    const uint64_t places = (uint64_t)c->figures[CAL_KERNELS].value;
    const uint64_t turns = (CAL_BRANCHES + places - 1) / places;
    double kernel = 0, two = 0;
    (void)at;
    if (!cal_each(c, &launch, CAL_IN_A_ROW, &kernel) || !cal_each(c, &chain, CAL_IN_A_ROW, &two) ||
        !cal_each(c, &fork, CAL_IN_A_ROW, out_ns))
        return false;
    *out_ns -= two + (double)(turns - 1) * (kernel - c->figures[CAL_KERNEL_GAP].value);
    return true;
}

bool cal_measure_graphs(struct calibration *c)
{
    return cal_figure_measure(c, measure_node_submit, 0, &c->figures[CAL_SUBMIT_NODE]) &&
           cal_figure_measure(c, measure_branch, 0, &c->figures[CAL_SUBMIT_BRANCH]) &&
           cal_figure_measure(c, measure_begin, 0, &c->figures[CAL_GRAPH_BEGIN]) &&
           cal_figure_measure(c, measure_join, 0, &c->figures[CAL_GRAPH_JOIN]);
}
