// See the header. The data that an operation points to is stored after its node:
// arguments first, for their alignment, then the bytes of values or the pattern.
#include "core/queue/held.h"

#include <string.h>

#include "core/queue/operation.h"
#include "core/queue/registry.h"
#include "core/support/memory.h"

#define MINIMUM_CAPACITY (16 * sizeof(struct weir_argument) + 256)

static size_t exchange_bytes(const struct weir_operation *operation)
{
    return operation->u.collective.exchange_count * sizeof(struct weir_exchange);
}

static size_t comms_bytes(const struct weir_operation *operation)
{
    return operation->flags & WEIR_OPERATION_COLLECTIVES
               ? operation->u.graph_comms.count * sizeof(struct weir_graph_comm)
               : 0;
}

static size_t bytes_needed(const struct weir_operation *operation)
{
    if (operation->kind == WEIR_OPERATION_FILL)
        return operation->u.fill.pattern_size;
    if (operation->kind == WEIR_OPERATION_FILL_2D)
        return operation->u.fill_2d.pattern_size;
    if (operation->kind == WEIR_OPERATION_NATIVE)
        return operation->u.native.argument_count * sizeof(struct weir_argument);
    if (operation->kind == WEIR_OPERATION_COLLECTIVE)
        return exchange_bytes(operation);
    if (operation->kind == WEIR_OPERATION_GRAPH)
        return comms_bytes(operation);
    if (operation->kind == WEIR_OPERATION_NOTE)
        return operation->u.note.range_count * sizeof(struct weir_note_range);
    if (operation->kind != WEIR_OPERATION_LAUNCH)
        return 0;
    size_t count = operation->u.launch.argument_count;
    size_t bytes = count * sizeof(struct weir_argument);
    for (size_t i = 0; i < count; i++)
        if (operation->u.launch.arguments[i].pointer)
            bytes += operation->u.launch.arguments[i].size;
    return bytes;
}

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

static void own_launch(struct weir_operation *copy, void *memory)
{
    size_t count = copy->u.launch.argument_count;
    struct weir_argument *arguments = memory;
    char *bytes = (char *)(arguments + count);

    if (count)
        memcpy(arguments, copy->u.launch.arguments, count * sizeof *arguments);
    for (size_t i = 0; i < count; i++) {
        if (!arguments[i].pointer)
            continue;
        memcpy(bytes, arguments[i].pointer, arguments[i].size);
        arguments[i].pointer = bytes;
        bytes += arguments[i].size;
    }
    copy->u.launch.arguments = arguments;
}

// Copies the data that an operation's copy points to into `memory`.
static void own(struct weir_operation *copy, void *memory)
{
    if (copy->kind == WEIR_OPERATION_LAUNCH)
        own_launch(copy, memory);
    if (copy->kind == WEIR_OPERATION_FILL) {
        memcpy(memory, copy->u.fill.pattern, copy->u.fill.pattern_size);
        copy->u.fill.pattern = memory;
    }
    if (copy->kind == WEIR_OPERATION_FILL_2D) {
        memcpy(memory, copy->u.fill_2d.pattern, copy->u.fill_2d.pattern_size);
        copy->u.fill_2d.pattern = memory;
    }
    if (copy->kind == WEIR_OPERATION_NATIVE && copy->u.native.argument_count) {
        const size_t bytes = copy->u.native.argument_count * sizeof(struct weir_argument);
        memcpy(memory, copy->u.native.arguments, bytes);
        copy->u.native.arguments = memory;
    }
    if (copy->kind == WEIR_OPERATION_COLLECTIVE && copy->u.collective.exchange_count) {
        memcpy(memory, copy->u.collective.exchanges, exchange_bytes(copy));
        copy->u.collective.exchanges = memory;
    }
    if (copy->kind == WEIR_OPERATION_NOTE && copy->u.note.range_count) {
        memcpy(memory, copy->u.note.ranges, bytes_needed(copy));
        copy->u.note.ranges = memory;
    }
    if (copy->kind == WEIR_OPERATION_GRAPH && comms_bytes(copy)) {
        memcpy(memory, copy->u.graph_comms.comms, comms_bytes(copy));
        copy->u.graph_comms.comms = memory;
    }
}

bool weir__held_push(struct weir__held_list *list, const struct weir_operation *operation)
{
    struct weir__held *held = take_node(list, bytes_needed(operation));
    if (!held)
        return false;
    weir__operation_take(&held->operation, operation);
    held->next = NULL;
    own(&held->operation, held + 1);
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
    struct weir_operation *clone = weir__allocate(sizeof *clone + bytes_needed(operation));
    if (!clone)
        return NULL;
    weir__operation_take(clone, operation);
    own(clone, clone + 1);
    return clone;
}
