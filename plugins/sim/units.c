// What waits for an engine is in one order, or, for copies with copy channels, in one for each channel.
#include "plugins/sim/units.h"

#include <stdlib.h>

uint32_t sim__unit_of(const struct sim_model *model, enum sim_kind kind)
{
    const uint32_t down = model->copy_engines > 1 ? SIM_DOWN_UNIT : SIM_COPY_UNIT;
    switch (kind) {
    case SIM_KERNEL:
    case SIM_D2D:
        return SIM_KERNEL_UNIT;
    case SIM_H2D:
        return SIM_COPY_UNIT;
    case SIM_D2H:
        return down;
    case SIM_PEER:
        return model->copy_engines > 2 ? SIM_PEER_UNIT : down;
    case SIM_COLLECTIVE:
        return SIM_COLLECTIVE_UNIT;
    default:
        return SIM_HOST_UNIT;
    }
}

bool sim__has_engine(enum sim_kind kind)
{
    return kind != SIM_PAUSE && kind != SIM_MARK;
}

static struct sim_unit *unit_of(struct sim_device *device, const struct sim_op *op)
{
    return &device->units[sim__unit_of(device->model, op->kind)];
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// Lists.

static bool was_issued_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->issue < b->issue;
}

bool sim__arrives_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->rank_ns != b->rank_ns ? a->rank_ns < b->rank_ns : a->issue < b->issue;
}

static bool goes_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->priority != b->priority ? a->priority < b->priority : sim__arrives_first(a, b);
}

bool sim__ends_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->issue < b->issue;
}

// What has no engine passes before anything else starts.
static bool was_ready_first(const struct sim_op *a, const struct sim_op *b)
{
    if ((a->kind == SIM_MARK) != (b->kind == SIM_MARK))
        return a->kind == SIM_MARK;
    return a->ready_ns != b->ready_ns ? a->ready_ns < b->ready_ns : a->issue < b->issue;
}

// From the end: most come after all that are there.
void sim__list_add(struct sim_list *list, struct sim_op *op, sim_order *before)
{
    op->previous = list->tail;
    while (op->previous && before(op, op->previous))
        op->previous = op->previous->previous;
    op->next = op->previous ? op->previous->next : list->head;
    *(op->previous ? &op->previous->next : &list->head) = op;
    *(op->next ? &op->next->previous : &list->tail) = op;
}

void sim__list_remove(struct sim_list *list, struct sim_op *op)
{
    *(op->previous ? &op->previous->next : &list->head) = op->next;
    *(op->next ? &op->next->previous : &list->tail) = op->previous;
}

// Devices.

bool sim__device_init(struct sim_device *device, const struct sim_model *model)
{
    *device = (struct sim_device){.model = model};
    device->lanes = calloc(SIM_UNITS + 2 * (size_t)model->copy_channels, sizeof *device->lanes);
    device->channels = calloc(model->channels + 1, sizeof *device->channels);
    if (!device->lanes || !device->channels) {
        sim__device_finish(device);
        return false;
    }
    struct sim_list *lanes = device->lanes;
    const bool channels = model->queues == SIM_STREAM_QUEUES && model->copy_channels > 0;
    for (size_t i = 0; i < SIM_UNITS; i++) {
        const bool copies = channels && (i == SIM_COPY_UNIT || i == SIM_DOWN_UNIT);
        device->units[i] = (struct sim_unit){.lanes = lanes,
                                             .lane_count = copies ? model->copy_channels : 1,
                                             .turn = copies ? was_issued_first : goes_first,
                                             .capacity = i == SIM_KERNEL_UNIT ? model->kernels
                                                         : i == SIM_HOST_UNIT ? SIZE_MAX
                                                                              : 1};
        lanes += device->units[i].lane_count;
    }
    return true;
}

void sim__device_finish(struct sim_device *device)
{
    free(device->lanes);
    free(device->channels);
}

// Places of an engine, which kernels take from others with a worse priority.

static bool yields_to(const struct sim_op *running, const struct sim_op *op)
{
    return running->yield_ns > 0 && running->priority > op->priority;
}

// What yields to it does not count. Nothing yields to the worst priority.
static bool has_room(const struct sim_unit *unit, const struct sim_op *op)
{
    size_t used = unit->used;
    if (used + op->places <= unit->capacity || op->priority >= 0)
        return used + op->places <= unit->capacity;
    for (const struct sim_op *other = unit->running.head; other; other = other->next)
        used -= yields_to(other, op) ? other->places : 0;
    return used + op->places <= unit->capacity;
}

// The worst priority yields first, then what started last.
static bool yields_before(const struct sim_op *a, const struct sim_op *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->start_ns != b->start_ns ? a->start_ns > b->start_ns : a->issue > b->issue;
}

// Of those that `last` yields before, or of all, the next that yields to `op`; NULL: none.
static struct sim_op *next_to_yield(const struct sim_unit *unit, const struct sim_op *op,
                                    const struct sim_op *last)
{
    struct sim_op *next = NULL;
    for (struct sim_op *other = unit->running.head; other; other = other->next)
        if (yields_to(other, op) && (!last || yields_before(last, other)) &&
            (!next || yields_before(other, next)))
            next = other;
    return next;
}

// `op`, which starts now, takes the places that it lacks from kernels that yield, which end later, rounded up.
// Returns when it has them.
static uint64_t preempt(struct sim_unit *unit, const struct sim_op *op)
{
    struct sim_op *other = NULL;
    uint64_t room_ns = UINT64_MAX;
    // What others lack already is not its own.
    const size_t left = unit->capacity > unit->used ? unit->capacity - unit->used : 0;
    size_t missing = op->places > left ? op->places - left : 0;
    while (missing > 0 && (other = next_to_yield(unit, op, other))) {
        const uint64_t whole = other->places;
        const uint64_t taken = earliest(missing, whole);
        missing -= taken;
        room_ns = earliest(room_ns, earliest(op->start_ns + other->yield_ns, other->end_ns));
        other->end_ns +=
            op->moves_ns / whole * taken + (op->moves_ns % whole * taken + whole - 1) / whole;
        sim__list_remove(&unit->running, other);
        sim__list_add(&unit->running, other, sim__ends_first);
    }
    return room_ns == UINT64_MAX ? op->start_ns : room_ns;
}

uint64_t sim__lead_ns(const struct sim_model *model, const struct sim_op *op)
{
    const uint32_t from = op->from_ns == op->ready_ns ? op->from : 0; // what made it ready
    const uint32_t own = UINT32_C(1) << sim__unit_of(model, op->kind);
    // It ran on another engine, as always if the queue is another device's.
    if (sim__has_engine(op->kind) && (op->pulls || op->follows || (from & ~own) != 0))
        return model->signal_ns;
    // A kernel, or a copy on the device, made this kernel ready.
    return op->kind == SIM_KERNEL && !op->node && (from & UINT32_C(1) << SIM_KERNEL_UNIT) != 0
               ? model->kernel_gap_ns
               : 0;
}

// Copies.

static bool is_directed(const struct sim_op *op)
{
    return op && (op->kind == SIM_H2D || op->kind == SIM_D2H);
}

static bool is_copying(const struct sim_device *device, uint32_t unit)
{
    return is_directed(device->units[unit].running.head);
}

// The latency that it has beyond that of a copy alone.
static uint64_t both_latency_ns(const struct sim_device *device, const struct sim_op *op)
{
    const struct sim_link *link = &device->model->copies[op->kind];
    if (!is_directed(op) ||
        !is_copying(device, op->kind == SIM_H2D ? SIM_DOWN_UNIT : SIM_COPY_UNIT) ||
        !link->both_latency_ns)
        return 0;
    return link->both_latency_ns - link->latency_ns;
}

// No bandwidth is 0: a model has at least 1000 bytes a second.
static void set_end(const struct sim_device *device, struct sim_op *op)
{
    const struct sim_link *link = &device->model->copies[op->kind];
    const bool both = is_directed(op) && link->both_bytes_per_s &&
                      is_copying(device, SIM_COPY_UNIT) && is_copying(device, SIM_DOWN_UNIT);
    op->end_ns = op->moves_ns;
    if (op->left_millionths == 0)
        return;
    op->bytes_per_ms = (both ? link->both_bytes_per_s : link->bytes_per_s) / 1000;
    op->end_ns += (op->left_millionths - 1) / op->bytes_per_ms + 1;
}

// The other direction began or ended.
static void change_bandwidth(struct sim_device *device, uint64_t now_ns)
{
    for (uint32_t unit = SIM_COPY_UNIT; unit <= SIM_DOWN_UNIT; unit++) {
        struct sim_op *op = device->units[unit].running.head;
        if (!is_directed(op))
            continue;
        if (now_ns > op->moves_ns) {
            const uint64_t moved = (now_ns - op->moves_ns) * op->bytes_per_ms;
            op->left_millionths -= earliest(moved, op->left_millionths);
            op->moves_ns = now_ns;
        }
        set_end(device, op);
    }
}

// Waiting, starts and ends.

// A queue of another device may have a channel that this one lacks.
void sim__wait_for_unit(struct sim_device *device, struct sim_op *op)
{
    struct sim_unit *unit = unit_of(device, op);
    sim__list_add(&unit->lanes[op->lane % unit->lane_count], op, unit->turn);
}

// The engine stays with its channel as long as that has a copy that is ready; then it takes the one whose first
// was ready first.
static uint32_t next_lane(const struct sim_unit *unit)
{
    uint32_t best = unit->lane;
    for (uint32_t i = 0; i < unit->lane_count && !unit->lanes[unit->lane].head; i++) {
        const struct sim_op *op = unit->lanes[i].head;
        const struct sim_op *first = unit->lanes[best].head;
        if (op && (!first || was_ready_first(op, first)))
            best = i;
    }
    return best;
}

// Of the unit, if that can start.
static struct sim_op *next_to_start(const struct sim_unit *unit)
{
    struct sim_op *op = unit->lanes[next_lane(unit)].head;
    return op && op->pending == 0 && has_room(unit, op) ? op : NULL;
}

struct sim_op *sim__next(const struct sim_device *devices, uint32_t count, bool ends)
{
    sim_order *before = ends ? sim__ends_first : was_ready_first;
    struct sim_op *first = NULL;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t each = 0; each < SIM_UNITS; each++) {
            const struct sim_unit *unit = &devices[i].units[each];
            struct sim_op *op = ends ? unit->running.head : next_to_start(unit);
            if (op && (!first || before(op, first)))
                first = op;
        }
    return first;
}

void sim__start(struct sim_device *device, struct sim_op *op, uint64_t now_ns)
{
    struct sim_unit *unit = unit_of(device, op);
    unit->lane = next_lane(unit);
    sim__list_remove(&unit->lanes[unit->lane], op);
    op->state = SIM_RUNNING;
    op->start_ns = now_ns;
    const uint64_t room_ns = preempt(unit, op);
    if (!op->signalled)
        op->start_ns += sim__lead_ns(device->model, op);
    op->start_ns = room_ns > op->start_ns ? room_ns : op->start_ns;
    op->moves_ns += op->start_ns + both_latency_ns(device, op);
    set_end(device, op);
    sim__list_add(&unit->running, op, sim__ends_first);
    unit->used += op->places;
    if (is_directed(op))
        change_bandwidth(device, now_ns);
}

void sim__end(struct sim_device *device, struct sim_op *op)
{
    if (op->state == SIM_SUBMITTED) { // its signal is there
        sim__list_remove(&device->units[SIM_SIGNALS_UNIT].running, op);
        return;
    }
    struct sim_unit *unit = unit_of(device, op);
    sim__list_remove(&unit->running, op);
    unit->used -= op->places;
    if (is_directed(op))
        change_bandwidth(device, op->end_ns);
}
