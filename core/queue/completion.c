// Completion and failures: the failures of a queue, the ring of its waits, and the walk that passes failures on.
// See the header.
#include "core/queue/completion.h"

#include <inttypes.h>

#include "core/queue/operation.h"
#include "core/queue/queue.h"

// The failures of all queues, under one lock, also of those that are destroyed.

static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_FAILURES]);
static struct weir__failures *all; // of queues that have failed
// The number of failures booked so far. While it is zero, completion does not check
// causes.
static atomic_uint_fast64_t failure_count;
static atomic_uint_fast64_t recovery_count;

static void free_failures(struct weir__failures *failures)
{
    for (size_t i = 0; i < failures->count; i++)
        weir__release(failures->ranges[i].cause);
    weir__release(failures->ranges);
    weir__release(failures->spare);
    weir__release(failures);
}

// Room for the next range and its cause. False: out of memory.
static bool reserve(struct weir__failures *failures)
{
    if (!failures->spare)
        failures->spare = weir__allocate(sizeof *failures->spare);
    struct weir__failure *ranges =
        weir__grow(failures->ranges, failures->count, &failures->capacity, sizeof *ranges);
    failures->ranges = ranges ? ranges : failures->ranges;
    return ranges && failures->spare;
}

// The failure that has not been recovered, or NULL.
static struct weir__failure *find_open(const struct weir__failures *failures)
{
    struct weir__failure *last =
        failures->count > 0 ? &failures->ranges[failures->count - 1] : NULL;
    return last && last->last == UINT64_MAX ? last : NULL;
}

// The earliest failure that covers the operation, or NULL. Ends ascend, and beginnings need not: a driver may report a
// failure without its operation, and other ranks one of a collective before the last recovery.
static const struct weir__failure *find_failure(const struct weir__failures *failures,
                                                uint64_t sequence)
{
    const struct weir__failure *found = NULL;
    for (size_t i = failures->count; i-- > 0 && failures->ranges[i].last >= sequence;)
        if (failures->ranges[i].first <= sequence)
            found = &failures->ranges[i];
    return found;
}

// Copies the cause of the earliest failure that covers the operation; false: none.
static bool find_cause(const struct weir__failures *failures, uint64_t sequence,
                       struct weir_error *out_cause)
{
    const struct weir__failure *failure = find_failure(failures, sequence);
    if (!failure)
        return false;
    if (failure->cause) {
        *out_cause = *failure->cause;
        return true;
    }
    memset(out_cause, 0, sizeof *out_cause);
    out_cause->status = failure->status;
    snprintf(out_cause->message, sizeof out_cause->message,
             "operation %" PRIu64 " of the queue failed, or its driver found a failure there; the "
             "cause is no longer kept, since %d recoveries came after it",
             failure->first, WEIR__CAUSES_KEPT);
    snprintf(out_cause->remedy, sizeof out_cause->remedy,
             "ask for an event's error before its queue recovers so often");
    return true;
}

// A failure of `first` and all later operations, if none covers these yet.
static void add_failure(struct weir__failures *failures, uint64_t first,
                        const struct weir_error *cause)
{
    struct weir__failure *open = find_open(failures);
    if (open ? open->first <= first : !reserve(failures))
        return;
    if (!open) {
        open = &failures->ranges[failures->count++];
        *open = (struct weir__failure){.last = UINT64_MAX, .cause = failures->spare};
        failures->spare = NULL;
    }
    open->first = first;
    open->status = cause->status;
    *open->cause = *cause;
}

// The ring of waits.

// `head` and `tail` count without end and wrap together; a place
// in the ring is a count modulo the capacity. The reader is done with a wait when
// it moves `head`, and the writer overwrites its place only after that.

// A full ring costs a query to the driver, so it is large: 20 KiB.
#define CAPACITY_AT_FIRST 512u

// Appends a wait; false when the ring is full. For the writer.
static bool push(struct weir__wait_ring *waits, const struct weir__wait *wait)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_acquire);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_relaxed);

    if (tail - head == waits->capacity)
        return false;
    *weir__wait_ring_at(waits, tail) = *wait;
    atomic_store_explicit(&waits->tail, tail + 1, memory_order_release);
    return true;
}

// Stores the `index`-th wait, if it belongs to an operation up to `own`. For the reader.
static bool get(const struct weir__wait_ring *waits, uint32_t index, uint64_t own,
                struct weir__wait *out_wait)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);

    if (index >= tail - head || weir__wait_ring_at(waits, head + index)->own > own)
        return false;
    *out_wait = *weir__wait_ring_at(waits, head + index);
    return true;
}

// Removes the waits of operations up to `own`. For the reader.
static void drop(struct weir__wait_ring *waits, uint64_t own)
{
    unsigned head = atomic_load_explicit(&waits->head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(&waits->tail, memory_order_acquire);

    while (head != tail && weir__wait_ring_at(waits, head)->own <= own)
        head++;
    atomic_store_explicit(&waits->head, head, memory_order_release);
}

// Doubles the ring if more than half of it is used; false when there is no memory. With both locks held.
static bool grow(struct weir__wait_ring *waits)
{
    const unsigned head = atomic_load(&waits->head);
    const unsigned tail = atomic_load(&waits->tail);
    struct weir__wait_ring larger = {.capacity =
                                         waits->capacity ? 2 * waits->capacity : CAPACITY_AT_FIRST};

    if (waits->capacity && tail - head <= waits->capacity / 2)
        return true;
    larger.ring = weir__allocate(larger.capacity * sizeof *larger.ring);
    if (!larger.ring)
        return false;
    for (unsigned i = head; i != tail; i++)
        *weir__wait_ring_at(&larger, i) = *weir__wait_ring_at(waits, i);
    weir__release(waits->ring);
    waits->ring = larger.ring;
    waits->capacity = larger.capacity;
    return true;
}

// See the header for the rules. The walk lock is taken before that of the failures.

bool weir__completion_init(struct weir__completion *completion)
{
    completion->failures = weir__allocate(sizeof *completion->failures);
    return completion->failures && reserve(completion->failures);
}

void weir__completion_finish(struct weir__completion *completion)
{
    if (completion->failures && !weir__completion_has_failures(completion))
        free_failures(completion->failures);
    weir__release(completion->waits.ring);
}

void weir__completion_forget(const weir_runtime *runtime)
{
    weir_lock_take(&lock);
    for (struct weir__failures **at = &all, *failures; (failures = *at);) {
        if (failures->runtime != runtime) {
            at = &failures->next;
            continue;
        }
        *at = failures->next;
        free_failures(failures);
    }
    weir_lock_release(&lock);
}

// Copies the cause of the failure that the event has, whose queue is `producer`, or NULL if that is destroyed; false: none.
static bool cause_of(const weir_queue *producer, struct weir_event event,
                     struct weir_error *out_cause)
{
    if (producer ? !weir__completion_has_failures(&producer->completion)
                 : atomic_load_explicit(&failure_count, memory_order_acquire) == 0)
        return false;
    weir_lock_take(&lock);
    const struct weir__failures *failures = producer ? producer->completion.failures : all;
    while (!producer && failures && failures->queue != event.queue)
        failures = failures->next;
    const bool found = failures && find_cause(failures, event.sequence, out_cause);
    weir_lock_release(&lock);
    return found;
}

weir_status weir__event_status(const weir_queue *producer, struct weir_event event)
{
    struct weir_error cause;
    return cause_of(producer, event, &cause) ? weir__error_set(&cause) : WEIR_OK;
}

weir_status weir__completion_refuse(weir_queue *queue)
{
    struct weir_error cause;
    if (cause_of(queue, (struct weir_event){.sequence = UINT64_MAX}, &cause)) {
        if (cause.remedy[0] == '\0')
            snprintf(cause.remedy, sizeof cause.remedy,
                     "weir_queue_recover() lets the queue take work again");
        return weir__error_set(&cause);
    }
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "weir_queue_recover() clears it",
                      "queue '%s' has failed, and there was no memory to keep the cause",
                      weir__label_or_none(queue->member.object.label));
}

void weir__completion_fail(weir_queue *queue, uint64_t first, const struct weir_error *cause)
{
    struct weir__completion *completion = &queue->completion;
    struct weir__failures *failures = completion->failures;

    atomic_fetch_add(&failure_count, 1);
    weir_lock_take(&lock);
    if (!weir__completion_has_failures(completion)) {
        failures->queue = queue->member.object.id;
        failures->runtime = queue->member.device->runtime;
        failures->next = all;
        all = failures;
    }
    add_failure(failures, first, cause);
    atomic_store(&completion->has_failures, true);
    atomic_store(&completion->failed, true);
    weir_lock_release(&lock);
}

uint64_t weir__completion_failed_from(weir_queue *queue)
{
    const struct weir__completion *completion = &queue->completion;
    if (!atomic_load_explicit(&completion->failed, memory_order_acquire))
        return UINT64_MAX;
    weir_lock_take(&lock);
    const struct weir__failure *failure = find_open(completion->failures);
    const uint64_t first = failure ? failure->first : 1; // no memory was left to keep it
    weir_lock_release(&lock);
    return first;
}

static struct weir_lock *walk_lock(const weir_queue *queue)
{
    return &queue->member.device->shared->walk_lock;
}

void weir__completion_recover(weir_queue *queue, uint64_t sequence)
{
    struct weir__completion *completion = &queue->completion;

    weir_lock_take(walk_lock(queue));
    drop(&completion->waits, UINT64_MAX);
    weir_lock_take(&lock);
    struct weir__failures *failures = completion->failures;
    struct weir__failure *open = find_open(failures);
    if (open) // it does not cover later operations
        open->last = sequence;
    if (open && failures->count > WEIR__CAUSES_KEPT) {
        struct weir__failure *old = open - WEIR__CAUSES_KEPT;
        weir__release(old->cause);
        old->cause = NULL;
    }
    (void)reserve(failures);
    atomic_store(&completion->failed, false);
    atomic_store(&completion->refused, 0);
    weir_lock_release(&lock);
    weir_lock_release(walk_lock(queue));
    completion->recoveries++;
    atomic_fetch_add(&recovery_count, 1);
}

uint64_t weir__completion_recoveries(void)
{
    return atomic_load(&recovery_count);
}

// Drops the waits that are over, and moves the others towards the tail: a reader that goes on at a count misses
// none (weir__completion_next_wait()). With both locks held.
static void sift(weir_queue *queue)
{
    struct weir__wait_ring *waits = &queue->completion.waits;
    const unsigned head = atomic_load(&waits->head);
    unsigned kept = atomic_load(&waits->tail);
    weir_queue *producer = NULL; // usually of several waits in a row
    uint64_t pinned = 0;
    struct weir_error cause;

    for (unsigned i = kept; i != head; i--) {
        const struct weir__wait wait = *weir__wait_ring_at(waits, i - 1);
        if (wait.event.queue != pinned) {
            weir__registry_unpin(producer);
            producer = weir__registry_pin(wait.event.queue);
            pinned = wait.event.queue;
        }
        const bool done = !producer || weir__queue_is_past(producer, wait.event.sequence);
        const bool failed = done && cause_of(producer, wait.event, &cause);
        if (failed && !wait.order) // the queue gets the cause at once
            weir__completion_fail(queue, wait.own, &cause);
        if (!done || (failed && producer)) // the queue has a refused wait then
            *weir__wait_ring_at(waits, --kept) = wait;
    }
    weir__registry_unpin(producer);
    atomic_store(&waits->head, kept);
}

// Without syncs the list would grow without limit, so if it is full, first its
// middle is queried for completion, and only then it grows.
static bool make_room(weir_queue *queue)
{
    struct weir__wait_ring *waits = &queue->completion.waits;
    struct weir__wait middle;

    weir_lock_take(walk_lock(queue));
    bool any = get(waits, waits->capacity / 2, UINT64_MAX, &middle);
    weir_lock_release(walk_lock(queue));
    const struct weir_error saved = *weir_last_error();
    if (any && !middle.no_record)
        (void)weir__event_is_complete(middle.event);
    weir__error_set(&saved);
    weir_lock_take(walk_lock(queue));
    sift(queue);
    bool room = grow(waits);
    weir_lock_release(walk_lock(queue));
    return room;
}

static weir_status note_wait(weir_queue *queue, const struct weir__wait *wait)
{
    struct weir__wait_ring *waits = &queue->completion.waits;
    if (push(waits, wait))
        return WEIR_OK;
    if (make_room(queue) && push(waits, wait))
        return WEIR_OK;
    // Without the wait nothing after it is in order.
    weir__report(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to note a wait");
    weir__completion_fail(queue, wait->own, weir_last_error());
    weir__refused_note(queue, wait->event, !wait->no_record);
    return WEIR_ERROR_OUT_OF_MEMORY;
}

// A queue that has failed does not wait.
WEIR_COLD static weir_status refuse_wait(weir_queue *queue, const struct weir__wait *wait,
                                         const weir_queue *producer, uint32_t flags,
                                         const char *file, int line)
{
    if (producer) // what the program frees on the queue must still come after the event
        weir__refused_note(queue, wait->event, !wait->no_record);
    const weir_status status = weir__completion_refuse(queue);
    if (flags & WEIR_OPERATION_RELAUNCH)
        return weir__tell_refused(status, "weir_queue_graph", file, line);
    return flags & WEIR_OPERATION_INTERNAL
               ? status
               : weir__tell_refused(status, "weir_queue_wait", file, line);
}

weir_status weir__queue_wait_locked(weir_queue *queue, struct weir_event event,
                                    weir_queue *producer, uint32_t flags, const char *file,
                                    int line)
{
    const struct weir__wait wait = {.own = queue->sequence + 1,
                                    .event = event,
                                    .no_record = flags & WEIR_OPERATION_RELAUNCH,
                                    .order = flags & WEIR__WAIT_ORDERS};
    const atomic_bool *failed = &queue->completion.failed;
    struct weir_error cause;
    // Asked for before the cause: what is complete has its failures booked.
    const bool complete = !producer || weir__queue_is_past(producer, event.sequence);
    if (!wait.order && cause_of(producer, event, &cause) && !atomic_load(failed))
        weir__completion_fail(queue, wait.own, &cause);
    if (atomic_load_explicit(failed, memory_order_acquire))
        return refuse_wait(queue, &wait, producer, flags, file, line);
    if (!producer)
        return WEIR_OK;
    const bool implied =
        complete || (!wait.order && (producer == queue ||
                                     weir__wait_ring_covers(&queue->completion.waits, event)));
    // One that only orders is for the time after a failure alone. One for a producer that is complete and has failed
    // counts too, for the producer's own waits.
    const bool is_over =
        wait.order ? complete && weir__completion_failed_from(producer) > event.sequence : implied;
    if (!is_over)
        TRY(note_wait(queue, &wait));
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_WAIT,
                          (flags & ~WEIR__WAIT_ORDERS) | (implied ? WEIR_OPERATION_IMPLIED : 0u),
                          file, line);
    operation.u.wait.event = event;
    operation.u.wait.producer = producer;
    return weir__queue_submit_locked(queue, &operation);
}

// The walk: a queue that is complete up to an operation has ended its waits up to there, the oldest first, so their
// producers are complete up to these events. Each queue is booked once its waits are, and gets their causes before.
// The queues that it has come to are a stack, each pinned and with its target.

// The oldest wait that is not dropped, up to the queue's target. After a failure a wait proves nothing: it, or an operation
// before it, may have been refused, and the queue may have run without waiting for the producer. So it keeps those:
// see weir__refused_note().
static bool next_wait(weir_queue *queue, struct weir__wait *out_wait)
{
    struct weir__wait_ring *waits = &queue->completion.waits;
    const uint64_t target = queue->completion.target;
    struct weir__wait following;
    if (!get(waits, 0, target, out_wait) || out_wait->own >= weir__completion_failed_from(queue))
        return false;
    // Numbers of one queue ascend: of several waits in a row for it the last one is enough, unless one has failed.
    while (atomic_load(&failure_count) == 0 && get(waits, 1, target, &following) &&
           following.event.queue == out_wait->event.queue && following.order == out_wait->order) {
        drop(waits, out_wait->own);
        *out_wait = following;
    }
    return true;
}

static void book(weir_queue *queue, uint64_t sequence)
{
    atomic_uint_fast64_t *completed = &queue->completion.completed;
    uint_fast64_t known = atomic_load_explicit(completed, memory_order_relaxed);
    while (known < sequence &&
           !atomic_compare_exchange_weak_explicit(completed, &known, sequence, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

// Ends the wait, which is over. A queue that has got the cause keeps it.
static void end_wait(weir_queue *queue, const struct weir__wait *wait, weir_queue *producer)
{
    struct weir_error cause;
    if (!wait->order && cause_of(producer, wait->event, &cause))
        weir__completion_fail(queue, wait->own, &cause);
    else
        drop(&queue->completion.waits, wait->own);
}

// Adds the queue, which is pinned, to the top of the stack.
static weir_queue *push_queue(weir_queue *top, weir_queue *queue, uint64_t target)
{
    queue->completion.target = target;
    queue->completion.walk_next = top;
    return queue;
}

static weir_queue *pop_queue(weir_queue *top)
{
    weir_queue *next = top->completion.walk_next;
    book(top, top->completion.target);
    top->completion.target = 0;
    weir__registry_unpin(top);
    return next;
}

void weir__completion_complete(weir_queue *queue, uint64_t sequence)
{
    struct weir__wait wait;
    if (sequence <= atomic_load_explicit(&queue->completion.completed, memory_order_acquire))
        return;
    weir_lock_take(walk_lock(queue));
    // Cannot fail: the caller holds a reference on the queue.
    weir_queue *top = weir__registry_pin(queue->member.object.id);
    top = top ? push_queue(NULL, top, sequence) : NULL;
    while (top) {
        if (!next_wait(top, &wait)) {
            top = pop_queue(top);
            continue;
        }
        weir_queue *producer = wait.order ? NULL : weir__registry_pin(wait.event.queue);
        const bool is_past = !producer || weir__queue_is_past(producer, wait.event.sequence);
        if (!is_past && producer->completion.target == 0) {
            top = push_queue(top, producer, wait.event.sequence);
            continue;
        }
        if (!is_past) // it is on the stack for a wait that came after this event
            book(producer, wait.event.sequence);
        end_wait(top, &wait, producer);
        weir__registry_unpin(producer);
    }
    weir_lock_release(walk_lock(queue));
}

// The waits of a failed queue, from its failure on.

// The latest wait of the failed queue for that producer and of that kind; NULL: none. A launch has no record, so a
// record and another operation do not stand for each other. With both locks of the ring held.
static struct weir__wait *find_refused(const struct weir__wait_ring *waits,
                                       const struct weir__wait *wait, uint64_t failed_from)
{
    const unsigned head = atomic_load(&waits->head);
    for (unsigned i = atomic_load(&waits->tail); i != head; i--) {
        struct weir__wait *known = weir__wait_ring_at(waits, i - 1);
        if (known->own >= failed_from && known->event.queue == wait->event.queue &&
            known->no_record == wait->no_record)
            return known;
    }
    return NULL;
}

// A wait that another one covers is none, and one that came after the same accepted operation is replaced. So a failed
// queue's list grows with the operations that it accepts, and a recovery ends while calls are refused. A wait before an
// accepted operation stays as it is: if that is a call that always runs, it waits for it, and the later operation may
// come after the call.
void weir__refused_note(weir_queue *queue, struct weir_event event, bool is_record)
{
    struct weir__wait_ring *waits = &queue->completion.waits;
    const struct weir__wait wait = {.own = queue->sequence + 1,
                                    .event = event,
                                    .no_record = !is_record};

    if (event.queue == queue->member.object.id || event.sequence == 0)
        return;
    weir_lock_take(walk_lock(queue));
    struct weir__wait *known = find_refused(waits, &wait, weir__completion_failed_from(queue));
    if (!known || known->event.sequence < event.sequence) {
        atomic_fetch_add(&queue->completion.refused, 1); // also if out of memory for the list
        if (known && known->own == wait.own)
            *known = wait;
        else if (!push(waits, &wait) && grow(waits))
            (void)push(waits, &wait);
    }
    weir_lock_release(walk_lock(queue));
}

bool weir__refused_any(weir_queue *queue)
{
    const struct weir__wait_ring *waits = &queue->completion.waits;
    bool any = atomic_load(&queue->completion.refused) > 0;
    if (any || !atomic_load(&queue->completion.failed))
        return any;
    weir_lock_take(walk_lock(queue));
    const uint64_t failed_from = weir__completion_failed_from(queue);
    const unsigned tail = atomic_load(&waits->tail);
    any = tail != atomic_load(&waits->head) &&
          weir__wait_ring_at(waits, tail - 1)->own >= failed_from;
    weir_lock_release(walk_lock(queue));
    return any;
}

bool weir__completion_next_wait(weir_queue *queue, unsigned *at, uint64_t own,
                                struct weir__wait *out_wait)
{
    const struct weir__wait_ring *waits = &queue->completion.waits;
    weir_lock_take(walk_lock(queue));
    const unsigned head = atomic_load(&waits->head);
    if ((int)(*at - head) < 0)
        *at = head;
    const bool found = get(waits, *at - head, own, out_wait);
    ++*at;
    weir_lock_release(walk_lock(queue));
    return found;
}

void weir__refused_await(weir_queue *queue, uint64_t sequence)
{
    const struct weir_error saved = *weir_last_error();
    unsigned at = atomic_load(&queue->completion.waits.head);
    struct weir__wait wait;
    while (weir__completion_next_wait(queue, &at, sequence, &wait)) {
        weir_queue *producer = wait.no_record ? NULL : weir__registry_pin(wait.event.queue);
        if (!producer)
            continue;
        const struct weir_link *link = producer->delivery.link;
        (void)link->ops->event_wait(link, producer, wait.event.sequence, WEIR_FOREVER);
        weir__registry_unpin(producer);
    }
    weir__error_set(&saved);
}
