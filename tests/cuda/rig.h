// The CUDA backend on the fake libcuda, for the tests of this folder.
#ifndef WEIR_TESTS_CUDA_RIG_H
#define WEIR_TESTS_CUDA_RIG_H

#include <weir/weir.h>

#include "tests/support/libcuda/control.h"
#include "tests/support/libcuda/image.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

// Every wait ends after this, so that a hang is a failure.
#define GUARD_NS (UINT64_C(60) * 1000000000u)

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
};

// The controls of the fake; opens it if needed. On error the test fails and NULL
// is returned.
const struct weir_test_cuda *rig_fake(void);

// Opens the backend with `section` in [cuda]; the library is the fake unless the
// section names another.
weir_status rig_open_runtime(const char *section, weir_runtime **out_runtime);

// Opens runtime, device and one queue. On error the test fails and false is
// returned.
bool rig_start(struct rig *rig);
bool rig_start_with(struct rig *rig, const char *section);
// Closes them, and expects that no native object is left.
void rig_finish(struct rig *rig);
// A test with a rig, `rig`.
#define RIG_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, rig_start(rig), rig_finish(rig))

weir_queue *rig_queue(struct rig *rig, bool timing);
weir_queue *rig_queue_around(struct rig *rig, void *stream);
weir_buffer *rig_buffer(struct rig *rig, size_t size, weir_placement placement);
weir_buffer *rig_wrap(struct rig *rig, void *pointer, size_t size);
// How many calls of the driver there were.
long rig_calls(void);
// The bytes of a HOST buffer.
unsigned char *rig_bytes(weir_buffer *buffer);

// The conformance kernels with images, such as weir_test_image(), that the fake
// takes, so that the tests need no CUDA toolkit.
struct weir_bundle rig_bundle(const struct weir_image *images, uint32_t count);
weir_program *rig_program(struct rig *rig);
weir_kernel *rig_kernel(weir_program *program, const char *name);
// A kernel of rig_program().
weir_kernel *rig_load(struct rig *rig, const char *name);

#endif
