// A window has two areas: in the first a rank shows its elements, in the second the sums of its chunk.
// A large call takes several steps. A rank writes an area again when all have read it, which it knows
// from their stages: every rank counts, before it waits, how far it is.
//
// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create() and syscall()
#define _GNU_SOURCE
#include "transports/local/window.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/siphash.h"
#include "transports/kit/reduce.h"
#include "transports/local/share.h"

// Below this, messages need less.
#define LEAST_BYTES ((size_t)32 << 10)
// Of one step, on each rank; both areas of two ranks fit into a usual cache.
#define STEP_BYTES ((size_t)512 << 10)
// Of what is added up at once, so that it stays in a core's own cache.
#define SEGMENT_BYTES ((size_t)32 << 10)
#define HEAD_BYTES ((size_t)4096)
#define WINDOW_BYTES (HEAD_BYTES + 2 * STEP_BYTES)

// A rank asks again for so long before it sleeps, if each may have a processor of its own.
#define EAGER_NS (UINT64_C(50) * 1000)
#define EAGER_LOOKS 256
// It sleeps for so long before it looks whether a rank has died or failed.
#define SLEEP_NS 5000000

struct window {
    uint64_t token;
    _Atomic uint32_t stage;
    _Atomic uint32_t bell; // of its rank, which sleeps there
    _Atomic uint32_t asleep;
    _Atomic int cpu; // where its rank was when it came to the stage
};

struct tcp_windows {
    uint32_t stage;
    struct window *of[]; // each rank
};

// What each rank tells the others when a group is made.
struct offer {
    uint64_t process;
    uint64_t file; // UINT64_MAX: it has none
    uint64_t token;
};

static char *area_of(struct tcp_group *group, uint32_t rank, int index)
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

// Returns the file, or -1.
static int make_own(struct tcp_group *group, uint64_t token)
{
    int file = memfd_create("weir-window", MFD_CLOEXEC);
    struct window *window = NULL;
    if (file >= 0 && ftruncate(file, (off_t)WINDOW_BYTES) == 0)
        window = map(file);
    if (!window) {
        local_close(&file);
        return -1;
    }
    window->token = token;
    group->windows->of[group->local.rank] = window;
    return file;
}

static bool map_other(struct tcp_group *group, uint32_t rank, const struct offer *offer)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%llu/fd/%llu", (unsigned long long)offer->process,
             (unsigned long long)offer->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    struct window *window = map(file);
    local_close(&file);
    group->windows->of[rank] = window;
    return window && window->token == offer->token;
}

static bool map_all(struct tcp_group *group, const struct offer *offers)
{
    for (uint32_t i = 0; i < group->local.count; i++) {
        if (offers[i].file == UINT64_MAX)
            return false;
        if (i != group->local.rank && !map_other(group, i, &offers[i]))
            return false;
    }
    return true;
}

// The file stays until all have opened it.
static bool agree(struct tcp_group *group, struct offer *offers, uint8_t *answers,
                  uint64_t timeout_ns, uint64_t deadline_ns)
{
    struct weir_siphash_key key;
    weir_siphash_random_key(&key);
    int file = group->maps_memory ? make_own(group, key.words[0]) : -1;
    const struct offer own = {.process = (uint64_t)getpid(),
                              .file = file < 0 ? UINT64_MAX : (uint64_t)file,
                              .token = key.words[0]};
    bool agreed = local_share_gather(group, timeout_ns, deadline_ns, &own, sizeof own, offers);
    const uint8_t answer = agreed && map_all(group, offers);
    agreed = agreed &&
             local_share_gather(group, timeout_ns, deadline_ns, &answer, sizeof answer, answers);
    local_close(&file);
    if (!agreed || memchr(answers, 0, group->local.count))
        local_window_destroy(group);
    return agreed;
}

bool local_window_agree(struct tcp_group *group, uint64_t timeout_ns, uint64_t deadline_ns)
{
    const struct weir_host *host = group->local.host;
    const size_t count = group->local.count;
    struct offer *offers = host->allocate(count * sizeof *offers);
    uint8_t *answers = host->allocate(count * sizeof *answers);
    group->windows = host->allocate(sizeof *group->windows + count * sizeof group->windows->of[0]);
    const bool agreed = offers && answers && group->windows &&
                        agree(group, offers, answers, timeout_ns, deadline_ns);
    host->release(answers);
    host->release(offers);
    return agreed;
}

void local_window_destroy(struct tcp_group *group)
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

static bool is_at(struct tcp_group *group, uint32_t rank, uint32_t stage)
{
    return (int32_t)(group->windows->of[rank]->stage - stage) >= 0;
}

static bool are_at(struct tcp_group *group, uint32_t stage)
{
    uint32_t rank = 0;
    while (rank < group->local.count && is_at(group, rank, stage))
        rank++;
    return rank == group->local.count;
}

// Both sides write their word before they read the other's, so that one of them sees it: in one order for
// all, which acquire and release are not.
static void wake_others(struct tcp_group *group)
{
    for (uint32_t i = 0; i < group->local.count; i++) {
        struct window *window = group->windows->of[i];
        if (!atomic_load(&window->asleep))
            continue;
        atomic_fetch_add(&window->bell, 1);
        syscall(SYS_futex, &window->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void sleep_until_woken(struct tcp_group *group, uint32_t stage)
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
    struct tcp_group *group = local_tcp_of(run);
    const bool late = weir_clock_now_ns() >= run->deadline_ns;
    if (!group->word) // this rank's program has aborted
        return false;
    for (uint32_t i = 0; i < group->local.count; i++) {
        // Also of one that has come to it: it may fail while this one waits for another.
        if (i != group->local.rank && !local_tcp_read_news(run, i))
            return false;
        // One that has left may have come to it before.
        if (group->peers[i].left && !is_at(group, i, stage))
            return local_tcp_lost(run, i);
        if (late && !is_at(group, i, stage))
            return local_late(run, i, &group->peers[i].head);
    }
    return true;
}

// A rank that was last on this processor does not come while this one looks for it.
static bool is_kept_away(struct tcp_group *group, uint32_t stage, int cpu)
{
    bool kept = false;
    for (uint32_t i = 0; i < group->local.count; i++)
        kept = kept || (!is_at(group, i, stage) && group->windows->of[i]->cpu == cpu);
    return kept;
}

static bool looks_eagerly(struct tcp_group *group, uint32_t stage, int cpu)
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
    struct tcp_group *group = local_tcp_of(run);
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

// The elements.

// Elements of the call, and each rank's chunk of them.
struct step {
    size_t begin;
    size_t count;
};

static size_t chunk_begin(const struct local_run *run, const struct step *step, uint32_t rank)
{
    const size_t n = run->group->count;
    const size_t longer = step->count % n; // the first ones have one element more
    return step->count / n * rank + (rank < longer ? rank : longer);
}

// What the others add up.
static void show(struct local_run *run, const struct step *step)
{
    const size_t size = weir_datatype_size(run->head.element);
    const uint32_t own = run->group->rank;
    const size_t begin = chunk_begin(run, step, own) * size;
    const size_t end = chunk_begin(run, step, own + 1) * size;
    const char *from = (const char *)run->src + step->begin * size;
    char *to = area_of(local_tcp_of(run), own, 0);
    memcpy(to, from, begin);
    memcpy(to + end, from + end, step->count * size - end);
}

// `at` counts bytes of the step.
static const char *elements_of(struct local_run *run, const struct step *step, uint32_t rank,
                               size_t at)
{
    if (rank != run->group->rank)
        return area_of(local_tcp_of(run), rank, 0) + at;
    return (const char *)run->src + step->begin * weir_datatype_size(run->head.element) + at;
}

static void reduce_segment(struct local_run *run, const struct step *step, size_t at, char *total,
                           size_t size)
{
    const size_t count = size / weir_datatype_size(run->head.element);
    memcpy(total, elements_of(run, step, 0, at), size);
    for (uint32_t i = 1; i < run->group->count; i++)
        weir_reduce(run->head.element, run->head.reduction, total, elements_of(run, step, i, at),
                    count);
    if (run->head.reduction == WEIR_AVERAGE)
        weir_reduce_divide(run->head.element, total, count, run->group->count);
}

static void reduce(struct local_run *run, const struct step *step)
{
    const size_t element = weir_datatype_size(run->head.element);
    const uint32_t own = run->group->rank;
    const size_t begin = chunk_begin(run, step, own) * element;
    const size_t end = chunk_begin(run, step, own + 1) * element;
    char *sums = area_of(local_tcp_of(run), own, 1);
    char *to = (char *)run->dst + step->begin * element;
    for (size_t at = begin; at < end; at += SEGMENT_BYTES) {
        const size_t size = end - at < SEGMENT_BYTES ? end - at : SEGMENT_BYTES;
        reduce_segment(run, step, at, sums + (at - begin), size);
        memcpy(to + at, sums + (at - begin), size);
    }
}

static void take(struct local_run *run, const struct step *step)
{
    const size_t element = weir_datatype_size(run->head.element);
    const uint32_t n = run->group->count;
    char *to = (char *)run->dst + step->begin * element;
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t owner = (run->group->rank + i) % n;
        const size_t begin = chunk_begin(run, step, owner);
        memcpy(to + begin * element, area_of(local_tcp_of(run), owner, 1),
               (chunk_begin(run, step, owner + 1) - begin) * element);
    }
}

bool local_window_takes(const struct local_run *run)
{
    const size_t whole = (size_t)run->head.count * weir_datatype_size(run->head.element);
    return run->head.kind == WEIR_ALL_REDUCE && local_tcp_of(run)->windows && whole >= LEAST_BYTES;
}

bool local_window_all_reduce(struct local_run *run)
{
    const size_t most = STEP_BYTES / weir_datatype_size(run->head.element);
    struct step step = {.begin = 0};
    for (; step.begin < run->head.count; step.begin += step.count) {
        const size_t left = (size_t)run->head.count - step.begin;
        step.count = left < most ? left : most;
        show(run, &step);
        if (!meet(run))
            return false;
        reduce(run, &step);
        if (!meet(run))
            return false;
        take(run, &step);
    }
    return true;
}
