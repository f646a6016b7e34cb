// What happens at one instant, and from one to the next; and submitting. All that a submit needs is reserved
// first, so that nothing has changed if memory is short. An operation is posted, and there when the engine has
// reached its time; only then others can be told that it waits for them, since they may be posted later.
#include "plugins/sim/engine_parts.h"

// Units: what is ready for an engine, or waits for it, in one order, or, for copies with copy channels, in one
// for each channel. The engine stays with its channel as long as that has a copy that is ready. And the
// places of an engine, which kernels take from others with a worse priority.

static bool was_ready_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->ready_ns != b->ready_ns ? a->ready_ns < b->ready_ns : a->issue < b->issue;
}

static void unit_add(struct sim_unit *unit, uint32_t lane, struct sim_op *op)
{
    sim__heap_push(sim__waiting_of(unit, lane), op);
}

// Of all channels the one whose first was ready first, if the one that it is with has none.
static uint32_t lane_of(const struct sim_unit *unit)
{
    uint32_t best = unit->lane;
    if (sim__heap_top(&unit->lanes[best]))
        return best;
    for (uint32_t i = 0; i < unit->lane_count; i++) {
        const struct sim_op *op = sim__heap_top(&unit->lanes[i]);
        const struct sim_op *first = sim__heap_top(&unit->lanes[best]);
        if (op && (!first || was_ready_first(op, first)))
            best = i;
    }
    return best;
}

static bool yields_to(const struct sim_op *running, const struct sim_op *op)
{
    return running->yield_ns > 0 && running->priority > op->priority;
}

// What yields to it does not count.
static bool has_room(const struct sim_unit *unit, const struct sim_op *op)
{
    size_t used = unit->used;
    if (used + op->places <= unit->capacity || unit->yielding == 0 || op->kind != SIM_KERNEL)
        return used + op->places <= unit->capacity;
    for (size_t i = 0; i < unit->running.count; i++)
        if (yields_to(unit->running.ops[i], op))
            used -= unit->running.ops[i]->places;
    return used + op->places <= unit->capacity;
}

// The next to start; NULL: none can.
static struct sim_op *unit_next(const struct sim_unit *unit)
{
    struct sim_op *op = unit->lane_count ? sim__heap_top(&unit->lanes[lane_of(unit)])
                                         : sim__heap_top(&unit->waiting);
    return op && op->pending == 0 && has_room(unit, op) ? op : NULL;
}

// The worst priority yields first, then what started last.
static bool yields_before(const struct sim_op *a, const struct sim_op *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->start_ns != b->start_ns ? a->start_ns > b->start_ns : a->issue > b->issue;
}

// Of those that `last` yields before, or of all, the next that yields to `op`.
static size_t next_to_yield(const struct sim_heap *running, const struct sim_op *op,
                            const struct sim_op *last)
{
    size_t next = running->count;
    for (size_t i = 0; i < running->count; i++) {
        const struct sim_op *other = running->ops[i];
        if (yields_to(other, op) && (!last || yields_before(last, other)) &&
            (next == running->count || yields_before(other, running->ops[next])))
            next = i;
    }
    return next;
}

// Rounded up.
static uint64_t share(uint64_t ns, size_t part, size_t whole)
{
    return ns / whole * part + (ns % whole * part + whole - 1) / whole;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// What others lack already is not its own.
static size_t missing_places(const struct sim_unit *unit, const struct sim_op *op)
{
    if (unit->used >= unit->capacity)
        return op->places;
    const size_t left = unit->capacity - unit->used;
    return op->places > left ? op->places - left : 0;
}

// `op`, which starts now, takes the places that it lacks from kernels that yield, which end later.
// Returns when it has them.
static uint64_t unit_preempt(struct sim_unit *unit, const struct sim_op *op)
{
    const struct sim_op *last = NULL;
    uint64_t until_ns = UINT64_MAX;
    for (size_t missing = missing_places(unit, op); missing > 0;) {
        const size_t at = next_to_yield(&unit->running, op, last);
        if (at == unit->running.count)
            break;
        struct sim_op *other = unit->running.ops[at];
        const size_t taken = missing < other->places ? missing : other->places;
        last = other;
        missing -= taken;
        until_ns = earliest(until_ns, earliest(op->start_ns + other->yield_ns, other->end_ns));
        other->end_ns += share(op->moves_ns, taken, other->places);
        sim__heap_delay(&unit->running, at);
    }
    return until_ns == UINT64_MAX ? op->start_ns : until_ns;
}

// The same one, which waits no longer.
static struct sim_op *unit_take(struct sim_unit *unit)
{
    if (!unit->lane_count)
        return sim__heap_pop(&unit->waiting);
    unit->lane = lane_of(unit);
    return sim__heap_pop(&unit->lanes[unit->lane]);
}

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
    unit_add(&sim__device_of(engine, op)->units[unit], engine->queues[op->point.queue].lane, op);
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

static void release(struct sim_engine *engine, struct sim_op *op)
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
            release(engine, edge->to);
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
        release(engine, op->next_pull);
    if (sim__device_of(engine, op)->pull == op)
        sim__device_of(engine, op)->pull = NULL;
    if (!device->model->channels)
        return;
    if (op->next_in_channel)
        release(engine, op->next_in_channel);
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
    struct sim_op *op = unit_take(&device->units[unit]);
    const bool copies = op->left_millionths > 0;
    start(engine, op);
    const uint64_t room_ns = unit_preempt(&device->units[unit], op);
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
            struct sim_op *op = unit_next(&engine->devices[i].units[each]);
            if (!op || (first && !was_ready_first(op, first)))
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

static void settle(struct sim_engine *engine)
{
    while (end_one(engine, engine->now_ns) || pass_mark(engine) || start_one(engine)) {
    }
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
    const struct sim_model *model = engine->devices[sim__device_for(queue, work)].model;
    const bool is_kernel = work->kind == SIM_KERNEL;
    struct sim_op *op = take_op(engine);
    *op = (struct sim_op){
        .point = {index, ++queue->last},
        .device = sim__device_for(queue, work),
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

static uint64_t next_arrival_ns(const struct sim_engine *engine)
{
    const struct sim_op *op = sim__heap_top(&engine->posted);
    if (!op)
        return UINT64_MAX;
    return op->rank_ns > engine->now_ns ? op->rank_ns : engine->now_ns;
}

static void arrive(struct sim_engine *engine)
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
    release(engine, op);
}

bool sim_engine_post(struct sim_engine *engine, uint32_t queue, uint64_t issue_ns,
                     const struct sim_work *work, struct sim_point *out_point)
{
    if (!sim__reserve(engine, &engine->queues[queue], work))
        return false;
    struct sim_op *op = new_op(engine, queue, work);
    *out_point = op->point;
    op->rank_ns = issue_ns;
    op->issue = ++engine->posts;
    join_unit(sim__device_of(engine, op), op);
    sim__heap_push(&engine->posted, op);
    if (engine->queues[queue].params.legacy)
        sim_engine_advance(engine, issue_ns > engine->now_ns ? issue_ns : engine->now_ns);
    return true;
}

size_t sim_engine_posted(const struct sim_engine *engine)
{
    return engine->posted.count;
}

bool sim_engine_step(struct sim_engine *engine, uint64_t until_ns)
{
    const uint64_t arrival_ns = next_arrival_ns(engine);
    if (!end_one(engine, arrival_ns < until_ns ? arrival_ns : until_ns)) {
        if (arrival_ns > until_ns || arrival_ns == UINT64_MAX)
            return false;
        engine->now_ns = arrival_ns;
        arrive(engine);
    }
    settle(engine);
    return true;
}
