// Moves bytes until a call has all that it waits for, and notices meanwhile a rank that has died, has
// left, or tells of a failure.
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/local/tcp.h"

// How long the control connection of a peer may take to say why the other one has ended.
#define VERDICT_NS (UINT64_C(500) * 1000 * 1000)

// A rank whose time is nearly over asks the others for whom they wait: such a part of the timeout before its
// end, at most so long.
#define ASK_PART 2
#define MOST_ASK_NS (UINT64_C(1000) * 1000 * 1000)

// A rank whose peers are about to come asks again for so long before it sleeps: being woken takes
// longer than most messages do. Only where each rank may have a processor of its own.
#define EAGER_NS (UINT64_C(50) * 1000)

struct tcp_group *local_tcp_of(const struct local_run *run)
{
    return (struct tcp_group *)run->group;
}

void local_tcp_append(struct tcp_list *list, struct tcp_span *span)
{
    if (!list->first)
        list->end = &list->first;
    span->next = NULL;
    *list->end = span;
    list->end = &span->next;
}

static const struct local_head *last_of(const struct tcp_peer *peer)
{
    return peer->has_head ? &peer->head : NULL;
}

// What another process says of a failure.
static void take_failure(const struct local_run *run, struct tcp_news *news)
{
    struct local_cause cause = news->cause;
    news->cause.text[LOCAL_CAUSE_SIZE - 1] = '\0';
    weir_text_escape(cause.text, sizeof cause.text, news->cause.text, "");
    if (cause.fault > WEIR_FAULT_ABORTED)
        cause.fault = WEIR_FAULT_OTHER;
    if (cause.rank >= run->group->count)
        cause.rank = UINT32_MAX;
    run->group->wire->fail(run->group, &cause);
}

// For whom this rank waits, if it does, and in what.
static void say_wait(const struct local_run *run, uint32_t index)
{
    struct tcp_group *group = local_tcp_of(run);
    struct tcp_news news = {.kind = TCP_WAITS, .number = group->awaits};
    local_describe(&run->head, news.cause.text, LOCAL_CALL_SIZE);
    local_tcp_send_news(group, index, &news);
}

static bool take_news(const struct local_run *run, uint32_t index)
{
    struct tcp_group *group = local_tcp_of(run);
    struct tcp_peer *peer = &group->peers[index];
    switch (peer->news.kind) {
    case TCP_LEAVES:
        peer->left = true;
        return true;
    case TCP_ASKS:
        peer->asks = peer->news.number != 0;
        if (peer->asks)
            say_wait(run, index);
        return true;
    case TCP_WAITS:
        peer->awaits = peer->news.number;
        peer->news.cause.text[LOCAL_CALL_SIZE - 1] = '\0';
        weir_text_escape(peer->waits_in, sizeof peer->waits_in, peer->news.cause.text, "");
        return true;
    case TCP_ELSEWHERE:
        peer->news.cause.text[LOCAL_ELSEWHERE_SIZE - 1] = '\0';
        weir_text_escape(peer->elsewhere, sizeof peer->elsewhere, peer->news.cause.text, "");
        return true;
    default:
        if (!peer->news.cause.text[0]) // would be told as a lack of memory
            return local_fail(run, "rank %u has failed, and has not said why", index);
        take_failure(run, &peer->news);
        return false;
    }
}

bool local_tcp_read_news(const struct local_run *run, uint32_t index)
{
    struct tcp_peer *peer = &local_tcp_of(run)->peers[index];
    for (int pieces = 0; !peer->left && pieces < TCP_MOST_PIECES; pieces++) {
        const ssize_t got = recv(peer->control, (char *)&peer->news + peer->news_size,
                                 sizeof peer->news - peer->news_size, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (got <= 0) {
            peer->left = true;
            peer->died = true;
            return true;
        }
        peer->news_size += (size_t)got;
        if (peer->news_size < sizeof peer->news)
            continue;
        peer->news_size = 0;
        if (!take_news(run, index))
            return false;
    }
    return true;
}

// The connection for data has ended, and the one for control says why. If it has only left, what it has called before
// may.
bool local_tcp_lost(const struct local_run *run, uint32_t index)
{
    struct tcp_peer *peer = &local_tcp_of(run)->peers[index];
    const uint64_t deadline_ns = weir_clock_now_ns() + VERDICT_NS;
    while (!peer->left && weir_clock_now_ns() < deadline_ns) {
        struct pollfd control = {.fd = peer->control, .events = POLLIN};
        poll(&control, 1, local_poll_ms(deadline_ns));
        if (!local_tcp_read_news(run, index))
            return false;
    }
    if (run->differs && !local_tcp_judge(run))
        return false;
    return peer->left && !peer->died ? local_gone(run, index, last_of(peer))
                                     : local_died(run, index, last_of(peer));
}

// A collective's head that is another one is judged when all are there.
static bool head_is_right(struct local_run *run, uint32_t index, const struct tcp_span *span)
{
    struct tcp_peer *peer = &local_tcp_of(run)->peers[index];
    struct local_run message = *run;
    span->head->file[LOCAL_FILE_SIZE - 1] = '\0';
    if (local_is_numbered(span->head->kind) && span->head->kind != LOCAL_MEETING) {
        peer->head = *span->head;
        peer->has_head = true;
    }
    if (span->message) {
        message.head.element = span->message->element;
        message.head.count = span->message->count;
        return local_same(&message, index, span->head);
    }
    if (!run->differs && !local_is_same(&run->head, span->head)) {
        run->differs = true;
        run->deadline_ns = local_judge_by(run->deadline_ns);
    }
    return true;
}

static bool was_interrupted(void)
{
    return errno == EAGAIN || errno == EINTR;
}

// Receives what is there. `*moved` becomes true if that is anything.
static bool receive(struct local_run *run, uint32_t index, bool *moved)
{
    struct tcp_peer *peer = &local_tcp_of(run)->peers[index];
    struct tcp_span *span = peer->in.first;
    while (span) {
        const ssize_t got = span->left > 0 ? recv(peer->data, span->at, span->left, 0) : 0;
        if (got < 0 && was_interrupted())
            return true;
        if (got <= 0 && span->left > 0)
            return local_tcp_lost(run, index);
        *moved = true;
        span->at += got;
        span->left -= (size_t)got;
        if (span->left > 0)
            continue;
        peer->in.first = span->next;
        if (span->head && !head_is_right(run, index, span))
            return false;
        span = peer->in.first;
    }
    return true;
}

static bool transmit(struct local_run *run, uint32_t index, bool *moved)
{
    struct tcp_peer *peer = &local_tcp_of(run)->peers[index];
    struct tcp_span *span = peer->out.first;
    while (span) {
        const ssize_t sent =
            span->left > 0 ? send(peer->data, span->at, span->left, MSG_NOSIGNAL) : 0;
        if (sent < 0 && was_interrupted())
            return true;
        // What it has said before it went may tell more.
        if (sent < 0)
            return receive(run, index, moved) && local_tcp_lost(run, index);
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

static bool is_busy(const struct tcp_peer *peer, bool sends)
{
    return peer->in.first || (sends && peer->out.first);
}

// The first peer that this rank still waits for.
static uint32_t first_busy(const struct tcp_group *group, bool sends)
{
    uint32_t index = 0;
    while (index + 1 < group->local.count && !is_busy(&group->peers[index], sends))
        index++;
    return index;
}

// When the others are asked.
static uint64_t ask_at(const struct local_run *run)
{
    const uint64_t part_ns = run->timeout_ns / ASK_PART;
    return run->deadline_ns - (part_ns < MOST_ASK_NS ? part_ns : MOST_ASK_NS);
}

static void ask_all(struct local_run *run)
{
    struct tcp_group *group = local_tcp_of(run);
    group->asked_ns = run->deadline_ns;
    for (uint32_t i = 0; i < group->local.count; i++) {
        group->peers[i].awaits = TCP_NONE;
        if (!group->peers[i].left)
            local_tcp_say(group, i, TCP_ASKS, 1);
    }
}

void local_tcp_stop_asking(struct tcp_group *group)
{
    for (uint32_t i = 0; i < group->local.count && group->asked_ns; i++)
        if (!group->peers[i].left)
            local_tcp_say(group, i, TCP_ASKS, 0);
    group->asked_ns = 0;
}

static void await(const struct local_run *run, uint32_t index)
{
    struct tcp_group *group = local_tcp_of(run);
    if (index == group->awaits)
        return;
    group->awaits = index;
    for (uint32_t i = 0; i < group->local.count; i++)
        if (group->peers[i].asks)
            say_wait(run, i);
}

static const struct local_head *head_of(const struct local_met *met, uint32_t rank)
{
    const struct tcp_peer *peer = &local_tcp_of(met->run)->peers[rank];
    return peer->in.first ? NULL : &peer->incoming;
}

bool local_tcp_judge(const struct local_run *run)
{
    return local_judge(&(struct local_met){.run = run, .head_of = head_of});
}

// Of the ranks that wait for each other, from `first` on.
static bool fail_in_circle(const struct local_run *run, uint32_t first)
{
    const struct tcp_group *group = local_tcp_of(run);
    char waits[LOCAL_CAUSE_SIZE] = "";
    uint32_t rank = first;
    do {
        const bool own = rank == group->local.rank;
        struct local_wait wait = {.rank = rank,
                                  .awaits = own ? group->awaits : group->peers[rank].awaits};
        if (own)
            local_describe(&run->head, wait.call, sizeof wait.call);
        else
            memcpy(wait.call, group->peers[rank].waits_in, sizeof wait.call);
        local_append_wait(waits, &wait);
        rank = wait.awaits;
    } while (rank != first);
    return local_circle(run, waits);
}

// The deadline has passed. A peer that waits itself is not the cause, unless all wait for each other.
static bool give_up(const struct local_run *run)
{
    const struct tcp_group *group = local_tcp_of(run);
    if (run->differs)
        return local_tcp_judge(run);
    const uint32_t first = group->awaits;
    uint32_t index = first;
    for (uint32_t n = 0; n < group->local.count && group->peers[index].awaits < group->local.count;
         n++)
        index = group->peers[index].awaits;
    const bool asked = group->asked_ns == run->deadline_ns;
    if (asked && (index == group->local.rank || group->peers[index].awaits < group->local.count))
        return fail_in_circle(run, index);
    if (!asked || group->peers[index].awaits != TCP_NONE)
        index = first;
    if (group->peers[index].elsewhere[0])
        return local_late_elsewhere(run, index, group->peers[index].elsewhere);
    return local_late(run, index, last_of(&group->peers[index]));
}

static bool may_go_on(struct local_run *run)
{
    const struct tcp_group *group = local_tcp_of(run);
    const uint64_t now_ns = weir_clock_now_ns();
    if (now_ns >= run->deadline_ns)
        return give_up(run);
    if (now_ns >= ask_at(run) && group->asked_ns != run->deadline_ns)
        ask_all(run);
    if (group->asked_ns == run->deadline_ns && !group->elsewhere)
        local_tcp_tell_elsewhere(run, group->awaits);
    return true;
}

// Sleeps until something can be done. Each peer has two entries, and the last one wakes.
static bool rest(struct local_run *run, bool sends)
{
    struct tcp_group *group = local_tcp_of(run);
    const size_t count = group->local.count;
    const bool has_asked = group->asked_ns == run->deadline_ns;
    await(run, first_busy(group, sends));
    for (size_t i = 0; i < count; i++) {
        const struct tcp_peer *peer = &group->peers[i];
        const short events =
            (short)((peer->in.first ? POLLIN : 0) | (peer->out.first ? POLLOUT : 0));
        group->polls[2 * i] = (struct pollfd){.fd = events ? peer->data : -1, .events = events};
        group->polls[2 * i + 1] =
            (struct pollfd){.fd = peer->left ? -1 : peer->control, .events = POLLIN};
    }
    group->polls[2 * count] = (struct pollfd){.fd = group->wake, .events = POLLIN};
    poll(group->polls, 2 * count + 1, local_poll_ms(has_asked ? run->deadline_ns : ask_at(run)));
    for (uint32_t i = 0; i < count; i++) {
        if (group->polls[2 * i + 1].revents && !local_tcp_read_news(run, i))
            return false;
    }
    return may_go_on(run);
}

static bool is_eager(const struct tcp_group *group, uint64_t *until_ns)
{
    if (!group->eager)
        return false;
    const uint64_t now_ns = weir_clock_now_ns();
    if (*until_ns == 0)
        *until_ns = now_ns + EAGER_NS;
    sched_yield();
    return now_ns < *until_ns;
}

static bool pump(struct local_run *run, bool sends)
{
    struct tcp_group *group = local_tcp_of(run);
    char cause[LOCAL_CAUSE_SIZE];
    uint64_t eager_until_ns = 0; // 0: something has just moved
    for (;;) {
        bool moved = false;
        bool busy = false;
        for (uint32_t i = 0; i < group->local.count; i++) {
            if (!transmit(run, i, &moved) || !receive(run, i, &moved))
                return false;
            busy = busy || is_busy(&group->peers[i], sends);
        }
        if (run->group->wire->failed(run->group, cause))
            return false;
        if (!busy)
            return true;
        if (moved)
            eager_until_ns = 0;
        else if (!is_eager(group, &eager_until_ns) && !rest(run, sends))
            return false;
    }
}

bool local_tcp_pump(struct local_run *run, bool sends)
{
    const bool moved = pump(run, sends);
    await(run, TCP_NONE);
    return moved;
}
