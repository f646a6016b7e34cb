// The engine's data: heaps of operations, the units of a device, devices, queues with their operations, and
// the time that has been reached. What happens at an instant is in engine_run.c.
#include "plugins/sim/engine.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/sim/engine_parts.h"

// Kinds.

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

// Heaps: the operations that wait, by their turn, and those that run, by their end.

static bool goes_first(const struct sim_op *a, const struct sim_op *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->rank_ns != b->rank_ns)
        return a->rank_ns < b->rank_ns;
    return a->issue < b->issue;
}

bool sim__ends_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->issue < b->issue;
}

static bool arrives_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->rank_ns != b->rank_ns ? a->rank_ns < b->rank_ns : a->issue < b->issue;
}

static bool heap_reserve(struct sim_heap *heap, size_t count)
{
    size_t room = heap->room ? heap->room : 4;
    if (count <= heap->room)
        return true;
    while (room < count)
        room *= 2;
    struct sim_op **ops = realloc(heap->ops, room * sizeof(*ops));
    if (!ops)
        return false;
    heap->ops = ops;
    heap->room = room;
    return true;
}

static void swap(struct sim_heap *heap, size_t a, size_t b)
{
    struct sim_op *op = heap->ops[a];
    heap->ops[a] = heap->ops[b];
    heap->ops[b] = op;
}

void sim__heap_push(struct sim_heap *heap, struct sim_op *op)
{
    size_t at = heap->count++;
    heap->ops[at] = op;
    for (; at > 0 && heap->before(heap->ops[at], heap->ops[(at - 1) / 2]); at = (at - 1) / 2)
        swap(heap, at, (at - 1) / 2);
}

struct sim_op *sim__heap_top(const struct sim_heap *heap)
{
    return heap->count ? heap->ops[0] : NULL;
}

void sim__heap_delay(struct sim_heap *heap, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++)
            if (heap->before(heap->ops[child], heap->ops[least]))
                least = child;
        if (least == at)
            return;
        swap(heap, at, least);
        at = least;
    }
}

struct sim_op *sim__heap_pop(struct sim_heap *heap)
{
    struct sim_op *top = heap->ops[0];
    heap->ops[0] = heap->ops[--heap->count];
    sim__heap_delay(heap, 0);
    return top;
}

// Units.

static bool was_issued_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->issue < b->issue;
}

static bool unit_init(struct sim_unit *unit, uint32_t lane_count)
{
    unit->waiting.before = goes_first;
    unit->running.before = sim__ends_first;
    unit->capacity = 1;
    if (lane_count == 0)
        return true;
    unit->lanes = calloc(lane_count, sizeof *unit->lanes);
    unit->lane_count = unit->lanes ? lane_count : 0;
    for (uint32_t i = 0; i < unit->lane_count; i++)
        unit->lanes[i].before = was_issued_first;
    return unit->lanes;
}

static void unit_finish(struct sim_unit *unit)
{
    free((void *)unit->waiting.ops);
    free((void *)unit->running.ops);
    for (uint32_t i = 0; i < unit->lane_count; i++)
        free((void *)unit->lanes[i].ops);
    free(unit->lanes);
}

static bool unit_reserve(struct sim_unit *unit, uint32_t lane)
{
    return heap_reserve(sim__waiting_of(unit, lane), unit->members + 1) &&
           heap_reserve(&unit->running, unit->members + 1);
}

// The engine.

struct sim_engine *sim_engine_create(void (*done)(void *user, const struct sim_done *done),
                                     void *user)
{
    struct sim_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->done = done;
    engine->user = user;
    engine->marks_end = &engine->marks;
    engine->posted.before = arrives_first;
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
        unit_finish(&device->units[i]);
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
        fine = unit_init(&device->units[i], copies ? model->copy_channels : 0) && fine;
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

// Reserving the memory of an operation.

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
           (unit_reserve(&device->units[index], queue->lane) &&
            heap_reserve(&device->units[SIM_SIGNALS].running, device->in_flight + 1));
}

uint32_t sim__device_for(const struct sim_queue *queue, const struct sim_work *work)
{
    return work->pulls ? work->device : queue->params.device;
}

// One edge for each wait, one for the queue, and those of the legacy queue.
bool sim__reserve(struct sim_engine *engine, struct sim_queue *queue, const struct sim_work *work)
{
    struct sim_device *device = &engine->devices[sim__device_for(queue, work)];
    const size_t legacy = queue->params.legacy ? engine->queue_count : 1;
    const bool runs = work->kind == SIM_KERNEL && device->model->late_signals;
    return reserve_op(engine) && reserve_ring(queue) &&
           reserve_edges(engine, work->wait_count + 1 + legacy) && (!runs || reserve_run(engine)) &&
           reserve_unit(device, queue, sim__unit_of(device->model, work->kind)) &&
           heap_reserve(&engine->posted, engine->posted.count + 1);
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
