// The failures that a queue has had, and what a failed queue refuses. See the headers.
#include "core/queue/failures.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "core/object/peer.h"
#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/queue/retire.h"
#include "core/support/error.h"
#include "core/support/locks.h"
#include "core/support/memory.h"

// The ranges of `past` are disjoint and ascend.

// One failure: operations first..last report `cause`.
struct weir__failure {
    struct weir__failure *next;
    uint64_t first;
    uint64_t last; // UINT64_MAX until recovered
    struct weir_error cause;
};

struct weir__failure *weir__failure_make(void)
{
    return weir__allocate(sizeof(struct weir__failure));
}

bool weir__failures_init(struct weir__failures *failures)
{
    failures->spare = weir__failure_make();
    return failures->spare != NULL;
}

static void free_list(struct weir__failure *failure, const struct weir__failure *end)
{
    while (failure != end) {
        struct weir__failure *next = failure->next;
        weir__release(failure);
        failure = next;
    }
}

void weir__failures_finish(struct weir__failures *failures)
{
    free_list(failures->latest, failures->shared_from);
    if (!failures->shared)
        weir__release(failures->past);
    weir__release(failures->spare);
}

struct weir__failures weir__failures_share(struct weir__failures *failures)
{
    struct weir__failures copy = *failures;
    copy.spare = NULL;
    failures->shared = true;
    failures->shared_from = failures->latest;
    return copy;
}

// The earliest failure of the list that covers `sequence`.
static const struct weir__failure *find_latest(const struct weir__failures *failures,
                                               uint64_t sequence)
{
    const struct weir__failure *found = NULL;
    for (const struct weir__failure *f = failures->latest; f; f = f->next)
        if (f->first <= sequence && sequence <= f->last && (!found || f->first < found->first))
            found = f;
    return found;
}

uint64_t weir__failures_open(const struct weir__failures *failures)
{
    const struct weir__failure *first = find_latest(failures, UINT64_MAX);
    return first ? first->first : 1;
}

static const struct weir__past *find_past(const struct weir__failures *failures, uint64_t sequence)
{
    size_t low = 0;
    size_t high = failures->past_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (failures->past[middle].last < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == failures->past_count || failures->past[low].first > sequence)
        return NULL;
    return &failures->past[low];
}

static void describe_past(const struct weir__past *past, struct weir_error *out_cause)
{
    memset(out_cause, 0, sizeof *out_cause);
    out_cause->status = past->status;
    snprintf(out_cause->message, sizeof out_cause->message,
             "operation %" PRIu64 " of the queue failed, or its driver found a failure there; the "
             "cause is no longer kept, since %d recoveries came after it",
             past->first, WEIR__CAUSES_KEPT);
    snprintf(out_cause->remedy, sizeof out_cause->remedy,
             "ask for an event's error before its queue recovers so often");
}

bool weir__failures_find(const struct weir__failures *failures, uint64_t sequence,
                         struct weir_error *out_cause)
{
    const struct weir__past *past = find_past(failures, sequence);
    const struct weir__failure *latest = past ? NULL : find_latest(failures, sequence);
    if (past)
        describe_past(past, out_cause);
    else if (latest)
        *out_cause = latest->cause;
    return past || latest;
}

struct weir__failure *weir__failures_add(struct weir__failures *failures,
                                         struct weir__failure *made, uint64_t first,
                                         const struct weir_error *cause)
{
    const struct weir__failure *known = find_latest(failures, UINT64_MAX);
    if (!made) {
        made = failures->spare;
        failures->spare = NULL;
    }
    if (!made || (known && known->first <= first))
        return made;
    *made = (struct weir__failure){.next = failures->latest,
                                   .first = first,
                                   .last = UINT64_MAX,
                                   .cause = *cause};
    failures->latest = made;
    return NULL;
}

// Recovery.

void weir__recovery_begin(const struct weir__failures *failures, struct weir__recovery *recovery)
{
    const size_t capacity = failures->past_capacity;
    *recovery = (struct weir__recovery){.spare = weir__failure_make()};
    if (failures->past_count < capacity)
        return;
    recovery->past_capacity = capacity ? 2 * capacity : 64;
    recovery->past = weir__allocate(recovery->past_capacity * sizeof *recovery->past);
}

// Ends the open failures. The first in the list has the lowest number, and covers the others, which
// are removed.
static void close_open(struct weir__failures *failures, uint64_t sequence)
{
    struct weir__failure *first = failures->latest;
    if (!first || first->last != UINT64_MAX)
        return;
    first->last = sequence;
    while (first->next && first->next->last == UINT64_MAX) {
        struct weir__failure *covered = first->next;
        first->next = covered->next;
        weir__release(covered);
    }
}

static void take_room(struct weir__failures *failures, struct weir__recovery *recovery)
{
    struct weir__past *old = failures->past;
    if (!recovery->past)
        return;
    if (old)
        memcpy(recovery->past, old, failures->past_count * sizeof *old);
    failures->past = recovery->past;
    failures->past_capacity = recovery->past_capacity;
    recovery->past = old;
}

// Two ranges overlap if a driver reported a failure without its operation.
static bool joins(struct weir__past *last, const struct weir__failure *failure)
{
    if (failure->first > last->last)
        return false;
    last->last = failure->last > last->last ? failure->last : last->last;
    return true;
}

static void add_past(struct weir__failures *failures, const struct weir__failure *failure)
{
    if (failures->past_count > 0 && joins(&failures->past[failures->past_count - 1], failure))
        return;
    failures->past[failures->past_count++] =
        (struct weir__past){failure->first, failure->last, failure->cause.status};
}

// The oldest failure becomes a past one if the list is longer than it may be.
static void shorten(struct weir__failures *failures)
{
    struct weir__failure **at = &failures->latest;
    size_t count = 0;
    if (failures->past_count == failures->past_capacity)
        return;
    for (; *at && (*at)->next; at = &(*at)->next)
        count++;
    if (count < WEIR__CAUSES_KEPT)
        return;
    add_past(failures, *at);
    weir__release(*at);
    *at = NULL;
}

void weir__failures_recover(struct weir__failures *failures, uint64_t sequence,
                            struct weir__recovery *recovery)
{
    if (!failures->spare) {
        failures->spare = recovery->spare;
        recovery->spare = NULL;
    }
    if (failures->shared) {
        for (struct weir__failure *f = failures->latest; f; f = f->next)
            f->last = f->last == UINT64_MAX ? sequence : f->last;
        return;
    }
    close_open(failures, sequence);
    take_room(failures, recovery);
    shorten(failures);
}

void weir__recovery_end(struct weir__recovery *recovery)
{
    weir__release(recovery->spare);
    weir__release(recovery->past);
}

// The waits are those of the queue's ring from its failure on. Each look begins anew, since
// nothing is locked while a producer is waited for.

static struct weir_lock *walk_lock(const weir_queue *queue)
{
    return &queue->member.device->shared->walk_lock;
}

// Noting.

// Whether the list has the wait: it is covered, or takes the place of one that came after the same accepted
// operation. So a failed queue's list grows with the operations that it accepts, and not with the calls that
// it refuses. A wait before an accepted operation stays as it is: if that is a call that always runs, it
// waits for it (host_call.c), and the later operation may come after the call. It waits for records only, so a
// record and another operation do not stand for each other. With both locks of the ring held.
static bool merge(struct weir__wait_ring *waits, const struct weir__wait *wait,
                  uint64_t failed_from)
{
    const unsigned head = atomic_load(&waits->head);
    for (unsigned i = atomic_load(&waits->tail); i != head; i--) {
        struct weir__wait *known = weir__wait_ring_at(waits, i - 1);
        if (known->own < failed_from || known->event.queue != wait->event.queue ||
            known->no_record != wait->no_record)
            continue;
        if (known->event.sequence >= wait->event.sequence)
            return true;
        if (known->own != wait->own)
            return false;
        *known = *wait;
        return true;
    }
    return false;
}

void weir__refused_note(weir_queue *queue, struct weir_event event, bool is_record)
{
    struct weir__completion *completion = &queue->completion;
    struct weir__wait_ring *waits = &completion->waits;
    const struct weir__wait wait = {.own = queue->sequence + 1,
                                    .event = event,
                                    .no_record = !is_record};

    if (event.queue == queue->member.object.id || event.sequence == 0)
        return;
    weir_lock_take(walk_lock(queue));
    if (!merge(waits, &wait, weir__completion_failed_from(queue)) &&
        !weir__wait_ring_push(waits, &wait) &&
        !(weir__wait_ring_grow(waits) && weir__wait_ring_push(waits, &wait)))
        atomic_fetch_add(&completion->lost_waits, 1);
    weir_lock_release(walk_lock(queue));
}

// Looking.

bool weir__refused_next(weir_queue *queue, uint64_t after, uint64_t own,
                        struct weir__wait *out_wait)
{
    const struct weir__wait_ring *waits = &queue->completion.waits;
    bool found = false;
    weir_lock_take(walk_lock(queue));
    for (uint32_t i = weir__wait_ring_find(waits, after);
         !found && weir__wait_ring_get(waits, i, own, out_wait); i++)
        found = !out_wait->over && !out_wait->no_record;
    weir_lock_release(walk_lock(queue));
    return found;
}

// The place in the list of a wait that is not over; NULL: another one has taken it. With the walk lock held.
static struct weir__wait *find_known(const struct weir__wait_ring *waits,
                                     const struct weir__wait *wait)
{
    const unsigned head = atomic_load(&waits->head);
    const unsigned tail = atomic_load(&waits->tail);
    for (unsigned i = head + weir__wait_ring_find(waits, wait->own - 1); i != tail; i++) {
        struct weir__wait *known = weir__wait_ring_at(waits, i);
        if (known->own != wait->own)
            break;
        if (!known->over && known->event.queue == wait->event.queue &&
            known->event.sequence == wait->event.sequence)
            return known;
    }
    return NULL;
}

void weir__refused_end(weir_queue *queue, const struct weir__wait *wait)
{
    weir_lock_take(walk_lock(queue));
    struct weir__wait *known = find_known(&queue->completion.waits, wait);
    if (known)
        known->over = true;
    weir_lock_release(walk_lock(queue));
}

// A wait whose producer is not known to have ended, and the queue that has it; both queues are pinned.
struct open_wait {
    weir_queue *queue;
    weir_queue *producer;
    struct weir__wait wait;
};

static void add(weir_queue **list, weir_queue *queue, uint64_t until, bool *changed)
{
    struct weir__completion *completion = &queue->completion;
    *changed = *changed || completion->target < until;
    if (completion->target > 0) {
        completion->target = completion->target < until ? until : completion->target;
        weir__registry_unpin_later(queue);
        return;
    }
    completion->target = until;
    completion->walk_next = *list;
    *list = queue;
}

// Looks through the waits of one queue, and adds their producers that have failed.
static bool find_in(weir_queue **list, weir_queue *queue, struct open_wait *out_open, bool *changed)
{
    const uint64_t failed_from = weir__completion_failed_from(queue);
    struct weir__wait wait;
    for (uint32_t i = 0;
         weir__wait_ring_get(&queue->completion.waits, i, queue->completion.target, &wait); i++) {
        weir_queue *producer =
            wait.own >= failed_from ? weir__registry_pin(wait.event.queue) : NULL;
        if (!producer) // a queue that is gone has ended
            continue;
        if (!wait.over && !weir__queue_is_past(producer, wait.event.sequence)) {
            *out_open = (struct open_wait){.producer = producer, .wait = wait};
            return true;
        }
        if (weir__completion_failed_from(producer) <= wait.event.sequence)
            add(list, producer, wait.event.sequence, changed);
        else
            weir__registry_unpin_later(producer);
    }
    return false;
}

// With the walk lock held, whose list and targets it uses.
static bool find_from(weir_queue *queue, struct open_wait *out_open)
{
    weir_queue *list = NULL;
    bool found = false;
    bool changed = false;
    add(&list, weir__registry_pin(queue->member.object.id), UINT64_MAX, &changed);
    while (changed && !found) {
        changed = false;
        for (weir_queue *at = list; at && !found; at = at->completion.walk_next)
            if ((found = find_in(&list, at, out_open, &changed)))
                out_open->queue = weir__registry_pin(at->member.object.id);
    }
    while (list) {
        weir_queue *at = list;
        list = at->completion.walk_next;
        at->completion.target = 0;
        at->completion.walk_next = NULL;
        weir__registry_unpin_later(at);
    }
    return found;
}

static bool find(weir_queue *queue, struct open_wait *out_open)
{
    if (!atomic_load(&queue->completion.failed))
        return false;
    weir_lock_take(walk_lock(queue));
    const bool found = find_from(queue, out_open);
    weir_lock_release(walk_lock(queue));
    return found;
}

static void release(const struct open_wait *open)
{
    weir__registry_unpin(open->queue);
    weir__registry_unpin(open->producer);
}

// Whether the backend can be asked for the event: a record of a queue that has failed may have been refused.
static bool has_record(const struct open_wait *open)
{
    return !open->wait.no_record &&
           weir__completion_failed_from(open->producer) > open->wait.event.sequence;
}

// Waiting.

static bool has_lost(const struct weir__completion *completion)
{
    return atomic_load(&completion->lost_waits) != atomic_load(&completion->lost_waits_over);
}

static void finish_queues(weir_device *device)
{
    for (weir_queue *queue = NULL; (queue = weir__device_next_queue(device, queue));)
        (void)weir__queue_finish(queue);
}

// There was no memory to note a wait, so the queue comes after all that may use what it frees.
static void await_all(weir_queue *queue)
{
    weir_device *device = queue->member.device;
    const uint_fast32_t lost = atomic_load(&queue->completion.lost_waits);
    struct weir__peer *peer = NULL;
    finish_queues(device);
    while ((peer = weir__peer_next(device, peer)))
        finish_queues(weir__peer_user(peer));
    atomic_store(&queue->completion.lost_waits_over, lost);
}

static void await_one(const struct open_wait *open)
{
    const struct weir_link *first = open->producer->first;
    const int cancel = weir_cancel_disable();
    if (has_record(open))
        (void)first->ops->event_wait(first, open->producer, open->wait.event.sequence,
                                     WEIR_FOREVER);
    else
        (void)weir__queue_finish(open->producer);
    weir_cancel_restore(cancel);
    weir__refused_end(open->queue, &open->wait);
}

void weir__refused_await(weir_queue *queue)
{
    const struct weir_error saved = *weir_last_error();
    struct open_wait open;
    if (has_lost(&queue->completion))
        await_all(queue);
    while (find(queue, &open)) {
        await_one(&open);
        release(&open);
    }
    weir__error_set(&saved);
}

bool weir__refused_any(weir_queue *queue)
{
    struct open_wait open;
    if (has_lost(&queue->completion))
        return true;
    if (!find(queue, &open))
        return false;
    weir__registry_unpin_later(open.queue);
    weir__registry_unpin_later(open.producer);
    return true;
}

// Asking. Without a record a new one at the producer's end tells. It is kept and asked for until it is
// complete: on a queue that always has work the newest record is never complete.

static bool record_end(const struct open_wait *open, struct weir_event *out_record)
{
    *out_record = (struct weir_event){open->wait.event.queue, open->wait.record};
    if (out_record->sequence > 0)
        return true;
    if (!weir__queue_record_end(open->producer, out_record))
        return false;
    weir_lock_take(walk_lock(open->queue));
    struct weir__wait *known = find_known(&open->queue->completion.waits, &open->wait);
    if (known)
        known->record = out_record->sequence;
    weir_lock_release(walk_lock(open->queue));
    return true;
}

static bool has_ended(const struct open_wait *open)
{
    struct weir_event event = open->wait.event;
    if (!has_record(open) && !record_end(open, &event))
        return false;
    return event.sequence == 0 || weir__event_is_complete(event);
}

bool weir__refused_are_over(weir_queue *queue)
{
    const struct weir_error saved = *weir_last_error();
    struct open_wait open;
    bool over = true;
    while (over && find(queue, &open)) {
        over = has_ended(&open);
        if (over)
            weir__refused_end(open.queue, &open.wait);
        release(&open);
    }
    weir__error_set(&saved);
    return over;
}
