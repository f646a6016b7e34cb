// See perturb.h. The wait for an operation's end is a wait on `changed`, in which a batch that is
// in flight for too long becomes stalled: from then on it does not keep others from running.

#include "base/clock.h"
#include "base/wait.h"
#include "plugins/perturb/perturb.h"

// Mode `random`: each queue has a priority, the highest of those that may run goes first, and
// after some of the choices the chosen queue gets a new one. With priorities that change seldom
// a queue runs far ahead of another one, which an independent choice at every step reaches once
// in two to the power of the distance (Burckhardt and others, "A randomized scheduler with
// probabilistic guarantees of finding bugs", 2010); with such that change at each step any order
// can occur. How often they change, and how often something runs before it is asked for, is a
// matter of the seed.

static bool is_awaited(const struct perturb_operation *operation)
{
    return operation->producer && operation->producer->done < operation->awaited;
}

static bool may_run(const struct perturb_queue *queue, unsigned flags)
{
    const struct perturb_operation *first = queue->first;
    return first && queue->in_flight == 0 && !is_awaited(first) &&
           !(flags & PERTURB_NO_HOST_CALLS && first->is_of_host);
}

// Whether an operation of that side of the pair is pending, with a number from `least` to `most`.
static bool has_pending(const struct perturb *perturb, unsigned side, uint64_t least, uint64_t most)
{
    for (const struct perturb_queue *queue = perturb->queues; queue; queue = queue->next)
        for (const struct perturb_operation *at = queue->first; at && at->number <= most;
             at = at->next)
            if (at->side == side && at->number >= least)
                return true;
    return false;
}

// Whether the operation, which may run, is held back for the other one. With the lock held.
static bool perturb_pair_holds(const struct perturb *perturb,
                               const struct perturb_operation *operation)
{
    return operation->side == 1 && (perturb->ran_second < operation->number ||
                                    has_pending(perturb, 2, operation->number, UINT64_MAX));
}

// The earliest submitted of those that may run; `holds` leaves out what the pair holds back.
static struct perturb_queue *earliest(const struct perturb *perturb, unsigned flags, bool holds)
{
    struct perturb_queue *found = NULL;
    for (struct perturb_queue *queue = perturb->queues; queue; queue = queue->next) {
        if (!may_run(queue, flags) || (holds && perturb_pair_holds(perturb, queue->first)))
            continue;
        if (!found || queue->first->number < found->first->number)
            found = queue;
    }
    return found;
}

static struct perturb_queue *choose_random(struct perturb *perturb, unsigned flags)
{
    struct perturb_queue *found = NULL;
    for (struct perturb_queue *queue = perturb->queues; queue; queue = queue->next)
        if (may_run(queue, flags) && (!found || queue->priority > found->priority))
            found = queue;
    if (found && perturb->redraw && weir_random_next(&perturb->random) % perturb->redraw == 0)
        found->priority = weir_random_next(&perturb->random);
    return found;
}

// The goal's queue, or the one that it waits for in the end. What the goal needs may have been
// handed on before, and then all that is left may be needed.
static struct perturb_queue *choose_needed(const struct perturb *perturb,
                                           struct perturb_queue *goal, unsigned flags)
{
    struct perturb_queue *at = goal;
    while (at && at->first && at->in_flight == 0 && is_awaited(at->first))
        at = at->first->producer;
    return at && may_run(at, flags) ? at : earliest(perturb, flags, false);
}

// The queue whose first operation is next; NULL: none may run. `goal` may be NULL.
static struct perturb_queue *perturb_choose(struct perturb *perturb, struct perturb_queue *goal,
                                            unsigned flags)
{
    struct perturb_queue *found;
    uint64_t candidates = 0;
    for (const struct perturb_queue *queue = perturb->queues; queue && candidates < 2;
         queue = queue->next)
        candidates += may_run(queue, flags);
    perturb->counts.choices += candidates > 1;
    switch (perturb->mode) {
    case PERTURB_LATE:
        return choose_needed(perturb, goal, flags);
    case PERTURB_PAIR:
        found = earliest(perturb, flags, true);
        return found ? found : earliest(perturb, flags, false);
    case PERTURB_RANDOM:
        break;
    }
    return choose_random(perturb, flags);
}

// Mode `pair`: everything runs in the order of submission, except that an operation of the first
// line is held back until one of the second line, submitted after it, has run, and no further one is
// pending: in a loop it need not be the next one that races with it.

// The program's compiler may have seen a longer path than the user writes, and the other way
// round.
static bool is_end_of(const char *end, const char *path)
{
    const size_t length = strlen(end);
    const size_t whole = strlen(path);
    return length <= whole && strcmp(path + whole - length, end) == 0 &&
           (length == whole || path[whole - length - 1] == '/');
}

static bool is_of(const struct perturb_line *line, const struct weir_operation *operation)
{
    return line->line == operation->line && operation->file &&
           (is_end_of(line->file, operation->file) || is_end_of(operation->file, line->file));
}

unsigned perturb_pair_side(const struct perturb *perturb, const struct weir_operation *operation)
{
    if (perturb->mode != PERTURB_PAIR)
        return 0;
    if (is_of(&perturb->pair[0], operation))
        return 1;
    return is_of(&perturb->pair[1], operation) ? 2 : 0;
}

enum {
    // An operation that is not a host call runs this much longer before it is stalled: a kernel
    // on a slow machine is no sign of one that waits for the program.
    DEVICE_PATIENCE = 20,
};

// Pending operations.

struct perturb_operation *perturb_take(struct perturb_queue *queue, struct perturb_operation *last)
{
    struct perturb_operation *first = queue->first;
    queue->first = last->next;
    if (!queue->first)
        queue->last = NULL;
    last->next = NULL;
    for (const struct perturb_operation *at = first; at; at = at->next)
        queue->perturb->pending--;
    return first;
}

void perturb_release(struct perturb_queue *queue)
{
    if (--queue->references == 0)
        free(queue);
}

void perturb_operations_destroy(struct perturb_operation *first)
{
    while (first) {
        struct perturb_operation *next = first->next;
        if (first->producer)
            perturb_release(first->producer);
        free(first);
        first = next;
    }
}

// The sequence up to which the queue is complete when this operation is.
static uint64_t end_of(const struct perturb_operation *operation)
{
    const struct weir_operation *own = perturb_of_user(operation);
    return own->flags & WEIR_OPERATION_PART ? own->sequence - 1 : own->sequence;
}

// Whether only its place in the order matters, so that it is not handed on.
static bool is_empty(const struct weir_operation *operation)
{
    return operation->flags & WEIR_OPERATION_EMPTY ||
           operation->kind == WEIR_OPERATION_POOL_ALLOCATE ||
           operation->kind == WEIR_OPERATION_POOL_FREE;
}

static bool settle_queue(struct perturb_queue *queue)
{
    bool any = false;
    while (may_run(queue, 0) && (perturb_of_user(queue->first)->kind == WEIR_OPERATION_WAIT ||
                                 is_empty(perturb_of_user(queue->first)))) {
        struct perturb_operation *first = perturb_take(queue, queue->first);
        // Not its number: a disabled node of a launch has that of the launch.
        queue->done = end_of(first);
        perturb_operations_destroy(first);
        any = true;
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

void perturb_wait(struct perturb *perturb, uint64_t deadline_ns)
{
    weir_wait_until(&perturb->changed, &perturb->lock, next_stall_ns(perturb, deadline_ns));
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

// Handing on. Each batch in flight has a thread, which hands it on and waits for its end. A thread is kept
// for the next batch, so that there is one, and more only while operations are stalled.

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
    struct weir_operation operation = // the first itself is not handed on yet
        weir_operation_internal(WEIR_OPERATION_HOST_CALL, first, first->sequence - 1);
    operation.u.host_call.function = gate;
    operation.u.host_call.user = batch;
    (void)submit(batch, &operation);
}

static void hand_on(struct perturb_batch *batch)
{
    struct perturb *perturb = batch->queue->perturb;
    const struct weir_link *next = perturb->link->next;
    submit_gate(batch);
    for (struct perturb_operation *at = batch->first; at; at = at->next) {
        const struct weir_operation *own = perturb_of_user(at);
        const weir_status status = is_empty(own) ? WEIR_OK : submit(batch, own);
        if (status < 0)
            perturb->link->host->fail(batch->queue->object, own, status);
    }
    pthread_mutex_lock(&perturb->lock);
    batch->open = true;
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
    perturb_operations_destroy(batch->first);
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

// Takes the pending operations of the queue up to `last`, and runs them. The lock may be released meanwhile.
static void grant(struct perturb_queue *queue, struct perturb_operation *last)
{
    struct perturb *perturb = queue->perturb;
    // What may not is handed on all the same, and then held: others need not wait for its end.
    const bool runs = may_run(queue, 0);
    struct perturb_operation *first = perturb_take(queue, last);
    struct perturb_batch *batch = &first->batch;
    *batch = (struct perturb_batch){
        .next = perturb->flight,
        .queue = queue,
        .first = first,
        .last = end_of(last),
        .since_ns = weir_clock_now_ns(),
        .stalled = !runs,
    };
    // The line tells the nodes of a graph apart.
    const uint64_t of_queue = mix(perturb->counts.schedule, queue->index + 1);
    perturb->counts.schedule = mix(mix(of_queue, perturb_of_user(first)->sequence),
                                   (uint64_t)perturb_of_user(first)->line);
    perturb->counts.operations++;
    queue->in_flight++;
    perturb->flight = batch;
    perturb->active += runs;
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

static bool start_one(struct perturb *perturb, struct perturb_queue *goal, unsigned flags)
{
    settle(perturb);
    struct perturb_queue *queue = perturb_choose(perturb, goal, flags);
    if (!queue)
        return false;
    struct perturb_operation *last = queue->first;
    if (last->side == 2) {
        if (last->number > perturb->ran_second)
            perturb->ran_second = last->number;
        perturb->counts.reversed += has_pending(perturb, 1, 0, last->number);
    }
    while (last->next && (perturb_of_user(last->next)->kind == WEIR_OPERATION_RECORD ||
                          is_empty(perturb_of_user(last->next))))
        last = last->next;
    grant(queue, last);
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

// Whether operations of the queue are on their way to the front end.
static bool hands_on(const struct perturb *perturb, const struct perturb_queue *queue)
{
    const struct perturb_batch *batch = perturb->flight;
    while (batch && (batch->open || batch->queue != queue))
        batch = batch->next;
    return batch;
}

void perturb_drain(struct perturb_queue *queue, uint64_t sequence, unsigned flags)
{
    struct perturb *perturb = queue->perturb;
    struct perturb_operation *last = NULL;
    if (perturb_run_until(queue, sequence, WEIR_FOREVER, flags | PERTURB_GIVE_UP))
        return;
    for (struct perturb_operation *at = queue->first;
         at && perturb_of_user(at)->sequence <= sequence; at = at->next)
        last = at;
    if (last)
        grant(queue, last);
    while (hands_on(perturb, queue))
        perturb_wait(perturb, WEIR_FOREVER);
}
