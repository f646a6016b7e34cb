// The engine's memory: every allocation fails once in turn, and what was refused can be submitted
// again; nothing leaks; and it does not grow with the number of operations.
#include <stdlib.h>

#include "plugins/sim/engine.h"
#include "tests/plugins/sim/program.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"

enum {
    QUEUE_COUNT = 5,
    OPERATIONS = 200,
};

static void count_done(void *user, const struct sim_done *done)
{
    (void)done;
    ++*(int *)user;
}

// Each call is tried until it succeeds; `refused` counts failures.
static int refused;

static bool again(bool done)
{
    refused += !done;
    return !done;
}

static struct sim_work work_of(int i, struct sim_point *waits)
{
    static const enum sim_kind kinds[] = {SIM_KERNEL, SIM_H2D, SIM_KERNEL, SIM_KERNEL, SIM_D2H};
    return (struct sim_work){.kind = kinds[i % 5],
                             .bytes = 100,
                             .duration_ns = 50,
                             .waits = waits,
                             .wait_count = waits->number ? 1 : 0};
}

// Returns the end of the last operation.
static uint64_t run_all(struct sim_engine *engine, const struct sim_model *model, int operations,
                        uint64_t distance_ns)
{
    uint32_t device = 0;
    uint32_t queues[QUEUE_COUNT] = {0};
    struct sim_point point = {0};
    while (again(sim_engine_add_device(engine, model, &device))) {
    }
    for (int i = 0; i < QUEUE_COUNT; i++) {
        const struct sim_queue_params params = {.device = device, .legacy = i == 4};
        while (again(sim_engine_add_queue(engine, &params, &queues[i]))) {
        }
    }
    for (int i = 0; i < operations; i++) {
        struct sim_point wait = i % 7 ? (struct sim_point){0} : point;
        const struct sim_work work = work_of(i, &wait);
        while (again(sim_engine_submit(engine, queues[i % 11 % QUEUE_COUNT],
                                       (uint64_t)i * distance_ns, &work, &point))) {
        }
    }
    sim_engine_wait(engine, point);
    return sim_engine_now_ns(engine);
}

static uint64_t run(long fail_at, int operations, uint64_t distance_ns)
{
    struct sim_model model = plain_model();
    int done = 0;
    model.late_signals = true;
    model.channels = 2;
    refused = 0;
    weir_test_fail_allocation(fail_at);
    struct sim_engine *engine = sim_engine_create(count_done, &done);
    if (!engine) {
        refused++;
        engine = sim_engine_create(count_done, &done);
    }
    const uint64_t end = run_all(engine, &model, operations, distance_ns);
    sim_engine_destroy(&engine);
    weir_test_fail_allocation(-1);
    EXPECT_INT_EQ(refused, fail_at >= 0);
    return end;
}

WEIR_TEST(Memory, EachAllocationFails)
{
    const unsigned long before = weir_test_allocations();
    const uint64_t end = run(-1, OPERATIONS, 0);
    const long count = (long)(weir_test_allocations() - before);
    EXPECT_TRUE(count > 100);
    for (long i = 0; i < count; i++)
        EXPECT_UINT_EQ(run(i, OPERATIONS, 0), end);
}

// A hundred times as many operations, no more allocations.
WEIR_TEST(Memory, IsThatOfWhatIsInFlight)
{
    const unsigned long before = weir_test_allocations();
    run(-1, 2000, 1000);
    const unsigned long few = weir_test_allocations() - before;
    run(-1, 200000, 1000);
    EXPECT_UINT_EQ(weir_test_allocations() - before, 2 * few);
}
