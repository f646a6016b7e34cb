// A collective as spans of bytes to and from each peer, and the loop that moves them until a call has all that it
// waits for, and notices meanwhile a rank that has died, has left, or tells of a failure.
#include "transports/local/mesh.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/kit/reduce.h"
#include "transports/local/socket.h"

// Messages: each is a head and its bytes, in the order of the parts of both sides. Between threads of one process a
// large one is a head and the place of its message at the sender, which lends the bytes until they are taken.
#define LENT_BYTES ((size_t)32 << 10)

struct mesh_message {
    struct mesh_message *next; // lent to the same peer
    struct weir_head head;
    struct mesh_span spans[2];
    void *memory;
    size_t size;
    struct mesh_message *at; // at the sender
    atomic_bool taken;
};

static bool local_mesh_pump(struct local_run *run, bool sends);
static void local_mesh_tell_elsewhere(const struct local_run *run, uint32_t awaits);
static bool local_mesh_messages(struct local_run *run);

static void local_mesh_append(struct mesh_list *list, struct mesh_span *span)
{
    if (!list->first)
        list->end = &list->first;
    span->next = NULL;
    *list->end = span;
    list->end = &span->next;
}

static void lend(struct mesh_peer *peer, struct mesh_message *message)
{
    struct mesh_message **end = &peer->lent;
    while (*end)
        end = &(*end)->next;
    *end = message;
}

static bool is_lent(struct mesh_peer *peer)
{
    while (peer->lent && atomic_load(&peer->lent->taken))
        peer->lent = peer->lent->next;
    return peer->lent;
}

static void queue(struct local_run *run, const struct weir_transport_part *part,
                  struct mesh_message *message)
{
    struct mesh_group *group = local_mesh_of(run);
    struct mesh_peer *peer = &group->peers[part->peer];
    struct mesh_list *list = part->receive ? &peer->in : &peer->out;
    message->head = run->by.head;
    message->head.element = part->element;
    message->head.count = part->count;
    message->memory = part->memory;
    message->size = (size_t)part->count * weir_datatype_size(part->element);
    message->at = message;
    message->spans[0] = (struct mesh_span){.at = (char *)&message->head,
                                           .left = sizeof message->head,
                                           .head = part->receive ? &message->head : NULL,
                                           .message = part};
    message->spans[1] = (struct mesh_span){.at = part->memory, .left = message->size};
    if (group->room && message->size >= LENT_BYTES) {
        message->spans[1] = (struct mesh_span){.at = (char *)&message->at,
                                               .left = sizeof message->at,
                                               .lent = part->receive ? message : NULL};
        if (!part->receive)
            lend(peer, message);
    }
    local_mesh_append(list, &message->spans[0]);
    local_mesh_append(list, &message->spans[1]);
}

// A failure is noticed after so many bytes.
#define COPY_BYTES ((size_t)1 << 20)

// Copies what a peer has lent. Only while it is pinned the message is there.
static bool take(struct local_run *run, uint32_t index, struct mesh_message *message)
{
    struct mesh_group *group = local_mesh_of(run);
    struct mesh_message *lent = message->at;
    for (size_t at = 0; at < message->size; at += COPY_BYTES) {
        const size_t left = message->size - at;
        if (!local_window_pin(group, index))
            return local_mesh_lost(run, index);
        memcpy((char *)message->memory + at, (const char *)lent->memory + at,
               left < COPY_BYTES ? left : COPY_BYTES);
        if (left <= COPY_BYTES)
            atomic_store(&lent->taken, true);
        local_window_unpin(group, index);
    }
    local_room_wake(group->room, index);
    return true;
}

static bool was_interrupted(void)
{
    return errno == EAGAIN || errno == EINTR;
}

void local_mesh_take_head(struct local_run *run, uint32_t index, const struct weir_head *head)
{
    struct mesh_peer *peer = &local_mesh_of(run)->peers[index];
    peer->has_come = true;
    if (head->kind != WEIR_CALL_JOIN && weir_is_numbered(head->kind)) {
        peer->head = *head;
        peer->has_head = true;
    }
    if (run->differs || weir_head_equals(&run->by.head, head))
        return;
    run->differs = true;
    run->deadline_ns = weir_judge_by(run->deadline_ns);
}

// A message's number is that of the collective before it.
static bool is_of_the_same_time(const struct local_run *run, uint32_t index,
                                const struct weir_head *head)
{
    char call[WEIR_HEAD_TEXT_SIZE];
    return weir_is_numbered(head->kind) || head->number == run->by.head.number ||
           weir_caller_blame(&run->by, WEIR_FAULT_DIFFERS, UINT32_MAX,
                             "rank %u has called %s after collective %llu, and rank %u after %llu",
                             index, weir_head_describe(head, call),
                             (unsigned long long)head->number, run->group->rank,
                             (unsigned long long)run->by.head.number);
}

static bool message_is_right(const struct local_run *run, uint32_t index,
                             const struct mesh_span *span)
{
    struct local_run message = *run;
    message.by.head.element = span->message->element;
    message.by.head.count = span->message->count;
    return weir_caller_agrees(&message.by, index, span->head) &&
           is_of_the_same_time(run, index, span->head);
}

bool local_mesh_sends_nothing(const struct local_run *run, uint32_t index)
{
    const int data = local_mesh_of(run)->peers[index].data;
    struct weir_head head;
    return index == run->group->rank ||
           recv(data, &head, sizeof head, MSG_PEEK) != (ssize_t)sizeof head ||
           weir_caller_agrees(&run->by, index, &head);
}

// Receives what is there. `*moved` becomes true if that is anything.
static bool receive(struct local_run *run, uint32_t index, bool *moved)
{
    struct mesh_peer *peer = &local_mesh_of(run)->peers[index];
    struct mesh_span *span = peer->in.first;
    while (span) {
        const ssize_t got = span->left > 0 ? recv(peer->data, span->at, span->left, 0) : 0;
        if (got < 0 && was_interrupted())
            return true;
        if (got <= 0 && span->left > 0)
            return local_mesh_lost(run, index);
        *moved = true;
        span->at += got;
        span->left -= (size_t)got;
        if (span->left > 0)
            continue;
        peer->in.first = span->next;
        if (span->head && span->message && !message_is_right(run, index, span))
            return false;
        if (span->head && !span->message)
            local_mesh_take_head(run, index, span->head);
        if (span->lent && !take(run, index, span->lent))
            return false;
        span = peer->in.first;
    }
    return true;
}

static bool transmit(struct local_run *run, uint32_t index, bool *moved)
{
    struct mesh_peer *peer = &local_mesh_of(run)->peers[index];
    struct mesh_span *span = peer->out.first;
    while (span) {
        const ssize_t sent =
            span->left > 0 ? send(peer->data, span->at, span->left, MSG_NOSIGNAL) : 0;
        if (sent < 0 && was_interrupted())
            return true;
        // What it has said before it went may tell more.
        if (sent < 0)
            return receive(run, index, moved) && local_mesh_lost(run, index);
        *moved = true;
        span->at += sent;
        span->left -= (size_t)sent;
        if (span->left > 0)
            continue;
        span = span->next;
        peer->out.first = span;
    }
    return true;
}

static bool is_busy(struct mesh_peer *peer, bool sends)
{
    return peer->in.first || (sends && (peer->out.first || is_lent(peer)));
}

// A rank whose peers are about to come asks again for so long before it sleeps: being woken takes
// longer than most messages do. Only where each rank may have a processor of its own.
#define EAGER_NS (UINT64_C(50) * 1000)

static bool is_eager(const struct mesh_group *group, uint64_t *until_ns)
{
    if (!group->eager)
        return false;
    const uint64_t now_ns = weir_clock_now_ns();
    if (*until_ns == 0)
        *until_ns = now_ns + EAGER_NS;
    sched_yield();
    return now_ns < *until_ns;
}

static void local_mesh_send_news(struct mesh_group *group, uint32_t index,
                                 const struct mesh_news *news)
{
    pthread_mutex_lock(&group->lock);
    if (!group->failed && group->peers[index].control >= 0)
        (void)!send(group->peers[index].control, news, sizeof *news, MSG_NOSIGNAL);
    pthread_mutex_unlock(&group->lock);
}

// For whom this rank waits, if it does, and in what.
static void say_wait(const struct local_run *run, uint32_t index)
{
    struct mesh_group *group = local_mesh_of(run);
    struct mesh_news news = {.kind = MESH_WAITS, .number = group->awaits};
    weir_head_describe(&run->by.head, news.cause.text);
    local_mesh_send_news(group, index, &news);
}

static void await(const struct local_run *run, uint32_t index)
{
    struct mesh_group *group = local_mesh_of(run);
    if (index == group->awaits)
        return;
    group->awaits = index;
    for (uint32_t i = 0; i < group->local.count; i++)
        if (group->peers[i].asks)
            say_wait(run, i);
}

// The first peer that this rank still waits for.
static uint32_t first_busy(struct mesh_group *group, bool sends)
{
    uint32_t index = 0;
    while (index + 1 < group->local.count && !is_busy(&group->peers[index], sends))
        index++;
    return index;
}

// A rank whose time is nearly over asks the others for whom they wait: such a part of the timeout before its
// end, at most so long.
#define ASK_PART 2
#define MOST_ASK_NS (UINT64_C(1000) * 1000 * 1000)

// When the others are asked.
static uint64_t ask_at(const struct local_run *run)
{
    const uint64_t part_ns = run->by.timeout_ns / ASK_PART;
    return run->deadline_ns - (part_ns < MOST_ASK_NS ? part_ns : MOST_ASK_NS);
}

static const struct weir_head *head_of(const void *user, uint32_t rank)
{
    const struct mesh_peer *peer = &((const struct mesh_group *)user)->peers[rank];
    return peer->has_come ? &peer->incoming : NULL;
}

// Whether the heads of a collective that have come are the same; fails the group if not.
static bool local_mesh_judge(const struct local_run *run)
{
    return weir_caller_judge(&run->by, head_of, run->group);
}

// Of the ranks that wait for each other, from `first` on.
static bool fail_in_circle(const struct local_run *run, uint32_t first)
{
    const struct mesh_group *group = local_mesh_of(run);
    char waits[WEIR_CAUSE_SIZE] = "";
    uint32_t rank = first;
    do {
        const bool own = rank == group->local.rank;
        struct local_wait wait = {.rank = rank,
                                  .awaits = own ? group->awaits : group->peers[rank].awaits};
        if (own)
            weir_head_describe(&run->by.head, wait.call);
        else
            memcpy(wait.call, group->peers[rank].waits_in, sizeof wait.call);
        local_append_wait(waits, &wait);
        rank = wait.awaits;
    } while (rank != first);
    return local_circle(run, waits);
}

static const struct weir_head *last_of(const struct mesh_peer *peer)
{
    return peer->has_head ? &peer->head : NULL;
}

// The deadline has passed. A peer that waits itself is not the cause, unless all wait for each other.
static bool give_up(const struct local_run *run)
{
    const struct mesh_group *group = local_mesh_of(run);
    if (run->differs)
        return local_mesh_judge(run);
    const uint32_t first = group->awaits;
    uint32_t index = first;
    for (uint32_t n = 0; n < group->local.count && group->peers[index].awaits < group->local.count;
         n++)
        index = group->peers[index].awaits;
    const bool asked = group->asked_ns == run->deadline_ns;
    if (asked && (index == group->local.rank || group->peers[index].awaits < group->local.count))
        return fail_in_circle(run, index);
    if (!asked || group->peers[index].awaits != MESH_NONE)
        index = first;
    if (group->peers[index].elsewhere[0])
        return local_late_elsewhere(run, index, group->peers[index].elsewhere);
    return weir_caller_late(&run->by, index, last_of(&group->peers[index]));
}

// Sends news to the control connection of one peer, unless the group has failed.
static void local_mesh_say(struct mesh_group *group, uint32_t index, enum mesh_news_kind kind,
                           uint32_t number)
{
    local_mesh_send_news(group, index, &(struct mesh_news){.kind = kind, .number = number});
}

static void ask_all(struct local_run *run)
{
    struct mesh_group *group = local_mesh_of(run);
    group->asked_ns = run->deadline_ns;
    for (uint32_t i = 0; i < group->local.count; i++) {
        group->peers[i].awaits = MESH_NONE;
        if (!group->peers[i].left)
            local_mesh_say(group, i, MESH_ASKS, 1);
    }
}

static bool mesh_meet(struct local_run *run)
{
    struct mesh_group *group = local_mesh_of(run);
    local_enlist(&group->local);
    for (uint32_t i = 0; i < group->local.count; i++)
        group->peers[i].has_come = false;
    if (local_window_takes(run))
        return local_window_meet(run) && (!run->differs || local_mesh_judge(run));
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct mesh_peer *peer = &group->peers[i];
        if (i == group->local.rank)
            continue;
        peer->spans[0] =
            (struct mesh_span){.at = (char *)&run->by.head, .left = sizeof run->by.head};
        peer->spans[1] = (struct mesh_span){.at = (char *)&peer->incoming,
                                            .left = sizeof peer->incoming,
                                            .head = &peer->incoming};
        local_mesh_append(&peer->out, &peer->spans[0]);
        local_mesh_append(&peer->in, &peer->spans[1]);
    }
    return local_mesh_pump(run, true) && (!run->differs || local_mesh_judge(run));
}

static char *memory_of(const struct local_run *run, const struct local_piece *piece)
{
    return (piece->of_result ? (char *)run->dst : (char *)(uintptr_t)run->src) + piece->offset;
}

static void send_pieces(struct local_run *run, uint32_t phase)
{
    struct mesh_group *group = local_mesh_of(run);
    struct local_piece piece;
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct mesh_peer *peer = &group->peers[i];
        if (i == group->local.rank || !local_piece(run, phase, i, group->local.rank, &piece))
            continue;
        struct mesh_span *span = &peer->spans[phase == 0 ? 0 : 2];
        *span = (struct mesh_span){.at = memory_of(run, &piece), .left = piece.size};
        local_mesh_append(&peer->out, span);
    }
}

static bool local_mesh_stage(struct local_run *run)
{
    struct mesh_group *group = local_mesh_of(run);
    if (!group->staging)
        group->staging = group->local.host->allocate(group->local.count * group->segment);
    if (!group->staging)
        return weir_caller_fail(&run->by, "rank %u has no host memory left for %zu bytes",
                                group->local.rank, group->local.count * group->segment);
    return true;
}

// `size` bytes from `at` on of each rank's piece go to its segment of the staging memory.
static bool fetch_segment(struct local_run *run, uint32_t phase, size_t at, size_t size)
{
    struct mesh_group *group = local_mesh_of(run);
    struct local_piece piece;
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct mesh_peer *peer = &group->peers[i];
        char *to = group->staging + i * group->segment;
        local_piece(run, phase, group->local.rank, i, &piece);
        if (i == group->local.rank) {
            memcpy(to, memory_of(run, &piece) + at, size);
            continue;
        }
        peer->spans[1] = (struct mesh_span){.at = to, .left = size};
        local_mesh_append(&peer->in, &peer->spans[1]);
    }
    return local_mesh_pump(run, false);
}

static bool reduce_segment(struct local_run *run, uint32_t phase, size_t at, size_t size)
{
    struct mesh_group *group = local_mesh_of(run);
    const size_t count = size / weir_datatype_size(run->by.head.element);
    struct local_piece piece;
    if (!fetch_segment(run, phase, at, size))
        return false;
    for (uint32_t i = 1; i < group->local.count; i++)
        weir_reduce(run->by.head.element, run->by.head.reduction, group->staging,
                    group->staging + i * group->segment, count);
    if (run->by.head.reduction == WEIR_AVERAGE)
        weir_reduce_divide(run->by.head.element, group->staging, count, group->local.count);
    local_piece(run, phase, group->local.rank, group->local.rank, &piece);
    memcpy((char *)run->dst + piece.target + at, group->staging, size);
    return true;
}

static bool reduce(struct local_run *run, uint32_t phase, size_t size)
{
    const struct mesh_group *group = local_mesh_of(run);
    if (!local_mesh_stage(run))
        return false;
    for (size_t at = 0; at < size; at += group->segment) {
        const size_t left = size - at;
        if (!reduce_segment(run, phase, at, left < group->segment ? left : group->segment))
            return false;
    }
    return true;
}

static bool mesh_phase(struct local_run *run, uint32_t phase)
{
    struct mesh_group *group = local_mesh_of(run);
    const uint32_t own = group->local.rank;
    struct local_piece piece;
    if (local_window_takes(run))
        return local_window_phase(run, phase);
    send_pieces(run, phase);
    if (local_piece(run, phase, own, own, &piece) && piece.reduced)
        return reduce(run, phase, piece.size);
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct mesh_peer *peer = &group->peers[i];
        if (!local_piece(run, phase, own, i, &piece))
            continue;
        char *to = (char *)run->dst + piece.target;
        if (i == own && to != memory_of(run, &piece))
            memcpy(to, memory_of(run, &piece), piece.size);
        if (i == own)
            continue;
        peer->spans[3] = (struct mesh_span){.at = to, .left = piece.size};
        local_mesh_append(&peer->in, &peer->spans[3]);
    }
    return local_mesh_pump(run, false);
}

// The end of a call: nothing is asked any more.
static void local_mesh_stop_asking(struct mesh_group *group)
{
    for (uint32_t i = 0; i < group->local.count && group->asked_ns; i++)
        if (!group->peers[i].left)
            local_mesh_say(group, i, MESH_ASKS, 0);
    group->asked_ns = 0;
}

// After a failure the lists name memory of the caller's, and nothing is ever moved again.
static bool mesh_end(struct local_run *run)
{
    struct mesh_group *group = local_mesh_of(run);
    const bool ended = !run->group->wire->cause(run->group, NULL) && local_window_end(run) &&
                       local_mesh_pump(run, true);
    local_mesh_stop_asking(group);
    if (ended)
        local_mesh_tell_elsewhere(run, MESH_NONE);
    if (ended)
        return true;
    for (uint32_t i = 0; i < group->local.count; i++) {
        group->peers[i].in.first = NULL;
        group->peers[i].out.first = NULL;
    }
    local_window_close(group);
    return false;
}

static void tell(struct mesh_group *group, const struct mesh_news *news)
{
    for (uint32_t i = 0; i < group->local.count; i++) {
        // It fits, for a rank sends little there before a failure, and after it. Ranks that are gone need no
        // news.
        if (group->peers[i].control >= 0)
            (void)!send(group->peers[i].control, news, sizeof *news, MSG_NOSIGNAL);
    }
}

static void mesh_fail(struct local_group *local, const struct weir_cause *cause)
{
    const struct mesh_news news = {.kind = MESH_FAILED, .cause = *cause};
    struct mesh_group *group = (struct mesh_group *)local;
    const uint64_t one = 1;
    if (local_mesh_is_inherited(group))
        return;
    pthread_mutex_lock(&group->lock);
    if (!group->failed) {
        group->cause = *cause;
        group->failed = true;
        tell(group, &news);
        (void)!write(group->wake, &one, sizeof one);
        local_window_wake(group);
    }
    pthread_mutex_unlock(&group->lock);
}

static bool mesh_cause(struct local_group *local, struct weir_cause *out_cause)
{
    struct mesh_group *group = (struct mesh_group *)local;
    // Another thread of the parent may have had the lock.
    if (local_mesh_is_inherited(group)) {
        struct weir_cause cause = {.rank = UINT32_MAX};
        snprintf(cause.text, sizeof cause.text,
                 "'%s': a child of fork() has no connections of rank %u", local->label,
                 local->rank);
        if (out_cause)
            *out_cause = cause;
        return true;
    }
    pthread_mutex_lock(&group->lock);
    const bool failed = group->failed;
    if (failed && out_cause)
        *out_cause = group->cause;
    pthread_mutex_unlock(&group->lock);
    return failed;
}

static void mesh_leave(struct local_group *local)
{
    struct mesh_group *group = (struct mesh_group *)local;
    if (!local_mesh_is_inherited(group))
        tell(group, &(struct mesh_news){.kind = MESH_LEAVES});
    local_mesh_destroy(group);
}

const struct local_wire local_mesh_wire = {
    .meet = mesh_meet,
    .phase = mesh_phase,
    .end = mesh_end,
    .messages = local_mesh_messages,
    .offer = local_mesh_offer,
    .split = local_mesh_split,
    .fail = mesh_fail,
    .cause = mesh_cause,
    .leave = mesh_leave,
    .shrink = local_mesh_shrink,
};

// Of the rank's other group.
static void say_elsewhere(struct local_group *local, void *user)
{
    struct mesh_group *group = (struct mesh_group *)local;
    for (uint32_t i = 0; local->wire == &local_mesh_wire && i < local->count; i++)
        local_mesh_send_news(group, i, user);
}

// In the other groups of this rank: it waits here for `awaits`; MESH_NONE: no longer.
static void local_mesh_tell_elsewhere(const struct local_run *run, uint32_t awaits)
{
    struct mesh_group *group = local_mesh_of(run);
    struct mesh_news news = {.kind = MESH_ELSEWHERE};
    if (awaits == MESH_NONE && !group->elsewhere)
        return;
    if (awaits != MESH_NONE)
        local_describe_elsewhere(run->group, &run->by.head, awaits, news.cause.text);
    group->elsewhere = awaits != MESH_NONE;
    local_for_others(&group->local, say_elsewhere, &news);
}

bool local_mesh_may_wait(struct local_run *run, uint32_t first)
{
    const struct mesh_group *group = local_mesh_of(run);
    const uint64_t now_ns = weir_clock_now_ns();
    await(run, first);
    if (now_ns >= run->deadline_ns)
        return give_up(run);
    if (now_ns >= ask_at(run) && group->asked_ns != run->deadline_ns)
        ask_all(run);
    if (group->asked_ns == run->deadline_ns && !group->elsewhere)
        local_mesh_tell_elsewhere(run, group->awaits);
    return true;
}

// A peer that comes to a collective in its window wakes no other one, so a rank that waits for messages looks there.
#define LOOK_NS (UINT64_C(5) * 1000 * 1000)

// Sleeps until something can be done. Each peer has two entries, and the last one wakes.
static bool rest(struct local_run *run, bool sends)
{
    struct mesh_group *group = local_mesh_of(run);
    const size_t count = group->local.count;
    const bool has_asked = group->asked_ns == run->deadline_ns;
    struct weir_head head;
    uint64_t woken;
    const uint32_t first = first_busy(group, sends);
    await(run, first);
    const bool is_ahead = local_window_is_ahead(group, first, &head);
    for (size_t i = 0; i < count; i++) {
        const struct mesh_peer *peer = &group->peers[i];
        const short events =
            (short)((peer->in.first ? POLLIN : 0) | (peer->out.first ? POLLOUT : 0));
        group->polls[2 * i] = (struct pollfd){.fd = events ? peer->data : -1, .events = events};
        group->polls[2 * i + 1] =
            (struct pollfd){.fd = peer->left ? -1 : peer->control, .events = POLLIN};
    }
    group->polls[2 * count] = (struct pollfd){.fd = group->wake, .events = POLLIN};
    const uint64_t until_ns = has_asked ? run->deadline_ns : ask_at(run);
    poll(group->polls, 2 * count + 1,
         local_poll_ms(group->windows ? local_sooner(until_ns, weir_clock_now_ns() + LOOK_NS)
                                      : until_ns));
    if (group->polls[2 * count].revents)
        (void)!read(group->wake, &woken, sizeof woken);
    for (uint32_t i = 0; i < count; i++) {
        if (group->polls[2 * i + 1].revents && !local_mesh_read_news(run, i))
            return false;
        if (group->peers[i].left && is_lent(&group->peers[i]))
            return local_mesh_lost(run, i);
    }
    // What it has sent was there before.
    if (is_ahead && !group->polls[2 * first].revents && is_busy(&group->peers[first], sends))
        return weir_caller_agrees(&run->by, first, &head);
    return local_mesh_may_wait(run, first);
}

static bool pump(struct local_run *run, bool sends)
{
    struct mesh_group *group = local_mesh_of(run);
    uint64_t eager_until_ns = 0; // 0: something has just moved
    for (;;) {
        bool moved = false;
        bool busy = false;
        for (uint32_t i = 0; i < group->local.count; i++) {
            if (!transmit(run, i, &moved) || !receive(run, i, &moved))
                return false;
            busy = busy || is_busy(&group->peers[i], sends);
        }
        if (run->group->wire->cause(run->group, NULL))
            return false;
        if (!busy)
            return true;
        if (moved)
            eager_until_ns = 0;
        else if (!is_eager(group, &eager_until_ns) && !rest(run, sends))
            return false;
    }
}

void local_mesh_wait_ends(const struct local_run *run)
{
    await(run, MESH_NONE);
}

// Sends and receives until all that is to be received is there, and with `sends` all is sent.
static bool local_mesh_pump(struct local_run *run, bool sends)
{
    const bool moved = pump(run, sends);
    await(run, MESH_NONE);
    return moved;
}

static bool local_mesh_messages(struct local_run *run)
{
    const struct weir_host *host = run->group->host;
    local_enlist(run->group);
    struct mesh_message *messages = host->allocate((run->part_count + 1) * sizeof *messages);
    if (!messages)
        return weir_caller_fail(&run->by, "rank %u has no host memory left for %u messages",
                                run->group->rank, run->part_count);
    for (uint32_t i = 0; i < run->part_count; i++)
        queue(run, local_part_at(run, i), &messages[i]);
    const bool carried = local_mesh_pump(run, true);
    local_mesh_stop_asking(local_mesh_of(run));
    if (carried)
        local_mesh_tell_elsewhere(run, MESH_NONE);
    else
        local_window_close(local_mesh_of(run));
    for (uint32_t i = 0; i < run->group->count; i++)
        local_mesh_of(run)->peers[i].lent = NULL;
    host->release(messages);
    return carried;
}

// How long the control connection of a peer may take to say why the other one has ended.
#define VERDICT_NS (UINT64_C(500) * 1000 * 1000)

struct mesh_group *local_mesh_of(const struct local_run *run)
{
    return (struct mesh_group *)run->group;
}

static bool take_news(const struct local_run *run, uint32_t index)
{
    struct mesh_group *group = local_mesh_of(run);
    struct mesh_peer *peer = &group->peers[index];
    switch (peer->news.kind) {
    case MESH_LEAVES:
        peer->left = true;
        return true;
    case MESH_ASKS:
        peer->asks = peer->news.number != 0;
        if (peer->asks)
            say_wait(run, index);
        return true;
    case MESH_WAITS:
        peer->awaits = peer->news.number;
        peer->news.cause.text[WEIR_HEAD_TEXT_SIZE - 1] = '\0';
        weir_text_escape(peer->waits_in, sizeof peer->waits_in, peer->news.cause.text, "");
        return true;
    case MESH_ELSEWHERE:
        peer->news.cause.text[LOCAL_ELSEWHERE_SIZE - 1] = '\0';
        weir_text_escape(peer->elsewhere, sizeof peer->elsewhere, peer->news.cause.text, "");
        return true;
    default:
        if (!peer->news.cause.text[0]) // would be told as a lack of memory
            return weir_caller_fail(&run->by, "rank %u has failed, and has not said why", index);
        const struct weir_cause heard = weir_cause_heard(&peer->news.cause, group->local.count);
        run->group->wire->fail(run->group, &heard);
        return false;
    }
}

bool local_mesh_next_news(struct mesh_peer *peer)
{
    while (!peer->left) {
        const ssize_t got = recv(peer->control, (char *)&peer->news + peer->news_size,
                                 sizeof peer->news - peer->news_size, 0);
        if (got < 0 && was_interrupted())
            return false;
        peer->left = peer->died = got <= 0;
        peer->news_size += got > 0 ? (size_t)got : 0;
        if (peer->news_size < sizeof peer->news)
            continue;
        peer->news_size = 0;
        return true;
    }
    return false;
}

bool local_mesh_read_news(const struct local_run *run, uint32_t index)
{
    struct mesh_peer *peer = &local_mesh_of(run)->peers[index];
    for (int n = 0; n < MESH_MOST_NEWS && local_mesh_next_news(peer); n++)
        if (!take_news(run, index))
            return false;
    return true;
}

// The connection for data has ended, and the one for control says why. If it has only left, what it has called before
// may.
bool local_mesh_lost(const struct local_run *run, uint32_t index)
{
    struct mesh_peer *peer = &local_mesh_of(run)->peers[index];
    const uint64_t deadline_ns = weir_clock_now_ns() + VERDICT_NS;
    while (!peer->left && weir_clock_now_ns() < deadline_ns) {
        struct pollfd control = {.fd = peer->control, .events = POLLIN};
        poll(&control, 1, local_poll_ms(deadline_ns));
        if (!local_mesh_read_news(run, index))
            return false;
    }
    if (run->differs && !local_mesh_judge(run))
        return false;
    return peer->left && !peer->died ? weir_caller_gone(&run->by, index, last_of(peer))
                                     : weir_caller_died(&run->by, index, last_of(peer));
}

// For the segments of all ranks together, and the least for each.
#define STAGING_BYTES ((size_t)8 << 20)
#define LEAST_SEGMENT ((size_t)8 << 10)

static size_t segment_for(uint32_t count)
{
    const size_t share = STAGING_BYTES / count & ~(size_t)63;
    if (share < LEAST_SEGMENT)
        return LEAST_SEGMENT;
    return share < LOCAL_SEGMENT_BYTES ? share : LOCAL_SEGMENT_BYTES;
}

struct mesh_group *local_mesh_create(const struct weir_host *host, const char *label, uint32_t rank,
                                     uint32_t count)
{
    struct mesh_group *group = host->allocate(sizeof *group);
    if (!group)
        return NULL;
    group->local =
        (struct local_group){.wire = &local_mesh_wire, .host = host, .rank = rank, .count = count};
    snprintf(group->local.label, sizeof group->local.label, "%s", label);
    pthread_mutex_init(&group->lock, NULL);
    group->segment = segment_for(count);
    group->eager = (long)count <= sysconf(_SC_NPROCESSORS_ONLN);
    group->awaits = MESH_NONE;
    group->wake = local_descriptor_event();
    group->forks = local_descriptor_forks();
    group->peers = host->allocate(count * sizeof *group->peers);
    group->polls = host->allocate((2 * (size_t)count + 1) * sizeof *group->polls);
    for (uint32_t i = 0; group->peers && i < count; i++) {
        group->peers[i].data = -1;
        group->peers[i].control = -1;
        group->peers[i].awaits = MESH_NONE;
    }
    if (!group->peers || !group->polls || group->wake < 0) {
        local_mesh_destroy(group);
        return NULL;
    }
    return group;
}

bool local_mesh_is_inherited(const struct mesh_group *group)
{
    return group->forks != local_descriptor_forks();
}

static void close_all(struct mesh_group *group)
{
    for (uint32_t i = 0; group->peers && i < group->local.count; i++) {
        local_close(&group->peers[i].data);
        local_close(&group->peers[i].control);
    }
    local_mesh_door_close(group, group->door);
    local_close(&group->wake);
    local_window_destroy(group);
    pthread_mutex_destroy(&group->lock);
}

// A child has no mappings of the windows either.
void local_mesh_destroy(struct mesh_group *group)
{
    const struct weir_host *host = group->local.host;
    if (!local_mesh_is_inherited(group))
        local_delist(&group->local);
    if (!local_mesh_is_inherited(group))
        close_all(group);
    else
        host->release(group->windows);
    host->release(group->staging);
    host->release(group->polls);
    host->release(group->peers);
    host->release(group);
}
