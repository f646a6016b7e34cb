// The cost added to a submit: two readings of the clock, and an entry in memory that is already
// allocated. Nothing is allocated, nothing waits, and no lock is taken, except that every
// TRACE_WAKE operations the writing thread is woken.
#define _GNU_SOURCE // syscall
#include "plugins/trace/parts.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread_local.h"
#include "plugins/kit/kit.h"

// Copies as much as fits, and returns its length without the zero. snprintf() takes ten
// times as long.
static size_t copy_text(char *to, size_t size, const char *from)
{
    size_t length = 0;
    while (length + 1 < size && from[length]) {
        to[length] = from[length];
        length++;
    }
    to[length] = '\0';
    return length;
}

// Wakes the writing thread, since a ring is filling up.
static void press(struct trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->pressed = true;
    pthread_cond_signal(&trace->wake);
    pthread_mutex_unlock(&trace->lock);
}

// Keeps it until it is written.
static void keep_span(struct trace *trace, const struct trace_span_entry *span)
{
    pthread_mutex_lock(&trace->lists);
    if (trace->clock && trace->spans[trace->filling].count == TRACE_SPANS) {
        pthread_mutex_unlock(&trace->lists);
        trace_drain_now(trace);
        pthread_mutex_lock(&trace->lists);
    }
    struct trace_spans *spans = &trace->spans[trace->filling];
    const bool half = spans->count == TRACE_SPANS / 2;
    if (spans->count < TRACE_SPANS)
        spans->items[spans->count++] = *span;
    else
        trace->spans_dropped++;
    pthread_mutex_unlock(&trace->lists);
    if (half && !trace->clock)
        press(trace);
}

// Each thread has a list with an entry for each link that it has called, the last one first; usually there is one. Of a
// link that another thread has closed it stays until this one needs room. One key of the process frees the lists.

static WEIR_MODULE_THREAD_LOCAL struct trace_thread *list;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void free_list(void *first)
{
    while (list) {
        struct trace_thread *next = list->next;
        free(list);
        list = next;
    }
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, free_list) == 0;
}

static struct trace_thread *make(struct trace *trace)
{
    struct trace_span_entry name = {.name = ""};
    struct trace_thread **last = &list; // of a full list the last one is used again
    pthread_once(&once, make_key);
    for (size_t i = 1; *last && i < TRACE_LINKS; i++)
        last = &(*last)->next;
    struct trace_thread *thread = *last || !has_key ? *last : malloc(sizeof *thread);
    *last = NULL;
    if (!thread)
        return NULL;
    *thread = (struct trace_thread){.link = trace->number, .id = (uint64_t)syscall(SYS_gettid)};
    if (trace->clock) {
        pthread_mutex_lock(&trace->lists);
        thread->id = ++trace->thread_count;
        pthread_mutex_unlock(&trace->lists);
    }
    pthread_setspecific(key, thread);
    prctl(PR_GET_NAME, name.name);
    name.span.thread = thread->id;
    if (name.name[0])
        keep_span(trace, &name);
    return thread;
}

// The link's, taken out of the list; NULL: it has none.
static struct trace_thread *take_out(const struct trace *trace)
{
    struct trace_thread **at = &list;
    while (*at && (*at)->link != trace->number)
        at = &(*at)->next;
    struct trace_thread *thread = *at;
    if (thread)
        *at = thread->next;
    return thread;
}

void trace_thread_leave(const struct trace *trace)
{
    struct trace_thread *thread = take_out(trace);
    if (thread && !list)
        pthread_setspecific(key, NULL);
    free(thread);
}

static struct trace_thread *trace_thread_self(struct trace *trace)
{
    if (list && list->link == trace->number)
        return list;
    struct trace_thread *thread = take_out(trace);
    if (!thread)
        thread = make(trace);
    if (!thread)
        return NULL;
    thread->next = list;
    return list = thread;
}

// Notes an interval of the calling thread that ends now.
static void trace_thread_span(struct trace *trace, const struct trace_thread *thread,
                              enum weir_trace_span_kind kind, const char *name, uint64_t number,
                              uint64_t begin_ns)
{
    struct trace_span_entry span = {.span = {.kind = kind,
                                             .thread = thread->id,
                                             .number = number,
                                             .begin_ns = begin_ns,
                                             .end_ns = trace_now_ns(trace)}};
    copy_text(span.name, sizeof span.name, name);
    keep_span(trace, &span);
}

// Regions.

static void append(struct trace_thread *thread, const char *text)
{
    thread->path_length += copy_text(thread->path + thread->path_length,
                                     sizeof thread->path - thread->path_length, text);
}

// Appends "/name number" to the path; what does not fit is cut.
static void extend(struct trace_thread *thread, const char *name, uint64_t number)
{
    char digits[24];
    char *first = digits + sizeof digits - 1;
    if (thread->path_length > 0)
        append(thread, "/");
    append(thread, name);
    if (number == WEIR_NO_NUMBER)
        return;
    *first = '\0';
    do
        *--first = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    append(thread, " ");
    append(thread, first);
}

static void push(struct trace *trace, struct trace_thread *thread, const char *name,
                 uint64_t number)
{
    if (thread->depth++ >= TRACE_DEPTH)
        return;
    struct trace_level *level = &thread->levels[thread->depth - 1];
    level->begin_ns = trace_now_ns(trace);
    level->number = number;
    level->length = thread->path_length;
    copy_text(level->name, sizeof level->name, name);
    extend(thread, level->name, number);
}

static void pop(struct trace *trace, struct trace_thread *thread)
{
    if (thread->depth == 0)
        return;
    if (thread->depth-- > TRACE_DEPTH)
        return;
    const struct trace_level *level = &thread->levels[thread->depth];
    trace_thread_span(trace, thread, WEIR_TRACE_REGION, level->name, level->number,
                      level->begin_ns);
    thread->path_length = level->length;
    thread->path[thread->path_length] = '\0';
}

void trace_region(const struct weir_link *link, const char *name, uint64_t number)
{
    struct trace *trace = trace_of(link);
    struct trace_thread *thread = trace_thread_self(trace);
    if (thread && name)
        push(trace, thread, name, number);
    else if (thread)
        pop(trace, thread);
    link->next->ops->region(link->next, name, number);
}

// Waits of the host.

static void note_host_wait(const struct weir_link *link, const char *name, uint64_t begin_ns)
{
    const struct trace_thread *thread = trace_thread_self(trace_of(link));
    if (thread)
        trace_thread_span(trace_of(link), thread, WEIR_TRACE_SYNC, name, WEIR_NO_NUMBER, begin_ns);
}

weir_status trace_event_wait(const struct weir_link *link, weir_queue *object, uint64_t sequence,
                             uint64_t timeout_ns)
{
    const uint64_t begin_ns = trace_now_ns(trace_of(link));
    weir_status status = link->next->ops->event_wait(link->next, object, sequence, timeout_ns);
    note_host_wait(link, "weir_event_sync", begin_ns);
    return status;
}

weir_status trace_queue_finish(const struct weir_link *link, weir_queue *object)
{
    const uint64_t begin_ns = trace_now_ns(trace_of(link));
    weir_status status = link->next->ops->queue_finish(link->next, object);
    note_host_wait(link, "weir_queue_recover", begin_ns);
    return status;
}

// For copies to or from host memory the engine follows from the direction. Managed memory counts as
// the device's: where its pages are is the driver's affair. A fill has the memory of its destination.
static void note_transfer(const struct weir_link *link, struct weir_trace_operation *row,
                          const struct weir_box *box)
{
    const weir_buffer *src = box->src.buffer;
    row->dst_memory = *trace_memory_of(link, box->dst.buffer);
    row->dst_label = weir_buffer_object(box->dst.buffer)->label;
    row->src_memory = src ? *trace_memory_of(link, src) : WEIR_TRACE_NO_MEMORY;
    row->src_label = src ? weir_buffer_object(src)->label : NULL;
    const bool to_host = row->dst_memory == WEIR_TRACE_PINNED_MEMORY;
    const bool from_host = src ? row->src_memory == WEIR_TRACE_PINNED_MEMORY : to_host;
    row->bytes = weir_box_bytes(box);
    row->engine = to_host ? (from_host ? WEIR_ENGINE_HOST : WEIR_ENGINE_TO_HOST)
                          : (from_host ? WEIR_ENGINE_TO_DEVICE : WEIR_ENGINE_ON_DEVICE);
}

// What a kernel's time may depend on.
static void note_arguments(struct trace_entry *entry, const struct weir_operation *operation)
{
    const struct weir_argument *arguments = operation->u.launch.arguments;
    const size_t count = operation->u.launch.argument_count;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const weir_scalar scalar = arguments[i].scalar;
        if (arguments[i].kind == WEIR_PARAMETER_BUFFER)
            entry->row.argument_bytes += arguments[i].size;
        if (kept == TRACE_SCALARS || i > UINT8_MAX || arguments[i].kind != WEIR_PARAMETER_VALUE ||
            arguments[i].pointer || scalar == WEIR_SCALAR_OTHER || scalar == WEIR_SCALAR_POINTER ||
            scalar == WEIR_SCALAR_F16)
            continue;
        entry->u.launch.values[kept] = plugin_scalar_value(scalar, arguments[i].bits);
        entry->u.launch.arguments[kept++] = (uint8_t)i;
    }
    entry->row.scalar_count = kept;
}

static void note_launch(const struct weir_link *link, struct trace_entry *entry,
                        const struct weir_operation *operation)
{
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    entry->row.name = weir_kernel_object(operation->u.launch.kernel)->label;
    entry->row.engine = WEIR_ENGINE_KERNELS;
    memcpy(entry->row.grid, (uint32_t[]){grid.x, grid.y, grid.z}, sizeof entry->row.grid);
    memcpy(entry->row.block, (uint32_t[]){block.x, block.y, block.z}, sizeof entry->row.block);
    note_arguments(entry, operation);
}

// A backend without graphs gets the nodes, and times each of them.
static void note_graph(const struct weir_link *link, struct trace_entry *entry,
                       const struct weir_operation *operation)
{
    const bool whole = link->backend->ops->graph_create;
    entry->row.engine = WEIR_ENGINE_KERNELS;
    entry->row.name = weir_graph_object(operation->u.graph.graph)->label;
    entry->times = whole;
    for (uint32_t i = 0; i < operation->u.graph.node_count && !whole; i++) {
        const struct weir_operation *node =
            weir_graph_node_at(operation->u.graph.nodes, i)->operation;
        entry->times += !(node->flags & WEIR_OPERATION_EMPTY) &&
                        node->kind != WEIR_OPERATION_NATIVE &&
                        node->kind != WEIR_OPERATION_HOST_CALL && node->kind != WEIR_OPERATION_NOTE;
    }
    entry->row.timed = entry->row.timed && entry->times > 0;
}

// Its buffers are those of the first range that is read and of the first that is written.
static void note_noted(struct weir_trace_operation *row, const struct weir_operation *operation)
{
    static const uint8_t engines[] = {
        [WEIR_NOTE_KERNEL] = WEIR_ENGINE_KERNELS,  [WEIR_NOTE_TO_DEVICE] = WEIR_ENGINE_TO_DEVICE,
        [WEIR_NOTE_TO_HOST] = WEIR_ENGINE_TO_HOST, [WEIR_NOTE_ON_DEVICE] = WEIR_ENGINE_ON_DEVICE,
        [WEIR_NOTE_ON_HOST] = WEIR_ENGINE_HOST,
    };
    const uint32_t work = (uint32_t)operation->u.note.work;
    struct weir_note_range range;
    row->name = operation->u.note.name;
    row->engine = work < sizeof engines ? engines[work] : WEIR_ENGINE_NONE;
    uint32_t i = (uint32_t)operation->u.note.range_count;
    while (i-- > 0 && weir_operation_range_at(operation, i, &range)) {
        const char *label = weir_buffer_object(range.buffer)->label;
        row->bytes += (uint64_t)range.size * range.rows * range.slices;
        if (range.access & WEIR_ACCESS_READ)
            row->src_label = label;
        if (range.access & WEIR_ACCESS_WRITE)
            row->dst_label = label;
    }
    row->timed = row->timed && operation->u.note.timed;
}

static void note_collective(struct trace_entry *entry, const struct weir_operation *operation)
{
    const weir_collective kind = operation->u.collective.kind;
    const bool reduces =
        kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
    const bool has_elements = kind != WEIR_EXCHANGE && kind != WEIR_BARRIER;
    entry->row.engine = WEIR_ENGINE_COMMUNICATION;
    entry->row.bytes = plugin_collective_bytes(operation);
    entry->row.label = weir_comm_object(operation->u.collective.comm)->label;
    entry->row.collective = &entry->u.collective;
    entry->u.collective = (struct weir_trace_collective){
        .kind = weir_collective_name(kind),
        .element = has_elements ? weir_datatype_name(operation->u.collective.element) : "",
        .reduction = reduces ? weir_reduction_name(operation->u.collective.reduction) : "",
        .count = operation->u.collective.count,
        .number = operation->u.collective.number,
        .rank = operation->u.collective.rank,
        .rank_count = operation->u.collective.rank_count,
        .root = operation->u.collective.root,
    };
}

static void note_kind(const struct weir_link *link, const struct trace_queue *queue,
                      struct trace_entry *entry, const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        note_transfer(link, &entry->row, &operation->u.box);
        break;
    case WEIR_OPERATION_LAUNCH:
        note_launch(link, entry, operation);
        break;
    case WEIR_OPERATION_GRAPH:
        note_graph(link, entry, operation);
        break;
    case WEIR_OPERATION_WAIT:
        entry->times = 0;
        entry->row.timed = false;
        entry->u.wait = (struct weir_trace_wait){.queue = operation->u.wait.event.queue,
                                                 .sequence = operation->u.wait.event.sequence,
                                                 .file = operation->file,
                                                 .line = operation->line};
        break;
    case WEIR_OPERATION_HOST_CALL:
        // With a clock of their own the links after this one time host calls too.
        entry->times = trace_of(link)->clock != NULL;
        entry->row.engine = WEIR_ENGINE_HOST;
        break;
    case WEIR_OPERATION_COLLECTIVE:
        entry->times = trace_of(link)->clock || queue->device->has_collectives;
        note_collective(entry, operation);
        break;
    case WEIR_OPERATION_NOTE:
        entry->times = 0;
        note_noted(&entry->row, operation);
        break;
    default: // the caller's own work, which is unknown, or a kind that is newer than this plugin
        entry->row.timed = false;
        break;
    }
}

// What is not set here or by the kind stays 0: what only readers of traces set.
static void note(const struct weir_link *link, const struct trace_queue *queue,
                 struct trace_entry *entry, const struct weir_operation *operation)
{
    struct weir_trace_operation *row = &entry->row;
    const struct trace_thread *thread = trace_thread_self(trace_of(link));
    row->sequence = operation->sequence;
    row->kind = (enum weir_trace_kind)operation->kind;
    row->engine = WEIR_ENGINE_NONE;
    row->bytes = 0;
    row->name = row->label = row->dst_label = row->src_label = NULL;
    row->dst_memory = row->src_memory = WEIR_TRACE_NO_MEMORY;
    row->grid[0] = row->block[0] = 0;
    row->argument_bytes = 0;
    row->scalar_count = 0;
    row->collective = NULL;
    row->file = operation->file;
    row->line = operation->line;
    row->region = NULL;
    row->thread = thread ? thread->id : 0;
    row->timed = !(operation->flags & WEIR_OPERATION_EMPTY);
    row->start_is_earliest = false;
    entry->times = 1;
    entry->seen = 0;
    entry->internal = operation->flags & WEIR_OPERATION_INTERNAL;
    atomic_store_explicit(&entry->called, false, memory_order_relaxed);
    if (thread && thread->path_length > 0)
        row->region = memcpy(entry->region, thread->path, thread->path_length + 1);
    note_kind(link, queue, entry, operation);
}

static weir_status forward(const struct weir_link *link, weir_queue *object,
                           const struct weir_operation *operation)
{
    return link->next->ops->queue_submit(link->next, object, operation);
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
    queue->unwritten += entry->times ? entry->times : 1;
    if (queue->unwritten < TRACE_WAKE)
        return;
    queue->unwritten = 0;
    if (queue->trace->clock)
        trace_drain_now(queue->trace);
    else
        press(queue->trace);
}

// The writing thread may call the next links for a queue only after its creation is complete, of
// which a plugin is not told. So the queue is added to the list at its first operation.
static void enlist(struct trace_queue *queue, weir_queue *object)
{
    struct trace *trace = queue->trace;
    queue->enlisted = true;
    pthread_mutex_lock(&queue->lock);
    queue->object = object;
    pthread_mutex_unlock(&queue->lock);
    pthread_mutex_lock(&queue->device->lock);
    queue->device->queue_count++;
    pthread_mutex_unlock(&queue->device->lock);
    pthread_mutex_lock(&trace->lists);
    queue->next = trace->queues;
    trace->queues = queue;
    pthread_mutex_unlock(&trace->lists);
}

weir_status trace_queue_submit(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    if (!queue->enlisted)
        enlist(queue, object);
    const uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
    struct trace_entry *entry = is_kept(operation->kind) ? next_entry(queue, head) : NULL;
    if (!entry) {
        if (is_kept(operation->kind) && operation->kind != WEIR_OPERATION_WAIT)
            atomic_fetch_add_explicit(&queue->dropped, 1, memory_order_relaxed);
        return forward(link, object, operation);
    }
    note(link, queue, entry, operation);
    atomic_store_explicit(&queue->begun, head + 1, memory_order_release);
    entry->row.submit_ns = trace_now_ns(queue->trace);
    const weir_status status = forward(link, object, operation);
    entry->row.submit_end_ns = trace_now_ns(queue->trace);
    entry->row.failed = status < 0;
    entry->row.timed = entry->row.timed && status >= 0;
    if (entry->row.timed && entry->times > 0)
        atomic_store_explicit(&queue->last_timed, operation->sequence, memory_order_relaxed);
    atomic_store_explicit(&queue->head, head + 1, memory_order_release);
    wake_writer(queue, entry);
    return status;
}
