// The device work that benchmarks share: chunks and their kernels.
#include "cli/bench/bench.h"

#include <inttypes.h>

#include "kernels/bench/bench.h"

// `rounds` steps of x -> a x + c are one step with another a and c, which is found by
// squaring. So the host checks a kernel of any length at the price of a copy.

enum {
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

static struct step steps_of(uint32_t rounds)
{
    struct step result = {1, 0};
    struct step power = {1664525u, 1013904223u};
    if (!bench.runs_kernels)
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

CLI_DESTROYER(destroy_buffer, weir_buffer_destroy)
CLI_DESTROYER(destroy_queue, weir_queue_destroy)
CLI_DESTROYER(destroy_kernel, weir_kernel_destroy)

void bench_buffer(weir_device *device, const char *label, size_t size, weir_placement placement,
                  weir_buffer **out_buffer)
{
    cli_fine(weir_buffer_create(device,
                                WEIR_PARAMS(weir_buffer, .label = label, .size = size,
                                            .placement = placement),
                                out_buffer));
    cli_own(destroy_buffer, out_buffer);
}

void bench_queue(weir_device *device, const char *label, int32_t priority, weir_queue **out_queue)
{
    cli_fine(weir_queue_create(device,
                               WEIR_PARAMS(weir_queue, .label = label, .priority = priority),
                               out_queue));
    cli_own(destroy_queue, out_queue);
}

void bench_kernel(weir_device *device, const struct weir_bundle *bundle, const char *name,
                  weir_kernel **out_kernel)
{
    cli_fine(weir_kernel_load(device, bundle, name, out_kernel));
    cli_own(destroy_kernel, out_kernel);
}

void bench_sync(weir_queue *queue)
{
    cli_fine(weir_queue_sync(queue, WEIR_FOREVER));
}

void bench_fill(weir_queue *queue, weir_buffer *buffer, size_t size)
{
    static const uint32_t nothing = 0xffffffff;
    cli_fine(weir_queue_fill(queue, buffer, 0, size, &nothing, sizeof nothing));
    bench_sync(queue);
}

void bench_work_open(struct bench_work *out_work)
{
    bench_kernel(bench.device, &bench_kernels, "advance", &out_work->kernel);
    bench_queue(bench.device, "bench/work", 0, &out_work->queue);
}

weir_status bench_work_launch(const struct bench_work *work, weir_queue *queue, weir_buffer *buffer,
                              size_t offset, size_t size, uint32_t rounds)
{
    const uint32_t count = (uint32_t)(size / sizeof(uint32_t));
    return weir_queue_launch_count(queue, work->kernel, count, weir_inout(buffer, offset, size),
                                   rounds, count);
}

// Times.

static double time_launches(const struct bench_work *work, weir_buffer *buffer, size_t size,
                            uint32_t rounds, int count)
{
    const uint64_t began = cli_now_ns();
    for (int i = 0; i < count; i++)
        cli_fine(bench_work_launch(work, work->queue, buffer, 0, size, rounds));
    bench_sync(work->queue);
    return (double)(cli_now_ns() - began) / count;
}

double bench_work_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                       uint32_t rounds)
{
    return time_launches(work, buffer, size, rounds, 1);
}

// The time of one of several launches in a row, so that the wait for the end weighs
// little; the smallest of a few such times, since other load only adds to them.
static double least_time(const struct bench_work *work, weir_buffer *buffer, size_t size,
                         uint32_t rounds)
{
    double least = time_launches(work, buffer, size, rounds, IN_A_ROW);
    for (int i = 0; i < 2; i++) {
        const double ns = time_launches(work, buffer, size, rounds, IN_A_ROW);
        least = ns < least ? ns : least;
    }
    return least;
}

uint32_t bench_work_calibrate(const struct bench_work *work, weir_buffer *buffer, size_t size,
                              double wanted_ns)
{
    uint32_t rounds = 1;
    if (!bench.runs_kernels && !cli_clock_is_virtual())
        return rounds;
    const double base = least_time(work, buffer, size, 1);
    double ns = base;
    // The time beyond `base` grows in proportion to the rounds.
    while (ns < wanted_ns && rounds < ROUNDS_MAX)
        ns = least_time(work, buffer, size, rounds *= 2);
    if (rounds > 1 && ns > base) {
        const double share = (wanted_ns - base) / (ns - base);
        const double found = share * (double)(rounds - 1) + 1.5;
        rounds = found < ROUNDS_MAX ? (uint32_t)found : ROUNDS_MAX;
    }
    return rounds > 0 ? rounds : 1;
}

// Memory.

void bench_work_numbers(uint32_t *numbers, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size / sizeof *numbers; i++)
        numbers[i] = number_at(i, seed);
}

void bench_work_fill(weir_buffer *buffer, size_t size, uint32_t seed)
{
    void *numbers;
    cli_fine(weir_host_whole(buffer, WEIR_ACCESS_WRITE, &numbers));
    bench_work_numbers(numbers, size, seed);
    cli_fine(weir_host_whole_end(buffer, WEIR_ACCESS_WRITE));
}

bool bench_work_compare(uint32_t *numbers, size_t size, uint32_t seed, uint32_t rounds,
                        const char *what)
{
    const struct step step = steps_of(rounds);
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
    bench.checked++;
    return wrong == 0 || bench_wrong("%s: %zu of %zu numbers are wrong; number %zu is %" PRIu32
                                     " and must be %" PRIu32 "; nothing was timed",
                                     what, wrong, count, first, got,
                                     step.factor * number_at(first, seed) + step.addend);
}

bool bench_work_check(weir_buffer *buffer, size_t size, uint32_t seed, uint32_t rounds,
                      const char *what)
{
    void *numbers;
    if (weir_host_begin(buffer, 0, size, WEIR_ACCESS_READ_WRITE, &numbers) != WEIR_OK)
        return bench_wrong("%s: %s", what, weir_last_error_text());
    const bool fine = bench_work_compare(numbers, size, seed, rounds, what);
    WEIR_IGNORE(weir_host_end(buffer, 0, size, WEIR_ACCESS_READ_WRITE));
    return fine;
}
