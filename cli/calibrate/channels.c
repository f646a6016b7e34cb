// Copy channels: in which order the engine of uploads takes the copies of several queues. While a long
// copy keeps it busy each other queue gets one; records tell when each ended. A second one of a queue
// would say nothing: on a GPU it is not ready at once when the first has ended.
#include <stdlib.h>

#include "cli/calibrate/calibrate.h"

enum {
    QUEUES = 25, // the first has the long copy
    COPIES = QUEUES - 1,
    CHANNELS_MOST = COPIES / 2,
    TURNS = 5,
};

#define WORK_BYTES ((size_t)1 << 20)

// How many of the copies that can be followed by one of their own channel have to be.
#define SHARE_LEAST 0.75

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

// Each queue's first copy, so that none is new when it matters.
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

static weir_status sort_by_end(struct order *order)
{
    uint64_t ends[QUEUES];
    for (size_t i = 1; i < QUEUES; i++) {
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

// Of the copies that can be followed by one of their own channel, if there are that many, how many are.
static double share_of(const struct order *order, size_t channels)
{
    size_t followed = 0;
    for (size_t i = 1; i < COPIES; i++)
        followed += order->first[i] % channels == order->first[i - 1] % channels;
    return (double)followed / (double)(COPIES - channels);
}

// The number that explains the order best; 0: none does. With one channel it is that of submission.
static size_t channels_of(const struct order *order)
{
    size_t best = 0;
    double most = SHARE_LEAST;
    for (size_t channels = 2; channels <= CHANNELS_MOST; channels++) {
        const double share = share_of(order, channels);
        if (share >= most) {
            most = share;
            best = channels;
        }
    }
    return best;
}

static bool measure_order(struct order *order, size_t *out_channels)
{
    if (submit_all(order) < 0 || wait_for_all(order) < 0 || sort_by_end(order) < 0)
        return cal_fail_weir(order->c);
    *out_channels = channels_of(order);
    return true;
}

// Of two queues' copies the one that was submitted first becomes ready last, when a download of its
// queue ends: with one channel it goes first all the same.
static bool goes_by_submission(struct order *order, bool *out_does)
{
    const struct calibration *c = order->c;
    uint64_t one = 0, other = 0;
    weir_status status = submit_copy(order, 0, c->large);
    if (status >= 0)
        status = weir_queue_copy(order->queues[1], c->to[CAL_DOWN], 0, c->from[CAL_DOWN], 0,
                                 c->large / 4);
    for (size_t i = 1; i <= 2 && status >= 0; i++)
        status = submit_copy(order, i, WORK_BYTES);
    if (status >= 0)
        status = wait_for_all(order);
    if (status >= 0)
        status = weir_event_time_ns(order->ends[1], &one);
    if (status >= 0)
        status = weir_event_time_ns(order->ends[2], &other);
    *out_does = one < other;
    return status >= 0 || cal_fail_weir(order->c);
}

static bool vote(struct order *order, size_t *out_channels)
{
    size_t votes[CHANNELS_MOST + 1] = {0};
    *out_channels = 0;
    for (int i = 0; i < TURNS; i++) {
        size_t channels = 0;
        bool by_submission = false;
        if (!measure_order(order, &channels) ||
            (channels == 0 && !goes_by_submission(order, &by_submission)))
            return false;
        channels += by_submission;
        votes[channels]++;
        if (votes[channels] > votes[*out_channels])
            *out_channels = channels;
    }
    return true;
}

bool cal_measure_copy_channels(struct calibration *c)
{
    struct order order = {.c = c};
    size_t channels = 0;
    if (c->limits->timing_history == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS, "the device keeps no times");
        return true;
    }
    if (c->figures[CAL_QUEUE_KIND].value == 0) {
        cal_figure_leave(c, CAL_COPY_CHANNELS, "each queue holds up all others");
        return true;
    }
    const bool fine = create_queues(&order) && (warm_up(&order) >= 0 || cal_fail_weir(c)) &&
                      vote(&order, &channels);
    for (size_t i = 0; i < QUEUES; i++)
        weir_queue_destroy(&order.queues[i]);
    cal_figure_set(c, CAL_COPY_CHANNELS, (double)channels);
    return fine;
}
