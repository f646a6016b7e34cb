// Shared by the tests of plugins: a chain before the backend that the environment names, with its section of the
// configuration; what its plugins log; and the file of a trace.
#ifndef WEIR_TESTS_PLUGINS_RIG_H
#define WEIR_TESTS_PLUGINS_RIG_H

#include <weir/weir.h>

#include "report/trace.h"
#include "tests/support/gate.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

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
    char path[512];      // of the trace
    struct weir_trace *trace;
    int calls; // of rig_count_call()
    struct gate gate;
};

// Returns from a function of a status with the call's, if that is an error.
#define RIG_TRY(call)                      \
    do {                                   \
        const weir_status rig_try_ = call; \
        if (rig_try_ < 0)                  \
            return rig_try_;               \
    } while (0)

// Opens only the runtime, with further lines of the configuration, and keeps what its plugins log.
weir_status rig_open(const char *plugins, const char *lines, weir_runtime **out_runtime);

// That this is refused, with these words in the error's text and in its remedy.
void rig_expect_refused(const char *plugins, const char *lines, weir_status status,
                        const char *message, const char *remedy);

// What the plugins have logged since the last rig_open(), a line each; and how often a text is in it.
const char *rig_logged(void);
size_t rig_count_logged(const char *text);

// Creates everything but the program and its kernel, or these, in the order of the struct up to the first error.
weir_status rig_create(struct rig *rig);
weir_status rig_create_kernel(struct rig *rig);

// All of this. False fails the test.
bool rig_begin(struct rig *rig, const char *plugins, const char *lines);

// A test with `rig`, a pointer.
#define RIG_TEST(suite, name, plugins, lines) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, rig_begin(rig, plugins, lines), rig_finish(rig))

// Ends what there is, if anything; and the same, which returns what weir_close() does.
void rig_finish(struct rig *rig);
#define own_rig OWN(rig_finish) struct rig
weir_status rig_close(struct rig *rig);

// The section [trace]: the file, and further lines. One is kept.
const char *rig_trace(const char *path, const char *more);

// With the plugins, of which one is trace, more lines in [trace], and its file: a name for weir_test_path(), or a whole path.
// The close ends the trace.
bool rig_start(struct rig *rig, const char *file, const char *more, const char *plugins);

// A test with `rig`, a pointer, and the plugin trace.
#define TRACE_TEST(suite, name, file, more)                                           \
    WEIR_TEST_WITH(suite, name, struct rig, rig, rig_start(rig, file, more, "trace"), \
                   rig_finish(rig))

// On error the test fails and NULL is returned.
#define own_trace OWN(weir_trace_destroy) struct weir_trace *
struct weir_trace *rig_read(const char *path);
// Closes the rig and reads what it wrote. On error the test fails, and the trace is empty. It is the rig's.
const struct weir_trace *rig_end(struct rig *rig);

// How many spans have that name.
size_t rig_count_spans(const struct weir_trace *trace, const char *name);

// A host call that increments an int.
weir_status rig_count_call(void *user);

// A host call that fails.
weir_status rig_fail_call(void *user);

// A macro, because a launch records its caller's line.
#define RIG_SPIN(queue, rig)                                                      \
    weir_queue_launch(queue, (rig)->kernel, weir_dim(2, 1, 1), weir_dim(1, 1, 1), \
                      weir_out((rig)->memory, 0, 64), 7u, UINT64_C(1000))

#endif
