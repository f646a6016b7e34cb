// The collectives, in segments that fit the group's memory: from the caller's memory into `src`, one
// of MPI's collectives from there to `dst`, and on to the caller's.
#include <string.h>

#include "base/clock.h"
#include "transports/kit/reduce.h"
#include "transports/mpi/mpi.h"

// Messages between two ranks. Each begins with what its sender has called, and has pieces of the
// group's size, all with one tag, which MPI keeps in order.

#define PIECE_BYTES ((size_t)256 << 10)
// How long what a rank has sent before it left may take to come.
#define LEAVE_NS 200000000

// A message under way. It is not in the caller's memory, so it outlives a call that fails.
struct message {
    const struct weir_transport_part *part;
    struct weir_head head;
    struct mpi_request request;
    int tag;
    bool begun; // the head is there
    bool done;
    size_t offset; // bytes that are there
    char *piece;
};

struct exchange {
    struct mpi_run *run;
    uint32_t count;
    struct message messages[];
};

static size_t message_size(const struct message *message)
{
    return (size_t)message->part->count * weir_datatype_size(message->part->element);
}

static size_t piece_size(const struct message *message)
{
    const size_t left = message_size(message) - message->offset;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

// Begins to send or to receive `size` bytes.
static bool start(struct mpi_run *run, struct message *message, void *bytes, size_t size)
{
    const union mpi_handle comm = run->group->comm;
    const int peer = (int)message->part->peer;
    const int error = message->part->receive
                          ? mpi_library()->receive(bytes, (int)size, peer, message->tag, comm,
                                                   &message->request.handle)
                          : mpi_library()->send(bytes, (int)size, peer, message->tag, comm,
                                                &message->request.handle);
    message->request.active = error == 0;
    message->request.receives = message->part->receive;
    return error == 0 || mpi_fail_in(run, "MPI_Isend or MPI_Irecv", error);
}

static bool start_piece(struct mpi_run *run, struct message *message)
{
    const size_t size = piece_size(message);
    message->done = size == 0;
    if (!message->done && !message->part->receive)
        memcpy(message->piece, (const char *)message->part->memory + message->offset, size);
    return message->done || start(run, message, message->piece, size);
}

// What was started has come to its end.
static bool advance(struct mpi_run *run, struct message *message)
{
    const size_t size = piece_size(message);
    if (message->begun) {
        if (message->part->receive)
            memcpy((char *)message->part->memory + message->offset, message->piece, size);
        message->offset += size;
        return start_piece(run, message);
    }
    message->begun = true;
    if (message->part->receive) {
        run->by.head.element = message->part->element;
        run->by.head.count = message->part->count;
        if (!weir_caller_agrees(&run->by, message->part->peer, &message->head))
            return false;
    }
    return start_piece(run, message);
}

static bool test(struct mpi_run *run, struct message *message, bool *out_moved)
{
    bool done = false;
    const int error = mpi_library()->test(&message->request.handle, &done);
    if (error)
        return mpi_fail_in(run, "MPI_Test", error);
    message->request.active = !done;
    *out_moved = *out_moved || done;
    return !done || advance(run, message);
}

static bool is_peer_there(struct mpi_run *run, const struct message *message)
{
    uint64_t after;
    uint64_t since_ns;
    return !mpi_posts_left(run->group, message->part->peer, &after, &since_ns) ||
           weir_clock_now_ns() - since_ns < LEAVE_NS || mpi_gone(run, message->part->peer);
}

static bool finish_part(struct exchange *exchange)
{
    struct mpi_run *run = exchange->run;
    for (;;) {
        const struct message *waiting = NULL;
        bool moved = false;
        for (uint32_t i = 0; i < exchange->count; i++) {
            struct message *message = &exchange->messages[i];
            if (!message->done && !test(run, message, &moved))
                return false;
            waiting = message->done ? waiting : message;
        }
        if (!waiting)
            return true;
        if (moved)
            run->idle_ns = weir_clock_now_ns();
        const enum mpi_wait result =
            is_peer_there(run, waiting) ? mpi_turn(run, run->deadline_ns) : MPI_FAILED;
        if (result != MPI_DONE)
            return result == MPI_LATE && mpi_late(run, waiting->part->peer);
    }
}

// The number of earlier messages of the same direction and peer makes the tag.
static int tag_of(const struct exchange *exchange, uint32_t index)
{
    const struct weir_transport_part *part = exchange->messages[index].part;
    int tag = MPI_TAG_PARTS;
    for (uint32_t i = 0; i < index; i++)
        tag += exchange->messages[i].part->peer == part->peer &&
               exchange->messages[i].part->receive == part->receive;
    return tag;
}

static bool begin(struct exchange *exchange)
{
    for (uint32_t i = 0; i < exchange->count; i++) {
        struct message *message = &exchange->messages[i];
        message->tag = tag_of(exchange, i);
        message->head = exchange->run->group->head;
        message->head.element = message->part->element;
        message->head.count = message->part->count;
        if (!start(exchange->run, message, &message->head, sizeof message->head))
            return false;
    }
    return true;
}

static void release(const struct weir_host *host, struct exchange *exchange)
{
    for (uint32_t i = 0; i < exchange->count; i++)
        host->release(exchange->messages[i].piece);
    host->release(exchange);
}

static struct exchange *create(struct mpi_run *run, const struct weir_transport_part *single)
{
    const struct weir_host *host = run->group->host;
    const uint32_t count = single ? 1 : run->call->part_count;
    struct exchange *exchange =
        host->allocate(sizeof *exchange + count * sizeof *exchange->messages);
    bool ok = exchange;
    if (!ok)
        return NULL;
    exchange->run = run;
    exchange->count = count;
    for (uint32_t i = 0; i < count && ok; i++) {
        struct message *message = &exchange->messages[i];
        message->part = single ? single : weir_transport_part_at(run->call, i);
        const size_t size = piece_size(message);
        message->piece = size ? host->allocate(size) : NULL;
        ok = message->piece || !size;
    }
    if (ok)
        return exchange;
    release(host, exchange);
    return NULL;
}

bool mpi_exchange(struct mpi_run *run)
{
    const struct weir_transport_call *call = run->call;
    const struct weir_transport_part part = weir_part_of(call);
    if (call->part_count > MPI_TAG_LIMIT - MPI_TAG_PARTS)
        return weir_caller_fail(
            &run->by,
            "%u messages, and the transport 'mpi' takes %d at once; exchange them "
            "in several calls",
            call->part_count, MPI_TAG_LIMIT - MPI_TAG_PARTS);
    struct exchange *exchange = create(run, call->kind == WEIR_EXCHANGE ? NULL : &part);
    if (!exchange)
        return weir_caller_fail(&run->by, "rank %u has no memory left", run->group->rank);
    const bool ok = begin(exchange) && finish_part(exchange);
    for (uint32_t i = 0; i < exchange->count; i++)
        mpi_abandon(run->group, &exchange->messages[i].request, 1);
    if (!run->group->stuck)
        release(run->group->host, exchange);
    return ok;
}

// An all-reduce up to this size takes one step: all ranks get all, and each adds it up.
#define ONE_STEP_BYTES 4096

static const char *mpi_function(weir_collective kind)
{
    static const char *const names[] = {
        [WEIR_ALL_GATHER] = "MPI_Iallgather", [WEIR_ALL_TO_ALL] = "MPI_Ialltoall",
        [WEIR_GATHER] = "MPI_Igather",        [WEIR_SCATTER] = "MPI_Iscatter",
        [WEIR_BROADCAST] = "MPI_Ibcast",
    };
    return names[kind];
}

static size_t element_size(const struct mpi_run *run)
{
    return weir_datatype_size(run->call->element);
}

// Moves `size` bytes of each rank's part from the group's `src` to its `dst`.
static bool move(struct mpi_run *run, weir_collective kind, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    const int error =
        mpi_library()->collective(kind, group->src, group->dst, (int)size, (int)run->call->root,
                                  group->comm, &request->handle);
    if (error)
        return mpi_fail_in(run, mpi_function(kind), error);
    *request = (struct mpi_request){.handle = request->handle, .active = true};
    const enum mpi_wait result = mpi_wait_all(run, request, 1, run->deadline_ns);
    return result == MPI_DONE ||
           (result == MPI_LATE && weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
                                                    "a rank has begun and has not finished in "
                                                    "time: it is stopped, or cut off"));
}

// Adds up the ranks' parts in `dst`, in the order of ranks, into the first.
static void reduce(struct mpi_run *run, size_t stride, size_t count)
{
    struct mpi_group *group = run->group;
    const struct weir_transport_call *call = run->call;
    for (uint32_t i = 1; i < group->count; i++)
        weir_reduce(call->element, call->reduction, group->dst, group->dst + i * stride, count);
    if (call->reduction == WEIR_AVERAGE)
        weir_reduce_divide(call->element, group->dst, count, group->count);
}

// What is at `offset`, in elements, in each of the parts of `count` elements that the caller's memory
// consists of, and the group's parts.
static void load(struct mpi_run *run, uint32_t parts, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    for (uint32_t i = 0; i < parts; i++)
        memcpy(run->group->src + i * count * size,
               (const char *)run->call->src + (i * run->call->count + offset) * size, count * size);
}

static void store(struct mpi_run *run, const char *from, uint32_t parts, size_t offset,
                  size_t count)
{
    const size_t size = element_size(run);
    for (uint32_t i = 0; i < parts; i++)
        memcpy((char *)run->call->dst + (i * run->call->count + offset) * size,
               from + i * count * size, count * size);
}

// An all-reduce: each rank adds up a part of the elements, and all get all parts.
static bool segment_all_reduce(struct mpi_run *run, size_t offset, size_t count)
{
    struct mpi_group *group = run->group;
    const size_t size = element_size(run);
    const bool one_step = count * size <= ONE_STEP_BYTES;
    const size_t part = one_step ? count : (count + group->count - 1) / group->count;
    load(run, 1, offset, count);
    if (!move(run, one_step ? WEIR_ALL_GATHER : WEIR_ALL_TO_ALL, part * size))
        return false;
    reduce(run, part * size, part);
    if (!one_step) {
        memcpy(group->src, group->dst, part * size);
        if (!move(run, WEIR_ALL_GATHER, part * size))
            return false;
    }
    store(run, group->dst, 1, offset, count);
    return true;
}

// The others: which ranks give, and get, one part or a part for each rank.
struct shape {
    weir_collective moved;
    bool root_gives;
    bool gives_parts;
    bool reduces;
    bool root_gets;
    bool gets_parts;
};

static const struct shape shapes[] = {
    [WEIR_REDUCE] = {.moved = WEIR_GATHER, .reduces = true, .root_gets = true},
    [WEIR_BROADCAST] = {.moved = WEIR_BROADCAST, .root_gives = true},
    [WEIR_ALL_GATHER] = {.moved = WEIR_ALL_GATHER, .gets_parts = true},
    [WEIR_REDUCE_SCATTER] = {.moved = WEIR_ALL_TO_ALL, .gives_parts = true, .reduces = true},
    [WEIR_ALL_TO_ALL] = {.moved = WEIR_ALL_TO_ALL, .gives_parts = true, .gets_parts = true},
    [WEIR_GATHER] = {.moved = WEIR_GATHER, .root_gets = true, .gets_parts = true},
    [WEIR_SCATTER] = {.moved = WEIR_SCATTER, .root_gives = true, .gives_parts = true},
};

static bool segment_of_shape(struct mpi_run *run, size_t offset, size_t count)
{
    struct mpi_group *group = run->group;
    const struct shape *shape = &shapes[run->call->kind];
    const bool is_root = group->rank == run->call->root;
    const bool broadcast = shape->moved == WEIR_BROADCAST; // within `src`
    if (is_root || !shape->root_gives)
        load(run, shape->gives_parts ? group->count : 1, offset, count);
    if (!move(run, shape->moved, count * element_size(run)))
        return false;
    if ((shape->root_gets && !is_root) || !run->call->dst ||
        (broadcast && run->call->dst == run->call->src))
        return true;
    if (shape->reduces)
        reduce(run, count * element_size(run), count);
    store(run, broadcast ? group->src : group->dst, shape->gets_parts ? group->count : 1, offset,
          count);
    return true;
}

bool mpi_collective(struct mpi_run *run)
{
    const weir_collective kind = run->call->kind;
    if (kind == WEIR_BARRIER)
        return true;
    // These two move one segment as a whole, the others a part for each rank.
    const bool whole = kind == WEIR_ALL_REDUCE || kind == WEIR_BROADCAST;
    const size_t most = run->group->block * (whole ? run->group->count : 1) / element_size(run);
    bool ok = true;
    for (size_t offset = 0; offset < run->call->count && ok; offset += most) {
        const size_t left = (size_t)run->call->count - offset;
        const size_t count = left < most ? left : most;
        ok = kind == WEIR_ALL_REDUCE ? segment_all_reduce(run, offset, count)
                                     : segment_of_shape(run, offset, count);
    }
    return ok;
}
