// Random programs of the public API on random GPUs, and the same programs as steps of program.h: what
// docs/sim.md says of submits, waits and graphs, written a second time. Nothing is shared with the plugin.
#ifndef WEIR_TESTS_PLUGINS_SIM_CALLS_H
#define WEIR_TESTS_PLUGINS_SIM_CALLS_H

#include "tests/plugins/sim/program.h"
#include "tests/plugins/trace_rig.h"

#define CALLS_FILE "calls" // of all lines

enum {
    CALLS_STREAMS = 40,
    CALLS_GRAPHS = 3,
    CALLS_NODES = 8,
    CALLS_BRANCHES = 3,
    CALLS_LINES = 128,
    CALLS_DEVICES = 2,
};

// An operation, in a graph or not.
struct calls_work {
    enum sim_kind kind; // SIM_D2D: a copy or a fill
    bool fills;
    bool pulls;
    uint64_t length;
    uint32_t blocks; // of a kernel
};

struct calls_node {
    struct calls_work work;
    uint32_t branch;
    uint32_t after; // all nodes that come before it, as bits
    uint32_t needs; // those of them that none of the others come after
};

struct calls_graph {
    weir_graph *object;
    uint32_t device;
    struct calls_node nodes[CALLS_NODES];
    uint32_t node_count;
    uint32_t branch_count;
    int stream; // of the launch before; -1: none
    int end;    // the step that completes it
};

struct calls_stream {
    weir_queue *object;
    uint32_t device;
    uint32_t queues[CALLS_BRANCHES]; // of the program: its own, and one for each branch
    uint32_t queue_count;
    int last[CALLS_BRANCHES];   // steps; -1: none
    int covered[CALLS_STREAMS]; // the step of each other one after which it comes by a wait
};

// What the host takes.
struct calls_costs {
    uint64_t kernel_ns, copy_ns, mark_ns, graph_ns, branch_ns, wait_ns;
    uint64_t pause_ns; // of a graph
};

struct calls {
    // Called before and after each operation that is no record or wait, if they are set: `line` is its line.
    // What they submit is no step of the program.
    void (*before)(const struct calls *calls, const struct calls_stream *stream, int line);
    void (*after)(const struct calls *calls, const struct calls_stream *stream, int line);
    struct rig rig;
    weir_device *device[CALLS_DEVICES];
    weir_kernel *kernel[CALLS_DEVICES];
    weir_program *other_program;
    weir_buffer *host[CALLS_DEVICES];
    weir_buffer *memory[CALLS_DEVICES];
    struct sim_model model;
    struct calls_costs costs;
    uint32_t threads; // of a multiprocessor, each of which is one of the model's places
    struct calls_stream streams[CALLS_STREAMS];
    uint32_t stream_count;
    struct calls_graph graphs[CALLS_GRAPHS];
    bool waits;       // of the host; else graphs are launched in any queue
    uint64_t host_ns; // until the next submit
    int host_wait;    // the step that the host waits for before it; -1: none
    struct program program;
    int line;                       // of the next operation
    int step_of[CALLS_LINES];       // each line's, or of a launch the one before its first node
    uint32_t graph_of[CALLS_LINES]; // of a launch 1 and the graph's number, else 0
};

// Opens, for the `before` and `after` that are set, a chain with `plugins`, which has `sim`, with a GPU that the seed chooses. False fails the test.
bool calls_start(struct calls *calls, uint64_t seed, const char *trace, const char *plugins);
// Submits that many operations, and waits for all.
void calls_run(struct calls *calls, int operations);
void calls_finish(struct calls *calls);

#endif
