// See the header for the rules. Locks: a queue's progress lock is a leaf; the
// walk lock is taken before it and never inside it.
#include "core/progress.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/queue.h"
#include "core/registry.h"

// One failure: operations first..last report `cause`.
struct weir__failure {
    struct weir__failure *next;
    uint64_t first;
    uint64_t last; // UINT64_MAX until recovered
    struct weir_error cause;
};

// The failures of a queue that is gone.
struct grave {
    struct grave *next;
    uint64_t id;
    weir_runtime *runtime;
    struct weir__failure *failures;
};

static pthread_mutex_t walk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t grave_lock = PTHREAD_MUTEX_INITIALIZER;
static struct grave *graves;
// Failures ever booked. While it is zero, completing needs no look at causes.
static atomic_uint_fast64_t failure_count;

void weir__progress_init(struct weir__progress *progress)
{
    pthread_mutex_init(&progress->lock, NULL);
}

static void free_failures(struct weir__failure *failure)
{
    while (failure) {
        struct weir__failure *next = failure->next;
        weir__release(failure);
        failure = next;
    }
}

void weir__progress_finish(struct weir__progress *progress, uint64_t id, weir_runtime *runtime)
{
    struct grave *grave = progress->failures ? weir__allocate(sizeof *grave) : NULL;
    if (grave) {
        *grave = (struct grave){.id = id, .runtime = runtime, .failures = progress->failures};
        pthread_mutex_lock(&grave_lock);
        grave->next = graves;
        graves = grave;
        pthread_mutex_unlock(&grave_lock);
    } else {
        free_failures(progress->failures);
    }
    weir__release(progress->edges);
    pthread_mutex_destroy(&progress->lock);
}

void weir__progress_forget(weir_runtime *runtime)
{
    pthread_mutex_lock(&grave_lock);
    for (struct grave **at = &graves; *at;) {
        struct grave *grave = *at;
        if (grave->runtime != runtime) {
            at = &grave->next;
            continue;
        }
        *at = grave->next;
        free_failures(grave->failures);
        weir__release(grave);
    }
    pthread_mutex_unlock(&grave_lock);
}

// The earliest failure that covers `sequence`.
static const struct weir__failure *find(const struct weir__failure *failures, uint64_t sequence)
{
    const struct weir__failure *found = NULL;
    for (const struct weir__failure *f = failures; f; f = f->next)
        if (f->first <= sequence && sequence <= f->last && (!found || f->first < found->first))
            found = f;
    return found;
}

// Copies the cause of the failure that covers the operation; false: none.
static bool cause_at(weir_queue *queue, uint64_t sequence, struct weir_error *out_cause)
{
    struct weir__progress *progress = &queue->progress;
    if (!atomic_load_explicit(&progress->has_failures, memory_order_acquire))
        return false;

    pthread_mutex_lock(&progress->lock);
    const struct weir__failure *failure = find(progress->failures, sequence);
    if (failure)
        *out_cause = failure->cause;
    pthread_mutex_unlock(&progress->lock);
    return failure != NULL;
}

static bool cause_of_gone(struct weir_event event, struct weir_error *out_cause)
{
    bool found = false;

    pthread_mutex_lock(&grave_lock);
    for (const struct grave *grave = graves; grave && !found; grave = grave->next) {
        const struct weir__failure *failure =
            grave->id == event.queue ? find(grave->failures, event.sequence) : NULL;
        if (failure) {
            *out_cause = failure->cause;
            found = true;
        }
    }
    pthread_mutex_unlock(&grave_lock);
    return found;
}

weir_status weir__progress_status(weir_queue *queue, uint64_t sequence)
{
    struct weir_error cause;
    return cause_at(queue, sequence, &cause) ? weir__error_set(&cause) : WEIR_OK;
}

weir_status weir__progress_status_gone(struct weir_event event)
{
    struct weir_error cause;
    if (atomic_load_explicit(&failure_count, memory_order_acquire) == 0)
        return WEIR_OK;
    return cause_of_gone(event, &cause) ? weir__error_set(&cause) : WEIR_OK;
}

weir_status weir__progress_refuse(weir_queue *queue)
{
    weir_status status = weir__progress_status(queue, UINT64_MAX);
    if (status < 0)
        return status;
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "weir_queue_recover() clears it",
                      "queue '%s' has failed, and there was no memory to keep the cause",
                      queue->member.object.label);
}

void weir__progress_fail(weir_queue *queue, uint64_t first, const struct weir_error *cause)
{
    struct weir__progress *progress = &queue->progress;
    struct weir__failure *failure = weir__allocate(sizeof *failure);

    atomic_fetch_add(&failure_count, 1);
    pthread_mutex_lock(&progress->lock);
    const struct weir__failure *known = find(progress->failures, UINT64_MAX);
    if (failure && !(known && known->first <= first)) {
        *failure = (struct weir__failure){.next = progress->failures,
                                          .first = first,
                                          .last = UINT64_MAX,
                                          .cause = *cause};
        progress->failures = failure;
        failure = NULL;
    }
    atomic_store(&progress->has_failures, true);
    atomic_store(&progress->failed, true);
    pthread_mutex_unlock(&progress->lock);
    weir__release(failure);
}

void weir__progress_recover(weir_queue *queue, uint64_t sequence)
{
    struct weir__progress *progress = &queue->progress;

    pthread_mutex_lock(&progress->lock);
    for (struct weir__failure *failure = progress->failures; failure; failure = failure->next)
        if (failure->last == UINT64_MAX)
            failure->last = sequence;
    atomic_store(&progress->failed, false);
    pthread_mutex_unlock(&progress->lock);
}

// Room for one more edge. Called with the lock held.
static bool reserve(struct weir__progress *progress)
{
    if (progress->edge_count < progress->edge_capacity)
        return true;
    uint32_t capacity = progress->edge_capacity ? 2 * progress->edge_capacity : 64;
    struct weir__edge *edges = weir__allocate(capacity * sizeof *edges);
    if (!edges)
        return false;
    if (progress->edge_count)
        memcpy(edges, progress->edges, progress->edge_count * sizeof *edges);
    weir__release(progress->edges);
    progress->edges = edges;
    progress->edge_capacity = capacity;
    return true;
}

// Whether the producer has come past the edge; a cause found on the way is the
// queue's at once. `producer` is NULL when it is gone.
static bool settle(weir_queue *queue, const struct weir__edge *edge, weir_queue *producer)
{
    struct weir_error cause;
    bool done = !producer || atomic_load_explicit(&producer->progress.completed,
                                                  memory_order_acquire) >= edge->event.sequence;
    bool failed = producer ? done && cause_at(producer, edge->event.sequence, &cause)
                           : cause_of_gone(edge->event, &cause);
    if (failed)
        weir__progress_fail(queue, edge->own, &cause);
    return done;
}

static void ask_driver(struct weir_event event)
{
    weir_queue *producer = weir__registry_pin(event.queue);
    if (!producer)
        return;
    const struct weir_link *first = producer->first;
    if (first->ops->event_query(first, producer, event.sequence) == WEIR_OK)
        weir__progress_complete(producer, event.sequence);
    weir__registry_unpin(producer);
}

// Whether the list has no room left, and then what its middle waits for.
static bool is_full(struct weir__progress *progress, struct weir_event *out_middle)
{
    pthread_mutex_lock(&progress->lock);
    bool full = progress->edge_capacity > 0 && progress->edge_count == progress->edge_capacity;
    if (full)
        *out_middle = progress->edges[progress->edge_count / 2].event;
    pthread_mutex_unlock(&progress->lock);
    return full;
}

// A list that nobody syncs behind would grow without end, so a full one first
// asks whether its older half is complete by now. The walk lock keeps the edges
// where they are meanwhile.
static void shrink(weir_queue *queue)
{
    struct weir__progress *progress = &queue->progress;
    struct weir_event middle;

    if (!is_full(progress, &middle))
        return;
    ask_driver(middle);
    pthread_mutex_lock(&walk_lock);
    uint32_t kept = 0;
    uint64_t pinned = 0;
    weir_queue *producer = NULL;
    for (uint32_t i = 0; i < progress->edge_count; i++) {
        struct weir__edge edge = progress->edges[i];
        // Runs of waits on one queue are the rule, so its reference is kept.
        if (edge.event.queue != pinned) {
            if (producer)
                weir__registry_unpin(producer);
            pinned = edge.event.queue;
            producer = weir__registry_pin(pinned);
        }
        if (!settle(queue, &edge, producer))
            progress->edges[kept++] = edge;
    }
    if (producer)
        weir__registry_unpin(producer);
    progress->edge_count = kept;
    pthread_mutex_unlock(&walk_lock);
}

weir_status weir__progress_wait(weir_queue *queue, uint64_t own, struct weir_event event,
                                weir_queue *producer, bool *out_implied)
{
    struct weir__progress *progress = &queue->progress;

    *out_implied =
        producer == queue ||
        atomic_load_explicit(&producer->progress.completed, memory_order_acquire) >= event.sequence;
    if (*out_implied)
        return WEIR_OK;
    shrink(queue);
    pthread_mutex_lock(&progress->lock);
    // Those of one producer rise, so its latest decides.
    for (uint32_t i = progress->edge_count; i-- > 0;)
        if (progress->edges[i].event.queue == event.queue) {
            *out_implied = progress->edges[i].event.sequence >= event.sequence;
            break;
        }
    bool room = *out_implied || reserve(progress);
    if (room && !*out_implied)
        progress->edges[progress->edge_count++] = (struct weir__edge){own, event};
    pthread_mutex_unlock(&progress->lock);
    if (!room)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory to note a wait");
    return WEIR_OK;
}

// The walk. `list` holds the queues that learn of a completion, each pinned and
// with its target; phase 1 follows waits to their producers until no target
// rises any more, phase 2 carries causes along them, phase 3 books the result.

static void walk_add(weir_queue **list, weir_queue *queue, uint64_t target, bool *changed)
{
    struct weir__progress *progress = &queue->progress;

    if (progress->target == 0) { // not on the list yet
        progress->target = target;
        progress->walk_next = *list;
        *list = queue;
        *changed = true;
        return;
    }
    if (target > progress->target) {
        progress->target = target;
        *changed = true;
    }
    weir__registry_unpin(queue); // the list holds one pin each
}

// The `index`-th edge that lies before the target; false behind the last.
static bool edge_before_target(weir_queue *queue, uint32_t index, struct weir__edge *out_edge)
{
    struct weir__progress *progress = &queue->progress;

    pthread_mutex_lock(&progress->lock);
    bool there = index < progress->edge_count && progress->edges[index].own <= progress->target;
    if (there)
        *out_edge = progress->edges[index];
    pthread_mutex_unlock(&progress->lock);
    return there;
}

static void walk_gather(weir_queue **list)
{
    struct weir__edge edge;

    for (bool changed = true; changed;) {
        changed = false;
        for (weir_queue *queue = *list; queue; queue = queue->progress.walk_next)
            for (uint32_t i = 0; edge_before_target(queue, i, &edge); i++) {
                weir_queue *producer = weir__registry_pin(edge.event.queue);
                if (producer)
                    walk_add(list, producer, edge.event.sequence, &changed);
            }
    }
}

static bool edge_cause(const struct weir__edge *edge, struct weir_error *out_cause)
{
    weir_queue *producer = weir__registry_pin(edge->event.queue);
    if (!producer)
        return cause_of_gone(edge->event, out_cause);
    bool found = cause_at(producer, edge->event.sequence, out_cause);
    weir__registry_unpin(producer);
    return found;
}

static void walk_propagate(weir_queue *list)
{
    struct weir_error cause;
    struct weir_error known;
    struct weir__edge edge;

    for (bool changed = true; changed;) {
        changed = false;
        for (weir_queue *queue = list; queue; queue = queue->progress.walk_next)
            for (uint32_t i = 0; edge_before_target(queue, i, &edge); i++)
                if (edge_cause(&edge, &cause) && !cause_at(queue, edge.own, &known)) {
                    weir__progress_fail(queue, edge.own, &cause);
                    changed = true;
                }
    }
}

static void raise_completed(struct weir__progress *progress, uint64_t sequence)
{
    uint_fast64_t known = atomic_load_explicit(&progress->completed, memory_order_relaxed);
    while (known < sequence &&
           !atomic_compare_exchange_weak_explicit(&progress->completed, &known, sequence,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

static void walk_book(weir_queue *queue)
{
    struct weir__progress *progress = &queue->progress;
    uint32_t done = 0;

    pthread_mutex_lock(&progress->lock);
    while (done < progress->edge_count && progress->edges[done].own <= progress->target)
        done++;
    progress->edge_count -= done;
    if (done && progress->edge_count)
        memmove(progress->edges, progress->edges + done,
                progress->edge_count * sizeof *progress->edges);
    raise_completed(progress, progress->target);
    progress->target = 0;
    progress->walk_next = NULL;
    pthread_mutex_unlock(&progress->lock);
}

void weir__progress_complete(weir_queue *queue, uint64_t sequence)
{
    struct weir__progress *progress = &queue->progress;

    if (sequence <= atomic_load_explicit(&progress->completed, memory_order_acquire))
        return;
    weir_queue *list = NULL;
    bool changed;
    pthread_mutex_lock(&walk_lock);
    // Cannot fail: the caller holds a reference on the queue.
    if (weir__registry_pin(queue->member.object.id)) {
        walk_add(&list, queue, sequence, &changed);
        walk_gather(&list);
        if (atomic_load(&failure_count) > 0)
            walk_propagate(list);
    }
    // Dropping the last reference to a finished queue under the lock is fine: its
    // worker is idle and its end takes locks of its own only.
    while (list) {
        weir_queue *at = list;
        list = at->progress.walk_next;
        walk_book(at);
        weir__registry_unpin(at);
    }
    pthread_mutex_unlock(&walk_lock);
}
