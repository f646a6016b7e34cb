// See the header. A device's lists are guarded by its lock; frontiers are checked without
// it, by the thread that removed the object from the list.
#include "core/queue/queue.h"

#include <stdatomic.h>

#include "core/object/device.h"
#include "core/support/debug.h"
#include "core/support/locks.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

// The user's own work on the native queue of a wrapped queue is not known.
static bool may_be_busy(const weir_queue *queue)
{
    return queue->wrapped || weir__queue_is_busy(queue);
}

// Adds the queues of the device to `*queues`, and returns how many may be busy.
static uint32_t count_busy(weir_device *device, uint32_t *queues)
{
    uint32_t busy = 0;
    weir_lock_take(&device->lock);
    for (weir_queue *queue = device->queues; queue; queue = queue->next) {
        busy += may_be_busy(queue);
        ++*queues;
    }
    weir_lock_release(&device->lock);
    return busy;
}

// The same for all devices whose queues may use the object.
static uint32_t count_users(weir_device *device, uint32_t *queues)
{
    uint32_t busy = count_busy(device, queues);
    struct weir__peer *peer = NULL;
    while ((peer = weir__peer_next(device, peer)))
        busy += count_busy(weir__peer_user(peer), queues);
    return busy;
}

weir_queue *weir__device_next_queue(weir_device *device, weir_queue *queue)
{
    weir_queue *next = NULL;
    weir_lock_take(&device->lock);
    for (weir_queue *at = queue ? queue->next : device->queues; at && !next; at = at->next)
        next = weir__registry_pin(at->member.object.id);
    weir_lock_release(&device->lock);
    if (queue)
        weir__registry_unpin_later(queue);
    return next;
}

static bool add_end(struct weir__member *member, weir_queue *queue)
{
    struct weir_event end;
    if (!weir__queue_record_end(queue, &end))
        return false;
    if (end.sequence)
        member->frontier[member->frontier_count++] = end;
    return true;
}

// Records the end of every queue of the device, as long as there is room for `count` events.
static bool record_ends(struct weir__member *member, weir_device *device, uint32_t count)
{
    bool recorded = true;
    weir_queue *queue = NULL;
    // The loop continues after a refusal, in order to drop the references.
    while ((queue = weir__device_next_queue(device, queue)))
        recorded = recorded && member->frontier_count < count && add_end(member, queue);
    return recorded;
}

static bool is_a_queue(const struct weir__member *member)
{
    return member->class == &weir__queue_class;
}

// A destroyed queue only waits for itself, unless it has failed and a wait of it was refused.
static enum weir__frontier frontier_of(struct weir__member *member)
{
    return is_a_queue(member) && !weir__refused_any((weir_queue *)(void *)member)
               ? WEIR__FRONTIER_ITSELF
               : WEIR__FRONTIER_ALL;
}

// Records the end of every queue that may still use the object. If a record is refused, it is tried again
// when the object is checked next.
static bool draw_frontier(struct weir__member *member, enum weir__frontier wanted)
{
    const bool only_itself = wanted == WEIR__FRONTIER_ITSELF;
    uint32_t count = only_itself;

    if (only_itself ? !weir__queue_is_busy((weir_queue *)(void *)member)
                    : !count_users(member->device, &count))
        return true;
    weir__release(member->frontier);
    member->frontier_count = 0;
    member->frontier = weir__allocate(count * sizeof *member->frontier);
    if (!member->frontier)
        return false;
    if (only_itself)
        return add_end(member, (weir_queue *)(void *)member);

    bool recorded = record_ends(member, member->device, count);
    struct weir__peer *peer = NULL;
    while ((peer = weir__peer_next(member->device, peer)))
        recorded = record_ends(member, weir__peer_user(peer), count) && recorded;
    return recorded;
}

static bool past_frontier(struct weir__member *member)
{
    const enum weir__frontier wanted = frontier_of(member);
    if (atomic_load(&member->uses) > 0)
        return false;
    if (member->has_frontier < wanted && !draw_frontier(member, wanted))
        return false;
    member->has_frontier = wanted > member->has_frontier ? wanted : member->has_frontier;
    while (member->frontier_count) {
        struct weir_event event = member->frontier[member->frontier_count - 1];
        if (!weir__event_is_complete(event))
            return false;
        member->frontier_count--;
    }
    return frontier_of(member) == wanted; // the look may have found that it has failed
}

// The list of retired objects is a FIFO: added at the front, removed at the back.
static void push_retired(weir_device *device, struct weir__member *member)
{
    weir_lock_take(&device->lock);
    weir__member_insert(&device->retired, member);
    if (!member->next)
        device->retired_last = member;
    weir_lock_release(&device->lock);
}

static struct weir__member *pop_retired(weir_device *device)
{
    weir_lock_take(&device->lock);
    struct weir__member *member = device->retired_last;
    if (member) {
        device->retired_last = member->previous;
        weir__member_take(&device->retired, member);
    }
    weir_lock_release(&device->lock);
    return member;
}

static void add_retired(struct weir__member *member)
{
    atomic_fetch_add(&member->device->retired_count, 1);
    push_retired(member->device, member);
}

void weir__member_retire_later(struct weir__member *member)
{
    weir__member_delist(member);
    add_retired(member);
}

void weir__member_retire(struct weir__member *member)
{
    weir_device *device = member->device;

    bool done = past_frontier(member);
    weir__member_delist(member);
    if (!done)
        weir__debug_deferred(member, atomic_load(&member->uses) > 0);
    if (done)
        member->class->finalize(member);
    else
        add_retired(member);
    weir__device_reap(device);
}

static void reap(weir_device *device, size_t patience)
{
    // A host call's thread must not finalize the queue whose worker it is.
    if (weir__in_host_call())
        return;
    weir__registry_finalize_ended(device);
    size_t count = atomic_load_explicit(&device->retired_count, memory_order_relaxed);
    if (count == 0)
        return;

    // Checking a frontier takes other locks, so one object at a time is removed, and put
    // back if it is not ready.
    struct weir_error saved = *weir_last_error();
    for (; count > 0 && patience > 0; count--) {
        struct weir__member *member = pop_retired(device);
        if (!member)
            break;
        if (past_frontier(member)) {
            atomic_fetch_sub(&device->retired_count, 1);
            member->class->finalize(member);
        } else {
            push_retired(device, member);
            patience--;
        }
    }
    weir__error_set(&saved);
}

void weir__device_reap(weir_device *device)
{
    reap(device, 8);
}

// Again after a success: the object may have been a graph that used the remaining ones.
void weir__device_reap_all(weir_device *device)
{
    size_t before;
    do {
        before = atomic_load(&device->retired_count);
        reap(device, SIZE_MAX);
    } while (before > 0 && atomic_load(&device->retired_count) < before);
}
