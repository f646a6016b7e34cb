// The life of groups. A group in which a call has failed may have requests that never end: it stays,
// reachable from here, and MPI is not told to end.
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/mpi/mpi.h"

// Posts travel on a communicator of their own, of all ranks, so that they reach a group whatever its
// ranks are doing. Each rank that waits for something receives them, for all its groups. A post for
// a group that is gone is dropped.

enum kind {
    FAILED,
    LEFT
};

struct post {
    struct mpi_id id;
    uint64_t number;
    uint32_t kind;
    uint32_t rank;
    struct weir_cause cause; // FAILED
};

// On its way to the other ranks of a group.
struct mpi_sent {
    struct mpi_sent *next;
    const struct weir_host *host;
    struct post post;
    size_t count;
    struct mpi_request requests[];
};

static struct {
    pthread_mutex_t lock;
    union mpi_handle comm;
    struct mpi_group *groups;
    struct mpi_sent *sent;
} posts = {.lock = PTHREAD_MUTEX_INITIALIZER};

void mpi_posts_open(union mpi_handle comm)
{
    posts.comm = comm;
}

void mpi_posts_add(struct mpi_group *group)
{
    pthread_mutex_lock(&posts.lock);
    group->next = posts.groups;
    posts.groups = group;
    pthread_mutex_unlock(&posts.lock);
}

static void mpi_posts_remove(struct mpi_group *group)
{
    pthread_mutex_lock(&posts.lock);
    struct mpi_group **at = &posts.groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    pthread_mutex_unlock(&posts.lock);
}

static void kill_group(struct mpi_group *group, const struct weir_cause *cause)
{
    if (atomic_load(&group->dead))
        return;
    group->cause = *cause;
    atomic_store(&group->dead, true);
    mpi_process_note_failure();
}

// Receiving.

static void deliver(struct post *post)
{
    struct mpi_group *group = posts.groups;
    while (group && (group->id.number != post->id.number || group->id.color != post->id.color))
        group = group->next;
    if (!group || post->rank >= group->room)
        return;
    struct mpi_peer *peer = &group->peers[post->rank];
    if (post->kind == FAILED) {
        const struct weir_cause heard = weir_cause_heard(&post->cause, group->count);
        kill_group(group, &heard);
        return;
    }
    peer->left = true;
    peer->left_after = post->number;
    peer->left_ns = weir_clock_now_ns();
}

static bool is_sent(struct mpi_sent *sent)
{
    bool all = true;
    for (size_t i = 0; i < sent->count; i++) {
        struct mpi_request *request = &sent->requests[i];
        bool done = false;
        if (request->active && mpi_library()->test(&request->handle, &done) == 0)
            request->active = !done;
        all = all && !request->active;
    }
    return all;
}

static void release_sent(void)
{
    struct mpi_sent **at = &posts.sent;
    while (*at) {
        struct mpi_sent *sent = *at;
        if (!is_sent(sent)) {
            at = &sent->next;
            continue;
        }
        *at = sent->next;
        sent->host->release(sent);
    }
}

void mpi_posts_poll(void)
{
    struct post post;
    bool taken = true;
    pthread_mutex_lock(&posts.lock);
    while (mpi_library()->take(&post, sizeof post, MPI_TAG_POST, posts.comm, &taken) == 0 && taken)
        deliver(&post);
    release_sent();
    pthread_mutex_unlock(&posts.lock);
}

// Sending.

// Allocates the one post that the group sends. False if out of memory.
static bool mpi_posts_prepare(struct mpi_group *group)
{
    group->post =
        group->host->allocate(sizeof *group->post + group->count * sizeof *group->post->requests);
    return group->post;
}

// A group sends one post at most: that it has failed, or that this rank leaves it.
static void send_to_all(struct mpi_group *group, enum kind kind, const struct weir_cause *cause)
{
    struct mpi_sent *sent = group->post;
    group->post = NULL;
    sent->host = group->host;
    sent->count = group->count;
    sent->post =
        (struct post){.id = group->id, .number = group->last, .kind = kind, .rank = group->rank};
    if (cause)
        sent->post.cause = *cause;
    for (uint32_t i = 0; i < group->count; i++)
        if (i != group->rank)
            sent->requests[i].active =
                mpi_library()->send(&sent->post, sizeof sent->post, (int)group->peers[i].world,
                                    MPI_TAG_POST, posts.comm, &sent->requests[i].handle) == 0;
    sent->next = posts.sent;
    posts.sent = sent;
}

void mpi_posts_fail(struct mpi_group *group, const struct weir_cause *cause)
{
    pthread_mutex_lock(&posts.lock);
    if (!atomic_load(&group->dead)) {
        kill_group(group, cause);
        send_to_all(group, FAILED, cause);
    }
    pthread_mutex_unlock(&posts.lock);
}

// Tells the other ranks that this one leaves.
static void mpi_posts_leave(struct mpi_group *group)
{
    pthread_mutex_lock(&posts.lock);
    send_to_all(group, LEFT, NULL);
    pthread_mutex_unlock(&posts.lock);
}

bool mpi_posts_left(struct mpi_group *group, uint32_t rank, uint64_t *out_after,
                    uint64_t *out_since_ns)
{
    const struct mpi_peer *peer = &group->peers[rank];
    pthread_mutex_lock(&posts.lock);
    const bool left = peer->left;
    *out_after = peer->left_after;
    *out_since_ns = peer->left_ns;
    pthread_mutex_unlock(&posts.lock);
    return left;
}

// Of one of a group's two parts of memory, and at least of it for each rank.
#define STAGE_BYTES ((size_t)1 << 20)
#define BLOCK_BYTES ((size_t)16 << 10)

static struct {
    pthread_mutex_t lock;
    struct mpi_group *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void mpi_group_destroy(struct mpi_group *group)
{
    const struct weir_host *host = group->host;
    host->release(group->post);
    host->release(group->peers);
    host->release(group->heads);
    host->release(group->requests);
    host->release(group->src);
    host->release(group->dst);
    host->release(group);
}

struct mpi_group *mpi_group_create(const struct weir_host *host, const char *label, uint32_t rank,
                                   uint32_t count)
{
    struct mpi_group *group = host->allocate(sizeof *group);
    const size_t block = STAGE_BYTES / count / 64 * 64;
    if (!group)
        return NULL;
    group->host = host;
    group->rank = rank;
    group->count = count;
    group->room = count;
    group->block = block > BLOCK_BYTES ? block : BLOCK_BYTES;
    snprintf(group->label, sizeof group->label, "%s", label);
    group->peers = host->allocate(count * sizeof *group->peers);
    group->heads = host->allocate(count * sizeof *group->heads);
    group->requests = host->allocate(count * sizeof *group->requests);
    if (group->peers && group->heads && group->requests && mpi_posts_prepare(group))
        return group;
    mpi_group_destroy(group);
    return NULL;
}

static bool allocate_stage(struct mpi_group *group)
{
    group->src = group->host->allocate(group->count * group->block);
    group->dst = group->host->allocate(group->count * group->block);
    return group->src && group->dst;
}

static void keep(struct mpi_group *group)
{
    mpi_process_spoil();
    pthread_mutex_lock(&kept.lock);
    group->next = kept.first;
    kept.first = group;
    pthread_mutex_unlock(&kept.lock);
}

// Making a group out of another one.

// All ranks learn which ranks of MPI the new group has.
static bool learn_ranks(struct mpi_run *run, struct mpi_group *part, uint32_t world)
{
    union mpi_handle *handle = &part->requests[0].handle;
    memcpy(part->src, &world, sizeof world);
    const int error = mpi_library()->collective(WEIR_ALL_GATHER, part->src, part->dst, sizeof world,
                                                0, part->comm, handle);
    if (error)
        return mpi_fail_in(run, "MPI_Iallgather", error);
    part->requests[0].active = true;
    const enum mpi_wait result = mpi_wait_all(run, part->requests, 1, run->deadline_ns);
    if (result != MPI_DONE)
        return result == MPI_LATE &&
               weir_caller_blame(&run->by, WEIR_FAULT_SILENT, UINT32_MAX,
                                 "a rank has begun and has not finished in time: it is stopped");
    for (uint32_t i = 0; i < part->count; i++)
        memcpy(&part->peers[i].world, part->dst + i * sizeof world, sizeof world);
    return true;
}

// All ranks are here. Posts may come from the first moment, when the part's ranks are not known yet.
static bool divide(struct mpi_run *run, struct mpi_group *part, int key, bool *out_any)
{
    struct mpi_group *whole = run->group;
    int rank = 0;
    int count = 0;
    int error = mpi_library()->split(whole->comm, (int)part->id.color, key, &part->comm, out_any);
    if (!error && *out_any)
        error = mpi_library()->place(part->comm, &rank, &count);
    if (error)
        return mpi_fail_in(run, "MPI_Comm_split", error);
    part->rank = (uint32_t)rank;
    part->count = (uint32_t)count;
    return !*out_any || learn_ranks(run, part, whole->peers[whole->rank].world);
}

// Consumes the part, which has the whole's size, unless it is stored.
static void make(struct mpi_run *run, struct mpi_group *part, int color, int key, void **out_group)
{
    bool any = false;
    part->id = (struct mpi_id){.number = run->group->head.new_group, .color = color};
    mpi_posts_add(part);
    const bool ok = divide(run, part, key, &any);
    if (ok && any) {
        *out_group = part;
        return;
    }
    mpi_posts_remove(part);
    if (ok)
        mpi_group_destroy(part);
    else
        keep(part);
}

// The memory is taken before the ranks come together: after it the others would wait for this one in
// MPI_Comm_split(), which has no deadline.
static weir_status run_make(struct mpi_run *run, const struct weir_host *host, const char *label,
                            int color, int key, void **out_group)
{
    struct mpi_group *group = run->group;
    *out_group = NULL;
    if (atomic_load(&group->dead))
        return mpi_report(group);
    struct mpi_group *part = mpi_group_create(host, label, 0, group->count);
    const bool there = part && allocate_stage(part);
    group->head.new_group = group->rank == 0 ? mpi_process_new_id() : 0;
    if (there && mpi_meet(run))
        make(run, part, color, key, out_group);
    else if (part)
        mpi_group_destroy(part);
    if (!there)
        weir_caller_fail(&run->by, "rank %u has no memory left", group->rank);
    return atomic_load(&group->dead) ? mpi_report(group) : WEIR_OK;
}

weir_status mpi_join(void *state, const struct weir_transport_setup *setup, void **out_group)
{
    const struct weir_host *host = *(const struct weir_host **)state;
    struct mpi_group *world;
    *out_group = NULL;
    if (setup->rendezvous && strncmp(setup->rendezvous, "process:", 8) == 0)
        return weir_host_fail(
            host, WEIR_ERROR_UNSUPPORTED,
            "create one communicator in each process, or use the transport 'local'",
            "'%s': the transport 'mpi' joins processes, not threads of one", setup->label);
    const weir_status status = mpi_process_acquire(host, setup, &world);
    if (status < 0)
        return status;
    snprintf(world->label, sizeof world->label, "%s", setup->label);
    struct mpi_run run =
        mpi_run_begin(world,
                      weir_head_of_line(WEIR_CALL_JOIN, world->last + 1, setup->file, setup->line),
                      setup->timeout_ns);
    const weir_status result = run_make(&run, host, setup->label, 0, 0, out_group);
    mpi_process_release();
    return result;
}

weir_status mpi_split(void *state, const struct weir_transport_split *split, void **out_part)
{
    struct mpi_group *group = state;
    struct mpi_run run =
        mpi_run_begin(group,
                      weir_head_of_line(WEIR_CALL_SPLIT, split->number, split->file, split->line),
                      split->timeout_ns);
    return run_make(&run, group->host, split->label, split->color, split->key, out_part);
}

void mpi_place(const void *state, uint32_t *out_rank, uint32_t *out_count)
{
    const struct mpi_group *group = state;
    *out_rank = group->rank;
    *out_count = group->count;
}

// A call.

weir_status mpi_run_call(void *state, const struct weir_transport_call *call)
{
    struct mpi_group *group = state;
    if (atomic_load(&group->dead))
        return mpi_report(group);
    struct mpi_run run = mpi_run_begin(group, weir_head_of(call), call->timeout_ns);
    run.call = call;
    const bool ok =
        weir_is_numbered(call->kind) ? mpi_meet(&run) && mpi_collective(&run) : mpi_exchange(&run);
    return ok ? WEIR_OK : mpi_report(group);
}

void mpi_abort(void *state, const char *reason)
{
    struct mpi_group *group = state;
    struct weir_cause cause = {.fault = WEIR_FAULT_ABORTED, .rank = group->rank};
    snprintf(cause.text, sizeof cause.text, "'%s', rank %u: %s", group->label, group->rank, reason);
    mpi_posts_fail(group, &cause);
}

bool mpi_first_cause(void *state, struct weir_transport_cause *out_cause)
{
    struct mpi_group *group = state;
    if (!atomic_load(&group->dead))
        return false;
    out_cause->fault = (enum weir_transport_fault)group->cause.fault;
    out_cause->rank = group->cause.rank;
    out_cause->number = group->cause.number;
    return true;
}

void mpi_leave(void *state)
{
    struct mpi_group *group = state;
    if (!atomic_load(&group->dead))
        mpi_posts_leave(group);
    mpi_posts_remove(group);
    if (group->stuck) {
        keep(group);
        return;
    }
    mpi_library()->free(&group->comm);
    mpi_group_destroy(group);
}
