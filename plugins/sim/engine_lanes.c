// What waits for an engine: in one order, or, for copies with copy channels, in one for each channel.
// There only the first of a channel can start, and the engine stays with its channel as long as that has
// one that can.
#include <stdlib.h>

#include "plugins/sim/engine_parts.h"

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
        unit->lanes[i].end = &unit->lanes[i].first;
    return unit->lanes;
}

void sim__unit_finish(struct sim_unit *unit)
{
    free((void *)unit->waiting.ops);
    free((void *)unit->running.ops);
    free(unit->lanes);
}

void sim__unit_add(struct sim_unit *unit, uint32_t lane, struct sim_op *op)
{
    struct sim_lane *to = &unit->lanes[lane];
    op->next = NULL;
    *to->end = op;
    to->end = &op->next;
}

bool sim__was_ready_first(const struct sim_op *a, const struct sim_op *b)
{
    return a->ready_ns != b->ready_ns ? a->ready_ns < b->ready_ns : a->issue < b->issue;
}

static struct sim_op *ready_of(const struct sim_lane *lane)
{
    return lane->first && lane->first->pending == 0 ? lane->first : NULL;
}

// Of all channels the one whose first was ready first, if the one that it is with has none.
static uint32_t lane_of(const struct sim_unit *unit)
{
    uint32_t best = unit->lane;
    if (ready_of(&unit->lanes[best]))
        return best;
    for (uint32_t i = 0; i < unit->lane_count; i++) {
        const struct sim_op *op = ready_of(&unit->lanes[i]);
        const struct sim_op *first = ready_of(&unit->lanes[best]);
        if (op && (!first || sim__was_ready_first(op, first)))
            best = i;
    }
    return best;
}

struct sim_op *sim__unit_next(const struct sim_unit *unit)
{
    struct sim_op *op =
        unit->lane_count ? ready_of(&unit->lanes[lane_of(unit)]) : sim__heap_top(&unit->waiting);
    return op && op->pending == 0 && op->places <= unit->capacity - unit->used ? op : NULL;
}

struct sim_op *sim__unit_take(struct sim_unit *unit)
{
    if (!unit->lane_count)
        return sim__heap_pop(&unit->waiting);
    unit->lane = lane_of(unit);
    struct sim_lane *lane = &unit->lanes[unit->lane];
    struct sim_op *op = lane->first;
    lane->first = op->next;
    if (!lane->first)
        lane->end = &lane->first;
    return op;
}
