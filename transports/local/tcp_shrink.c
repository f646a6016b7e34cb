// The ranks that go on after a group between processes has failed. Each listens, and tells the first
// rank that has not gone, over its control connection, where. That one gathers: when all have come
// that are there, or its patience is at an end, it sends the list to all, also to those that are
// not in it. If it goes meanwhile, or says nothing, the next one gathers. Each list is sent once, so
// a rank that reads one knows whether the others have gone on without it.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "transports/local/share.h"
#include "transports/local/tcp.h"

struct shrink {
    struct tcp_group *whole;
    const struct weir_transport_shrink *params;
    uint64_t deadline_ns;
    int listener;
    uint16_t port;
    uint64_t token;
    uint32_t count;             // of members
    struct tcp_member *members; // room for all ranks of the whole
    uint32_t *ports;            // that each rank has told; 0: it has not come
    bool *gone;                 // ranks that are not waited for
};

enum verdict {
    SHRINK_WAITS,
    SHRINK_NEXT, // the rank that gathers has gone
    SHRINK_DONE
};

static weir_status fail(const struct shrink *shrink, const char *what)
{
    return weir_host_fail(shrink->whole->local.host, WEIR_ERROR_SYSTEM, NULL,
                          "'%s': rank %u %s: %s", shrink->params->label, shrink->whole->local.rank,
                          what, strerror(errno));
}

// Reads the list that follows a GOES_ON.
static enum verdict take_list(struct shrink *shrink, struct tcp_peer *peer)
{
    if (peer->news.number > shrink->whole->local.count ||
        !local_read_all(peer->control, shrink->members, peer->news.number * sizeof *shrink->members,
                        shrink->deadline_ns))
        return SHRINK_NEXT;
    shrink->count = peer->news.number;
    shrink->token = peer->news.token;
    return SHRINK_DONE;
}

// Reads what a peer has said. The news of the failure are known.
static enum verdict listen_to(struct shrink *shrink, uint32_t index)
{
    struct tcp_peer *peer = &shrink->whole->peers[index];
    while (!shrink->gone[index]) {
        const ssize_t got = recv(peer->control, (char *)&peer->news + peer->news_size,
                                 sizeof peer->news - peer->news_size, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return SHRINK_WAITS;
        peer->news_size += got > 0 ? (size_t)got : 0;
        if (got > 0 && peer->news_size < sizeof peer->news)
            continue;
        peer->news_size = 0;
        if (got <= 0 || peer->news.kind == TCP_LEAVES)
            peer->left = shrink->gone[index] = true;
        else if (peer->news.kind == TCP_COMES)
            shrink->ports[index] = peer->news.number;
        else if (peer->news.kind == TCP_GOES_ON)
            return take_list(shrink, peer);
    }
    return SHRINK_NEXT;
}

// Sleeps until a peer says something, at most until the deadline, and hears it.
static enum verdict hear(struct shrink *shrink, uint64_t deadline_ns)
{
    struct tcp_group *whole = shrink->whole;
    enum verdict verdict = SHRINK_WAITS;
    for (uint32_t i = 0; i < whole->local.count; i++)
        whole->polls[i] =
            (struct pollfd){.fd = shrink->gone[i] ? -1 : whole->peers[i].control, .events = POLLIN};
    poll(whole->polls, whole->local.count, local_poll_ms(deadline_ns));
    for (uint32_t i = 0; i < whole->local.count && verdict != SHRINK_DONE; i++)
        if (whole->polls[i].revents)
            verdict = listen_to(shrink, i);
    return verdict;
}

// The rank that gathers.
static uint32_t first_left(const struct shrink *shrink)
{
    uint32_t index = 0;
    while (index < shrink->whole->local.rank && shrink->gone[index])
        index++;
    return index;
}

static bool all_have_come(const struct shrink *shrink)
{
    for (uint32_t i = 0; i < shrink->whole->local.count; i++)
        if (!shrink->gone[i] && !shrink->ports[i])
            return false;
    return true;
}

static void send_list(const struct shrink *shrink)
{
    const struct tcp_group *whole = shrink->whole;
    const struct tcp_news news = {.kind = TCP_GOES_ON,
                                  .number = shrink->count,
                                  .token = shrink->token};
    for (uint32_t i = 0; i < whole->local.count; i++) {
        const int control = whole->peers[i].control;
        if (i == whole->local.rank || whole->peers[i].left)
            continue;
        // One that has died meanwhile is found when it does not connect.
        if (local_write_all(control, &news, sizeof news, shrink->deadline_ns))
            (void)local_write_all(control, shrink->members, shrink->count * sizeof *shrink->members,
                                  shrink->deadline_ns);
    }
}

static enum verdict gather(struct shrink *shrink)
{
    const uint64_t until_ns = weir_clock_now_ns() + local_shrink_patience(shrink->params);
    struct weir_siphash_key key;
    while (!all_have_come(shrink) && weir_clock_now_ns() < until_ns)
        if (hear(shrink, until_ns) == SHRINK_DONE)
            return SHRINK_DONE; // an earlier one had gathered before it went
    for (uint32_t i = 0; i < shrink->whole->local.count; i++)
        if (!shrink->gone[i] && shrink->ports[i])
            shrink->members[shrink->count++] = (struct tcp_member){i, shrink->ports[i]};
    weir_siphash_random_key(&key);
    shrink->token = key.words[0];
    send_list(shrink);
    return SHRINK_DONE;
}

// Comes to the rank that gathers, and waits for its list.
static enum verdict come_to(struct shrink *shrink, uint32_t index)
{
    const struct tcp_news news = {.kind = TCP_COMES, .number = shrink->port};
    const uint64_t until_ns = weir_clock_now_ns() + shrink->params->timeout_ns / 2;
    enum verdict verdict = SHRINK_WAITS;
    if (!local_write_all(shrink->whole->peers[index].control, &news, sizeof news, until_ns))
        return SHRINK_NEXT;
    while (verdict != SHRINK_DONE && !shrink->gone[index] && weir_clock_now_ns() < until_ns)
        verdict = hear(shrink, until_ns);
    return verdict == SHRINK_DONE ? SHRINK_DONE : SHRINK_NEXT;
}

static void find_members(struct shrink *shrink)
{
    const uint32_t own = shrink->whole->local.rank;
    enum verdict verdict = SHRINK_NEXT;
    for (uint32_t i = 0; i < shrink->whole->local.count; i++)
        shrink->gone[i] = i != own && shrink->whole->peers[i].left;
    shrink->ports[own] = shrink->port;
    while (verdict != SHRINK_DONE && hear(shrink, 0) != SHRINK_DONE) {
        const uint32_t index = first_left(shrink);
        verdict = index == own ? gather(shrink) : come_to(shrink, index);
        if (verdict == SHRINK_NEXT)
            shrink->gone[index] = true;
    }
}

static uint32_t own_member(const struct shrink *shrink)
{
    uint32_t index = 0;
    while (index < shrink->count && shrink->members[index].rank != shrink->whole->local.rank)
        index++;
    return index;
}

static bool connect_members(const struct shrink *shrink, struct tcp_group *group, char *cause)
{
    const struct tcp_group *whole = shrink->whole;
    const struct weir_host *host = whole->local.host;
    struct local_address *addresses = host->allocate(shrink->count * sizeof *addresses);
    if (!addresses)
        return false;
    for (uint32_t i = 0; i < group->local.rank; i++) {
        const struct tcp_member *member = &shrink->members[i];
        if (member->rank < whole->local.count)
            addresses[i] = whole->peers[member->rank].address;
        local_address_set_port(&addresses[i], (uint16_t)member->port);
    }
    group->any = whole->any;
    group->reads_memory = whole->reads_memory;
    group->maps_memory = whole->maps_memory;
    const bool connected =
        local_tcp_connect(group, addresses, shrink->listener, shrink->token, shrink->deadline_ns,
                          cause) &&
        local_tcp_begin(group, shrink->params->timeout_ns, shrink->deadline_ns, cause);
    host->release(addresses);
    return connected;
}

static weir_status go_on(const struct shrink *shrink, struct local_group **out_group)
{
    const struct weir_host *host = shrink->whole->local.host;
    const uint32_t rank = own_member(shrink);
    char cause[LOCAL_CAUSE_SIZE] = "";
    if (rank == shrink->count)
        return local_shrink_without(&shrink->whole->local);
    struct tcp_group *group = local_tcp_create(host, shrink->params->label, rank, shrink->count);
    if (group && connect_members(shrink, group, cause)) {
        *out_group = &group->local;
        return WEIR_OK;
    }
    if (group)
        local_tcp_destroy(group);
    return cause[0]
               ? weir_host_fail(host, WEIR_ERROR_COMM, "shrink the communicator again", "%s", cause)
               : weir_host_no_memory(host, "a group");
}

static weir_status open_listener(struct shrink *shrink)
{
    struct local_address address;
    if (!local_tcp_own_address(shrink->whole, &address))
        return fail(shrink, "has no address");
    local_address_set_port(&address, 0);
    shrink->listener = local_listen(address, shrink->whole->any, &shrink->port);
    return shrink->listener >= 0 ? WEIR_OK : fail(shrink, "cannot listen");
}

weir_status local_tcp_shrink(struct local_group *group, const struct weir_transport_shrink *params,
                             struct local_group **out_group)
{
    const struct weir_host *host = group->host;
    const uint64_t now_ns = weir_clock_now_ns();
    struct shrink shrink = {
        .whole = (struct tcp_group *)group,
        .params = params,
        .deadline_ns =
            params->timeout_ns > UINT64_MAX / 4 ? UINT64_MAX / 2 : now_ns + 2 * params->timeout_ns,
        .listener = -1,
        .members = host->allocate(group->count * sizeof *shrink.members),
        .ports = host->allocate(group->count * sizeof *shrink.ports),
        .gone = host->allocate(group->count * sizeof *shrink.gone),
    };
    weir_status status = shrink.members && shrink.ports && shrink.gone
                             ? open_listener(&shrink)
                             : weir_host_no_memory(host, "a group");
    if (status == WEIR_OK) {
        find_members(&shrink);
        status = go_on(&shrink, out_group);
    }
    local_close(&shrink.listener);
    host->release(shrink.gone);
    host->release(shrink.ports);
    host->release(shrink.members);
    return status;
}
