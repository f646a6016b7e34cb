// See the header. A device's lists are guarded by its lock; frontiers are
// checked outside of it, by the one thread that took the list off.
#include "core/object/object.h"

#include <stdatomic.h>
#include <string.h>

#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/object/buffer.h"
#include "core/object/peer.h"
#include "core/object/program.h"
#include "core/queue/queue.h"
#include "core/queue/registry.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

uint64_t weir__object_next_id(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void *weir__member_allocate(weir_device *device, enum weir__kind kind, size_t size,
                            const char *label)
{
    const bool inside = device->chain->count <= WEIR__SLOTS_INSIDE;
    size_t slots = inside ? 0 : device->chain->count * sizeof(void *);
    const char *text = label ? label : "";
    char *block = weir__allocate(WEIR__LINE_BYTES - 1 + size + slots + strlen(text) + 1);
    if (!block)
        return NULL;

    char *line = block + (-(uintptr_t)block & (WEIR__LINE_BYTES - 1));
    struct weir__member *member = (struct weir__member *)(void *)line;
    char *copy = line + size + slots;
    memcpy(copy, text, strlen(text) + 1);
    member->block = block;
    // A type begins with a member, so its size is a multiple of the line's.
    member->object.data = inside ? member->slots : (void **)(void *)(line + size);
    member->object.label = copy;
    member->object.id = weir__object_next_id();
    member->device = device;
    member->kind = kind;
    return line;
}

void weir__member_free(struct weir__member *member)
{
    weir__release(member->frontier);
    weir__release(member->block);
}

static void insert(struct weir__member **list, struct weir__member *member)
{
    member->previous = NULL;
    member->next = *list;
    if (*list)
        (*list)->previous = member;
    *list = member;
}

static void take(struct weir__member **list, struct weir__member *member)
{
    if (member->previous)
        member->previous->next = member->next;
    else
        *list = member->next;
    if (member->next)
        member->next->previous = member->previous;
}

void weir__member_enlist(struct weir__member *member)
{
    weir_device *device = member->device;
    pthread_mutex_lock(&device->lock);
    insert(&device->live, member);
    pthread_mutex_unlock(&device->lock);
}

void weir__member_delist(struct weir__member *member)
{
    weir_device *device = member->device;
    pthread_mutex_lock(&device->lock);
    take(&device->live, member);
    pthread_mutex_unlock(&device->lock);
}

static void destroy(struct weir__member *member)
{
    switch (member->kind) {
    case WEIR__QUEUE:
        weir__progress_bury((weir_queue *)(void *)member);
        weir__registry_unpin((weir_queue *)(void *)member);
        return;
    case WEIR__BUFFER:
        weir__buffer_finalize((weir_buffer *)(void *)member);
        return;
    case WEIR__KERNEL:
        weir__kernel_finalize((weir_kernel *)(void *)member);
        return;
    case WEIR__PROGRAM:
        weir__program_unref((weir_program *)(void *)member);
        return;
    case WEIR__POOL: // goes with its last block
        return;
    case WEIR__GRAPH:
        weir__graph_finalize((weir_graph *)(void *)member);
        return;
    }
}

static bool is_busy(const weir_queue *queue)
{
    return atomic_load(&queue->seen) > atomic_load(&queue->progress.completed);
}

// What the user gave to the native queue of a wrapped one is not known.
static bool may_be_busy(const weir_queue *queue)
{
    return queue->wrapped || is_busy(queue);
}

// Adds the queues of the device to `*queues`, and returns how many may be busy.
static uint32_t count_busy(weir_device *device, uint32_t *queues)
{
    uint32_t busy = 0;
    pthread_mutex_lock(&device->lock);
    for (weir_queue *queue = device->queues; queue; queue = queue->next) {
        busy += may_be_busy(queue);
        ++*queues;
    }
    pthread_mutex_unlock(&device->lock);
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
    pthread_mutex_lock(&device->lock);
    for (weir_queue *at = queue ? queue->next : device->queues; at && !next; at = at->next)
        next = weir__registry_pin(at->member.object.id);
    pthread_mutex_unlock(&device->lock);
    if (queue)
        weir__registry_unpin(queue);
    return next;
}

static bool add_mark(struct weir__member *member, weir_queue *queue)
{
    struct weir_event end;
    if (!weir__queue_mark(queue, &end))
        return false;
    if (end.sequence)
        member->frontier[member->frontier_count++] = end;
    return true;
}

// Marks the end of every queue of the device, as long as there is room for `count` events.
static bool mark_queues(struct weir__member *member, weir_device *device, uint32_t count)
{
    bool marked = true;
    weir_queue *queue = NULL;
    // To the end also after a refusal, which drops the references.
    while ((queue = weir__device_next_queue(device, queue)))
        marked = marked && member->frontier_count < count && add_mark(member, queue);
    return marked;
}

// Marks the end of every queue that may still use the object. A destroyed
// queue only waits for itself. Where that is refused it is tried again when the
// object is looked at next.
static bool mark_frontier(struct weir__member *member)
{
    const bool is_queue = member->kind == WEIR__QUEUE;
    uint32_t count = is_queue;

    if (is_queue ? !is_busy((weir_queue *)(void *)member) : !count_users(member->device, &count))
        return true;
    weir__release(member->frontier);
    member->frontier_count = 0;
    member->frontier = weir__allocate(count * sizeof *member->frontier);
    if (!member->frontier)
        return false;
    if (is_queue)
        return add_mark(member, (weir_queue *)(void *)member);

    bool marked = mark_queues(member, member->device, count);
    struct weir__peer *peer = NULL;
    while ((peer = weir__peer_next(member->device, peer)))
        marked = mark_queues(member, weir__peer_user(peer), count) && marked;
    return marked;
}

static bool past_frontier(struct weir__member *member)
{
    if (atomic_load(&member->uses) > 0)
        return false;
    if (!member->marked && !(member->marked = mark_frontier(member)))
        return false;
    while (member->frontier_count) {
        struct weir_event event = member->frontier[member->frontier_count - 1];
        if (weir_event_query(event) == WEIR_NOT_READY)
            return false;
        member->frontier_count--;
    }
    return true;
}

// The list of retired objects is a queue of its own: in at the front, out at the
// back.
static void push_retired(weir_device *device, struct weir__member *member)
{
    pthread_mutex_lock(&device->lock);
    insert(&device->retired, member);
    if (!member->next)
        device->retired_last = member;
    pthread_mutex_unlock(&device->lock);
}

static struct weir__member *pop_retired(weir_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct weir__member *member = device->retired_last;
    if (member) {
        device->retired_last = member->previous;
        take(&device->retired, member);
    }
    pthread_mutex_unlock(&device->lock);
    return member;
}

void weir__member_retire(struct weir__member *member)
{
    weir_device *device = member->device;

    if (member->kind == WEIR__QUEUE)
        weir__capture_abandon((weir_queue *)(void *)member);
    bool done = past_frontier(member);
    weir__member_delist(member);
    if (done) {
        destroy(member);
    } else {
        atomic_fetch_add(&device->retired_count, 1);
        push_retired(device, member);
    }
    weir__device_reap(device);
}

static void reap(weir_device *device, size_t patience)
{
    // A host call's thread must not end the queue whose worker it is.
    size_t count = atomic_load_explicit(&device->retired_count, memory_order_relaxed);
    if (count == 0 || weir__in_host_call())
        return;

    // Looking at a frontier takes other locks, so one object at a time is taken
    // off and put back if it is not ready.
    struct weir_error saved = *weir_last_error();
    for (; count > 0 && patience > 0; count--) {
        struct weir__member *member = pop_retired(device);
        if (!member)
            break;
        if (past_frontier(member)) {
            atomic_fetch_sub(&device->retired_count, 1);
            destroy(member);
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

// Again after a success: what went may have been a graph, which used what is left.
void weir__device_reap_all(weir_device *device)
{
    size_t before;
    do {
        before = atomic_load(&device->retired_count);
        reap(device, SIZE_MAX);
    } while (before > 0 && atomic_load(&device->retired_count) < before);
}
