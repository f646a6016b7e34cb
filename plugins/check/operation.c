// The uses of operations, by their kinds, and the path of an operation.
#include "plugins/check/parts.h"

// Graphs. A launch is one operation of its queue. Inside the graph each branch is an actor of its
// own, so its nodes are compared with each other like operations of queues: once, and again after
// an update.

struct check_graph {
    bool examined;
    uint32_t index; // of the actor of the last launch
    uint64_t count; // 0: none
};

static void check_use_operation(struct check *check, struct check_user *user,
                                const struct weir_operation *operation);

WEIR_DATA_OF(graph_of, struct check_graph, weir_graph)

static struct check_origin origin_of(const struct check *check,
                                     const struct weir_operation *operation)
{
    return check_origin_at(check, operation->file, operation->line, (uint32_t)operation->kind);
}

weir_status check_graph_create(const struct weir_link *link, weir_device *device,
                               weir_graph *object, const struct weir_graph_setup *setup,
                               void **out_data)
{
    *out_data = calloc(1, sizeof(struct check_graph));
    return *out_data ? WEIR_OK : weir_host_no_memory(link->host, "the order of a graph");
}

void check_graph_destroy(const struct weir_link *link, weir_graph *object)
{
    check_note_change(check_of(link));
    free(graph_of(link, object));
}

weir_status check_graph_update(const struct weir_link *link, weir_graph *object, uint32_t index,
                               const struct weir_graph_node *node)
{
    struct check *check = check_of(link);
    check_lock(check);
    graph_of(link, object)->examined = false;
    check_unlock(check);
    check_note_change(check);
    return link->next->ops->graph_update(link->next, object, index, node);
}

// Examining.

struct branch {
    struct check_actor actor;
    char label[32];
};

// The actors of a graph that is examined.
struct probe {
    struct check_actors actors;
    struct branch *branches;
    uint64_t *counts; // of each node, on its branch
};

// What it lacks memory for stays NULL or is not added.
static bool begin_probe(struct probe *probe, const struct weir_operation *operation)
{
    const uint32_t branch_count = operation->u.graph.branch_count;
    probe->branches = calloc(branch_count, sizeof *probe->branches);
    probe->counts = calloc(operation->u.graph.node_count, sizeof *probe->counts);
    bool made = probe->branches && probe->counts;
    for (uint32_t i = 0; made && i < branch_count; i++) {
        struct branch *branch = &probe->branches[i];
        snprintf(branch->label, sizeof branch->label, "branch %u", (unsigned)i);
        branch->actor.label = branch->label;
        made = check_actor_add(&probe->actors, &branch->actor);
    }
    return made;
}

static void end_probe(struct check *check, struct probe *probe, uint32_t branch_count)
{
    while (check->probed) {
        struct check_memory *memory = check->probed;
        check->probed = memory->next_probed;
        memory->probed = false;
        check_history_clear(&memory->probe);
    }
    for (uint32_t i = 0; probe->branches && i < branch_count; i++)
        if (probe->branches[i].actor.counts)
            check_actor_remove(&probe->actors, &probe->branches[i].actor);
    check_actors_finish(&probe->actors);
    free(probe->branches);
    free(probe->counts);
}

// Every node may be one that another depends on.
static void examine_node(struct check *check, struct probe *probe,
                         const struct weir_operation *launch, uint32_t index)
{
    const struct weir_graph_node *node = weir_graph_node_at(launch->u.graph.nodes, index);
    struct check_actor *actor = &probe->branches[node->branch].actor;
    const uint64_t count = ++actor->last;
    probe->counts[index] = count;
    for (uint32_t i = 0; i < node->dependency_count; i++) {
        const uint32_t other = node->dependencies[i];
        const uint32_t branch = weir_graph_node_at(launch->u.graph.nodes, other)->branch;
        check_actor_learn(&probe->actors, actor, count, &probe->branches[branch].actor,
                          probe->counts[other]);
    }
    struct check_user user = {
        .actors = &probe->actors,
        .actor = actor,
        .count = count,
        .origin = origin_of(check, node->operation),
        .probe = true,
    };
    if (!(node->operation->flags & WEIR_OPERATION_EMPTY))
        check_use_operation(check, &user, node->operation);
    actor->recorded = count;
}

// A graph of one branch is a sequence.
static void examine(struct check *check, const struct weir_operation *operation)
{
    struct probe probe = {.branches = NULL};
    if (operation->u.graph.branch_count < 2)
        return;
    if (begin_probe(&probe, operation))
        for (uint32_t i = 0; i < operation->u.graph.node_count; i++)
            examine_node(check, &probe, operation, i);
    end_probe(check, &probe, operation->u.graph.branch_count);
}

// Launches of one graph come one after the other, whatever their queues are.
static void check_graph_launch(struct check *check, struct check_user *user,
                               const struct weir_operation *operation)
{
    struct check_graph *graph = graph_of(check->link, operation->u.graph.graph);
    if (!graph->examined)
        examine(check, operation);
    graph->examined = true;
    if (graph->count && check->actors.floor[graph->index] < graph->count) {
        struct check_actor *other = check->actors.all[graph->index];
        if (check->needless)
            check_hint_need_all(check, (struct check_queue *)(void *)other);
        check_actor_learn(&check->actors, user->actor, user->count, other, graph->count);
    }
    graph->index = user->actor->index;
    graph->count = user->count;
}

static void use(struct check *check, struct check_queue *queue, uint64_t count,
                const struct weir_operation *operation)
{
    struct check_user user = {
        .actors = &check->actors,
        .actor = &queue->actor,
        .count = count,
        .origin = origin_of(check, operation),
    };
    if (check->needless) {
        queue->worked = count;
        check_hint_operation(check, queue, operation);
    }
    if (operation->kind == WEIR_OPERATION_GRAPH)
        check_graph_launch(check, &user, operation);
    check_use_operation(check, &user, operation);
    // A launch of the graph elsewhere waits for this one, and what a host call uses is compared with
    // operations that were submitted while it waited. Not before the uses: a finding may change the
    // clock, and the point that is named before must keep its own.
    if (operation->kind == WEIR_OPERATION_GRAPH || check->waiting_calls)
        queue->actor.recorded = count;
}

// What is read first, since it may not have been written: a copy's ranges are in that order.
static void use_ranges(struct check *check, const struct check_user *user,
                       const struct weir_operation *operation)
{
    const bool is_sorted = weir_operation_box(operation);
    struct weir_note_range range;
    for (int read = 1; read >= is_sorted; read--)
        for (uint32_t i = 0; weir_operation_range_at(operation, i, &range); i++) {
            const bool is_row = range.rows == 1 && range.slices == 1;
            if (range.size == 0 || (!is_sorted && ((range.access & WEIR_ACCESS_READ) != 0) != read))
                continue;
            const struct check_shape shape =
                is_row ? check_shape_range(range.offset, range.size)
                       : check_shape_box(range.offset, range.size, range.rows, range.pitch,
                                         range.slices, range.slice_pitch);
            check_use_bytes(check, user, check_buffer_of(check->link, range.buffer), &shape,
                            (weir_access)(range.access | (range.assumed ? CHECK_ASSUMED : 0)));
        }
}

// The former uses of memory that is allocated stay if this queue comes after its release. Otherwise the pool knows that
// they have finished, and the program does not.
static void use_pool(struct check *check, struct check_user *user,
                     const struct weir_operation *operation)
{
    struct check_buffer *buffer = check_buffer_of(check->link, operation->u.pool.buffer);
    const struct check_shape whole = check_shape_range(0, operation->u.pool.size);
    if (operation->kind == WEIR_OPERATION_POOL_FREE) {
        user->passing = true;
        check_use_bytes(check, user, buffer, &whole, WEIR_ACCESS_WRITE);
        buffer->freed_index = user->actor->index;
        buffer->freed_count = user->count;
        return;
    }
    if (!check_is_after(user->actors, user->actor, buffer->freed_index, buffer->freed_count))
        check_buffer_clear(check, buffer);
    struct check_use *use = check_history_add(&buffer->memory->history, &whole);
    if (use)
        check_use_set(use, check, user, WEIR_ACCESS_WRITE);
    check_gaps_reset(buffer, operation->u.pool.size);
}

static void use_nodes(struct check *check, struct check_user *user,
                      const struct weir_operation *operation)
{
    for (uint32_t i = 0; i < operation->u.graph.node_count; i++) {
        const struct weir_operation *node =
            weir_graph_node_at(operation->u.graph.nodes, i)->operation;
        if (node->flags & WEIR_OPERATION_EMPTY)
            continue; // it is disabled
        user->origin = origin_of(check, node);
        check_use_operation(check, user, node);
    }
}

// The operation's uses, by its kind; of a graph, those of all its nodes.
static void check_use_operation(struct check *check, struct check_user *user,
                                const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_POOL_ALLOCATE:
    case WEIR_OPERATION_POOL_FREE:
        use_pool(check, user, operation);
        return;
    case WEIR_OPERATION_GRAPH:
        use_nodes(check, user, operation);
        return;
    case WEIR_OPERATION_LAUNCH:
        user->origin.kernel = weir_kernel_object(operation->u.launch.kernel)->label;
        break;
    case WEIR_OPERATION_NOTE:
        user->origin.kernel = operation->u.note.name;
        break;
    case WEIR_OPERATION_NATIVE:
        check->unseen_writes = true;
        break;
    default:
        break;
    }
    use_ranges(check, user, operation);
}

// Regions: the innermost one of a thread is part of what the thread submits. A thread keeps its
// regions for one link at a time, the last one that it called.

enum {
    DEPTH = 8 // deeper ones count as the last of these
};

struct level {
    const char *name;
    uint64_t number;
};

static WEIR_MODULE_THREAD_LOCAL struct {
    uint64_t check; // its number
    uint32_t depth; // may exceed DEPTH
    struct level levels[DEPTH];
} regions;

struct check_origin check_origin_at(const struct check *check, const char *file, int line,
                                    uint32_t operation)
{
    struct check_origin origin = {
        .file = file,
        .region_number = WEIR_NO_NUMBER,
        .line = line,
        .operation = operation,
    };
    if (regions.check != check->number || regions.depth == 0)
        return origin;
    const struct level *level =
        &regions.levels[regions.depth < DEPTH ? regions.depth - 1 : DEPTH - 1];
    origin.region = level->name;
    origin.region_number = level->number;
    return origin;
}

void check_region(const struct weir_link *link, const char *name, uint64_t number)
{
    struct check *check = check_of(link);
    if (regions.check != check->number)
        regions.depth = 0;
    regions.check = check->number;
    if (name) {
        check_lock(check);
        const char *kept = weir_names_keep(check->names, name);
        check_unlock(check);
        if (regions.depth < DEPTH)
            regions.levels[regions.depth] = (struct level){kept, number};
        regions.depth++;
    } else if (regions.depth > 0) {
        regions.depth--;
    }
    link->next->ops->region(link->next, name, number);
}

// The path of an operation: what it declares to come after, then what it uses.

static void wait(struct check *check, struct check_queue *queue, uint64_t count,
                 const struct weir_operation *operation)
{
    struct check_queue *producer = check_queue_of(check->link, operation->u.wait.producer);
    if (check->hints)
        check_hint_wait(check, queue, producer, operation);
    check_actor_learn(&check->actors, &queue->actor, count, &producer->actor,
                      producer->actor.base + operation->u.wait.event.sequence);
}

// Pools' operations are empty, and still say something.
static bool uses_bytes(const struct weir_operation *operation)
{
    return !(operation->flags & WEIR_OPERATION_EMPTY) ||
           operation->kind == WEIR_OPERATION_POOL_ALLOCATE ||
           operation->kind == WEIR_OPERATION_POOL_FREE;
}

// The library's own edges are not what the calling thread declares to come after.
static bool is_of_thread(const struct weir_operation *operation)
{
    return !(operation->flags & WEIR_OPERATION_INTERNAL) ||
           (operation->kind != WEIR_OPERATION_RECORD && operation->kind != WEIR_OPERATION_WAIT);
}

static bool is_call(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_HOST_CALL &&
           !(operation->flags & WEIR_OPERATION_INTERNAL);
}

// With `strict` what the function learns is the queue's from the call on.
static void note_call(struct check *check, struct check_queue *queue, uint64_t count)
{
    queue->waiting_calls++;
    check->waiting_calls++;
    check_actors_mark(&check->actors, check->strict ? &queue->actor : NULL, count);
}

static void note(struct check *check, struct check_queue *queue,
                 const struct weir_operation *operation)
{
    const uint64_t count = queue->actor.base + operation->sequence;
    queue->actor.last = count;
    const struct check_actor *self =
        check->strict && is_of_thread(operation) ? check_thread_self(check) : NULL;
    if (self)
        check_actor_learn(&check->actors, &queue->actor, count, self, self->last);
    switch (operation->kind) {
    case WEIR_OPERATION_RECORD:
        queue->actor.recorded = count;
        queue->record_file = operation->file;
        queue->record_line = operation->line;
        break;
    case WEIR_OPERATION_WAIT:
        wait(check, queue, count, operation);
        break;
    default:
        if (uses_bytes(operation))
            use(check, queue, count, operation);
        if (is_call(operation))
            note_call(check, queue, count);
        break;
    }
}

weir_status check_queue_submit(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation)
{
    struct check *check = check_of(link);
    struct check_queue *queue = check_queue_of(link, object);
    check_lock(check);
    note(check, queue, operation);
    weir_status status = check_unlock(check);
    bool done = false;
    if (status >= 0 && check->verify)
        status = check_verify(link, object, operation, &done);
    if (status >= 0 && !done)
        status = link->next->ops->queue_submit(link->next, object, operation);
    if (status >= 0)
        return status;
    check_lock(check); // what is not submitted uses nothing
    check_calls_end(check, queue, is_call(operation));
    queue->actor.refused = queue->actor.base + operation->sequence;
    check->unseen_uses = true;
    check_unlock(check);
    return status;
}
