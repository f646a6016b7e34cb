// The operations of queues, what they wait for, and what happens at one instant and from one to the next. An
// operation is posted, and there when the engine has reached its time; only then others can be told that it waits
// for them, since they may be posted later. All its memory is one block, so nothing has changed if memory is
// short.
#include "plugins/sim/engine.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/sim/units.h"

struct sim_queue {
    struct sim_queue_params params;
    uint32_t channel;
    uint32_t lane;
    uint32_t unit;        // of its last operation with an engine
    bool ended;           // gets no more work; with nothing in its ring its number is free
    struct sim_op **ring; // of the operations `first` to `last`, by number; NULL: complete
    size_t room;          // a power of two, or 0
    uint64_t first;
    uint64_t last;
};

struct sim_engine {
    void (*done)(const struct sim_done *done);
    uint64_t now_ns;
    uint64_t issue;
    uint64_t posts; // so many ever
    size_t posted;
    struct sim_device *devices;
    uint32_t device_count;
    struct sim_queue *queues;
    uint32_t queue_count;
    struct sim_op *last_in_run; // the kernel whose run the next one may join
};

static struct sim_device *device_of(const struct sim_engine *engine, const struct sim_op *op)
{
    return &engine->devices[op->device];
}

// The engine.

struct sim_engine *sim_engine_create(void (*done)(const struct sim_done *done))
{
    struct sim_engine *engine = calloc(1, sizeof *engine);
    if (engine)
        engine->done = done;
    return engine;
}

void sim_engine_destroy(struct sim_engine **engine)
{
    struct sim_engine *each = *engine;
    *engine = NULL;
    if (!each)
        return;
    for (uint32_t i = 0; i < each->queue_count; i++) {
        for (size_t slot = 0; slot < each->queues[i].room; slot++)
            free(each->queues[i].ring[slot]);
        free((void *)each->queues[i].ring);
    }
    for (uint32_t i = 0; i < each->device_count; i++)
        sim__device_finish(&each->devices[i]);
    free(each->queues);
    free(each->devices);
    free(each);
}

bool sim_engine_add_device(struct sim_engine *engine, const struct sim_model *model,
                           uint32_t *out_device)
{
    struct sim_device *devices =
        realloc(engine->devices, (engine->device_count + 1) * sizeof *devices);
    if (!devices)
        return false;
    engine->devices = devices;
    if (!sim__device_init(&devices[engine->device_count], model))
        return false;
    *out_device = engine->device_count++;
    return true;
}

// Queues, and their operations.

bool sim_engine_add_queue(struct sim_engine *engine, const struct sim_queue_params *params,
                          uint32_t *out_queue)
{
    struct sim_device *device = &engine->devices[params->device];
    uint32_t index = 0; // of one that is not used, or a new one
    while (
        index < engine->queue_count &&
        !(engine->queues[index].ended && engine->queues[index].first > engine->queues[index].last))
        index++;
    if (index == engine->queue_count) {
        struct sim_queue *queues = realloc(engine->queues, (index + 1) * sizeof *queues);
        if (!queues)
            return false;
        engine->queues = queues;
        queues[engine->queue_count++] = (struct sim_queue){.first = 1};
    }
    struct sim_queue *queue = &engine->queues[index];
    queue->params = *params;
    queue->ended = false;
    queue->unit = SIM_NO_UNIT;
    if (device->model->channels)
        queue->channel = device->next_channel++ % device->model->channels;
    if (device->model->copy_channels)
        queue->lane = device->next_lane++ % device->model->copy_channels;
    *out_queue = index;
    return true;
}

void sim_engine_end_queue(struct sim_engine *engine, uint32_t queue)
{
    engine->queues[queue].ended = true;
    engine->queues[queue].params.owner = NULL;
}

static struct sim_op **slot_of(const struct sim_queue *queue, uint64_t number)
{
    return &queue->ring[number & (queue->room - 1)];
}

// NULL if it is complete, and nothing will ask for it.
static struct sim_op *find(const struct sim_engine *engine, struct sim_point point)
{
    const struct sim_queue *queue = &engine->queues[point.queue];
    return point.number == 0 || point.number < queue->first ? NULL : *slot_of(queue, point.number);
}

static void retire(struct sim_engine *engine, struct sim_op *op)
{
    struct sim_queue *queue = &engine->queues[op->point.queue];
    *slot_of(queue, op->point.number) = NULL;
    free(op);
    while (queue->first <= queue->last && !*slot_of(queue, queue->first))
        queue->first++;
}

bool sim_ring_grow(void *ring, size_t *room, size_t least, size_t size, uint64_t first,
                   uint64_t end)
{
    const size_t more = *room ? 2 * *room : least;
    char *to = calloc(more, size);
    char *from;
    if (!to)
        return false;
    memcpy(&from, ring, sizeof from);
    for (uint64_t number = first; number < end; number++)
        memcpy(to + (number & (more - 1)) * size, from + (number & (*room - 1)) * size, size);
    free(from);
    memcpy(ring, &to, sizeof to);
    *room = more;
    return true;
}

// Signals.

// `op` learns now that `before` is complete. A mark passes on what it has learned itself.
static void note_from(const struct sim_engine *engine, struct sim_op *op,
                      const struct sim_op *before)
{
    const struct sim_device *device = device_of(engine, op);
    if (op->from_ns != engine->now_ns)
        op->from = 0;
    op->from_ns = engine->now_ns;
    if (device != device_of(engine, before))
        op->from |= SIM_FROM_ELSEWHERE;
    else if (sim__has_engine(before->kind))
        op->from |= UINT32_C(1) << sim__unit_of(device->model, before->kind);
    else if (before->from_ns == engine->now_ns)
        op->from |= before->from;
}

// Whatever has no engine is passed over. A copy between devices after a pause needs no signal, others do.
static void follow(const struct sim_engine *engine, struct sim_op *op)
{
    const uint32_t unit = sim__unit_of(device_of(engine, op)->model, op->kind);
    const struct sim_point last = {op->point.queue, op->point.number - 1};
    struct sim_queue *queue = &engine->queues[op->point.queue];
    if (!sim__has_engine(op->kind))
        return;
    op->follows = !op->first && queue->unit != unit && queue->unit != SIM_NO_UNIT &&
                  (op->kind != SIM_PEER || find(engine, last));
    queue->unit = op->pulls ? SIM_OTHERS_UNIT : unit;
}

static void join(const struct sim_engine *engine, struct sim_op *op)
{
    op->rank_ns = op->ready_ns = engine->now_ns;
    sim__wait_for_unit(device_of(engine, op), op);
}

static void release(const struct sim_engine *engine, struct sim_op *op)
{
    struct sim_device *device = device_of(engine, op);
    const bool on_host = sim__unit_of(device->model, op->kind) == SIM_HOST_UNIT;
    if (--op->pending > 0)
        return;
    op->ready_ns = engine->now_ns;
    if (!on_host && device->model->queues == SIM_ENGINE_QUEUES)
        return;
    const uint64_t ns = on_host ? 0 : sim__lead_ns(device->model, op);
    if (ns == 0) {
        join(engine, op);
        return;
    }
    op->signalled = true;
    op->end_ns = engine->now_ns + ns;
    sim__list_add(&device->units[SIM_SIGNALS_UNIT].running, op, sim__ends_first);
}

// Completions.

// Whether `op` learns of the end of a kernel before the run of that one is complete.
static bool sees_at_once(const struct sim_engine *engine, const struct sim_op *op,
                         const struct sim_op *kernel)
{
    return op->device == kernel->device &&
           sim__unit_of(device_of(engine, op)->model, op->kind) == SIM_KERNEL_UNIT;
}

// Those of other engines stay in the list if `late`.
static void release_dependents(const struct sim_engine *engine, struct sim_op *op, bool late)
{
    struct sim_edge *edge = op->at_end;
    op->at_end = NULL;
    for (struct sim_edge *next; edge; edge = next) {
        next = edge->next;
        if (late && !sees_at_once(engine, edge->to, op)) {
            edge->next = op->at_end;
            op->at_end = edge;
        } else {
            note_from(engine, edge->to, op);
            release(engine, edge->to);
        }
    }
}

static void complete(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_done done = {op->point, engine->queues[op->point.queue].params.owner, op->tag,
                                  op->start_ns, op->end_ns};
    struct sim_op *run = op->run;
    engine->done(&done);
    op->state = SIM_ENDED;
    release_dependents(engine, op, run != NULL);
    if (!run)
        retire(engine, op);
    if (!run || --run->run_left > 0)
        return;
    if (engine->last_in_run && engine->last_in_run->run == run)
        engine->last_in_run = NULL;
    for (struct sim_op *next; run; run = next) {
        next = run->next_in_run;
        release_dependents(engine, run, false);
        retire(engine, run);
    }
}

// Instants.

// Starts the one that was ready first. False if none can start.
static bool start_one(struct sim_engine *engine)
{
    struct sim_op *first = sim__next(engine->devices, engine->device_count, false);
    if (!first)
        return false;
    sim__start(device_of(engine, first), first, engine->now_ns);
    for (struct sim_edge *edge = first->at_start; edge; edge = edge->next)
        release(engine, edge->to);
    return true;
}

// Completes the operation that ends first, if that is at `until_ns` or before.
static bool end_one(struct sim_engine *engine, uint64_t until_ns)
{
    struct sim_op *first = sim__next(engine->devices, engine->device_count, true);
    if (!first || first->end_ns > until_ns)
        return false;
    engine->now_ns = first->end_ns;
    sim__end(device_of(engine, first), first);
    if (first->state == SIM_RUNNING)
        complete(engine, first);
    else
        join(engine, first);
    return true;
}

// What it waits for.

static void add_edge(struct sim_op *op, struct sim_edge **list)
{
    struct sim_edge *edge = &op->edges[op->edge_count++];
    edge->to = op;
    edge->next = *list;
    *list = edge;
    op->pending++;
}

static void depend(const struct sim_engine *engine, struct sim_op *op, struct sim_point on)
{
    struct sim_op *before = find(engine, on);
    if (before && (before->state != SIM_ENDED || !sees_at_once(engine, op, before)))
        add_edge(op, &before->at_end);
}

// It starts after the last one, and is that from now on.
static void follow_start(const struct sim_engine *engine, struct sim_op *op, struct sim_point *last)
{
    struct sim_op *before = find(engine, *last);
    if (before && before->state < SIM_RUNNING)
        add_edge(op, &before->at_start);
    *last = op->point;
}

// Of one device, and what goes to another one in between ends it too: the next kernel may wait for that.
static void join_run(struct sim_engine *engine, struct sim_op *op)
{
    struct sim_op *last = engine->last_in_run;
    engine->last_in_run = NULL;
    if (op->kind != SIM_KERNEL || !device_of(engine, op)->model->late_signals)
        return;
    op->run = op;
    if (last && last->point.queue != op->point.queue && last->device == op->device) {
        op->run = last->run;
        last->next_in_run = op;
    }
    op->run->run_left++;
    engine->last_in_run = op;
}

static void add_dependencies(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_queue *queue = &engine->queues[op->point.queue];
    struct sim_device *home = &engine->devices[op->home];
    for (size_t i = 0; i < op->on_count; i++)
        depend(engine, op, op->edges[i].on);
    if (home->model->channels)
        follow_start(engine, op, &home->channels[queue->channel]);
    if (op->pulls)
        follow_start(engine, op, &device_of(engine, op)->pull);
    join_run(engine, op);
}

// Posting.

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

static void set_kernel(const struct sim_model *model, const struct sim_work *work, int32_t priority,
                       struct sim_op *op)
{
    op->places = work->places < model->kernels ? work->places : model->kernels;
    op->places = op->places > 0 ? op->places : 1;
    op->yield_ns = work->yield_ns;
    op->priority = model->queues == SIM_STREAM_QUEUES ? priority : 0;
}

// Edges of its waits, of its queue, of its channel, and of a pull.
static struct sim_op *create_op(const struct sim_engine *engine, uint32_t index,
                                const struct sim_work *work)
{
    const struct sim_queue *queue = &engine->queues[index];
    const size_t edges = work->wait_count + 3;
    struct sim_op *op = calloc(1, sizeof *op + edges * sizeof *op->edges);
    if (!op)
        return NULL;
    op->point = (struct sim_point){index, queue->last + 1};
    op->home = queue->params.device;
    op->lane = queue->lane;
    op->device = work->pulls ? work->device : queue->params.device;
    op->kind = work->kind;
    op->pulls = work->pulls;
    op->first = work->first;
    op->node = work->node;
    op->pending = 1; // until everything else is known
    op->places = 1;
    op->tag = work->tag;
    op->edges[op->on_count++].on = (struct sim_point){index, queue->last};
    for (size_t i = 0; i < work->wait_count; i++)
        op->edges[op->on_count++].on = work->waits[i];
    const struct sim_model *model = engine->devices[op->device].model;
    set_length(model, work, op);
    if (work->kind == SIM_KERNEL)
        set_kernel(model, work, queue->params.priority, op);
    if (work->kind == SIM_MARK)
        op->priority = INT32_MIN; // before what the host does
    return op;
}

bool sim_engine_post(struct sim_engine *engine, uint32_t queue, uint64_t issue_ns,
                     const struct sim_work *work, struct sim_point *out_point)
{
    struct sim_queue *its = &engine->queues[queue];
    if (its->last + 1 - its->first >= its->room &&
        !sim_ring_grow(&its->ring, &its->room, 8, sizeof(*its->ring), its->first, its->last + 1))
        return false;
    struct sim_op *op = create_op(engine, queue, work);
    if (!op)
        return false;
    its->last++;
    *slot_of(its, op->point.number) = op;
    *out_point = op->point;
    op->rank_ns = issue_ns;
    op->issue = ++engine->posts;
    engine->posted++;
    sim__list_add(&engine->devices[op->home].posted, op, sim__arrives_first);
    return true;
}

size_t sim_engine_posted(const struct sim_engine *engine)
{
    return engine->posted;
}

// With engine queues an operation has its turn from now on.
static void arrive(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_model *model = device_of(engine, op)->model;
    sim__list_remove(&engine->devices[op->home].posted, op);
    engine->posted--;
    engine->now_ns = op->rank_ns > engine->now_ns ? op->rank_ns : engine->now_ns;
    op->state = SIM_SUBMITTED;
    op->rank_ns = 0;
    op->issue = ++engine->issue;
    follow(engine, op);
    add_dependencies(engine, op);
    if (model->queues == SIM_ENGINE_QUEUES && sim__unit_of(model, op->kind) != SIM_HOST_UNIT)
        sim__wait_for_unit(device_of(engine, op), op);
    release(engine, op);
}

// Time.

bool sim_engine_step(struct sim_engine *engine, uint64_t until_ns)
{
    struct sim_op *next = NULL; // to arrive
    for (uint32_t i = 0; i < engine->device_count; i++) {
        struct sim_op *op = engine->devices[i].posted.head;
        if (op && (!next || sim__arrives_first(op, next)))
            next = op;
    }
    const uint64_t arrival_ns = next && next->rank_ns < engine->now_ns ? engine->now_ns
                                : next                                 ? next->rank_ns
                                                                       : UINT64_MAX;
    if (!end_one(engine, arrival_ns < until_ns ? arrival_ns : until_ns)) {
        if (!next || arrival_ns > until_ns)
            return false;
        arrive(engine, next);
    }
    while (end_one(engine, engine->now_ns) || start_one(engine)) {
    }
    return true;
}

void sim_engine_advance(struct sim_engine *engine, uint64_t until_ns)
{
    while (sim_engine_step(engine, until_ns)) {
    }
    if (until_ns > engine->now_ns)
        engine->now_ns = until_ns;
}

bool sim_engine_complete(const struct sim_engine *engine, struct sim_point point)
{
    const struct sim_op *op = find(engine, point);
    return !op || op->state == SIM_ENDED;
}

struct sim_point sim_engine_last(const struct sim_engine *engine, uint32_t queue)
{
    return (struct sim_point){queue, engine->queues[queue].last};
}

uint64_t sim_engine_now_ns(const struct sim_engine *engine)
{
    return engine->now_ns;
}

uint32_t sim_kernel_places(const struct sim_model *model, double blocks)
{
    if (model->multiprocessors == 0 || blocks >= (double)model->multiprocessors)
        return model->kernels;
    const double places = blocks * (double)model->kernels / (double)model->multiprocessors;
    return places > 1 ? (uint32_t)(places + 0.5) : 1;
}
