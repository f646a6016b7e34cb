// What the host's calls take: submits, waits, graphs, and waking another thread.
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"

enum {
    PAIRS = CAL_SUBMITS / 2,
    WARM_PAIRS = 1024, // after which a queue has all events that it keeps
};

#define WAIT_BYTES ((size_t)1 << 20)
#define WAKE_BYTES ((size_t)4 << 20) // long enough for a thread to begin its wait

static const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};

// Records on one queue, and a wait for each on the other one.
static bool submit_pairs(struct calibration *c, uint64_t count)
{
    for (; count > 0; count--) {
        struct weir_event event;
        if (weir_queue_record(c->queues[1], &event) < 0 || weir_queue_wait(c->queues[0], event) < 0)
            return cal_fail_weir(c);
    }
    return true;
}

static bool warm_up(struct calibration *c)
{
    return submit_pairs(c, WARM_PAIRS) && cal_sync(c, 0) && cal_sync(c, 1);
}

// Submits. Programs seldom submit many of one kind to one queue, which take less each.

static bool measure_submit(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copies[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                      {.kind = CAL_DOWN, .bytes = c->sizes[0]}};
    const struct cal_work graph = {.kind = CAL_GRAPH};
    if (at == CAL_SUBMIT_COPY)
        return cal_submits(c, CAL_BRANCHES, copies, 2, out_ns);
    // One graph in several queues would take waits.
    return at == CAL_SUBMIT_GRAPH ? cal_submits(c, 1, &graph, 1, out_ns)
                                  : cal_submits(c, CAL_BRANCHES, &launch, 1, out_ns);
}

static bool measure_mark(struct calibration *c, size_t at, double *out_ns)
{
    (void)at;
    if (!cal_gate(c, 0) || !cal_gate(c, 1))
        return false;
    const uint64_t began = cli_now_ns();
    if (!submit_pairs(c, PAIRS))
        return false;
    *out_ns = (double)(cli_now_ns() - began) / (2 * PAIRS);
    return cal_sync(c, 0) && cal_sync(c, 1);
}

static bool measure_call(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work call = {.kind = CAL_CALL};
    (void)at;
    return cal_each(c, &call, 1, CAL_IN_A_ROW, out_ns);
}

// One copy takes submit + copy + wait, two take one copy more.
static bool measure_wait(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WAIT_BYTES};
    double one = 0, two = 0;
    (void)at;
    if (!cal_time(c, &copy, 1, &one) || !cal_time(c, &copy, 2, &two))
        return false;
    *out_ns = 2 * one - two - c->figures[CAL_SUBMIT_COPY].value;
    return true;
}

// Graphs. A kernel of a graph takes less than one of a queue, so both lengths are of graphs.

static bool measure_node(struct calibration *c, double *out_ns)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, lengthy = {.kind = CAL_LONG};
    double two = 0;
    if (!cal_each(c, &chain, 1, CAL_IN_A_ROW, &two) ||
        !cal_each(c, &lengthy, 1, CAL_IN_A_ROW, out_ns))
        return false;
    *out_ns = (*out_ns - two) / (CAL_LENGTH - 2);
    return true;
}

static bool measure_gap(struct calibration *c, size_t at, double *out_ns)
{
    double node = 0;
    (void)at;
    if (!measure_node(c, &node) || !cal_each(c, &launch, 1, CAL_IN_A_ROW, out_ns))
        return false;
    *out_ns -= node;
    return true;
}

// The kernels of the branches run at once, as far as there is room for them.
static bool measure_pause(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work fork = {.kind = CAL_FORK};
    const uint64_t places = (uint64_t)c->figures[CAL_KERNELS].value;
    const uint64_t turns = (CAL_BRANCHES + places - 1) / places;
    double node = 0;
    (void)at;
    if (!measure_node(c, &node) || !cal_each(c, &fork, 1, CAL_IN_A_ROW, out_ns))
        return false;
    *out_ns = (*out_ns - (double)(1 + turns) * node) / 2;
    return true;
}

bool cal_measure_graphs(struct calibration *c)
{
    return cal_figure_measure(c, measure_pause, 0, &c->figures[CAL_GRAPH_PAUSE]);
}

// Signals: each operation comes after another engine's. Copies of both directions in turn tell nothing
// of them: on a GPU they meet its looks for signals at other times than jobs do.
static bool measure_signal(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work chunk[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                     launch,
                                     {.kind = CAL_DOWN, .bytes = c->sizes[0]}};
    double kernel = 0;
    (void)at;
    if (!cal_each(c, chunk, 3, CAL_IN_A_ROW / 3, out_ns) ||
        !cal_each(c, &launch, 1, CAL_IN_A_ROW, &kernel))
        return false;
    *out_ns -=
        kernel - c->figures[CAL_KERNEL_GAP].value + c->copy_ns[CAL_UP][0] + c->copy_ns[CAL_DOWN][0];
    *out_ns /= 3;
    return true;
}

bool cal_measure_host(struct calibration *c)
{
    static const enum cal_key submits[] = {CAL_SUBMIT_KERNEL, CAL_SUBMIT_COPY, CAL_SUBMIT_GRAPH};
    if (!warm_up(c))
        return false;
    for (size_t i = 0; i < sizeof submits / sizeof *submits; i++)
        if (!cal_figure_measure(c, measure_submit, submits[i], &c->figures[submits[i]]))
            return false;
    return cal_figure_measure(c, measure_mark, 0, &c->figures[CAL_SUBMIT_MARK]) &&
           cal_figure_measure(c, measure_gap, 0, &c->figures[CAL_KERNEL_GAP]) &&
           cal_figure_measure(c, measure_signal, 0, &c->figures[CAL_SIGNAL]) &&
           cal_figure_measure(c, measure_call, 0, &c->figures[CAL_HOST_CALL]) &&
           cal_figure_measure(c, measure_wait, 0, &c->figures[CAL_WAIT]);
}

// A thread that waits for the device, and then wakes the one that submitted.

struct pair {
    sem_t ready, given, waited;
    struct weir_event event;
    weir_status status;
};

static void sleep_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

static void *wait_for_event(void *user)
{
    struct pair *pair = user;
    sem_post(&pair->ready);
    sleep_for(&pair->given);
    pair->status = weir_event_sync(pair->event, WEIR_FOREVER);
    sem_post(&pair->waited);
    return NULL;
}

// The thread that was woken goes on with a submit. The other one ends in any case: it waits for an event
// without a queue if there is none.
static bool time_pair(struct calibration *c, struct pair *pair, double *out_ns)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WAKE_BYTES};
    struct weir_event event;
    sleep_for(&pair->ready);
    const uint64_t began = cli_now_ns();
    const bool given =
        cal_submit(c, 0, &copy, 1) &&
        (weir_queue_record(c->queues[0], &pair->event) == WEIR_OK || cal_fail_weir(c));
    sem_post(&pair->given);
    sleep_for(&pair->waited);
    if (given && weir_queue_record(c->queues[0], &event) < 0)
        return cal_fail_weir(c);
    *out_ns = (double)(cli_now_ns() - began);
    return given;
}

static bool time_threads(struct calibration *c, struct pair *pair, double *out_ns)
{
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, wait_for_event, pair);
    *out_ns = 0;
    if (error)
        return cal_fail(c, CLI_FAILED, "no thread can be started: %s", strerror(error));
    const bool fine = time_pair(c, pair, out_ns);
    pthread_join(thread, NULL);
    if (!fine)
        return false;
    return pair->status == WEIR_OK || cal_fail(c, CLI_FAILED, "a wait in another thread failed: %s",
                                               weir_status_text(pair->status));
}

static bool measure_wake(struct calibration *c, size_t at, double *out_ns)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WAKE_BYTES};
    struct pair pair = {.status = WEIR_OK};
    double alone = 0;
    (void)at;
    if (!cal_time(c, &copy, 1, &alone))
        return false;
    sem_init(&pair.ready, 0, 0);
    sem_init(&pair.given, 0, 0);
    sem_init(&pair.waited, 0, 0);
    const bool fine = time_threads(c, &pair, out_ns);
    sem_destroy(&pair.ready);
    sem_destroy(&pair.given);
    sem_destroy(&pair.waited);
    *out_ns -= alone + c->figures[CAL_SUBMIT_MARK].value;
    return fine;
}

bool cal_measure_wake(struct calibration *c)
{
    return cal_figure_measure(c, measure_wake, 0, &c->figures[CAL_WAKE]);
}
