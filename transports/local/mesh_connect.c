// Connects the ranks of a group, each with each, when all know where the others' doors are; and parts of a
// group, whose ranks have told that in the split.
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "transports/local/local.h"

// The ranks that go on after a group has failed settle over its control connections, which still stand, which they are:
// each tells all others where its door is, and the first of those sends the list to all, when all others have told or
// have gone, or its patience is at an end. Then the ranks of the list join each other, and none goes on unless all
// have come to a barrier of the new group. A rank that cannot join tells all why. With that, and where a rank has gone
// or begun again since it told, the attempt has failed on all.
//
// A rank that stops for long and then goes on may send a second list. Its token is another one, so at most one of their
// groups can be joined by all of its ranks.
struct local_shrink {
    struct local_group *whole;
    const struct weir_transport_shrink *params;
    struct local_door *door;
    uint64_t patience_ns; // of the rank that sends the list; the others have twice as much with it
    uint64_t deadline_ns; // of weir_clock_now_ns()
    bool settled;         // the list is there:
    uint64_t token;
    uint8_t listed[LOCAL_MAX_RANKS / 8];
    uint32_t *members;           // room for them
    char cause[WEIR_CAUSE_SIZE]; // of the attempt's failure; "": it has not failed
};

// The first cause of the attempt's failure: "rank 3 of 'grads' cannot …".
WEIR_PRINTF(3, 4)
static void set_cause(struct local_shrink *shrink, uint32_t rank, const char *format, ...)
{
    size_t used = 0;
    va_list arguments;
    if (shrink->cause[0])
        return;
    weir_text_append(shrink->cause, sizeof shrink->cause, &used, "rank %u of '%s'", rank,
                     shrink->whole->base.label);
    va_start(arguments, format);
    vsnprintf(shrink->cause + used, sizeof shrink->cause - used, format, arguments);
    va_end(arguments);
}

static bool has_told(const struct local_shrink *shrink, uint32_t rank)
{
    const struct mesh_peer *peer = &shrink->whole->peers[rank];
    return !peer->left && peer->told_step == shrink->whole->step;
}

static bool is_listed(const struct local_shrink *shrink, uint32_t rank)
{
    return shrink->listed[rank / 8] >> rank % 8 & 1;
}

// The first rank that is still to tell, of those that have not gone or, once the list is there, of those in it; the count if
// all have.
static uint32_t first_to_tell(const struct local_shrink *shrink)
{
    const struct local_group *whole = shrink->whole;
    for (uint32_t i = 0; i < whole->base.count; i++)
        if (i != whole->base.rank && !whole->peers[i].left &&
            whole->peers[i].told_step < whole->step && (!shrink->settled || is_listed(shrink, i)))
            return i;
    return whole->base.count;
}

static bool all_have_told(const struct local_shrink *shrink)
{
    return first_to_tell(shrink) == shrink->whole->base.count;
}

// The list is there, and all doors are known unless it is without this rank.
static bool is_settled(const struct local_shrink *shrink)
{
    return shrink->settled &&
           (!is_listed(shrink, shrink->whole->base.rank) || all_have_told(shrink));
}

// The rank that sends the list.
static uint32_t first_that_has_told(const struct local_shrink *shrink)
{
    uint32_t rank = 0;
    while (rank < shrink->whole->base.rank && !has_told(shrink, rank))
        rank++;
    return rank;
}

// One of a later attempt has been settled without this rank.
static void take_list(struct local_shrink *shrink, const struct mesh_news *news)
{
    if (shrink->settled || news->step < shrink->whole->step)
        return;
    if (news->step == shrink->whole->step)
        memcpy(shrink->listed, news->listed, sizeof shrink->listed);
    shrink->token = news->token;
    shrink->settled = true;
}

static void listen_to(struct local_shrink *shrink, struct mesh_peer *peer)
{
    for (int n = 0; n < MESH_MOST_NEWS && local_mesh_next_news(peer); n++) {
        if (peer->news.kind == MESH_TELLS) {
            peer->told_step = peer->news.step;
            peer->told = peer->news.door;
        } else if (peer->news.kind == MESH_SETTLED) {
            take_list(shrink, &peer->news);
        } else if (peer->news.step == shrink->whole->step && !shrink->cause[0]) {
            const struct weir_cause heard =
                weir_cause_heard(&peer->news.cause, shrink->whole->base.count);
            snprintf(shrink->cause, sizeof shrink->cause, "%s", heard.text);
        }
    }
}

// Sets an entry for each rank of the whole, and reads what those with something have said.
static void shrink_polls(const struct local_shrink *shrink)
{
    const struct local_group *whole = shrink->whole;
    for (uint32_t i = 0; i < whole->base.count; i++)
        whole->polls[i] = (struct pollfd){.fd = whole->peers[i].left ? -1 : whole->peers[i].control,
                                          .events = POLLIN};
}

static void shrink_listen(struct local_shrink *shrink)
{
    for (uint32_t i = 0; i < shrink->whole->base.count; i++)
        if (shrink->whole->polls[i].revents)
            listen_to(shrink, &shrink->whole->peers[i]);
}

// Sleeps until a peer says something, at most until the deadline.
static void hear(struct local_shrink *shrink, uint64_t deadline_ns)
{
    shrink_polls(shrink);
    if (poll(shrink->whole->polls, shrink->whole->base.count, local_poll_ms(deadline_ns)) > 0)
        shrink_listen(shrink);
}

// Whether the attempt has failed: each rank of the list has to stay, and before it is there each one that has told.
static bool is_in_vain(struct local_shrink *shrink)
{
    const struct local_group *whole = shrink->whole;
    for (uint32_t i = 0; i < whole->base.count && !shrink->cause[0]; i++) {
        const struct mesh_peer *peer = &whole->peers[i];
        const bool again = peer->told_step > whole->step;
        if (i == whole->base.rank || (shrink->settled && !is_listed(shrink, i)))
            continue;
        if (again || (peer->left && (shrink->settled || peer->told_step == whole->step)))
            set_cause(shrink, i, ", which was to go on too, has %s",
                      again ? "begun again" : "gone");
    }
    return shrink->cause[0];
}

// To all ranks. One that has died meanwhile is found later.
static void send_to_all(const struct local_shrink *shrink, const struct mesh_news *news)
{
    const uint64_t until_ns =
        local_sooner(shrink->deadline_ns, weir_clock_now_ns() + shrink->patience_ns);
    for (uint32_t i = 0; i < shrink->whole->base.count; i++) {
        const struct mesh_peer *peer = &shrink->whole->peers[i];
        if (i != shrink->whole->base.rank && !peer->left)
            (void)local_write_all(peer->control, news, sizeof *news, until_ns);
    }
}

static void send_list(struct local_shrink *shrink)
{
    const struct local_group *whole = shrink->whole;
    struct mesh_news list = {.kind = MESH_SETTLED, .token = local_token(), .step = whole->step};
    for (uint32_t i = 0; i < whole->base.count; i++)
        if (i == whole->base.rank || has_told(shrink, i))
            list.listed[i / 8] |= (uint8_t)(1u << i % 8);
    take_list(shrink, &list);
    send_to_all(shrink, &list);
}

// Tells where this rank's door is, and waits for the list, or sends it. False: the attempt has failed.
static bool settle(struct local_shrink *shrink)
{
    const uint32_t own = shrink->whole->base.rank;
    const uint64_t patient_until_ns = weir_clock_now_ns() + shrink->patience_ns;
    uint32_t sends = UINT32_MAX;
    uint64_t until_ns = 0;
    send_to_all(shrink, &(struct mesh_news){.kind = MESH_TELLS,
                                            .step = shrink->whole->step,
                                            .door = shrink->door->where});
    hear(shrink, 0);
    while (!is_settled(shrink) && !is_in_vain(shrink)) {
        const uint64_t now_ns = weir_clock_now_ns();
        const uint32_t first = first_that_has_told(shrink);
        if (first != sends) // its patience begins with what it tells
            until_ns =
                local_sooner(shrink->deadline_ns,
                             first == own ? patient_until_ns : now_ns + 2 * shrink->patience_ns);
        sends = first;
        if (first == own && !shrink->settled && (now_ns >= until_ns || all_have_told(shrink)))
            send_list(shrink);
        else if (now_ns >= until_ns)
            set_cause(shrink, shrink->settled ? first_to_tell(shrink) : first,
                      " has not told in %s %s",
                      weir_text_duration(2 * (double)shrink->patience_ns).text,
                      shrink->settled ? "where it is" : "which ranks are left");
        else
            hear(shrink, until_ns);
    }
    return is_settled(shrink);
}

static int *place_of(struct mesh_peer *peer, uint32_t purpose)
{
    return purpose == LOCAL_TO_SEND ? &peer->data : &peer->control;
}

static bool is_expected(const struct local_group *group, const struct local_hello *hello,
                        uint64_t token)
{
    return hello->token == token && hello->rank > group->base.rank &&
           hello->rank < group->base.count && hello->purpose >= LOCAL_TO_SEND &&
           hello->purpose <= LOCAL_TO_CONTROL &&
           *place_of(&group->peers[hello->rank], hello->purpose) < 0;
}

// Takes one connection; one that is not expected is closed. False with errno: ETIMEDOUT, ECANCELED if the wait is in vain.
static bool accept_one(struct local_group *group, struct local_door *door, uint64_t token,
                       uint64_t deadline_ns, struct local_shrink *shrink, uint32_t *left)
{
    struct local_stranger rank;
    const struct local_hello *hello = &rank.answer.hello;
    errno = ECANCELED;
    if (shrink && is_in_vain(shrink))
        return false;
    if (shrink)
        shrink_polls(shrink);
    if (!local_door_next(door, shrink ? shrink->whole->polls : group->polls,
                         shrink ? shrink->whole->base.count : 0, deadline_ns, &rank))
        return false;
    if (rank.connection < 0) {
        shrink_listen(shrink);
    } else if (is_expected(group, hello, token)) {
        group->peers[hello->rank].address = rank.from;
        *place_of(&group->peers[hello->rank], hello->purpose) = rank.connection;
        *left -= 1;
    } else {
        local_close(&rank.connection);
    }
    return true;
}

static bool accept_higher(struct local_group *group, struct local_door *door, uint64_t token,
                          uint64_t deadline_ns, struct local_shrink *shrink)
{
    uint32_t missing = group->base.rank + 1;
    uint32_t left = 2 * (group->base.count - 1 - group->base.rank);
    while (left > 0 && accept_one(group, door, token, deadline_ns, shrink, &left))
        continue;
    const int error = errno;
    if (left == 0)
        return true;
    while (missing + 1 < group->base.count && group->peers[missing].control >= 0)
        missing++;
    if (error == ETIMEDOUT)
        snprintf(group->base.cause.text, sizeof group->base.cause.text,
                 "'%s': rank %u has not connected to rank %u in time", group->base.label, missing,
                 group->base.rank);
    else if (error != ECANCELED)
        snprintf(group->base.cause.text, sizeof group->base.cause.text,
                 "'%s': rank %u cannot take a connection: %s", group->base.label, group->base.rank,
                 strerror(error));
    return false;
}

// The first rank of another machine; the count if there is none: ranks of one machine have its connections with each other.
static uint32_t first_far(const struct local_group *group)
{
    uint32_t i = 0;
    while (i < group->base.count &&
           (i == group->base.rank || local_address_is_machine(&group->peers[i].address)))
        i++;
    return i;
}

bool local_mesh_connect(struct local_group *group, struct local_door *door, uint64_t token,
                        uint64_t deadline_ns, struct local_shrink *shrink)
{
    char host[LOCAL_HOST_SIZE];
    // The higher rank connects to the lower one, for data and then for control.
    for (uint32_t n = 0; n < 2 * group->base.rank; n++) {
        struct mesh_peer *peer = &group->peers[n / 2];
        struct local_hello hello = {.purpose = n % 2 ? LOCAL_TO_CONTROL : LOCAL_TO_SEND,
                                    .token = token,
                                    .rank = group->base.rank};
        int *place = place_of(peer, hello.purpose);
        *place = local_knock(&peer->address, &group->secret, &hello, deadline_ns);
        if (*place >= 0)
            continue;
        const int error = errno;
        local_address_text(&peer->address, host, sizeof host);
        snprintf(group->base.cause.text, sizeof group->base.cause.text,
                 "'%s': rank %u cannot connect to rank %u at %s: %s", group->base.label,
                 group->base.rank, n / 2, host, strerror(error));
        return false;
    }
    if (!accept_higher(group, door, token, deadline_ns, shrink))
        return false;
    return first_far(group) < group->base.count || local_window_exchange(group, deadline_ns);
}

static void close_door(const struct local_group *group, struct local_door *door)
{
    if (door)
        local_door_close(door);
    group->base.host->release(door);
}

// On the network it is at the address by which a peer is reached. Where there is no way to it any more, ranks of this
// machine need none.
static struct local_door *open_door(const struct local_group *group)
{
    struct local_door *door = group->base.host->allocate(sizeof *door);
    struct local_address own = {.size = 0};
    const uint32_t peer = first_far(group);
    errno = ENOMEM;
    if (!door)
        return NULL;
    local_door_init(door, &group->secret);
    if (peer < group->base.count && !local_address_toward(&group->peers[peer].address, &own))
        own.size = 0;
    if (local_door_open(door, &own))
        return door;
    close_door(group, door);
    return NULL;
}

// The ranks of a group that is made of another one, in their order.
struct lineup {
    const struct local_group *whole;
    const char *label;
    uint64_t token;
    uint32_t rank; // this one's
    uint32_t count;
    uint32_t *members; // which have told where their doors are
};

// What is made is stored also where a rank has not joined.
static bool join_members(const struct lineup *lineup, struct local_door *door, uint64_t deadline_ns,
                         struct local_shrink *shrink, struct local_group **out_group)
{
    const struct local_group *whole = lineup->whole;
    struct local_group *group =
        local_mesh_create(whole->base.host, lineup->label, lineup->rank, lineup->count);
    *out_group = group;
    if (!group)
        return false;
    for (uint32_t i = 0; i < lineup->rank; i++) {
        const struct mesh_peer *member = &whole->peers[lineup->members[i]];
        (void)local_find_door(&member->told, &member->address, &group->peers[i].address);
    }
    group->secret = whole->secret;
    return local_mesh_connect(group, door, lineup->token, deadline_ns, shrink);
}

static void set_own_rank(struct lineup *lineup)
{
    lineup->rank = 0;
    while (lineup->members[lineup->rank] != lineup->whole->base.rank)
        lineup->rank++;
}

// Splits.

// The records decide which ranks are in the part, and their order there: by key, then by rank.
static struct lineup lineup_of(struct local_group *whole, const struct local_record *records,
                               uint32_t *members)
{
    struct lineup part = {.whole = whole, .members = members};
    for (uint32_t rank = 0; rank < whole->base.count; rank++) {
        if (records[rank].color != records[whole->base.rank].color)
            continue;
        uint32_t at = part.count++;
        for (; at > 0 && records[members[at - 1]].key > records[rank].key; at--)
            members[at] = members[at - 1];
        members[at] = rank;
        whole->peers[rank].told = records[rank].door;
    }
    part.token = records[members[0]].token;
    set_own_rank(&part);
    return part;
}

static weir_status join_part(struct local_run *run, const struct lineup *part,
                             struct local_door *door, struct local_group **out_group)
{
    const struct local_group *whole = run->group;
    if (join_members(part, door, run->by.deadline_ns, NULL, out_group)) {
        (*out_group)->origin_rank = whole->origin_rank;
        (*out_group)->origin_count = whole->origin_count;
        local_enlist(*out_group);
        return WEIR_OK;
    }
    const weir_status status = *out_group && (*out_group)->base.cause.text[0]
                                   ? weir_host_fail(whole->base.host, WEIR_ERROR_COMM, NULL, "%s",
                                                    (*out_group)->base.cause.text)
                                   : weir_host_no_memory(whole->base.host, "a part of a group");
    if (*out_group)
        local_mesh_destroy(*out_group);
    *out_group = NULL;
    return status;
}

// All ranks' records. Opens this rank's door, which the caller closes.
static bool gather_records(struct local_run *run, const struct weir_transport_split *split,
                           struct local_record *records, struct local_door **out_door)
{
    struct local_record own = {.color = split->color, .key = split->key, .token = local_token()};
    const struct weir_transport_call gather = {
        .struct_size = sizeof gather,
        .kind = WEIR_ALL_GATHER,
        .element = WEIR_U8,
        .count = sizeof own,
        .src = &own,
        .dst = records,
    };
    *out_door = open_door(run->group);
    if (!*out_door)
        return weir_caller_fail(&run->by, "rank %u cannot listen for its part: %s",
                                run->group->base.rank, strerror(errno));
    own.door = (*out_door)->where;
    run->call = &gather;
    return local_carry(run);
}

weir_status local_split(void *group, const struct weir_transport_split *split, void **out_part)
{
    struct local_run run =
        local_run_begin(group,
                        weir_head_of_line(WEIR_CALL_SPLIT, split->number, split->file, split->line),
                        split->timeout_ns);
    run.by.head.element = WEIR_U8;
    run.by.head.count = sizeof(struct local_record);
    const uint32_t count = run.group->base.count;
    const struct weir_host *host = run.group->base.host;
    struct local_group *part = NULL;
    struct local_door *door = NULL;
    *out_part = NULL;
    weir_status status = weir_group_report(group, WEIR_ERROR_COMM, NULL);
    if (status)
        return status;

    struct local_record *records = host->allocate(count * (sizeof *records + sizeof(uint32_t)));
    if (!records) {
        weir_caller_fail(&run.by, "rank %u has no host memory left", run.group->base.rank);
        status = weir_group_report(group, WEIR_ERROR_OUT_OF_MEMORY, "free some memory of the host");
    } else if (!gather_records(&run, split, records, &door)) {
        status = weir_group_report(group, WEIR_ERROR_COMM, NULL);
    } else if (split->color != WEIR_NO_COLOR) {
        struct lineup lineup = lineup_of(run.group, records, (uint32_t *)(void *)(records + count));
        lineup.label = split->label;
        status = join_part(&run, &lineup, door, &part);
    }
    *out_part = part;
    close_door(run.group, door);
    host->release(records);
    return status;
}

// All of the list come here, to a barrier of the new group. On failure without a cause there is no memory.
static bool meet_members(struct local_shrink *shrink, struct local_group **out_group)
{
    struct lineup left = {.whole = shrink->whole,
                          .label = shrink->params->label,
                          .token = shrink->token,
                          .members = shrink->members};
    const uint64_t deadline_ns =
        local_sooner(shrink->deadline_ns, weir_clock_now_ns() + 2 * shrink->patience_ns);
    struct weir_cause cause = {.rank = UINT32_MAX};
    for (uint32_t i = 0; i < left.whole->base.count; i++)
        if (is_listed(shrink, i))
            left.members[left.count++] = i;
    set_own_rank(&left);
    if (join_members(&left, shrink->door, deadline_ns, shrink, out_group)) {
        const struct weir_transport_call barrier = {
            .struct_size = sizeof barrier,
            .kind = WEIR_BARRIER,
            .timeout_ns = weir_clock_left(deadline_ns),
        };
        if (local_run_call(*out_group, &barrier) == WEIR_OK) {
            local_enlist(*out_group);
            return true;
        }
    }
    // The others may have told the first one before they closed the connections that this rank has missed.
    hear(shrink, 0);
    if (*out_group && (*out_group)->base.cause.text[0])
        set_cause(shrink, shrink->whole->base.rank, " cannot go on: %.200s",
                  (*out_group)->base.cause.text);
    snprintf(cause.text, sizeof cause.text, "%s", shrink->cause);
    if (*out_group && cause.text[0])
        local_mesh_fail(*out_group, &cause); // some may be in the barrier
    return false;
}

// WEIR_OK without a group: the others have left this rank out.
static weir_status go_on(struct local_shrink *shrink, struct local_group **out_group)
{
    struct local_group *whole = shrink->whole;
    struct mesh_news news = {.kind = MESH_FAILED,
                             .step = whole->step,
                             .cause = {.rank = whole->base.rank}};
    weir_status status = WEIR_ERROR_COMM;
    shrink->door = open_door(whole);
    if (!shrink->door) {
        status = errno == ENOMEM ? WEIR_ERROR_OUT_OF_MEMORY : WEIR_ERROR_SYSTEM;
        set_cause(shrink, whole->base.rank, " cannot listen: %s", strerror(errno));
    } else if (settle(shrink)) {
        whole->left_out = !is_listed(shrink, whole->base.rank);
        if (whole->left_out || meet_members(shrink, out_group))
            return WEIR_OK;
        status = shrink->cause[0] ? status : WEIR_ERROR_OUT_OF_MEMORY;
        set_cause(shrink, whole->base.rank, " has no host memory left");
    }
    // The attempt has failed on this rank, and so on all.
    snprintf(news.cause.text, sizeof news.cause.text, "%s", shrink->cause);
    send_to_all(shrink, &news);
    if (*out_group)
        local_mesh_destroy(*out_group); // not before the others have the cause
    *out_group = NULL;
    return weir_host_fail(whole->base.host, status,
                          status == WEIR_ERROR_COMM ? "shrink the communicator again" : NULL, "%s",
                          shrink->cause);
}

weir_status local_shrink(void *group, const struct weir_transport_shrink *params, void **out_group)
{
    struct local_group *whole = group;
    const struct weir_host *host = whole->base.host;
    const uint64_t now_ns = weir_clock_now_ns();
    struct local_group *part = NULL;
    *out_group = NULL;
    weir_group_abort(whole, "it goes on with the ranks that are left"); // unless it has failed
    struct local_shrink shrink = {.whole = whole,
                                  .params = params,
                                  .patience_ns = params->timeout_ns / 4,
                                  .deadline_ns = params->timeout_ns > UINT64_MAX / 4
                                                     ? UINT64_MAX / 2
                                                     : now_ns + 2 * params->timeout_ns,
                                  .members =
                                      host->allocate(whole->base.count * sizeof *shrink.members)};
    if (!shrink.members)
        return weir_host_no_memory(host, "a group");
    whole->step++;
    const weir_status status = whole->left_out ? WEIR_OK : go_on(&shrink, &part);
    *out_group = part;
    close_door(whole, shrink.door);
    host->release(shrink.members);
    return whole->left_out
               ? weir_host_fail(
                     host, WEIR_ERROR_COMM,
                     "end this rank, or let all ranks create another communicator",
                     "'%s': the other ranks have gone on without rank %u, which came late",
                     whole->base.label, whole->base.rank)
               : status;
}
