// A thread that waits for the device, and then wakes another one.
#include <pthread.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"

#define WORK_BYTES ((size_t)4 << 20) // long enough for the thread to begin its wait

enum stage {
    BEGUN,
    READY,  // the thread sleeps, or is about to
    GIVEN,  // it has an event to wait for
    WAITED, // and has waited
};

struct pair {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum stage stage;
    struct weir_event event;
    weir_status status;
};

static void set_stage(struct pair *pair, enum stage stage)
{
    pthread_mutex_lock(&pair->lock);
    pair->stage = stage;
    pthread_cond_broadcast(&pair->changed);
    pthread_mutex_unlock(&pair->lock);
}

static void await_stage(struct pair *pair, enum stage stage)
{
    pthread_mutex_lock(&pair->lock);
    while (pair->stage < stage)
        pthread_cond_wait(&pair->changed, &pair->lock);
    pthread_mutex_unlock(&pair->lock);
}

static void *wait_for_event(void *user)
{
    struct pair *pair = user;
    set_stage(pair, READY);
    await_stage(pair, GIVEN);
    pair->status = weir_event_sync(pair->event, WEIR_FOREVER);
    set_stage(pair, WAITED);
    return NULL;
}

static bool give(struct calibration *c, struct pair *pair)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WORK_BYTES};
    return cal_submit(c, 0, &copy, 1) &&
           (weir_queue_record(c->queues[0], &pair->event) == WEIR_OK || cal_fail_weir(c));
}

// The thread that was woken goes on with a submit. The other one ends in any case: it waits for an event without a queue if there is none.
static bool time_pair(struct calibration *c, struct pair *pair, double *out_ns)
{
    await_stage(pair, READY);
    const uint64_t began = cli_now_ns();
    const bool given = give(c, pair);
    set_stage(pair, GIVEN);
    await_stage(pair, WAITED);
    struct weir_event event;
    if (given && weir_queue_record(c->queues[0], &event) < 0)
        return cal_fail_weir(c);
    *out_ns = (double)(cli_now_ns() - began);
    return given;
}

static bool time_threads(struct calibration *c, double *out_ns)
{
    struct pair pair = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, wait_for_event, &pair);
    *out_ns = 0;
    if (error)
        return cal_fail(c, CLI_FAILED, "no thread can be started: %s", strerror(error));
    const bool fine = time_pair(c, &pair, out_ns);
    pthread_join(thread, NULL);
    if (!fine)
        return false;
    return pair.status == WEIR_OK || cal_fail(c, CLI_FAILED, "a wait in another thread failed: %s",
                                              weir_status_text(pair.status));
}

static bool measure_wake(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WORK_BYTES};
    double alone = 0;
    (void)at;
    if (!cal_time(c, &copy, 1, &alone) || !time_threads(c, out_ns))
        return false;
    *out_ns -= alone + c->figures[CAL_SUBMIT_MARK].value;
    return true;
}

bool cal_measure_wake(struct calibration *c)
{
    return cal_figure_measure(c, measure_wake, 0, &c->figures[CAL_WAKE]);
}
