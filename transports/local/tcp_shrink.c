// The ranks that go on after a group between processes has failed. Each listens, and tells the others
// where; those of the list that comes of it join each other, and go on if all of them have.
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/local/tcp_gather.h"

// What a rank tells in the first step: the numbers of its door.
#define PORT_BITS 16u
#define PORT_MASK 0xffffu

struct shrink {
    struct tcp_gather gather;
    const struct weir_transport_shrink *params;
    struct local_door *door;
    uint64_t token;
    uint32_t count;             // of members
    struct tcp_member *members; // with the numbers of their doors
    struct local_address *addresses;
    char cause[LOCAL_CAUSE_SIZE]; // of this rank's failure to join; "": there is none
};

static const struct tcp_group *whole_of(const struct shrink *shrink)
{
    return shrink->gather.whole;
}

static weir_status fail_late(const struct shrink *shrink)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, 2 * (double)shrink->params->timeout_ns);
    return weir_host_fail(whole_of(shrink)->local.host, WEIR_ERROR_COMM,
                          "end the ranks that have stopped, and shrink the communicator again",
                          "'%s': the ranks that are left have not settled in %s which they are",
                          shrink->params->label, duration);
}

static weir_status find_members(struct shrink *shrink)
{
    shrink->door = local_tcp_door(whole_of(shrink));
    if (!shrink->door && errno == ENOMEM)
        return weir_host_no_memory(whole_of(shrink)->local.host, "a group");
    if (!shrink->door)
        return weir_host_fail(whole_of(shrink)->local.host, WEIR_ERROR_SYSTEM, NULL,
                              "'%s': rank %u cannot listen: %s", shrink->params->label,
                              whole_of(shrink)->local.rank, strerror(errno));
    local_tcp_gather_begin(&shrink->gather);
    local_tcp_gather_tell(&shrink->gather,
                          (uint64_t)shrink->door->number << PORT_BITS | shrink->door->port);
    if (!local_tcp_gather_settle(&shrink->gather))
        return fail_late(shrink);
    shrink->token = shrink->gather.token;
    shrink->count = shrink->gather.count;
    memcpy(shrink->members, shrink->gather.members, shrink->count * sizeof *shrink->members);
    return WEIR_OK;
}

static uint32_t own_member(const struct shrink *shrink)
{
    uint32_t index = 0;
    while (index < shrink->count && shrink->members[index].rank != whole_of(shrink)->local.rank)
        index++;
    return index;
}

static bool connect_members(struct shrink *shrink, struct tcp_group *group)
{
    const struct tcp_group *whole = whole_of(shrink);
    const uint64_t deadline_ns = local_sooner(shrink->gather.deadline_ns,
                                              weir_clock_now_ns() + 2 * shrink->gather.patience_ns);
    for (uint32_t i = 0; i < group->local.rank; i++) {
        const struct tcp_member *member = &shrink->members[i];
        if (member->rank < whole->local.count)
            shrink->addresses[i] =
                local_tcp_peer_door(whole, member->rank, (uint32_t)(member->value >> PORT_BITS),
                                    (uint32_t)(member->value & PORT_MASK));
    }
    group->secret = whole->secret;
    group->maps_memory = whole->maps_memory;
    return local_tcp_connect(group, shrink->addresses, shrink->door, shrink->token, deadline_ns,
                             &shrink->gather, shrink->cause) &&
           local_tcp_begin(group, shrink->params->timeout_ns, deadline_ns, shrink->cause);
}

// What a member has told of joining; 0: nothing in time, or it has gone.
static uint64_t told_of_joining(const struct shrink *shrink, uint32_t rank)
{
    const struct tcp_gather *gather = &shrink->gather;
    for (uint32_t i = 0; i < gather->count; i++)
        if (gather->members[i].rank == rank)
            return gather->members[i].value;
    return 0;
}

// Finds a member that has not joined: the cause, if one is, and not one that waited for it in vain.
static bool find_missing(const struct shrink *shrink, uint32_t *out_rank)
{
    bool found = false;
    for (uint32_t i = 0; i < shrink->count; i++) {
        const uint64_t told = told_of_joining(shrink, shrink->members[i].rank);
        if (told == TCP_JOINED || (found && told == TCP_IN_VAIN))
            continue;
        *out_rank = shrink->members[i].rank;
        found = true;
        if (told != TCP_IN_VAIN)
            break;
    }
    return found;
}

static weir_status fail_without(struct shrink *shrink, uint32_t rank)
{
    if (!shrink->cause[0])
        snprintf(shrink->cause, sizeof shrink->cause,
                 "'%s': rank %u, which was to go on too, has not joined the others",
                 shrink->params->label, rank);
    return weir_host_fail(whole_of(shrink)->local.host, WEIR_ERROR_COMM,
                          "shrink the communicator again", "%s", shrink->cause);
}

static uint32_t what_to_tell(const struct shrink *shrink, bool joined)
{
    if (joined)
        return TCP_JOINED;
    return shrink->gather.in_vain ? TCP_IN_VAIN : TCP_NOT_JOINED;
}

// All members come here, and none goes on unless all have joined.
static weir_status join(struct shrink *shrink, uint32_t rank, struct local_group **out_group)
{
    const struct weir_host *host = whole_of(shrink)->local.host;
    weir_status status = WEIR_OK;
    uint32_t missing = 0;
    local_tcp_gather_begin_second(&shrink->gather);
    struct tcp_group *group = local_tcp_create(host, shrink->params->label, rank, shrink->count);
    const bool joined = group && connect_members(shrink, group);
    local_tcp_gather_tell(&shrink->gather, what_to_tell(shrink, joined));
    if (!local_tcp_gather_settle(&shrink->gather))
        status = fail_late(shrink);
    else if (!joined && !shrink->cause[0] && !shrink->gather.in_vain)
        status = weir_host_no_memory(host, "a group");
    else if (find_missing(shrink, &missing))
        status = fail_without(shrink, missing);
    if (status == WEIR_OK)
        *out_group = &group->local;
    else if (group)
        local_tcp_destroy(group);
    return status;
}

static weir_status go_on(struct shrink *shrink, struct local_group **out_group)
{
    weir_status status = find_members(shrink);
    if (status < 0)
        return status;
    const uint32_t rank = own_member(shrink);
    if (rank < shrink->count)
        return join(shrink, rank, out_group);
    shrink->gather.whole->left_out = true;
    return local_shrink_without(&whole_of(shrink)->local);
}

weir_status local_tcp_shrink(struct local_group *group, const struct weir_transport_shrink *params,
                             struct local_group **out_group)
{
    const struct weir_host *host = group->host;
    const uint64_t now_ns = weir_clock_now_ns();
    char cause[LOCAL_CAUSE_SIZE];
    if (local_tcp_is_inherited((struct tcp_group *)group) && group->wire->failed(group, cause))
        return weir_host_fail(host, WEIR_ERROR_COMM, "call it in the parent", "%s", cause);
    struct shrink shrink = {
        .gather = {.whole = (struct tcp_group *)group,
                   .patience_ns = local_shrink_patience(params),
                   .deadline_ns = params->timeout_ns > UINT64_MAX / 4
                                      ? UINT64_MAX / 2
                                      : now_ns + 2 * params->timeout_ns},
        .params = params,
        .members = host->allocate(group->count * sizeof *shrink.members),
        .addresses = host->allocate(group->count * sizeof *shrink.addresses),
    };
    weir_status status = WEIR_OK;
    if (shrink.gather.whole->left_out)
        status = local_shrink_without(group);
    else if (shrink.members && shrink.addresses && local_tcp_gather_create(&shrink.gather))
        status = go_on(&shrink, out_group);
    else
        status = weir_host_no_memory(host, "a group");
    local_tcp_door_close(shrink.gather.whole, shrink.door);
    local_tcp_gather_destroy(&shrink.gather);
    host->release(shrink.addresses);
    host->release(shrink.members);
    return status;
}
