// Graphs: work that is captured once, across queues that fork and join by events, and
// launched many times at about the cost of one call.
//
//     weir_capture_begin(queue);
//     ... submit to `queue`, and to queues that wait for events recorded in the capture ...
//     weir_capture_end(queue, NULL, &graph);
//     for (...)
//         weir_queue_graph(queue, graph);
//
// While a queue captures, operations submitted to it are added to the capture and do not
// run. Another queue joins the capture when it waits for an event recorded in it; the
// first queue must wait for that queue before the capture ends. Copies, fills, launches,
// collectives, host calls, native calls, records and waits can be captured; host calls that always
// run, uploads, downloads, pool allocations and frees, copies between devices and calls that wait on
// the host cannot.
// An event recorded in a capture is valid in that capture only: it is an error at the
// call to wait for it outside, or to wait inside for an event that was recorded outside.
//
// A graph launch is one operation of its queue: it begins when all earlier work of the
// queue has finished, and later work of the queue waits for the whole graph.
//
// Each launch runs a captured host call once, when what it comes after has finished, on a thread of
// the library's or of the driver's: the function must not call Weir, except weir_error_set(), nor the
// driver, and while it runs host calls of other graphs may wait. If it fails, the launch fails, and
// later host calls of the launch do not run. What a captured native call (<weir/interop.h>) submits
// becomes part of the graph: where the backend has graphs the function is called once, by
// weir_capture_end(), weir_graph_clone() and weir_graph_set_native(), with a native queue that
// captures, and elsewhere by each launch, with the queue that the work goes to. What `user` of both
// points to must live until the graph is destroyed or has got another one, and the launches before
// have finished.
//
// Buffers, kernels and communicators that a graph uses may be destroyed before the graph; they
// are freed with it. A pool's buffer that a graph uses can be freed to its pool only after
// the graph is gone.
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <weir/common.h>
#include <weir/launch.h>
#include <weir/queue.h>
#include <weir/status.h>

struct weir_graph_params {
    size_t struct_size;
    // Copied. A runtime keeps different labels of graphs and communicators up to 1 MiB; further ones are "...".
    const char *label;
};

// Begins a capture on `queue`. It is not bound to a thread: all threads submit to its
// queues as usual.
//
// Errors: WEIR_ERROR_INVALID if the queue is capturing already; the queue's first
// failure.
WEIR_CALL weir_status weir_capture_begin_at(weir_queue *queue, const char *file, int line);
#define weir_capture_begin(queue) weir_capture_begin_at(queue, __FILE__, __LINE__)

// Stores the number of the node that was made of the last operation captured from `queue`, records
// and waits not counted, for the updates below.
//
// Errors: WEIR_ERROR_INVALID outside a capture, or before the first such operation;
// WEIR_ERROR_NOT_FOUND if that operation was empty, so that no node was made of it.
WEIR_CALL weir_status weir_capture_node(weir_queue *queue, uint32_t *out_node);

// Ends the capture that began on `queue` and makes a graph of it. The queues of the
// capture work as before.
//
// Errors: WEIR_ERROR_INVALID, with the label, if a queue joined and was not waited for;
// WEIR_ERROR_OUT_OF_MEMORY; errors of the driver and of native calls. The capture is dropped after
// these.
// WEIR_ERROR_INVALID if the capture did not begin on `queue`; a capture that `queue` has
// joined continues.
WEIR_CALL weir_status weir_capture_end_at(weir_queue *queue, const struct weir_graph_params *params,
                                          weir_graph **out_graph, const char *file, int line);
#define weir_capture_end(...) weir_capture_end_at(__VA_ARGS__, __FILE__, __LINE__)

// Drops the capture that began on `queue`; does nothing if none did. Destroying any
// queue of a capture drops the capture too.
WEIR_CALL weir_status weir_capture_cancel(weir_queue *queue);

// Destroys the graph. Legal while a launch is running. Never waits for the device.
WEIR_API void weir_graph_destroy_at(weir_graph **graph, const char *file, int line);
#define weir_graph_destroy(graph) weir_graph_destroy_at(graph, __FILE__, __LINE__)

// The number of nodes, which are numbered from 0; 0 for NULL.
WEIR_API uint32_t weir_graph_node_count(const weir_graph *graph);

// Launches the graph on any queue of its device. Launches of one graph never overlap
// each other: each waits for the one before it, also on another queue.
//
// Errors: WEIR_ERROR_INVALID for a queue of another device, or one that is capturing;
// the queue's first failure.
WEIR_CALL weir_status weir_queue_graph_at(weir_queue *queue, weir_graph *graph, const char *file,
                                          int line);
#define weir_queue_graph(queue, graph) weir_queue_graph_at(queue, graph, __FILE__, __LINE__)

// Makes a graph of the same nodes with the operands that they have now. Updates of one change nothing in
// the other, and launches of the two may overlap.
//
// Ownership: as weir_capture_end(). Params: as there; NULL, or no label: that of `graph`.
// Errors: WEIR_ERROR_OUT_OF_MEMORY; errors of the driver and of native calls.
WEIR_CALL weir_status weir_graph_clone_at(weir_graph *graph, const struct weir_graph_params *params,
                                          weir_graph **out_graph, const char *file, int line);
#define weir_graph_clone(...) weir_graph_clone_at(__VA_ARGS__, __FILE__, __LINE__)

// Whether later launches run the node, which they do unless it was disabled. What depends on a disabled
// node still comes after all that it depends on. Updates give it operands for when it is enabled again.
//
// Errors: WEIR_ERROR_INVALID for a node that is not a copy, a fill or a launch;
// WEIR_ERROR_UNSUPPORTED if the backend's module is of an older version; errors of the driver.
WEIR_CALL weir_status weir_graph_set_enabled_at(weir_graph *graph, uint32_t node, bool enabled,
                                                const char *file, int line);
#define weir_graph_set_enabled(...) weir_graph_set_enabled_at(__VA_ARGS__, __FILE__, __LINE__)

// Gives a node new operands. Later launches of the graph use them; earlier launches keep
// the old ones. The kind of node cannot change: a launch keeps its kernel, and a copy
// stays a copy between the same placements.
//
// Errors: WEIR_ERROR_INVALID for a node of another kind, naming both kinds; the errors
// of the operation itself.
WEIR_CALL weir_status weir_graph_set_launch_at(weir_graph *graph, uint32_t node,
                                               struct weir_extent grid, struct weir_extent block,
                                               const struct weir_argument *arguments,
                                               size_t argument_count, const char *file, int line);
#define weir_graph_set_launch(...) weir_graph_set_launch_at(__VA_ARGS__, __FILE__, __LINE__)
WEIR_CALL weir_status weir_graph_set_copy_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                             size_t dst_offset, weir_buffer *src, size_t src_offset,
                                             size_t size, const char *file, int line);
#define weir_graph_set_copy(...) weir_graph_set_copy_at(__VA_ARGS__, __FILE__, __LINE__)
WEIR_CALL weir_status weir_graph_set_fill_at(weir_graph *graph, uint32_t node, weir_buffer *dst,
                                             size_t dst_offset, size_t size, const void *pattern,
                                             size_t pattern_size, const char *file, int line);
#define weir_graph_set_fill(...) weir_graph_set_fill_at(__VA_ARGS__, __FILE__, __LINE__)

// The same for rows and slices. Where the driver changes no such node in place, its graph is built
// again.
WEIR_CALL weir_status weir_graph_set_copy_2d_at(weir_graph *graph, uint32_t node,
                                                struct weir_plane dst, struct weir_plane src,
                                                size_t width, size_t height, const char *file,
                                                int line);
#define weir_graph_set_copy_2d(...) weir_graph_set_copy_2d_at(__VA_ARGS__, __FILE__, __LINE__)
WEIR_CALL weir_status weir_graph_set_copy_3d_at(weir_graph *graph, uint32_t node,
                                                struct weir_volume dst, struct weir_volume src,
                                                size_t width, size_t height, size_t depth,
                                                const char *file, int line);
#define weir_graph_set_copy_3d(...) weir_graph_set_copy_3d_at(__VA_ARGS__, __FILE__, __LINE__)
WEIR_CALL weir_status weir_graph_set_fill_2d_at(weir_graph *graph, uint32_t node,
                                                struct weir_plane dst, size_t width, size_t height,
                                                const void *pattern, size_t pattern_size,
                                                const char *file, int line);
#define weir_graph_set_fill_2d(...) weir_graph_set_fill_2d_at(__VA_ARGS__, __FILE__, __LINE__)

// Gives a host call another function and `user`. Earlier launches that have not come to it call the old ones;
// what `user` of an old one points to must live until these have finished. <weir/interop.h> has the same for
// native calls.
//
// Errors: WEIR_ERROR_INVALID for a node of another kind; WEIR_ERROR_OUT_OF_MEMORY.
WEIR_CALL weir_status weir_graph_set_host_call_at(weir_graph *graph, uint32_t node,
                                                  weir_host_function function, void *user,
                                                  const char *file, int line);
#define weir_graph_set_host_call(...) weir_graph_set_host_call_at(__VA_ARGS__, __FILE__, __LINE__)

#endif
