#include "transports/local/tcp_gather.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/siphash.h"

static uint32_t own_rank(const struct tcp_gather *gather)
{
    return gather->whole->local.rank;
}

static bool has_told(const struct tcp_gather *gather, uint32_t rank)
{
    const struct tcp_peer *peer = &gather->whole->peers[rank];
    return gather->awaited[rank] && !peer->left && peer->told_step == gather->whole->step;
}

// One that is at a later step tells nothing in this one any more.
static bool may_tell(const struct tcp_gather *gather, uint32_t rank)
{
    const struct tcp_peer *peer = &gather->whole->peers[rank];
    return rank != own_rank(gather) && gather->awaited[rank] && !peer->left &&
           peer->told_step < gather->whole->step;
}

static bool all_have_told(const struct tcp_gather *gather)
{
    uint32_t rank = 0;
    while (rank < gather->whole->local.count && !may_tell(gather, rank))
        rank++;
    return rank == gather->whole->local.count;
}

// The rank that gathers.
static uint32_t first_that_has_told(const struct tcp_gather *gather)
{
    uint32_t rank = 0;
    while (rank < own_rank(gather) && !has_told(gather, rank))
        rank++;
    return rank;
}

// Reads the list that follows a SETTLED. One of an earlier step is passed on by another rank, late; one
// of a later step has been settled without this rank.
static void read_list(struct tcp_gather *gather, struct tcp_peer *peer)
{
    const struct tcp_news *news = &peer->news;
    struct tcp_member *list = gather->spare;
    // One that stops within its list must not keep this rank from what the others say.
    const uint64_t until_ns =
        local_sooner(gather->deadline_ns, weir_clock_now_ns() + gather->patience_ns);
    if (news->number > gather->whole->local.count ||
        !local_read_all(peer->control, list, news->number * sizeof *list, until_ns)) {
        peer->left = peer->died = true;
        return;
    }
    if (news->step < gather->whole->step)
        return;
    gather->spare = gather->members;
    gather->members = list;
    gather->count = news->step == gather->whole->step ? news->number : 0;
    gather->token = news->value;
    gather->settled = true;
}

// Reads what a peer has said, up to a list.
static void listen_to(struct tcp_gather *gather, struct tcp_peer *peer)
{
    for (int pieces = 0; !peer->left && !gather->settled && pieces < TCP_MOST_PIECES; pieces++) {
        const ssize_t got = recv(peer->control, (char *)&peer->news + peer->news_size,
                                 sizeof peer->news - peer->news_size, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        peer->news_size += got > 0 ? (size_t)got : 0;
        if (got > 0 && peer->news_size < sizeof peer->news)
            continue;
        peer->news_size = 0;
        if (got <= 0 || peer->news.kind == TCP_LEAVES) {
            peer->left = true;
            peer->died = got <= 0;
        } else if (peer->news.kind == TCP_TELLS) {
            peer->told_step = peer->news.step;
            peer->told = peer->news.value;
        } else if (peer->news.kind == TCP_SETTLED) {
            read_list(gather, peer);
        }
    }
}

void local_tcp_gather_polls(const struct tcp_gather *gather, struct pollfd *polls)
{
    const struct tcp_group *whole = gather->whole;
    for (uint32_t i = 0; i < whole->local.count; i++)
        polls[i] = (struct pollfd){.fd = whole->peers[i].left ? -1 : whole->peers[i].control,
                                   .events = POLLIN};
}

void local_tcp_gather_listen(struct tcp_gather *gather, const struct pollfd *polls)
{
    for (uint32_t i = 0; i < gather->whole->local.count; i++)
        if (polls[i].revents)
            listen_to(gather, &gather->whole->peers[i]);
}

// Sleeps until a peer says something, at most until the deadline.
static void hear(struct tcp_gather *gather, uint64_t deadline_ns)
{
    struct pollfd *polls = gather->whole->polls;
    local_tcp_gather_polls(gather, polls);
    if (poll(polls, gather->whole->local.count, local_poll_ms(deadline_ns)) > 0)
        local_tcp_gather_listen(gather, polls);
}

static void make_list(struct tcp_gather *gather)
{
    const struct tcp_group *whole = gather->whole;
    struct weir_siphash_key key;
    gather->count = 0;
    for (uint32_t i = 0; i < whole->local.count; i++)
        if (i == own_rank(gather) || has_told(gather, i))
            gather->members[gather->count++] =
                (struct tcp_member){.rank = i, .value = whole->peers[i].told};
    weir_siphash_random_key(&key);
    gather->token = key.words[0];
    gather->settled = true;
}

// To all ranks, with a list of the step or without. One that has died meanwhile is found later.
static void send_to_all(struct tcp_gather *gather, const struct tcp_news *news,
                        const struct tcp_member *list, uint32_t count)
{
    const uint64_t until_ns =
        local_sooner(gather->deadline_ns, weir_clock_now_ns() + gather->patience_ns);
    for (uint32_t i = 0; i < gather->whole->local.count; i++) {
        const struct tcp_peer *peer = &gather->whole->peers[i];
        if (i != own_rank(gather) && !peer->left &&
            local_write_all(peer->control, news, sizeof *news, until_ns) && count > 0)
            (void)local_write_all(peer->control, list, count * sizeof *list, until_ns);
    }
}

static void pass_on(struct tcp_gather *gather)
{
    const struct tcp_news news = {.kind = TCP_SETTLED,
                                  .number = gather->count,
                                  .value = gather->token,
                                  .step = gather->whole->step};
    send_to_all(gather, &news, gather->members, gather->count);
}

bool local_tcp_gather_create(struct tcp_gather *gather)
{
    const struct weir_host *host = gather->whole->local.host;
    const size_t count = gather->whole->local.count;
    gather->awaited = host->allocate(count * sizeof *gather->awaited);
    gather->members = host->allocate(count * sizeof *gather->members);
    gather->spare = host->allocate(count * sizeof *gather->spare);
    return gather->awaited && gather->members && gather->spare;
}

void local_tcp_gather_destroy(struct tcp_gather *gather)
{
    const struct weir_host *host = gather->whole->local.host;
    host->release(gather->spare);
    host->release(gather->members);
    host->release(gather->awaited);
}

void local_tcp_gather_begin(struct tcp_gather *gather)
{
    for (uint32_t i = 0; i < gather->whole->local.count; i++)
        gather->awaited[i] = true;
    gather->whole->step = (gather->whole->step + 1) | 1;
    gather->settled = false;
}

void local_tcp_gather_begin_second(struct tcp_gather *gather)
{
    memset(gather->awaited, 0, gather->whole->local.count * sizeof *gather->awaited);
    for (uint32_t i = 0; i < gather->count; i++)
        if (gather->members[i].rank < gather->whole->local.count)
            gather->awaited[gather->members[i].rank] = true;
    gather->whole->step++;
    gather->settled = false;
}

void local_tcp_gather_tell(struct tcp_gather *gather, uint64_t value)
{
    const struct tcp_news news = {.kind = TCP_TELLS, .value = value, .step = gather->whole->step};
    gather->whole->peers[own_rank(gather)].told = value;
    send_to_all(gather, &news, NULL, 0);
}

bool local_tcp_gather_settle(struct tcp_gather *gather)
{
    const uint32_t own = own_rank(gather);
    const uint64_t patient_until_ns = weir_clock_now_ns() + gather->patience_ns;
    uint32_t gathers = UINT32_MAX;
    uint64_t until_ns = 0;
    hear(gather, 0);
    while (!gather->settled) {
        const uint64_t now_ns = weir_clock_now_ns();
        const uint32_t first = first_that_has_told(gather);
        if (now_ns >= gather->deadline_ns)
            return false;
        if (first != gathers)
            until_ns = first == own ? patient_until_ns : now_ns + 2 * gather->patience_ns;
        gathers = first;
        if (first == own && (now_ns >= until_ns || all_have_told(gather)))
            make_list(gather);
        else if (now_ns >= until_ns)
            gather->awaited[first] = false;
        else
            hear(gather, local_sooner(until_ns, gather->deadline_ns));
    }
    pass_on(gather);
    return true;
}

// Or all is settled without this one.
bool local_tcp_gather_is_in_vain(struct tcp_gather *gather)
{
    gather->in_vain = gather->settled;
    for (uint32_t i = 0; i < gather->whole->local.count && !gather->in_vain; i++) {
        const struct tcp_peer *peer = &gather->whole->peers[i];
        gather->in_vain = i != own_rank(gather) && gather->awaited[i] &&
                          (peer->left || (has_told(gather, i) && peer->told != TCP_JOINED));
    }
    return gather->in_vain;
}
