// Each batch in flight has a thread, which hands it on and waits for its end. A thread is kept
// for the next batch, so that there is one, and more only while operations are stalled.
#include <stdlib.h>

#include "base/clock.h"
#include "plugins/perturb/perturb.h"

// A program may wait for what a host call sets, for a descriptor, or for memory that a kernel
// writes, and then asks for nothing. Work goes on without being asked for on every backend, so
// here it does after a pause.

// When work that is pending runs unasked, if the program does not call before.
static uint64_t due_ns(const struct perturb *perturb)
{
    const bool idle = perturb->pending && perturb->waiting == 0;
    return idle ? perturb->touched_ns + perturb->idle_ns : WEIR_FOREVER;
}

static void run_idle(void *argument)
{
    struct perturb *perturb = argument;
    pthread_mutex_lock(&perturb->lock);
    while (!perturb->stop) {
        const uint64_t due = due_ns(perturb);
        if (weir_clock_now_ns() < due)
            perturb_wait(perturb, due);
        else if (perturb_run_one(perturb, NULL, 0, 0))
            perturb->counts.idle++;
        else if (!perturb->stop) // it may be set since: running one waits for those that run_idle
            pthread_cond_wait(&perturb->changed, &perturb->lock);
    }
    pthread_mutex_unlock(&perturb->lock);
}

bool perturb_idle_start(struct perturb *perturb)
{
    if (!perturb->has_idle)
        perturb->has_idle = weir_thread_start(&perturb->idle, run_idle, perturb) == 0;
    return perturb->has_idle;
}

// What follows is held until all of the batch is: the front end books what a driver says to an
// operation only when it delivers it, and this thread could not.
static weir_status gate(void *user)
{
    struct perturb_batch *batch = user;
    struct perturb *perturb = batch->queue->perturb;
    pthread_mutex_lock(&perturb->lock);
    while (!batch->open)
        pthread_cond_wait(&perturb->changed, &perturb->lock);
    pthread_mutex_unlock(&perturb->lock);
    return WEIR_OK;
}

static weir_status submit(const struct perturb_batch *batch, const struct weir_operation *operation)
{
    const struct weir_link *next = batch->queue->perturb->link->next;
    return next->ops->queue_submit(next, batch->queue->object, operation);
}

// Out of memory for it, what follows runs at once, in the same order.
static void submit_gate(struct perturb_batch *batch)
{
    const struct weir_operation *first = perturb_of_user(batch->first);
    struct weir_operation operation = {
        .struct_size = sizeof operation,
        .kind = WEIR_OPERATION_HOST_CALL,
        .flags = WEIR_OPERATION_INTERNAL,
        .file = first->file,
        .line = first->line,
        .sequence = first->sequence - 1, // the first itself is not handed on yet
    };
    operation.u.host_call.function = gate;
    operation.u.host_call.user = batch;
    (void)submit(batch, &operation);
}

static void submit_own(struct perturb_batch *batch, const struct weir_operation *operation)
{
    const weir_status status =
        perturb_operation_is_empty(operation) ? WEIR_OK : submit(batch, operation);
    if (status < 0)
        batch->queue->perturb->link->host->fail(batch->queue->object, operation, status);
}

static void hand_on(struct perturb_batch *batch)
{
    struct perturb *perturb = batch->queue->perturb;
    const struct weir_link *next = perturb->link->next;
    submit_gate(batch);
    for (struct perturb_operation *at = batch->first; at; at = at->next)
        submit_own(batch, perturb_of_user(at));
    pthread_mutex_lock(&perturb->lock);
    batch->open = true;
    batch->queue->handed_on = batch->last;
    pthread_cond_broadcast(&perturb->changed);
    pthread_mutex_unlock(&perturb->lock);
    // The program is told of a failure when it asks for an event.
    (void)next->ops->queue_finish(next, batch->queue->object);
}

// With the lock held. The batch is part of its first operation.
static void end(struct perturb_batch *batch)
{
    struct perturb_queue *queue = batch->queue;
    struct perturb *perturb = queue->perturb;
    struct perturb_batch **at = &perturb->flight;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
    perturb->active -= !batch->stalled;
    queue->in_flight--;
    if (queue->done < batch->last)
        queue->done = batch->last;
    for (struct perturb_operation *first = batch->first; first;) {
        struct perturb_operation *next = first->next;
        perturb_operation_destroy(first);
        first = next;
    }
    pthread_cond_broadcast(&perturb->changed);
}

static void run(void *argument)
{
    struct perturb_runner *runner = argument;
    struct perturb *perturb = runner->perturb;
    pthread_mutex_lock(&perturb->lock);
    for (;;) {
        struct perturb_batch *batch = runner->batch;
        if (batch) {
            pthread_mutex_unlock(&perturb->lock);
            hand_on(batch);
            pthread_mutex_lock(&perturb->lock);
            end(batch);
            runner->batch = NULL;
        } else if (perturb->stop) {
            break;
        } else {
            pthread_cond_wait(&perturb->changed, &perturb->lock);
        }
    }
    pthread_mutex_unlock(&perturb->lock);
}

static struct perturb_runner *find_runner(struct perturb *perturb)
{
    for (struct perturb_runner *runner = perturb->runners; runner; runner = runner->next)
        if (!runner->batch)
            return runner;
    struct perturb_runner *runner = calloc(1, sizeof *runner);
    if (!runner)
        return NULL;
    runner->perturb = perturb;
    if (weir_thread_start(&runner->thread, run, runner) != 0) {
        free(runner);
        return NULL;
    }
    runner->next = perturb->runners;
    perturb->runners = runner;
    return runner;
}

static uint64_t mix(uint64_t digest, uint64_t number)
{
    digest = (digest ^ number) * UINT64_C(0x100000001b3);
    return digest ^ digest >> 32;
}

// Adds what is chosen to the digest of the order. The line tells the nodes of a graph apart.
static void note(const struct perturb_queue *queue, const struct weir_operation *operation)
{
    uint64_t *digest = &queue->perturb->counts.schedule;
    *digest = mix(*digest, queue->index + 1);
    *digest = mix(*digest, operation->sequence);
    *digest = mix(*digest, (uint64_t)operation->line);
}

static struct perturb_batch *take_batch(struct perturb_queue *queue, struct perturb_operation *last)
{
    struct perturb_operation *first = queue->first;
    // What may not is handed on all the same, and then held: others need not wait for its end.
    const bool may_run = perturb_may_run(queue, 0);
    queue->perturb->pending--;
    for (const struct perturb_operation *at = first; at != last; at = at->next)
        queue->perturb->pending--;
    queue->first = last->next;
    if (!queue->first)
        queue->last = NULL;
    last->next = NULL;
    first->batch = (struct perturb_batch){
        .queue = queue,
        .first = first,
        .last = perturb_operation_end(last),
        .since_ns = weir_clock_now_ns(),
        .stalled = !may_run,
    };
    return &first->batch;
}

void perturb_grant(struct perturb_queue *queue, struct perturb_operation *last)
{
    struct perturb *perturb = queue->perturb;
    struct perturb_batch *batch = take_batch(queue, last);
    note(queue, perturb_of_user(batch->first));
    perturb->counts.operations++;
    queue->granted = batch->last;
    queue->in_flight++;
    batch->next = perturb->flight;
    perturb->flight = batch;
    perturb->active += !batch->stalled;
    struct perturb_runner *runner = find_runner(perturb);
    if (runner) {
        runner->batch = batch;
        pthread_cond_broadcast(&perturb->changed);
        return;
    }
    pthread_mutex_unlock(&perturb->lock);
    hand_on(batch);
    pthread_mutex_lock(&perturb->lock);
    end(batch);
}

void perturb_runners_finish(struct perturb *perturb)
{
    pthread_mutex_lock(&perturb->lock);
    perturb->stop = true;
    pthread_cond_broadcast(&perturb->changed);
    pthread_mutex_unlock(&perturb->lock);
    if (perturb->has_idle)
        weir_thread_join(&perturb->idle);
    while (perturb->runners) {
        struct perturb_runner *runner = perturb->runners;
        perturb->runners = runner->next;
        weir_thread_join(&runner->thread);
        free(runner);
    }
}
