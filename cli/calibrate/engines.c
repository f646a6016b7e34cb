// Which work runs at once, and which holds up what: channels of kernels and of copies, and kernels at once.
#include <string.h>

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

// Channels. A kernel waits for a large copy of its queue; the same, of another queue, is submitted after
// it. Whether that waits too.

static const struct cal_work blocked = {.kind = CAL_LAUNCH, .rounds = 1};

static bool holds_up(struct calibration *c, size_t queue)
{
    const struct cal_work large = {.kind = CAL_UP, .bytes = c->large};
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, &large, 1);
    cal_submit(c, 0, &blocked, 1);
    CAL_TRY(c, weir_queue_flush(c->queues[0]));
    cal_submit(c, queue, &blocked, 1);
    cal_sync(c, queue);
    const double other_ns = (double)(cli_now_ns() - began);
    cal_sync(c, 0);
    return other_ns > 0.75 * (double)(cli_now_ns() - began);
}

static bool is_held_up(struct calibration *c, size_t queue)
{
    uint64_t yes = 0;
    for (uint64_t i = 0; i < votes_of() && !c->code; i++)
        yes += holds_up(c, queue);
    return 2 * yes > votes_of();
}

// By the first queue that is held up; 0: none.
static void measure_channels(struct calibration *c)
{
    size_t queue = 1;
    cal_reserve_queues(c, CHANNELS_MOST + 1);
    while (queue <= CHANNELS_MOST && !c->code && !is_held_up(c, queue))
        queue++;
    cal_figure_set(c, CAL_QUEUE_KIND, queue != 1);
    if (queue == 1)
        cal_figure_leave(c, CAL_CHANNELS, "each queue holds up all others");
    else
        cal_figure_set(c, CAL_CHANNELS, queue <= CHANNELS_MOST ? (double)queue : 0);
}

// Kernels at once.

static double time_kernels(struct calibration *c, uint32_t rounds, size_t count)
{
    const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = rounds};
    const uint64_t began = cli_now_ns();
    for (size_t i = 0; i < count; i++) {
        cal_submit(c, i, &launch, 1);
        CAL_TRY(c, weir_queue_flush(c->queues[i]));
    }
    for (size_t i = 0; i < count; i++)
        cal_sync(c, i);
    return (double)(cli_now_ns() - began);
}

static double least_kernels(struct calibration *c, uint32_t rounds, size_t count)
{
    cal_reserve_queues(c, count);
    double least = time_kernels(c, rounds, count);
    for (uint64_t i = 1; i < votes_of(); i++) {
        const double ns = time_kernels(c, rounds, count);
        least = ns < least ? ns : least;
    }
    return least;
}

// Much longer than all the submits.
static uint32_t find_rounds(struct calibration *c)
{
    const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};
    const double submits = 4 * CAL_QUEUES * cal_submits(c, 1, &launch, 1);
    const double wanted = submits > KERNEL_NS ? submits : KERNEL_NS;
    double ns = 0;
    for (uint32_t rounds = 1; rounds <= ROUNDS_MOST && !c->code; rounds *= 2) {
        ns = least_kernels(c, rounds, 1);
        if (ns >= wanted)
            return rounds;
    }
    cal_fail(c, CLI_FAILED,
             "the kernel 'advance' with %u rounds took %.0f ns: its time does not grow with "
             "its work, so kernels at once cannot be counted%s",
             (unsigned)ROUNDS_MOST, ns,
             cli_clock_is_virtual() ? "; give it a cost with per_item_argument_1_ns" : "");
    return 1;
}

static bool fits(struct calibration *c, uint32_t rounds, size_t count)
{
    const double one = least_kernels(c, rounds, 1);
    return !c->code && least_kernels(c, rounds, count) < 1.5 * one;
}

static void measure_kernels(struct calibration *c, uint32_t rounds)
{
    size_t most = 1, next = CAL_QUEUES + 1;
    // `most` fit, and `next` do not, or are more than there may be.
    while (next - most > 1 && !c->code) {
        const size_t middle = (most + next) / 2;
        *(fits(c, rounds, middle) ? &most : &next) = middle;
    }
    cal_figure_set(c, CAL_KERNELS, (double)most);
}

// Copy channels: in which order the engine of uploads takes the copies of several queues. While a long
// copy keeps it busy each other queue gets one; records tell when each ended. A second one of a queue
// would say nothing: on a GPU it is not ready at once when the first has ended.
//
// With N channels copies go in N groups, each of which has every queue of that distance, so of two copies
// in a row all but N - 1 are of one group. A turn whose order says so, but for few copies that are out of
// their place, is for the largest such N, and else for none. One channel and none look alike.

enum {
    COPIES = 24,
    QUEUES = COPIES + 1, // the first has the long copy
    TRIES = 3,           // of a turn, as the long copy ended before all others were submitted
    COPY_CHANNELS_MOST = 12,
};

#define WORK_BYTES ((size_t)1 << 20)

// One copy out of its place breaks two pairs. Of 24 in a random order no number explains 18, one time in
// thousands.
#define BROKEN_SHARE 8

// Of the turns, so many have to be for one number.
#define TURNS_SHARE 0.6

struct order {
    struct calibration *c;
    weir_queue *queues[QUEUES]; // timed, and in the order in which they were created
    struct weir_event ends[QUEUES];
    size_t first[COPIES]; // the other queues in the order in which their copies ended
};

static void create_queues(struct order *order)
{
    const struct weir_queue_params params = {.struct_size = sizeof params,
                                             .label = "calibrate/order",
                                             .timing = true};
    for (size_t i = 0; i < QUEUES; i++)
        CAL_TRY(order->c, weir_queue_create(order->c->device, &params, &order->queues[i]));
}

static void submit_copy(struct order *order, size_t queue, size_t bytes)
{
    struct calibration *c = order->c;
    weir_queue *on = order->queues[queue];
    CAL_TRY(c, weir_queue_copy(on, c->to[CAL_UP], 0, c->from[CAL_UP], 0, bytes));
    CAL_TRY(c, weir_queue_record(on, &order->ends[queue]));
    CAL_TRY(c, weir_queue_flush(on));
}

static void wait_for_all(struct order *order)
{
    for (size_t i = 0; i < QUEUES; i++)
        CAL_TRY(order->c, weir_event_sync(order->ends[i], WEIR_FOREVER));
}

static void sort_by_end(struct order *order)
{
    uint64_t ends[QUEUES] = {0};
    for (size_t i = 1; i < QUEUES; i++) {
        size_t at = i - 1;
        CAL_TRY(order->c, weir_event_time_ns(order->ends[i], &ends[i]));
        for (; at > 0 && ends[order->first[at - 1]] > ends[i]; at--)
            order->first[at] = order->first[at - 1];
        order->first[at] = i;
    }
}

// Pairs of copies in a row that are not of one channel, beyond those that have to be.
static size_t broken_pairs(const struct order *order, size_t channels)
{
    size_t changes = 0;
    for (size_t i = 1; i < COPIES; i++)
        changes += order->first[i] % channels != order->first[i - 1] % channels;
    return changes > channels - 1 ? changes - (channels - 1) : 0;
}

// The largest number that explains the order: groups of 4 in the order 0, 2, 1, 3 are two of 2. 0: none
// does.
static int channels_of(const struct order *order)
{
    for (size_t channels = COPY_CHANNELS_MOST; channels > 1; channels--)
        if (broken_pairs(order, channels) <= (COPIES - channels) / BROKEN_SHARE)
            return (int)channels;
    return 0;
}

// Whether the long copy still ran when all others had been submitted. A copy of each queue comes first, so
// that none is new when it matters, and each turn begins where the others do: an H200 takes the channels of
// a turn that follows another one at once in another order.
static bool measure_order(struct order *order)
{
    for (size_t i = 0; i < QUEUES; i++)
        submit_copy(order, i, order->c->sizes[0]);
    wait_for_all(order);
    submit_copy(order, 0, order->c->large);
    for (size_t i = 1; i < QUEUES; i++)
        submit_copy(order, i, WORK_BYTES);
    const bool valid = !order->c->code && weir_event_query(order->ends[0]) == WEIR_NOT_READY;
    wait_for_all(order);
    sort_by_end(order);
    return valid;
}

// The number that a turn is for; 0: none.
static int count_turn(struct order *order)
{
    for (int i = 0; i < TRIES && !order->c->code; i++)
        if (measure_order(order))
            return channels_of(order);
    return 0;
}

// That of most turns.
static void decide(struct order *order)
{
    struct calibration *c = order->c;
    uint64_t turns_for[COPY_CHANNELS_MOST + 1] = {0};
    int best = 0;
    for (uint64_t turn = 0; turn < c->turns && !c->code; turn++)
        turns_for[count_turn(order)]++;
    for (int i = 1; i <= COPY_CHANNELS_MOST; i++)
        best = turns_for[i] > turns_for[best] ? i : best;
    if ((double)turns_for[best] >= TURNS_SHARE * (double)c->turns)
        cal_figure_set(c, CAL_COPY_CHANNELS, best);
    else
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         "copies of 24 queues went in no order that most turns had in common, so "
                         "the model has none");
}

static void measure_copy_channels(struct calibration *c)
{
    struct order order = {.c = c};
    if (c->limits->timing_history == 0 || c->figures[CAL_QUEUE_KIND].value == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         c->limits->timing_history == 0 ? "the device keeps no times"
                                                        : "each queue holds up all others");
        return;
    }
    create_queues(&order);
    decide(&order);
    for (size_t i = 0; i < QUEUES; i++)
        weir_queue_destroy(&order.queues[i]);
}

// All of them.

static void ask_driver(struct calibration *c)
{
    struct weir_occupancy occupancy = {0};
    cal_check(c, weir_kernel_occupancy(c->kernel, weir_dim(CAL_BLOCK, 1, 1), 0, &occupancy));
    cal_figure_set(c, CAL_MULTIPROCESSORS, (double)c->limits->compute_units);
    cal_figure_set(c, CAL_THREADS, (double)occupancy.max_unit_items);
    if (occupancy.max_unit_items == 0)
        cal_figure_leave(c, CAL_THREADS, "the driver does not tell");
    // A model has CUDA's order, in which smaller numbers go first.
    cal_figure_set(c, CAL_GREATEST_PRIORITY, -c->limits->priority_highest);
}

void cal_measure_engines(struct calibration *c)
{
    if (!c->code)
        measure_channels(c);
    const uint32_t rounds = find_rounds(c);
    if (!c->code)
        measure_copy_channels(c);
    if (!c->code)
        measure_kernels(c, rounds);
    if (!c->code)
        ask_driver(c);
}
