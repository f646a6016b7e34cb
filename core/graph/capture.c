// Captures: what the queues in one note, and the graph that comes of it.

#include "core/graph/graph.h"
#include "core/queue/operation.h"
#include "core/support/memory.h"

// The result of a branch's last operation, if it is not a node.
#define NO_NODE UINT32_MAX
#define EMPTY_NODE (UINT32_MAX - 1)

// A node, or what a branch or a record comes after: the latest node of each branch, and itself, if it is one.
struct point {
    struct point *next; // of the capture's
    uint32_t node;      // its index, if it is one
    uint32_t count;
    const struct point *latest[]; // NULL: none
};

struct branch {
    weir_queue *queue; // with a reference
    const struct point *end;
    uint32_t last; // the result of its last operation
};

// A capture of one queue or several. One lock guards all captures and the queues' pointers to them; a thread that holds
// a queue's submit lock may take it. A thread that ends a capture first clears the pointers of all its queues.
struct weir__capture {
    uint32_t id;
    weir_queue *origin;
    const char *file; // of weir_capture_begin()
    int line;
    bool out_of_memory; // an operation could not be noted
    struct branch *branches;
    uint32_t branch_count;
    size_t branch_capacity;
    struct weir__graph_parts parts;
    struct point *points;
    const struct point **records;
    uint32_t record_count;
    size_t record_capacity;
};

static struct weir_lock lock = WEIR_LOCK_INITIALIZER(&weir__locks[WEIR__LOCK_CAPTURES]);

// Points.

static const struct point *latest_of(const struct point *point, uint32_t branch)
{
    return point && branch < point->count ? point->latest[branch] : NULL;
}

// Of nodes of one branch, or NULL.
static bool is_later(const struct point *node, const struct point *other)
{
    return node && (!other || node->node > other->node);
}

// Adds a copy with at least `count` branches; NULL: nothing is before it. Freed with the capture.
static struct point *add_point(struct weir__capture *capture, const struct point *from,
                               uint32_t count)
{
    const uint32_t known = from ? from->count : 0;
    if (count < known)
        count = known;
    struct point *point = weir__allocate(sizeof *point + count * sizeof(struct point *));
    if (!point)
        return NULL;
    if (known)
        memcpy(point->latest, from->latest, known * sizeof(struct point *));
    point->count = count;
    point->next = capture->points;
    capture->points = point;
    return point;
}

// The branch comes after that point too.
static bool merge(struct weir__capture *capture, struct branch *branch, const struct point *other)
{
    bool adds = false;
    for (uint32_t i = 0; i < other->count; i++)
        adds = adds || is_later(other->latest[i], latest_of(branch->end, i));
    struct point *end = adds ? add_point(capture, branch->end, other->count) : NULL;
    if (!end)
        return !adds;
    for (uint32_t i = 0; i < other->count; i++)
        if (is_later(other->latest[i], end->latest[i]))
            end->latest[i] = other->latest[i];
    branch->end = end;
    return true;
}

// Branches.

// The branch of a queue that has one.
static uint32_t branch_of(const struct weir__capture *capture, const weir_queue *queue)
{
    uint32_t index = 0;
    while (capture->branches[index].queue != queue)
        index++;
    return index;
}

// Nodes.

// Whether another one of the candidates comes after this one, so that the edge is implied.
static bool is_implied(const struct weir__capture *capture, const struct point *const *candidates,
                       uint32_t count, const struct point *node)
{
    const uint32_t branch = capture->parts.nodes[node->node].branch;
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i] && candidates[i] != node &&
            !is_later(node, latest_of(candidates[i], branch)))
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

// Adds a copy of the operation as the branch's next node, after its direct predecessors.
static bool add_node(struct weir__capture *capture, uint32_t index,
                     const struct weir_operation *operation)
{
    struct branch *branch = &capture->branches[index];
    const struct point *end = branch->end;
    uint32_t *dependencies = weir__allocate(end->count * sizeof *dependencies);
    struct point *point = add_point(capture, end, 0);
    struct weir_graph_node node = {.struct_size = sizeof node,
                                   .operation = operation,
                                   .branch = index,
                                   .dependencies = dependencies};
    for (uint32_t i = 0; i < end->count && dependencies; i++)
        if (end->latest[i] && !is_implied(capture, end->latest, end->count, end->latest[i]))
            dependencies[node.dependency_count++] = end->latest[i]->node;
    if (dependencies)
        qsort(dependencies, node.dependency_count, sizeof *dependencies, compare);
    const bool added = dependencies && point && weir__graph_parts_add(&capture->parts, &node);
    weir__release(dependencies);
    if (!added)
        return false;
    point->node = branch->last = capture->parts.node_count - 1;
    point->latest[index] = branch->end = point;
    return true;
}

static void finish(struct weir__capture *capture)
{
    for (struct point *point = capture->points, *next; point; point = next) {
        next = point->next;
        weir__release(point);
    }
    for (uint32_t i = 0; i < capture->branch_count; i++)
        weir__registry_unpin(capture->branches[i].queue);
    weir__graph_parts_finish(&capture->parts);
    weir__release(capture->records);
    weir__release(capture->branches);
    weir__release(capture);
}

// Creation, and the end.

#define CAPTURED (UINT64_C(1) << 63)
#define ID_MASK 0x7fffffffu

static atomic_uint last_id;

static const struct weir__capture_ops capture_ops;

static struct weir__capture *capture_of(const weir_queue *queue)
{
    return atomic_load_explicit(&queue->capture, memory_order_relaxed);
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

// The queue becomes the last branch. With its submit lock and the lock held.
static bool add_queue(struct weir__capture *capture, weir_queue *queue)
{
    const uint32_t count = capture->branch_count;
    const struct point *begin = add_point(capture, NULL, count + 1);
    struct branch *branches =
        weir__grow(capture->branches, count, &capture->branch_capacity, sizeof *branches);
    capture->branches = branches ? branches : capture->branches;
    if (!begin || !branches)
        return false;
    capture->branches[count] = (struct branch){
        // The caller may use the queue, so this finds it.
        .queue = weir__registry_pin(queue->member.object.id),
        .end = begin,
        .last = NO_NODE,
    };
    capture->branch_count++;
    queue->capture_ops = &capture_ops;
    atomic_store_explicit(&queue->capture, capture, memory_order_relaxed);
    return true;
}

// Takes its capture away from the queue and all others, for the caller to end. NULL if there is none, or if, with
// `as_origin`, it began on another queue; it is then not changed.
static struct weir__capture *detach(weir_queue *queue, bool as_origin)
{
    weir_lock_take(&lock);
    struct weir__capture *capture = capture_of(queue);
    if (capture && as_origin && capture->origin != queue)
        capture = NULL;
    for (uint32_t i = 0; capture && i < capture->branch_count; i++)
        atomic_store_explicit(&capture->branches[i].queue->capture, NULL, memory_order_relaxed);
    weir_lock_release(&lock);
    return capture;
}

// Messages.

weir_status weir__capture_refuse_event(const char *function, const char *object, const char *file,
                                       int line)
{
    return weir__fail_at(file, line, object, WEIR_ERROR_INVALID,
                         "record an event outside of the capture, after the graph's launch",
                         "%s: the event was recorded in a capture, and exists in its graph only",
                         function);
}

static weir_status fail_for_memory(struct weir__capture *capture)
{
    capture->out_of_memory = true;
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, "cancel the capture",
                      "no memory to capture an operation");
}

// Noting.

static weir_status check_kind(const weir_queue *queue, const struct weir_operation *operation)
{
    const char *why = "this operation cannot be part of one";
    switch (operation->kind) {
    case WEIR_OPERATION_HOST_CALL:
        if (!weir__is_always(operation))
            return WEIR_OK;
        why = "a host call that always runs cannot be part of one";
        break;
    case WEIR_OPERATION_COLLECTIVE:
    case WEIR_OPERATION_NATIVE:
    case WEIR_OPERATION_NOTE:
        return WEIR_OK;
    default:
        if (weir__is_device_work(operation->kind))
            return WEIR_OK;
    }
    return weir__queue_refuse_capturing(queue, operation->file, operation->line, why,
                                        "submit it before or after the graph's launch");
}

static weir_status note_in(struct weir__capture *capture, const weir_queue *queue,
                           struct weir_operation *operation)
{
    const uint32_t branch = branch_of(capture, queue);
    if (operation->kind == WEIR_OPERATION_RECORD) {
        const struct point **records = weir__grow(capture->records, capture->record_count,
                                                  &capture->record_capacity, sizeof *records);
        if (!records)
            return fail_for_memory(capture);
        capture->records = records;
        operation->sequence = CAPTURED | (uint64_t)capture->id << 32 | capture->record_count;
        records[capture->record_count++] = capture->branches[branch].end;
        return WEIR_OK;
    }
    TRY(check_kind(queue, operation));
    if (operation->flags & WEIR_OPERATION_EMPTY)
        capture->branches[branch].last = EMPTY_NODE;
    else if (!add_node(capture, branch, operation))
        return fail_for_memory(capture);
    return WEIR_OK;
}

static bool note(weir_queue *queue, struct weir_operation *operation, weir_status *out_status)
{
    weir_lock_take(&lock);
    struct weir__capture *capture = capture_of(queue);
    if (capture)
        *out_status = note_in(capture, queue, operation);
    weir_lock_release(&lock);
    return capture != NULL;
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
                             weir__label_or_none(label));
    if (queue->member.device != capture->origin->member.device)
        return weir__fail_at(file, line, label, WEIR_ERROR_INVALID,
                             "capture a graph for each device",
                             "weir_queue_wait: the event belongs to a capture of another device");
    return WEIR_OK;
}

// With both locks held.
static weir_status join(weir_queue *queue, struct weir__capture *capture, struct weir_event event,
                        const char *file, int line)
{
    weir_status status = WEIR_OK;
    const uint32_t record = (uint32_t)event.sequence;
    const bool inside = capture_of(queue) == capture;
    if (record >= capture->record_count)
        return weir__capture_refuse_event("weir_queue_wait", queue->member.object.label, file,
                                          line);
    if (!inside)
        status = refuse_join(queue, capture, file, line);
    if (status == WEIR_OK && !inside && atomic_load(&queue->completion.failed))
        status = weir__tell_refused(weir__completion_refuse(queue), "weir_queue_wait", file, line);
    if (status < 0)
        return status;
    if ((!inside && !add_queue(capture, queue)) ||
        !merge(capture, &capture->branches[branch_of(capture, queue)], capture->records[record]))
        return fail_for_memory(capture);
    return WEIR_OK;
}

weir_status weir__capture_wait(weir_queue *queue, struct weir_event event, const char *file,
                               int line)
{
    weir_queue *recorder = weir__registry_pin(event.queue);
    weir_lock_take(&queue->submit_lock);
    weir_lock_take(&lock);
    struct weir__capture *capture = recorder ? capture_of(recorder) : NULL;
    const weir_status status =
        capture && capture->id == id_of(event)
            ? join(queue, capture, event, file, line)
            : weir__capture_refuse_event("weir_queue_wait", queue->member.object.label, file, line);
    weir_lock_release(&lock);
    weir_lock_release(&queue->submit_lock);
    weir__registry_unpin(recorder);
    return status;
}

// Begin and end.

// With both locks held.
static weir_status begin(weir_queue *queue, const char *file, int line)
{
    const struct weir__capture *other = capture_of(queue);
    if (other)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_INVALID,
                             "end or cancel that one first",
                             "weir_capture_begin: queue '%s' is part of a capture that began at "
                             "%s:%d",
                             weir__label_or_none(queue->member.object.label),
                             other->file ? other->file : "", other->line);
    if (atomic_load(&queue->completion.failed))
        return weir__tell_refused(weir__completion_refuse(queue), "weir_capture_begin", file, line);
    struct weir__capture *capture = weir__allocate(sizeof *capture);
    if (capture) {
        capture->origin = queue;
        capture->file = weir__file_name(file);
        capture->line = line;
        capture->id = (atomic_fetch_add(&last_id, 1) + 1) & ID_MASK;
        if (add_queue(capture, queue))
            return WEIR_OK;
        finish(capture);
    }
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for a capture");
}

weir_status weir_capture_begin_at(weir_queue *queue, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REFUSE_CALLBACK(queue, file, line);
    weir_lock_take(&queue->submit_lock);
    weir_lock_take(&lock);
    weir_status status = begin(queue, file, line);
    weir_lock_release(&lock);
    weir_lock_release(&queue->submit_lock);
    return status;
}

weir_status weir_capture_node(weir_queue *queue, uint32_t *out_node)
{
    WEIR_REQUIRE(NULL, out_node);
    *out_node = 0;
    WEIR_ENTER(queue);
    WEIR_REFUSE_CALLBACK(queue, NULL, 0);
    const char *label = queue->member.object.label;
    uint32_t last = NO_NODE;
    weir_lock_take(&lock);
    const struct weir__capture *capture = capture_of(queue);
    if (capture)
        last = capture->branches[branch_of(capture, queue)].last;
    weir_lock_release(&lock);
    if (!capture)
        return weir__told(weir__invalid(label, "weir_capture_begin() first",
                                        "weir_capture_node: queue '%s' captures nothing",
                                        weir__label_or_none(label)));
    if (last == NO_NODE)
        return weir__told(
            weir__invalid(label, "call it after the operation whose node is requested",
                          "weir_capture_node: nothing was captured from queue '%s' yet",
                          weir__label_or_none(label)));
    if (last == EMPTY_NODE)
        return weir__told(
            weir__fail_at(NULL, 0, label, WEIR_ERROR_NOT_FOUND,
                          "an operation of size 0 has nothing to update",
                          "weir_capture_node: the last operation captured from queue '%s' was "
                          "empty and became no node",
                          weir__label_or_none(label)));
    *out_node = last;
    return WEIR_OK;
}

// Work that the first queue has not waited for would be lost.
static weir_status check_joined(const struct weir__capture *capture, const char *file, int line)
{
    if (capture->out_of_memory)
        return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL,
                          "there was no memory to capture all of the graph");
    const weir_queue *loose = NULL;
    for (uint32_t i = 1; i < capture->branch_count && !loose; i++)
        if (is_later(capture->branches[i].end->latest[i], latest_of(capture->branches[0].end, i)))
            loose = capture->branches[i].queue;
    if (!loose)
        return WEIR_OK;
    return weir__fail_at(file, line, loose->member.object.label, WEIR_ERROR_INVALID,
                         "record on it at its end, and have the first queue wait on that",
                         "weir_capture_end: queue '%s' joined the capture, and queue '%s' "
                         "does not wait for the end of its work",
                         weir__label_or_none(loose->member.object.label),
                         weir__label_or_none(capture->origin->member.object.label));
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
                         weir__label_or_none(label));
}

weir_status weir_capture_end_at(weir_queue *queue, const struct weir_graph_params *params,
                                weir_graph **out_graph, const char *file, int line)
{
    struct weir_graph_params known;
    WEIR_ENTER_FOR(file, line, out_graph, queue);
    if (params)
        WEIR_READ_PARAMS(file, line, weir_graph_params, params, &known);
    WEIR_REFUSE_CALLBACK(queue, file, line);
    struct weir__capture *capture = detach(queue, true);
    if (!capture)
        return refuse_end(queue, file, line);
    const char *label = params && params->label ? params->label : "";
    weir_status status = check_joined(capture, file, line);
    capture->parts.branch_count = capture->branch_count;
    if (status == WEIR_OK)
        status = weir__graph_create(queue->member.device, label, &capture->parts, out_graph);
    if (status == WEIR_OK)
        weir__member_place(&(*out_graph)->member, file, line);
    finish(capture);
    return weir__placed(status, file, line);
}

weir_status weir_capture_cancel(weir_queue *queue)
{
    WEIR_ENTER(queue);
    WEIR_REFUSE_CALLBACK(queue, NULL, 0);
    struct weir__capture *capture = detach(queue, true);
    if (capture)
        finish(capture);
    return WEIR_OK;
}

static void abandon(weir_queue *queue)
{
    struct weir__capture *capture = detach(queue, false);
    if (capture)
        finish(capture);
}

static const struct weir__capture_ops capture_ops = {
    .note = note,
    .abandon = abandon,
};
