// Copy channels: in which order the engine of uploads takes the copies of several queues. While a long
// copy keeps it busy each other queue gets one; records tell when each ended. A second one of a queue
// would say nothing: on a GPU it is not ready at once when the first has ended.
//
// With N channels copies go in N groups, each of which has every queue of that distance, so of two copies
// in a row all but N - 1 are of one group. A turn whose order says so, but for few copies that are out of
// their place, is for the largest such N. One whose order says nothing else is for none, or for one
// channel if copies that become ready in the opposite order go as they were submitted. A number that most
// turns are for is the figure; else it was not seen, and 0 is what claims least.
#include <string.h>

#include "cli/calibrate/calibrate.h"

enum {
    COPIES = CAL_ORDER,
    QUEUES = COPIES + 1, // the first has the long copy
    TRIES = 3,           // of a turn, as the long copy ended before all others were submitted
    CONTRARY = 6,        // queues whose copies become ready in the opposite order
};

#define WORK_BYTES ((size_t)1 << 20)

// One copy out of its place breaks two pairs. Of 24 in a random order no number explains 18, one time in
// thousands.
#define BROKEN_SHARE 8

struct order {
    struct calibration *c;
    weir_queue *queues[QUEUES]; // timed, and in the order in which they were created
    struct weir_event ends[QUEUES];
    size_t first[COPIES]; // the other queues in the order in which their copies ended
};

static bool create_queues(struct order *order)
{
    const struct weir_queue_params params = {.struct_size = sizeof params,
                                             .label = "calibrate/order",
                                             .timing = true};
    for (size_t i = 0; i < QUEUES; i++)
        if (weir_queue_create(order->c->device, &params, &order->queues[i]) < 0)
            return cal_fail_weir(order->c);
    return true;
}

static weir_status submit_copy(struct order *order, size_t queue, size_t bytes)
{
    const struct calibration *c = order->c;
    const weir_status status =
        weir_queue_copy(order->queues[queue], c->to[CAL_UP], 0, c->from[CAL_UP], 0, bytes);
    return status < 0 ? status : weir_queue_record(order->queues[queue], &order->ends[queue]);
}

static weir_status wait_for_all(const struct order *order)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < QUEUES && status >= 0; i++)
        status = weir_event_sync(order->ends[i], WEIR_FOREVER);
    return status;
}

// A copy of each queue, so that none is new when it matters, and each turn begins where the others do: an
// H200 takes the channels of a turn that follows another one at once in another order.
static weir_status warm_up(struct order *order)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < QUEUES && status >= 0; i++)
        status = submit_copy(order, i, order->c->sizes[0]);
    return status < 0 ? status : wait_for_all(order);
}

static weir_status submit_all(struct order *order)
{
    weir_status status = submit_copy(order, 0, order->c->large);
    for (size_t i = 1; i < QUEUES && status >= 0; i++) {
        status = submit_copy(order, i, WORK_BYTES);
        if (status >= 0)
            status = weir_queue_flush(order->queues[i]);
    }
    return status;
}

// The first `count` of the other queues.
static weir_status sort_by_end(struct order *order, size_t count)
{
    uint64_t ends[QUEUES];
    for (size_t i = 1; i <= count; i++) {
        const weir_status status = weir_event_time_ns(order->ends[i], &ends[i]);
        size_t at = i - 1;
        if (status < 0)
            return status;
        for (; at > 0 && ends[order->first[at - 1]] > ends[i]; at--)
            order->first[at] = order->first[at - 1];
        order->first[at] = i;
    }
    return WEIR_OK;
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
    for (size_t channels = CAL_CHANNELS_MOST; channels > 1; channels--)
        if (broken_pairs(order, channels) <= (COPIES - channels) / BROKEN_SHARE)
            return (int)channels;
    return 0;
}

// Whether the long copy still ran when all others had been submitted.
static bool measure_order(struct order *order, bool *out_valid)
{
    weir_status status = warm_up(order);
    if (status >= 0)
        status = submit_all(order);
    *out_valid = status >= 0 && weir_event_query(order->ends[0]) == WEIR_NOT_READY;
    if (status >= 0)
        status = wait_for_all(order);
    if (status >= 0)
        status = sort_by_end(order, COPIES);
    return status >= 0 || cal_fail_weir(order->c);
}

// The copies of some queues become ready in the opposite order, each when a download of its queue ends.
// Those of one channel go as they were submitted all the same; 0 if they go as they became ready.
static bool measure_contrary(struct order *order, int *out_vote)
{
    const struct calibration *c = order->c;
    size_t ascending = 0;
    weir_status status = submit_copy(order, 0, c->large);
    for (size_t i = CONTRARY; i > 0 && status >= 0; i--)
        status = weir_queue_copy(order->queues[i], c->to[CAL_DOWN], 0, c->from[CAL_DOWN], 0,
                                 c->large / ((size_t)4 * CONTRARY));
    for (size_t i = 1; i <= CONTRARY && status >= 0; i++)
        status = submit_copy(order, i, WORK_BYTES);
    if (status >= 0)
        status = wait_for_all(order);
    if (status >= 0)
        status = sort_by_end(order, CONTRARY);
    for (size_t i = 1; i < CONTRARY; i++)
        ascending += order->first[i] > order->first[i - 1];
    *out_vote = ascending == CONTRARY - 1 ? 1 : ascending == 0 ? 0 : CAL_NO_VOTE;
    return status >= 0 || cal_fail_weir(order->c);
}

static bool vote(struct order *order)
{
    int number = CAL_NO_VOTE;
    bool valid = false;
    for (int i = 0; i < TRIES && !valid; i++)
        if (!measure_order(order, &valid))
            return false;
    if (valid)
        number = channels_of(order);
    if (number == 0 && !measure_contrary(order, &number))
        return false;
    struct cal_order *seen = &order->c->order;
    seen->numbers[seen->turns++] = number;
    memcpy(seen->queues, order->first, sizeof seen->queues);
    return true;
}

static void decide(struct calibration *c)
{
    const int channels = cal_votes_count(c->order.numbers, c->order.turns);
    if (channels != CAL_NO_VOTE)
        cal_figure_set(c, CAL_COPY_CHANNELS, channels);
    else
        cal_figure_leave(c, CAL_COPY_CHANNELS,
                         "copies of 24 queues went in no order that most turns had in common, so "
                         "the model has none");
}

bool cal_measure_copy_channels(struct calibration *c)
{
    struct order order = {.c = c};
    if (c->limits->timing_history == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS, "the device keeps no times");
        return true;
    }
    if (c->figures[CAL_QUEUE_KIND].value == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS, "each queue holds up all others");
        return true;
    }
    bool fine = create_queues(&order);
    for (uint64_t turn = 0; turn < c->turns && fine; turn++)
        fine = vote(&order);
    for (size_t i = 0; i < QUEUES; i++)
        weir_queue_destroy(&order.queues[i]);
    if (fine)
        decide(c);
    return fine;
}
