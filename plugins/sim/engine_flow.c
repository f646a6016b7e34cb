// What happens at one instant, and from one to the next. Nothing here allocates.
#include "plugins/sim/engine_parts.h"

// Whether what made it ready ran on another engine, as always if its queue is another device's.
static bool is_signalled(const struct sim_op *op, uint32_t unit)
{
    return op->kind != SIM_PAUSE &&
           (op->pulls || op->follows ||
            (op->from_ns == op->ready_ns && (op->from & ~(UINT32_C(1) << unit)) != 0));
}

// Whether the end of a kernel, or of a copy on the device, made this kernel ready.
static bool is_chained(const struct sim_op *op)
{
    return op->kind == SIM_KERNEL && !op->node && op->from_ns == op->ready_ns &&
           (op->from & UINT32_C(1) << SIM_KERNEL_ENGINE) != 0;
}

// How long after it may start it does.
static uint64_t lead_ns(const struct sim_model *model, const struct sim_op *op, uint32_t unit)
{
    if (is_signalled(op, unit))
        return model->signal_ns;
    return is_chained(op) ? model->kernel_gap_ns : 0;
}

static void add_to_unit(struct sim_engine *engine, struct sim_op *op, uint32_t unit)
{
    op->rank_ns = op->ready_ns = engine->now_ns;
    sim__unit_add(&sim__device_of(engine, op)->units[unit], engine->queues[op->point.queue].lane,
                  op);
}

static void send_signal(struct sim_engine *engine, struct sim_op *op, uint64_t ns)
{
    struct sim_device *device = sim__device_of(engine, op);
    op->signalled = true;
    op->end_ns = engine->now_ns + ns;
    sim__heap_push(&device->units[SIM_SIGNALS].running, op);
    device->units[SIM_SIGNALS].members++;
    device->busy |= UINT32_C(1) << SIM_SIGNALS;
}

void sim__release(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_device *device = sim__device_of(engine, op);
    const uint32_t unit = sim__unit_of(device->model, op->kind);
    if (--op->pending > 0)
        return;
    op->ready_ns = engine->now_ns;
    if (unit == SIM_NO_ENGINE) {
        op->next = NULL;
        *engine->marks_end = op;
        engine->marks_end = &op->next;
    } else if (unit == SIM_HOST_ENGINE) {
        add_to_unit(engine, op, unit);
    } else if (device->model->queues == SIM_STREAM_QUEUES) {
        const uint64_t ns = lead_ns(device->model, op, unit);
        if (ns)
            send_signal(engine, op, ns);
        else
            add_to_unit(engine, op, unit);
    }
}

// Copies.

static bool is_directed(const struct sim_op *op)
{
    return op && (op->kind == SIM_H2D || op->kind == SIM_D2H);
}

static struct sim_op *running_copy(const struct sim_device *device, uint32_t unit)
{
    struct sim_op *op = sim__heap_top(&device->units[unit].running);
    return is_directed(op) ? op : NULL;
}

// Neither can be 0: a model has at least 1000 bytes a second.
static uint64_t bytes_per_ms(const struct sim_device *device, const struct sim_op *op)
{
    const struct sim_link *link = &device->model->copies[op->kind];
    const bool both = is_directed(op) && running_copy(device, SIM_COPY_ENGINE) &&
                      running_copy(device, SIM_DOWN_ENGINE);
    return (both && link->both_bytes_per_s ? link->both_bytes_per_s : link->bytes_per_s) / 1000;
}

// The other direction began or ended.
static void change_bandwidth(const struct sim_engine *engine, struct sim_device *device)
{
    for (uint32_t unit = SIM_COPY_ENGINE; unit <= SIM_DOWN_ENGINE; unit++) {
        struct sim_op *op = running_copy(device, unit);
        if (!op)
            continue;
        if (engine->now_ns > op->moves_ns) {
            const uint64_t moved = (engine->now_ns - op->moves_ns) * op->bytes_per_ms;
            op->left_millionths -= moved < op->left_millionths ? moved : op->left_millionths;
            op->moves_ns = engine->now_ns;
        }
        op->bytes_per_ms = bytes_per_ms(device, op);
        op->end_ns = op->moves_ns + op->left_millionths / op->bytes_per_ms +
                     (op->left_millionths % op->bytes_per_ms > 0);
    }
}

// Completions.

// `op` learns now that `before` is complete. A mark passes on what it has learned itself.
static void note_from(struct sim_engine *engine, struct sim_op *op, const struct sim_op *before)
{
    const struct sim_device *device = sim__device_of(engine, op);
    const uint32_t unit = sim__unit_of(device->model, before->kind);
    if (op->from_ns != engine->now_ns)
        op->from = 0;
    op->from_ns = engine->now_ns;
    if (device != sim__device_of(engine, before))
        op->from |= SIM_FROM_ELSEWHERE;
    else if (unit != SIM_NO_ENGINE && before->kind != SIM_PAUSE)
        op->from |= UINT32_C(1) << unit;
    else if (before->from_ns == engine->now_ns)
        op->from |= before->from;
}

// Those of other engines stay in the list if `late`.
static void release_dependents(struct sim_engine *engine, struct sim_op *op, bool late)
{
    struct sim_edge *edge = op->dependents;
    op->dependents = NULL;
    while (edge) {
        struct sim_edge *next = edge->next;
        if (late && !sim__sees_at_once(engine, edge->to, op)) {
            edge->next = op->dependents;
            op->dependents = edge;
        } else {
            note_from(engine, edge->to, op);
            sim__release(engine, edge->to);
            edge->next = engine->free_edges;
            engine->free_edges = edge;
        }
        edge = next;
    }
}

static void close_run(struct sim_engine *engine, struct sim_run *run)
{
    struct sim_op *op = run->ops;
    while (op) {
        struct sim_op *next = op->next;
        release_dependents(engine, op, false);
        sim__retire(engine, op);
        op = next;
    }
    if (engine->run == run)
        engine->run = NULL;
    run->next_free = engine->free_runs;
    engine->free_runs = run;
}

static void complete(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_done done = {op->point, op->tag, op->start_ns, op->end_ns};
    struct sim_run *run = op->run;
    engine->done(engine->user, &done);
    op->state = SIM_ENDED;
    if (run) {
        release_dependents(engine, op, true);
        if (--run->left == 0)
            close_run(engine, run);
        return;
    }
    release_dependents(engine, op, false);
    sim__retire(engine, op);
}

// Starts.

static void start(struct sim_engine *engine, struct sim_op *op)
{
    const struct sim_queue *queue = &engine->queues[op->point.queue];
    const struct sim_device *device = &engine->devices[queue->params.device];
    struct sim_op **channel = device->channels + queue->channel;
    op->state = SIM_RUNNING;
    op->start_ns = engine->now_ns;
    if (op->next_pull)
        sim__release(engine, op->next_pull);
    if (sim__device_of(engine, op)->pull == op)
        sim__device_of(engine, op)->pull = NULL;
    if (!device->model->channels)
        return;
    if (op->next_in_channel)
        sim__release(engine, op->next_in_channel);
    if (*channel == op)
        *channel = NULL;
}

// The one that it has beyond that of a copy alone.
static uint64_t both_latency_ns(const struct sim_device *device, const struct sim_op *op)
{
    const struct sim_link *link = &device->model->copies[op->kind];
    const uint32_t other = op->kind == SIM_H2D ? SIM_DOWN_ENGINE : SIM_COPY_ENGINE;
    if (!is_directed(op) || !running_copy(device, other) || !link->both_latency_ns)
        return 0;
    return link->both_latency_ns - link->latency_ns;
}

static void start_on_unit(struct sim_engine *engine, struct sim_device *device, uint32_t unit)
{
    struct sim_op *op = sim__unit_take(&device->units[unit]);
    const bool copies = op->left_millionths > 0;
    start(engine, op);
    const uint64_t room_ns = sim__unit_preempt(&device->units[unit], op);
    if (!op->signalled)
        op->start_ns += lead_ns(device->model, op, unit);
    op->start_ns = room_ns > op->start_ns ? room_ns : op->start_ns;
    op->moves_ns += op->start_ns + both_latency_ns(device, op);
    op->bytes_per_ms = copies ? bytes_per_ms(device, op) : 1;
    op->end_ns = op->moves_ns + op->left_millionths / op->bytes_per_ms +
                 (op->left_millionths % op->bytes_per_ms > 0);
    sim__heap_push(&device->units[unit].running, op);
    device->units[unit].used += op->places;
    device->units[unit].yielding += op->yield_ns > 0;
    if (is_directed(op))
        change_bandwidth(engine, device);
}

// Starts the one that was ready first. False if none can start.
static bool start_one(struct sim_engine *engine)
{
    struct sim_op *first = NULL;
    struct sim_device *device = NULL;
    uint32_t unit = 0;
    for (uint32_t i = 0; i < engine->device_count; i++)
        for (uint32_t each = 0; engine->devices[i].busy >> each; each++) {
            struct sim_op *op = sim__unit_next(&engine->devices[i].units[each]);
            if (!op || (first && !sim__was_ready_first(op, first)))
                continue;
            first = op;
            device = &engine->devices[i];
            unit = each;
        }
    if (device)
        start_on_unit(engine, device, unit);
    return device != NULL;
}

static bool pass_mark(struct sim_engine *engine)
{
    struct sim_op *op = engine->marks;
    if (!op)
        return false;
    engine->marks = op->next;
    if (!engine->marks)
        engine->marks_end = &engine->marks;
    start(engine, op);
    op->end_ns = op->start_ns;
    complete(engine, op);
    return true;
}

// Instants.

static struct sim_unit *next_to_end(const struct sim_engine *engine)
{
    struct sim_unit *next = NULL;
    for (uint32_t i = 0; i < engine->device_count; i++)
        for (uint32_t each = 0; engine->devices[i].busy >> each; each++) {
            struct sim_unit *unit = &engine->devices[i].units[each];
            struct sim_op *op = sim__heap_top(&unit->running);
            if (op && (!next || sim__ends_first(op, sim__heap_top(&next->running))))
                next = unit;
        }
    return next;
}

static void leave(struct sim_device *device, struct sim_unit *unit)
{
    if (--unit->members == 0)
        device->busy &= ~(UINT32_C(1) << (unit - device->units));
}

// Completes the operation that ends first, if that is at `until_ns` or before.
static bool end_one(struct sim_engine *engine, uint64_t until_ns)
{
    struct sim_unit *unit = next_to_end(engine);
    if (!unit || sim__heap_top(&unit->running)->end_ns > until_ns)
        return false;
    struct sim_op *op = sim__heap_pop(&unit->running);
    engine->now_ns = op->end_ns;
    leave(sim__device_of(engine, op), unit);
    if (unit == &sim__device_of(engine, op)->units[SIM_SIGNALS]) {
        add_to_unit(engine, op, sim__unit_of(sim__device_of(engine, op)->model, op->kind));
        return true;
    }
    sim__device_of(engine, op)->in_flight--;
    unit->used -= op->places;
    unit->yielding -= op->yield_ns > 0;
    if (is_directed(op))
        change_bandwidth(engine, sim__device_of(engine, op));
    complete(engine, op);
    return true;
}

void sim__settle(struct sim_engine *engine)
{
    while (end_one(engine, engine->now_ns) || pass_mark(engine) || start_one(engine)) {
    }
}

bool sim_engine_step(struct sim_engine *engine, uint64_t until_ns)
{
    const uint64_t arrival_ns = sim__next_arrival_ns(engine);
    if (!end_one(engine, arrival_ns < until_ns ? arrival_ns : until_ns)) {
        if (arrival_ns > until_ns || arrival_ns == UINT64_MAX)
            return false;
        engine->now_ns = arrival_ns;
        sim__arrive(engine);
    }
    sim__settle(engine);
    return true;
}
