// Shared by the tests of plugins: a chain before the backend that the environment names, with its section of the
// configuration; and the file of a trace.
#ifndef WEIR_TESTS_PLUGINS_RIG_H
#define WEIR_TESTS_PLUGINS_RIG_H

#include <pthread.h>

#include <weir/weir.h>

#include "report/trace.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

// A pointer to a trace that is destroyed at the end of its scope.
#define own_trace OWN(weir_trace_destroy) struct weir_trace *

enum {
    RIG_BYTES = 1 << 18 // of each buffer
};

#define GUARD_NS (UINT64_C(60) * 1000000000u)

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *up;
    weir_queue *down;
    weir_buffer *frame;  // HOST
    weir_buffer *memory; // DEVICE
    weir_program *program;
    weir_kernel *kernel; // `spin`
};

// A path in a folder of this process. Eight are kept.
const char *rig_path(const char *name);

// Opens only the runtime, with further lines of the configuration.
weir_status rig_open(const char *plugins, const char *lines, weir_runtime **out_runtime);

// Creates everything but the program and its kernel, or these, in the order of the struct up to the first error.
weir_status rig_create(struct rig *rig);
weir_status rig_create_kernel(struct rig *rig);

// All of this. False fails the test.
bool rig_begin(struct rig *rig, const char *plugins, const char *lines);

void rig_finish(struct rig *rig);
// The same, and returns what weir_close() does.
weir_status rig_close(struct rig *rig);

// The section [trace]: the file, and further lines. One is kept.
const char *rig_trace(const char *path, const char *more);

// With one link of the plugin trace, which writes to `path`, or with `plugins` and more lines in [trace]. The close ends
// the trace.
bool rig_start(struct rig *rig, const char *path);
bool rig_start_with(struct rig *rig, const char *path, const char *more, const char *plugins);

// On error the test fails and NULL is returned.
struct weir_trace *rig_read(const char *path);
// Closes the rig and reads what it wrote there.
struct weir_trace *rig_end(struct rig *rig, const char *path);

// A host call that increments an int.
weir_status rig_count_call(void *user);

// A host call that holds its queue until the gate, its `user`, is opened; and one that opens it.
struct rig_gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};
#define RIG_GATE_CLOSED                                            \
    {                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false \
    }
weir_status rig_pass_gate(void *user);
weir_status rig_open_gate(void *user);

// A macro, because a launch records its caller's line.
#define RIG_SPIN(queue, rig)                                                      \
    weir_queue_launch(queue, (rig)->kernel, weir_dim(2, 1, 1), weir_dim(1, 1, 1), \
                      weir_out((rig)->memory, 0, 64), 7u, UINT64_C(1000))

#endif
