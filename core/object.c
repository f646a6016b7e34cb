// See the header. A device's lists are guarded by its lock; frontiers are
// checked outside of it, by the one thread that took the list off.
#include "core/object.h"

#include <stdatomic.h>
#include <string.h>

#include "core/buffer.h"
#include "core/memory.h"
#include "core/program.h"
#include "core/queue.h"
#include "core/registry.h"
#include "core/thread.h"

uint64_t weir__object_next_id(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void *weir__member_allocate(weir_device *device, enum weir__kind kind, size_t size,
                            const char *label)
{
    size_t aligned = (size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    size_t slots = device->chain->count * sizeof(void *);
    const char *text = label ? label : "";
    char *block = weir__allocate(aligned + slots + strlen(text) + 1);
    if (!block)
        return NULL;

    struct weir__member *member = (struct weir__member *)(void *)block;
    char *copy = block + aligned + slots;
    memcpy(copy, text, strlen(text) + 1);
    member->object.data = (void **)(void *)(block + aligned);
    member->object.label = copy;
    member->object.id = weir__object_next_id();
    member->device = device;
    member->kind = kind;
    return block;
}

void weir__member_free(struct weir__member *member)
{
    weir__release(member->frontier);
    weir__release(member);
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
    }
}

// The queues of the device that are not gone, each with a reference, in a block
// that also has room for the frontier.
static weir_queue **pin_queues(weir_device *device, uint32_t *out_count)
{
    uint32_t count = 0;
    weir_queue **queues = NULL;

    pthread_mutex_lock(&device->lock);
    struct weir__member *lists[] = {device->live, device->retired};
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && count)
            queues = weir__allocate(count * sizeof(weir_queue *));
        if (pass == 1 && !queues)
            break;
        count = 0;
        for (int i = 0; i < 2; i++)
            for (struct weir__member *m = lists[i]; m; m = m->next)
                if (m->kind == WEIR__QUEUE) {
                    if (pass == 1)
                        queues[count] = weir__registry_pin(m->object.id);
                    count++;
                }
    }
    pthread_mutex_unlock(&device->lock);
    *out_count = count;
    return queues;
}

static bool any_busy(weir_device *device)
{
    bool busy = false;
    pthread_mutex_lock(&device->lock);
    struct weir__member *lists[] = {device->live, device->retired};
    for (int i = 0; i < 2 && !busy; i++)
        for (struct weir__member *m = lists[i]; m && !busy; m = m->next)
            if (m->kind == WEIR__QUEUE) {
                weir_queue *queue = (weir_queue *)(void *)m;
                busy = atomic_load(&queue->seen) > atomic_load(&queue->progress.completed);
            }
    pthread_mutex_unlock(&device->lock);
    return busy;
}

// Marks the end of every queue that may still use the object. A destroyed
// queue only waits for itself.
static void mark_frontier(struct weir__member *member)
{
    if (member->kind == WEIR__QUEUE) {
        struct weir_event end = weir__queue_mark((weir_queue *)(void *)member);
        if (end.sequence && (member->frontier = weir__allocate(sizeof end))) {
            member->frontier[0] = end;
            member->frontier_count = 1;
        }
        return;
    }
    if (!any_busy(member->device))
        return;

    uint32_t count;
    weir_queue **queues = pin_queues(member->device, &count);
    struct weir_event *frontier = queues ? weir__allocate(count * sizeof *frontier) : NULL;
    for (uint32_t i = 0; queues && i < count; i++) {
        if (frontier) {
            struct weir_event end = weir__queue_mark(queues[i]);
            if (end.sequence)
                frontier[member->frontier_count++] = end;
        } else {
            weir__queue_finish(queues[i]); // no memory to remember what to wait for
        }
        weir__registry_unpin(queues[i]);
    }
    weir__release(queues);
    member->frontier = frontier;
}

static bool past_frontier(struct weir__member *member)
{
    while (member->frontier_count) {
        struct weir_event event = member->frontier[member->frontier_count - 1];
        if (weir_event_query(event) == WEIR_NOT_READY)
            return false;
        member->frontier_count--;
    }
    return true;
}

void weir__member_retire(struct weir__member *member)
{
    weir_device *device = member->device;

    mark_frontier(member);
    bool done = past_frontier(member);
    pthread_mutex_lock(&device->lock);
    take(&device->live, member);
    if (!done) {
        insert(&device->retired, member);
        atomic_fetch_add(&device->retired_count, 1);
    }
    pthread_mutex_unlock(&device->lock);
    if (done)
        destroy(member);
    weir__device_reap(device);
}

void weir__device_reap(weir_device *device)
{
    // A host call's thread must not end the queue whose worker it is.
    if (atomic_load_explicit(&device->retired_count, memory_order_relaxed) == 0 ||
        weir__in_host_call())
        return;

    // Looking at a frontier takes other locks, so one object at a time is taken
    // off and put back if it is not ready.
    size_t count = atomic_load(&device->retired_count);
    struct weir_error saved = *weir_last_error();
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_lock(&device->lock);
        struct weir__member *member = device->retired;
        while (member && member->next)
            member = member->next;
        if (member)
            take(&device->retired, member);
        pthread_mutex_unlock(&device->lock);
        if (!member)
            break;
        if (past_frontier(member)) {
            atomic_fetch_sub(&device->retired_count, 1);
            destroy(member);
            continue;
        }
        pthread_mutex_lock(&device->lock);
        insert(&device->retired, member);
        pthread_mutex_unlock(&device->lock);
    }
    weir__error_set(&saved);
}
