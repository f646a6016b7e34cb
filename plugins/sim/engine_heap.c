// The operations of an engine: those that wait, by their turn, and those that run, by their end.
#include <stdlib.h>

#include "plugins/sim/engine_parts.h"

bool sim__goes_first(const struct sim_op *a, const struct sim_op *b)
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

bool sim__heap_reserve(struct sim_heap *heap, size_t count)
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
