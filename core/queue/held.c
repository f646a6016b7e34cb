// See the header. The data that an operation points to is stored after its node.
#include "core/queue/held.h"

#include <string.h>

#include "core/queue/operation.h"
#include "core/queue/registry.h"
#include "core/support/memory.h"

#define MINIMUM_CAPACITY (16 * sizeof(struct weir_argument) + 256)

static struct weir__held *take_node(struct weir__held_list *list, size_t needed)
{
    for (struct weir__held **at = &list->spare; *at; at = &(*at)->next) {
        struct weir__held *held = *at;
        if (held->capacity < needed)
            continue;
        *at = held->next;
        return held;
    }
    size_t capacity = needed > MINIMUM_CAPACITY ? needed : MINIMUM_CAPACITY;
    struct weir__held *held = weir__allocate(sizeof *held + capacity);
    if (held)
        held->capacity = capacity;
    return held;
}

bool weir__held_push(struct weir__held_list *list, const struct weir_operation *operation)
{
    struct weir__held *held = take_node(list, weir_operation_bytes(operation));
    if (!held)
        return false;
    weir__operation_take(&held->operation, operation);
    held->next = NULL;
    weir_operation_own(&held->operation, held + 1);
    // The caller has the producer pinned, so this finds it.
    if (operation->kind == WEIR_OPERATION_WAIT)
        held->operation.u.wait.producer = weir__registry_pin(operation->u.wait.event.queue);
    if (list->last)
        list->last->next = held;
    else
        list->first = held;
    list->last = held;
    return true;
}

struct weir__held *weir__held_pop(struct weir__held_list *list)
{
    struct weir__held *held = list->first;
    if (held) {
        list->first = held->next;
        if (!list->first)
            list->last = NULL;
    }
    return held;
}

void weir__held_recycle(struct weir__held_list *list, struct weir__held *held)
{
    held->next = list->spare;
    list->spare = held;
}

void weir__held_finish(struct weir__held_list *list)
{
    for (struct weir__held *held = list->spare; held;) {
        struct weir__held *next = held->next;
        weir__release(held);
        held = next;
    }
    *list = (struct weir__held_list){0};
}

struct weir_operation *weir__operation_clone(const struct weir_operation *operation)
{
    struct weir_operation *clone = weir__allocate(sizeof *clone + weir_operation_bytes(operation));
    if (!clone)
        return NULL;
    weir__operation_take(clone, operation);
    weir_operation_own(clone, clone + 1);
    return clone;
}
