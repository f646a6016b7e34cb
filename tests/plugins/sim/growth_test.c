// The engine's time grows in proportion to the operations, and not with the queues.
#define _GNU_SOURCE // clock_gettime

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "plugins/sim/engine.h"
#include "tests/support/test.h"

static const struct sim_link pcie = {.bytes_per_s = 55000000000,
                                     .both_bytes_per_s = 50000000000,
                                     .latency_ns = 1000};

static void forget(void *user, const struct sim_done *done)
{
    (void)user;
    (void)done;
}

static void must(bool done)
{
    if (!done)
        fprintf(stderr, "out of memory\n"), exit(1);
}

// Each queue in turn: upload, kernel, download, with a wait for another queue's last operation.
static void run(struct sim_engine *engine, uint32_t queue_count, int operations)
{
    static const enum sim_kind kinds[] = {SIM_H2D, SIM_MARK, SIM_KERNEL, SIM_MARK, SIM_D2H};
    struct sim_point last = {0};
    for (int i = 0; i < operations; i++) {
        const struct sim_work work = {
            .kind = kinds[i % 5],
            .bytes = 1 << 20,
            .duration_ns = 20000,
            .waits = &last,
            .wait_count = i % 5 == 1 && i % 3 == 0,
        };
        must(sim_engine_submit(engine, (uint32_t)(i / 5) % queue_count, (uint64_t)i * 9000, &work,
                               &last));
    }
    sim_engine_wait(engine, last);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Seconds of processor time for that many operations.
static double load_seconds(uint32_t queue_count, int operations)
{
    struct sim_model model = {.queues = SIM_STREAM_QUEUES,
                              .channels = 8,
                              .copy_engines = 2,
                              .kernels = 128,
                              .copies = {[SIM_H2D] = pcie, [SIM_D2H] = pcie}};
    struct sim_engine *engine = sim_engine_create(forget, NULL);
    uint32_t index;
    must(engine && sim_engine_add_device(engine, &model, &index));
    for (uint32_t i = 0; i < queue_count; i++)
        must(sim_engine_add_queue(engine, &(struct sim_queue_params){0}, &index));
    const double begin = seconds();
    run(engine, queue_count, operations);
    const double end = seconds();
    sim_engine_destroy(&engine);
    return end - begin;
}

enum {
    TRIES = 5,
    FEW = 20000,
    MANY = 8 * FEW,
};

// Processor time of an operation: the least of some tries, since other load only adds to it.
static double each(uint32_t queues, int operations)
{
    double least = 0;
    for (int i = 0; i < TRIES; i++) {
        const double seconds = load_seconds(queues, operations) / operations;
        least = i == 0 || seconds < least ? seconds : least;
    }
    return least;
}

// With a search of all operations that are kept it would be eight times as long, and of all queues 64 times.
WEIR_TEST(Growth, WithOperationsAndQueues)
{
    const double few = each(8, FEW);
    EXPECT_TRUE(few > 0);
    EXPECT_TRUE(each(8, MANY) < 3 * few);
    EXPECT_TRUE(each(512, FEW) < 8 * few);
}
