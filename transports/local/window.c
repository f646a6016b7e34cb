// A window has two areas, of which a rank shows what others need in one and then in the other. A large phase takes several
// steps. A rank writes an area again when all have read it, which it knows from their stages: every rank counts, before
// it waits, how far it is.
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
#include "transports/kit/reduce.h"

// Of one step, on each rank; both areas of two ranks fit into a usual cache.
#define STEP_BYTES ((size_t)512 << 10)
#define HEAD_BYTES ((size_t)4096)
#define WINDOW_BYTES (HEAD_BYTES + 2 * STEP_BYTES)
// An area has a slot for each rank where each needs another part, of a multiple of this.
#define SLOT_UNIT ((size_t)64)
_Static_assert(STEP_BYTES / LOCAL_MAX_RANKS >= SLOT_UNIT, "each rank has a slot");

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
    void *memory = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, WINDOW_BYTES, MADV_DONTFORK); // a child would keep it when all ranks have gone
    return memory;
}

// A larger file than the process may write would end it by a signal.
static bool may_write_windows(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= WINDOW_BYTES;
}

// Memory without a name, whose size nothing can change any more. Returns the file, or -1.
static int make_own(struct local_group *group)
{
    struct mesh_window *window = NULL;
    errno = EFBIG;
    int file =
        may_write_windows() ? memfd_create("weir-window", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (file >= 0 && ftruncate(file, (off_t)WINDOW_BYTES) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        window = map(file);
    if (!window && file >= 0) {
        close(file);
        file = -1;
    }
    group->windows[group->rank] = window;
    return file;
}

// Memory that could shrink would end this process when it reads there; and a file, whose seals cannot be had,
// would be changed.
static bool is_window(int file)
{
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const int seals = file >= 0 ? fcntl(file, F_GET_SEALS) : -1;
    struct stat state;
    return seals >= 0 && (seals & wanted) == wanted && fstat(file, &state) == 0 &&
           state.st_size == (off_t)WINDOW_BYTES;
}

// False with errno.
static bool map_other(struct local_group *group, uint32_t rank, uint64_t deadline_ns)
{
    const int file = local_read_descriptor(group->peers[rank].data, deadline_ns);
    if (file < 0)
        return false;
    errno = EINVAL;
    if (is_window(file))
        group->windows[rank] = map(file);
    const int error = errno;
    close(file);
    errno = error;
    return group->windows[rank] != NULL;
}

static bool fail_own(const struct local_group *group, char *cause)
{
    snprintf(cause, WEIR_CAUSE_SIZE,
             "'%s': rank %u cannot make %zu bytes of memory that the ranks share: %s", group->label,
             group->rank, WINDOW_BYTES, strerror(errno));
    return false;
}

static bool fail_other(const struct local_group *group, uint32_t rank, const char *what,
                       char *cause)
{
    snprintf(cause, WEIR_CAUSE_SIZE,
             "'%s': rank %u cannot %s rank %u the memory that the ranks share: %s", group->label,
             group->rank, what, rank, strerror(errno));
    return false;
}

// A rank that has none leaves, so that none waits for it.
static bool exchange(struct local_group *group, int own, uint64_t deadline_ns, char *cause)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (i != group->rank && !local_write_descriptor(group->peers[i].data, own, deadline_ns))
            return fail_other(group, i, "hand over to", cause);
    for (uint32_t i = 0; i < group->count; i++)
        if (i != group->rank && !map_other(group, i, deadline_ns))
            return fail_other(group, i, "take from", cause);
    return true;
}

bool local_window_exchange(struct local_group *group, uint64_t deadline_ns, char *cause)
{
    group->windows = group->host->allocate(group->count * sizeof(struct mesh_window *));
    if (!group->windows)
        return false;
    const int own = make_own(group);
    const bool exchanged =
        own >= 0 ? exchange(group, own, deadline_ns, cause) : fail_own(group, cause);
    if (own >= 0)
        close(own);
    return exchanged;
}

void local_window_destroy(struct local_group *group)
{
    for (uint32_t i = 0; group->windows && i < group->count; i++)
        if (group->windows[i])
            munmap(group->windows[i], WINDOW_BYTES);
    group->host->release(group->windows);
    group->windows = NULL;
}

// Waiting for each other.

static bool is_at(struct local_group *group, uint32_t rank, uint32_t stage)
{
    return (int32_t)(group->windows[rank]->stage - stage) >= 0;
}

static bool are_at(struct local_group *group, uint32_t stage)
{
    uint32_t rank = 0;
    while (rank < group->count && is_at(group, rank, stage))
        rank++;
    return rank == group->count;
}

// The last rank that comes to a stage wakes those that sleep. Both sides write their word before they read the
// other's, so that one of them sees it: in one order for all, which acquire and release are not.
static void wake(struct local_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        struct mesh_window *window = group->windows[i];
        if (!atomic_load(&window->asleep))
            continue;
        atomic_fetch_add(&window->bell, 1);
        syscall(SYS_futex, &window->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

void local_window_wake(struct local_group *group)
{
    if (group->windows)
        wake(group);
}

static void sleep_until_woken(struct local_group *group, uint32_t stage, int turn)
{
    const bool is_long = turn >= SHORT_SLEEPS || group->count > MANY_RANKS;
    const struct timespec most = {.tv_nsec = is_long ? LONG_SLEEP_NS : SLEEP_NS};
    struct mesh_window *own = group->windows[group->rank];
    const uint32_t bell = atomic_load(&own->bell);
    atomic_store(&own->asleep, 1);
    if (!are_at(group, stage) && !local_mesh_cause(group, NULL))
        syscall(SYS_futex, &own->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    atomic_store(&own->asleep, 0);
}

// Takes the calls of those that have come to the first stage of a collective.
static void read_heads(struct local_run *run, uint32_t stage)
{
    struct local_group *group = run->group;
    for (uint32_t i = 0; i < group->count; i++) {
        struct mesh_peer *peer = &group->peers[i];
        if (i == group->rank || peer->has_come || !is_at(group, i, stage))
            continue;
        peer->incoming = group->windows[i]->heads[stage & 1];
        local_mesh_take_head(run, i, &peer->incoming);
    }
}

// Whether a peer sends no message, where it is to come to a collective.
static bool sends_nothing(const struct local_run *run, uint32_t index)
{
    const int data = run->group->peers[index].data;
    struct weir_head head;
    return index == run->group->rank ||
           recv(data, &head, sizeof head, MSG_PEEK) != (ssize_t)sizeof head ||
           weir_caller_agrees(&run->by, index, &head);
}

// Looks whether the wait is in vain: false once that has failed the group.
static bool may_wait(struct local_run *run, uint32_t stage)
{
    struct local_group *group = run->group;
    uint32_t first = UINT32_MAX;
    if (local_mesh_cause(run->group, NULL)) // this rank's program has aborted
        return false;
    for (uint32_t i = 0; i < group->count; i++) {
        // Also of one that has come to it: it may fail while this one waits for another.
        if (i != group->rank && !local_mesh_read_news(run, i))
            return false;
        if (is_at(group, i, stage))
            continue;
        first = i < first ? i : first;
        // One that has left may have come to it before.
        if (group->peers[i].left && !is_at(group, i, stage))
            return local_mesh_lost(run, i);
        if (!sends_nothing(run, i))
            return false;
    }
    return first == UINT32_MAX || local_mesh_may_wait(run, first);
}

// A rank that was last on this processor does not come while this one looks for it.
static bool is_kept_away(struct local_group *group, uint32_t stage, int cpu)
{
    bool kept = false;
    for (uint32_t i = 0; i < group->count; i++)
        kept = kept || (!is_at(group, i, stage) && group->windows[i]->cpu == cpu);
    return kept;
}

static bool looks_eagerly(struct local_group *group, uint32_t stage, int cpu)
{
    const uint64_t until_ns = weir_clock_now_ns() + EAGER_NS;
    if (!group->eager || is_kept_away(group, stage, cpu))
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

// All ranks have come so far. `first`: to the collective's first stage, with their heads.
static bool meet(struct local_run *run, bool first)
{
    struct local_group *group = run->group;
    struct mesh_window *own = group->windows[group->rank];
    const uint32_t stage = ++group->stage;
    const int cpu = sched_getcpu();
    own->cpu = cpu;
    own->stage = stage;
    if (are_at(group, stage))
        wake(group);
    const bool met = looks_eagerly(group, stage, cpu) || await_others(run, stage, first);
    if (met && first)
        read_heads(run, stage);
    return met;
}

// Which rank needs which piece of which other rank's memory. A collective on the whole of a buffer is
// made of chunks, one for each rank: rank i reduces, or receives of the root, chunk i, and all ranks
// copy it from there. So no rank, the root included, sends more than about twice what it holds.

// A piece of the owner's memory that the reader needs in one phase.
struct piece {
    bool of_result; // of the owner's `dst`, else of its `src`
    bool reduced;   // added to the other owners' pieces for `target`, else copied there
    size_t offset;
    size_t size;
    size_t target; // an offset in the reader's `dst`
};

struct chunk {
    size_t offset;
    size_t size;
};

static struct chunk chunk_of(const struct local_run *run, uint32_t index)
{
    const uint32_t n = run->group->count;
    const size_t element = weir_datatype_size(run->by.head.element);
    const uint64_t each = run->by.head.count / n;
    const uint64_t longer = run->by.head.count % n; // the first ones have one element more
    const uint64_t begin = each * index + (index < longer ? index : longer);
    return (struct chunk){(size_t)begin * element, (size_t)(each + (index < longer)) * element};
}

static size_t whole_of(const struct local_run *run)
{
    return (size_t)run->by.head.count * weir_datatype_size(run->by.head.element);
}

static uint32_t phases_of(uint32_t kind)
{
    switch (kind) {
    case WEIR_ALL_REDUCE:
    case WEIR_BROADCAST:
        return 2;
    case WEIR_REDUCE:
    case WEIR_ALL_GATHER:
    case WEIR_REDUCE_SCATTER:
    case WEIR_ALL_TO_ALL:
    case WEIR_GATHER:
    case WEIR_SCATTER:
    case WEIR_CALL_SPLIT:
        return 1;
    default:
        return 0;
    }
}

static struct piece all_reduce_piece(const struct local_run *run, uint32_t phase, uint32_t reader,
                                     uint32_t owner)
{
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    const bool wanted = phase == 0 || reader != owner;
    return (struct piece){
        .of_result = phase == 1,
        .reduced = phase == 0,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

// The root copies its own `src` to its `dst`, unless that is in place.
static struct piece broadcast_piece(const struct local_run *run, uint32_t phase, uint32_t reader,
                                    uint32_t owner)
{
    const uint32_t root = run->by.head.root;
    if (reader == root)
        return (struct piece){.size = phase == 0 && owner == root ? whole_of(run) : 0};

    const bool wanted = phase == 0 ? owner == root : owner != reader;
    const struct chunk chunk = chunk_of(run, phase == 0 ? reader : owner);
    return (struct piece){
        .of_result = owner != root,
        .offset = chunk.offset,
        .size = wanted ? chunk.size : 0,
        .target = chunk.offset,
    };
}

static struct piece single_piece(const struct local_run *run, uint32_t reader, uint32_t owner)
{
    const size_t whole = whole_of(run);
    const uint32_t root = run->by.head.root;
    switch (run->by.head.kind) {
    case WEIR_REDUCE:
        return (struct piece){.reduced = true, .size = reader == root ? whole : 0};
    case WEIR_REDUCE_SCATTER:
        return (struct piece){.reduced = true, .size = whole, .offset = reader * whole};
    case WEIR_ALL_GATHER:
    case WEIR_CALL_SPLIT:
        return (struct piece){.size = whole, .target = owner * whole};
    case WEIR_ALL_TO_ALL:
        return (struct piece){.size = whole, .offset = reader * whole, .target = owner * whole};
    case WEIR_GATHER:
        return (struct piece){.size = reader == root ? whole : 0, .target = owner * whole};
    case WEIR_SCATTER:
        return (struct piece){.size = owner == root ? whole : 0, .offset = reader * whole};
    default:
        return (struct piece){.size = 0};
    }
}

// The piece of `owner` that `reader` needs in the phase. False if it needs none.
static bool find_piece(const struct local_run *run, uint32_t phase, uint32_t reader, uint32_t owner,
                       struct piece *out_piece)
{
    if (run->by.head.kind == WEIR_ALL_REDUCE)
        *out_piece = all_reduce_piece(run, phase, reader, owner);
    else if (run->by.head.kind == WEIR_BROADCAST)
        *out_piece = broadcast_piece(run, phase, reader, owner);
    else
        *out_piece = single_piece(run, reader, owner);
    return out_piece->size > 0;
}

// In each step a rank shows a part of each piece that others need of it, and takes its own.

struct slots {
    bool shared; // all that read a rank's memory read the same piece
    size_t size;
    size_t longest; // of all pieces between two ranks
};

static struct slots slots_of(const struct local_run *run, uint32_t phase)
{
    const weir_collective kind = run->by.head.kind;
    const size_t element = weir_datatype_size(run->by.head.element);
    const size_t n = run->group->count;
    const bool chunks = kind == WEIR_BROADCAST || kind == WEIR_ALL_REDUCE;
    const bool parted = (chunks && phase == 0) || kind == WEIR_SCATTER ||
                        kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_TO_ALL;
    const size_t count = (size_t)run->by.head.count;
    return (struct slots){
        .shared = !parted,
        .size = parted ? STEP_BYTES / n / SLOT_UNIT * SLOT_UNIT : STEP_BYTES,
        .longest = (chunks ? count / n + (count % n > 0) : count) * element,
    };
}

static const char *memory_of(const struct local_run *run, const struct piece *piece)
{
    return (piece->of_result ? (const char *)run->dst : (const char *)run->src) + piece->offset;
}

static size_t part_of(const struct piece *piece, const struct slots *slots, size_t at)
{
    const size_t left = piece->size > at ? piece->size - at : 0;
    return left < slots->size ? left : slots->size;
}

static void show_pieces(struct local_run *run, uint32_t phase, const struct slots *slots, size_t at,
                        uint32_t area)
{
    const uint32_t own = run->group->rank;
    struct piece piece;
    for (uint32_t reader = 0; reader < run->group->count; reader++) {
        if (reader == own || !find_piece(run, phase, reader, own, &piece))
            continue;
        memcpy(area_of(run->group, own, area) + (slots->shared ? 0 : reader * slots->size),
               memory_of(run, &piece) + at, part_of(&piece, slots, at));
        if (slots->shared)
            return;
    }
}

// What this rank needs of an owner in the step.
static const char *look_at(struct local_run *run, uint32_t owner, const struct piece *piece,
                           const struct slots *slots, size_t at, uint32_t area)
{
    const uint32_t own = run->group->rank;
    if (owner == own)
        return memory_of(run, piece) + at;
    return area_of(run->group, owner, area) + (slots->shared ? 0 : own * slots->size);
}

static void reduce_pieces(struct local_run *run, uint32_t phase, const struct slots *slots,
                          size_t at, uint32_t area)
{
    const size_t element = weir_datatype_size(run->by.head.element);
    const uint32_t own = run->group->rank;
    struct piece piece;
    find_piece(run, phase, own, own, &piece);
    const size_t size = part_of(&piece, slots, at);
    char *to = (char *)run->dst + piece.target + at;
    for (size_t from = 0; from < size; from += LOCAL_TOTAL_BYTES) {
        const size_t part = size - from < LOCAL_TOTAL_BYTES ? size - from : LOCAL_TOTAL_BYTES;
        for (uint32_t owner = 0; owner < run->group->count; owner++) {
            const char *shown = look_at(run, owner, &piece, slots, at, area);
            if (owner == 0)
                memcpy(run->total, shown + from, part);
            else
                weir_reduce(run->by.head.element, run->by.head.reduction, run->total, shown + from,
                            part / element);
        }
        if (run->by.head.reduction == WEIR_AVERAGE)
            weir_reduce_divide(run->by.head.element, run->total, part / element, run->group->count);
        memcpy(to + from, run->total, part);
    }
}

static void take_pieces(struct local_run *run, uint32_t phase, const struct slots *slots, size_t at,
                        uint32_t area)
{
    const uint32_t own = run->group->rank;
    struct piece piece;
    for (uint32_t i = 1; i <= run->group->count; i++) {
        const uint32_t owner = (own + i) % run->group->count;
        if (!find_piece(run, phase, own, owner, &piece))
            continue;
        if (piece.reduced) {
            reduce_pieces(run, phase, slots, at, area);
            return;
        }
        if (owner != own)
            memcpy((char *)run->dst + piece.target + at,
                   look_at(run, owner, &piece, slots, at, area), part_of(&piece, slots, at));
    }
}

// The root of a broadcast needs all of its own, whatever the others need of it.
static void take_own(struct local_run *run, uint32_t phase)
{
    struct piece piece;
    const uint32_t own = run->group->rank;
    if (!find_piece(run, phase, own, own, &piece) || piece.reduced)
        return;
    char *to = (char *)run->dst + piece.target;
    if (to != memory_of(run, &piece))
        memmove(to, memory_of(run, &piece), piece.size);
}

bool local_window_meet(struct local_run *run)
{
    struct local_group *group = run->group;
    struct mesh_window *own = group->windows[group->rank];
    const uint32_t stage = group->stage;
    own->heads[(stage + 1) & 1] = run->by.head;
    if (phases_of(run->by.head.kind) > 0) {
        const struct slots slots = slots_of(run, 0);
        show_pieces(run, 0, &slots, 0, stage & 1);
    }
    return meet(run, true);
}

static bool carry_phase(struct local_run *run, uint32_t phase)
{
    const struct local_group *group = run->group;
    const struct slots slots = slots_of(run, phase);
    take_own(run, phase);
    for (size_t at = 0; at < slots.longest; at += slots.size) {
        const bool is_shown = phase == 0 && at == 0; // when the ranks met
        const uint32_t area = (group->stage - is_shown) & 1;
        if (!is_shown)
            show_pieces(run, phase, &slots, at, area);
        if (!is_shown && !meet(run, false))
            return false;
        take_pieces(run, phase, &slots, at, area);
    }
    return true;
}

bool local_window_carry(struct local_run *run)
{
    const uint32_t phases = phases_of(run->by.head.kind);
    bool carried = true;
    for (uint32_t phase = 0; carried && phase < phases; phase++)
        carried = carry_phase(run, phase);
    return carried;
}
