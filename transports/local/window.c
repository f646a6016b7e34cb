// A window has two areas, of which a rank gives in one and then in the other. A rank writes an area again when all have
// read it, which it knows from their stages: every rank counts, before it waits, how far it is.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create(), seals and syscall()
#define _GNU_SOURCE
#include "transports/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

// Of one step, on each rank; both areas of two ranks fit into a usual cache.
#define STEP_BYTES ((size_t)512 << 10)
#define HEAD_BYTES ((size_t)4096)
_Static_assert(LOCAL_WINDOW_BYTES == HEAD_BYTES + 2 * STEP_BYTES, "it has a head and two areas");
// Where each rank takes another part of an area, that has at most a multiple of this.
#define PART_UNIT ((size_t)64)
_Static_assert(STEP_BYTES / LOCAL_MAX_RANKS >= PART_UNIT, "there is a part for each rank");

// A rank asks again for so long before it sleeps, if each may have a processor of its own.
#define EAGER_NS (UINT64_C(50) * 1000)
#define EAGER_LOOKS 256
// It sleeps for so long before it looks whether a rank has died.
#define SLEEP_NS 1000000
#define LONG_SLEEP_NS 5000000 // of many ranks, and after so many
#define SHORT_SLEEPS 100
#define MANY_RANKS 16

static char *area_of(struct local_group *group, uint32_t rank, uint32_t index)
{
    return (char *)group->windows[rank] + HEAD_BYTES + (size_t)index * STEP_BYTES;
}

// Making them.

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

// Waiting for each other.

static bool is_at(struct local_group *group, uint32_t rank, uint32_t stage)
{
    return (int32_t)(group->windows[rank]->stage - stage) >= 0;
}

static bool are_at(struct local_group *group, uint32_t stage)
{
    uint32_t rank = 0;
    while (rank < group->base.count && is_at(group, rank, stage))
        rank++;
    return rank == group->base.count;
}

// The last rank that comes to a stage wakes those that sleep. Both sides write their word before they read the
// other's, so that one of them sees it: in one order for all, which acquire and release are not.
void local_window_wake(struct local_group *group)
{
    for (uint32_t i = 0; group->windows && i < group->base.count; i++) {
        struct mesh_window *window = group->windows[i];
        if (!window || !atomic_load(&window->asleep)) // a group that is being made has not all
            continue;
        atomic_fetch_add(&window->bell, 1);
        syscall(SYS_futex, &window->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void sleep_until_woken(struct local_group *group, uint32_t stage, int turn)
{
    const bool is_long = turn >= SHORT_SLEEPS || group->base.count > MANY_RANKS;
    const struct timespec most = {.tv_nsec = is_long ? LONG_SLEEP_NS : SLEEP_NS};
    struct mesh_window *own = group->windows[group->base.rank];
    const uint32_t bell = atomic_load(&own->bell);
    atomic_store(&own->asleep, 1);
    if (!are_at(group, stage) && !group->base.failed)
        syscall(SYS_futex, &own->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    atomic_store(&own->asleep, 0);
}

// Takes the calls of those that have come to the first stage of a collective.
static void read_heads(struct local_run *run, uint32_t stage)
{
    struct local_group *group = run->group;
    for (uint32_t i = 0; i < group->base.count; i++)
        if (i != group->base.rank && !group->peers[i].has_come && is_at(group, i, stage))
            local_mesh_take_head(run, i, &group->windows[i]->heads[stage & 1]);
}

// Looks whether the wait is in vain: false once that has failed the group.
static bool may_wait(struct local_run *run, uint32_t stage)
{
    struct local_group *group = run->group;
    struct weir_head head;
    uint32_t first = UINT32_MAX;
    if (group->base.failed) // this rank's program has aborted
        return false;
    for (uint32_t i = 0; i < group->base.count; i++) {
        // Also of one that has come to it: it may fail while this one waits for another.
        if (i != group->base.rank && !local_mesh_read_news(run, i))
            return false;
        if (is_at(group, i, stage))
            continue;
        first = i < first ? i : first;
        // One that has left may have come to it before.
        if (group->peers[i].left && !is_at(group, i, stage))
            return local_mesh_lost(run, i);
        // Where it is to come to a collective it sends no message.
        if (recv(group->peers[i].data, &head, sizeof head, MSG_PEEK) == (ssize_t)sizeof head &&
            !weir_caller_agrees(&run->by, i, &head))
            return false;
    }
    return first == UINT32_MAX || local_mesh_may_wait(run, first);
}

static bool looks_eagerly(struct local_group *group, uint32_t stage, int cpu)
{
    const uint64_t until_ns = weir_clock_now_ns() + EAGER_NS;
    bool eager = group->eager;
    // A rank that was last on this processor does not come while this one looks for it.
    for (uint32_t i = 0; i < group->base.count && eager; i++)
        eager = is_at(group, i, stage) || group->windows[i]->cpu != cpu;
    if (!eager)
        return false;
    do {
        for (int i = 0; i < EAGER_LOOKS; i++)
            if (are_at(group, stage))
                return true;
    } while (weir_clock_now_ns() < until_ns);
    return false;
}

static bool await_others(struct local_run *run, uint32_t stage, bool first)
{
    struct local_group *group = run->group;
    for (int turn = 0; !are_at(group, stage); turn += turn < SHORT_SLEEPS) {
        sleep_until_woken(group, stage, turn);
        if (first)
            read_heads(run, stage);
        if (!are_at(group, stage) && !may_wait(run, stage))
            return false;
    }
    return true;
}

// All ranks have come so far, the first time with their heads, which are the same. False once that has failed the group.
static bool meet(struct local_run *run)
{
    struct local_group *group = run->group;
    struct mesh_window *own = group->windows[group->base.rank];
    const uint32_t stage = ++group->stage;
    const int cpu = sched_getcpu();
    const bool first = !run->met;
    own->heads[stage & 1] = run->by.head;
    own->cpu = cpu;
    own->stage = stage;
    if (are_at(group, stage))
        local_window_wake(group);
    if (!looks_eagerly(group, stage, cpu) && !await_others(run, stage, first))
        return false;
    run->met = true;
    if (first)
        read_heads(run, stage);
    return !run->differs || local_mesh_judge(run);
}

// What is given in a move is in the area of its stage, for each rank what all take, or parts one after the other.

static char *give(void *user)
{
    const struct local_run *run = user;
    return area_of(run->group, run->group->base.rank, (run->group->stage + 1) & 1);
}

static const char *given(void *user, uint32_t from)
{
    const struct local_run *run = user;
    return area_of(run->group, from, run->group->stage & 1) + run->given_at;
}

static bool move(void *user, weir_collective kind, size_t size)
{
    struct local_run *run = user;
    const bool parts = kind == WEIR_ALL_TO_ALL || kind == WEIR_SCATTER;
    run->given_at = parts ? run->group->base.rank * size : 0;
    return meet(run);
}

// An all-reduce always takes two moves, so that a rank that comes to it late hears of another one's failure.
bool local_window_carry(struct local_run *run)
{
    const struct local_group *group = run->group;
    const struct weir_carrier carrier = {
        .user = run,
        .rank = group->base.rank,
        .count = group->base.count,
        .one = STEP_BYTES,
        .each = STEP_BYTES / group->base.count / PART_UNIT * PART_UNIT,
        .whole = STEP_BYTES,
        .give = give,
        .move = move,
        .given = given,
    };
    return weir_carry(&carrier, run->call) && (run->met || meet(run));
}
