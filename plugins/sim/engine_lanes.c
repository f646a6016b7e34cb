// What is ready for an engine, or waits for it: in one order, or, for copies with copy channels, in one
// for each channel. The engine stays with its channel as long as that has a copy that is ready.
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

bool sim__unit_reserve(struct sim_unit *unit, uint32_t lane)
{
    struct sim_heap *waiting = unit->lane_count ? &unit->lanes[lane] : &unit->waiting;
    return sim__heap_reserve(waiting, unit->members + 1) &&
           sim__heap_reserve(&unit->running, unit->members + 1);
}

void sim__unit_add(struct sim_unit *unit, uint32_t lane, struct sim_op *op)
{
    sim__heap_push(unit->lane_count ? &unit->lanes[lane] : &unit->waiting, op);
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

struct sim_op *sim__unit_next(const struct sim_unit *unit)
{
    struct sim_op *op = unit->lane_count ? sim__heap_top(&unit->lanes[lane_of(unit)])
                                         : sim__heap_top(&unit->waiting);
    return op && op->pending == 0 && op->places <= unit->capacity - unit->used ? op : NULL;
}

struct sim_op *sim__unit_take(struct sim_unit *unit)
{
    if (!unit->lane_count)
        return sim__heap_pop(&unit->waiting);
    unit->lane = lane_of(unit);
    return sim__heap_pop(&unit->lanes[unit->lane]);
}
