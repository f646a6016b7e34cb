// The device work that benchmarks share: chunks and their kernels, and the ranks of a process.
#include "cli/bench/work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/runtime/open.h"
#include "kernels/bench/bench.h"

// `rounds` steps of x -> a x + c are one step with another a and c, which is found by
// squaring. So the host checks a kernel of any length at the price of a copy.

enum {
    BLOCK = 256,
    IN_A_ROW = 4,
    ROUNDS_MAX = 1 << 22
};

#define SPREAD UINT32_C(0x9e3779b1)  // neighbours get distant numbers
#define SPOILED UINT32_C(0x5bd1e995) // xor-ed onto what was right

struct step {
    uint32_t factor;
    uint32_t addend;
};

// First `a`, then `b`.
static struct step joined(struct step a, struct step b)
{
    return (struct step){b.factor * a.factor, b.factor * a.addend + b.addend};
}

static struct step steps_of(const struct bench *bench, uint32_t rounds)
{
    struct step result = {1, 0};
    struct step power = {1664525u, 1013904223u};
    if (!bench->runs_kernels)
        return result;
    for (; rounds > 0; rounds /= 2, power = joined(power, power))
        if (rounds % 2 == 1)
            result = joined(result, power);
    return result;
}

static uint32_t number_at(size_t index, uint32_t seed)
{
    return (uint32_t)index * SPREAD + seed;
}

// Objects.

bool bench_buffer_on(struct bench *bench, weir_device *device, const char *label, size_t size,
                     weir_placement placement, weir_buffer **out_buffer)
{
    return bench_fine(bench, weir_buffer_create(device,
                                                WEIR_PARAMS(weir_buffer, .label = label,
                                                            .size = size, .placement = placement),
                                                out_buffer));
}

bool bench_buffer(struct bench *bench, const char *label, size_t size, weir_placement placement,
                  weir_buffer **out_buffer)
{
    return bench_buffer_on(bench, bench->device, label, size, placement, out_buffer);
}

bool bench_queue_on(struct bench *bench, weir_device *device, const char *label,
                    weir_queue **out_queue)
{
    return bench_fine(bench, weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = label),
                                               out_queue));
}

bool bench_queue(struct bench *bench, const char *label, int32_t priority, weir_queue **out_queue)
{
    return bench_fine(bench, weir_queue_create(bench->device,
                                               WEIR_PARAMS(weir_queue, .label = label,
                                                           .priority = priority),
                                               out_queue));
}

bool bench_kernel_on(struct bench *bench, weir_device *device, const struct weir_bundle *bundle,
                     const char *name, weir_program **program, weir_kernel **out_kernel)
{
    if (!*program &&
        !bench_fine(bench, weir_program_create(device,
                                               WEIR_PARAMS(weir_program, .label = "bench",
                                                           .bundle = bundle),
                                               program)))
        return false;
    return bench_fine(bench, weir_kernel_create(*program, name, out_kernel));
}

bool bench_fill(struct bench *bench, weir_queue *queue, weir_buffer *buffer, size_t size)
{
    static const uint32_t nothing = 0xffffffff;
    return bench_fine(bench, weir_queue_fill(queue, buffer, 0, size, &nothing, sizeof nothing)) &&
           bench_fine(bench, weir_queue_sync(queue, WEIR_FOREVER));
}

bool bench_work_open(struct bench *bench, struct bench_work *out_work)
{
    *out_work = (struct bench_work){.bench = bench};
    if (!bench_kernel_on(bench, bench->device, &bench_kernels, "advance", &out_work->program,
                         &out_work->kernel))
        return false;
    const uint32_t most = weir_kernel_get_info(out_work->kernel)->max_block_items;
    out_work->block = most < BLOCK ? most : BLOCK;
    return bench_queue(bench, "bench/work", 0, &out_work->queue);
}

void bench_work_close(struct bench_work *work)
{
    weir_queue_destroy(&work->queue);
    weir_kernel_destroy(&work->kernel);
    weir_program_destroy(&work->program);
}

weir_status bench_work_launch(const struct bench_work *work, weir_queue *queue, weir_buffer *buffer,
                              size_t offset, size_t size, uint32_t rounds)
{
    const uint32_t count = (uint32_t)(size / sizeof(uint32_t));
    const uint32_t blocks = count / work->block + (count % work->block > 0);
    return weir_queue_launch(queue, work->kernel, weir_dim(blocks, 1, 1),
                             weir_dim(work->block, 1, 1), weir_inout(buffer, offset, size), rounds,
                             count);
}

// Times.

bool bench_work_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                     uint32_t rounds, double *out_ns)
{
    const uint64_t began = cli_now_ns();
    *out_ns = 0;
    if (bench_work_launch(work, work->queue, buffer, 0, size, rounds) != WEIR_OK ||
        weir_queue_sync(work->queue, WEIR_FOREVER) != WEIR_OK)
        return bench_fail_weir(work->bench);
    *out_ns = (double)(cli_now_ns() - began);
    return true;
}

// The time of one of several launches in a row, so that the wait for the end weighs
// little; the smallest of a few such times, since other load only adds to them.
static bool least_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                       uint32_t rounds, double *out_ns)
{
    *out_ns = 0;
    for (int i = 0; i < 3; i++) {
        const uint64_t began = cli_now_ns();
        for (int k = 0; k < IN_A_ROW; k++)
            if (bench_work_launch(work, work->queue, buffer, 0, size, rounds) != WEIR_OK)
                return bench_fail_weir(work->bench);
        if (weir_queue_sync(work->queue, WEIR_FOREVER) != WEIR_OK)
            return bench_fail_weir(work->bench);
        const double ns = (double)(cli_now_ns() - began) / IN_A_ROW;
        if (i == 0 || ns < *out_ns)
            *out_ns = ns;
    }
    return true;
}

bool bench_work_calibrate(const struct bench_work *work, weir_buffer *buffer, size_t size,
                          double wanted_ns, uint32_t *out_rounds)
{
    double base, ns;
    uint32_t rounds = 1;
    *out_rounds = 1;
    if (!work->bench->runs_kernels && !cli_clock_is_virtual())
        return true;
    if (!least_time(work, buffer, size, 1, &base))
        return false;
    // The time beyond `base` grows in proportion to the rounds.
    for (ns = base; ns < wanted_ns && rounds < ROUNDS_MAX;) {
        rounds *= 2;
        if (!least_time(work, buffer, size, rounds, &ns))
            return false;
    }
    if (rounds > 1 && ns > base) {
        const double share = (wanted_ns - base) / (ns - base);
        const double found = share * (double)(rounds - 1) + 1.5;
        rounds = found < ROUNDS_MAX ? (uint32_t)found : ROUNDS_MAX;
    }
    *out_rounds = rounds > 0 ? rounds : 1;
    return true;
}

// Memory.

static uint32_t *begin(struct bench *bench, weir_buffer *buffer, size_t size, weir_access access)
{
    void *pointer = NULL;
    if (weir_host_begin(buffer, 0, size, access, &pointer) != WEIR_OK)
        bench_fail_weir(bench);
    return pointer;
}

void bench_work_numbers(uint32_t *numbers, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size / sizeof *numbers; i++)
        numbers[i] = number_at(i, seed);
}

bool bench_work_fill(struct bench *bench, weir_buffer *buffer, size_t size, uint32_t seed)
{
    uint32_t *numbers = begin(bench, buffer, size, WEIR_ACCESS_WRITE);
    if (!numbers)
        return false;
    bench_work_numbers(numbers, size, seed);
    WEIR_IGNORE(weir_host_end(buffer, 0, size, WEIR_ACCESS_WRITE));
    return true;
}

bool bench_work_spoil(struct bench *bench, weir_buffer *buffer, size_t size)
{
    void *bytes = begin(bench, buffer, size, WEIR_ACCESS_WRITE);
    if (!bytes)
        return false;
    memset(bytes, 0xa5, size);
    WEIR_IGNORE(weir_host_end(buffer, 0, size, WEIR_ACCESS_WRITE));
    return true;
}

bool bench_work_compare(struct bench *bench, uint32_t *numbers, size_t size, uint32_t seed,
                        uint32_t rounds, const char *what)
{
    const struct step step = steps_of(bench, rounds);
    const size_t count = size / sizeof(uint32_t);
    size_t wrong = 0, first = 0;
    uint32_t got = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t right = step.factor * number_at(i, seed) + step.addend;
        if (numbers[i] != right && wrong++ == 0) {
            first = i;
            got = numbers[i];
        }
        numbers[i] = right ^ SPOILED;
    }
    bench->checked++;
    return wrong == 0 ||
           bench_fail_result(bench,
                             "%s: %zu of %zu numbers are wrong; number %zu is %" PRIu32
                             " and must be %" PRIu32 "; nothing was timed",
                             what, wrong, count, first, got,
                             step.factor * number_at(first, seed) + step.addend);
}

bool bench_work_check(struct bench *bench, weir_buffer *buffer, size_t size, uint32_t seed,
                      uint32_t rounds, const char *what)
{
    uint32_t *numbers = begin(bench, buffer, size, WEIR_ACCESS_READ_WRITE);
    if (!numbers)
        return false;
    const bool fine = bench_work_compare(bench, numbers, size, seed, rounds, what);
    WEIR_IGNORE(weir_host_end(buffer, 0, size, WEIR_ACCESS_READ_WRITE));
    return fine;
}

static bool open_device(struct bench *bench, struct bench_ranks *all, struct bench_rank *rank,
                        uint32_t index)
{
    const size_t devices = weir_device_count(bench->runtime);
    char select[16];
    snprintf(select, sizeof select, "%u", (unsigned)(devices ? index % devices : 0));
    const struct weir_device_params params = {.struct_size = sizeof params, .select = select};
    for (uint32_t i = 0; devices && i < all->local_count; i++)
        if (&all->ranks[i] != rank && all->ranks[i].device && i % devices == index % devices)
            rank->device = all->ranks[i].device;
    if (rank->device)
        return true;
    if (weir_device_open_at(bench->runtime, devices > 1 ? &params : NULL, &rank->device, NULL, 0) <
        0)
        return bench_fail_weir(bench);
    rank->opened = true;
    return true;
}

static bool create_all(struct bench *bench, uint64_t asked, struct bench_ranks *all)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "bench"};
    weir_device *devices[BENCH_RANKS_MAX];
    weir_comm *comms[BENCH_RANKS_MAX];
    all->local_count = (uint32_t)asked;
    for (uint32_t i = 0; i < all->local_count; i++) {
        if (!open_device(bench, all, &all->ranks[i], i))
            return false;
        devices[i] = all->ranks[i].device;
    }
    if (weir_comm_create_all(devices, all->local_count, &params, comms) < 0)
        return bench_fail_weir(bench);
    for (uint32_t i = 0; i < all->local_count; i++)
        all->ranks[i].comm = comms[i];
    return true;
}

static bool create_comms(struct bench *bench, uint64_t asked, struct bench_ranks *all)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "bench"};
    uint32_t rank;
    cli_local_rank(&rank);
    if (!open_device(bench, all, &all->ranks[0], rank))
        return false;
    all->local_count = 1;
    if (weir_comm_create(all->ranks[0].device, &params, &all->ranks[0].comm) < 0)
        return bench_fail_weir(bench);
    if (weir_comm_count(all->ranks[0].comm) > 1)
        return true;
    weir_comm_destroy(&all->ranks[0].comm);
    return create_all(bench, asked, all);
}

bool bench_ranks_open(struct bench *bench, uint64_t asked, struct bench_ranks *out_ranks)
{
    *out_ranks = (struct bench_ranks){0};
    if (!create_comms(bench, asked, out_ranks))
        return false;
    for (uint32_t i = 0; i < out_ranks->local_count; i++) {
        struct bench_rank *rank = &out_ranks->ranks[i];
        if (!bench_queue_on(bench, rank->device, "bench", &rank->queue) ||
            !bench_buffer_on(bench, rank->device, "bench/value", sizeof(double), WEIR_PLACE_DEVICE,
                             &rank->value))
            return false;
    }
    out_ranks->first = weir_comm_rank(out_ranks->ranks[0].comm);
    out_ranks->count = weir_comm_count(out_ranks->ranks[0].comm);
    return true;
}

void bench_ranks_close(struct bench *bench, struct bench_ranks *ranks)
{
    for (uint32_t i = ranks->local_count; i-- > 0;) {
        struct bench_rank *rank = &ranks->ranks[i];
        weir_buffer_destroy(&rank->dst);
        weir_buffer_destroy(&rank->src);
        weir_buffer_destroy(&rank->value);
        weir_queue_destroy(&rank->queue);
        weir_comm_destroy(&rank->comm);
    }
    for (uint32_t i = ranks->local_count; i-- > 0;) {
        struct bench_rank *rank = &ranks->ranks[i];
        if (rank->opened && weir_device_close(&rank->device) < 0)
            (void)bench_fail_weir(bench);
    }
}

weir_status bench_ranks_sync(const struct bench_ranks *ranks)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < ranks->local_count && status == WEIR_OK; i++)
        status = weir_queue_sync(ranks->ranks[i].queue, WEIR_FOREVER);
    return status;
}

weir_status bench_ranks_meet(const struct bench_ranks *ranks)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < ranks->local_count && status == WEIR_OK; i++)
        status = weir_queue_barrier(ranks->ranks[i].queue, ranks->ranks[i].comm);
    return status == WEIR_OK ? bench_ranks_sync(ranks) : status;
}

double bench_ranks_slowest(const struct bench_ranks *ranks, double value)
{
    const struct bench_rank *first = &ranks->ranks[0];
    double slowest = value;
    for (uint32_t i = 0; i < ranks->local_count; i++) {
        const struct bench_rank *rank = &ranks->ranks[i];
        if (weir_upload(rank->queue, rank->value, 0, &value, sizeof value) < 0 ||
            weir_queue_all_reduce(rank->queue, rank->comm, rank->value, 0, rank->value, 0, 1,
                                  WEIR_F64, WEIR_MAXIMUM) < 0)
            return -1;
    }
    if (bench_ranks_sync(ranks) < 0 ||
        weir_download(first->queue, &slowest, first->value, 0, sizeof slowest) < 0)
        return -1;
    return slowest;
}
