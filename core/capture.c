// See the header. Each queue of a capture is a branch of the graph: a row of nodes, one
// behind the other. So what a point of the capture is behind is told by one number for
// each branch, how many of its nodes; such a clock is kept with every branch, node and
// record, and edges that others imply are seen by comparing clocks.
//
// Locks: a queue's submit lock, then the capture's. The list of captures is a leaf. Who
// ends a capture closes it first, under its lock; from there on nothing joins it, a
// queue that is used meanwhile leaves it by itself, and the one who closed it lets go of
// the other queues, one submit lock at a time.
#include "core/capture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/graph.h>

#include "core/error.h"
#include "core/graph.h"
#include "core/held.h"
#include "core/memory.h"
#include "core/operation.h"
#include "core/registry.h"
#include "core/thread.h"

#define CAPTURED (UINT64_C(1) << 63)
#define ID_MASK 0x7fffffffu
#define NO_NODE UINT32_MAX
#define EMPTY_NODE (UINT32_MAX - 1)

// How many nodes of each branch; of branches behind the last, none.
struct clock {
    uint32_t count;
    uint32_t reached[];
};

struct branch {
    weir_queue *queue; // with a reference
    struct clock *clock;
    uint32_t *nodes; // their indexes
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t last; // what its last operation became
};

struct weir__capture {
    struct weir__capture *next; // in the list
    uint32_t id;
    uint32_t references; // under the lock of the list
    weir_device *device;
    weir_queue *origin;
    const char *file; // of the begin
    int line;
    pthread_mutex_t lock; // of what follows
    bool closed;
    bool out_of_memory; // something is missing
    struct branch *branches;
    uint32_t branch_count;
    uint32_t branch_capacity;
    struct weir__graph_parts parts;
    struct clock **node_clocks;
    uint32_t clock_count; // as many as nodes, until the graph takes those over
    uint32_t node_capacity;
    struct clock **records;
    uint32_t record_count;
    uint32_t record_capacity;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir__capture *list;
static atomic_uint last_id;

// Room for one more element, at `*array`.
static bool make_room(void *array, size_t element, uint32_t count, uint32_t *capacity)
{
    void *old;
    if (count < *capacity)
        return true;
    uint32_t grown = *capacity ? 2 * *capacity : 8;
    void *memory = weir__allocate(grown * element);
    if (!memory)
        return false;
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(memory, old, count * element);
    weir__release(old);
    memcpy(array, &memory, sizeof memory);
    *capacity = grown;
    return true;
}

static uint32_t id_of(struct weir_event event)
{
    return (uint32_t)(event.sequence >> 32) & ID_MASK;
}

bool weir__capture_was(struct weir_event event)
{
    const uint32_t last = atomic_load_explicit(&last_id, memory_order_relaxed);
    return last > ID_MASK || id_of(event) <= last;
}

// Clocks.

static uint32_t reached(const struct clock *clock, uint32_t branch)
{
    return branch < clock->count ? clock->reached[branch] : 0;
}

// A copy that tells of `count` branches at least; of nothing where there is none yet.
static struct clock *copy_clock(const struct clock *clock, uint32_t count)
{
    uint32_t known = clock ? clock->count : 0;
    if (count < known)
        count = known;
    struct clock *copy = weir__allocate(sizeof *copy + count * sizeof copy->reached[0]);
    if (!copy)
        return NULL;
    copy->count = count;
    if (known)
        memcpy(copy->reached, clock->reached, known * sizeof copy->reached[0]);
    return copy;
}

static bool merge_clock(struct branch *branch, const struct clock *other)
{
    if (branch->clock->count < other->count) {
        struct clock *wider = copy_clock(branch->clock, other->count);
        if (!wider)
            return false;
        weir__release(branch->clock);
        branch->clock = wider;
    }
    for (uint32_t i = 0; i < other->count; i++)
        if (branch->clock->reached[i] < other->reached[i])
            branch->clock->reached[i] = other->reached[i];
    return true;
}

// The life of a capture.

static void release(struct weir__capture *capture)
{
    pthread_mutex_lock(&list_lock);
    bool last = --capture->references == 0;
    if (last) {
        struct weir__capture **at = &list;
        while (*at != capture)
            at = &(*at)->next;
        *at = capture->next;
    }
    pthread_mutex_unlock(&list_lock);
    if (!last)
        return;

    for (uint32_t i = 0; i < capture->clock_count; i++)
        weir__release(capture->node_clocks[i]);
    for (uint32_t i = 0; i < capture->record_count; i++)
        weir__release(capture->records[i]);
    for (uint32_t i = 0; i < capture->branch_count; i++) {
        weir__release(capture->branches[i].clock);
        weir__release(capture->branches[i].nodes);
        weir__registry_unpin(capture->branches[i].queue);
    }
    weir__graph_parts_finish(&capture->parts);
    weir__release(capture->node_clocks);
    weir__release(capture->records);
    weir__release(capture->branches);
    pthread_mutex_destroy(&capture->lock);
    weir__release(capture);
}

// With a reference; NULL when it has ended.
static struct weir__capture *find(struct weir_event event)
{
    const uint32_t id = id_of(event);
    pthread_mutex_lock(&list_lock);
    struct weir__capture *capture = list;
    while (capture && capture->id != id)
        capture = capture->next;
    if (capture)
        capture->references++;
    pthread_mutex_unlock(&list_lock);
    return capture;
}

static struct weir__capture *create(weir_queue *origin, const char *file, int line)
{
    struct weir__capture *capture = weir__allocate(sizeof *capture);
    if (!capture)
        return NULL;
    capture->references = 1;
    capture->device = origin->member.device;
    capture->origin = origin;
    capture->file = file;
    capture->line = line;
    pthread_mutex_init(&capture->lock, NULL);
    pthread_mutex_lock(&list_lock);
    capture->id = (atomic_fetch_add(&last_id, 1) + 1) & ID_MASK;
    capture->next = list;
    list = capture;
    pthread_mutex_unlock(&list_lock);
    return capture;
}

// The queue becomes the last branch. With its submit lock and the capture's held.
static bool add_branch(struct weir__capture *capture, weir_queue *queue)
{
    const uint32_t count = capture->branch_count;
    struct clock *clock = copy_clock(NULL, count + 1);
    if (!clock || !make_room(&capture->branches, sizeof *capture->branches, count,
                             &capture->branch_capacity)) {
        weir__release(clock);
        return false;
    }
    capture->branches[count] = (struct branch){
        // The caller may use the queue, so this finds it.
        .queue = weir__registry_pin(queue->member.object.id),
        .clock = clock,
        .last = NO_NODE,
    };
    capture->branch_count++;
    atomic_store_explicit(&queue->capture, capture, memory_order_relaxed);
    return true;
}

static uint32_t branch_of(const struct weir__capture *capture, const weir_queue *queue)
{
    uint32_t index = 0;
    while (capture->branches[index].queue != queue)
        index++;
    return index;
}

// The queue's capture, locked; NULL if it is being ended, and the queue has left it
// then. With the submit lock held.
static struct weir__capture *enter(weir_queue *queue)
{
    struct weir__capture *capture = atomic_load_explicit(&queue->capture, memory_order_relaxed);
    pthread_mutex_lock(&capture->lock);
    if (!capture->closed)
        return capture;
    pthread_mutex_unlock(&capture->lock);
    atomic_store_explicit(&queue->capture, NULL, memory_order_relaxed);
    return NULL;
}

// Lets go of all queues. The caller has closed it.
static void detach(struct weir__capture *capture)
{
    for (uint32_t i = 0; i < capture->branch_count; i++) {
        weir_queue *queue = capture->branches[i].queue;
        weir_biased_lock_take(&queue->submit_lock);
        if (atomic_load_explicit(&queue->capture, memory_order_relaxed) == capture)
            atomic_store_explicit(&queue->capture, NULL, memory_order_relaxed);
        weir_biased_lock_release(&queue->submit_lock);
    }
}

// Closes the queue's capture and returns it for the caller to end, or NULL: there is
// none, or, with `as_origin`, it began elsewhere and is left as it is.
static struct weir__capture *close_of(weir_queue *queue, bool as_origin)
{
    struct weir__capture *capture = NULL;
    weir_biased_lock_take(&queue->submit_lock);
    if (weir__is_capturing(queue))
        capture = enter(queue);
    if (capture) {
        const bool wanted = !as_origin || capture->origin == queue;
        capture->closed = wanted;
        pthread_mutex_unlock(&capture->lock);
        capture = wanted ? capture : NULL;
    }
    weir_biased_lock_release(&queue->submit_lock);
    return capture;
}

// Sentences.

weir_status weir__capture_refuse(const weir_queue *queue, const char *file, int line,
                                 const char *why, const char *remedy)
{
    const char *label = queue->member.object.label;
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID, remedy,
                         "queue '%s' captures a graph, and %s", label, why);
}

weir_status weir__capture_refuse_event(const char *function, const char *object, const char *file,
                                       int line)
{
    return weir__fail_at(file, line, object, WEIR_ERROR_INVALID,
                         "record an event outside of the capture, behind the graph's launch",
                         "%s: the event was recorded in a capture, and exists in its graph only",
                         function);
}

static weir_status refuse_kind(const weir_queue *queue, const struct weir_operation *operation)
{
    const char *why = "this operation cannot be part of one";
    const char *remedy = "submit it before or behind the graph's launch";
    switch (operation->kind) {
    case WEIR_OPERATION_HOST_CALL:
        why = "a host call cannot be part of one";
        break;
    case WEIR_OPERATION_NATIVE:
        why = "a native call cannot be part of one";
        break;
    case WEIR_OPERATION_POOL_ALLOCATE:
    case WEIR_OPERATION_POOL_FREE:
        why = "memory cannot be allocated or freed in one";
        remedy = "do it before or behind the graph's launch";
        break;
    default:
        break;
    }
    return weir__capture_refuse(queue, operation->file, operation->line, why, remedy);
}

static weir_status fail_for_memory(struct weir__capture *capture)
{
    capture->out_of_memory = true;
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "cancel the capture",
                      "no memory to capture an operation");
}

// Noting.

// Whether one of the other candidates is behind node `index`, which is then no edge.
static bool is_implied(const struct weir__capture *capture, const uint32_t *candidates,
                       uint32_t count, uint32_t index)
{
    const uint32_t branch = capture->parts.nodes[index].branch;
    const uint32_t ordinal = reached(capture->node_clocks[index], branch);
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i] != index &&
            reached(capture->node_clocks[candidates[i]], branch) >= ordinal)
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

// The nodes that the branch's next one comes right behind; NULL: no memory.
static uint32_t *find_dependencies(const struct weir__capture *capture, const struct clock *clock,
                                   uint32_t *out_count)
{
    uint32_t *candidates = weir__allocate(2 * (size_t)clock->count * sizeof *candidates);
    uint32_t count = 0;
    *out_count = 0;
    if (!candidates)
        return NULL;
    uint32_t *kept = candidates + clock->count;
    for (uint32_t i = 0; i < clock->count; i++)
        if (clock->reached[i])
            candidates[count++] = capture->branches[i].nodes[clock->reached[i] - 1];
    for (uint32_t i = 0; i < count; i++)
        if (!is_implied(capture, candidates, count, candidates[i]))
            kept[(*out_count)++] = candidates[i];
    memcpy(candidates, kept, *out_count * sizeof *kept);
    qsort(candidates, *out_count, sizeof *candidates, compare);
    return candidates;
}

static bool make_node_room(struct weir__capture *capture, struct branch *branch)
{
    struct weir__graph_parts *parts = &capture->parts;
    uint32_t nodes = capture->node_capacity;
    uint32_t owned = capture->node_capacity;
    uint32_t clocks = capture->node_capacity;
    // All three before the capacity: one that fails leaves it as it was.
    if (!make_room(&branch->nodes, sizeof *branch->nodes, branch->node_count,
                   &branch->node_capacity) ||
        !make_room(&parts->nodes, sizeof *parts->nodes, parts->node_count, &nodes) ||
        !make_room(&parts->owned, sizeof(void *), parts->node_count, &owned) ||
        !make_room(&capture->node_clocks, sizeof(void *), parts->node_count, &clocks))
        return false;
    capture->node_capacity = nodes;
    return true;
}

static bool add_node(struct weir__capture *capture, uint32_t index,
                     const struct weir_operation *operation)
{
    struct weir__graph_parts *parts = &capture->parts;
    struct branch *branch = &capture->branches[index];
    uint32_t count;
    if (!make_node_room(capture, branch))
        return false;
    uint32_t *dependencies = find_dependencies(capture, branch->clock, &count);
    struct weir_operation *copy = weir__operation_clone(operation);
    struct clock *clock = copy_clock(branch->clock, 0);
    if (!dependencies || !copy || !clock) {
        weir__release(dependencies);
        weir__release(copy);
        weir__release(clock);
        return false;
    }
    const uint32_t node = parts->node_count++;
    clock->reached[index]++;
    branch->clock->reached[index]++;
    branch->nodes[branch->node_count++] = node;
    branch->last = node;
    copy->sequence = (uint64_t)node + 1;
    weir__operation_use(copy);
    parts->owned[node] = copy;
    capture->node_clocks[capture->clock_count++] = clock;
    parts->nodes[node] = (struct weir_graph_node){
        .operation = *copy,
        .branch = index,
        .dependencies = dependencies,
        .dependency_count = count,
    };
    return true;
}

static bool is_node(enum weir_operation_kind kind)
{
    return kind == WEIR_OPERATION_COPY || kind == WEIR_OPERATION_COPY_2D ||
           kind == WEIR_OPERATION_FILL || kind == WEIR_OPERATION_LAUNCH;
}

bool weir__capture_note(weir_queue *queue, const struct weir_operation *operation,
                        weir_status *out_status)
{
    struct weir__capture *capture = enter(queue);
    if (!capture)
        return false;
    const uint32_t branch = branch_of(capture, queue);
    *out_status = WEIR_OK;
    if (!is_node(operation->kind))
        *out_status = refuse_kind(queue, operation);
    else if (operation->flags & WEIR_OPERATION_EMPTY)
        capture->branches[branch].last = EMPTY_NODE;
    else if (!add_node(capture, branch, operation))
        *out_status = fail_for_memory(capture);
    pthread_mutex_unlock(&capture->lock);
    return true;
}

bool weir__capture_record(weir_queue *queue, struct weir_event *out_event, weir_status *out_status)
{
    struct weir__capture *capture = enter(queue);
    if (!capture)
        return false;
    struct clock *clock = copy_clock(capture->branches[branch_of(capture, queue)].clock, 0);
    if (clock && make_room(&capture->records, sizeof(void *), capture->record_count,
                           &capture->record_capacity)) {
        *out_event = (struct weir_event){
            .queue = queue->member.object.id,
            .sequence = CAPTURED | (uint64_t)capture->id << 32 | capture->record_count,
        };
        capture->records[capture->record_count++] = clock;
        *out_status = WEIR_OK;
    } else {
        weir__release(clock);
        *out_status = fail_for_memory(capture);
    }
    pthread_mutex_unlock(&capture->lock);
    return true;
}

// Joining.

static weir_status refuse_join(const weir_queue *queue, const struct weir__capture *capture,
                               const char *file, int line)
{
    const char *label = queue->member.object.label;
    if (weir__is_capturing(queue))
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "end the one before the other, or make one capture of both",
                             "weir_queue_wait: the event was recorded in another capture than the "
                             "one that queue '%s' is part of",
                             label);
    if (queue->member.device != capture->device)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "capture a graph for each device",
                             "weir_queue_wait: the event belongs to a capture of another device");
    return WEIR_OK;
}

// With the submit lock held.
static weir_status join(weir_queue *queue, struct weir__capture *capture, struct weir_event event,
                        const char *file, int line)
{
    weir_status status = WEIR_OK;
    const uint32_t record = (uint32_t)event.sequence;
    const bool inside = atomic_load_explicit(&queue->capture, memory_order_relaxed) == capture;
    if (!inside)
        status = refuse_join(queue, capture, file, line);
    if (status == WEIR_OK && !inside && atomic_load(&queue->progress.failed))
        status = weir__progress_refuse(queue);
    if (status < 0)
        return status;
    pthread_mutex_lock(&capture->lock);
    if (capture->closed || record >= capture->record_count)
        status =
            weir__capture_refuse_event("weir_queue_wait", queue->member.object.label, file, line);
    else if ((!inside && !add_branch(capture, queue)) ||
             !merge_clock(&capture->branches[branch_of(capture, queue)], capture->records[record]))
        status = fail_for_memory(capture);
    pthread_mutex_unlock(&capture->lock);
    return status;
}

weir_status weir__capture_wait(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    struct weir__capture *capture = find(event);
    if (!capture)
        return weir__capture_refuse_event("weir_queue_wait", queue->member.object.label, file,
                                          line);
    weir_biased_lock_take(&queue->submit_lock);
    if (weir__is_capturing(queue)) { // leaves one that is being ended
        struct weir__capture *own = enter(queue);
        if (own)
            pthread_mutex_unlock(&own->lock);
    }
    weir_status status = join(queue, capture, event, file, line);
    weir_biased_lock_release(&queue->submit_lock);
    release(capture);
    return status;
}

// Begin and end.

// With the submit lock held.
static weir_status begin(weir_queue *queue, const char *file, int line)
{
    struct weir__capture *other = weir__is_capturing(queue) ? enter(queue) : NULL;
    if (other) {
        const char *place = other->file ? other->file : "";
        const int where = other->line;
        pthread_mutex_unlock(&other->lock);
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "end or cancel that one first",
                             "weir_capture_begin: queue '%s' is part of a capture that began at "
                             "%s:%d",
                             queue->member.object.label, place, where);
    }
    if (atomic_load(&queue->progress.failed))
        return weir__progress_refuse(queue);
    struct weir__capture *capture = create(queue, file, line);
    if (!capture)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a capture");
    if (add_branch(capture, queue))
        return WEIR_OK;
    release(capture);
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a capture");
}

weir_status weir_capture_begin_at(weir_queue *queue, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    weir_biased_lock_take(&queue->submit_lock);
    weir_status status = begin(queue, file, line);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

weir_status weir_capture_node(weir_queue *queue, uint32_t *out_node)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, out_node);
    *out_node = 0;
    WEIR_REQUIRE(NULL, queue);
    const char *label = queue->member.object.label;
    uint32_t last = NO_NODE;
    weir_biased_lock_take(&queue->submit_lock);
    struct weir__capture *capture = weir__is_capturing(queue) ? enter(queue) : NULL;
    if (capture) {
        last = capture->branches[branch_of(capture, queue)].last;
        pthread_mutex_unlock(&capture->lock);
    }
    weir_biased_lock_release(&queue->submit_lock);
    if (!capture)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, "weir_capture_begin() first",
                             "weir_capture_node: queue '%s' captures nothing", label);
    if (last == NO_NODE)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID, NULL,
                             "weir_capture_node: nothing was captured from queue '%s' yet", label);
    if (last == EMPTY_NODE)
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_NOT_FOUND, NULL,
                             "weir_capture_node: the last operation captured from queue '%s' was "
                             "empty and became no node",
                             label);
    *out_node = last;
    return WEIR_OK;
}

// What the first queue has not waited for would be lost.
static weir_status check_joined(const struct weir__capture *capture, const char *file, int line)
{
    const struct branch *origin = &capture->branches[0];
    if (capture->out_of_memory)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL,
                          "there was no memory to capture all of the graph");
    for (uint32_t i = 1; i < capture->branch_count; i++) {
        const struct branch *branch = &capture->branches[i];
        if (branch->node_count > reached(origin->clock, i))
            return weir__fail_at(file, line, branch->queue->member.object.label, WEIR_ERROR_INVALID,
                                 "record on it at its end, and have the first queue wait on that",
                                 "weir_capture_end: queue '%s' joined the capture, and queue '%s' "
                                 "does not wait for the end of its work",
                                 branch->queue->member.object.label,
                                 origin->queue->member.object.label);
    }
    return WEIR_OK;
}

static weir_status refuse_end(weir_queue *queue, const char *file, int line)
{
    const char *label = queue->member.object.label;
    return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                         "end a capture on the queue that it began on",
                         weir__is_capturing(queue)
                             ? "weir_capture_end: queue '%s' joined a capture, which began on "
                               "another queue"
                             : "weir_capture_end: no capture began on queue '%s'",
                         label);
}

weir_status weir_capture_end_at(weir_queue *queue, const struct weir_graph_params *params,
                                weir_graph **out_graph, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, out_graph);
    *out_graph = NULL;
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    if (params)
        WEIR_REQUIRE_PARAMS(params);
    struct weir__capture *capture = close_of(queue, true);
    if (!capture)
        return refuse_end(queue, file, line);
    detach(capture);
    const char *label = params && params->label ? params->label : "";
    weir_status status = check_joined(capture, file, line);
    capture->parts.branch_count = capture->branch_count;
    if (status == WEIR_OK)
        status = weir__graph_create(capture->device, label, &capture->parts, out_graph);
    release(capture);
    return status;
}

static void cancel(struct weir__capture *capture)
{
    detach(capture);
    release(capture);
}

weir_status weir_capture_cancel(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    struct weir__capture *capture = close_of(queue, true);
    if (capture)
        cancel(capture);
    return WEIR_OK;
}

void weir__capture_abandon(weir_queue *queue)
{
    struct weir__capture *capture = weir__is_capturing(queue) ? close_of(queue, false) : NULL;
    if (capture)
        cancel(capture);
}
