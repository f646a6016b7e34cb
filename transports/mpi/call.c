// A call: waiting for requests, and for all ranks of a group before each collective; the messages between two ranks; and
// the moves of collectives (transports/kit/call.h), each one of MPI's collectives from the group's `src` to its `dst`.
#include <sched.h>

#include "base/clock.h"
#include "transports/mpi/mpi.h"

// Waiting polls: it is what makes MPI progress, and the only way to give up. First without a pause,
// since what is waited for mostly comes within microseconds.

#define BUSY_NS 200000
// The other ranks wait longer than rank 0, which knows the rank that is missing.
#define PATIENCE_NS 500000000

enum wait {
    DONE,
    FAILED, // the group is dead
    LATE,   // the deadline has passed, and the group is not dead yet
};

struct mpi_run mpi_run_begin(struct mpi_group *group, struct weir_head head, uint64_t timeout_ns)
{
    group->head = head;
    if (weir_is_numbered(head.kind))
        group->last = head.number;
    return (struct mpi_run){.by = weir_caller_begin(&group->base, head, timeout_ns),
                            .group = group,
                            .idle_ns = weir_clock_now_ns()};
}

static bool fail_late(struct mpi_run *run, uint32_t rank)
{
    return weir_caller_late(&run->by, rank, &run->group->peers[rank].last);
}

// One round of a loop: receives posts, and pauses, longer if nothing has come for some time. Returns DONE to go on.
static enum wait take_turn(struct mpi_run *run, uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const struct weir_head *head = &run->group->head;
    mpi_posts_poll();
    if (run->group->base.failed)
        return FAILED;
    // A collective needs all ranks, and one that has left will not come to it.
    for (uint32_t i = 0; weir_is_numbered(head->kind) && i < run->group->base.count; i++) {
        const struct mpi_peer *peer = &run->group->peers[i];
        if (!peer->left || peer->left_after >= head->number)
            continue;
        weir_caller_lost(&run->by, WEIR_FAULT_LEFT, i, &peer->last);
        return FAILED;
    }
    if (now_ns >= deadline_ns)
        return LATE;
    if (now_ns - run->idle_ns < BUSY_NS)
        sched_yield();
    else
        weir_clock_pause(now_ns, deadline_ns - now_ns, &run->pause_ns);
    return DONE;
}

static bool test_all(struct mpi_run *run, struct mpi_request *requests, size_t count,
                     bool *out_done)
{
    *out_done = true;
    for (size_t i = 0; i < count; i++) {
        const int error = mpi_test(&requests[i]);
        if (error)
            return mpi_fail_in(run, requests[i].function, error);
        *out_done = *out_done && !requests[i].active;
    }
    return true;
}

// Gives up requests; the group is stuck if one cannot be.
static void abandon(struct mpi_group *group, struct mpi_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i].active && requests[i].receives)
            (void)mpi.Cancel(&requests[i].handle);
        (void)mpi_test(&requests[i]);
        group->stuck = group->stuck || requests[i].active;
    }
}

// Waits for requests; what is not done is abandoned.
static enum wait await(struct mpi_run *run, struct mpi_request *requests, size_t count,
                       uint64_t deadline_ns)
{
    enum wait result = DONE;
    bool done = false;
    run->idle_ns = weir_clock_now_ns();
    run->pause_ns = 0;
    while (result == DONE) {
        if (!test_all(run, requests, count, &done))
            result = FAILED;
        else if (done)
            return DONE;
        else
            result = take_turn(run, deadline_ns);
    }
    abandon(run->group, requests, count);
    return result;
}

// Of all ranks, which have come.
static bool await_all(struct mpi_run *run, struct mpi_request *requests, size_t count)
{
    const enum wait result = await(run, requests, count, run->by.deadline_ns);
    return result == DONE ||
           (result == LATE && weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
                                                "a rank has begun and has not finished in time: it "
                                                "is stopped, or cut off"));
}

// What the ranks that have come to a collective have called.
struct met {
    const struct weir_head *heads;
    uint32_t come; // the ranks before it have
};

static const struct weir_head *head_of(const void *user, uint32_t rank)
{
    const struct met *met = user;
    return rank < met->come ? &met->heads[rank] : NULL;
}

// Rank 0.

// After a difference the others are waited for, for they tell which of two ranks is wrong, but not long.
static bool hear_each(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    struct met met = {.heads = group->heads, .come = 1};
    uint64_t deadline_ns = run->by.deadline_ns;
    bool same = true;
    group->heads[0] = group->head;
    for (; met.come < group->base.count; met.come++) {
        const struct weir_head *head = &group->heads[met.come];
        const enum wait result = await(run, &group->requests[met.come], 1, deadline_ns);
        if (result == LATE && !same)
            break;
        if (result != DONE)
            return result == LATE && fail_late(run, met.come);
        group->peers[met.come].last = *head;
        if (same && !weir_head_equals(&group->head, head)) {
            same = false;
            deadline_ns = weir_judge_by(deadline_ns);
        }
    }
    return same || weir_caller_judge(&run->by, head_of, &met);
}

// Begins to send or to receive.
static bool begin(struct mpi_run *run, bool receives, void *bytes, size_t size, uint32_t peer,
                  int tag, struct mpi_request *request)
{
    const int error = mpi_message(receives, bytes, size, peer, tag, run->group->comm, request);
    return error == 0 || mpi_fail_in(run, request->function, error);
}

// A head to another rank, or from it.
static bool begin_head(struct mpi_run *run, uint32_t peer, bool receives, int tag,
                       struct mpi_request *request)
{
    struct mpi_group *group = run->group;
    struct weir_head *head = receives ? &group->heads[peer] : &group->head;
    return begin(run, receives, head, sizeof *head, peer, tag, request);
}

static bool begin_heads(struct mpi_run *run, bool receives, int tag)
{
    bool ok = true;
    for (uint32_t i = 1; i < run->group->base.count && ok; i++)
        ok = begin_head(run, i, receives, tag, &run->group->requests[i]);
    return ok;
}

// Another rank.
static bool tell_first(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    if (!begin_head(run, 0, true, MPI_TAG_BEGIN, &group->requests[0]) ||
        !begin_head(run, 0, false, MPI_TAG_ARRIVE, &group->requests[1]))
        return false;
    const enum wait result = await(run, group->requests, 2, run->by.deadline_ns + PATIENCE_NS);
    if (result != DONE)
        return result == LATE && fail_late(run, 0);
    group->peers[0].last = group->heads[0];
    group->head.new_group = group->heads[0].new_group;
    return true;
}

bool mpi_meet(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    if (group->base.rank > 0)
        return tell_first(run);
    if (!begin_heads(run, true, MPI_TAG_ARRIVE) || !hear_each(run)) {
        abandon(group, group->requests, group->base.count);
        return false;
    }
    return begin_heads(run, false, MPI_TAG_BEGIN) &&
           await_all(run, group->requests + 1, group->base.count - 1);
}

bool mpi_fail_in(struct mpi_run *run, const char *function, int error)
{
    char text[1024] = "";
    int size = 0;
    mpi.Error_string(error, text, &size);
    text[strcspn(text, "\n")] = '\0';
    return weir_caller_fail(&run->by, "rank %u: %s failed: %s", run->group->base.rank, function,
                            text);
}

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

static size_t piece_size(const struct message *message)
{
    const struct weir_transport_part *part = message->part;
    const size_t left = (size_t)part->count * weir_datatype_size(part->element) - message->offset;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static bool start(struct mpi_run *run, struct message *message, void *bytes, size_t size)
{
    return begin(run, message->part->receive, bytes, size, message->part->peer, message->tag,
                 &message->request);
}

static bool start_piece(struct mpi_run *run, struct message *message)
{
    const size_t size = piece_size(message);
    message->done = size == 0;
    if (!message->done && !message->part->receive)
        memcpy(message->piece, (const char *)message->part->memory + message->offset, size);
    return message->done || start(run, message, message->piece, size);
}

// Goes on with a message if what was started has come to its end.
static bool advance(struct mpi_run *run, struct message *message, bool *out_moved)
{
    const struct weir_transport_part *part = message->part;
    const size_t size = piece_size(message);
    const int error = mpi_test(&message->request);
    if (error)
        return mpi_fail_in(run, message->request.function, error);
    if (message->request.active)
        return true;
    *out_moved = true;
    if (message->begun) {
        if (part->receive)
            memcpy((char *)part->memory + message->offset, message->piece, size);
        message->offset += size;
        return start_piece(run, message);
    }
    message->begun = true;
    if (part->receive) {
        run->by.head.element = part->element;
        run->by.head.count = part->count;
        if (!weir_caller_agrees(&run->by, part->peer, &message->head))
            return false;
    }
    return start_piece(run, message);
}

static bool finish_messages(struct mpi_run *run, struct message *messages)
{
    for (;;) {
        const struct message *waiting = NULL;
        bool moved = false;
        for (uint32_t i = 0; i < run->call->part_count; i++) {
            struct message *message = &messages[i];
            if (!message->done && !advance(run, message, &moved))
                return false;
            waiting = message->done ? waiting : message;
        }
        if (!waiting)
            return true;
        if (moved)
            run->idle_ns = weir_clock_now_ns();
        const struct mpi_peer *peer = &run->group->peers[waiting->part->peer];
        if (peer->left && weir_clock_now_ns() - peer->left_ns >= LEAVE_NS)
            return weir_caller_lost(&run->by, WEIR_FAULT_LEFT, waiting->part->peer, &peer->last);
        const enum wait result = take_turn(run, run->by.deadline_ns);
        if (result != DONE)
            return result == LATE && fail_late(run, waiting->part->peer);
    }
}

static bool begin_messages(struct mpi_run *run, struct message *messages)
{
    for (uint32_t i = 0; i < run->call->part_count; i++) {
        struct message *message = &messages[i];
        const struct weir_transport_part *part = message->part;
        // The number of earlier messages of the same direction and peer makes the tag.
        message->tag = MPI_TAG_PARTS;
        for (uint32_t k = 0; k < i; k++)
            message->tag +=
                messages[k].part->peer == part->peer && messages[k].part->receive == part->receive;
        message->head = run->group->head;
        message->head.element = part->element;
        message->head.count = part->count;
        if (!start(run, message, &message->head, sizeof message->head))
            return false;
    }
    return true;
}

// With the pieces after the messages. NULL if out of memory.
static struct message *create_messages(struct mpi_run *run)
{
    const uint32_t count = run->call->part_count;
    size_t size = count * sizeof(struct message);
    for (uint32_t i = 0; i < count; i++)
        size += piece_size(&(struct message){.part = weir_transport_part_at(run->call, i)});
    struct message *messages = run->group->base.host->allocate(size);
    if (!messages)
        return NULL;
    char *piece = (char *)(messages + count);
    for (uint32_t i = 0; i < count; i++) {
        messages[i].part = weir_transport_part_at(run->call, i);
        messages[i].piece = piece;
        piece += piece_size(&messages[i]);
    }
    return messages;
}

static bool exchange_parts(struct mpi_run *run)
{
    const struct weir_transport_call *call = run->call;
    if (call->part_count > MPI_TAG_LIMIT - MPI_TAG_PARTS)
        return weir_caller_fail(
            &run->by,
            "%u messages, and the transport 'mpi' takes %d at once; exchange them "
            "in several calls",
            call->part_count, MPI_TAG_LIMIT - MPI_TAG_PARTS);
    struct message *messages = create_messages(run);
    if (!messages)
        return weir_caller_fail(&run->by, "rank %u has no memory left", run->group->base.rank);
    const bool ok = begin_messages(run, messages) && finish_messages(run, messages);
    for (uint32_t i = 0; i < call->part_count; i++)
        abandon(run->group, &messages[i].request, 1);
    if (!run->group->stuck)
        run->group->base.host->release(messages);
    return ok;
}

static char *give(void *user)
{
    return ((const struct mpi_run *)user)->group->src;
}

// A broadcast stays where it is given.
static const char *given(void *user, uint32_t from)
{
    const struct mpi_run *run = user;
    if (run->moved == WEIR_BROADCAST)
        return run->group->src;
    return run->group->dst + (run->moved == WEIR_SCATTER ? 0 : from * run->moved_size);
}

bool mpi_move(struct mpi_run *run, struct mpi_group *group, weir_collective kind, size_t size,
              uint32_t root)
{
    struct mpi_request *request = &group->requests[0];
    const int error =
        mpi_collective(kind, group->src, group->dst, size, root, group->comm, request);
    if (error)
        return mpi_fail_in(run, request->function, error);
    return await_all(run, request, 1);
}

static bool move(void *user, weir_collective kind, size_t size)
{
    struct mpi_run *run = user;
    run->moved = kind;
    run->moved_size = size;
    return mpi_move(run, run->group, kind, size, run->call->root);
}

weir_status mpi_run_call(void *state, const struct weir_transport_call *call)
{
    struct mpi_group *group = state;
    if (group->base.failed)
        return weir_group_report(group, WEIR_ERROR_COMM, NULL);
    struct mpi_run run = mpi_run_begin(group, weir_head_of(call), call->timeout_ns);
    const struct weir_carrier carrier = {
        .user = &run,
        .rank = group->base.rank,
        .count = group->base.count,
        .one = group->block,
        .each = group->block,
        .whole = group->block * group->base.count,
        .small = 4096,
        .give = give,
        .move = move,
        .given = given,
    };
    run.call = call;
    const bool ok = weir_is_numbered(call->kind) ? mpi_meet(&run) && weir_carry(&carrier, call)
                                                 : exchange_parts(&run);
    return ok ? WEIR_OK : weir_group_report(group, WEIR_ERROR_COMM, NULL);
}
