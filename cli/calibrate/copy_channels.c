// Copy channels: in which order the engine of uploads takes the copies of several queues. While a long
// copy keeps it busy each other queue gets one; records tell when each ended. A second one of a queue
// would say nothing: on a GPU it is not ready at once when the first has ended.
//
// With N channels copies go in N groups, each of which has every queue of that distance, so of two copies
// in a row all but N - 1 are of one group. A turn whose order says so, but for few copies that are out of
// their place, is for the largest such N, and else for none. One channel and none look alike.
#include "cli/calibrate/calibrate.h"

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

static void destroy_queues(void *object)
{
    struct order *order = object;
    for (size_t i = 0; i < QUEUES; i++)
        weir_queue_destroy(&order->queues[i]);
}

static void submit_copy(struct order *order, size_t queue, size_t bytes)
{
    struct calibration *c = order->c;
    weir_queue *on = order->queues[queue];
    cli_fine(weir_queue_copy(on, c->to[CAL_UP], 0, c->from[CAL_UP], 0, bytes));
    cli_fine(weir_queue_record(on, &order->ends[queue]));
    cli_fine(weir_queue_flush(on));
}

static void wait_for_all(struct order *order)
{
    for (size_t i = 0; i < QUEUES; i++)
        cli_fine(weir_event_sync(order->ends[i], WEIR_FOREVER));
}

static void sort_by_end(struct order *order)
{
    uint64_t ends[QUEUES] = {0};
    for (size_t i = 1; i < QUEUES; i++) {
        size_t at = i - 1;
        cli_fine(weir_event_time_ns(order->ends[i], &ends[i]));
        for (; at > 0 && ends[order->first[at - 1]] > ends[i]; at--)
            order->first[at] = order->first[at - 1];
        order->first[at] = i;
    }
}

// The largest number that explains the order: groups of 4 in the order 0, 2, 1, 3 are two of 2. 0: none
// does.
static int channels_of(const struct order *order)
{
    for (size_t channels = COPY_CHANNELS_MOST; channels > 1; channels--) {
        size_t changes = 0; // pairs of copies in a row that are not of one channel
        for (size_t i = 1; i < COPIES; i++)
            changes += order->first[i] % channels != order->first[i - 1] % channels;
        if (changes <= channels - 1 + (COPIES - channels) / BROKEN_SHARE)
            return (int)channels;
    }
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
    const bool valid = weir_event_query(order->ends[0]) == WEIR_NOT_READY;
    wait_for_all(order);
    sort_by_end(order);
    return valid;
}

// That of most turns.
static void decide(struct order *order)
{
    struct calibration *c = order->c;
    uint64_t turns_for[COPY_CHANNELS_MOST + 1] = {0};
    int best = 0;
    for (uint64_t turn = 0; turn < bench.turns; turn++) {
        bool valid = false;
        for (int i = 0; i < TRIES && !valid; i++)
            valid = measure_order(order);
        turns_for[valid ? channels_of(order) : 0]++;
    }
    for (int i = 1; i <= COPY_CHANNELS_MOST; i++)
        best = turns_for[i] > turns_for[best] ? i : best;
    if ((double)turns_for[best] >= TURNS_SHARE * (double)bench.turns)
        cal_figure_set(c, CAL_COPY_CHANNELS, best);
    else
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         "copies of 24 queues went in no order that most turns had in common, so "
                         "the model has none");
}

void cal_measure_copy_channels(struct calibration *c)
{
    static struct order order;
    order.c = c;
    if (bench.limits->timing_history == 0 || c->figures[CAL_QUEUE_KIND].value == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         bench.limits->timing_history == 0 ? "the device keeps no times"
                                                           : "each queue holds up all others");
        return;
    }
    cli_own(destroy_queues, &order);
    for (size_t i = 0; i < QUEUES; i++)
        cli_fine(
            weir_queue_create(bench.device,
                              WEIR_PARAMS(weir_queue, .label = "calibrate/order", .timing = true),
                              &order.queues[i]));
    decide(&order);
}
