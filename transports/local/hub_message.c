// Messages within a process: all sends of a call are posted, then its receives copy from the posts of
// others, then the sends wait for their receivers.
#include <string.h>

#include "transports/local/hub.h"

// A part as a call of its own, for comparison and sentences.
static struct local_run message_of(const struct local_run *run,
                                   const struct weir_transport_part *part)
{
    struct local_run message = *run;
    message.head.element = part->element;
    message.head.count = part->count;
    return message;
}

static struct hub_post **queue_of(struct hub *hub, uint32_t from, uint32_t to)
{
    return &hub->posts[from * hub->count + to];
}

static void post_all(struct local_run *run, struct hub_post *posts)
{
    struct hub *hub = local_hub_of(run);
    pthread_mutex_lock(&hub->lock);
    for (uint32_t i = 0; i < run->part_count; i++) {
        const struct weir_transport_part *part = local_part_at(run, i);
        if (part->receive)
            continue;
        posts[i] = (struct hub_post){.head = message_of(run, part).head, .memory = part->memory};
        struct hub_post **end = queue_of(hub, run->group->rank, part->peer);
        while (*end)
            end = &(*end)->next;
        *end = &posts[i];
    }
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

// With the lock: waits for the peer, until it has posted a message or has received `post`. If it has
// come to a collective that this rank has not, it never will.
static enum hub_outcome await_peer(const struct local_run *run, uint32_t index,
                                   const struct hub_post *post)
{
    struct hub *hub = local_hub_of(run);
    const struct hub_rank *peer = &hub->ranks[index];
    bool in_time = true;
    for (;; in_time = local_hub_wait(hub, run->deadline_ns)) {
        if (post ? post->received : *queue_of(hub, index, run->group->rank) != NULL)
            return HUB_THERE;
        if (hub->failed)
            return HUB_FAILED;
        if (peer->ticket > hub->ranks[run->group->rank].ticket)
            return HUB_OTHER;
        if (peer->left)
            return HUB_LEFT;
        if (!in_time)
            return HUB_LATE;
    }
}

static bool await(const struct local_run *message, uint32_t peer, const struct hub_post *post)
{
    struct hub *hub = local_hub_of(message);
    pthread_mutex_lock(&hub->lock);
    local_hub_begin_wait(message, peer);
    const enum hub_outcome outcome = await_peer(message, peer, post);
    const uint32_t cause = local_hub_end_wait(message, outcome);
    const bool has_head = hub->ranks[cause].has_head;
    const struct local_head head = hub->ranks[cause].head;
    pthread_mutex_unlock(&hub->lock);
    return outcome == HUB_THERE || local_hub_failure(message, outcome, cause, has_head, &head);
}

// The oldest post of the peer, whose memory stays until finish(); NULL if a call has failed.
static struct hub_post *begin(struct hub *hub, uint32_t from, uint32_t to)
{
    pthread_mutex_lock(&hub->lock);
    struct hub_post *post = hub->failed ? NULL : *queue_of(hub, from, to);
    hub->ranks[from].readers += post != NULL;
    pthread_mutex_unlock(&hub->lock);
    return post;
}

static void finish(struct hub *hub, uint32_t from, uint32_t to, struct hub_post *post)
{
    pthread_mutex_lock(&hub->lock);
    hub->ranks[from].readers--;
    *queue_of(hub, from, to) = post->next;
    post->received = true;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static bool receive(struct local_run *run, const struct weir_transport_part *part)
{
    struct hub *hub = local_hub_of(run);
    const struct local_run message = message_of(run, part);
    const uint32_t own = run->group->rank;
    if (!await(&message, part->peer, NULL))
        return false;
    struct hub_post *post = begin(hub, part->peer, own);
    if (!post)
        return false;
    const bool same = local_same(&message, part->peer, &post->head);
    if (same && part->count > 0)
        memcpy(part->memory, post->memory, part->count * weir_datatype_size(part->element));
    finish(hub, part->peer, own, post);
    return same;
}

static bool carry(struct local_run *run, struct hub_post *posts)
{
    post_all(run, posts);
    for (uint32_t i = 0; i < run->part_count; i++) {
        const struct weir_transport_part *part = local_part_at(run, i);
        if (part->receive && !receive(run, part))
            return false;
    }
    for (uint32_t i = 0; i < run->part_count; i++) {
        const struct weir_transport_part *part = local_part_at(run, i);
        const struct local_run message = message_of(run, part);
        if (!part->receive && !await(&message, part->peer, &posts[i]))
            return false;
    }
    return true;
}

bool local_hub_messages(struct local_run *run)
{
    const struct weir_host *host = run->group->host;
    struct hub_post *posts = host->allocate((run->part_count + 1) * sizeof *posts);
    if (!posts)
        return local_fail(run, "rank %u has no host memory left for %u messages", run->group->rank,
                          run->part_count);
    const bool carried = carry(run, posts);
    if (!carried)
        local_hub_drain(run);
    host->release(posts);
    return carried;
}
