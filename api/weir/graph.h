// Graphs: work that is captured once, across queues that fork and join by events,
// and launched many times for the price of about one call.
//
//     weir_capture_begin(queue);
//     ... submit to `queue`, and to queues that wait on events recorded meanwhile ...
//     weir_capture_end(queue, NULL, &graph);
//     for (...)
//         weir_queue_graph(queue, graph);
//
// While a queue captures, what is submitted to it is noted and not run. Another
// queue joins the capture when it waits on an event recorded in it, and must be
// waited for by the first queue before the capture ends. Copies, fills, launches,
// records and waits can be captured; host calls, native calls, uploads, downloads, a
// pool's allocations and frees, copies between devices and anything that waits on the
// host cannot. A captured event exists in its capture only: to wait on it outside, or
// inside on one recorded outside, is an error at the call.
//
// A launched graph is one operation of its queue: it begins when all earlier work
// of the queue has finished, and later work of the queue waits for all of it.
//
// Buffers and kernels that a graph uses may be destroyed before it; they are freed
// when it is gone. A pool takes a buffer back when no graph can use it any more.
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <weir/common.h>
#include <weir/launch.h>
#include <weir/queue.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_graph_params {
    size_t struct_size;
    const char *label;
};

// `queue` begins to capture. The capture belongs to all threads; they submit to
// its queues as ever.
//
// Errors: WEIR_ERROR_INVALID if the queue is capturing already; its first failure.
WEIR_API weir_status weir_capture_begin_at(weir_queue *queue, const char *file, int line);
#define weir_capture_begin(queue) weir_capture_begin_at(queue, __FILE__, __LINE__)

// Stores the number of the node that the last copy, fill or launch captured from
// `queue` became, for the updates below.
//
// Errors: WEIR_ERROR_INVALID outside a capture, or before the first such operation;
// WEIR_ERROR_NOT_FOUND if that one was empty and became no node.
WEIR_API weir_status weir_capture_node(weir_queue *queue, uint32_t *out_node);

// Ends the capture that began on `queue` and makes a graph of it. The queues of the
// capture work as before.
//
// Ownership: the caller's, until weir_graph_destroy(). Outlived by the device.
// Errors: WEIR_ERROR_INVALID, with its label, for a queue that joined and was not waited
// for; WEIR_ERROR_OUT_OF_MEMORY; what the driver refuses. The capture is dropped then.
// WEIR_ERROR_INVALID for a queue on which no capture began; one that it joined goes on.
WEIR_API weir_status weir_capture_end_at(weir_queue *queue, const struct weir_graph_params *params,
                                         weir_graph **out_graph, const char *file, int line);
#define weir_capture_end(queue, params, out_graph) \
    weir_capture_end_at(queue, params, out_graph, __FILE__, __LINE__)

// Drops the capture. Does nothing to a queue on which none began. Destroying a queue of
// a capture drops it too.
WEIR_API weir_status weir_capture_cancel(weir_queue *queue);

// Legal while a launch is under way. Never waits for the device.
WEIR_API void weir_graph_destroy(weir_graph **graph);

// How many nodes it has, which are numbered from 0; 0 for NULL.
WEIR_API uint32_t weir_graph_node_count(const weir_graph *graph);

// Launches the graph on any queue of its device. Launches of one graph never
// overlap each other: the next waits for the one before, also on another queue.
//
// Errors: WEIR_ERROR_INVALID on a queue of another device, or that captures; the
// queue's first failure.
WEIR_API weir_status weir_queue_graph_at(weir_queue *queue, weir_graph *graph, const char *file,
                                         int line);
#define weir_queue_graph(queue, graph) weir_queue_graph_at(queue, graph, __FILE__, __LINE__)

// Gives a node new operands, which launches that follow use; those under way keep
// the old ones. The node stays what it is: a launch keeps its kernel, a copy stays one
// between the same placements.
//
// Errors: WEIR_ERROR_INVALID for a node of another kind, naming both, and whatever the
// operation itself would refuse.
WEIR_API weir_status weir_graph_set_launch(weir_graph *graph, uint32_t node,
                                           struct weir_extent grid, struct weir_extent block,
                                           const struct weir_argument *arguments,
                                           size_t argument_count);
WEIR_API weir_status weir_graph_set_copy(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                         size_t dst_offset, weir_buffer *src, size_t src_offset,
                                         size_t size);
WEIR_API weir_status weir_graph_set_fill(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                         size_t dst_offset, size_t size, const void *pattern,
                                         size_t pattern_size);

#ifdef __cplusplus
}
#endif

#endif
