// Waiting for requests, and for all ranks of a group, before each collective.
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "transports/mpi/mpi.h"

// Waiting polls: it is what makes MPI progress, and the only way to give up. First without a pause,
// since what is waited for mostly comes within microseconds.

#define BUSY_NS 200000
#define FOREVER_NS (UINT64_MAX / 2)
// The other ranks wait longer than rank 0, which knows the rank that is missing.
#define PATIENCE_NS 500000000

static void fail(void *group, const struct weir_cause *cause)
{
    mpi_posts_fail(group, cause);
}

struct mpi_run mpi_run_begin(struct mpi_group *group, struct weir_head head, uint64_t timeout_ns)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const uint64_t limit_ns = timeout_ns < FOREVER_NS ? timeout_ns : FOREVER_NS;
    group->head = head;
    if (weir_is_numbered(head.kind))
        group->last = head.number;
    return (struct mpi_run){.by = {.head = head,
                                   .group = group,
                                   .label = group->label,
                                   .rank = group->rank,
                                   .count = group->count,
                                   .timeout_ns = limit_ns,
                                   .fail = fail},
                            .group = group,
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
        (weir_is_numbered(run->group->head.kind) && !all_there(run)))
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
    uint64_t deadline_ns = run->deadline_ns;
    bool same = true;
    group->heads[0] = group->head;
    for (; met.come < group->count; met.come++) {
        const struct weir_head *head = &group->heads[met.come];
        const enum mpi_wait result = mpi_wait_all(run, &group->requests[met.come], 1, deadline_ns);
        if (result == MPI_LATE && !same)
            break;
        if (result != MPI_DONE)
            return result == MPI_LATE && mpi_late(run, met.come);
        group->peers[met.come].heard = true;
        group->peers[met.come].last = *head;
        if (same && !weir_head_equals(&group->head, head)) {
            same = false;
            deadline_ns = weir_judge_by(deadline_ns);
        }
    }
    return same || weir_caller_judge(&run->by, head_of, &met);
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
           (result == MPI_LATE && weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
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
    group->head.new_group = group->heads[0].new_group;
    return true;
}

bool mpi_meet(struct mpi_run *run)
{
    if (run->group->rank > 0)
        return tell_first(run);
    return hear_all(run) && tell_all(run);
}

bool mpi_fail_in(struct mpi_run *run, const char *function, int error)
{
    char text[1024] = "";
    int size = 0;
    mpi_library()->error(error, text, &size);
    text[strcspn(text, "\n")] = '\0';
    return weir_caller_fail(&run->by, "rank %u: %s failed: %s", run->group->rank, function, text);
}

static const struct weir_head *last_of(const struct mpi_run *run, uint32_t rank)
{
    const struct mpi_peer *peer = &run->group->peers[rank];
    return peer->heard ? &peer->last : NULL;
}

bool mpi_late(struct mpi_run *run, uint32_t rank)
{
    return weir_caller_late(&run->by, rank, last_of(run, rank));
}

bool mpi_gone(struct mpi_run *run, uint32_t rank)
{
    return weir_caller_gone(&run->by, rank, last_of(run, rank));
}

weir_status mpi_report(const struct mpi_group *group)
{
    return weir_host_fail(group->host, WEIR_ERROR_COMM,
                          "make all ranks submit the same collectives, or raise the timeout", "%s",
                          group->cause.text);
}
