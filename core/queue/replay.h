// Delivery of graphs.
//
// A backend with graph_create gets launches and updates as they come, except that an
// update after a launch that a host call holds waits for that launch: earlier launches
// keep their operands. For a backend without it, launches are replayed node by node.
//
// A graph of one branch is replayed on the queue that launches it. A graph that forks
// has an internal queue of the backend for each branch, with records and waits between
// them, so that branches overlap as on their own queues:
//
//     launching queue:  record ──────────────────────────────── wait
//     branch 0:            wait  node  record  node  wait  record
//     branch 1:                         wait  node  record
//
// A collective or a host call that no graph of the backend holds is run when all that comes before it is
// submitted: what does not come after it, on other branches, was submitted too, so that it overlaps.
//
// Launches of a graph are delivered one after another, also from several queues: the
// front end has put a wait between them. On the device the branches order them, or, with
// one branch, the record after each launch, which has the launch's number.
#ifndef WEIR_CORE_QUEUE_REPLAY_H
#define WEIR_CORE_QUEUE_REPLAY_H

#include <weir/module/module.h>

// Whether the backend has graphs, and this one can be such: it can hold all nodes.
bool weir__replay_is_native(const struct weir_link *backend, weir_device *device,
                            const struct weir_graph_setup *setup);

// The slots of the delivery's link.
weir_status weir__replay_create(const struct weir_link *link, weir_device *device,
                                weir_graph *graph, const struct weir_graph_setup *setup,
                                void **out_data);
void weir__replay_destroy(const struct weir_link *link, weir_graph *graph);
weir_status weir__replay_update(const struct weir_link *link, weir_graph *graph, uint32_t index,
                                const struct weir_graph_node *node);

// Delivers a launch to the backend.
weir_status weir__replay_launch(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation);

// Whether the backend has the graph of a launch.
bool weir__replay_is_in_backend(const struct weir_link *link,
                                const struct weir_operation *operation);

// Whether a launch is held, so that the worker waits for other ranks in its collectives, or runs its host
// calls.
bool weir__replay_waits(const struct weir_link *link, const struct weir_operation *operation);

// Called when a launch is held; and when a held launch was delivered or dropped.
void weir__replay_hold(const struct weir_link *link, const struct weir_operation *operation);
void weir__replay_unhold(const struct weir_link *link, const struct weir_operation *operation);

#endif
