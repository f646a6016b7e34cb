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

// A time without work. Nothing is placed for none.
static weir_status place_pause(struct sim_virtual_queue *queue, const struct weir_operation *launch,
                               uint64_t ns, size_t wait_count)
{
    struct sim_point point;
    struct sim_work work = {.kind = SIM_PAUSE,
                            .duration_ns = ns,
                            .waits = queue->points + launch->u.graph.node_count,
                            .wait_count = wait_count,
                            .tag = launch->sequence << SIM_TAG_BITS | SIM_TAG_OTHER};
    return ns ? sim_place(queue, 0, &work, &point) : WEIR_OK;
}

// A backend without graphs times the nodes.
static enum sim_tag tag_of(const struct sim *sim, const struct weir_operation *node)
{
    if (node->flags & WEIR_OPERATION_EMPTY)
        return SIM_TAG_OTHER;
    if (sim->graphs)
        return SIM_TAG_PART;
    return node->kind == WEIR_OPERATION_HOST_CALL ? SIM_TAG_OTHER : SIM_TAG_TIMED;
}

static weir_status place_node(const struct weir_link *link, struct sim_virtual_queue *queue,
                              const struct weir_operation *launch, uint32_t index,
                              struct sim_point before)
{
    const struct weir_graph_node *node = node_at(launch, index);
    struct sim_point *waits = queue->points + launch->u.graph.node_count;
    const enum sim_tag tag = tag_of(queue->sim, node->operation);
    struct sim_work work = {.waits = waits, .tag = launch->sequence << SIM_TAG_BITS | tag};
    for (uint32_t i = 0; i < node->dependency_count; i++)
        waits[i] = queue->points[node->dependencies[i]];
    work.wait_count = node->dependency_count;
    work.node = true;
    work.first = work.wait_count == 0;
    if (work.first)
        waits[work.wait_count++] = before;
    const weir_status status = sim_describe(link, node->operation, &work);
    return status < 0 ? status : sim_place(queue, node->branch, &work, &queue->points[index]);
}

// Waits for the last nodes of all branches.
static weir_status place_end(struct sim_virtual_queue *queue, const struct weir_operation *launch,
                             uint32_t branches)
{
    struct sim_point *waits = queue->points + launch->u.graph.node_count;
    struct sim_work work = {.kind = SIM_MARK,
                            .tag = launch->sequence << SIM_TAG_BITS | SIM_TAG_GRAPH_END};
    for (uint32_t lane = 1; lane < branches; lane++)
        waits[lane - 1] = queue->last[lane];
    const uint64_t join_ns = branches > 1 ? queue->sim->model->graph_ns : 0;
    const weir_status status = place_pause(queue, launch, join_ns, branches - 1);
    if (status < 0)
        return status;
    work.waits = waits;
    work.wait_count = branches - 1;
    return sim_place_record(queue, &work);
}

static uint32_t branches_of(const struct weir_operation *launch)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < launch->u.graph.node_count; i++)
        last = node_at(launch, i)->branch > last ? node_at(launch, i)->branch : last;
    return last + 1;
}

weir_status sim_graph_place(const struct weir_link *link, struct sim_virtual_queue *queue,
                            const struct weir_operation *launch)
{
    const struct sim_model *model = queue->sim->model;
    const uint32_t nodes = launch->u.graph.node_count;
    const weir_status known = check_costs(link, launch);
    if (known < 0)
        return known;
    if (!reserve(queue, launch))
        return weir_host_no_memory(link->host, "a graph in virtual time");
    sim_submit_for(queue, model->submit_graph_ns ? model->submit_graph_ns
                                                 : model->submit_ns[SIM_KERNEL]);
    weir_status status = place_pause(queue, launch, nodes > 1 ? model->graph_ns : 0, 0);
    const struct sim_point before = queue->last[0];
    for (uint32_t i = 0; i < nodes && status == WEIR_OK; i++)
        status = place_node(link, queue, launch, i, before);
    return status == WEIR_OK ? place_end(queue, launch, branches_of(launch)) : status;
}
