// A launch of a graph that forks becomes its nodes, in an order that its edges allow, on the queue
// that launches it; then a record with the number of the launch, as the front end replays a graph
// of one branch. So an edge that is missing in a graph shows too. Its nodes are those of the
// launch: an update comes later. One with collectives stays whole, since those get their numbers from it; and
// once a program has updated a host call or a native call, so do those with such calls, since their functions
// get from it which launch calls.
#include <stdlib.h>

#include "plugins/perturb/perturb.h"

enum {
    NODES_MAX = 1024, // the choice takes a time that grows with their square
};

// The choice of an order.
struct order {
    const struct weir_operation *launch;
    uint32_t count;
    uint32_t waits[NODES_MAX]; // dependencies that are not chosen yet; UINT32_MAX: is chosen
    uint64_t branches;         // gives each branch its priority; 0: none have one
};

static const struct weir_graph_node *node_at(const struct order *order, uint32_t index)
{
    return weir_graph_node_at(order->launch->u.graph.nodes, index);
}

static bool is_call(const struct weir_graph_node *node)
{
    return node->operation->kind == WEIR_OPERATION_HOST_CALL ||
           node->operation->kind == WEIR_OPERATION_NATIVE;
}

bool perturb_takes_apart(const struct perturb *perturb, const struct weir_operation *launch)
{
    const uint32_t count = launch->u.graph.node_count;
    bool forks = false;
    if (launch->flags & WEIR_OPERATION_COLLECTIVES || count > NODES_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_graph_node *node = weir_graph_node_at(launch->u.graph.nodes, i);
        if (perturb->calls_change && is_call(node))
            return false;
        forks = forks || node->branch != weir_graph_node_at(launch->u.graph.nodes, 0)->branch;
    }
    return forks;
}

static void begin(struct perturb *perturb, const struct weir_operation *launch, struct order *order)
{
    order->launch = launch;
    order->count = launch->u.graph.node_count;
    for (uint32_t i = 0; i < order->count; i++)
        order->waits[i] = node_at(order, i)->dependency_count;
    const uint64_t number = perturb_random(perturb);
    order->branches = number % 2 ? number : 0;
}

// Which of the nodes that may run is next: the one with the largest number.
static uint64_t weigh(struct perturb *perturb, const struct order *order, uint32_t index)
{
    const struct weir_graph_node *node = node_at(order, index);
    const uint64_t early = NODES_MAX - index;
    switch (perturb->mode) {
    case PERTURB_LATE:
        return index + UINT64_C(1);
    case PERTURB_PAIR:
        return perturb_pair_side(perturb, node->operation) == 1 ? early : NODES_MAX + early;
    case PERTURB_RANDOM:
        break;
    }
    if (!order->branches)
        return perturb_random(perturb) | 1;
    return ((order->branches + node->branch) * UINT64_C(0x9e3779b97f4a7c15) & ~UINT64_C(0xffff)) +
           early;
}

static uint32_t choose(struct perturb *perturb, struct order *order)
{
    uint64_t most = 0;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        const uint64_t weight = order->waits[i] == 0 ? weigh(perturb, order, i) : 0;
        if (weight > most) {
            most = weight;
            chosen = i;
        }
    }
    order->waits[chosen] = UINT32_MAX;
    for (uint32_t i = chosen + 1; i < order->count; i++)
        for (uint32_t d = 0; d < node_at(order, i)->dependency_count; d++)
            order->waits[i] -= node_at(order, i)->dependencies[d] == chosen;
    return chosen;
}

// Appends a copy to the list that ends at `*end`.
static bool add(struct perturb_operation ***end, const struct weir_operation *operation,
                uint64_t sequence, uint32_t flags)
{
    struct perturb_operation *copy = perturb_operation_create(operation);
    if (!copy)
        return false;
    copy->room.operation.sequence = sequence;
    copy->room.operation.flags |= flags;
    **end = copy;
    *end = &copy->next;
    return true;
}

static bool add_end(struct perturb_operation ***end, const struct weir_operation *launch)
{
    const struct weir_operation record = {
        .struct_size = sizeof record,
        .kind = WEIR_OPERATION_RECORD,
        .file = launch->file,
        .line = launch->line,
    };
    return add(end, &record, launch->sequence, WEIR_OPERATION_INTERNAL);
}

struct perturb_operation *perturb_graph_copy(struct perturb *perturb,
                                             const struct weir_operation *launch)
{
    struct order *order = calloc(1, sizeof *order);
    struct perturb_operation *first = NULL;
    struct perturb_operation **end = &first;
    bool ok = order != NULL;
    if (order)
        begin(perturb, launch, order);
    for (uint32_t i = 0; ok && i < order->count; i++)
        ok = add(&end, node_at(order, choose(perturb, order))->operation, launch->sequence,
                 WEIR_OPERATION_PART);
    ok = ok && add_end(&end, launch);
    free(order);
    while (!ok && first) {
        struct perturb_operation *next = first->next;
        perturb_operation_destroy(first);
        first = next;
    }
    return first;
}
