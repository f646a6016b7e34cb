// Connects the ranks of a group, each with each, when all know where the others' doors are; and parts of a
// group, whose ranks have told that in the split.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "base/text.h"
#include "transports/local/local.h"

// What the ranks of a group that has failed settle over its control connections, which still stand:
// first which of them go on, and where each listens; then whether each has joined the others.
//
// Both are a step of one kind: each rank tells all others a value. The first rank that has told
// gathers: when those that it waits for have told or have gone, or its patience is at an end, it sends
// the list of ranks and values to all. A rank passes the list on to all others before it uses it, so
// that none goes on by a list that another one, which lives, never gets. If the rank that gathers
// goes, or says nothing for long, the next one gathers.
//
// A rank that stops for long and then goes on may gather a second list of the step. Its token is another one,
// so that at most one of their groups can be joined by all of its ranks.

// Values of the second step.
enum {
    MESH_JOINED = 1,
    MESH_NOT_JOINED = 2,
    MESH_IN_VAIN = 3 // not, because another one has not
};

struct mesh_gather {
    struct local_group *whole;
    uint64_t patience_ns; // of the rank that gathers; the others have twice as much with it
    uint64_t deadline_ns; // of weir_clock_now_ns(), for all steps
    bool *awaited;        // the ranks of the step, as far as they are waited for
    bool in_vain;         // gather_is_in_vain() was
    bool settled;         // the list is there:
    uint32_t count;
    uint64_t token;
    struct mesh_member *members; // these two have room for all ranks of the whole
    struct mesh_member *spare;
};

static uint32_t own_rank(const struct mesh_gather *gather)
{
    return gather->whole->rank;
}

static bool has_told(const struct mesh_gather *gather, uint32_t rank)
{
    const struct mesh_peer *peer = &gather->whole->peers[rank];
    return gather->awaited[rank] && !peer->left && peer->told_step == gather->whole->step;
}

// One that is at a later step tells nothing in this one any more.
static bool may_tell(const struct mesh_gather *gather, uint32_t rank)
{
    const struct mesh_peer *peer = &gather->whole->peers[rank];
    return rank != own_rank(gather) && gather->awaited[rank] && !peer->left &&
           peer->told_step < gather->whole->step;
}

static bool all_have_told(const struct mesh_gather *gather)
{
    uint32_t rank = 0;
    while (rank < gather->whole->count && !may_tell(gather, rank))
        rank++;
    return rank == gather->whole->count;
}

// The rank that gathers.
static uint32_t first_that_has_told(const struct mesh_gather *gather)
{
    uint32_t rank = 0;
    while (rank < own_rank(gather) && !has_told(gather, rank))
        rank++;
    return rank;
}

// Reads the list that follows a SETTLED. One of an earlier step is passed on by another rank, late; one
// of a later step has been settled without this rank.
static void read_list(struct mesh_gather *gather, struct mesh_peer *peer)
{
    const struct mesh_news *news = &peer->news;
    struct mesh_member *list = gather->spare;
    // One that stops within its list must not keep this rank from what the others say.
    const uint64_t until_ns =
        local_sooner(gather->deadline_ns, weir_clock_now_ns() + gather->patience_ns);
    if (news->number > gather->whole->count ||
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
static void listen_to(struct mesh_gather *gather, struct mesh_peer *peer)
{
    for (int n = 0; n < MESH_MOST_NEWS && !gather->settled && local_mesh_next_news(peer); n++) {
        if (peer->news.kind == MESH_LEAVES) {
            peer->left = true;
        } else if (peer->news.kind == MESH_TELLS) {
            peer->told_step = peer->news.step;
            peer->told = peer->news.value;
        } else if (peer->news.kind == MESH_SETTLED) {
            read_list(gather, peer);
        }
    }
}

// Sets an entry for each rank of the whole, and reads what those with something have said.
static void gather_polls(const struct mesh_gather *gather, struct pollfd *polls)
{
    const struct local_group *whole = gather->whole;
    for (uint32_t i = 0; i < whole->count; i++)
        polls[i] = (struct pollfd){.fd = whole->peers[i].left ? -1 : whole->peers[i].control,
                                   .events = POLLIN};
}

static void gather_listen(struct mesh_gather *gather, const struct pollfd *polls)
{
    for (uint32_t i = 0; i < gather->whole->count; i++)
        if (polls[i].revents)
            listen_to(gather, &gather->whole->peers[i]);
}

// Sleeps until a peer says something, at most until the deadline.
static void hear(struct mesh_gather *gather, uint64_t deadline_ns)
{
    struct pollfd *polls = gather->whole->polls;
    gather_polls(gather, polls);
    if (poll(polls, gather->whole->count, local_poll_ms(deadline_ns)) > 0)
        gather_listen(gather, polls);
}

static void make_list(struct mesh_gather *gather)
{
    const struct local_group *whole = gather->whole;
    struct weir_siphash_key key;
    gather->count = 0;
    for (uint32_t i = 0; i < whole->count; i++)
        if (i == own_rank(gather) || has_told(gather, i))
            gather->members[gather->count++] =
                (struct mesh_member){.rank = i, .value = whole->peers[i].told};
    weir_siphash_random_key(&key);
    gather->token = key.words[0];
    gather->settled = true;
}

// To all ranks, with a list of the step or without. One that has died meanwhile is found later.
static void send_to_all(struct mesh_gather *gather, const struct mesh_news *news,
                        const struct mesh_member *list, uint32_t count)
{
    const uint64_t until_ns =
        local_sooner(gather->deadline_ns, weir_clock_now_ns() + gather->patience_ns);
    for (uint32_t i = 0; i < gather->whole->count; i++) {
        const struct mesh_peer *peer = &gather->whole->peers[i];
        if (i != own_rank(gather) && !peer->left &&
            local_write_all(peer->control, news, sizeof *news, until_ns) && count > 0)
            (void)local_write_all(peer->control, list, count * sizeof *list, until_ns);
    }
}

static void pass_on(struct mesh_gather *gather)
{
    const struct mesh_news news = {.kind = MESH_SETTLED,
                                   .number = gather->count,
                                   .value = gather->token,
                                   .step = gather->whole->step};
    send_to_all(gather, &news, gather->members, gather->count);
}

// Allocates the arrays. False if out of memory.
static bool gather_create(struct mesh_gather *gather)
{
    const struct weir_host *host = gather->whole->host;
    const size_t count = gather->whole->count;
    gather->awaited = host->allocate(count * sizeof *gather->awaited);
    gather->members = host->allocate(count * sizeof *gather->members);
    gather->spare = host->allocate(count * sizeof *gather->spare);
    return gather->awaited && gather->members && gather->spare;
}

static void gather_destroy(struct mesh_gather *gather)
{
    const struct weir_host *host = gather->whole->host;
    host->release(gather->spare);
    host->release(gather->members);
    host->release(gather->awaited);
}

// Steps have numbers, alike on all ranks: each attempt to go on has the next odd one and the one after it.
// The first step waits for all ranks, the second one for those of the first one's list.
static void gather_begin(struct mesh_gather *gather)
{
    for (uint32_t i = 0; i < gather->whole->count; i++)
        gather->awaited[i] = true;
    gather->whole->step = (gather->whole->step + 1) | 1;
    gather->settled = false;
}

static void gather_begin_second(struct mesh_gather *gather)
{
    memset(gather->awaited, 0, gather->whole->count * sizeof *gather->awaited);
    for (uint32_t i = 0; i < gather->count; i++)
        if (gather->members[i].rank < gather->whole->count)
            gather->awaited[gather->members[i].rank] = true;
    gather->whole->step++;
    gather->settled = false;
}

// Tells all ranks the value, which is not 0.
static void gather_tell(struct mesh_gather *gather, uint64_t value)
{
    const struct mesh_news news = {.kind = MESH_TELLS, .value = value, .step = gather->whole->step};
    gather->whole->peers[own_rank(gather)].told = value;
    send_to_all(gather, &news, NULL, 0);
}

// Waits for the list, or gathers it. False at the deadline.
static bool gather_settle(struct mesh_gather *gather)
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
static bool gather_is_in_vain(struct mesh_gather *gather)
{
    gather->in_vain = gather->settled;
    for (uint32_t i = 0; i < gather->whole->count && !gather->in_vain; i++) {
        const struct mesh_peer *peer = &gather->whole->peers[i];
        gather->in_vain = i != own_rank(gather) && gather->awaited[i] &&
                          (peer->left || (has_told(gather, i) && peer->told != MESH_JOINED));
    }
    return gather->in_vain;
}

static int *place_of(struct mesh_peer *peer, uint32_t purpose)
{
    return purpose == LOCAL_TO_SEND ? &peer->data : &peer->control;
}

// The higher rank connects to the lower one.
static bool connect_to(struct local_group *group, uint32_t index,
                       const struct local_address *address, uint64_t token, uint64_t deadline_ns)
{
    struct mesh_peer *peer = &group->peers[index];
    peer->address = *address;
    for (uint32_t purpose = LOCAL_TO_SEND; purpose <= LOCAL_TO_CONTROL; purpose++) {
        struct local_hello hello = {.purpose = purpose, .token = token, .rank = group->rank};
        int *place = place_of(peer, purpose);
        *place = local_knock(address, &group->secret, &hello, deadline_ns);
        if (*place < 0)
            return false;
    }
    return true;
}

static bool is_expected(const struct local_group *group, const struct local_hello *hello,
                        uint64_t token)
{
    return hello->token == token && hello->rank > group->rank && hello->rank < group->count &&
           hello->purpose >= LOCAL_TO_SEND && hello->purpose <= LOCAL_TO_CONTROL &&
           *place_of(&group->peers[hello->rank], hello->purpose) < 0;
}

// Takes one connection; one that is not expected is closed. False with errno: ETIMEDOUT, ECANCELED if the wait is in vain.
static bool accept_one(struct local_group *group, struct local_door *door, uint64_t token,
                       uint64_t deadline_ns, struct mesh_gather *gather, struct pollfd *polls,
                       uint32_t *left)
{
    struct local_address from;
    struct local_hello hello;
    int connection = -1;
    const uint32_t others = gather ? gather->whole->count : 0;
    errno = ECANCELED;
    if (gather && gather_is_in_vain(gather))
        return false;
    if (gather)
        gather_polls(gather, polls);
    switch (local_door_next(door, polls, others, deadline_ns, &hello, &connection, &from)) {
    case LOCAL_CAME:
        break;
    case LOCAL_CAME_OTHER:
        gather_listen(gather, polls);
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

static uint32_t first_missing(const struct local_group *group)
{
    uint32_t index = group->rank + 1;
    while (index + 1 < group->count && group->peers[index].control >= 0)
        index++;
    return index;
}

static bool accept_higher(struct local_group *group, struct local_door *door, uint64_t token,
                          uint64_t deadline_ns, struct mesh_gather *gather, char *cause)
{
    const struct weir_host *host = group->host;
    const size_t others = gather ? gather->whole->count : 0;
    uint32_t left = 2 * (group->count - 1 - group->rank);
    struct pollfd *polls = left > 0 ? host->allocate((others + DOOR_POLLS) * sizeof *polls) : NULL;
    errno = ECANCELED; // without a cause, memory is what lacks
    while (polls && left > 0 && accept_one(group, door, token, deadline_ns, gather, polls, &left))
        continue;
    const int error = errno;
    host->release(polls);
    if (left == 0)
        return true;
    if (error == ETIMEDOUT)
        snprintf(cause, WEIR_CAUSE_SIZE, "'%s': rank %u has not connected to rank %u in time",
                 group->label, first_missing(group), group->rank);
    else if (error != ECANCELED)
        snprintf(cause, WEIR_CAUSE_SIZE, "'%s': rank %u cannot take a connection: %s", group->label,
                 group->rank, strerror(error));
    return false;
}

// Ranks of one machine have its connections with each other.
static bool spans_machines(const struct local_group *group)
{
    uint32_t i = 0;
    while (i < group->count &&
           (i == group->rank || local_address_is_machine(&group->peers[i].address)))
        i++;
    return i < group->count;
}

bool local_mesh_connect(struct local_group *group, const struct local_address *addresses,
                        struct local_door *door, uint64_t token, uint64_t deadline_ns,
                        struct mesh_gather *gather, char *cause)
{
    char host[LOCAL_HOST_SIZE];
    for (uint32_t i = 0; i < group->rank; i++) {
        if (connect_to(group, i, &addresses[i], token, deadline_ns))
            continue;
        const int error = errno;
        local_address_text(&addresses[i], host, sizeof host);
        snprintf(cause, WEIR_CAUSE_SIZE, "'%s': rank %u cannot connect to rank %u at %s: %s",
                 group->label, group->rank, i, host, strerror(error));
        return false;
    }
    if (!accept_higher(group, door, token, deadline_ns, gather, cause))
        return false;
    group->spans_machines = spans_machines(group);
    return group->spans_machines || local_window_exchange(group, deadline_ns, cause);
}

// On the network it is at the address by which a peer is reached. Where there is no way to it any more, ranks of this
// machine need none.
static struct local_door *open_door(const struct local_group *group)
{
    struct local_door *door = group->host->allocate(sizeof *door);
    struct local_address own = {.size = 0};
    uint32_t peer = 0;
    while (peer < group->count &&
           (peer == group->rank || local_address_is_machine(&group->peers[peer].address)))
        peer++;
    errno = ENOMEM;
    if (!door)
        return NULL;
    local_door_init(door, &group->secret);
    if (peer < group->count && !local_address_toward(&group->peers[peer].address, &own))
        own.size = 0;
    if (local_door_open(door, &own))
        return door;
    const int error = errno;
    local_mesh_door_close(group, door);
    errno = error;
    return NULL;
}

void local_mesh_door_close(const struct local_group *group, struct local_door *door)
{
    if (door)
        local_door_close(door);
    group->host->release(door);
}

// Where the door of a rank is, in one number: that of its machine and the port.
#define PORT_BITS 16u
#define PORT_MASK 0xffffu

static uint64_t value_of(const struct local_door *door)
{
    return (uint64_t)door->number << PORT_BITS | door->port;
}

static struct local_address peer_door(const struct local_group *group,
                                      const struct mesh_member *member)
{
    struct local_address address = group->peers[member->rank].address;
    if (local_address_is_machine(&address))
        return local_address_at_number((uint32_t)(member->value >> PORT_BITS));
    local_address_set_port(&address, (uint16_t)(member->value & PORT_MASK));
    return address;
}

// The ranks of a group that is made of another one, in their order.
struct lineup {
    const struct local_group *whole;
    const char *label;
    uint64_t token;
    uint32_t rank; // this one's; not below the count: it has no part in it
    uint32_t count;
    struct mesh_member *members; // with the values of their doors
};

// What is made is stored also where a rank has not joined.
static bool join_members(const struct lineup *lineup, struct local_door *door, uint64_t deadline_ns,
                         struct mesh_gather *gather, char *cause, struct local_group **out_group)
{
    const struct local_group *whole = lineup->whole;
    const struct weir_host *host = whole->host;
    struct local_group *group = local_mesh_create(host, lineup->label, lineup->rank, lineup->count);
    struct local_address *addresses = host->allocate(lineup->count * sizeof *addresses);
    bool joined = group && addresses;
    for (uint32_t i = 0; joined && i < lineup->rank; i++)
        if (lineup->members[i].rank < whole->count)
            addresses[i] = peer_door(whole, &lineup->members[i]);
    if (joined) {
        group->secret = whole->secret;
        joined =
            local_mesh_connect(group, addresses, door, lineup->token, deadline_ns, gather, cause);
    }
    host->release(addresses);
    *out_group = group;
    return joined;
}

static void set_own_rank(struct lineup *lineup)
{
    lineup->rank = 0;
    while (lineup->rank < lineup->count &&
           lineup->members[lineup->rank].rank != lineup->whole->rank)
        lineup->rank++;
}

// Splits.

// Sets what other ranks must know of this one to reach it in a part.
static bool offer(struct local_run *run, struct local_record *record)
{
    struct local_group *group = run->group;
    struct weir_siphash_key key;
    group->door = open_door(group);
    if (!group->door)
        return weir_caller_fail(&run->by, "rank %u cannot listen for its part: %s", group->rank,
                                strerror(errno));
    weir_siphash_random_key(&key);
    record->token = key.words[0];
    record->door = value_of(group->door);
    return true;
}

// The records decide which ranks are in the part, and their order there: by key, then by rank.
static struct lineup lineup_of(const struct local_group *whole, const struct local_record *records,
                               struct mesh_member *members)
{
    struct lineup part = {.whole = whole, .members = members};
    for (uint32_t rank = 0; rank < whole->count; rank++) {
        if (records[rank].color != records[whole->rank].color)
            continue;
        uint32_t at = part.count++;
        for (; at > 0 && records[members[at - 1].rank].key > records[rank].key; at--)
            members[at] = members[at - 1];
        members[at] = (struct mesh_member){.rank = rank, .value = records[rank].door};
    }
    part.token = records[members[0].rank].token;
    set_own_rank(&part);
    return part;
}

static weir_status join_part(struct local_run *run, const struct lineup *part,
                             struct local_group **out_group)
{
    const struct local_group *whole = run->group;
    char cause[WEIR_CAUSE_SIZE] = "";
    if (join_members(part, whole->door, run->deadline_ns, NULL, cause, out_group)) {
        (*out_group)->origin_rank = whole->origin_rank;
        (*out_group)->origin_count = whole->origin_count;
        local_enlist(*out_group);
        return WEIR_OK;
    }
    if (*out_group)
        local_mesh_destroy(*out_group);
    *out_group = NULL;
    return cause[0] ? weir_host_fail(whole->host, WEIR_ERROR_COMM, NULL, "%s", cause)
                    : weir_host_no_memory(whole->host, "a part of a group");
}

static weir_status split_with_room(struct local_run *run, const struct weir_transport_split *split,
                                   struct local_record *records, struct mesh_member *members,
                                   struct local_group **out_part)
{
    struct local_record own = {.color = split->color, .key = split->key};
    const struct weir_transport_call gather = {
        .struct_size = sizeof gather,
        .kind = WEIR_ALL_GATHER,
        .element = WEIR_U8,
        .count = sizeof own,
        .src = &own,
        .dst = records,
    };
    run->call = &gather;
    if (!offer(run, &own) || !local_carry(run))
        return local_report(run, WEIR_ERROR_COMM);

    struct lineup part = lineup_of(run->group, records, members);
    part.label = split->label;
    const weir_status status =
        split->color == WEIR_NO_COLOR ? WEIR_OK : join_part(run, &part, out_part);
    local_mesh_door_close(run->group, run->group->door);
    run->group->door = NULL;
    return status;
}

weir_status local_split(void *group, const struct weir_transport_split *split, void **out_part)
{
    struct local_run run =
        local_run_begin(group,
                        weir_head_of_line(WEIR_CALL_SPLIT, split->number, split->file, split->line),
                        split->timeout_ns);
    run.by.head.element = WEIR_U8;
    run.by.head.count = sizeof(struct local_record);
    const struct weir_host *host = run.group->host;
    struct local_group *part = NULL;
    *out_part = NULL;
    weir_status status = local_report(&run, WEIR_ERROR_COMM);
    if (status)
        return status;

    struct local_record *records = host->allocate(run.group->count * sizeof *records);
    struct mesh_member *members = host->allocate(run.group->count * sizeof *members);
    if (records && members) {
        status = split_with_room(&run, split, records, members, &part);
    } else {
        weir_caller_fail(&run.by, "rank %u has no host memory left", run.group->rank);
        status = local_report(&run, WEIR_ERROR_OUT_OF_MEMORY);
    }
    *out_part = part;
    host->release(members);
    host->release(records);
    return status;
}

// The ranks that go on after a group between processes has failed. Each listens, and tells the others
// where; those of the list that comes of it join each other, and go on if all of them have.

struct shrink {
    struct mesh_gather gather;
    const struct weir_transport_shrink *params;
    struct local_door *door;
    struct lineup left;
    char cause[WEIR_CAUSE_SIZE]; // of this rank's failure to join; "": there is none
};

static const struct local_group *whole_of(const struct shrink *shrink)
{
    return shrink->gather.whole;
}

static weir_status fail_late(const struct shrink *shrink)
{
    char duration[WEIR_TEXT_QUANTITY_SIZE];
    weir_text_duration(duration, 2 * (double)shrink->params->timeout_ns);
    return weir_host_fail(whole_of(shrink)->host, WEIR_ERROR_COMM,
                          "end the ranks that have stopped, and shrink the communicator again",
                          "'%s': the ranks that are left have not settled in %s which they are",
                          shrink->params->label, duration);
}

static weir_status find_members(struct shrink *shrink)
{
    shrink->door = open_door(whole_of(shrink));
    if (!shrink->door && errno == ENOMEM)
        return weir_host_no_memory(whole_of(shrink)->host, "a group");
    if (!shrink->door)
        return weir_host_fail(whole_of(shrink)->host, WEIR_ERROR_SYSTEM, NULL,
                              "'%s': rank %u cannot listen: %s", shrink->params->label,
                              whole_of(shrink)->rank, strerror(errno));
    gather_begin(&shrink->gather);
    gather_tell(&shrink->gather, value_of(shrink->door));
    if (!gather_settle(&shrink->gather))
        return fail_late(shrink);
    shrink->left.token = shrink->gather.token;
    shrink->left.count = shrink->gather.count;
    memcpy(shrink->left.members, shrink->gather.members,
           shrink->left.count * sizeof *shrink->left.members);
    set_own_rank(&shrink->left);
    return WEIR_OK;
}

// What a member has told of joining; 0: nothing in time, or it has gone.
static uint64_t told_of_joining(const struct shrink *shrink, uint32_t rank)
{
    const struct mesh_gather *gather = &shrink->gather;
    for (uint32_t i = 0; i < gather->count; i++)
        if (gather->members[i].rank == rank)
            return gather->members[i].value;
    return 0;
}

// Finds a member that has not joined: the cause, if one is, and not one that waited for it in vain.
static bool find_missing(const struct shrink *shrink, uint32_t *out_rank)
{
    bool found = false;
    for (uint32_t i = 0; i < shrink->left.count; i++) {
        const uint64_t told = told_of_joining(shrink, shrink->left.members[i].rank);
        if (told == MESH_JOINED || (found && told == MESH_IN_VAIN))
            continue;
        *out_rank = shrink->left.members[i].rank;
        found = true;
        if (told != MESH_IN_VAIN)
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
    return weir_host_fail(whole_of(shrink)->host, WEIR_ERROR_COMM, "shrink the communicator again",
                          "%s", shrink->cause);
}

static uint32_t what_to_tell(const struct shrink *shrink, bool joined)
{
    if (joined)
        return MESH_JOINED;
    return shrink->gather.in_vain ? MESH_IN_VAIN : MESH_NOT_JOINED;
}

// All members come here, and none goes on unless all have joined.
static weir_status join(struct shrink *shrink, struct local_group **out_group)
{
    const struct weir_host *host = whole_of(shrink)->host;
    const uint64_t deadline_ns = local_sooner(shrink->gather.deadline_ns,
                                              weir_clock_now_ns() + 2 * shrink->gather.patience_ns);
    struct local_group *group = NULL;
    weir_status status = WEIR_OK;
    uint32_t missing = 0;
    gather_begin_second(&shrink->gather);
    const bool joined = join_members(&shrink->left, shrink->door, deadline_ns, &shrink->gather,
                                     shrink->cause, &group);
    gather_tell(&shrink->gather, what_to_tell(shrink, joined));
    if (!gather_settle(&shrink->gather))
        status = fail_late(shrink);
    else if (!joined && !shrink->cause[0] && !shrink->gather.in_vain)
        status = weir_host_no_memory(host, "a group");
    else if (find_missing(shrink, &missing))
        status = fail_without(shrink, missing);
    if (status == WEIR_OK)
        *out_group = group;
    else if (group)
        local_mesh_destroy(group);
    return status;
}

static weir_status go_on(struct shrink *shrink, struct local_group **out_group)
{
    struct local_group *whole = shrink->gather.whole;
    const weir_status status = whole->left_out ? WEIR_OK : find_members(shrink);
    if (status < 0)
        return status;
    if (shrink->left.rank < shrink->left.count)
        return join(shrink, out_group);
    whole->left_out = true;
    return weir_host_fail(whole_of(shrink)->host, WEIR_ERROR_COMM,
                          "end this rank, or let all ranks create another communicator",
                          "'%s': the other ranks have gone on without rank %u, which came late",
                          whole_of(shrink)->label, whole_of(shrink)->rank);
}

static weir_status shrink_group(struct local_group *group,
                                const struct weir_transport_shrink *params,
                                struct local_group **out_group)
{
    const struct weir_host *host = group->host;
    const uint64_t now_ns = weir_clock_now_ns();
    struct weir_cause cause;
    if (local_mesh_is_inherited(group) && local_mesh_cause(group, &cause))
        return weir_host_fail(host, WEIR_ERROR_COMM, "call it in the parent", "%s", cause.text);
    struct shrink shrink = {
        .gather = {.whole = group,
                   .patience_ns = params->timeout_ns / 4,
                   .deadline_ns = params->timeout_ns > UINT64_MAX / 4
                                      ? UINT64_MAX / 2
                                      : now_ns + 2 * params->timeout_ns},
        .params = params,
        .left = {.whole = group,
                 .label = params->label,
                 .members = host->allocate(group->count * sizeof *shrink.left.members)},
    };
    const bool room = shrink.left.members && gather_create(&shrink.gather);
    const weir_status status =
        room ? go_on(&shrink, out_group) : weir_host_no_memory(host, "a group");
    local_mesh_door_close(shrink.gather.whole, shrink.door);
    gather_destroy(&shrink.gather);
    host->release(shrink.left.members);
    return status;
}

weir_status local_shrink(void *group, const struct weir_transport_shrink *shrink, void **out_group)
{
    struct local_group *whole = group;
    struct local_group *part = NULL;
    *out_group = NULL;
    if (!local_mesh_cause(whole, NULL))
        local_abort(whole, "it goes on with the ranks that are left");
    const weir_status status = shrink_group(whole, shrink, &part);
    *out_group = part;
    return status;
}
