// Graphs, and the parts of their nodes. A node of Weir becomes one node of the driver or several in
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

struct cu_call {
    weir_host_function function;
    void *user;
};

// The kinds of the driver's nodes.
struct cu_part {
    struct cu_part *next;
    enum cu_part_kind kind;
    union {
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_KERNEL_NODE_PARAMS launch; // the arguments are in a separate block
        struct weir_operation *collective;
        CUgraph child;              // NULL: a note, which does nothing
        const struct cu_call *call; // the node's, as an executable graph that runs may use it too
    } u;
    bool cooperative;   // LAUNCH
    CUgraphNode native; // in the graph that the executable graph was made from
    CUgraphNode fresh;  // in the graph that is being built
};

struct cu_staging {
    struct cu_staging *next;
    CUdeviceptr address;
    size_t size;
};

struct cu_node {
    struct cu_part *parts; // at least one
    uint32_t *dependencies;
    uint32_t dependency_count;
    struct cu_staging *staging; // the newest; earlier ones may be in use
    struct cu_call call;        // of a host call, which is never updated
    const char *file;           // of the operation
    int line;
    bool disabled;
};

// A graph of the driver's, and the executable one that was made of it.
struct cu_native_graph {
    CUgraph graph;
    CUgraphExec executable;
};

struct cu_graph {
    const struct weir_link *link;
    struct cu_device *device;
    bool collectives;
    bool stale; // it is to be captured before the next launch
    struct cu_native_graph native;
    uint32_t node_count;
    struct cu_node *nodes;
    uint64_t last_queue; // of the last launch, by its id; 0: none
    bool rebuilt;        // since then
};

// A stream that is captured.
struct cu_capture {
    struct cu_device *device;
    const struct weir_operation *call; // the native call that is captured; NULL: collectives
    CUstream stream;
    CUgraph graph; // while it is captured, nodes can be added to it
};

// nodes.c

// Collects the parts of a node.
struct cu_builder {
    struct cu_device *device;
    struct cu_node *node;
    struct cu_part **end; // the place for the next one
};

// Where there is no room, what the part owns goes with it.
weir_status cu_add_part(struct cu_builder *builder, const struct cu_part *part);

weir_status cu_capture_begin(struct cu_capture *capture);
// Stores the graph, and the nodes after which the stream continues.
void cu_capture_look(const struct cu_capture *capture, struct cu_trial *trial, CUgraph *graph,
                     const CUgraphNode **nodes, size_t *count);
// The stream continues after these nodes.
weir_status cu_capture_continue(const struct cu_capture *capture, CUgraphNode *nodes, size_t count);
// `status` is that of what was captured. After any failure the graph is gone.
weir_status cu_capture_end(struct cu_capture *capture, weir_status status);
weir_status cu_captured(const struct cu_capture *capture, const struct cu_trial *trial);

// Splits the node's operation into `*out_parts`.
weir_status cu_take_apart(const struct weir_link *link, struct cu_device *device,
                          struct cu_node *node, const struct weir_operation *operation,
                          struct cu_part **out_parts);

// Within the device's context.
void cu_parts_release(const struct cu_device *device, struct cu_part *parts);

#endif
