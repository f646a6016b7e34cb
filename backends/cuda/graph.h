// The parts of a graph's nodes. A node of Weir becomes one node of the driver or several in
// sequence; each of these is a part, which is kept as long as the graph exists.
#ifndef WEIR_BACKENDS_CUDA_GRAPH_H
#define WEIR_BACKENDS_CUDA_GRAPH_H

#include "backends/cuda/cu.h"

enum cu_part_kind {
    CU_PART_COPY,
    CU_PART_SET,
    CU_PART_LAUNCH,
    CU_PART_COLLECTIVE, // what NCCL makes of it
    CU_PART_CHILD,      // what a native call submitted
    CU_PART_CALL,       // a host call
};

struct cu_part_call {
    weir_host_function function;
    void *user;
};

// The kinds of the driver's nodes.
struct cu_part {
    enum cu_part_kind kind;
    union {
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_KERNEL_NODE_PARAMS launch; // the arguments are in a separate block
        struct weir_operation *collective;
        CUgraph child;
        struct cu_part_call *call; // an executable graph that runs may use it too
    } u;
    bool cooperative;   // LAUNCH
    CUgraphNode native; // in the graph that the executable graph was made from
    CUgraphNode fresh;  // in the graph that is being built
};

struct cu_parts {
    struct cu_part *parts;
    size_t count;
    size_t capacity;
};

struct cu_staging {
    struct cu_staging *next;
    CUdeviceptr address;
    size_t size;
};

struct cu_node {
    struct cu_parts parts;
    uint32_t *dependencies;
    uint32_t dependency_count;
    struct cu_staging *staging; // the newest; earlier ones may be in use
    const char *file;           // of the operation
    int line;
    bool disabled;
    bool leaf; // no other one depends on it
};

// A graph of the driver's, and the executable one that was made of it.
struct cu_native_graph {
    CUgraph graph;
    CUgraphExec executable;
};

struct cu_graph {
    const struct weir_link *link;
    struct cu_device *device;
    const char *name; // the device's
    bool collectives;
    bool stale; // it is to be captured before the next launch
    struct cu_native_graph native;
    uint32_t node_count;
    uint32_t most_dependencies;
    struct cu_node *nodes;
    CUstream stream;  // of the last launch; NULL: none
    bool must_follow; // the next launch waits for `followed`, unless it is on that stream
    CUevent followed;
};

// graph_build.c. Within the device's context.

// Makes the driver's graph of the nodes' parts, whose `fresh` becomes their nodes there.
weir_status cu_graph_build(struct cu_graph *graph, struct cu_native_graph *native);
void cu_graph_drop(const struct cu_graph *graph, struct cu_native_graph *native);
// The graph takes ownership of the new one.
void cu_graph_adopt(struct cu_graph *graph, const struct cu_native_graph *native);
weir_status cu_graph_refuse(const struct cu_graph *graph, const struct cu_node *node,
                            const char *call, CUresult code);

// graph_calls.c. Within the device's context.

// Calls the function of a native call, and makes a graph of what it submits.
weir_status cu_capture_native(struct cu_device *device, const struct weir_operation *operation,
                              CUgraph *out_graph);
// Adds a CHILD or a CALL.
CUresult cu_add_call(struct cu_device *device, CUgraph graph, struct cu_part *part,
                     const CUgraphNode *dependencies, size_t count, const char **out_call);

// nccl_graph.c: the capture of a graph with collectives. Within the device's context.

struct cu_capture {
    const struct weir_link *link;
    struct cu_device *device;
    CUstream stream;
    CUgraph graph; // while it is captured, nodes can be added to it
};

weir_status cu_capture_begin(struct cu_capture *capture);
// Has NCCL add its nodes after the dependencies; `*out_node` comes after all of them.
weir_status cu_capture_collective(const struct cu_capture *capture,
                                  const struct weir_operation *operation, CUgraphNode *dependencies,
                                  size_t count, CUgraphNode *out_node);
// `leaves` are the nodes that no other one comes after. After any failure the graph is gone.
weir_status cu_capture_end(struct cu_capture *capture, CUgraphNode *leaves, size_t count);
void cu_capture_cancel(struct cu_capture *capture);

// Splits the node's operation into `*out_parts`.
weir_status cu_take_apart(const struct weir_link *link, struct cu_device *device,
                          struct cu_node *node, const struct weir_operation *operation,
                          struct cu_parts *out_parts);

// Within the device's context.
void cu_parts_finish(const struct cu_device *device, struct cu_parts *parts);

// Frees the node's parts. Within the device's context.
void cu_node_finish(struct cu_device *device, struct cu_node *node);

#endif
