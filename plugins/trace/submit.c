// The cost added to a submit: two readings of the clock, and an entry in memory that is already
// allocated. Nothing is allocated, nothing waits, and no lock is taken, except that every
// TRACE_WAKE operations the writing thread is woken.
#include <string.h>

#include "base/clock.h"
#include "plugins/trace/parts.h"

// For copies to or from host memory the engine follows from the direction. Managed memory counts as
// the device's: where its pages are is the driver's affair.
static enum weir_trace_engine engine_of(const struct trace_buffer *dst,
                                        const struct trace_buffer *src)
{
    const bool to_host = dst->memory == WEIR_TRACE_PINNED_MEMORY;
    const bool from_host = src->memory == WEIR_TRACE_PINNED_MEMORY;
    if (to_host && from_host)
        return WEIR_ENGINE_HOST;
    if (to_host)
        return WEIR_ENGINE_TO_HOST;
    return from_host ? WEIR_ENGINE_TO_DEVICE : WEIR_ENGINE_ON_DEVICE;
}

static void note_copy(const struct weir_link *link, struct trace_entry *entry,
                      const weir_buffer *dst_object, const weir_buffer *src_object, uint64_t bytes)
{
    const struct trace_buffer *dst = trace_buffer_of(link, dst_object);
    const struct trace_buffer *src = trace_buffer_of(link, src_object);
    entry->bytes = bytes;
    entry->dst = dst->label;
    entry->src = src->label;
    entry->dst_memory = (uint8_t)dst->memory;
    entry->src_memory = (uint8_t)src->memory;
    entry->engine = (uint8_t)engine_of(dst, src);
}

static void note_fill(const struct weir_link *link, struct trace_entry *entry,
                      const weir_buffer *dst_object, uint64_t bytes)
{
    const struct trace_buffer *dst = trace_buffer_of(link, dst_object);
    entry->bytes = bytes;
    entry->dst = dst->label;
    entry->dst_memory = (uint8_t)dst->memory;
    entry->engine =
        dst->memory == WEIR_TRACE_PINNED_MEMORY ? WEIR_ENGINE_HOST : WEIR_ENGINE_ON_DEVICE;
}

static bool is_number(const struct weir_argument *argument)
{
    return argument->kind == WEIR_PARAMETER_VALUE && !argument->pointer &&
           argument->scalar != WEIR_SCALAR_OTHER && argument->scalar != WEIR_SCALAR_POINTER &&
           argument->scalar != WEIR_SCALAR_F16;
}

// What a kernel's time may depend on.
static void note_arguments(struct trace_entry *entry, const struct weir_operation *operation)
{
    const struct weir_argument *arguments = operation->u.launch.arguments;
    const size_t count = operation->u.launch.argument_count;
    uint64_t bytes = 0;
    uint8_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (arguments[i].kind == WEIR_PARAMETER_BUFFER)
            bytes += arguments[i].size;
        if (kept == TRACE_SCALARS || i > UINT8_MAX || !is_number(&arguments[i]))
            continue;
        entry->u.launch.bits[kept] = arguments[i].bits;
        entry->u.launch.scalars[kept] = (uint8_t)arguments[i].scalar;
        entry->u.launch.arguments[kept++] = (uint8_t)i;
    }
    entry->u.launch.argument_bytes = bytes;
    entry->u.launch.scalar_count = kept;
}

static void note_launch(const struct weir_link *link, struct trace_entry *entry,
                        const struct weir_operation *operation)
{
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    entry->name = weir_kernel_data(link, operation->u.launch.kernel);
    entry->engine = WEIR_ENGINE_KERNELS;
    memcpy(entry->u.launch.grid, (uint32_t[]){grid.x, grid.y, grid.z}, sizeof entry->u.launch.grid);
    memcpy(entry->u.launch.block, (uint32_t[]){block.x, block.y, block.z},
           sizeof entry->u.launch.block);
    note_arguments(entry, operation);
}

static void note_wait(struct trace_entry *entry, const struct weir_operation *operation)
{
    entry->u.wait.queue = operation->u.wait.event.queue;
    entry->u.wait.sequence = operation->u.wait.event.sequence;
    if (operation->flags & WEIR_OPERATION_IMPLIED)
        entry->flags |= TRACE_IMPLIED;
}

static bool has_time(const struct weir_operation *node)
{
    return !(node->flags & WEIR_OPERATION_EMPTY) && node->kind != WEIR_OPERATION_NATIVE &&
           node->kind != WEIR_OPERATION_HOST_CALL;
}

static uint32_t count_timed(const struct weir_operation *launch)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->u.graph.node_count; i++)
        count += has_time(weir_graph_node_at(launch->u.graph.nodes, i)->operation);
    return count;
}

// A backend without graphs gets the nodes, and times each of them.
static void note_graph(const struct weir_link *link, struct trace_entry *entry,
                       const struct weir_operation *operation)
{
    struct trace *trace = trace_of(link);
    entry->engine = WEIR_ENGINE_KERNELS;
    entry->name =
        trace_names_keep(&trace->names, weir_graph_object(operation->u.graph.graph)->label);
    entry->u.graph.seen = 0;
    entry->u.graph.times = trace->backend->ops->graph_create ? 1 : count_timed(operation);
    if (entry->u.graph.times == 0)
        entry->flags |= TRACE_UNTIMED;
}

static void note_kind(const struct weir_link *link, struct trace_entry *entry,
                      const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        note_copy(link, entry, operation->u.copy.dst, operation->u.copy.src,
                  operation->u.copy.size);
        break;
    case WEIR_OPERATION_COPY_2D:
        note_copy(link, entry, operation->u.copy_2d.dst.buffer, operation->u.copy_2d.src.buffer,
                  (uint64_t)operation->u.copy_2d.width * operation->u.copy_2d.height);
        break;
    case WEIR_OPERATION_FILL:
        note_fill(link, entry, operation->u.fill.dst, operation->u.fill.size);
        break;
    case WEIR_OPERATION_FILL_2D:
        note_fill(link, entry, operation->u.fill_2d.dst.buffer,
                  (uint64_t)operation->u.fill_2d.width * operation->u.fill_2d.height);
        break;
    case WEIR_OPERATION_COPY_3D:
        note_copy(link, entry, operation->u.copy_3d.dst.buffer, operation->u.copy_3d.src.buffer,
                  (uint64_t)operation->u.copy_3d.width * operation->u.copy_3d.height *
                      operation->u.copy_3d.depth);
        break;
    case WEIR_OPERATION_LAUNCH:
        note_launch(link, entry, operation);
        break;
    case WEIR_OPERATION_GRAPH:
        note_graph(link, entry, operation);
        break;
    case WEIR_OPERATION_WAIT:
        note_wait(entry, operation);
        break;
    case WEIR_OPERATION_HOST_CALL:
        entry->engine = WEIR_ENGINE_HOST;
        entry->u.host_call.function = operation->u.host_call.function;
        entry->u.host_call.user = operation->u.host_call.user;
        break;
    case WEIR_OPERATION_COLLECTIVE:
        trace_note_collective(entry, operation, trace_of(link));
        break;
    default: // the caller's own work, which is unknown
        entry->flags |= TRACE_UNTIMED;
        break;
    }
}

_Static_assert(WEIR_OPERATION_KINDS <= UINT8_MAX, "an entry's kind has 8 bits");

// One that is newer than this plugin is none of those that it knows.
static uint8_t kind_of(const struct weir_operation *operation)
{
    return (uint8_t)(operation->kind < WEIR_OPERATION_KINDS ? operation->kind
                                                            : WEIR_OPERATION_KINDS);
}

static void note(const struct weir_link *link, struct trace_entry *entry,
                 const struct weir_operation *operation)
{
    const struct trace_thread *thread = trace_thread_self(trace_of(link));
    entry->sequence = operation->sequence;
    entry->start_ns = 0;
    entry->end_ns = 0;
    entry->bytes = 0;
    entry->thread = thread ? thread->id : 0;
    entry->file = operation->file;
    entry->name = "";
    entry->dst = "";
    entry->src = "";
    entry->line = operation->line;
    entry->kind = kind_of(operation);
    entry->engine = WEIR_ENGINE_NONE;
    entry->dst_memory = WEIR_TRACE_NO_MEMORY;
    entry->src_memory = WEIR_TRACE_NO_MEMORY;
    entry->flags = operation->flags & WEIR_OPERATION_EMPTY ? TRACE_UNTIMED : 0;
    atomic_store_explicit(&entry->called, false, memory_order_relaxed);
    entry->region[0] = '\0';
    if (thread && thread->path_length > 0)
        memcpy(entry->region, thread->path, thread->path_length + 1);
    note_kind(link, entry, operation);
}

// Replaces the user's function, in order to time it on the host's clock.
static weir_status call(void *user)
{
    struct trace_entry *entry = user;
    entry->start_ns = weir_clock_now_ns();
    weir_status status = entry->u.host_call.function(entry->u.host_call.user);
    entry->end_ns = weir_clock_now_ns();
    atomic_store_explicit(&entry->called, true, memory_order_release);
    return status;
}

static weir_status forward(const struct weir_link *link, weir_queue *object,
                           const struct weir_operation *operation)
{
    return link->next->ops->queue_submit(link->next, object, operation);
}

static weir_status forward_call(const struct weir_link *link, weir_queue *object,
                                const struct weir_operation *operation, struct trace_entry *entry)
{
    struct weir_operation_room room;
    struct weir_operation *wrapped = weir_operation_copy(&room, operation);
    wrapped->u.host_call.function = call;
    wrapped->u.host_call.user = entry;
    return forward(link, object, wrapped);
}

// Records do nothing by themselves; waits name them.
static bool is_kept(enum weir_operation_kind kind)
{
    switch (kind) {
    case WEIR_OPERATION_RECORD:
    case WEIR_OPERATION_POOL_ALLOCATE:
    case WEIR_OPERATION_POOL_FREE:
        return false;
    default:
        return true;
    }
}

// With a clock of their own the links after this one time host calls too.
static bool is_called_here(const struct trace *trace, const struct trace_entry *entry)
{
    return entry->kind == WEIR_OPERATION_HOST_CALL && !trace->clock;
}

// Whether the backend will have its times.
static bool is_timed(const struct trace_queue *queue, const struct trace_entry *entry)
{
    return !(entry->flags & TRACE_UNTIMED) && entry->kind != WEIR_OPERATION_WAIT &&
           !is_called_here(queue->trace, entry) && trace_is_by_device(queue, entry);
}

// Returns the next entry of the ring, or NULL if it is full. The tail is only read if its last
// known value leaves no room.
static struct trace_entry *next_entry(struct trace_queue *queue, uint64_t head)
{
    if (head - queue->tail_seen > queue->mask)
        queue->tail_seen = atomic_load_explicit(&queue->tail, memory_order_acquire);
    return head - queue->tail_seen > queue->mask ? NULL : &queue->ring[head & queue->mask];
}

// In virtual time the submitter waits for it, so that it finds the same in each run. Each node of a
// graph has times.
static void wake_writer(struct trace_queue *queue, const struct trace_entry *entry)
{
    queue->unwritten += entry->kind == WEIR_OPERATION_GRAPH ? entry->u.graph.times : 1;
    if (queue->unwritten < TRACE_WAKE)
        return;
    queue->unwritten = 0;
    if (queue->trace->clock)
        trace_drain_now(queue->trace);
    else
        trace_drain_press(queue->trace);
}

weir_status trace_queue_submit(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    if (!queue->enlisted)
        trace_queue_enlist(queue, object);
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    struct trace_entry *entry = is_kept(operation->kind) ? next_entry(queue, head) : NULL;
    if (!entry) {
        if (is_kept(operation->kind) && operation->kind != WEIR_OPERATION_WAIT)
            atomic_fetch_add_explicit(&queue->dropped, 1, memory_order_relaxed);
        return forward(link, object, operation);
    }
    note(link, entry, operation);
    entry->submit_ns = trace_now_ns(queue->trace);
    weir_status status = is_called_here(queue->trace, entry)
                             ? forward_call(link, object, operation, entry)
                             : forward(link, object, operation);
    entry->submit_end_ns = trace_now_ns(queue->trace);
    if (status < 0)
        entry->flags |= TRACE_FAILED | TRACE_UNTIMED;
    else if (is_timed(queue, entry))
        atomic_store_explicit(&queue->last_timed, operation->sequence, memory_order_relaxed);
    atomic_store_explicit(&queue->head, head + 1, memory_order_release);
    wake_writer(queue, entry);
    return status;
}
