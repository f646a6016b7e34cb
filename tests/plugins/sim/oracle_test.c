// Random programs on random GPUs: the engine's times are those of the slow simulation, to the
// nanosecond.
#include <stdlib.h>

#include "tests/plugins/sim/program.h"
#include "tests/support/test.h"

static uint64_t seed;

static uint64_t up_to(uint64_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % (most + 1);
}

static struct sim_model random_model(void)
{
    static const uint32_t channels[] = {0, 0, 1, 2, 3, 4, 8, 32};
    struct sim_model model = plain_model();
    model.queues = up_to(1) ? SIM_STREAM_QUEUES : SIM_ENGINE_QUEUES;
    model.late_signals = up_to(2) == 0;
    model.channels = channels[up_to(sizeof channels / sizeof *channels - 1)];
    model.copy_engines = 1 + (uint32_t)up_to(2);
    model.kernels = 1 + (uint32_t)up_to(3);
    model.host_call_ns = up_to(3);
    model.signal_ns = up_to(1) ? 0 : up_to(4);
    model.kernel_gap_ns = up_to(1) ? 0 : up_to(4);
    model.pull_latency_ns = up_to(1) ? 0 : up_to(4);
    model.copy_channels = up_to(1) ? 0 : (uint32_t)up_to(3);
    for (int kind = 0; kind < SIM_KINDS; kind++) {
        model.copies[kind].bytes_per_s = 400000000 + up_to(3) * 170000000;
        model.copies[kind].both_bytes_per_s = up_to(1) * (300000000 + up_to(3) * 70000000);
        model.copies[kind].latency_ns = up_to(2);
        if (up_to(1))
            model.copies[kind].both_latency_ns = model.copies[kind].latency_ns + up_to(2);
    }
    return model;
}

static void random_step(struct program *program)
{
    static const enum sim_kind kinds[] = {SIM_KERNEL, SIM_KERNEL,     SIM_KERNEL, SIM_H2D,
                                          SIM_H2D,    SIM_D2H,        SIM_D2H,    SIM_MARK,
                                          SIM_MARK,   SIM_D2D,        SIM_PEER,   SIM_PEER,
                                          SIM_HOST,   SIM_COLLECTIVE, SIM_PAUSE};
    const int i = add_step(program, (uint32_t)up_to(program->queue_count - 1),
                           kinds[up_to(sizeof kinds / sizeof *kinds - 1)], up_to(9));
    struct step *step = &program->steps[i];
    for (int wait = 0; wait < STEP_WAITS; wait++)
        if (i > 0 && up_to(8) == 0)
            step->waits[wait] = (int)up_to((uint64_t)i - 1);
    if (i > 0 && up_to(9) == 0)
        step->host_wait = (int)up_to((uint64_t)i - 1);
    step->places = (uint32_t)up_to(4);
    step->pulls = step->kind == SIM_PEER && program->device_count > 1 && up_to(1);
    step->first = up_to(5) == 0;
    step->node = up_to(3) == 0;
    step->yield_ns = up_to(1) ? 0 : up_to(4);
    step->host_ns = up_to(3) ? 0 : up_to(6);
}

static void random_program(struct program *program, struct sim_model models[2],
                           uint32_t most_queues, int most_steps)
{
    *program = (struct program){.device_count = 1 + (uint32_t)up_to(1)};
    for (int i = 0; i < 2; i++) {
        models[i] = random_model();
        program->models[i] = &models[i];
    }
    program->queue_count = 1 + (uint32_t)up_to(most_queues - 1);
    for (uint32_t i = 0; i < program->queue_count; i++)
        program->queues[i] = (struct sim_queue_params){
            .device = (uint32_t)up_to(program->device_count - 1),
            .priority = up_to(2) ? 0 : -(int32_t)up_to(3),
            .legacy = up_to(12) == 0,
        };
    const int steps = 1 + (int)up_to((uint64_t)most_steps - 1);
    for (int i = 0; i < steps; i++)
        random_step(program);
}

static bool differs(const struct program *a, const struct program *b)
{
    for (int i = 0; i < a->step_count; i++)
        if (a->slots[i].start_ns != b->slots[i].start_ns ||
            a->slots[i].end_ns != b->slots[i].end_ns)
            return true;
    return false;
}

static void expect_in_order_of_ends(const struct program *program)
{
    for (int i = 1; i < program->done_count; i++)
        EXPECT_TRUE(program->slots[program->done[i - 1]].end_ns <=
                    program->slots[program->done[i]].end_ns);
}

static void compare(uint64_t programs, uint32_t most_queues, int most_steps)
{
    static struct program engine;
    static struct program oracle;
    struct sim_model models[2];
    for (uint64_t i = 1; i <= programs; i++) {
        seed = i;
        random_program(&engine, models, most_queues, most_steps);
        oracle = engine;
        run_engine(&engine);
        run_oracle(&oracle);
        expect_in_order_of_ends(&engine);
        if (differs(&engine, &oracle))
            WEIR_FAIL("program %llu differs", (unsigned long long)i);
    }
}

static uint64_t programs_or(uint64_t otherwise)
{
    const char *count = getenv("SIM_PROGRAMS");
    return count ? strtoull(count, NULL, 10) : otherwise;
}

WEIR_TEST(Oracle, RandomPrograms)
{
    compare(programs_or(1500), 7, 51);
}

// The order of the calls does not matter, only that of the times.
WEIR_TEST(Oracle, PostedInAnotherOrder)
{
    static struct program engine;
    static struct program posted;
    struct sim_model models[2];
    for (uint64_t i = 1; i <= programs_or(700); i++) {
        seed = i;
        random_program(&engine, models, 7, 51);
        for (uint32_t queue = 0; queue < engine.queue_count; queue++)
            engine.queues[queue].legacy = false;
        for (int step = 0; step < engine.step_count; step++) {
            engine.steps[step].host_wait = -1;
            engine.steps[step].host_ns++; // no two at one time
        }
        posted = engine;
        run_engine(&engine);
        run_engine_posted(&posted, i);
        expect_in_order_of_ends(&posted);
        if (differs(&engine, &posted))
            WEIR_FAIL("program %llu differs", (unsigned long long)i);
    }
}

// More queues than the most channels that a context has.
WEIR_TEST(Oracle, ManyQueues)
{
    compare(programs_or(150), QUEUES, 130);
}
