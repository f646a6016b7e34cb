// One rank of a program that makes and destroys communicators: `churn COUNT [memory] [SECONDS]`, of which
// each also makes a duplicate. After a tenth of them nothing that the process holds may grow: descriptors,
// threads, and with `memory` its resident memory. Each tenth is told, and after SECONDS all ranks end with
// what they have made.
#include <dirent.h>

#include "base/clock.h"
#include "tests/comm/local_device.h"

enum {
    N = 100,
    QUIET = 80, // measurements that agree: an end of NCCL takes as long as a creation
    SETTLES = 400,
    MEMORY_SLACK_KIB = 2048 // what an allocator keeps
};

struct held {
    size_t descriptors;
    size_t threads;
    long memory_kib;
};

static size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *it = opendir(folder);
    while (it && readdir(it))
        count++;
    if (it)
        closedir(it);
    return count;
}

static struct held measure(void)
{
    struct held held = {count_entries("/proc/self/fd"), count_entries("/proc/self/task"), 0};
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            held.memory_kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return held;
}

// An engine may end communicators on threads of its own, which take their time.
static struct held settle(void)
{
    struct held held = measure();
    for (int i = 0, quiet = 0; i < SETTLES && quiet < QUIET; i++) {
        weir_clock_sleep_ns(25000000);
        const struct held now = measure();
        const bool same = now.descriptors == held.descriptors && now.threads == held.threads;
        quiet = same ? quiet + 1 : 0;
        held = now;
    }
    return held;
}

struct churn {
    long count;
    uint64_t limit_ns; // 0: none
    bool memory;
    struct local local;
    uint64_t start_ns;
    struct held before;
};

// Whether the time is over on any rank.
static bool run_one(const struct churn *churn)
{
    const uint64_t took_ns = weir_clock_now_ns() - churn->start_ns;
    int32_t over = churn->limit_ns && took_ns >= churn->limit_ns;
    weir_queue *queue = churn->local.queue;
    weir_buffer *buffer = churn->local.buffer;
    weir_comm *comm;
    weir_comm *copy;
    check(weir_comm_create(churn->local.device, WEIR_PARAMS(weir_comm, .label = "churn"), &comm));
    check(weir_comm_duplicate(comm, "copy", &copy));
    check(weir_upload(queue, buffer, 0, &over, sizeof over));
    check(weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, N, WEIR_I32, WEIR_MAXIMUM));
    check(weir_queue_all_reduce(queue, copy, buffer, 0, buffer, 0, N, WEIR_I32, WEIR_MAXIMUM));
    check(weir_queue_barrier(queue, comm)); // so that no rank leaves one that others still use
    weir_comm_destroy(&copy), weir_comm_destroy(&comm);
    check(weir_download(queue, &over, buffer, 0, sizeof over));
    return over;
}

static void tell(const struct churn *churn, long made, const struct held *held)
{
    printf("%ld of %ld in %.1f s: descriptors %zu, threads %zu, memory %ld KiB\n", made,
           churn->count, (double)(weir_clock_now_ns() - churn->start_ns) / 1e9, held->descriptors,
           held->threads, held->memory_kib);
    fflush(stdout);
}

// The number of those that were made.
static long run(struct churn *churn)
{
    const long tenth = churn->count / 10;
    churn->start_ns = weir_clock_now_ns();
    for (long i = 0; i < churn->count; i++) {
        const bool over = run_one(churn);
        if (i == tenth) {
            check(weir_device_trim(churn->local.device));
            churn->before = settle();
            tell(churn, i + 1, &churn->before);
        } else if (tenth > 0 && i % tenth == 0) {
            const struct held now = measure();
            tell(churn, i + 1, &now);
        }
        if (over)
            return i + 1;
    }
    return churn->count;
}

static int compare(const struct churn *churn, long made, const struct held *after)
{
    const struct held *before = &churn->before;
    tell(churn, made, after);
    if (made <= churn->count / 10) {
        printf("the time was over before the tenth that is compared with\n");
        return 3;
    }
    printf("descriptors %zu and %zu, threads %zu and %zu, memory %ld and %ld KiB\n",
           before->descriptors, after->descriptors, before->threads, after->threads,
           before->memory_kib, after->memory_kib);
    return after->descriptors > before->descriptors || after->threads > before->threads ||
           (churn->memory && after->memory_kib > before->memory_kib + MEMORY_SLACK_KIB);
}

static struct churn parse(int argc, char **argv)
{
    struct churn churn = {.count = argc > 1 ? strtol(argv[1], NULL, 10) : 10};
    churn.memory = argc > 2 && strcmp(argv[2], "memory") == 0;
    const int next = churn.memory ? 3 : 2;
    if (argc > next)
        churn.limit_ns = strtoull(argv[next], NULL, 10) * UINT64_C(1000000000);
    return churn;
}

int main(int argc, char **argv)
{
    const int32_t zeros[N] = {0};
    struct churn churn = parse(argc, argv);
    local_open(&churn.local, sizeof zeros);
    check(weir_upload(churn.local.queue, churn.local.buffer, 0, zeros, sizeof zeros));
    const long made = run(&churn);
    check(weir_device_trim(churn.local.device));
    const struct held after = settle();
    local_close(&churn.local);
    return compare(&churn, made, &after);
}
