// Graphs. A launch is one operation of its queue. Inside the graph each branch is an actor of its
// own, so its nodes are compared with each other like operations of queues: once, and again after
// an update.
#include <stdio.h>
#include <stdlib.h>

#include "plugins/check/parts.h"

struct check_graph {
    bool examined;
    uint32_t index; // of the actor of the last launch
    uint64_t count; // 0: none
};

static struct check_graph *graph_of(const struct weir_link *link, const weir_graph *object)
{
    return weir_graph_data(link, object);
}

weir_status check_graph_create(const struct weir_link *link, weir_device *device,
                               weir_graph *object, const struct weir_graph_setup *setup,
                               void **out_data)
{
    (void)device;
    (void)object;
    (void)setup;
    *out_data = calloc(1, sizeof(struct check_graph));
    return *out_data ? WEIR_OK : weir_host_no_memory(link->host, "the order of a graph");
}

void check_graph_destroy(const struct weir_link *link, weir_graph *object)
{
    check_note_change(check_of(link));
    free(graph_of(link, object));
}

weir_status check_graph_update(const struct weir_link *link, weir_graph *object, uint32_t index,
                               const struct weir_graph_node *node)
{
    struct check *check = check_of(link);
    check_lock(check);
    graph_of(link, object)->examined = false;
    check_unlock(check);
    check_note_change(check);
    return link->next->ops->graph_update(link->next, object, index, node);
}

// Examining.

struct branch {
    struct check_actor actor;
    char label[32];
};

// The actors of a graph that is examined.
struct probe {
    struct check_actors actors;
    struct branch *branches;
    uint64_t *counts; // of each node, on its branch
};

void check_graph_touch(struct check *check, struct check_memory *memory)
{
    if (memory->probed)
        return;
    memory->probed = true;
    memory->next_probed = check->probed;
    check->probed = memory;
}

static void clear_probed(struct check *check)
{
    while (check->probed) {
        struct check_memory *memory = check->probed;
        check->probed = memory->next_probed;
        memory->probed = false;
        check_history_clear(&check->uses, &memory->probe);
    }
}

static uint32_t count_branches(const struct weir_operation *operation)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < operation->u.graph.node_count; i++) {
        const struct weir_graph_node *node = weir_graph_node_at(operation->u.graph.nodes, i);
        count = node->branch >= count ? node->branch + 1 : count;
    }
    return count;
}

// What it lacks memory for stays NULL or is not added.
static bool begin_probe(struct probe *probe, const struct weir_operation *operation,
                        uint32_t branch_count)
{
    check_actors_init(&probe->actors);
    probe->branches = calloc(branch_count, sizeof *probe->branches);
    probe->counts = calloc(operation->u.graph.node_count, sizeof *probe->counts);
    bool made = probe->branches && probe->counts;
    for (uint32_t i = 0; made && i < branch_count; i++) {
        struct branch *branch = &probe->branches[i];
        snprintf(branch->label, sizeof branch->label, "branch %u", (unsigned)i);
        branch->actor.label = branch->label;
        made = check_actor_add(&probe->actors, &branch->actor);
    }
    return made;
}

static void end_probe(struct probe *probe, uint32_t branch_count)
{
    for (uint32_t i = 0; probe->branches && i < branch_count; i++)
        if (probe->branches[i].actor.counts)
            check_actor_remove(&probe->actors, &probe->branches[i].actor);
    check_actors_finish(&probe->actors);
    free(probe->branches);
    free(probe->counts);
}

// Every node may be one that another depends on.
static void examine_node(struct check *check, struct probe *probe,
                         const struct weir_operation *launch, uint32_t index)
{
    const struct weir_graph_node *node = weir_graph_node_at(launch->u.graph.nodes, index);
    struct check_actor *actor = &probe->branches[node->branch].actor;
    const uint64_t count = ++actor->last;
    probe->counts[index] = count;
    for (uint32_t i = 0; i < node->dependency_count; i++) {
        const uint32_t other = node->dependencies[i];
        const uint32_t branch = weir_graph_node_at(launch->u.graph.nodes, other)->branch;
        check_actor_learn(&probe->actors, actor, count, &probe->branches[branch].actor,
                          probe->counts[other]);
    }
    struct check_user user = {
        .actors = &probe->actors,
        .actor = actor,
        .count = count,
        .probe = true,
    };
    check_origin_set(&user.origin, check, node->operation);
    if (!(node->operation->flags & WEIR_OPERATION_EMPTY))
        check_use_operation(check, &user, node->operation);
    actor->recorded = count;
}

// A graph of one branch is a sequence.
static void examine(struct check *check, const struct weir_operation *operation)
{
    struct probe probe;
    const uint32_t branch_count = count_branches(operation);
    if (branch_count < 2)
        return;
    if (begin_probe(&probe, operation, branch_count))
        for (uint32_t i = 0; i < operation->u.graph.node_count; i++)
            examine_node(check, &probe, operation, i);
    clear_probed(check);
    end_probe(&probe, branch_count);
}

// Launches of one graph come one after the other, whatever their queues are.
void check_graph_launch(struct check *check, struct check_user *user,
                        const struct weir_operation *operation)
{
    struct check_graph *graph = graph_of(check->link, operation->u.graph.graph);
    if (!graph->examined)
        examine(check, operation);
    graph->examined = true;
    if (graph->count && check->actors.floor[graph->index] < graph->count) {
        struct check_actor *other = check->actors.all[graph->index];
        if (check->needless)
            check_hint_need_all(check, (struct check_queue *)(void *)other);
        check_actor_learn(&check->actors, user->actor, user->count, other, graph->count);
    }
    graph->index = user->actor->index;
    graph->count = user->count;
}
