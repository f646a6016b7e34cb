// What ranks say of their calls, its comparison, and the sentences of failures.
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>

#include "base/clock.h"
#include "base/odd.h"
#include "base/text.h"
#include "transports/mpi/mpi.h"

// Waiting polls: it is what makes MPI progress, and the only way to give up. First without a pause,
// since what is waited for mostly comes within microseconds.

#define BUSY_NS 200000
#define FOREVER_NS (UINT64_MAX / 2)
// The other ranks wait longer than rank 0, which knows the rank that is missing.
#define PATIENCE_NS 500000000
#define JUDGE_NS 200000000

struct mpi_run mpi_run_begin(struct mpi_group *group, struct mpi_head head, uint64_t timeout_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const uint64_t limit_ns = timeout_ns < FOREVER_NS ? timeout_ns : FOREVER_NS;
    group->head = head;
    if (mpi_is_numbered(head.kind))
        group->last = head.number;
    return (struct mpi_run){.group = group,
                            .timeout_ns = limit_ns,
                            .deadline_ns = now_ns + limit_ns,
                            .idle_ns = now_ns};
}

// A collective needs all ranks, and one that has left will not come to it.
static bool all_there(struct mpi_run *run)
{
    uint64_t after;
    uint64_t since_ns;
    for (uint32_t i = 0; i < run->group->count; i++)
        if (i != run->group->rank && mpi_posts_left(run->group, i, &after, &since_ns) &&
            after < run->group->head.number)
            return mpi_gone(run, i);
    return true;
}

enum mpi_wait mpi_turn(struct mpi_run *run, uint64_t deadline_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    mpi_posts_poll();
    if (atomic_load(&run->group->dead) ||
        (mpi_is_numbered(run->group->head.kind) && !all_there(run)))
        return MPI_FAILED;
    if (now_ns >= deadline_ns)
        return MPI_LATE;
    if (now_ns - run->idle_ns < BUSY_NS)
        sched_yield();
    else
        weir_clock_pause(now_ns, deadline_ns - now_ns, &run->pause_ns);
    return MPI_DONE;
}

static bool test_all(struct mpi_run *run, struct mpi_request *requests, size_t count,
                     bool *out_done)
{
    *out_done = true;
    for (size_t i = 0; i < count; i++) {
        bool done = false;
        const int error = requests[i].active ? mpi_library()->test(&requests[i].handle, &done) : 0;
        if (error)
            return mpi_fail_in(run, "MPI_Test", error);
        requests[i].active = requests[i].active && !done;
        *out_done = *out_done && !requests[i].active;
    }
    return true;
}

void mpi_abandon(struct mpi_group *group, struct mpi_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool done = false;
        if (requests[i].active && requests[i].receives)
            mpi_library()->cancel(&requests[i].handle, &done);
        else if (requests[i].active)
            mpi_library()->test(&requests[i].handle, &done);
        requests[i].active = requests[i].active && !done;
        group->stuck = group->stuck || requests[i].active;
    }
}

enum mpi_wait mpi_wait_all(struct mpi_run *run, struct mpi_request *requests, size_t count,
                           uint64_t deadline_ns)
{
    enum mpi_wait result = MPI_DONE;
    bool done = false;
    run->idle_ns = weir_clock_now_ns();
    run->pause_ns = 0;
    while (result == MPI_DONE) {
        if (!test_all(run, requests, count, &done))
            result = MPI_FAILED;
        else if (done)
            return MPI_DONE;
        else
            result = mpi_turn(run, deadline_ns);
    }
    mpi_abandon(run->group, requests, count);
    return result;
}

static bool mpi_is_same(const struct mpi_head *own, const struct mpi_head *theirs)
{
    const bool numbered = mpi_is_numbered(own->kind);
    return (!numbered || (theirs->kind == own->kind && theirs->number == own->number)) &&
           theirs->element == own->element && theirs->count == own->count &&
           theirs->reduction == own->reduction && theirs->root == own->root;
}

static bool have_called_the_same(const void *things, uint32_t a, uint32_t b)
{
    const struct mpi_met *met = things;
    return a < met->come && b < met->come && mpi_is_same(&met->heads[a], &met->heads[b]);
}

// Two ranks whose calls differ.
struct pair {
    struct mpi_run *run;
    const struct mpi_head *own; // of `rank`
    uint32_t rank;
    uint32_t peer;
    const struct mpi_head *theirs;
    uint32_t
        fault; // the peer, if most ranks have called what `rank` has; UINT32_MAX: either may be wrong
};

enum {
    TEXT_SIZE = 160
};

static const char *name_of(const struct mpi_head *head)
{
    if (head->kind == MPI_JOIN)
        return "join";
    return head->kind == MPI_SPLIT ? "split" : weir_collective_name((weir_collective)head->kind);
}

static void append_call(char *text, size_t size, size_t *used, const struct mpi_head *head)
{
    weir_text_append(text, size, used, "%s", name_of(head));
    if (mpi_is_numbered(head->kind))
        weir_text_append(text, size, used, " %" PRIu64, head->number);
}

// Of another rank, which may name its file as it likes.
static const char *describe(const struct mpi_head *head, char *text)
{
    char said[MPI_FILE_SIZE];
    char file[MPI_FILE_SIZE];
    size_t used = 0;
    snprintf(said, sizeof said, "%.*s", MPI_FILE_SIZE - 1, head->file);
    weir_text_escape(file, sizeof file, said, "");
    append_call(text, TEXT_SIZE, &used, head);
    if (file[0])
        weir_text_append(text, TEXT_SIZE, &used, " (%s:%d)", file, (int)head->line);
    return text;
}

WEIR_PRINTF(5, 0)
static bool fail(struct mpi_run *run, const struct mpi_head *head, enum weir_transport_fault fault,
                 uint32_t rank, const char *format, va_list arguments)
{
    struct mpi_cause cause = {.number = head->number, .fault = fault, .rank = rank};
    size_t used = 0;
    append_call(cause.text, sizeof cause.text, &used, head);
    weir_text_append(cause.text, sizeof cause.text, &used, " of '%s'", run->group->label);
    if (head->file[0])
        weir_text_append(cause.text, sizeof cause.text, &used, ", %s:%d", head->file,
                         (int)head->line);
    weir_text_append(cause.text, sizeof cause.text, &used, ": ");
    vsnprintf(cause.text + used, sizeof cause.text - used, format, arguments);
    mpi_posts_fail(run->group, &cause);
    return false;
}

// About a call that need not be this rank's.
WEIR_PRINTF(5, 6)
static bool blame(struct mpi_run *run, const struct mpi_head *head, enum weir_transport_fault fault,
                  uint32_t rank, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, head, fault, rank, format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_of_kind(const struct pair *pair)
{
    char theirs[TEXT_SIZE];
    char own[TEXT_SIZE];
    describe(pair->theirs, theirs);
    if (pair->fault == pair->peer)
        return blame(pair->run, pair->own, WEIR_FAULT_DIFFERS, pair->fault,
                     "rank %u has called %s instead", pair->peer, theirs);
    return blame(pair->run, pair->own, WEIR_FAULT_DIFFERS, pair->fault,
                 "rank %u has called %s, and rank %u %s", pair->peer, theirs, pair->rank,
                 describe(pair->own, own));
}

static bool differs(const struct pair *pair, const char *what, const char *their_value,
                    const char *own_value)
{
    char text[TEXT_SIZE];
    return blame(pair->run, pair->own, WEIR_FAULT_DIFFERS, pair->fault,
                 "rank %u has called %s with %s %s, and rank %u with %s", pair->peer,
                 describe(pair->theirs, text), what, their_value, pair->rank, own_value);
}

static bool differs_in(const struct pair *pair, const char *what, uint64_t their_value,
                       uint64_t own_value)
{
    char their_text[24];
    char own_text[24];
    snprintf(their_text, sizeof their_text, "%" PRIu64, their_value);
    snprintf(own_text, sizeof own_text, "%" PRIu64, own_value);
    return differs(pair, what, their_text, own_text);
}

static bool fail_of_pair(const struct pair *pair)
{
    const struct mpi_head *own = pair->own;
    const struct mpi_head *theirs = pair->theirs;
    if (mpi_is_numbered(own->kind) && (theirs->kind != own->kind || theirs->number != own->number))
        return fail_of_kind(pair);
    if (theirs->element != own->element)
        return differs(pair, "the datatype", weir_datatype_name((weir_datatype)theirs->element),
                       weir_datatype_name((weir_datatype)own->element));
    if (theirs->count != own->count)
        return differs_in(pair, "the count", theirs->count, own->count);
    if (theirs->reduction != own->reduction)
        return differs(pair, "the reduction",
                       weir_reduction_name((weir_reduction)theirs->reduction),
                       weir_reduction_name((weir_reduction)own->reduction));
    return differs_in(pair, "the root", theirs->root, own->root);
}

// Whether all that have come have called the same. Fails the group if not, and names the rank that
// differs from more than half of all.
static bool mpi_judge(struct mpi_run *run, const struct mpi_met *met)
{
    uint32_t rank = 0;
    uint32_t peer = weir_odd_one(met, run->group->count, have_called_the_same, &rank);
    const uint32_t fault = peer;
    if (peer == WEIR_ODD_NONE) {
        rank = 0;
        peer = 1;
        while (peer < met->come && have_called_the_same(met, rank, peer))
            peer++;
    }
    return peer >= met->come || fail_of_pair(&(struct pair){run, &met->heads[rank], rank, peer,
                                                            &met->heads[peer], fault});
}

// Rank 0.

// After a difference the others are waited for, for they tell which of two ranks is wrong, but not long.
static bool hear_each(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    struct mpi_met met = {.heads = group->heads, .come = 1};
    uint64_t deadline_ns = run->deadline_ns;
    bool same = true;
    group->heads[0] = group->head;
    for (; met.come < group->count; met.come++) {
        const struct mpi_head *head = &group->heads[met.come];
        const enum mpi_wait result = mpi_wait_all(run, &group->requests[met.come], 1, deadline_ns);
        if (result == MPI_LATE && !same)
            break;
        if (result != MPI_DONE)
            return result == MPI_LATE && mpi_late(run, met.come);
        group->peers[met.come].heard = true;
        group->peers[met.come].last = *head;
        if (same && !mpi_is_same(&group->head, head)) {
            const uint64_t judge_ns = weir_clock_now_ns() + JUDGE_NS;
            same = false;
            deadline_ns = judge_ns < deadline_ns ? judge_ns : deadline_ns;
        }
    }
    return same || mpi_judge(run, &met);
}

static bool start(struct mpi_run *run, uint32_t peer, bool receives, int error)
{
    struct mpi_request *request = &run->group->requests[peer];
    request->active = error == 0;
    request->receives = receives;
    return error == 0 || mpi_fail_in(run, receives ? "MPI_Irecv" : "MPI_Isend", error);
}

static bool hear_all(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    bool ok = true;
    for (uint32_t i = 1; i < group->count && ok; i++)
        ok = start(run, i, true,
                   mpi_library()->receive(&group->heads[i], sizeof *group->heads, (int)i,
                                          MPI_TAG_ARRIVE, group->comm, &group->requests[i].handle));
    ok = ok && hear_each(run);
    if (!ok)
        mpi_abandon(group, group->requests, group->count);
    return ok;
}

static bool tell_all(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    bool ok = true;
    for (uint32_t i = 1; i < group->count && ok; i++)
        ok = start(run, i, false,
                   mpi_library()->send(&group->head, sizeof group->head, (int)i, MPI_TAG_BEGIN,
                                       group->comm, &group->requests[i].handle));
    if (!ok)
        return false;
    const enum mpi_wait result =
        mpi_wait_all(run, group->requests + 1, group->count - 1, run->deadline_ns);
    return result == MPI_DONE ||
           (result == MPI_LATE && mpi_blame(run, WEIR_FAULT_SILENT, UINT32_MAX,
                                            "the ranks have not heard rank 0 in time"));
}

// Another rank.
static bool tell_first(struct mpi_run *run)
{
    struct mpi_group *group = run->group;
    const bool ok =
        start(run, 0, true,
              mpi_library()->receive(&group->heads[0], sizeof *group->heads, 0, MPI_TAG_BEGIN,
                                     group->comm, &group->requests[0].handle)) &&
        start(run, 1, false,
              mpi_library()->send(&group->head, sizeof group->head, 0, MPI_TAG_ARRIVE, group->comm,
                                  &group->requests[1].handle));
    if (!ok)
        return false;
    const enum mpi_wait result =
        mpi_wait_all(run, group->requests, 2, run->deadline_ns + PATIENCE_NS);
    if (result != MPI_DONE)
        return result == MPI_LATE && mpi_late(run, 0);
    group->peers[0].heard = true;
    group->peers[0].last = group->heads[0];
    group->head.new_id = group->heads[0].new_id;
    return true;
}

bool mpi_meet(struct mpi_run *run)
{
    if (run->group->rank > 0)
        return tell_first(run);
    return hear_all(run) && tell_all(run);
}

struct mpi_head mpi_head_of_line(uint32_t kind, uint64_t number, const char *file, int line)
{
    struct mpi_head head = {.kind = kind, .number = number, .line = line};
    const size_t length = file ? strlen(file) : 0;
    // The end of a path names the file.
    if (file)
        snprintf(head.file, sizeof head.file, "%s",
                 length < sizeof head.file ? file : file + length - sizeof head.file + 1);
    return head;
}

// What a kind does not use is 0, and so equal on all ranks.
struct mpi_head mpi_head_of(const struct weir_transport_call *call)
{
    const weir_collective kind = call->kind;
    const bool reduces =
        kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
    const bool rooted = kind == WEIR_REDUCE || kind == WEIR_BROADCAST || kind == WEIR_GATHER ||
                        kind == WEIR_SCATTER;
    struct mpi_head head = mpi_head_of_line(kind, call->number, call->file, call->line);
    head.reduction = reduces ? call->reduction : 0;
    head.root = rooted ? call->root : 0;
    if (kind != WEIR_EXCHANGE && kind != WEIR_BARRIER) {
        head.element = call->element;
        head.count = call->count;
    }
    return head;
}

bool mpi_fail(struct mpi_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, &run->group->head, WEIR_FAULT_OTHER, run->group->rank, format, arguments);
    va_end(arguments);
    return false;
}

bool mpi_blame(struct mpi_run *run, enum weir_transport_fault fault, uint32_t rank,
               const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(run, &run->group->head, fault, rank, format, arguments);
    va_end(arguments);
    return false;
}

bool mpi_fail_in(struct mpi_run *run, const char *function, int error)
{
    char text[1024] = "";
    int size = 0;
    mpi_library()->error(error, text, &size);
    text[strcspn(text, "\n")] = '\0';
    return mpi_fail(run, "rank %u: %s failed: %s", run->group->rank, function, text);
}

bool mpi_same(struct mpi_run *run, uint32_t peer, const struct mpi_head *theirs)
{
    const struct mpi_head *own = &run->group->head;
    return mpi_is_same(own, theirs) ||
           fail_of_pair(&(struct pair){run, own, run->group->rank, peer, theirs, UINT32_MAX});
}

bool mpi_late(struct mpi_run *run, uint32_t rank)
{
    const struct mpi_peer *peer = &run->group->peers[rank];
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    char text[TEXT_SIZE];
    weir_text_duration(duration, (double)run->timeout_ns);
    if (!peer->heard)
        return mpi_blame(run, WEIR_FAULT_SILENT, rank, "rank %u has submitted nothing in %s", rank,
                         duration);
    return mpi_blame(run, WEIR_FAULT_SILENT, rank, "rank %u has submitted nothing after %s in %s",
                     rank, describe(&peer->last, text), duration);
}

bool mpi_gone(struct mpi_run *run, uint32_t rank)
{
    const struct mpi_peer *peer = &run->group->peers[rank];
    char text[TEXT_SIZE];
    if (!peer->heard)
        return mpi_blame(run, WEIR_FAULT_LEFT, rank, "rank %u has destroyed the communicator",
                         rank);
    return mpi_blame(run, WEIR_FAULT_LEFT, rank, "rank %u has destroyed the communicator after %s",
                     rank, describe(&peer->last, text));
}

weir_status mpi_report(const struct mpi_group *group)
{
    return weir_host_fail(group->host, WEIR_ERROR_COMM,
                          "make all ranks submit the same collectives, or raise the timeout", "%s",
                          group->cause.text);
}
