// What the nodes of a graph consist of. A node of Weir's becomes one node of the driver's or a
// row of several; each is a part, kept for as long as the graph lives.
#ifndef WEIR_BACKENDS_CUDA_GRAPH_PARTS_H
#define WEIR_BACKENDS_CUDA_GRAPH_PARTS_H

#include "backends/cuda/cu.h"

enum cu_part_kind {
    CU_PART_COPY,
    CU_PART_SET,
    CU_PART_LAUNCH,
};

// What a node of the driver's does.
struct cu_part {
    enum cu_part_kind kind;
    union {
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS set;
        CUDA_KERNEL_NODE_PARAMS launch; // its arguments are in a block of their own
    } u;
    CUgraphNode native; // in the graph that the executable one was made of
    CUgraphNode fresh;  // in one that is being built
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
    struct cu_staging *staging; // the last of all that it had; earlier ones may be in use
    const char *file;           // of the operation
    int line;
};

// Takes the node's operation apart, into `*out_parts`.
weir_status cu_take_apart(const struct weir_link *link, struct cu_device *device,
                          struct cu_node *node, const struct weir_operation *operation,
                          struct cu_parts *out_parts);

void cu_parts_finish(const struct weir_host *host, struct cu_parts *parts);

// Frees what the node has. Within the device's context.
void cu_node_finish(struct cu_device *device, struct cu_node *node);

#endif
