// Connects the ranks of a group, each with each, when all know where the others' doors are; and parts of a
// group, whose ranks have told that in the split.
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "transports/local/tcp_gather.h"
#include "transports/local/window.h"

static int *place_of(struct tcp_peer *peer, uint32_t purpose)
{
    return purpose == LOCAL_TO_SEND ? &peer->data : &peer->control;
}

// The higher rank connects to the lower one.
static bool connect_to(struct tcp_group *group, uint32_t index, const struct local_address *address,
                       uint64_t token, uint64_t deadline_ns)
{
    struct tcp_peer *peer = &group->peers[index];
    peer->address = *address;
    for (uint32_t purpose = LOCAL_TO_SEND; purpose <= LOCAL_TO_CONTROL; purpose++) {
        struct local_hello hello = {.purpose = purpose, .token = token, .rank = group->local.rank};
        int *place = place_of(peer, purpose);
        *place = local_knock(address, &group->secret, &hello, deadline_ns);
        if (*place < 0)
            return false;
    }
    return true;
}

static bool is_expected(const struct tcp_group *group, const struct local_hello *hello,
                        uint64_t token)
{
    return hello->token == token && hello->rank > group->local.rank &&
           hello->rank < group->local.count && hello->purpose >= LOCAL_TO_SEND &&
           hello->purpose <= LOCAL_TO_CONTROL &&
           *place_of(&group->peers[hello->rank], hello->purpose) < 0;
}

// Takes one connection; one that is not expected is closed. False with errno: ETIMEDOUT, ECANCELED if the wait is in vain.
static bool accept_one(struct tcp_group *group, struct local_door *door, uint64_t token,
                       uint64_t deadline_ns, struct tcp_gather *gather, struct pollfd *polls,
                       uint32_t *left)
{
    struct local_address from;
    struct local_hello hello;
    int connection = -1;
    const uint32_t others = gather ? gather->whole->local.count : 0;
    errno = ECANCELED;
    if (gather && local_tcp_gather_is_in_vain(gather))
        return false;
    if (gather)
        local_tcp_gather_polls(gather, polls);
    switch (local_door_next(door, polls, others, deadline_ns, &hello, &connection, &from)) {
    case LOCAL_CAME:
        break;
    case LOCAL_CAME_OTHER:
        local_tcp_gather_listen(gather, polls);
        return true;
    case LOCAL_CAME_LATE:
        errno = ETIMEDOUT;
        return false;
    default:
        return false;
    }
    if (!is_expected(group, &hello, token)) {
        local_close(&connection);
        return true;
    }
    group->peers[hello.rank].address = from;
    *place_of(&group->peers[hello.rank], hello.purpose) = connection;
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

static bool accept_higher(struct tcp_group *group, struct local_door *door, uint64_t token,
                          uint64_t deadline_ns, struct tcp_gather *gather, char *cause)
{
    const struct weir_host *host = group->local.host;
    const size_t others = gather ? gather->whole->local.count : 0;
    uint32_t left = 2 * (group->local.count - 1 - group->local.rank);
    struct pollfd *polls = left > 0 ? host->allocate((others + DOOR_POLLS) * sizeof *polls) : NULL;
    errno = ECANCELED; // without a cause, memory is what lacks
    while (polls && left > 0 && accept_one(group, door, token, deadline_ns, gather, polls, &left))
        continue;
    const int error = errno;
    host->release(polls);
    if (left == 0)
        return true;
    if (error == ETIMEDOUT)
        snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': rank %u has not connected to rank %u in time",
                 group->local.label, first_missing(group), group->local.rank);
    else if (error != ECANCELED)
        snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': rank %u cannot take a connection: %s",
                 group->local.label, group->local.rank, strerror(error));
    return false;
}

bool local_tcp_connect(struct tcp_group *group, const struct local_address *addresses,
                       struct local_door *door, uint64_t token, uint64_t deadline_ns,
                       struct tcp_gather *gather, char *cause)
{
    char host[LOCAL_HOST_SIZE];
    for (uint32_t i = 0; i < group->local.rank; i++) {
        if (connect_to(group, i, &addresses[i], token, deadline_ns))
            continue;
        const int error = errno;
        local_address_text(&addresses[i], host, sizeof host);
        snprintf(cause, LOCAL_CAUSE_SIZE, "'%s': rank %u cannot connect to rank %u at %s: %s",
                 group->local.label, group->local.rank, i, host, strerror(error));
        return false;
    }
    return accept_higher(group, door, token, deadline_ns, gather, cause);
}

bool local_tcp_all_gather(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns,
                          const void *record, size_t size, void *records)
{
    struct local_run run = {
        .group = &group->local,
        .head = {.kind = LOCAL_MEETING, .element = WEIR_U8, .count = size},
        .src = record,
        .dst = records,
        .timeout_ns = timeout_ns,
        .deadline_ns = deadline_ns,
    };
    return local_carry(&run);
}

// Ranks of one machine have its connections with each other.
static bool spans_machines(const struct tcp_group *group)
{
    uint32_t i = 0;
    while (i < group->local.count &&
           (i == group->local.rank || local_address_is_machine(&group->peers[i].address)))
        i++;
    return i < group->local.count;
}

bool local_tcp_begin(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns,
                     char *cause)
{
    group->local.spans_machines = spans_machines(group);
    if (group->local.spans_machines || local_window_agree(group, timeout_ns, deadline_ns))
        return true;
    group->local.wire->failed(&group->local, cause);
    return false;
}

// On the network it is at the address by which a peer is reached. Where there is no way to it any more, ranks of this
// machine need none.
struct local_door *local_tcp_door(const struct tcp_group *group)
{
    struct local_door *door = group->local.host->allocate(sizeof *door);
    struct local_address own = {.size = 0};
    uint32_t peer = 0;
    while (peer < group->local.count &&
           (peer == group->local.rank || local_address_is_machine(&group->peers[peer].address)))
        peer++;
    errno = ENOMEM;
    if (!door)
        return NULL;
    local_door_init(door, &group->secret);
    if (peer < group->local.count && !local_address_toward(&group->peers[peer].address, &own))
        own.size = 0;
    if (local_door_open(door, &own))
        return door;
    const int error = errno;
    local_tcp_door_close(group, door);
    errno = error;
    return NULL;
}

void local_tcp_door_close(const struct tcp_group *group, struct local_door *door)
{
    if (door)
        local_door_close(door);
    group->local.host->release(door);
}

struct local_address local_tcp_peer_door(const struct tcp_group *group, uint32_t peer,
                                         uint32_t number, uint32_t port)
{
    struct local_address address = group->peers[peer].address;
    if (local_address_is_machine(&address))
        return local_address_at_number(number);
    local_address_set_port(&address, (uint16_t)port);
    return address;
}

bool local_tcp_offer(struct local_run *run, struct local_record *record)
{
    struct tcp_group *group = local_tcp_of(run);
    struct weir_siphash_key key;
    group->door = local_tcp_door(group);
    if (!group->door)
        return local_fail(run, "rank %u cannot listen for its part: %s", group->local.rank,
                          strerror(errno));
    weir_siphash_random_key(&key);
    record->token = key.words[0];
    record->number = group->door->number;
    record->port = group->door->port;
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
        const struct local_record *record = &part->records[part->members[i]];
        addresses[i] = local_tcp_peer_door(whole, part->members[i], record->number, record->port);
    }
    const uint64_t token = part->records[part->members[0]].token;
    const bool connected =
        local_tcp_connect(group, addresses, whole->door, token, deadline_ns, NULL, cause);
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
        group->secret = whole->secret;
        group->maps_memory = whole->maps_memory;
        connected = connect_part(group, whole, part, run->deadline_ns, cause) &&
                    local_tcp_begin(group, run->timeout_ns, run->deadline_ns, cause);
    }
    local_tcp_door_close(whole, whole->door);
    whole->door = NULL;
    if (connected) {
        *out_group = group ? &group->local : NULL;
        return WEIR_OK;
    }
    if (group)
        local_tcp_destroy(group);
    return cause[0] ? weir_host_fail(host, WEIR_ERROR_COMM, NULL, "%s", cause)
                    : weir_host_no_memory(host, "a part of a group");
}
