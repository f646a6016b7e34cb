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
    const struct weir_transport_part part = {
        .struct_size = sizeof part,
        .peer = call->root,
        .receive = call->kind == WEIR_RECV,
        .element = call->element,
        .count = call->count,
        .memory = call->kind == WEIR_RECV ? call->dst : (void *)(uintptr_t)call->src,
    };
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

static size_t element_size(const struct mpi_run *run)
{
    return weir_datatype_size(run->call->element);
}

static bool finish(struct mpi_run *run, const char *function, int error,
                   struct mpi_request *request)
{
    if (error)
        return mpi_fail_in(run, function, error);
    *request = (struct mpi_request){.handle = request->handle, .active = true};
    const enum mpi_wait result = mpi_wait_all(run, request, 1, run->deadline_ns);
    return result == MPI_DONE ||
           (result == MPI_LATE &&
            weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
                              "a rank has begun and has not finished in time: it "
                              "is stopped, or cut off"));
}

// `size` is that of one rank's part.

static bool all_gather(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Iallgather",
                  mpi_library()->all_gather(group->src, group->dst, (int)size, group->comm,
                                            &request->handle),
                  request);
}

static bool all_to_all(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Ialltoall",
                  mpi_library()->all_to_all(group->src, group->dst, (int)size, group->comm,
                                            &request->handle),
                  request);
}

static bool gather(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Igather",
                  mpi_library()->gather(group->src, group->dst, (int)size, (int)run->call->root,
                                        group->comm, &request->handle),
                  request);
}

static bool scatter(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Iscatter",
                  mpi_library()->scatter(group->src, group->dst, (int)size, (int)run->call->root,
                                         group->comm, &request->handle),
                  request);
}

static bool broadcast(struct mpi_run *run, size_t size)
{
    struct mpi_group *group = run->group;
    struct mpi_request *request = &group->requests[0];
    return finish(run, "MPI_Ibcast",
                  mpi_library()->broadcast(group->src, (int)size, (int)run->call->root, group->comm,
                                           &request->handle),
                  request);
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
static void pack(struct mpi_run *run, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    for (uint32_t i = 0; i < run->group->count; i++)
        memcpy(run->group->src + i * count * size,
               (const char *)run->call->src + (i * run->call->count + offset) * size, count * size);
}

static void unpack(struct mpi_run *run, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    for (uint32_t i = 0; i < run->group->count; i++)
        memcpy((char *)run->call->dst + (i * run->call->count + offset) * size,
               run->group->dst + i * count * size, count * size);
}

static void load(struct mpi_run *run, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    memcpy(run->group->src, (const char *)run->call->src + offset * size, count * size);
}

static void store(struct mpi_run *run, const char *from, size_t offset, size_t count)
{
    const size_t size = element_size(run);
    memcpy((char *)run->call->dst + offset * size, from, count * size);
}

// One segment of each kind: `count` elements at `offset`.

static bool segment_all_reduce(struct mpi_run *run, size_t offset, size_t count)
{
    struct mpi_group *group = run->group;
    const size_t size = element_size(run);
    const size_t part = (count + group->count - 1) / group->count;
    load(run, offset, count);
    if (count * size <= ONE_STEP_BYTES) {
        if (!all_gather(run, count * size))
            return false;
        reduce(run, count * size, count);
        store(run, group->dst, offset, count);
        return true;
    }
    if (!all_to_all(run, part * size))
        return false;
    reduce(run, part * size, part);
    memcpy(group->src, group->dst, part * size);
    if (!all_gather(run, part * size))
        return false;
    store(run, group->dst, offset, count);
    return true;
}

static bool segment_reduce(struct mpi_run *run, size_t offset, size_t count)
{
    load(run, offset, count);
    if (!gather(run, count * element_size(run)))
        return false;
    if (run->group->rank == run->call->root) {
        reduce(run, count * element_size(run), count);
        store(run, run->group->dst, offset, count);
    }
    return true;
}

static bool segment_broadcast(struct mpi_run *run, size_t offset, size_t count)
{
    if (run->group->rank == run->call->root)
        load(run, offset, count);
    if (!broadcast(run, count * element_size(run)))
        return false;
    if (run->call->dst && run->call->dst != run->call->src)
        store(run, run->group->src, offset, count);
    return true;
}

static bool segment_all_gather(struct mpi_run *run, size_t offset, size_t count)
{
    load(run, offset, count);
    if (!all_gather(run, count * element_size(run)))
        return false;
    unpack(run, offset, count);
    return true;
}

static bool segment_reduce_scatter(struct mpi_run *run, size_t offset, size_t count)
{
    pack(run, offset, count);
    if (!all_to_all(run, count * element_size(run)))
        return false;
    reduce(run, count * element_size(run), count);
    store(run, run->group->dst, offset, count);
    return true;
}

static bool segment_all_to_all(struct mpi_run *run, size_t offset, size_t count)
{
    pack(run, offset, count);
    if (!all_to_all(run, count * element_size(run)))
        return false;
    unpack(run, offset, count);
    return true;
}

static bool segment_gather(struct mpi_run *run, size_t offset, size_t count)
{
    load(run, offset, count);
    if (!gather(run, count * element_size(run)))
        return false;
    if (run->group->rank == run->call->root)
        unpack(run, offset, count);
    return true;
}

static bool segment_scatter(struct mpi_run *run, size_t offset, size_t count)
{
    if (run->group->rank == run->call->root)
        pack(run, offset, count);
    if (!scatter(run, count * element_size(run)))
        return false;
    store(run, run->group->dst, offset, count);
    return true;
}

static bool (*const segments[])(struct mpi_run *run, size_t offset, size_t count) = {
    [WEIR_ALL_REDUCE] = segment_all_reduce,
    [WEIR_REDUCE] = segment_reduce,
    [WEIR_BROADCAST] = segment_broadcast,
    [WEIR_ALL_GATHER] = segment_all_gather,
    [WEIR_REDUCE_SCATTER] = segment_reduce_scatter,
    [WEIR_ALL_TO_ALL] = segment_all_to_all,
    [WEIR_GATHER] = segment_gather,
    [WEIR_SCATTER] = segment_scatter,
};

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
        ok = segments[kind](run, offset, left < most ? left : most);
    }
    return ok;
}
