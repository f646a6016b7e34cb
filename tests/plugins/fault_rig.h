// Shared by the tests of the plugin `fault`: a chain with it before the backend that the
// environment names, and a fixed run of operations.
#ifndef WEIR_TESTS_PLUGINS_FAULT_RIG_H
#define WEIR_TESTS_PLUGINS_FAULT_RIG_H

#include <weir/weir.h>

#include "tests/support/test.h"

enum {
    RIG_WORDS = 512,    // of each buffer
    RIG_RESULTS = 1024, // where the kernel writes, a multiple of any alignment
};

// What creation is numbered, in the order of rig_create().
enum rig_creation {
    RIG_DEVICE = 1,
    RIG_UP,
    RIG_DOWN,
    RIG_FRAME,
    RIG_MEMORY,
    RIG_PROGRAM,
    RIG_KERNEL,
    RIG_GRAPH,
};

// What operations are numbered, in the order of rig_submit().
enum rig_operation {
    RIG_COPY_IN = 1,
    RIG_RECORD,
    RIG_WAIT,
    RIG_LAUNCH,
    RIG_FILL,
    RIG_CALL,
    RIG_LAUNCH_GRAPH,
    RIG_COPY_OUT,
    RIG_LAST,
    RIG_OPERATIONS = RIG_LAST,
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *up;
    weir_queue *down;
    weir_buffer *frame;  // HOST
    weir_buffer *memory; // DEVICE
    weir_program *program;
    weir_kernel *kernel;      // `spin`, of which 'memory' gets what nothing reads
    weir_graph *graph;        // fills bytes 8 to 12 with 9
    struct weir_event copied; // after COPY_IN
    struct weir_event last;
    int calls; // of the host call
};

// Lines of [fault]. One text is kept.
const char *rig_section(const char *fault, int at, const char *more);

// Opens the runtime with lines of [fault].
weir_status rig_open(struct rig *rig, const char *section);
// Creates everything else; stops at the first error and returns it.
weir_status rig_create(struct rig *rig);
// Both; false fails the test.
bool rig_start(struct rig *rig, const char *section);
void rig_finish(struct rig *rig);

// A test whose body has `rig`, a pointer.
#define FAULT_TEST(suite, name, section) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, rig_start(rig, section), rig_finish(rig))

// Submits the operations; stops at the first error and returns it.
weir_status rig_submit(struct rig *rig);
// The number of the operation that rig_submit() reached last.
int rig_reached(void);

// Checks the results of a run without a fault.
void rig_expect_results(const struct rig *rig);

// The log of this plugin since rig_open(), one line after the other.
const char *rig_log(void);

#endif
