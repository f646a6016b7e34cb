// What an operation points to is stored after it: arguments first, for their alignment, then
// the bytes of values or the pattern. The nodes of a graph are not copied: the front end and the
// backends have their own, and what comes after gets none.
#include <stdlib.h>
#include <string.h>

#include "plugins/perturb/perturb.h"

static size_t bytes_of_arguments(const struct weir_argument *arguments, size_t count)
{
    size_t bytes = count * sizeof *arguments;
    for (size_t i = 0; i < count; i++)
        if (arguments[i].pointer)
            bytes += arguments[i].size;
    return bytes;
}

static size_t bytes_needed(const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_FILL:
        return operation->u.fill.pattern_size;
    case WEIR_OPERATION_FILL_2D:
        return operation->u.fill_2d.pattern_size;
    case WEIR_OPERATION_LAUNCH:
        return bytes_of_arguments(operation->u.launch.arguments,
                                  operation->u.launch.argument_count);
    case WEIR_OPERATION_NATIVE:
        return bytes_of_arguments(operation->u.native.arguments,
                                  operation->u.native.argument_count);
    case WEIR_OPERATION_COLLECTIVE:
        return operation->u.collective.exchange_count * sizeof(struct weir_exchange);
    case WEIR_OPERATION_GRAPH:
        return operation->flags & WEIR_OPERATION_COLLECTIVES
                   ? operation->u.graph_comms.count * sizeof(struct weir_graph_comm)
                   : 0;
    default:
        return 0;
    }
}

static const struct weir_argument *own_arguments(void *memory, const struct weir_argument *from,
                                                 size_t count)
{
    struct weir_argument *arguments = memory;
    char *bytes = (char *)(arguments + count);
    if (count)
        memcpy(arguments, from, count * sizeof *arguments);
    for (size_t i = 0; i < count; i++) {
        if (!arguments[i].pointer)
            continue;
        memcpy(bytes, arguments[i].pointer, arguments[i].size);
        arguments[i].pointer = bytes;
        bytes += arguments[i].size;
    }
    return arguments;
}

static const void *own_pattern(void *memory, const void *pattern, size_t size)
{
    return memcpy(memory, pattern, size);
}

static void own(struct weir_operation *copy, void *memory)
{
    switch (copy->kind) {
    case WEIR_OPERATION_FILL:
        copy->u.fill.pattern = own_pattern(memory, copy->u.fill.pattern, copy->u.fill.pattern_size);
        break;
    case WEIR_OPERATION_FILL_2D:
        copy->u.fill_2d.pattern =
            own_pattern(memory, copy->u.fill_2d.pattern, copy->u.fill_2d.pattern_size);
        break;
    case WEIR_OPERATION_LAUNCH:
        copy->u.launch.arguments =
            own_arguments(memory, copy->u.launch.arguments, copy->u.launch.argument_count);
        break;
    case WEIR_OPERATION_NATIVE:
        copy->u.native.arguments =
            own_arguments(memory, copy->u.native.arguments, copy->u.native.argument_count);
        break;
    case WEIR_OPERATION_COLLECTIVE:
        if (copy->u.collective.exchange_count)
            copy->u.collective.exchanges =
                memcpy(memory, copy->u.collective.exchanges, bytes_needed(copy));
        break;
    case WEIR_OPERATION_GRAPH:
        copy->u.graph.nodes = NULL;
        copy->u.graph.node_count = 0;
        if (copy->flags & WEIR_OPERATION_COLLECTIVES)
            copy->u.graph_comms.comms =
                memcpy(memory, copy->u.graph_comms.comms, bytes_needed(copy));
        break;
    default:
        break;
    }
}

static bool has_host_call(const struct weir_operation *launch)
{
    for (uint32_t i = 0; i < launch->u.graph.node_count; i++)
        if (weir_graph_node_at(launch->u.graph.nodes, i)->operation->kind ==
            WEIR_OPERATION_HOST_CALL)
            return true;
    return false;
}

static bool is_of_host(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_HOST_CALL ||
           operation->kind == WEIR_OPERATION_COLLECTIVE ||
           operation->flags & WEIR_OPERATION_COLLECTIVES ||
           (operation->kind == WEIR_OPERATION_GRAPH && has_host_call(operation));
}

struct perturb_operation *perturb_operation_create(const struct weir_operation *operation)
{
    struct perturb_operation *copy = calloc(1, sizeof *copy + bytes_needed(operation));
    if (!copy)
        return NULL;
    copy->is_of_host = is_of_host(operation);
    own(weir_operation_copy(&copy->room, operation), copy + 1);
    return copy;
}

void perturb_operation_destroy(struct perturb_operation *operation)
{
    if (operation && operation->producer)
        perturb_release(operation->producer);
    free(operation);
}

uint64_t perturb_operation_end(const struct perturb_operation *operation)
{
    const struct weir_operation *own = perturb_of_user(operation);
    return own->flags & WEIR_OPERATION_PART ? own->sequence - 1 : own->sequence;
}

bool perturb_operation_is_empty(const struct weir_operation *operation)
{
    return operation->flags & WEIR_OPERATION_EMPTY ||
           operation->kind == WEIR_OPERATION_POOL_ALLOCATE ||
           operation->kind == WEIR_OPERATION_POOL_FREE;
}
