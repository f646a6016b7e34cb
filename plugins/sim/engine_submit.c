// Submitting: everything is reserved first, so that nothing has changed if memory is short. An operation is
// posted, and there when the engine has reached its time; only then others can be told that it waits for
// them, since they may be posted later.
#include <stdlib.h>
#include <string.h>

#include "plugins/sim/engine_parts.h"

// Reserving.

static bool reserve_ring(struct sim_queue *queue)
{
    const uint64_t count = queue->last + 1 - queue->first;
    if (count < queue->room)
        return true;
    const size_t room = queue->room ? 2 * queue->room : 8;
    struct sim_op **ring = (struct sim_op **)calloc(room, sizeof(*ring));
    if (!ring)
        return false;
    for (uint64_t number = queue->first; number <= queue->last; number++)
        ring[number & (room - 1)] = queue->ring[number & (queue->room - 1)];
    free((void *)queue->ring);
    queue->ring = ring;
    queue->room = room;
    return true;
}

static bool reserve_edges(struct sim_engine *engine, size_t count)
{
    struct sim_edge *edge = engine->free_edges;
    for (; edge && count > 0; count--)
        edge = edge->next;
    for (; count > 0; count--) {
        edge = calloc(1, sizeof *edge);
        if (!edge)
            return false;
        edge->next = engine->free_edges;
        engine->free_edges = edge;
    }
    return true;
}

static bool reserve_op(struct sim_engine *engine)
{
    if (!engine->free_ops)
        engine->free_ops = calloc(1, sizeof *engine->free_ops);
    return engine->free_ops;
}

static bool reserve_run(struct sim_engine *engine)
{
    if (!engine->free_runs)
        engine->free_runs = calloc(1, sizeof *engine->free_runs);
    return engine->free_runs;
}

static bool reserve_unit(struct sim_device *device, const struct sim_queue *queue, uint32_t index)
{
    return index == SIM_NO_ENGINE ||
           (sim__unit_reserve(&device->units[index], queue->lane) &&
            sim__heap_reserve(&device->units[SIM_SIGNALS].running, device->in_flight + 1));
}

static uint32_t device_of(const struct sim_queue *queue, const struct sim_work *work)
{
    return work->pulls ? work->device : queue->params.device;
}

// One edge for each wait, one for the queue, and those of the legacy queue.
static bool reserve(struct sim_engine *engine, struct sim_queue *queue, const struct sim_work *work)
{
    struct sim_device *device = &engine->devices[device_of(queue, work)];
    const size_t legacy = queue->params.legacy ? engine->queue_count : 1;
    const bool runs = work->kind == SIM_KERNEL && device->model->late_signals;
    return reserve_op(engine) && reserve_ring(queue) &&
           reserve_edges(engine, work->wait_count + 1 + legacy) && (!runs || reserve_run(engine)) &&
           reserve_unit(device, queue, sim__unit_of(device->model, work->kind)) &&
           sim__heap_reserve(&engine->posted, engine->posted.count + 1);
}

// Takes what was reserved.

static struct sim_op *take_op(struct sim_engine *engine)
{
    struct sim_op *op = engine->free_ops;
    engine->free_ops = op->next;
    return op;
}

static struct sim_run *take_run(struct sim_engine *engine)
{
    struct sim_run *run = engine->free_runs;
    engine->free_runs = run->next_free;
    return run;
}

static void give_run(struct sim_engine *engine, struct sim_run *run)
{
    run->next_free = engine->free_runs;
    engine->free_runs = run;
}

// One more for the list, whose end is `*end`.
static struct sim_edge **take_edge(struct sim_engine *engine, struct sim_edge **end,
                                   struct sim_point on)
{
    struct sim_edge *edge = engine->free_edges;
    engine->free_edges = edge->next;
    edge->on = on;
    edge->next = NULL;
    *end = edge;
    return &edge->next;
}

// Its queue comes first.
static void take_edges(struct sim_engine *engine, struct sim_op *op, const struct sim_work *work)
{
    const struct sim_queue *queue = &engine->queues[op->point.queue];
    const size_t legacy = queue->params.legacy ? engine->queue_count : 1;
    struct sim_edge **end = &op->reserved;
    end = take_edge(engine, end, (struct sim_point){op->point.queue, op->point.number - 1});
    for (size_t i = 0; i < work->wait_count; i++)
        end = take_edge(engine, end, work->waits[i]);
    for (size_t i = 0; i < legacy; i++)
        end = take_edge(engine, end, (struct sim_point){0, 0});
}

// What it waits for.

static void depend(struct sim_engine *engine, struct sim_op *op, struct sim_point on)
{
    struct sim_op *before = sim__find(engine, on);
    if (!before || before == op)
        return;
    if (before->state == SIM_ENDED && sim__sees_at_once(engine, op, before))
        return;
    struct sim_edge *edge = engine->free_edges;
    engine->free_edges = edge->next;
    *edge = (struct sim_edge){.next = before->dependents, .to = op};
    before->dependents = edge;
    op->pending++;
}

static void depend_on_all(struct sim_engine *engine, struct sim_op *op, uint32_t device)
{
    for (uint32_t i = 0; i < engine->queue_count; i++)
        if (engine->queues[i].params.device == device && i != op->point.queue)
            depend(engine, op, (struct sim_point){i, engine->queues[i].last});
}

static void join_channel(struct sim_device *device, const struct sim_queue *queue,
                         struct sim_op *op)
{
    if (!device->model->channels)
        return;
    struct sim_op **last = &device->channels[queue->channel];
    if (*last) {
        (*last)->next_in_channel = op;
        op->pending++;
    }
    *last = op;
}

static void join_pulls(struct sim_device *source, struct sim_op *op)
{
    if (source->pull) {
        source->pull->next_pull = op;
        op->pending++;
    }
    source->pull = op;
}

// Of one device, and what goes to another one in between ends it too: the next kernel may wait for
// that.
static void join_run(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_device *device = sim__device_of(engine, op);
    if (op->kind != SIM_KERNEL || !device->model->late_signals) {
        engine->run = NULL;
        return;
    }
    if (!engine->run || engine->run_queue == op->point.queue ||
        sim__device_of(engine, engine->run->ops) != device) {
        engine->run = take_run(engine);
        *engine->run = (struct sim_run){.ops = NULL};
    }
    engine->run_queue = op->point.queue;
    op->run = engine->run;
    op->next = op->run->ops;
    op->run->ops = op;
    op->run->left++;
}

// The operation.

static void set_length(const struct sim_model *model, const struct sim_work *work,
                       struct sim_op *op)
{
    if (work->kind == SIM_KERNEL || work->kind == SIM_PAUSE)
        op->moves_ns = work->duration_ns;
    else if (work->kind == SIM_HOST)
        op->moves_ns = model->host_call_ns;
    else if (work->kind != SIM_MARK) {
        const bool pulls = work->pulls && model->pull_latency_ns;
        op->moves_ns = pulls ? model->pull_latency_ns : model->copies[work->kind].latency_ns;
        op->left_millionths = work->bytes * 1000000;
    }
}

// Whatever has no engine is passed over. A copy between devices after a pause needs no signal, others do.
static void follow(const struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_model *model = sim__device_of(engine, op)->model;
    const uint32_t unit = sim__unit_of(model, op->kind);
    const struct sim_point last = {op->point.queue, op->point.number - 1};
    struct sim_queue *queue = &engine->queues[op->point.queue];
    if (unit == SIM_NO_ENGINE || op->kind == SIM_PAUSE)
        return;
    op->follows = !op->first && queue->unit != unit && queue->unit != SIM_NO_ENGINE &&
                  (op->kind != SIM_PEER || sim__find(engine, last));
    queue->unit = op->pulls ? SIM_OTHERS_ENGINE : unit;
}

static uint32_t places_of(const struct sim_model *model, const struct sim_work *work)
{
    if (work->kind != SIM_KERNEL || work->places <= 1)
        return 1;
    return work->places < model->kernels ? work->places : model->kernels;
}

static struct sim_op *new_op(struct sim_engine *engine, uint32_t index, const struct sim_work *work)
{
    struct sim_queue *queue = &engine->queues[index];
    const struct sim_model *model = engine->devices[device_of(queue, work)].model;
    const bool is_kernel = work->kind == SIM_KERNEL;
    struct sim_op *op = take_op(engine);
    *op = (struct sim_op){
        .point = {index, ++queue->last},
        .device = device_of(queue, work),
        .kind = work->kind,
        .state = SIM_POSTED,
        .pulls = work->pulls,
        .first = work->first,
        .node = work->node,
        .pending = 1, // until everything else is known
        .places = places_of(model, work),
        .yield_ns = is_kernel ? work->yield_ns : 0,
        .tag = work->tag,
    };
    if (model->queues == SIM_STREAM_QUEUES && is_kernel)
        op->priority = queue->params.priority;
    set_length(model, work, op);
    take_edges(engine, op, work);
    if (is_kernel && model->late_signals)
        op->run = take_run(engine);
    queue->ring[op->point.number & (queue->room - 1)] = op;
    return op;
}

// Each edge is free again before it is needed.
static void add_dependencies(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_queue *queue = &engine->queues[op->point.queue];
    struct sim_device *device = &engine->devices[queue->params.device];
    while (op->reserved) {
        struct sim_edge *edge = op->reserved;
        const struct sim_point on = edge->on;
        op->reserved = edge->next;
        edge->next = engine->free_edges;
        engine->free_edges = edge;
        depend(engine, op, on);
    }
    if (queue->params.legacy) {
        depend_on_all(engine, op, queue->params.device);
        device->legacy = op->point;
    } else if (device->legacy.queue != op->point.queue) {
        depend(engine, op, device->legacy);
    }
    join_channel(device, queue, op);
    if (op->pulls)
        join_pulls(sim__device_of(engine, op), op);
    join_run(engine, op);
}

// Its room is taken from now on.
static void join_unit(struct sim_device *device, const struct sim_op *op)
{
    const uint32_t unit = sim__unit_of(device->model, op->kind);
    if (unit == SIM_NO_ENGINE)
        return;
    device->units[unit].members++;
    device->in_flight++;
    device->busy |= UINT32_C(1) << unit;
}

// With engine queues an operation has its turn from now on.
static void take_turn(struct sim_device *device, struct sim_op *op)
{
    const uint32_t unit = sim__unit_of(device->model, op->kind);
    if (device->model->queues == SIM_ENGINE_QUEUES && unit != SIM_NO_ENGINE &&
        unit != SIM_HOST_ENGINE)
        sim__heap_push(&device->units[unit].waiting, op);
}

// Posting.

bool sim__arrives_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->rank_ns != b->rank_ns ? a->rank_ns < b->rank_ns : a->issue < b->issue;
}

uint64_t sim__next_arrival_ns(const struct sim_engine *engine)
{
    const struct sim_op *op = sim__heap_top(&engine->posted);
    if (!op)
        return UINT64_MAX;
    return op->rank_ns > engine->now_ns ? op->rank_ns : engine->now_ns;
}

void sim__arrive(struct sim_engine *engine)
{
    struct sim_op *op = sim__heap_pop(&engine->posted);
    struct sim_run *run = op->run;
    op->state = SIM_SUBMITTED;
    op->rank_ns = 0;
    op->issue = ++engine->issue;
    op->run = NULL;
    if (run)
        give_run(engine, run);
    follow(engine, op);
    add_dependencies(engine, op);
    take_turn(sim__device_of(engine, op), op);
    sim__release(engine, op);
}

// Not before the time that the engine has reached.
static void advance_to(struct sim_engine *engine, uint64_t ns)
{
    sim_engine_advance(engine, ns > engine->now_ns ? ns : engine->now_ns);
}

bool sim_engine_post(struct sim_engine *engine, uint32_t queue, uint64_t issue_ns,
                     const struct sim_work *work, struct sim_point *out_point)
{
    if (!reserve(engine, &engine->queues[queue], work))
        return false;
    struct sim_op *op = new_op(engine, queue, work);
    *out_point = op->point;
    op->rank_ns = issue_ns;
    op->issue = ++engine->posts;
    join_unit(sim__device_of(engine, op), op);
    sim__heap_push(&engine->posted, op);
    if (engine->queues[queue].params.legacy)
        advance_to(engine, issue_ns);
    return true;
}

size_t sim_engine_posted(const struct sim_engine *engine)
{
    return engine->posted.count;
}

bool sim_engine_submit(struct sim_engine *engine, uint32_t queue, uint64_t issue_ns,
                       const struct sim_work *work, struct sim_point *out_point)
{
    if (!sim_engine_post(engine, queue, issue_ns, work, out_point))
        return false;
    advance_to(engine, issue_ns);
    return true;
}
