// What is ready for an engine, or waits for it: in one order, or, for copies with copy channels, in one
// for each channel. The engine stays with its channel as long as that has a copy that is ready. And the
// places of an engine, which kernels take from others with a worse priority.
#include <stdlib.h>

#include "plugins/sim/engine_parts.h"

static bool was_issued_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->issue < b->issue;
}

bool sim__unit_init(struct sim_unit *unit, uint32_t lane_count)
{
    unit->waiting.before = sim__goes_first;
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

void sim__unit_finish(struct sim_unit *unit)
{
    free((void *)unit->waiting.ops);
    free((void *)unit->running.ops);
    for (uint32_t i = 0; i < unit->lane_count; i++)
        free((void *)unit->lanes[i].ops);
    free(unit->lanes);
}

// A queue of another device may have a channel that this one lacks.
static struct sim_heap *waiting_of(struct sim_unit *unit, uint32_t lane)
{
    return unit->lane_count ? &unit->lanes[lane % unit->lane_count] : &unit->waiting;
}

bool sim__unit_reserve(struct sim_unit *unit, uint32_t lane)
{
    return sim__heap_reserve(waiting_of(unit, lane), unit->members + 1) &&
           sim__heap_reserve(&unit->running, unit->members + 1);
}

void sim__unit_add(struct sim_unit *unit, uint32_t lane, struct sim_op *op)
{
    sim__heap_push(waiting_of(unit, lane), op);
}

bool sim__was_ready_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->ready_ns != b->ready_ns ? a->ready_ns < b->ready_ns : a->issue < b->issue;
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
        if (op && (!first || sim__was_ready_first(op, first)))
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

struct sim_op *sim__unit_next(const struct sim_unit *unit)
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

uint64_t sim__unit_preempt(struct sim_unit *unit, const struct sim_op *op)
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

struct sim_op *sim__unit_take(struct sim_unit *unit)
{
    if (!unit->lane_count)
        return sim__heap_pop(&unit->waiting);
    unit->lane = lane_of(unit);
    return sim__heap_pop(&unit->lanes[unit->lane]);
}
