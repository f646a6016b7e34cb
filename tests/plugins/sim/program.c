#include "tests/plugins/sim/program.h"

#include "tests/support/test.h"

struct sim_model plain_model(void)
{
    struct sim_model model = {
        .name = "plain",
        .queues = SIM_STREAM_QUEUES,
        .copy_engines = 2,
        .kernels = 16,
    };
    for (int kind = 0; kind < SIM_KINDS; kind++)
        model.copies[kind].bytes_per_s = 1000000000;
    return model;
}

int add_step(struct program *program, uint32_t queue, enum sim_kind kind, uint64_t length)
{
    struct step *step = &program->steps[program->step_count];
    *step = (struct step){.queue = queue, .kind = kind, .length = length, .host_wait = -1};
    for (int i = 0; i < STEP_WAITS; i++)
        step->waits[i] = -1;
    if (queue >= program->queue_count)
        program->queue_count = queue + 1;
    return program->step_count++;
}

uint64_t makespan(const struct program *program)
{
    uint64_t last = 0;
    for (int i = 0; i < program->step_count; i++)
        if (program->slots[i].end_ns > last)
            last = program->slots[i].end_ns;
    return last;
}

// With the engine.

static void note(const struct sim_done *done)
{
    struct program *program = done->owner;
    const int index = (int)done->tag;
    program->slots[index] = (struct slot){done->start_ns, done->end_ns};
    program->done[program->done_count++] = index;
}

struct run {
    struct program *program;
    struct sim_engine *engine;
    struct sim_point points[STEPS];
    uint32_t queues[QUEUES];
    uint64_t host_ns;
};

static struct sim_work work_of(const struct run *run, const struct step *step,
                               struct sim_point waits[STEP_WAITS])
{
    const struct program *program = run->program;
    struct sim_work work = {.kind = step->kind,
                            .bytes = step->length,
                            .duration_ns = step->length,
                            .places = step->places,
                            .yield_ns = step->yield_ns,
                            .waits = waits,
                            .first = step->first,
                            .node = step->node,
                            .device = 1 - program->queues[step->queue].device,
                            .pulls = step->pulls,
                            .tag = (uint64_t)(step - program->steps)};
    for (int i = 0; i < STEP_WAITS; i++)
        if (step->waits[i] >= 0)
            waits[work.wait_count++] = run->points[step->waits[i]];
    return work;
}

static void wait_for(struct sim_engine *engine, struct sim_point point)
{
    while (!sim_engine_complete(engine, point) && sim_engine_step(engine, UINT64_MAX)) {
    }
}

static void submit(struct run *run, const struct step *step)
{
    struct sim_point waits[STEP_WAITS];
    if (step->host_wait >= 0) {
        wait_for(run->engine, run->points[step->host_wait]);
        EXPECT_TRUE(sim_engine_complete(run->engine, run->points[step->host_wait]));
        if (sim_engine_now_ns(run->engine) > run->host_ns)
            run->host_ns = sim_engine_now_ns(run->engine);
    }
    run->host_ns += step->host_ns;
    const struct sim_work work = work_of(run, step, waits);
    const uint64_t now_ns = sim_engine_now_ns(run->engine);
    ASSERT_TRUE(sim_engine_post(run->engine, run->queues[step->queue], run->host_ns, &work,
                                &run->points[step - run->program->steps]));
    sim_engine_advance(run->engine, run->host_ns > now_ns ? run->host_ns : now_ns);
}

void run_engine(struct program *program)
{
    struct run run = {.program = program, .engine = sim_engine_create(note)};
    uint32_t device = 0;
    program->done_count = 0;
    ASSERT_TRUE(run.engine != NULL);
    for (uint32_t i = 0; i < program->device_count; i++)
        ASSERT_TRUE(sim_engine_add_device(run.engine, program->models[i], &device));
    for (uint32_t i = 0; i < program->queue_count; i++) {
        struct sim_queue_params params = program->queues[i];
        params.owner = program;
        ASSERT_TRUE(sim_engine_add_queue(run.engine, &params, &run.queues[i]));
    }
    for (int i = 0; i < program->step_count; i++)
        submit(&run, &program->steps[i]);
    for (int i = 0; i < program->step_count; i++)
        wait_for(run.engine, run.points[i]);
    EXPECT_INT_EQ(program->done_count, program->step_count);
    EXPECT_UINT_EQ(sim_engine_posted(run.engine), 0);
    sim_engine_destroy(&run.engine);
}
