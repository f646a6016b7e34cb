// Submitting: everything is reserved first, so that nothing has changed if memory is short.
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
           reserve_unit(device, queue, sim__unit_of(device->model, work->kind));
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
    *edge = (struct sim_edge){before->dependents, op};
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
        engine->run = engine->free_runs;
        engine->free_runs = engine->run->next_free;
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
    if (work->kind == SIM_KERNEL)
        op->moves_ns = model->overhead_ns + work->duration_ns;
    else if (work->kind == SIM_PAUSE)
        op->moves_ns = work->duration_ns;
    else if (work->kind == SIM_HOST)
        op->moves_ns = model->host_call_ns;
    else if (work->kind != SIM_MARK) {
        const bool pulls = work->pulls && model->pull_latency_ns;
        op->moves_ns = model->overhead_ns +
                       (pulls ? model->pull_latency_ns : model->copies[work->kind].latency_ns);
        op->left_millionths = work->bytes * 1000000;
    }
}

// Whatever has no engine is passed over. A copy between devices after a pause needs no signal, others do.
static void follow(const struct sim_engine *engine, struct sim_queue *queue, uint32_t unit,
                   const struct sim_work *work, struct sim_op *op)
{
    const struct sim_point last = {op->point.queue, op->point.number - 1};
    if (unit == SIM_NO_ENGINE || work->kind == SIM_PAUSE)
        return;
    op->follows = !work->first && queue->unit != unit && queue->unit != SIM_NO_ENGINE &&
                  (work->kind != SIM_PEER || sim__find(engine, last));
    queue->unit = op->pulls ? SIM_OTHERS_ENGINE : unit;
}

static struct sim_op *new_op(struct sim_engine *engine, uint32_t index, const struct sim_work *work)
{
    struct sim_queue *queue = &engine->queues[index];
    const struct sim_model *model = engine->devices[device_of(queue, work)].model;
    struct sim_op *op = engine->free_ops;
    engine->free_ops = op->next;
    *op = (struct sim_op){
        .point = {index, ++queue->last},
        .device = device_of(queue, work),
        .kind = work->kind,
        .pulls = work->pulls,
        .issue = ++engine->issue,
        .pending = 1, // until everything else is known
        .places = 1,
        .node = work->node,
        .tag = work->tag,
    };
    if (model->queues == SIM_STREAM_QUEUES && work->kind == SIM_KERNEL)
        op->priority = queue->params.priority;
    set_length(model, work, op);
    follow(engine, queue, sim__unit_of(model, work->kind), work, op);
    if (work->kind == SIM_KERNEL)
        op->yield_ns = work->yield_ns;
    if (work->kind == SIM_KERNEL && work->places > 1)
        op->places = work->places < model->kernels ? work->places : model->kernels;
    queue->ring[op->point.number & (queue->room - 1)] = op;
    return op;
}

static void add_dependencies(struct sim_engine *engine, struct sim_op *op,
                             const struct sim_work *work)
{
    const struct sim_queue *queue = &engine->queues[op->point.queue];
    struct sim_device *device = &engine->devices[queue->params.device];
    depend(engine, op, (struct sim_point){op->point.queue, op->point.number - 1});
    for (size_t i = 0; i < work->wait_count; i++)
        depend(engine, op, work->waits[i]);
    if (queue->params.legacy) {
        depend_on_all(engine, op, queue->params.device);
        device->legacy = op->point;
    } else if (device->legacy.queue != op->point.queue) {
        depend(engine, op, device->legacy);
    }
    join_channel(device, queue, op);
    if (work->pulls)
        join_pulls(sim__device_of(engine, op), op);
    join_run(engine, op);
}

// With engine queues an operation has its turn from now on.
static void take_turn(struct sim_device *device, struct sim_op *op)
{
    const uint32_t unit = sim__unit_of(device->model, op->kind);
    if (unit == SIM_NO_ENGINE)
        return;
    device->units[unit].members++;
    device->in_flight++;
    device->busy |= UINT32_C(1) << unit;
    if (device->model->queues == SIM_ENGINE_QUEUES && unit != SIM_HOST_ENGINE)
        sim__heap_push(&device->units[unit].waiting, op);
}

bool sim_engine_submit(struct sim_engine *engine, uint32_t queue, uint64_t issue_ns,
                       const struct sim_work *work, struct sim_point *out_point)
{
    if (!reserve(engine, &engine->queues[queue], work))
        return false;
    sim_engine_advance(engine, issue_ns);
    struct sim_op *op = new_op(engine, queue, work);
    *out_point = op->point;
    add_dependencies(engine, op, work);
    take_turn(sim__device_of(engine, op), op);
    sim__release(engine, op);
    sim__settle(engine);
    return true;
}
