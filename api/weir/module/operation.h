// One queue operation on its way down a chain. All of them pass through one slot,
// `queue_submit`, so a plugin that does not distinguish kinds handles every kind, also
// those that are added later.
#ifndef WEIR_MODULE_OPERATION_H
#define WEIR_MODULE_OPERATION_H

#include <string.h>

#include <weir/weir.h>

enum weir_operation_kind {
    WEIR_OPERATION_COPY = 1,
    WEIR_OPERATION_FILL = 2,
    WEIR_OPERATION_LAUNCH = 3,
    WEIR_OPERATION_HOST_CALL = 4,
    WEIR_OPERATION_RECORD = 5,
    WEIR_OPERATION_WAIT = 6,
    // Backends see it only if they have graph_create; they use the nodes from there and
    // from graph_update, since `nodes` may be newer than this launch if a host call
    // held it.
    WEIR_OPERATION_GRAPH = 7,
    // The caller's own work on the native queue: the backend calls the function. Backends
    // see it only if `limits.native` is not 0.
    WEIR_OPERATION_NATIVE = 8,
    // After ALLOCATE the queue may use the buffer, which is from a pool; after FREE it
    // must not. For plugins: delivery drops both. The buffer has a new id each time,
    // but its slots stay; buffer_create got the size of the block, which is at least
    // weir_buffer_size().
    WEIR_OPERATION_POOL_ALLOCATE = 9,
    WEIR_OPERATION_POOL_FREE = 10,
    // A collective (<weir/comm.h>). A backend gets those of communicators for which its comm_create
    // stored data. The front end carries others out through a transport, and the backend gets the
    // copies between device and host, with the collective's number. Later collectives of the
    // communicator wait for it, so a plugin forwards it or returns an error.
    // weir_operation_range_at() says what it reads and writes.
    WEIR_OPERATION_COLLECTIVE = 11,
    // What the caller says of work that it has given to the native queue itself, or to another API. For
    // plugins: delivery drops it, and replays of graphs do. In a graph of the backend it is a node that
    // does nothing.
    WEIR_OPERATION_NOTE = 12,
    WEIR_OPERATION_KINDS, // one more than the last kind
};

// "copy", "host call"; "unknown kind" for one that these headers do not have.
static inline const char *weir_operation_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        "unknown kind", "copy",       "fill",  "launch",      "host call",
        "record",       "wait",       "graph", "native call", "pool allocation",
        "pool free",    "collective", "note",
    };
    return names[kind < sizeof names / sizeof *names ? kind : 0];
}

enum weir_operation_flags {
    // WAIT only: the queue already comes after this event. Plugins see it; delivery
    // drops it before the backend.
    WEIR_OPERATION_IMPLIED = 1u << 0,
    // Made by the library, not by the user: a record for a destroyed buffer, the legacy
    // queue's records and waits.
    WEIR_OPERATION_INTERNAL = 1u << 1,
    // Nothing to do except to keep its place in the order: a size of zero. Delivery
    // drops it. A node of a graph that is disabled has its operands, and this flag.
    WEIR_OPERATION_EMPTY = 1u << 2,
    // WAIT only: the event is not a RECORD but a GRAPH, an earlier launch of the graph
    // that comes next, on another queue. Backends with graph_create, whose driver keeps
    // launches of one graph apart, never see it.
    WEIR_OPERATION_RELAUNCH = 1u << 3,
    // One of several operations with the number of the GRAPH that they belong to; more
    // follow. Only backends without graph_create see it.
    WEIR_OPERATION_PART = 1u << 4,
    // LAUNCH only: the blocks of the grid wait for each other, so all of them must run at
    // once. There are at most as many as kernel_occupancy says; a backend without that slot
    // gets a single one, for which it need do nothing.
    WEIR_OPERATION_COOPERATIVE = 1u << 5,
    // GRAPH only: some of its nodes are COLLECTIVEs; u.graph_comms is set.
    WEIR_OPERATION_COLLECTIVES = 1u << 6,
    // HOST_CALL only: it runs after a failure too. A plugin that puts its own function in the place
    // of this one's calls this one in any case, and a plugin that makes the operation fail forwards
    // it nevertheless.
    WEIR_OPERATION_ALWAYS = 1u << 7,
};

// What a COPY or a FILL moves: `depth` slices of `height` rows of `width` bytes, none of which is 0 unless the operation
// is EMPTY. A single row has no pitch, and a single slice no slice pitch. A copy or a fill of one range is a row. Closed.
struct weir_box {
    struct weir_volume dst;
    struct weir_volume src; // a COPY's; no buffer in a FILL
    size_t width;
    size_t height;
    size_t depth;
    const void *pattern; // a FILL's, which has one slice; NULL in a COPY
    size_t pattern_size; // divides the offset, the pitch and the width
};

// Describes a copy of one range; without `src` a fill of one, which lacks its pattern. By members, since a whole box
// would be made elsewhere and copied.
static inline void weir_box_row(struct weir_box *box, weir_buffer *dst, size_t dst_offset,
                                weir_buffer *src, size_t src_offset, size_t size)
{
    box->dst.buffer = dst;
    box->dst.offset = dst_offset;
    box->src.buffer = src;
    box->src.offset = src_offset;
    box->dst.pitch = box->dst.slice_pitch = box->src.pitch = box->src.slice_pitch = size;
    box->width = size;
    box->height = box->depth = 1;
    box->pattern = NULL;
    box->pattern_size = 0;
}

// How many bytes are written.
static inline size_t weir_box_bytes(const struct weir_box *box)
{
    return box->width * box->height * box->depth;
}

// What a launch of a graph adds to the COLLECTIVEs of one communicator in it, which count from 0:
// the collective of this launch has number `number + u.collective.number` and turn `turn +
// u.collective.turn`. Closed.
struct weir_graph_comm {
    weir_comm *comm;
    uint64_t number;
    uint32_t turn;
    uint32_t count;    // of its COLLECTIVEs
    uint32_t numbered; // of these, in which all ranks take part
};

// The largest size of an operation in all future versions.
#define WEIR_OPERATION_BYTES_MAX 256

// The creator of an operation, which may be a plugin, sets struct_size to sizeof. An operation that
// a module receives may be smaller or larger than in the module's headers: test with WEIR_HAS()
// before using a field that was appended after the first release, and copy an operation with
// weir_operation_copy(). `u` never grows: an operand that is added to a kind is announced by a
// flag.
//
// All operands were validated: ranges are inside their buffers, arguments match the signature,
// handles belong to one device, except that one buffer of a COPY may belong to
// a peer, and arguments of a LAUNCH to peers that device_reach accepts.
// Valid during the call only.
//
// Arguments of a LAUNCH are of their parameters' kinds and sizes, with these exceptions:
//   - A VALUE of the scalar type POINTER, eight zero bytes, is NULL for a BUFFER parameter.
//   - A vector of three elements has room for four, also for a parameter of three (CUDA C++).
struct weir_operation {
    uint32_t struct_size;
    enum weir_operation_kind kind;
    uint32_t flags;
    int line;          // the caller's
    const char *file;  // the caller's; kept for the process
    uint64_t sequence; // 1, 2, 3 … in the order of submission to its queue
    union {
        uint64_t room[13];
        struct weir_box box; // of COPY and FILL
        struct {
            weir_kernel *kernel;
            struct weir_extent grid;  // no zeros
            struct weir_extent block; // no zeros
            const struct weir_argument *arguments;
            size_t argument_count;
        } launch;
        struct {
            weir_host_function function;
            void *user;
        } host_call;
        // `producer` is the event's queue, alive during the call.
        struct {
            struct weir_event event;
            weir_queue *producer;
        } wait;
        struct {
            weir_graph *graph;
            const struct weir_graph_node *nodes; // weir_graph_node_at() finds one
            uint32_t node_count;
            uint32_t branch_count; // weir_graph_setup.branch_count
        } graph;
        // Beside `graph`, with WEIR_OPERATION_COLLECTIVES: the communicators of its nodes.
        struct {
            uint64_t graph[3];
            const struct weir_graph_comm *comms;
            uint32_t count;
        } graph_comms;
        struct {
            weir_native_function function;
            void *user;
            const struct weir_argument *arguments; // BUFFER only
            size_t argument_count;
        } native;
        struct {
            weir_pool *pool;
            weir_buffer *buffer;
            size_t size; // the requested size
        } pool;
        struct {
            const char *name; // kept for the process
            const struct weir_note_range *ranges;
            size_t range_count;
            enum weir_note_work work;
            bool timed; // a WEIR_HOST_NOTE_TIMES follows
        } note;
        struct {
            weir_comm *comm;
            weir_buffer *dst; // NULL: this rank writes nothing
            weir_buffer *src; // NULL: this rank reads nothing
            size_t dst_offset;
            size_t src_offset;
            size_t count;
            const struct weir_exchange *exchanges; // of EXCHANGE
            uint64_t number;                       // weir_transport_call.number
            uint32_t exchange_count;
            weir_collective kind;
            weir_datatype element;
            weir_reduction reduction;
            uint32_t root; // or peer
            uint32_t rank; // this one
            uint32_t rank_count;
            uint32_t turn; // the front end's: all calls of the communicator are counted
        } collective;
    } u;
};

// Room for a copy of any operation.
struct weir_operation_room {
    struct weir_operation operation;
    unsigned char rest[WEIR_OPERATION_BYTES_MAX - sizeof(struct weir_operation)];
};

// Copies all bytes of an operation, including fields that the module's headers lack, so that the
// next link gets them too. Returns the copy.
static inline struct weir_operation *weir_operation_copy(struct weir_operation_room *room,
                                                         const struct weir_operation *operation)
{
    memcpy(room, operation, operation->struct_size);
    return &room->operation;
}

// An operation that a plugin makes, without operands, at the place of one of the program's. `sequence` is that one's number,
// or the number before it if it is not handed on yet.
static inline struct weir_operation weir_operation_internal(enum weir_operation_kind kind,
                                                            const struct weir_operation *at,
                                                            uint64_t sequence)
{
    struct weir_operation operation;
    memset(&operation, 0, sizeof operation);
    operation.struct_size = sizeof operation;
    operation.kind = kind;
    operation.flags = WEIR_OPERATION_INTERNAL;
    operation.file = at->file;
    operation.line = at->line;
    operation.sequence = sequence;
    return operation;
}

// What a COPY or a FILL moves; NULL for other kinds.
static inline const struct weir_box *weir_operation_box(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_COPY || operation->kind == WEIR_OPERATION_FILL
               ? &operation->u.box
               : NULL;
}

static inline size_t weir__arguments_bytes(const struct weir_argument *arguments, size_t count)
{
    size_t bytes = count * sizeof *arguments;
    for (size_t i = 0; i < count; i++)
        if (arguments[i].pointer)
            bytes += arguments[i].size;
    return bytes;
}

// How many bytes the data has that an operation points to, but for the nodes of a graph: what
// weir_operation_own() needs.
static inline size_t weir_operation_bytes(const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_FILL:
        return operation->u.box.pattern_size;
    case WEIR_OPERATION_LAUNCH:
        return weir__arguments_bytes(operation->u.launch.arguments,
                                     operation->u.launch.argument_count);
    case WEIR_OPERATION_NATIVE:
        return weir__arguments_bytes(operation->u.native.arguments,
                                     operation->u.native.argument_count);
    case WEIR_OPERATION_COLLECTIVE:
        return operation->u.collective.exchange_count * sizeof(struct weir_exchange);
    case WEIR_OPERATION_NOTE:
        return operation->u.note.range_count * sizeof(struct weir_note_range);
    case WEIR_OPERATION_GRAPH:
        return operation->flags & WEIR_OPERATION_COLLECTIVES
                   ? operation->u.graph_comms.count * sizeof(struct weir_graph_comm)
                   : 0;
    default:
        return 0;
    }
}

// Arguments come first, for their alignment, then the bytes of values.
static inline const struct weir_argument *weir__arguments_own(void *memory,
                                                              const struct weir_argument *from,
                                                              size_t count)
{
    struct weir_argument *arguments = (struct weir_argument *)memory;
    char *bytes = (char *)(arguments + count);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = from[i];
        if (!from[i].pointer)
            continue;
        memcpy(bytes, from[i].pointer, from[i].size);
        arguments[i].pointer = bytes;
        bytes += from[i].size;
    }
    return arguments;
}

// Copies that data into `memory`, of weir_operation_bytes() bytes and aligned as malloc() aligns, and lets
// `copy`, a copy of the operation, point to it there: it then outlives the call. `memory` outlives `copy`.
static inline void weir_operation_own(struct weir_operation *copy, void *memory)
{
    const size_t size = weir_operation_bytes(copy);
    if (size == 0)
        return;
    switch (copy->kind) {
    case WEIR_OPERATION_FILL:
        copy->u.box.pattern = memcpy(memory, copy->u.box.pattern, size);
        break;
    case WEIR_OPERATION_LAUNCH:
        copy->u.launch.arguments =
            weir__arguments_own(memory, copy->u.launch.arguments, copy->u.launch.argument_count);
        break;
    case WEIR_OPERATION_NATIVE:
        copy->u.native.arguments =
            weir__arguments_own(memory, copy->u.native.arguments, copy->u.native.argument_count);
        break;
    case WEIR_OPERATION_COLLECTIVE:
        copy->u.collective.exchanges =
            (const struct weir_exchange *)memcpy(memory, copy->u.collective.exchanges, size);
        break;
    case WEIR_OPERATION_NOTE:
        copy->u.note.ranges =
            (const struct weir_note_range *)memcpy(memory, copy->u.note.ranges, size);
        break;
    default: // a graph's
        copy->u.graph_comms.comms =
            (const struct weir_graph_comm *)memcpy(memory, copy->u.graph_comms.comms, size);
        break;
    }
}

// A contiguous range.
static inline void weir__range_set(struct weir_note_range *range, weir_buffer *buffer,
                                   size_t offset, size_t size, weir_access access)
{
    range->buffer = buffer;
    range->offset = offset;
    range->size = range->pitch = range->slice_pitch = size;
    range->access = access;
    range->assumed = false;
    range->rows = range->slices = 1;
}

static inline bool weir__box_range_at(const struct weir_box *box, uint32_t index,
                                      struct weir_note_range *out_range)
{
    const bool is_src = index == 0 && box->src.buffer;
    const struct weir_volume *volume = is_src ? &box->src : &box->dst;
    if (index > (box->src.buffer ? 1u : 0u))
        return false;
    weir__range_set(out_range, volume->buffer, volume->offset, box->width,
                    is_src ? WEIR_ACCESS_READ : WEIR_ACCESS_WRITE);
    out_range->rows = box->height;
    out_range->pitch = volume->pitch;
    out_range->slices = box->depth;
    out_range->slice_pitch = volume->slice_pitch;
    return true;
}

static inline bool weir__argument_range_at(const struct weir_argument *arguments, size_t count,
                                           uint32_t index, struct weir_note_range *out_range)
{
    if (index >= count)
        return false;
    const bool is_buffer = arguments[index].kind == WEIR_PARAMETER_BUFFER;
    weir__range_set(out_range, is_buffer ? arguments[index].buffer : NULL, arguments[index].offset,
                    is_buffer ? arguments[index].size : 0, arguments[index].access);
    return true;
}

static inline bool weir__note_range_at(const struct weir_operation *operation, uint32_t index,
                                       struct weir_note_range *out_range)
{
    if (index >= operation->u.note.range_count)
        return false;
    *out_range = operation->u.note.ranges[index];
    if (out_range->rows < 2) {
        out_range->rows = 1;
        out_range->pitch = out_range->size;
    }
    if (out_range->slices < 2) {
        out_range->slices = 1;
        out_range->slice_pitch = out_range->rows * out_range->pitch;
    }
    return true;
}

static inline bool weir__exchange_range_at(const struct weir_operation *operation, uint32_t index,
                                           struct weir_note_range *out_range)
{
    if (index >= operation->u.collective.exchange_count)
        return false;
    const struct weir_exchange *part = &operation->u.collective.exchanges[index];
    weir__range_set(out_range, part->buffer, part->offset,
                    part->count * weir_datatype_size(part->element),
                    part->receive ? WEIR_ACCESS_WRITE : WEIR_ACCESS_READ);
    return true;
}

static inline bool weir__collective_range_at(const struct weir_operation *operation, uint32_t index,
                                             struct weir_note_range *out_range)
{
    const weir_collective kind = operation->u.collective.kind;
    const size_t bytes =
        operation->u.collective.count * weir_datatype_size(operation->u.collective.element);
    const uint32_t dst_index = operation->u.collective.src ? 1 : 0;
    bool all = kind == WEIR_ALL_TO_ALL;
    if (index < dst_index) {
        all = all || kind == WEIR_REDUCE_SCATTER || kind == WEIR_SCATTER;
        weir__range_set(out_range, operation->u.collective.src, operation->u.collective.src_offset,
                        all ? bytes * operation->u.collective.rank_count : bytes, WEIR_ACCESS_READ);
        return true;
    }
    if (index > dst_index || !operation->u.collective.dst)
        return false;
    all = all || kind == WEIR_ALL_GATHER || kind == WEIR_GATHER;
    weir__range_set(out_range, operation->u.collective.dst, operation->u.collective.dst_offset,
                    all ? bytes * operation->u.collective.rank_count : bytes, WEIR_ACCESS_WRITE);
    return true;
}

// Stores range `index` of the memory that an operation uses, or returns false if there are no more. Rows and slices are
// at least 1, and all pitches are set. `buffer` is NULL, and `size` is 0, for an argument that is no buffer; a collective's
// `size` may be 0. In place, one range of a collective is read and another, the same or part of it, written. Host calls,
// records, waits, pools' operations and graphs have none.
static inline bool weir_operation_range_at(const struct weir_operation *operation, uint32_t index,
                                           struct weir_note_range *out_range)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_FILL:
        return weir__box_range_at(&operation->u.box, index, out_range);
    case WEIR_OPERATION_LAUNCH:
        return weir__argument_range_at(operation->u.launch.arguments,
                                       operation->u.launch.argument_count, index, out_range);
    case WEIR_OPERATION_NATIVE:
        return weir__argument_range_at(operation->u.native.arguments,
                                       operation->u.native.argument_count, index, out_range);
    case WEIR_OPERATION_COLLECTIVE:
        return operation->u.collective.kind == WEIR_EXCHANGE
                   ? weir__exchange_range_at(operation, index, out_range)
                   : weir__collective_range_at(operation, index, out_range);
    case WEIR_OPERATION_NOTE:
        return weir__note_range_at(operation, index, out_range);
    default:
        return false;
    }
}

// One operation of a graph: a copy, fill, launch, collective, note, native call or host call. EMPTY: it is
// disabled, and copy, fill or launch.
// Records and waits of the capture are its edges.
struct weir_graph_node {
    size_t struct_size;
    const struct weir_operation *operation; // `sequence` is the node's index + 1
    uint32_t branch;                        // the captured queue; the previous node there is
                                            // not listed unless it is among the dependencies
    uint32_t dependency_count;              // 0: a root
    const uint32_t *dependencies;           // indexes of earlier nodes, ascending
};

// Returns node `index` of an array; the distance between nodes is the first one's struct_size.
static inline const struct weir_graph_node *weir_graph_node_at(const struct weir_graph_node *nodes,
                                                               uint32_t index)
{
    const char *first = (const char *)nodes;
    return (const struct weir_graph_node *)(const void *)(first + index * nodes->struct_size);
}

#endif
