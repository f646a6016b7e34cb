// Posts travel on a communicator of their own, of all ranks, so that they reach a group whatever its
// ranks are doing. Each rank that waits for something receives them, for all its groups. A post for
// a group that is gone is dropped.
#include <pthread.h>

#include "transports/mpi/mpi.h"

#include "base/clock.h"
#include "base/text.h"

enum kind {
    FAILED,
    LEFT
};

struct post {
    struct mpi_id id;
    uint64_t number;
    uint32_t kind;
    uint32_t rank;
    struct mpi_cause cause; // FAILED
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

void mpi_posts_remove(struct mpi_group *group)
{
    pthread_mutex_lock(&posts.lock);
    struct mpi_group **at = &posts.groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    pthread_mutex_unlock(&posts.lock);
}

static void kill_group(struct mpi_group *group, const struct mpi_cause *cause)
{
    if (atomic_load(&group->dead))
        return;
    group->cause = *cause;
    atomic_store(&group->dead, true);
    mpi_process_note_failure();
}

// Receiving.

// What another process says of a failure. With the lock.
static void take_failure(struct mpi_group *group, struct post *post)
{
    struct mpi_cause cause = post->cause;
    post->cause.text[MPI_CAUSE_SIZE - 1] = '\0';
    weir_text_escape(cause.text, sizeof cause.text, post->cause.text, "");
    if (cause.fault > WEIR_FAULT_ABORTED)
        cause.fault = WEIR_FAULT_OTHER;
    if (cause.rank >= group->count)
        cause.rank = UINT32_MAX;
    kill_group(group, &cause);
}

static void deliver(struct post *post)
{
    struct mpi_group *group = posts.groups;
    while (group && (group->id.number != post->id.number || group->id.color != post->id.color))
        group = group->next;
    if (!group || post->rank >= group->room)
        return;
    struct mpi_peer *peer = &group->peers[post->rank];
    if (post->kind == FAILED) {
        take_failure(group, post);
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

bool mpi_posts_prepare(struct mpi_group *group)
{
    group->post =
        group->host->allocate(sizeof *group->post + group->count * sizeof *group->post->requests);
    return group->post;
}

// A group sends one post at most: that it has failed, or that this rank leaves it.
static void send_to_all(struct mpi_group *group, enum kind kind, const struct mpi_cause *cause)
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

void mpi_posts_fail(struct mpi_group *group, const struct mpi_cause *cause)
{
    pthread_mutex_lock(&posts.lock);
    if (!atomic_load(&group->dead)) {
        kill_group(group, cause);
        send_to_all(group, FAILED, cause);
    }
    pthread_mutex_unlock(&posts.lock);
}

void mpi_posts_leave(struct mpi_group *group)
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
