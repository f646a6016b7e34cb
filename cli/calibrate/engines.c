#include "cli/calibrate/calibrate.h"

enum {
    CHANNELS_MOST = 128,
    VOTES = 3, // runs that decide what is true or false
};

#define ROUNDS_MOST (UINT32_C(1) << 26)
#define KERNEL_NS 5e6

static uint64_t votes_of(void)
{
    return cli_clock_is_virtual() ? 1 : VOTES;
}

// Channels. A kernel waits for large copies of its queue; the same, of another queue, is submitted after
// it. Whether that waits too.

static const struct cal_work blocked = {.kind = CAL_LAUNCH, .rounds = 1};

static bool submit_blocked(struct calibration *c)
{
    if (!cal_gate(c, 0) || !cal_submit(c, 0, &blocked, 1))
        return false;
    return weir_queue_flush(c->queues[0]) >= 0 || cal_fail_weir(c);
}

static bool holds_up(struct calibration *c, size_t queue, bool *out_held)
{
    const uint64_t began = cli_now_ns();
    if (!submit_blocked(c) || !cal_submit(c, queue, &blocked, 1) || !cal_sync(c, queue))
        return false;
    const double other_ns = (double)(cli_now_ns() - began);
    if (!cal_sync(c, 0))
        return false;
    *out_held = other_ns > 0.75 * (double)(cli_now_ns() - began);
    return true;
}

static bool is_held_up(struct calibration *c, size_t queue, bool *out_held)
{
    uint64_t yes = 0;
    for (uint64_t i = 0; i < votes_of(); i++) {
        bool held = false;
        if (!holds_up(c, queue, &held))
            return false;
        yes += held;
    }
    *out_held = 2 * yes > votes_of();
    return true;
}

// The first queue that is held up; 0: none.
static bool find_held_up(struct calibration *c, size_t *out_queue)
{
    bool held = false;
    size_t queue = 0;
    *out_queue = 0;
    if (!cal_reserve_queues(c, CHANNELS_MOST + 1))
        return false;
    while (!held && queue < CHANNELS_MOST)
        if (!is_held_up(c, ++queue, &held))
            return false;
    *out_queue = held ? queue : 0;
    return true;
}

static bool measure_channels(struct calibration *c)
{
    size_t queue;
    if (!find_held_up(c, &queue))
        return false;
    cal_figure_set(c, CAL_QUEUE_KIND, queue != 1);
    if (queue == 1)
        cal_figure_leave(c, CAL_CHANNELS, "each queue holds up all others");
    else
        cal_figure_set(c, CAL_CHANNELS, (double)queue);
    return true;
}

// Kernels at once.

static bool time_kernels(struct calibration *c, uint32_t rounds, size_t count, double *out_ns)
{
    const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = rounds};
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < count; i++) {
        if (!cal_submit(c, i, &launch, 1))
            return false;
        if (weir_queue_flush(c->queues[i]) < 0)
            return cal_fail_weir(c);
    }
    for (size_t i = 0; i < count; i++)
        if (!cal_sync(c, i))
            return false;
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

static bool least_kernels(struct calibration *c, uint32_t rounds, size_t count, double *out_ns)
{
    double ns = 0;
    if (!cal_reserve_queues(c, count) || !time_kernels(c, rounds, count, out_ns))
        return false;
    for (uint64_t i = 1; i < votes_of(); i++) {
        if (!time_kernels(c, rounds, count, &ns))
            return false;
        *out_ns = ns < *out_ns ? ns : *out_ns;
    }
    return true;
}

// Much longer than all the submits.
static bool find_rounds(struct calibration *c, uint32_t *out_rounds)
{
    const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};
    double ns = 0;
    if (!cal_submits(c, &launch, &ns))
        return false;
    const double submits = 4 * CAL_QUEUES * ns;
    const double wanted = submits > KERNEL_NS ? submits : KERNEL_NS;
    for (*out_rounds = 1; *out_rounds <= ROUNDS_MOST; *out_rounds *= 2) {
        if (!least_kernels(c, *out_rounds, 1, &ns))
            return false;
        if (ns >= wanted)
            return true;
    }
    return cal_fail(c, CLI_FAILED,
                    "the kernel 'advance' with %u rounds took %.0f ns: its time does not grow with "
                    "its work, so kernels at once cannot be counted%s",
                    (unsigned)ROUNDS_MOST, ns,
                    cli_clock_is_virtual() ? "; give it a cost with per_item_argument_1_ns" : "");
}

static bool fits(struct calibration *c, uint32_t rounds, size_t count, bool *out_fits)
{
    double one = 0, all = 0;
    if (!least_kernels(c, rounds, 1, &one) || !least_kernels(c, rounds, count, &all))
        return false;
    *out_fits = all < 1.5 * one;
    return true;
}

static bool measure_kernels(struct calibration *c, uint32_t rounds)
{
    size_t most = 1, next = 2;
    bool fine = true;
    while (most < CAL_QUEUES && fine) {
        if (!fits(c, rounds, next, &fine))
            return false;
        if (fine) {
            most = next;
            next = 2 * most < CAL_QUEUES ? 2 * most : CAL_QUEUES;
        }
    }
    // `most` fit, and `next` do not.
    while (!fine && next - most > 1) {
        const size_t middle = (most + next) / 2;
        bool some = false;
        if (!fits(c, rounds, middle, &some))
            return false;
        *(some ? &most : &next) = middle;
    }
    cal_figure_set(c, CAL_KERNELS, (double)most);
    return true;
}

// A short kernel, which outlasts the submits, a long one in another queue, and a download after the
// short one.
static bool measure_late(struct calibration *c, size_t at, double *out_share)
{
    const struct cal_work brief = {.kind = CAL_LAUNCH, .rounds = (uint32_t)at / 4};
    const struct cal_work lengthy = {.kind = CAL_LAUNCH, .rounds = (uint32_t)at};
    const struct cal_work down = {.kind = CAL_DOWN, .bytes = c->sizes[0]};
    const uint64_t began = cli_now_ns();
    if (!cal_submit(c, 0, &brief, 1) || !cal_submit(c, 1, &lengthy, 1) ||
        !cal_submit(c, 0, &down, 1))
        return false;
    if (weir_queue_flush(c->queues[1]) < 0)
        return cal_fail_weir(c);
    if (!cal_sync(c, 0))
        return false;
    *out_share = (double)(cli_now_ns() - began);
    if (!cal_sync(c, 1))
        return false;
    *out_share /= (double)(cli_now_ns() - began);
    return true;
}

static bool ask_driver(struct calibration *c)
{
    struct weir_occupancy occupancy;
    if (weir_kernel_occupancy(c->kernel, weir_dim(CAL_BLOCK, 1, 1), 0, &occupancy) < 0)
        return cal_fail_weir(c);
    cal_figure_set(c, CAL_MULTIPROCESSORS, (double)c->limits->compute_units);
    cal_figure_set(c, CAL_THREADS, (double)occupancy.max_unit_items);
    if (occupancy.max_unit_items == 0)
        cal_figure_leave(c, CAL_THREADS, "the driver does not tell");
    // A model has CUDA's order, in which smaller numbers go first.
    cal_figure_set(c, CAL_LEAST_PRIORITY, -c->limits->priority_lowest);
    cal_figure_set(c, CAL_GREATEST_PRIORITY, -c->limits->priority_highest);
    return true;
}

bool cal_measure_engines(struct calibration *c)
{
    struct cal_figure late;
    uint32_t rounds;
    if (!measure_channels(c) || !find_rounds(c, &rounds) || !cal_measure_copy_channels(c) ||
        !measure_kernels(c, rounds) || !cal_figure_measure(c, measure_late, rounds, &late))
        return false;
    cal_figure_set(c, CAL_LATE_SIGNALS, late.value > 0.75);
    return ask_driver(c);
}
