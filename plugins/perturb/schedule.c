// See perturb.h. The wait for an operation's end is a wait on `changed`, in which a batch that is
// in flight for too long becomes stalled: from then on it does not keep others from running.
#include <stdlib.h>

#include "base/clock.h"
#include "base/wait.h"
#include "plugins/perturb/perturb.h"

enum {
    // An operation that is not a host call runs this much longer before it is stalled: a kernel
    // on a slow machine is no sign of one that waits for the program.
    DEVICE_PATIENCE = 20,
};

// Pending operations.

void perturb_append(struct perturb_queue *queue, struct perturb_operation *operation)
{
    struct perturb *perturb = queue->perturb;
    if (queue->last)
        queue->last->next = operation;
    else
        queue->first = operation;
    for (; operation; operation = operation->next) {
        operation->number = ++perturb->number;
        operation->side = perturb_pair_side(perturb, perturb_of_user(operation));
        queue->last = operation;
        perturb->pending++;
    }
    queue->submitted = perturb_of_user(queue->last)->sequence;
    pthread_cond_broadcast(&perturb->changed);
}

static struct perturb_operation *pop(struct perturb_queue *queue)
{
    struct perturb_operation *first = queue->first;
    queue->first = first->next;
    if (!queue->first)
        queue->last = NULL;
    queue->perturb->pending--;
    return first;
}

void perturb_release(struct perturb_queue *queue)
{
    if (--queue->references == 0)
        free(queue);
}

// Whether the first operation, which may run, has nothing to do.
static bool is_settled(const struct perturb_queue *queue)
{
    return perturb_may_run(queue, 0) &&
           (perturb_of_user(queue->first)->kind == WEIR_OPERATION_WAIT ||
            perturb_operation_is_empty(perturb_of_user(queue->first)));
}

static bool settle_queue(struct perturb_queue *queue)
{
    bool any = false;
    for (; is_settled(queue); any = true) {
        struct perturb_operation *first = pop(queue);
        // Not its number: a disabled node of a launch has that of the launch.
        queue->granted = queue->handed_on = queue->done = perturb_operation_end(first);
        perturb_operation_destroy(first);
    }
    return any;
}

// Drops waits that are over, and what is empty. A queue's end may be the end of another's wait.
static bool settle(struct perturb *perturb)
{
    bool any = false;
    for (bool again = true; again; any = any || again) {
        again = false;
        for (struct perturb_queue *queue = perturb->queues; queue; queue = queue->next)
            again = settle_queue(queue) || again;
    }
    if (any)
        pthread_cond_broadcast(&perturb->changed);
    return any;
}

// Running.

static uint64_t patience_ns(const struct perturb_batch *batch)
{
    const uint64_t idle_ns = batch->queue->perturb->idle_ns;
    return batch->first->is_of_host ? idle_ns : DEVICE_PATIENCE * idle_ns;
}

static uint64_t next_stall_ns(const struct perturb *perturb, uint64_t deadline_ns)
{
    for (const struct perturb_batch *batch = perturb->flight; batch; batch = batch->next) {
        const uint64_t stall_ns = batch->since_ns + patience_ns(batch);
        if (!batch->stalled && stall_ns < deadline_ns)
            deadline_ns = stall_ns;
    }
    return deadline_ns;
}

static void mark_stalled(struct perturb *perturb)
{
    const uint64_t now_ns = weir_clock_now_ns();
    for (struct perturb_batch *batch = perturb->flight; batch; batch = batch->next) {
        if (batch->stalled || now_ns < batch->since_ns + patience_ns(batch))
            continue;
        batch->stalled = true;
        perturb->active--;
        perturb->counts.stalled++;
        pthread_cond_broadcast(&perturb->changed);
    }
}

void perturb_wait(struct perturb *perturb, uint64_t deadline_ns)
{
    const uint64_t until_ns = next_stall_ns(perturb, deadline_ns);
    if (until_ns == WEIR_FOREVER) {
        weir_wait(&perturb->changed, &perturb->lock);
    } else {
        const struct timespec until = weir_clock_timespec(until_ns);
        weir_wait_until(&perturb->changed, &perturb->lock, &until);
    }
    mark_stalled(perturb);
}

// The operation at the head of the queue, and the records after it.
static struct perturb_operation *end_of_batch(const struct perturb_queue *queue)
{
    struct perturb_operation *at = queue->first;
    while (at->next && (perturb_of_user(at->next)->kind == WEIR_OPERATION_RECORD ||
                        perturb_operation_is_empty(perturb_of_user(at->next))))
        at = at->next;
    return at;
}

static bool start_one(struct perturb *perturb, struct perturb_queue *goal, unsigned flags)
{
    settle(perturb);
    struct perturb_queue *queue = perturb_choose(perturb, goal, flags);
    if (!queue)
        return false;
    perturb_pair_note(perturb, queue->first);
    perturb_grant(queue, end_of_batch(queue));
    return true;
}

// The thread that runs what is not asked for may go on.
static void stop_waiting(struct perturb *perturb)
{
    if (--perturb->waiting == 0)
        pthread_cond_broadcast(&perturb->changed);
}

static void wait_for_active(struct perturb *perturb)
{
    perturb->waiting++;
    while (perturb->active)
        perturb_wait(perturb, WEIR_FOREVER);
    stop_waiting(perturb);
}

bool perturb_run_one(struct perturb *perturb, struct perturb_queue *queue, uint64_t sequence,
                     unsigned flags)
{
    const bool is_goal = queue && queue->done < sequence;
    wait_for_active(perturb);
    if (!start_one(perturb, is_goal ? queue : NULL, flags))
        return false;
    wait_for_active(perturb);
    settle(perturb);
    return true;
}

bool perturb_run_until(struct perturb_queue *queue, uint64_t sequence, uint64_t deadline_ns,
                       unsigned flags)
{
    struct perturb *perturb = queue->perturb;
    bool given_up = false;
    perturb->waiting++;
    while (queue->done < sequence && !given_up && weir_clock_now_ns() < deadline_ns) {
        if (perturb->active == 0 && (settle(perturb) || start_one(perturb, queue, flags)))
            continue;
        if (perturb->active == 0 && flags & PERTURB_GIVE_UP)
            given_up = true;
        else
            perturb_wait(perturb, deadline_ns);
    }
    stop_waiting(perturb);
    return queue->done >= sequence;
}

static struct perturb_operation *last_up_to(const struct perturb_queue *queue, uint64_t sequence)
{
    struct perturb_operation *last = queue->first;
    while (last->next && perturb_of_user(last->next)->sequence <= sequence)
        last = last->next;
    return last;
}

void perturb_drain(struct perturb_queue *queue, uint64_t sequence, unsigned flags)
{
    struct perturb *perturb = queue->perturb;
    if (perturb_run_until(queue, sequence, WEIR_FOREVER, flags | PERTURB_GIVE_UP))
        return;
    if (queue->granted < sequence)
        perturb_grant(queue, last_up_to(queue, sequence));
    while (queue->handed_on < queue->granted)
        perturb_wait(perturb, WEIR_FOREVER);
}

void perturb_drop(struct perturb_queue *queue)
{
    struct perturb *perturb = queue->perturb;
    while (queue->first)
        perturb_operation_destroy(pop(queue));
    while (queue->in_flight)
        perturb_wait(perturb, WEIR_FOREVER);
    queue->granted = queue->handed_on = queue->done = UINT64_MAX;
    pthread_cond_broadcast(&perturb->changed);
}
