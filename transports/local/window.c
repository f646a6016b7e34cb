// A window has two areas, of which a rank shows what others need in one and then in the other. A large phase takes several
// steps. A rank writes an area again when all have read it, which it knows from their stages: every rank counts, before
// it waits, how far it is.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create(), seals and syscall()
#define _GNU_SOURCE
#include "transports/local/mesh.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "transports/kit/reduce.h"

// Below this, messages need less.
#define LEAST_BYTES ((size_t)32 << 10)
// Of one step, on each rank; both areas of two ranks fit into a usual cache.
#define STEP_BYTES ((size_t)512 << 10)
// Of what is added up at once, so that it stays in a core's own cache.
#define SEGMENT_BYTES ((size_t)32 << 10)
#define HEAD_BYTES ((size_t)4096)
#define WINDOW_BYTES (HEAD_BYTES + 2 * STEP_BYTES)
// An area has a slot for each rank where each needs another part, and no smaller ones.
#define LEAST_SLOT ((size_t)1 << 10)

// A rank asks again for so long before it sleeps, if each may have a processor of its own.
#define EAGER_NS (UINT64_C(50) * 1000)
#define EAGER_LOOKS 256
// It sleeps for so long before it looks whether a rank has died or failed.
#define SLEEP_NS 5000000

struct window {
    _Atomic uint32_t stage;
    _Atomic uint32_t bell; // of its rank, which sleeps there
    _Atomic uint32_t asleep;
    _Atomic int cpu; // where its rank was when it came to the stage
};

struct mesh_windows {
    uint32_t stage;
    struct window *of[]; // each rank
};

static char *area_of(struct mesh_group *group, uint32_t rank, uint32_t index)
{
    return (char *)group->windows->of[rank] + HEAD_BYTES + (size_t)index * STEP_BYTES;
}

// Making them.

static struct window *map(int file)
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
static int make_own(struct mesh_group *group)
{
    struct window *window = NULL;
    int file =
        may_write_windows() ? memfd_create("weir-window", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (file >= 0 && ftruncate(file, (off_t)WINDOW_BYTES) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        window = map(file);
    if (!window && file >= 0) {
        close(file);
        file = -1;
    }
    group->windows->of[group->local.rank] = window;
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

static bool map_other(struct mesh_group *group, uint32_t rank, uint64_t deadline_ns)
{
    int file = -1;
    if (local_read_descriptor(group->peers[rank].data, &file, deadline_ns) && is_window(file))
        group->windows->of[rank] = map(file);
    if (file >= 0)
        close(file);
    return group->windows->of[rank] != NULL;
}

// A rank that has none sends that, so that none waits for it.
static bool exchange(struct mesh_group *group, uint64_t deadline_ns)
{
    const int own = group->maps_memory ? make_own(group) : -1;
    bool all = own >= 0;
    for (uint32_t i = 0; i < group->local.count; i++)
        if (i != group->local.rank)
            all = local_write_descriptor(group->peers[i].data, own, deadline_ns) && all;
    for (uint32_t i = 0; i < group->local.count; i++)
        if (i != group->local.rank)
            all = map_other(group, i, deadline_ns) && all;
    if (own >= 0)
        close(own);
    return all;
}

bool local_window_agree(struct mesh_group *group, uint64_t timeout_ns, uint64_t deadline_ns)
{
    const struct weir_host *host = group->local.host;
    const size_t count = group->local.count;
    uint8_t *answers = host->allocate(count * sizeof *answers);
    group->windows = host->allocate(sizeof *group->windows + count * sizeof group->windows->of[0]);
    const uint8_t answer = answers && group->windows && exchange(group, deadline_ns);
    const bool agreed =
        answers && group->windows &&
        local_mesh_all_gather(group, timeout_ns, deadline_ns, &answer, sizeof answer, answers);
    if (!agreed || memchr(answers, 0, count))
        local_window_destroy(group);
    host->release(answers);
    return agreed;
}

void local_window_destroy(struct mesh_group *group)
{
    if (!group->windows)
        return;
    for (uint32_t i = 0; i < group->local.count; i++)
        if (group->windows->of[i])
            munmap(group->windows->of[i], WINDOW_BYTES);
    group->local.host->release(group->windows);
    group->windows = NULL;
}

// Waiting for each other.

static bool is_at(struct mesh_group *group, uint32_t rank, uint32_t stage)
{
    return (int32_t)(group->windows->of[rank]->stage - stage) >= 0;
}

static bool are_at(struct mesh_group *group, uint32_t stage)
{
    uint32_t rank = 0;
    while (rank < group->local.count && is_at(group, rank, stage))
        rank++;
    return rank == group->local.count;
}

// Both sides write their word before they read the other's, so that one of them sees it: in one order for
// all, which acquire and release are not.
static void wake_others(struct mesh_group *group)
{
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct window *window = group->windows->of[i];
        if (!atomic_load(&window->asleep))
            continue;
        atomic_fetch_add(&window->bell, 1);
        syscall(SYS_futex, &window->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void sleep_until_woken(struct mesh_group *group, uint32_t stage)
{
    static const struct timespec most = {.tv_nsec = SLEEP_NS};
    struct window *own = group->windows->of[group->local.rank];
    const uint32_t bell = atomic_load(&own->bell);
    atomic_store(&own->asleep, 1);
    if (!are_at(group, stage))
        syscall(SYS_futex, &own->bell, FUTEX_WAIT, bell, &most, NULL, 0);
    atomic_store(&own->asleep, 0);
}

// Looks whether the wait is in vain: false once that has failed the group.
static bool may_wait(const struct local_run *run, uint32_t stage)
{
    struct mesh_group *group = local_mesh_of(run);
    const bool late = weir_clock_now_ns() >= run->deadline_ns;
    if (run->group->wire->cause(run->group, NULL)) // this rank's program has aborted
        return false;
    for (uint32_t i = 0; i < group->local.count; i++) {
        // Also of one that has come to it: it may fail while this one waits for another.
        if (i != group->local.rank && !local_mesh_read_news(run, i))
            return false;
        // One that has left may have come to it before.
        if (group->peers[i].left && !is_at(group, i, stage))
            return local_mesh_lost(run, i);
        if (late && !is_at(group, i, stage))
            return weir_caller_late(&run->by, i, &group->peers[i].head);
    }
    return true;
}

// A rank that was last on this processor does not come while this one looks for it.
static bool is_kept_away(struct mesh_group *group, uint32_t stage, int cpu)
{
    bool kept = false;
    for (uint32_t i = 0; i < group->local.count; i++)
        kept = kept || (!is_at(group, i, stage) && group->windows->of[i]->cpu == cpu);
    return kept;
}

static bool looks_eagerly(struct mesh_group *group, uint32_t stage, int cpu)
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

// All ranks have come so far.
static bool meet(struct local_run *run)
{
    struct mesh_group *group = local_mesh_of(run);
    struct window *own = group->windows->of[group->local.rank];
    const uint32_t stage = ++group->windows->stage;
    const int cpu = sched_getcpu();
    own->cpu = cpu;
    own->stage = stage;
    wake_others(group);
    if (looks_eagerly(group, stage, cpu))
        return true;
    while (!are_at(group, stage)) {
        sleep_until_woken(group, stage);
        if (!may_wait(run, stage))
            return false;
    }
    return true;
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
        .size = parted ? STEP_BYTES / n / LEAST_SLOT * LEAST_SLOT : STEP_BYTES,
        .longest = (chunks ? count / n + (count % n > 0) : count) * element,
    };
}

static const char *memory_of(const struct local_run *run, const struct local_piece *piece)
{
    return (piece->of_result ? (const char *)run->dst : (const char *)run->src) + piece->offset;
}

static size_t part_of(const struct local_piece *piece, const struct slots *slots, size_t at)
{
    const size_t left = piece->size > at ? piece->size - at : 0;
    return left < slots->size ? left : slots->size;
}

static void show_pieces(struct local_run *run, uint32_t phase, const struct slots *slots, size_t at,
                        uint32_t area)
{
    const uint32_t own = run->group->rank;
    struct local_piece piece;
    for (uint32_t reader = 0; reader < run->group->count; reader++) {
        if (reader == own || !local_piece(run, phase, reader, own, &piece))
            continue;
        memcpy(area_of(local_mesh_of(run), own, area) + (slots->shared ? 0 : reader * slots->size),
               memory_of(run, &piece) + at, part_of(&piece, slots, at));
        if (slots->shared)
            return;
    }
}

// What this rank needs of an owner in the step.
static const char *shown_by(struct local_run *run, uint32_t owner, const struct local_piece *piece,
                            const struct slots *slots, size_t at, uint32_t area)
{
    const uint32_t own = run->group->rank;
    if (owner == own)
        return memory_of(run, piece) + at;
    return area_of(local_mesh_of(run), owner, area) + (slots->shared ? 0 : own * slots->size);
}

static void reduce_pieces(struct local_run *run, uint32_t phase, const struct slots *slots,
                          size_t at, uint32_t area)
{
    const size_t element = weir_datatype_size(run->by.head.element);
    const uint32_t own = run->group->rank;
    struct local_piece piece;
    local_piece(run, phase, own, own, &piece);
    const size_t size = part_of(&piece, slots, at);
    char *to = (char *)run->dst + piece.target + at;
    for (size_t from = 0; from < size; from += SEGMENT_BYTES) {
        const size_t part = size - from < SEGMENT_BYTES ? size - from : SEGMENT_BYTES;
        memcpy(run->total, shown_by(run, 0, &piece, slots, at, area) + from, part);
        for (uint32_t owner = 1; owner < run->group->count; owner++)
            weir_reduce(run->by.head.element, run->by.head.reduction, run->total,
                        shown_by(run, owner, &piece, slots, at, area) + from, part / element);
        if (run->by.head.reduction == WEIR_AVERAGE)
            weir_reduce_divide(run->by.head.element, run->total, part / element, run->group->count);
        memcpy(to + from, run->total, part);
    }
}

static void take_pieces(struct local_run *run, uint32_t phase, const struct slots *slots, size_t at,
                        uint32_t area)
{
    const uint32_t own = run->group->rank;
    struct local_piece piece;
    for (uint32_t i = 0; i < run->group->count; i++) {
        const uint32_t owner = (own + i) % run->group->count;
        if (!local_piece(run, phase, own, owner, &piece))
            continue;
        if (piece.reduced) {
            reduce_pieces(run, phase, slots, at, area);
            return;
        }
        char *to = (char *)run->dst + piece.target + at;
        const char *from = shown_by(run, owner, &piece, slots, at, area);
        if (to != from && owner != own)
            memcpy(to, from, part_of(&piece, slots, at));
    }
}

// The root of a broadcast needs all of its own, whatever the others need of it.
static void take_own(struct local_run *run, uint32_t phase)
{
    struct local_piece piece;
    const uint32_t own = run->group->rank;
    if (!local_piece(run, phase, own, own, &piece) || piece.reduced)
        return;
    char *to = (char *)run->dst + piece.target;
    if (to != memory_of(run, &piece))
        memmove(to, memory_of(run, &piece), piece.size);
}

bool local_window_phase(struct local_run *run, uint32_t phase)
{
    const struct slots slots = slots_of(run, phase);
    take_own(run, phase);
    for (size_t at = 0; at < slots.longest; at += slots.size) {
        const uint32_t area = local_mesh_of(run)->windows->stage & 1;
        show_pieces(run, phase, &slots, at, area);
        if (!meet(run))
            return false;
        take_pieces(run, phase, &slots, at, area);
    }
    return true;
}

bool local_window_takes(const struct local_run *run)
{
    const size_t whole = (size_t)run->by.head.count * weir_datatype_size(run->by.head.element);
    return local_mesh_of(run)->windows && whole >= LEAST_BYTES &&
           local_phases(run->by.head.kind) > 0 && run->group->count <= STEP_BYTES / LEAST_SLOT;
}
