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

static const struct cal_work launch = {.kind = CAL_LAUNCH, .rounds = 1};

// Records on one queue, and a wait for each on the other one.
static void submit_pairs(struct calibration *c, uint64_t count)
{
    struct weir_event event;
    for (; count > 0 && !c->code; count--) {
        cal_check(c, weir_queue_record(c->queues[1], &event));
        CAL_TRY(c, weir_queue_wait(c->queues[0], event));
    }
}

// Submits. Programs seldom submit many of one kind to one queue, which take less each.

static double measure_submit(struct calibration *c, size_t at)
{
    const struct cal_work copies[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                      {.kind = CAL_DOWN, .bytes = c->sizes[0]}};
    const struct cal_work graph = {.kind = CAL_GRAPH};
    if (at == CAL_SUBMIT_COPY)
        return cal_submits(c, CAL_BRANCHES, copies, 2);
    // One graph in several queues would take waits.
    return at == CAL_SUBMIT_GRAPH ? cal_submits(c, 1, &graph, 1)
                                  : cal_submits(c, CAL_BRANCHES, &launch, 1);
}

static double measure_branch(struct calibration *c, size_t at)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, fork = {.kind = CAL_FORK};
    (void)at;
    const double plain = cal_submits(c, 1, &chain, 1);
    return (cal_submits(c, 1, &fork, 1) - plain) / (CAL_BRANCHES - 1);
}

static double measure_mark(struct calibration *c, size_t at)
{
    (void)at;
    cal_gate(c, 0);
    cal_gate(c, 1);
    const uint64_t began = cli_now_ns();
    submit_pairs(c, PAIRS);
    const double ns = (double)(cli_now_ns() - began) / (2 * PAIRS);
    cal_sync(c, 0);
    cal_sync(c, 1);
    return ns;
}

static double measure_call(struct calibration *c, size_t at)
{
    const struct cal_work call = {.kind = CAL_CALL};
    (void)at;
    return cal_each(c, &call, 1, CAL_IN_A_ROW);
}

// One copy takes submit + copy + wait, two take one copy more.
static double measure_wait(struct calibration *c, size_t at)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = WAIT_BYTES};
    (void)at;
    const double one = cal_time(c, &copy, 1);
    return 2 * one - cal_time(c, &copy, 2) - c->figures[CAL_SUBMIT_COPY].value;
}

// Graphs. A kernel of a graph takes less than one of a queue, so both lengths are of graphs.

static double measure_node(struct calibration *c)
{
    const struct cal_work chain = {.kind = CAL_CHAIN}, lengthy = {.kind = CAL_LONG};
    const double two = cal_each(c, &chain, 1, CAL_IN_A_ROW);
    return (cal_each(c, &lengthy, 1, CAL_IN_A_ROW) - two) / (CAL_LENGTH - 2);
}

static double measure_gap(struct calibration *c, size_t at)
{
    (void)at;
    const double node = measure_node(c);
    return cal_each(c, &launch, 1, CAL_IN_A_ROW) - node;
}

// The kernels of the branches run at once, as far as there is room for them.
static double measure_pause(struct calibration *c, size_t at)
{
    const struct cal_work fork = {.kind = CAL_FORK};
    const uint64_t places = (uint64_t)c->figures[CAL_KERNELS].value;
    const uint64_t turns = places ? (CAL_BRANCHES + places - 1) / places : 1;
    (void)at;
    const double node = measure_node(c);
    return (cal_each(c, &fork, 1, CAL_IN_A_ROW) - (double)(1 + turns) * node) / 2;
}

void cal_measure_graphs(struct calibration *c)
{
    cal_measure_figure(c, CAL_SUBMIT_BRANCH, measure_branch);
    cal_measure_figure(c, CAL_GRAPH_PAUSE, measure_pause);
}

// Signals: each operation comes after another engine's. Copies of both directions in turn tell nothing
// of them: on a GPU they meet its looks for signals at other times than jobs do.
static double measure_signal(struct calibration *c, size_t at)
{
    const struct cal_work chunk[] = {{.kind = CAL_UP, .bytes = c->sizes[0]},
                                     launch,
                                     {.kind = CAL_DOWN, .bytes = c->sizes[0]}};
    (void)at;
    const double turn = cal_each(c, chunk, 3, CAL_IN_A_ROW / 3);
    const double kernel = cal_each(c, &launch, 1, CAL_IN_A_ROW) - c->figures[CAL_KERNEL_GAP].value;
    return (turn - kernel - c->copy_ns[CAL_UP][0] - c->copy_ns[CAL_DOWN][0]) / 3;
}

void cal_measure_host(struct calibration *c)
{
    submit_pairs(c, WARM_PAIRS);
    cal_sync(c, 0);
    cal_sync(c, 1);
    cal_measure_figure(c, CAL_SUBMIT_KERNEL, measure_submit);
    cal_measure_figure(c, CAL_SUBMIT_COPY, measure_submit);
    cal_measure_figure(c, CAL_SUBMIT_GRAPH, measure_submit);
    cal_measure_figure(c, CAL_SUBMIT_MARK, measure_mark);
    cal_measure_figure(c, CAL_KERNEL_GAP, measure_gap);
    cal_measure_figure(c, CAL_SIGNAL, measure_signal);
    cal_measure_figure(c, CAL_HOST_CALL, measure_call);
    cal_measure_figure(c, CAL_WAIT, measure_wait);
}

// A thread that waits for the device, and then wakes the one that submitted, which goes on with a submit.

struct waiter {
    sem_t ended;
    struct weir_event event;
    weir_status status;
};

static void *wait_for_event(void *user)
{
    struct waiter *waiter = user;
    waiter->status = weir_event_sync(waiter->event, WEIR_FOREVER);
    sem_post(&waiter->ended);
    return NULL;
}

// The copy is long enough for a thread to begin its wait.
static double time_waiter(struct calibration *c, struct waiter *waiter, const struct cal_work *copy)
{
    struct weir_event event;
    pthread_t thread;
    const uint64_t began = cli_now_ns();
    cal_submit(c, 0, copy, 1);
    CAL_TRY(c, weir_queue_record(c->queues[0], &waiter->event));
    const int error = c->code ? 0 : pthread_create(&thread, NULL, wait_for_event, waiter);
    if (error)
        cal_fail(c, CLI_FAILED, "no thread can be started: %s", strerror(error));
    if (c->code)
        return 0;
    while (sem_wait(&waiter->ended) != 0) {
    }
    CAL_TRY(c, weir_queue_record(c->queues[0], &event));
    const double ns = (double)(cli_now_ns() - began);
    pthread_join(thread, NULL);
    return ns;
}

static double measure_wake(struct calibration *c, size_t at)
{
    const struct cal_work copy = {.kind = CAL_UP, .bytes = c->sizes[c->size_count - 2]};
    struct waiter waiter = {.status = WEIR_OK};
    (void)at;
    const double alone = cal_time(c, &copy, 1) + c->figures[CAL_SUBMIT_MARK].value;
    sem_init(&waiter.ended, 0, 0);
    const double ns = time_waiter(c, &waiter, &copy);
    sem_destroy(&waiter.ended);
    if (waiter.status != WEIR_OK)
        cal_fail(c, CLI_FAILED, "a wait in another thread failed: %s",
                 weir_status_text(waiter.status));
    return ns - alone;
}

void cal_measure_wake(struct calibration *c)
{
    cal_measure_figure(c, CAL_WAKE, measure_wake);
}
