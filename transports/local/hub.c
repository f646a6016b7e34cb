// The wire within a process: a hub, which the groups of all its ranks share. A rank shows its memory,
// and the others copy from there.
//
// Ranks agree by tickets: each takes its next one when it comes to a call, between two phases, and at
// the end; and goes on when all have as many. What a rank shows for a call stays until all have
// taken the ticket at its end.
//
// A rank whose call has failed waits for copies from its memory that are under way, and only for those.
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/kit/reduce.h"
#include "transports/local/local.h"

// A message that waits for its receiver.
struct hub_post {
    struct hub_post *next;
    struct weir_head head;
    const void *memory;
    bool received;
};

struct hub_rank {
    bool here; // has joined
    bool left;
    bool shrinks; // has come to go on with the ranks that are left
    bool waits;   // for `awaits`
    uint32_t awaits;
    struct weir_head waiting; // the call in which it does
    bool has_head;
    struct weir_head head; // its latest collective
    const char *src;
    char *dst;
    uint64_t ticket;
    uint32_t readers; // copies from its memory that are under way
};

struct hub {
    struct hub *next; // in the list of hubs that are not complete
    const struct weir_host *host;
    pthread_mutex_t lock; // guards all that follows
    pthread_cond_t changed;
    uint32_t count;
    uint32_t joined;
    uint32_t members; // groups that have not left
    bool complete;    // all have joined, whatever has failed since
    bool failed;
    struct weir_cause cause;
    bool shrunk; // the ranks that go on are known
    struct hub_rank *ranks;
    struct hub_post **posts; // the oldest from rank i to rank j at i * count + j
    uint64_t id;
    char name[];
};

struct hub_group {
    struct local_group local;
    struct hub *hub;
    char circle[WEIR_CAUSE_SIZE]; // of the wait that has just ended; "": it was in none
};

enum hub_outcome {
    HUB_THERE,
    HUB_FAILED,
    HUB_LEFT,
    HUB_LATE,
    HUB_OTHER
};

static bool has_seat(const struct local_group *group, const void *user);

static struct hub *local_hub_of(const struct local_run *run)
{
    return ((struct hub_group *)run->group)->hub;
}

static struct hub_post **queue_of(struct hub *hub, uint32_t from, uint32_t to)
{
    return &hub->posts[from * hub->count + to];
}

// The ranks before `come` have come to a collective.
struct met {
    const struct hub *hub;
    uint32_t come;
};

static const struct weir_head *head_of(const void *user, uint32_t rank)
{
    const struct met *met = user;
    return rank < met->come ? &met->hub->ranks[rank].head : NULL;
}

// With the lock, around a wait for `peer` within a call. The end returns which rank has kept this one waiting:
// the peer or, if it was late because another one was, that one.
static void local_hub_begin_wait(const struct local_run *run, uint32_t peer)
{
    struct hub_rank *own = &local_hub_of(run)->ranks[run->group->rank];
    own->waits = true;
    own->awaits = peer;
    own->waiting = run->by.head;
}

// With the lock: waits for a change. False at the deadline.
static bool local_hub_wait(struct hub *hub, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(&hub->changed, &hub->lock) == 0;
    const struct timespec deadline = weir_clock_timespec(deadline_ns);
    return pthread_cond_timedwait(&hub->changed, &hub->lock, &deadline) == 0;
}

// With the lock: waits for all ranks to take the ticket; `met->come` is the first that has not, whose call is another one,
// or that has left or is late. Their calls are compared as they come.
static enum hub_outcome await_tickets(struct local_run *wait, uint64_t ticket, bool compare,
                                      struct met *met)
{
    struct hub *hub = local_hub_of(wait);
    struct hub_rank *own = &hub->ranks[wait->group->rank];
    bool in_time = true;
    for (;; in_time = local_hub_wait(hub, wait->deadline_ns)) {
        for (; met->come < hub->count && hub->ranks[met->come].ticket >= ticket; met->come++) {
            if (!compare || wait->differs ||
                weir_head_equals(&wait->by.head, &hub->ranks[met->come].head))
                continue;
            wait->differs = true;
            wait->deadline_ns = weir_judge_by(wait->deadline_ns);
        }
        if (hub->failed)
            return HUB_FAILED;
        if (met->come == hub->count)
            return HUB_THERE;
        own->awaits = met->come;
        if (*queue_of(hub, met->come, wait->group->rank))
            return HUB_OTHER;
        if (hub->ranks[met->come].left)
            return HUB_LEFT;
        if (!in_time)
            return HUB_LATE;
    }
}

// With the lock: the ranks that wait for each other, from `first` on.
static void describe_circle(struct hub_group *group, uint32_t first)
{
    uint32_t rank = first;
    do {
        const struct hub_rank *hub_rank = &group->hub->ranks[rank];
        struct local_wait wait = {.rank = rank, .awaits = hub_rank->awaits};
        weir_head_describe(&hub_rank->waiting, wait.call);
        local_append_wait(group->circle, &wait);
        rank = hub_rank->awaits;
    } while (rank != first);
}

// A peer that waits itself is not the cause, unless all wait for each other.
static uint32_t local_hub_end_wait(const struct local_run *run, enum hub_outcome outcome)
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

static const struct local_wire hub_wire; // at the end of the wire's functions

struct seat {
    const struct hub *hub;
    uint32_t rank;
};

// What a group's rank waits in, if it does.
static void describe_wait(struct local_group *group, void *text)
{
    if (group->wire != &hub_wire)
        return;
    struct hub *hub = ((struct hub_group *)group)->hub;
    const struct hub_rank *rank = &hub->ranks[group->rank];
    pthread_mutex_lock(&hub->lock);
    if (rank->waits)
        local_describe_elsewhere(group, &rank->waiting, rank->awaits, text);
    pthread_mutex_unlock(&hub->lock);
}

static bool late(const struct local_run *run, uint32_t peer, const struct weir_head *last)
{
    const struct hub_group *own = (const struct hub_group *)run->group;
    const struct seat seat = {own->hub, peer};
    struct local_group group;
    char elsewhere[LOCAL_ELSEWHERE_SIZE] = "";
    if (own->circle[0])
        return local_circle(run, own->circle);
    if (local_find_listed(has_seat, &seat, &group))
        local_for_others(&group, describe_wait, elsewhere);
    return elsewhere[0] ? local_late_elsewhere(run, peer, elsewhere)
                        : weir_caller_late(&run->by, peer, last);
}

// The failure for an outcome that is not HUB_THERE; `head` is the peer's call, if `has_head`.
static bool local_hub_failure(const struct local_run *run, enum hub_outcome outcome, uint32_t peer,
                              bool has_head, const struct weir_head *head)
{
    const struct weir_head *last = has_head ? head : NULL;
    switch (outcome) {
    case HUB_LEFT:
        return weir_caller_gone(&run->by, peer, last);
    case HUB_LATE:
        return late(run, peer, last);
    case HUB_OTHER:
        return weir_caller_agrees(&run->by, peer, head);
    case HUB_THERE:
    case HUB_FAILED:
        break;
    }
    return false;
}

// Waits for all ranks to take the ticket that this one has just taken.
static bool agree(struct local_run *run, uint64_t ticket, bool compare)
{
    struct hub *hub = local_hub_of(run);
    struct local_run wait = *run;
    struct met met = {.hub = hub};
    pthread_mutex_lock(&hub->lock);
    local_hub_begin_wait(run, 0);
    const enum hub_outcome outcome = await_tickets(&wait, ticket, compare, &met);
    const uint32_t cause = local_hub_end_wait(run, outcome);
    struct hub_rank peer = hub->ranks[cause];
    if (outcome == HUB_OTHER)
        peer.head = (*queue_of(hub, cause, run->group->rank))->head;
    pthread_mutex_unlock(&hub->lock);
    if (wait.differs && outcome != HUB_FAILED)
        return weir_caller_judge(&run->by, head_of, &met);
    return outcome == HUB_THERE ||
           local_hub_failure(run, outcome, cause, peer.has_head, &peer.head);
}

static bool hub_meet(struct local_run *run)
{
    struct hub *hub = local_hub_of(run);
    struct hub_rank *own = &hub->ranks[run->group->rank];
    pthread_mutex_lock(&hub->lock);
    own->has_head = true;
    own->head = run->by.head;
    own->src = run->src;
    own->dst = run->dst;
    const uint64_t ticket = ++own->ticket;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    return agree(run, ticket, true);
}

// A copy is cut into such pieces, after each of which a failure is noticed.
#define COPY_BYTES ((size_t)1 << 20)

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
    const size_t count = size / weir_datatype_size(run->by.head.element);
    struct local_piece piece = {.size = 0};
    for (uint32_t owner = 0; owner < hub->count; owner++) {
        local_piece(run, phase, run->group->rank, owner, &piece);
        const char *from = hub->ranks[owner].src + piece.offset + at;
        if (!pin(hub, owner))
            return false;
        if (owner == 0)
            memcpy(run->total, from, size);
        else
            weir_reduce(run->by.head.element, run->by.head.reduction, run->total, from, count);
        unpin(hub, owner);
    }
    if (run->by.head.reduction == WEIR_AVERAGE)
        weir_reduce_divide(run->by.head.element, run->total, count, hub->count);
    memcpy((char *)run->dst + piece.target + at, run->total, size);
    return true;
}

static bool reduce(struct local_run *run, uint32_t phase, size_t size)
{
    for (size_t at = 0; at < size; at += LOCAL_SEGMENT_BYTES) {
        const size_t left = size - at;
        if (!reduce_segment(run, phase, at,
                            left < LOCAL_SEGMENT_BYTES ? left : LOCAL_SEGMENT_BYTES))
            return false;
    }
    return true;
}

static bool read_pieces(struct local_run *run, uint32_t phase)
{
    const uint32_t count = run->group->count;
    const uint32_t own = run->group->rank;
    struct local_piece piece;
    // Each rank begins with another owner, so that not all read the same memory.
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t owner = (own + i) % count;
        if (!local_piece(run, phase, own, owner, &piece))
            continue;
        if (piece.reduced)
            return reduce(run, phase, piece.size);
        if (!copy(run, owner, &piece))
            return false;
    }
    return true;
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

static bool hub_phase(struct local_run *run, uint32_t phase)
{
    return (phase == 0 || next_ticket(run)) && read_pieces(run, phase);
}

// Waits for copies from this rank's memory that are under way; the group has failed.
static void local_hub_drain(const struct local_run *run)
{
    struct hub *hub = local_hub_of(run);
    pthread_mutex_lock(&hub->lock);
    while (hub->ranks[run->group->rank].readers > 0)
        local_hub_wait(hub, UINT64_MAX);
    pthread_mutex_unlock(&hub->lock);
}

static bool hub_end(struct local_run *run)
{
    if (!run->group->wire->cause(run->group, NULL) &&
        (!weir_is_numbered(run->by.head.kind) || next_ticket(run)))
        return true;
    local_hub_drain(run);
    return false;
}

// A part as a call of its own, for comparison and sentences.
static struct local_run message_of(const struct local_run *run,
                                   const struct weir_transport_part *part)
{
    struct local_run message = *run;
    message.by.head.element = part->element;
    message.by.head.count = part->count;
    return message;
}

static void post_all(struct local_run *run, struct hub_post *posts)
{
    struct hub *hub = local_hub_of(run);
    pthread_mutex_lock(&hub->lock);
    for (uint32_t i = 0; i < run->part_count; i++) {
        const struct weir_transport_part *part = local_part_at(run, i);
        if (part->receive)
            continue;
        posts[i] = (struct hub_post){.head = message_of(run, part).by.head, .memory = part->memory};
        struct hub_post **end = queue_of(hub, run->group->rank, part->peer);
        while (*end)
            end = &(*end)->next;
        *end = &posts[i];
    }
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

// Messages within a process: all sends of a call are posted, then its receives copy from the posts of
// others, then the sends wait for their receivers.

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
    const struct weir_head head = hub->ranks[cause].head;
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
    const bool same = weir_caller_agrees(&message.by, part->peer, &post->head);
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

static bool local_hub_messages(struct local_run *run)
{
    const struct weir_host *host = run->group->host;
    struct hub_post *posts = host->allocate((run->part_count + 1) * sizeof *posts);
    if (!posts)
        return weir_caller_fail(&run->by, "rank %u has no host memory left for %u messages",
                                run->group->rank, run->part_count);
    const bool carried = carry(run, posts);
    if (!carried)
        local_hub_drain(run);
    host->release(posts);
    return carried;
}

// A part's ranks meet by a name of the whole group. Both the whole's number and the split's are in the name, and one byte that is in no other name.
static weir_status local_hub_split(struct local_run *run, const struct local_part *part,
                                   struct local_group **out_group)
{
    char name[64];
    if (part->count == 0)
        return WEIR_OK;
    snprintf(name, sizeof name, "\x01%llu.%llu.%d", (unsigned long long)local_hub_of(run)->id,
             (unsigned long long)run->by.head.number, (int)part->color);
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = part->label,
        .rank = part->rank,
        .count = part->count,
        .timeout_ns = run->by.timeout_ns,
    };
    const weir_status status = local_hub_join(run->group->host, &setup, name, out_group);
    if (status == WEIR_OK)
        local_enlist_part(run->group, *out_group);
    return status;
}

static void hub_fail(struct local_group *group, const struct weir_cause *cause)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    pthread_mutex_lock(&hub->lock);
    if (!hub->failed)
        hub->cause = *cause;
    hub->failed = true;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static bool hub_cause(struct local_group *group, struct weir_cause *out_cause)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    pthread_mutex_lock(&hub->lock);
    const bool failed = hub->failed;
    if (failed && out_cause)
        *out_cause = hub->cause;
    pthread_mutex_unlock(&hub->lock);
    return failed;
}

static struct {
    pthread_mutex_t lock; // taken before a hub's
    struct hub *hubs;
    uint64_t made;
} meeting = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

static void unlist(struct hub *hub)
{
    struct hub **link = &meeting.hubs;
    while (*link && *link != hub)
        link = &(*link)->next;
    if (*link)
        *link = hub->next;
}

static void hub_destroy(struct hub *hub)
{
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    hub->host->release(hub->posts);
    hub->host->release(hub->ranks);
    hub->host->release(hub);
}

static void drop(struct hub *hub, uint32_t rank)
{
    pthread_mutex_lock(&meeting.lock);
    unlist(hub);
    pthread_mutex_unlock(&meeting.lock);

    pthread_mutex_lock(&hub->lock);
    hub->ranks[rank].left = true;
    const uint32_t members = --hub->members;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    if (members == 0)
        hub_destroy(hub);
}

static void local_hub_leave(struct local_group *group)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    const struct weir_host *host = group->host;
    local_delist(group);
    drop(hub, group->rank);
    host->release(group);
}

// The ranks of a hub that go on after it has failed: those that come before the last has come, or
// before the first of them loses patience.

// With the lock: whether every rank that has not left has come.
static bool all_have_come(const struct hub *hub)
{
    for (uint32_t i = 0; i < hub->count; i++)
        if (!hub->ranks[i].shrinks && !hub->ranks[i].left)
            return false;
    return true;
}

// With the lock: waits until it is known which ranks go on. False: this one does not.
static bool gather_rest(struct hub *hub, uint32_t rank, uint64_t deadline_ns)
{
    bool in_time = true;
    if (hub->shrunk)
        return hub->ranks[rank].shrinks; // once more, after its group had no memory
    hub->ranks[rank].shrinks = true;
    pthread_cond_broadcast(&hub->changed);
    while (!hub->shrunk && in_time && !all_have_come(hub))
        in_time = local_hub_wait(hub, deadline_ns);
    hub->shrunk = true;
    pthread_cond_broadcast(&hub->changed);
    return true;
}

static uint32_t count_before(const struct hub *hub, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < end; i++)
        count += hub->ranks[i].shrinks;
    return count;
}

static weir_status local_hub_shrink(struct local_group *group,
                                    const struct weir_transport_shrink *shrink,
                                    struct local_group **out_group)
{
    struct hub *hub = ((struct hub_group *)group)->hub;
    char name[64];
    pthread_mutex_lock(&hub->lock);
    const bool goes_on =
        gather_rest(hub, group->rank, weir_clock_now_ns() + local_shrink_patience(shrink));
    const struct weir_transport_setup setup = {
        .struct_size = sizeof setup,
        .label = shrink->label,
        .rank = count_before(hub, group->rank),
        .count = count_before(hub, hub->count),
        .timeout_ns = shrink->timeout_ns,
    };
    pthread_mutex_unlock(&hub->lock);
    if (!goes_on)
        return local_shrink_without(group);
    snprintf(name, sizeof name, "\x01%llu.left", (unsigned long long)hub->id);
    return local_hub_join(group->host, &setup, name, out_group);
}

static const struct local_wire hub_wire = {
    .meet = hub_meet,
    .phase = hub_phase,
    .end = hub_end,
    .messages = local_hub_messages,
    .split = local_hub_split,
    .fail = hub_fail,
    .cause = hub_cause,
    .leave = local_hub_leave,
    .shrink = local_hub_shrink,
};

static bool has_seat(const struct local_group *group, const void *user)
{
    const struct seat *seat = user;
    return group->wire == &hub_wire && group->rank == seat->rank &&
           ((const struct hub_group *)group)->hub == seat->hub;
}

// How the ranks of a process meet: in a list of hubs that are not complete, by name.

#define REMEDY "start as many ranks as the count says, each with a number of its own"

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct hub *hub_create(const struct weir_host *host, const char *name, uint32_t count)
{
    const size_t name_size = strlen(name) + 1;
    struct hub *hub = host->allocate(sizeof *hub + name_size);
    struct hub_rank *ranks = host->allocate(count * sizeof *ranks);
    struct hub_post **posts = host->allocate((size_t)count * count * sizeof *posts);
    if (!hub || !ranks || !posts) {
        host->release(posts);
        host->release(ranks);
        host->release(hub);
        return NULL;
    }
    hub->host = host;
    hub->count = count;
    hub->ranks = ranks;
    hub->posts = posts;
    memcpy(hub->name, name, name_size);
    pthread_mutex_init(&hub->lock, NULL);
    init_condition(&hub->changed);
    return hub;
}

// With the meeting's lock. A hub in which a rank has given up is none.
static struct hub *find(const char *name)
{
    for (struct hub *hub = meeting.hubs; hub; hub = hub->next) {
        if (strcmp(hub->name, name) == 0)
            return hub;
    }
    return NULL;
}

// With the meeting's lock: the hub of that name, or a new one.
static struct hub *obtain(const struct weir_host *host, const char *name, uint32_t count)
{
    struct hub *hub = find(name);
    if (hub)
        return hub;
    hub = hub_create(host, name, count);
    if (!hub)
        return NULL;
    hub->id = ++meeting.made;
    hub->next = meeting.hubs;
    meeting.hubs = hub;
    return hub;
}

// With both locks: why the rank cannot join, or false.
static bool refused(struct hub *hub, const struct weir_transport_setup *setup, char *cause)
{
    uint32_t other = 0;
    while (other < hub->count && !hub->ranks[other].here)
        other++;
    if (setup->count != hub->count) {
        snprintf(cause, WEIR_CAUSE_SIZE,
                 "'%s': rank %u says that there are %u ranks, and rank %u that there are %u",
                 setup->label, setup->rank, setup->count, other, hub->count);
        hub->failed = true;
        memcpy(hub->cause.text, cause, sizeof hub->cause.text);
        pthread_cond_broadcast(&hub->changed);
        return true;
    }
    if (hub->ranks[setup->rank].here)
        snprintf(cause, WEIR_CAUSE_SIZE, "'%s': another rank %u is at process:%s already",
                 setup->label, setup->rank, hub->name);
    return hub->ranks[setup->rank].here;
}

// With the meeting's lock. NULL if it is refused, or, with an empty cause, if no memory is left.
static struct hub *enter(const struct weir_host *host, const struct weir_transport_setup *setup,
                         const char *name, char *cause)
{
    struct hub *hub = obtain(host, name, setup->count);
    if (!hub)
        return NULL;
    pthread_mutex_lock(&hub->lock);
    const bool entered = !refused(hub, setup, cause);
    if (entered) {
        hub->ranks[setup->rank].here = true;
        hub->joined++;
        hub->members++;
    }
    hub->complete = hub->complete || (hub->joined == hub->count && !hub->failed);
    if (hub->joined == hub->count || hub->failed)
        unlist(hub);
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
    return entered ? hub : NULL;
}

// With the hub's lock. Names the first of the ranks that are missing, and how many there are.
static void give_up(struct hub *hub, const struct weir_transport_setup *setup)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    uint32_t missing = 0;
    while (hub->ranks[missing].here)
        missing++;
    snprintf(hub->cause.text, sizeof hub->cause.text,
             "'%s': rank %u has not come to process:%s in %s; %u of %u ranks are there",
             setup->label, missing, hub->name,
             weir_text_duration(duration, (double)setup->timeout_ns), hub->joined, hub->count);
    hub->failed = true;
    pthread_cond_broadcast(&hub->changed);
}

// Waits for all ranks. False with the cause if they do not come; the hub is not listed then. A rank that
// has joined may have failed or left before others wake: they have joined too.
static bool gather(struct hub *hub, const struct weir_transport_setup *setup, char *cause)
{
    const uint64_t now_ns = weir_clock_now_ns();
    const uint64_t deadline_ns =
        setup->timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + setup->timeout_ns;
    pthread_mutex_lock(&hub->lock);
    bool in_time = true;
    while (in_time && !hub->failed && !hub->complete)
        in_time = local_hub_wait(hub, deadline_ns);
    if (!hub->failed && !hub->complete)
        give_up(hub, setup);
    const bool gathered = hub->complete;
    memcpy(cause, hub->cause.text, sizeof hub->cause.text);
    pthread_mutex_unlock(&hub->lock);
    return gathered;
}

weir_status local_hub_join(const struct weir_host *host, const struct weir_transport_setup *setup,
                           const char *name, struct local_group **out_group)
{
    char cause[WEIR_CAUSE_SIZE] = "";
    struct hub_group *group = host->allocate(sizeof *group);
    if (!group)
        return weir_host_no_memory(host, "a group");

    pthread_mutex_lock(&meeting.lock);
    struct hub *hub = enter(host, setup, name, cause);
    pthread_mutex_unlock(&meeting.lock);
    const bool gathered = hub && gather(hub, setup, cause);
    if (!gathered) {
        if (hub)
            drop(hub, setup->rank);
        host->release(group);
        return cause[0] ? weir_host_fail(host, WEIR_ERROR_COMM, REMEDY, "%s", cause)
                        : weir_host_no_memory(host, "a group");
    }
    group->hub = hub;
    group->local = (struct local_group){.wire = &hub_wire,
                                        .host = host,
                                        .rank = setup->rank,
                                        .count = setup->count};
    snprintf(group->local.label, sizeof group->local.label, "%s", setup->label);
    local_enlist(&group->local);
    *out_group = &group->local;
    return WEIR_OK;
}
