// A device of the failing library (tests/support/libopencl), with two queues, two buffers and a kernel.
#ifndef WEIR_TESTS_OPENCL_RIG_H
#define WEIR_TESTS_OPENCL_RIG_H

#include <weir/weir.h>

#include "tests/support/libopencl/control.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

#define OPENCL_RIG_LIBRARY "tests/support/libopencl/libOpenCL.so.1"
// A driver, which has few of the functions.
#define OPENCL_RIG_DRIVER "tests/support/libopencl/libnvidia-opencl.so.1"

enum {
    OPENCL_RIG_COUNT = 16, // work-items of a launch
    OPENCL_RIG_BYTES = 1024
};

struct opencl_rig {
    const struct weir_test_opencl *shim;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[2];
    weir_buffer *buffer;
    weir_buffer *other;
    weir_program *program;
    weir_kernel *iota;
};

// Opens the runtime only; `settings` are lines of [weir], and further sections. The test fails on an error.
void opencl_rig_begin(struct opencl_rig *rig, const char *settings);
void opencl_rig_open(struct opencl_rig *rig, const char *settings);
// The same where the library plays what `bits` says from the start.
void opencl_rig_open_as(struct opencl_rig *rig, unsigned bits);
void opencl_rig_close(struct opencl_rig *rig);
#define own_opencl_rig OWN(opencl_rig_close) struct opencl_rig
// Tests with a rig, `rig`.
#define OPENCL_RIG_TEST(suite, name)                    \
    WEIR_TEST_WITH(suite, name, struct opencl_rig, rig, \
                   (opencl_rig_open(rig, ""), !weir_test_has_failed()), opencl_rig_close(rig))
#define OPENCL_RIG_AS_TEST(suite, name, bits)                                \
    WEIR_TEST_WITH(suite, name, struct opencl_rig, rig,                      \
                   (opencl_rig_open_as(rig, bits), !weir_test_has_failed()), \
                   opencl_rig_close(rig))
// A kernel of the program of these parameters; NULL fails the test.
weir_kernel *opencl_rig_kernel(const struct opencl_rig *rig,
                               const struct weir_program_params *params, const char *name);
// Writes the numbers from `first` on.
void opencl_rig_launch(const struct opencl_rig *rig, weir_queue *queue, weir_buffer *buffer,
                       uint32_t first);
// Makes a launch on the first queue fail with `status`, and returns the record after it.
struct weir_event opencl_rig_fail(const struct opencl_rig *rig, int status);
// Recovers both queues, which work then.
void opencl_rig_recover(const struct opencl_rig *rig);
// Of a launch, from an offset on.
void opencl_rig_expect_numbers(weir_queue *queue, weir_buffer *buffer, size_t offset,
                               uint32_t first);
// A launch and a download.
void opencl_rig_expect_works(const struct opencl_rig *rig, weir_queue *queue, uint32_t first);

#endif
