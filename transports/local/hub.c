#include "transports/local/hub.h"

#include <string.h>

#include "base/clock.h"
#include "transports/kit/reduce.h"

// A copy is cut into such pieces, after each of which a failure is noticed.
#define COPY_BYTES ((size_t)1 << 20)

struct hub *local_hub_of(const struct local_run *run)
{
    return ((struct hub_group *)run->group)->hub;
}

bool local_hub_wait(struct hub *hub, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(&hub->changed, &hub->lock) == 0;
    const struct timespec deadline = weir_clock_timespec(deadline_ns);
    return pthread_cond_timedwait(&hub->changed, &hub->lock, &deadline) == 0;
}

void local_hub_begin_wait(const struct local_run *run, uint32_t peer)
{
    struct hub_rank *own = &local_hub_of(run)->ranks[run->group->rank];
    own->waits = true;
    own->awaits = peer;
    own->waiting = run->head;
}

// With the lock: the ranks that wait for each other, from `first` on.
static void describe_circle(struct hub_group *group, uint32_t first)
{
    uint32_t rank = first;
    do {
        const struct hub_rank *hub_rank = &group->hub->ranks[rank];
        struct local_wait wait = {.rank = rank, .awaits = hub_rank->awaits};
        local_describe(&hub_rank->waiting, wait.call, sizeof wait.call);
        local_append_wait(group->circle, &wait);
        rank = hub_rank->awaits;
    } while (rank != first);
}

// A peer that waits itself is not the cause, unless all wait for each other.
uint32_t local_hub_end_wait(const struct local_run *run, enum hub_outcome outcome)
{
    const struct hub *hub = local_hub_of(run);
    struct hub_rank *own = &hub->ranks[run->group->rank];
    uint32_t cause = own->awaits;
    own->waits = outcome == HUB_LATE; // for those whose time ends just now as well
    if (outcome != HUB_LATE)
        return cause;
    for (uint32_t n = 0; n < hub->count && hub->ranks[cause].waits; n++)
        cause = hub->ranks[cause].awaits;
    if (!hub->ranks[cause].waits)
        return cause;
    describe_circle((struct hub_group *)run->group, cause);
    return own->awaits;
}

struct seat {
    const struct hub *hub;
    uint32_t rank;
};

static bool has_seat(const struct local_group *group, const void *user)
{
    const struct seat *seat = user;
    return group->wire == &local_hub_wire && group->rank == seat->rank &&
           ((const struct hub_group *)group)->hub == seat->hub;
}

// What a group's rank waits in, if it does.
static void describe_wait(struct local_group *group, void *text)
{
    if (group->wire != &local_hub_wire)
        return;
    struct hub *hub = ((struct hub_group *)group)->hub;
    const struct hub_rank *rank = &hub->ranks[group->rank];
    pthread_mutex_lock(&hub->lock);
    if (rank->waits)
        local_describe_elsewhere(group, &rank->waiting, rank->awaits, text);
    pthread_mutex_unlock(&hub->lock);
}

static bool late(const struct local_run *run, uint32_t peer, const struct local_head *last)
{
    const struct hub_group *own = (const struct hub_group *)run->group;
    const struct seat seat = {own->hub, peer};
    struct local_group group;
    char elsewhere[LOCAL_ELSEWHERE_SIZE] = "";
    if (own->circle[0])
        return local_circle(run, own->circle);
    if (local_find_listed(has_seat, &seat, &group))
        local_for_others(&group, describe_wait, elsewhere);
    return elsewhere[0] ? local_late_elsewhere(run, peer, elsewhere) : local_late(run, peer, last);
}

bool local_hub_failure(const struct local_run *run, enum hub_outcome outcome, uint32_t peer,
                       bool has_head, const struct local_head *head)
{
    const struct local_head *last = has_head ? head : NULL;
    switch (outcome) {
    case HUB_LEFT:
        return local_gone(run, peer, last);
    case HUB_LATE:
        return late(run, peer, last);
    case HUB_OTHER:
        return local_same(run, peer, head);
    case HUB_THERE:
    case HUB_FAILED:
        break;
    }
    return false;
}

// With the lock: waits until the peer has taken the ticket. Copies its call, or the message for which
// it waits in vain.
static enum hub_outcome await_ticket(const struct local_run *run, uint32_t index, uint64_t ticket,
                                     struct hub_rank *out_peer)
{
    struct hub *hub = local_hub_of(run);
    const struct hub_rank *peer = &hub->ranks[index];
    bool in_time = true;
    for (;; in_time = local_hub_wait(hub, run->deadline_ns)) {
        const struct hub_post *post = hub->posts[index * hub->count + run->group->rank];
        *out_peer = *peer;
        if (hub->failed)
            return HUB_FAILED;
        if (peer->ticket >= ticket)
            return HUB_THERE;
        if (post)
            out_peer->head = post->head;
        if (post)
            return HUB_OTHER;
        if (peer->left)
            return HUB_LEFT;
        if (!in_time)
            return HUB_LATE;
    }
}

static const struct local_head *head_of(const struct local_met *met, uint32_t rank)
{
    return rank < met->come ? &local_hub_of(met->run)->ranks[rank].head : NULL;
}

// Waits for all ranks to take the ticket that this one has just taken.
static bool agree(struct local_run *run, uint64_t ticket, bool compare)
{
    struct hub *hub = local_hub_of(run);
    struct local_run wait = *run;
    struct local_met met = {.run = run, .head_of = head_of};
    for (; met.come < hub->count; met.come++) {
        const uint32_t i = met.come;
        struct hub_rank peer;
        pthread_mutex_lock(&hub->lock);
        local_hub_begin_wait(run, i);
        const enum hub_outcome outcome = await_ticket(&wait, i, ticket, &peer);
        const uint32_t cause = local_hub_end_wait(run, outcome);
        if (cause != i)
            peer = hub->ranks[cause];
        pthread_mutex_unlock(&hub->lock);
        if (outcome != HUB_THERE && outcome != HUB_FAILED && wait.differs)
            break;
        if (outcome != HUB_THERE)
            return local_hub_failure(run, outcome, cause, peer.has_head, &peer.head);
        if (compare && !wait.differs && !local_is_same(&run->head, &peer.head)) {
            wait.differs = true;
            wait.deadline_ns = local_judge_by(run->deadline_ns);
        }
    }
    return !wait.differs || local_judge(&met);
}

static bool hub_meet(struct local_run *run)
{
    struct hub *hub = local_hub_of(run);
    struct hub_rank *own = &hub->ranks[run->group->rank];
    pthread_mutex_lock(&hub->lock);
    own->has_head = true;
    own->head = run->head;
    own->src = run->src;
    own->dst = run->dst;
    const uint64_t ticket = ++own->ticket;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    return agree(run, ticket, true);
}

static bool next_ticket(struct local_run *run)
{
    struct hub *hub = local_hub_of(run);
    pthread_mutex_lock(&hub->lock);
    const uint64_t ticket = ++hub->ranks[run->group->rank].ticket;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    return agree(run, ticket, false);
}

// The owner's memory stays until local_hub_unpin(). False if a call has failed.
static bool pin(struct hub *hub, uint32_t owner)
{
    pthread_mutex_lock(&hub->lock);
    const bool pinned = !hub->failed;
    hub->ranks[owner].readers += pinned;
    pthread_mutex_unlock(&hub->lock);
    return pinned;
}

static void unpin(struct hub *hub, uint32_t owner)
{
    pthread_mutex_lock(&hub->lock);
    hub->ranks[owner].readers--;
    if (hub->failed)
        pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static bool copy(struct local_run *run, uint32_t owner, const struct local_piece *piece)
{
    struct hub *hub = local_hub_of(run);
    const struct hub_rank *rank = &hub->ranks[owner];
    const char *from = (piece->of_result ? rank->dst : rank->src) + piece->offset;
    char *to = (char *)run->dst + piece->target;
    for (size_t at = 0; from != to && at < piece->size; at += COPY_BYTES) {
        const size_t left = piece->size - at;
        if (!pin(hub, owner))
            return false;
        memcpy(to + at, from + at, left < COPY_BYTES ? left : COPY_BYTES);
        unpin(hub, owner);
    }
    return true;
}

// Adds `size` bytes of each owner's piece, from `at` on.
static bool reduce_segment(struct local_run *run, uint32_t phase, size_t at, size_t size)
{
    struct hub *hub = local_hub_of(run);
    const size_t count = size / weir_datatype_size(run->head.element);
    struct local_piece piece = {.size = 0};
    for (uint32_t owner = 0; owner < hub->count; owner++) {
        local_piece(run, phase, run->group->rank, owner, &piece);
        const char *from = hub->ranks[owner].src + piece.offset + at;
        if (!pin(hub, owner))
            return false;
        if (owner == 0)
            memcpy(run->total, from, size);
        else
            weir_reduce(run->head.element, run->head.reduction, run->total, from, count);
        unpin(hub, owner);
    }
    if (run->head.reduction == WEIR_AVERAGE)
        weir_reduce_divide(run->head.element, run->total, count, hub->count);
    memcpy((char *)run->dst + piece.target + at, run->total, size);
    return true;
}

static bool hub_phase(struct local_run *run, uint32_t phase)
{
    static const struct local_reads reads = {.copy = copy, .reduce_segment = reduce_segment};
    return (phase == 0 || next_ticket(run)) && local_read_pieces(run, phase, &reads);
}

void local_hub_drain(const struct local_run *run)
{
    struct hub *hub = local_hub_of(run);
    pthread_mutex_lock(&hub->lock);
    while (hub->ranks[run->group->rank].readers > 0)
        local_hub_wait(hub, UINT64_MAX);
    pthread_mutex_unlock(&hub->lock);
}

static bool hub_end(struct local_run *run)
{
    char cause[LOCAL_CAUSE_SIZE];
    const bool failed = run->group->wire->failed(run->group, cause);
    if (!failed && (!local_is_numbered(run->head.kind) || next_ticket(run)))
        return true;
    local_hub_drain(run);
    return false;
}

static void hub_fail(struct local_group *group, const struct local_cause *cause)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    pthread_mutex_lock(&hub->lock);
    if (!hub->failed)
        hub->cause = *cause;
    hub->failed = true;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static bool hub_cause(struct local_group *group, struct local_cause *out_cause)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    pthread_mutex_lock(&hub->lock);
    const bool failed = hub->failed;
    if (failed)
        *out_cause = hub->cause;
    pthread_mutex_unlock(&hub->lock);
    return failed;
}

// A part's ranks meet by a name of the whole group.
static bool hub_offer(struct local_run *run, struct local_record *record)
{
    (void)run;
    record->port = 0;
    return true;
}

const struct local_wire local_hub_wire = {
    .meet = hub_meet,
    .phase = hub_phase,
    .end = hub_end,
    .messages = local_hub_messages,
    .offer = hub_offer,
    .split = local_hub_split,
    .fail = hub_fail,
    .cause = hub_cause,
    .failed = local_failed,
    .leave = local_hub_leave,
    .shrink = local_hub_shrink,
};
