// A launch of a graph: one submit by the host, and each node in a queue of its branch. The launch is
// complete when all nodes are.
#include <stdlib.h>

#include "plugins/sim/sim.h"

static const struct weir_graph_node *node_at(const struct weir_operation *launch, uint32_t index)
{
    return weir_graph_node_at(launch->u.graph.nodes, index);
}

// Whether all nodes have costs.
static weir_status check_costs(const struct weir_link *link, const struct weir_operation *launch)
{
    weir_status status = WEIR_OK;
    for (uint32_t i = 0; i < launch->u.graph.node_count && status == WEIR_OK; i++) {
        struct sim_work work = {0};
        status = sim_describe(link, node_at(launch, i)->operation, &work);
    }
    return status;
}

// Room for a point of each node, each dependency of one, and each branch.
static bool reserve(struct sim_virtual_queue *queue, const struct weir_operation *launch)
{
    const size_t count = launch->u.graph.node_count;
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_graph_node *node = node_at(launch, i);
        while (queue->lane_count <= node->branch)
            if (!sim_lane_add(queue))
                return false;
        most = node->dependency_count > most ? node->dependency_count : most;
    }
    most = queue->lane_count > most ? queue->lane_count : most;
    if (count + most <= queue->point_room)
        return true;
    struct sim_point *points = realloc(queue->points, (count + most) * sizeof *points);
    if (!points)
        return false;
    queue->points = points;
    queue->point_room = count + most;
    return true;
}

static weir_status place_node(const struct weir_link *link, struct sim_virtual_queue *queue,
                              const struct weir_operation *launch, uint32_t index,
                              struct sim_point before)
{
    const struct weir_graph_node *node = node_at(launch, index);
    struct sim_point *waits = queue->points + launch->u.graph.node_count;
    const enum sim_tag tag = queue->sim->graphs ? SIM_TAG_PART : SIM_TAG_TIMED;
    struct sim_work work = {.waits = waits, .tag = launch->sequence << SIM_TAG_BITS | tag};
    for (uint32_t i = 0; i < node->dependency_count; i++)
        waits[i] = queue->points[node->dependencies[i]];
    work.wait_count = node->dependency_count;
    if (work.wait_count == 0)
        waits[work.wait_count++] = before;
    const weir_status status = sim_describe(link, node->operation, &work);
    return status < 0 ? status : sim_place(queue, node->branch, &work, &queue->points[index]);
}

// Waits for the last nodes of all branches.
static weir_status place_end(struct sim_virtual_queue *queue, const struct weir_operation *launch)
{
    struct sim_point *waits = queue->points + launch->u.graph.node_count;
    struct sim_work work = {.kind = SIM_MARK,
                            .waits = waits,
                            .tag = launch->sequence << SIM_TAG_BITS | SIM_TAG_GRAPH_END};
    for (uint32_t lane = 1; lane < queue->lane_count; lane++)
        waits[work.wait_count++] = queue->last[lane];
    return sim_place_record(queue, &work);
}

weir_status sim_graph_place(const struct weir_link *link, struct sim_virtual_queue *queue,
                            const struct weir_operation *launch)
{
    const struct sim_point before = queue->last[0];
    const weir_status known = check_costs(link, launch);
    if (known < 0)
        return known;
    if (!reserve(queue, launch))
        return weir_host_no_memory(link->host, "a graph in virtual time");
    const struct sim_model *model = queue->sim->model;
    sim_spend(queue->sim,
              model->submit_graph_ns ? model->submit_graph_ns : model->submit_ns[SIM_KERNEL]);
    for (uint32_t i = 0; i < launch->u.graph.node_count; i++) {
        const weir_status status = place_node(link, queue, launch, i, before);
        if (status < 0)
            return status;
    }
    return place_end(queue, launch);
}
