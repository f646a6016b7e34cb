// Connects the ranks of a group, each with each, when all know where the others listen; and parts of a
// group, whose ranks have told that in the split.
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "transports/local/share.h"
#include "transports/local/tcp_gather.h"
#include "transports/local/window.h"

// A connection that says nothing for so long is none of ours.
#define GREETING_NS (UINT64_C(2000) * 1000 * 1000)

enum {
    DATA = 1,
    CONTROL = 2
};

struct greeting {
    uint64_t token; // of the group
    uint32_t rank;
    uint32_t purpose;
};

static int *place_of(struct tcp_peer *peer, uint32_t purpose)
{
    return purpose == DATA ? &peer->data : &peer->control;
}

// The higher rank connects to the lower one.
static bool connect_to(struct tcp_group *group, uint32_t index, const struct local_address *address,
                       uint64_t token, uint64_t deadline_ns)
{
    struct tcp_peer *peer = &group->peers[index];
    peer->address = *address;
    for (uint32_t purpose = DATA; purpose <= CONTROL; purpose++) {
        const struct greeting greeting = {.token = token,
                                          .rank = group->local.rank,
                                          .purpose = purpose};
        int *place = place_of(peer, purpose);
        *place = local_connect(address, false, deadline_ns);
        if (*place < 0 || !local_write_all(*place, &greeting, sizeof greeting, deadline_ns))
            return false;
    }
    return true;
}

static bool is_expected(const struct tcp_group *group, const struct greeting *greeting,
                        uint64_t token)
{
    return greeting->token == token && greeting->rank > group->local.rank &&
           greeting->rank < group->local.count && greeting->purpose >= DATA &&
           greeting->purpose <= CONTROL &&
           *place_of(&group->peers[greeting->rank], greeting->purpose) < 0;
}

// Takes one connection; a stranger's is closed. False at the deadline, or if the wait is in vain.
static bool accept_one(struct tcp_group *group, int listener, uint64_t token, uint64_t deadline_ns,
                       struct tcp_gather *gather, uint32_t *left)
{
    struct local_address from;
    struct greeting greeting;
    if (gather && !local_tcp_gather_await(gather, listener, deadline_ns))
        return false;
    int accepted = local_accept(listener, deadline_ns, &from);
    if (accepted < 0)
        return false;
    if (!local_read_all(accepted, &greeting, sizeof greeting,
                        local_sooner(deadline_ns, weir_clock_now_ns() + GREETING_NS)) ||
        !is_expected(group, &greeting, token)) {
        local_close(&accepted);
        return true;
    }
    group->peers[greeting.rank].address = from;
    *place_of(&group->peers[greeting.rank], greeting.purpose) = accepted;
    *left -= 1;
    return true;
}

static uint32_t first_missing(const struct tcp_group *group)
{
    uint32_t index = group->local.rank + 1;
    while (index + 1 < group->local.count && group->peers[index].control >= 0)
        index++;
    return index;
}

bool local_tcp_connect(struct tcp_group *group, const struct local_address *addresses, int listener,
                       uint64_t token, uint64_t deadline_ns, struct tcp_gather *gather, char *cause)
{
    char host[LOCAL_HOST_SIZE];
    for (uint32_t i = 0; i < group->local.rank; i++) {
        if (connect_to(group, i, &addresses[i], token, deadline_ns))
            continue;
        local_address_text(&addresses[i], host, sizeof host);
        snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': rank %u cannot connect to rank %u at %s: %s",
                 group->local.label, group->local.rank, i, host, strerror(errno));
        return false;
    }
    uint32_t left = 2 * (group->local.count - 1 - group->local.rank);
    while (left > 0) {
        if (accept_one(group, listener, token, deadline_ns, gather, &left))
            continue;
        if (errno == ECANCELED)
            return false;
        if (errno == ETIMEDOUT)
            snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': rank %u has not connected to rank %u in time",
                     group->local.label, first_missing(group), group->local.rank);
        else
            snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': rank %u cannot take a connection: %s",
                     group->local.label, group->local.rank, strerror(errno));
        return false;
    }
    return true;
}

bool local_tcp_begin(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns,
                     char *cause)
{
    if (local_share_agree(group, timeout_ns, deadline_ns) &&
        (!group->shares || local_window_agree(group, timeout_ns, deadline_ns)))
        return true;
    group->local.wire->failed(&group->local, cause);
    return false;
}

bool local_tcp_own_address(const struct tcp_group *group, struct local_address *out_address)
{
    for (uint32_t i = 0; i < group->local.count; i++) {
        out_address->size = sizeof out_address->address;
        if (group->peers[i].data >= 0)
            return getsockname(group->peers[i].data, (struct sockaddr *)&out_address->address,
                               &out_address->size) == 0;
    }
    const char *error = NULL;
    return local_address_find("127.0.0.1", 0, out_address, &error);
}

bool local_tcp_offer(struct local_run *run, struct local_record *record)
{
    struct tcp_group *group = local_tcp_of(run);
    struct local_address address;
    uint16_t port = 0;
    struct weir_siphash_key key;
    if (!local_tcp_own_address(group, &address))
        return local_fail(run, "rank %u has no address: %s", group->local.rank, strerror(errno));
    local_address_set_port(&address, 0);
    group->listener = local_listen(address, group->any, &port);
    if (group->listener < 0)
        return local_fail(run, "rank %u cannot listen for its part: %s", group->local.rank,
                          strerror(errno));
    weir_siphash_random_key(&key);
    record->token = key.words[0];
    record->port = port;
    return true;
}

static bool connect_part(struct tcp_group *group, const struct tcp_group *whole,
                         const struct local_part *part, uint64_t deadline_ns, char *cause)
{
    const struct weir_host *host = group->local.host;
    struct local_address *addresses = host->allocate(part->count * sizeof *addresses);
    if (!addresses)
        return false;
    for (uint32_t i = 0; i < part->rank; i++) {
        addresses[i] = whole->peers[part->members[i]].address;
        local_address_set_port(&addresses[i], (uint16_t)part->records[part->members[i]].port);
    }
    const uint64_t token = part->records[part->members[0]].token;
    const bool connected =
        local_tcp_connect(group, addresses, whole->listener, token, deadline_ns, NULL, cause);
    host->release(addresses);
    return connected;
}

weir_status local_tcp_split(struct local_run *run, const struct local_part *part,
                            struct local_group **out_group)
{
    struct tcp_group *whole = local_tcp_of(run);
    const struct weir_host *host = whole->local.host;
    char cause[LOCAL_CAUSE_SIZE] = "";
    struct tcp_group *group = NULL;
    bool connected = part->count == 0;
    if (!connected)
        group = local_tcp_create(host, part->label, part->rank, part->count);
    if (group) {
        group->any = whole->any;
        group->reads_memory = whole->reads_memory;
        group->maps_memory = whole->maps_memory;
        connected = connect_part(group, whole, part, run->deadline_ns, cause) &&
                    local_tcp_begin(group, run->timeout_ns, run->deadline_ns, cause);
    }
    local_close(&whole->listener);
    if (connected) {
        *out_group = group ? &group->local : NULL;
        return WEIR_OK;
    }
    if (group)
        local_tcp_destroy(group);
    return cause[0] ? weir_host_fail(host, WEIR_ERROR_COMM, NULL, "%s", cause)
                    : weir_host_no_memory(host, "a part of a group");
}
