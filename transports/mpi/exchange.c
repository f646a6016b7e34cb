// Messages between two ranks. Each begins with what its sender has called, and has pieces of the
// group's size, all with one tag, which MPI keeps in order.
#include <string.h>

#include "base/clock.h"
#include "transports/mpi/mpi.h"

#define PIECE_BYTES ((size_t)256 << 10)
// How long what a rank has sent before it left may take to come.
#define LEAVE_NS 200000000

// A message under way. It is not in the caller's memory, so it outlives a call that fails.
struct message {
    const struct weir_transport_part *part;
    struct mpi_head head;
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
        run->group->head.element = message->part->element;
        run->group->head.count = message->part->count;
        if (!mpi_same(run, message->part->peer, &message->head))
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

static bool finish(struct exchange *exchange)
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
        return mpi_fail(run,
                        "%u messages, and the transport 'mpi' takes %d at once; exchange them "
                        "in several calls",
                        call->part_count, MPI_TAG_LIMIT - MPI_TAG_PARTS);
    struct exchange *exchange = create(run, call->kind == WEIR_EXCHANGE ? NULL : &part);
    if (!exchange)
        return mpi_fail(run, "rank %u has no memory left", run->group->rank);
    const bool ok = begin(exchange) && finish(exchange);
    for (uint32_t i = 0; i < exchange->count; i++)
        mpi_abandon(run->group, &exchange->messages[i].request, 1);
    if (!run->group->stuck)
        release(run->group->host, exchange);
    return ok;
}
