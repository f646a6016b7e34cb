// Groups: their life; their connections, each rank with each other, when all know where the others' doors are, and their
// windows; and parts of a group, whose ranks have told that in the split.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create() and seals
#define _GNU_SOURCE
#include "transports/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

// The groups of the process.

// What a rank waits in, in another group of its own, while a group waits for it: communicators that the
// ranks use in another order end so. A rank is known by its place in the group that all its groups are parts
// of.
// A rank whose time is nearly over says in its other groups that it waits.

static struct local_group *groups; // of this process, by its lock

// Until it is destroyed the group is known to the others of its rank.
static void enlist(struct local_group *group)
{
    local_process_lock();
    group->next = groups;
    groups = group;
    local_process_unlock();
}

void local_say_elsewhere(const struct local_group *own, const char *text)
{
    local_process_lock();
    for (struct local_group *group = groups; group; group = group->next) {
        const bool is_of_rank = group->base.host == own->base.host &&
                                group->origin_rank == own->origin_rank &&
                                group->origin_count == own->origin_count;
        struct mesh_window *window = local_window_of(group, group->base.rank);
        if (group != own && is_of_rank && window)
            local_text_write(&window->elsewhere, text);
    }
    local_process_unlock();
}

// Their life.

struct local_group *local_mesh_create(const struct weir_host *host, const char *label,
                                      uint32_t rank, uint32_t count)
{
    struct local_group *group = host->allocate(sizeof *group);
    if (!group)
        return NULL;
    group->base.host = host;
    group->base.rank = rank;
    group->base.count = count;
    group->origin_rank = rank;
    group->origin_count = count;
    group->base.fail = local_mesh_fail;
    snprintf(group->base.label, sizeof group->base.label, "%s", label);
    pthread_mutex_init(&group->lock, NULL);
    group->eager = (long)count <= sysconf(_SC_NPROCESSORS_ONLN);
    group->peers = host->allocate(count * sizeof *group->peers);
    group->polls = host->allocate((2 * (size_t)count + DOOR_POLLS) * sizeof *group->polls);
    for (uint32_t i = 0; group->peers && i < count; i++) {
        group->peers[i].data = -1;
        group->peers[i].control = -1;
    }
    if (!group->peers || !group->polls) {
        local_mesh_destroy(group);
        return NULL;
    }
    return group;
}

void local_mesh_destroy(struct local_group *group)
{
    const struct weir_host *host = group->base.host;
    local_process_lock();
    struct local_group **at = &groups;
    while (*at && *at != group)
        at = &(*at)->next;
    if (*at)
        *at = group->next;
    local_process_unlock();
    for (uint32_t i = 0; group->peers && i < group->base.count; i++) {
        local_close(&group->peers[i].data);
        local_close(&group->peers[i].control);
    }
    for (uint32_t i = 0; group->windows && i < group->base.count; i++)
        if (group->windows[i])
            munmap(group->windows[i], LOCAL_WINDOW_BYTES);
    host->release(group->windows);
    pthread_mutex_destroy(&group->lock);
    host->release(group->polls);
    host->release(group->peers);
    host->release(group);
}

bool local_carries_data(const void *group)
{
    const struct local_group *local = group;
    return local->windows;
}

// Windows.

static struct mesh_window *map(int file)
{
    void *memory = mmap(NULL, LOCAL_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, LOCAL_WINDOW_BYTES,
            MADV_DONTFORK); // a child would keep it when all ranks have gone
    return memory;
}

// Memory without a name, whose size nothing can change any more. Returns the file, or -1 with the group's cause.
static int make_own(struct local_group *group)
{
    struct mesh_window *window = NULL;
    struct rlimit limit;
    // A larger file than the process may write would end it by a signal.
    const bool may = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= LOCAL_WINDOW_BYTES;
    errno = EFBIG;
    const int file = may ? memfd_create("weir-window", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (file >= 0 && ftruncate(file, (off_t)LOCAL_WINDOW_BYTES) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        window = map(file);
    group->windows[group->base.rank] = window;
    if (window)
        return file;
    snprintf(group->base.cause.text, sizeof group->base.cause.text,
             "'%s': rank %u cannot make %zu bytes of memory that the ranks share: %s",
             group->base.label, group->base.rank, LOCAL_WINDOW_BYTES, strerror(errno));
    if (file >= 0)
        close(file);
    return -1;
}

// Room for one descriptor, aligned as a header is.
union passed {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

// One byte with a descriptor beside it.
static bool write_descriptor(int connection, int descriptor, uint64_t deadline_ns)
{
    union passed passed = {.header = {.cmsg_len = CMSG_LEN(sizeof descriptor),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS}};
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    const struct msghdr message = {
        .msg_iov = &one,
        .msg_iovlen = 1,
        .msg_control = &passed,
        .msg_controllen = sizeof passed,
    };
    memcpy(CMSG_DATA(&passed.header), &descriptor, sizeof descriptor);
    while (sendmsg(connection, &message, MSG_NOSIGNAL) < 0)
        if (!local_may_try_again(connection, POLLOUT, deadline_ns))
            return false;
    return true;
}

// -1 with errno, EMFILE if this process may open no more.
static int read_descriptor(int connection, uint64_t deadline_ns)
{
    union passed passed;
    char byte = 0;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    int descriptor = -1;
    ssize_t got = -1;
    do {
        message.msg_control = &passed;
        message.msg_controllen = CMSG_LEN(sizeof descriptor); // a second one would stay open
        got = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && local_may_try_again(connection, POLLIN, deadline_ns));
    if (got < 0)
        return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (got > 0 && header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof descriptor))
        memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    errno = got == 0 ? ECONNRESET : message.msg_flags & MSG_CTRUNC ? EMFILE : EBADMSG;
    return descriptor;
}

// False with errno.
static bool map_other(struct local_group *group, uint32_t rank, uint64_t deadline_ns)
{
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct stat state;
    const int file = read_descriptor(group->peers[rank].data, deadline_ns);
    if (file < 0)
        return false;
    const int seals = fcntl(file, F_GET_SEALS);
    errno = EINVAL;
    // Memory that could shrink would end this process when it reads there; and a file, whose seals cannot be had,
    // would be changed.
    if (seals >= 0 && (seals & wanted) == wanted && fstat(file, &state) == 0 &&
        state.st_size == (off_t)LOCAL_WINDOW_BYTES)
        group->windows[rank] = map(file);
    const int error = errno;
    close(file);
    errno = error;
    return group->windows[rank] != NULL;
}

static bool fail_other(struct local_group *group, uint32_t rank, const char *what)
{
    snprintf(group->base.cause.text, sizeof group->base.cause.text,
             "'%s': rank %u cannot %s rank %u the memory that the ranks share: %s",
             group->base.label, group->base.rank, what, rank, strerror(errno));
    return false;
}

// A rank that has none leaves, so that none waits for it.
bool local_window_exchange(struct local_group *group, uint64_t deadline_ns)
{
    group->windows = group->base.host->allocate(group->base.count * sizeof(struct mesh_window *));
    const int own = group->windows ? make_own(group) : -1;
    if (own < 0)
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < group->base.count && ok; i++)
        ok = i == group->base.rank || write_descriptor(group->peers[i].data, own, deadline_ns) ||
             fail_other(group, i, "hand over to");
    for (uint32_t i = 0; i < group->base.count && ok; i++)
        ok = i == group->base.rank || map_other(group, i, deadline_ns) ||
             fail_other(group, i, "take from");
    close(own);
    return ok;
}

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
        const bool goes_on =
            shrink->settled ? is_listed(shrink, i) : peer->told_step >= whole->step;
        if (i != whole->base.rank && goes_on && (peer->left || peer->told_step > whole->step))
            set_cause(shrink, i, ", which was to go on too, has %s",
                      peer->left ? "gone" : "begun again");
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
    if (first_far(group) == group->base.count && !local_window_exchange(group, deadline_ns))
        return false;
    enlist(group);
    return true;
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
    uint32_t count;
    uint32_t *members;
};

// Makes a group of members of another one, in that order, which have told where their doors are. It is stored also where a rank
// has not joined.
static bool join_members(const struct lineup *lineup, struct local_door *door, uint64_t deadline_ns,
                         struct local_shrink *shrink, struct local_group **out_group)
{
    const struct local_group *whole = lineup->whole;
    uint32_t rank = 0;
    while (lineup->members[rank] != whole->base.rank)
        rank++;
    struct local_group *group =
        local_mesh_create(whole->base.host, lineup->label, rank, lineup->count);
    *out_group = group;
    if (!group)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        const struct mesh_peer *member = &whole->peers[lineup->members[i]];
        (void)local_find_door(&member->told, &member->address, &group->peers[i].address);
    }
    group->secret = whole->secret;
    group->origin_rank = whole->origin_rank;
    group->origin_count = whole->origin_count;
    return local_mesh_connect(group, door, lineup->token, deadline_ns, shrink);
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
    return part;
}

static weir_status join_part(const struct local_run *run, const struct lineup *part,
                             struct local_door *door, void **out_part)
{
    const struct weir_host *host = run->group->base.host;
    struct local_group *group = NULL;
    if (join_members(part, door, run->by.deadline_ns, NULL, &group)) {
        *out_part = group;
        return WEIR_OK;
    }
    const weir_status status =
        group && group->base.cause.text[0]
            ? weir_host_fail(host, WEIR_ERROR_COMM, NULL, "%s", group->base.cause.text)
            : weir_host_no_memory(host, "a part of a group");
    if (group)
        local_mesh_destroy(group);
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
        status = join_part(&run, &lineup, door, out_part);
    }
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
    if (join_members(&left, shrink->door, deadline_ns, shrink, out_group)) {
        const struct weir_transport_call barrier = {
            .struct_size = sizeof barrier,
            .kind = WEIR_BARRIER,
            .timeout_ns = weir_clock_left(deadline_ns),
        };
        if (local_run_call(*out_group, &barrier) == WEIR_OK)
            return true;
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
