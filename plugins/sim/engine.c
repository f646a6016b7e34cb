// Devices, queues, and the operations of a queue.
#include "plugins/sim/engine.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/sim/engine_parts.h"

uint32_t sim__unit_of(const struct sim_model *model, enum sim_kind kind)
{
    const uint32_t down = model->copy_engines > 1 ? SIM_DOWN_ENGINE : SIM_COPY_ENGINE;
    switch (kind) {
    case SIM_KERNEL:
    case SIM_D2D:
        return SIM_KERNEL_ENGINE;
    case SIM_H2D:
        return SIM_COPY_ENGINE;
    case SIM_D2H:
        return down;
    case SIM_PEER:
        return model->copy_engines > 2 ? SIM_PEER_ENGINE : down;
    case SIM_COLLECTIVE:
        return SIM_COMMUNICATION_ENGINE;
    case SIM_HOST:
    case SIM_PAUSE:
        return SIM_HOST_ENGINE;
    default:
        return SIM_NO_ENGINE;
    }
}

struct sim_device *sim__device_of(const struct sim_engine *engine, const struct sim_op *op)
{
    return &engine->devices[op->device];
}

bool sim__sees_at_once(const struct sim_engine *engine, const struct sim_op *op,
                       const struct sim_op *kernel)
{
    const struct sim_device *device = sim__device_of(engine, op);
    return sim__unit_of(device->model, op->kind) == SIM_KERNEL_ENGINE &&
           device == sim__device_of(engine, kernel);
}

struct sim_engine *sim_engine_create(void (*done)(void *user, const struct sim_done *done),
                                     void *user)
{
    struct sim_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->done = done;
    engine->user = user;
    engine->marks_end = &engine->marks;
    engine->posted.before = sim__arrives_first;
    return engine;
}

// Destroying.

static void free_edges(struct sim_edge *edge)
{
    while (edge) {
        struct sim_edge *next = edge->next;
        free(edge);
        edge = next;
    }
}

static void free_op(struct sim_op *op)
{
    free_edges(op->dependents);
    free_edges(op->reserved);
    free(op);
}

static void finish_queue(struct sim_queue *queue)
{
    for (; queue->first <= queue->last; queue->first++)
        free_op(queue->ring[queue->first & (queue->room - 1)]);
    free((void *)queue->ring);
}

static void finish_device(struct sim_device *device)
{
    for (size_t i = 0; i < SIM_ENGINES; i++)
        sim__unit_finish(&device->units[i]);
    free((void *)device->channels);
}

// Runs whose kernels are all in the queues' rings, and those that posted ones have. That of one that is
// retired is closed, and kept already.
static void keep_runs(struct sim_engine *engine)
{
    for (uint32_t i = 0; i < engine->queue_count; i++) {
        const struct sim_queue *queue = &engine->queues[i];
        for (uint64_t number = queue->first; number <= queue->last; number++) {
            const struct sim_op *op = queue->ring[number & (queue->room - 1)];
            struct sim_run *run = op->run;
            if (!run || op->state == SIM_RETIRED || (!run->ops && op->state != SIM_POSTED))
                continue;
            run->ops = NULL;
            run->next_free = engine->free_runs;
            engine->free_runs = run;
        }
    }
}

static void free_kept(struct sim_engine *engine)
{
    while (engine->free_ops) {
        struct sim_op *next = engine->free_ops->next;
        free(engine->free_ops);
        engine->free_ops = next;
    }
    free_edges(engine->free_edges);
    while (engine->free_runs) {
        struct sim_run *next = engine->free_runs->next_free;
        free(engine->free_runs);
        engine->free_runs = next;
    }
}

void sim_engine_destroy(struct sim_engine **engine)
{
    struct sim_engine *each = *engine;
    *engine = NULL;
    if (!each)
        return;
    keep_runs(each);
    for (uint32_t i = 0; i < each->queue_count; i++)
        finish_queue(&each->queues[i]);
    for (uint32_t i = 0; i < each->device_count; i++)
        finish_device(&each->devices[i]);
    free_kept(each);
    free((void *)each->posted.ops);
    free(each->queues);
    free(each->devices);
    free(each);
}

// Devices and queues.

bool sim_engine_add_device(struct sim_engine *engine, const struct sim_model *model,
                           uint32_t *out_device)
{
    struct sim_device *devices =
        realloc(engine->devices, (engine->device_count + 1) * sizeof *devices);
    if (!devices)
        return false;
    engine->devices = devices;
    struct sim_device *device = &devices[engine->device_count];
    *device = (struct sim_device){.model = model};
    device->channels = (struct sim_op **)calloc(model->channels + 1, sizeof(struct sim_op *));
    bool fine = device->channels != NULL;
    for (size_t i = 0; i < SIM_ENGINES; i++) {
        const bool copies =
            (i == SIM_COPY_ENGINE || i == SIM_DOWN_ENGINE) && model->queues == SIM_STREAM_QUEUES;
        fine = sim__unit_init(&device->units[i], copies ? model->copy_channels : 0) && fine;
    }
    if (!fine) {
        finish_device(device);
        return false;
    }
    device->units[SIM_KERNEL_ENGINE].capacity = model->kernels;
    device->units[SIM_HOST_ENGINE].capacity = SIZE_MAX;
    *out_device = engine->device_count++;
    return true;
}

static struct sim_queue *unused_queue(struct sim_engine *engine)
{
    for (uint32_t i = 0; i < engine->queue_count; i++)
        if (engine->queues[i].free)
            return &engine->queues[i];
    struct sim_queue *queues = realloc(engine->queues, (engine->queue_count + 1) * sizeof *queues);
    if (!queues)
        return NULL;
    engine->queues = queues;
    queues[engine->queue_count] = (struct sim_queue){.first = 1};
    return &queues[engine->queue_count++];
}

bool sim_engine_add_queue(struct sim_engine *engine, const struct sim_queue_params *params,
                          uint32_t *out_queue)
{
    struct sim_device *device = &engine->devices[params->device];
    struct sim_queue *queue = unused_queue(engine);
    if (!queue)
        return false;
    queue->params = *params;
    queue->ended = queue->free = false;
    queue->unit = SIM_NO_ENGINE;
    if (device->model->channels)
        queue->channel = device->next_channel++ % device->model->channels;
    if (device->model->copy_channels)
        queue->lane = device->next_lane++ % device->model->copy_channels;
    *out_queue = (uint32_t)(queue - engine->queues);
    return true;
}

static void free_if_empty(struct sim_queue *queue)
{
    queue->free = queue->ended && queue->first > queue->last;
}

void sim_engine_end_queue(struct sim_engine *engine, uint32_t queue)
{
    engine->queues[queue].ended = true;
    free_if_empty(&engine->queues[queue]);
}

// The operations of a queue.

struct sim_op *sim__find(const struct sim_engine *engine, struct sim_point point)
{
    const struct sim_queue *queue = &engine->queues[point.queue];
    if (point.number == 0 || point.number < queue->first)
        return NULL;
    struct sim_op *op = queue->ring[point.number & (queue->room - 1)];
    return op->state == SIM_RETIRED ? NULL : op;
}

void sim__retire(struct sim_engine *engine, struct sim_op *op)
{
    struct sim_queue *queue = &engine->queues[op->point.queue];
    op->state = SIM_RETIRED;
    for (; queue->first <= queue->last; queue->first++) {
        struct sim_op *first = queue->ring[queue->first & (queue->room - 1)];
        if (first->state != SIM_RETIRED)
            return;
        first->next = engine->free_ops;
        engine->free_ops = first;
    }
    free_if_empty(queue);
}

// Time.

void sim_engine_advance(struct sim_engine *engine, uint64_t until_ns)
{
    while (sim_engine_step(engine, until_ns)) {
    }
    if (until_ns > engine->now_ns)
        engine->now_ns = until_ns;
}

void sim_engine_wait(struct sim_engine *engine, struct sim_point point)
{
    while (!sim_engine_complete(engine, point) && sim_engine_step(engine, UINT64_MAX)) {
    }
}

bool sim_engine_complete(const struct sim_engine *engine, struct sim_point point)
{
    const struct sim_op *op = point.number ? sim__find(engine, point) : NULL;
    return !op || op->state >= SIM_ENDED;
}

struct sim_point sim_engine_last(const struct sim_engine *engine, uint32_t queue)
{
    return (struct sim_point){queue, engine->queues[queue].last};
}

uint64_t sim_engine_now_ns(const struct sim_engine *engine)
{
    return engine->now_ns;
}
