// The test's own work on native queues: fills, through the driver that the backend
// uses, which is opened here a second time.
#ifndef WEIR_TESTS_CONFORMANCE_NATIVE_H
#define WEIR_TESTS_CONFORMANCE_NATIVE_H

#include "tests/conformance/suite.h"

// Ends the test as skipped if there are no native handles.
#define CONFORM_NEEDS_NATIVE(f)                                \
    do {                                                       \
        if (!(f)->limits->native)                              \
            CONFORM_SKIP("this device has no native handles"); \
    } while (0)

// The argument of a native call: fill `count` words at `first` of a buffer.
struct native_fill {
    struct weir_native_buffer buffer;
    size_t first;
    size_t count;
    uint32_t value;
    int calls; // how often it ran
};

struct native_fill native_fill_of(weir_buffer *buffer, size_t first, size_t count, uint32_t value);

// A weir_native_function; fails when the driver refuses.
weir_status native_fill(const struct weir_native_queue *native, void *user);

// The test's own command queue or stream in the device's context, in order and without
// profiling on OpenCL; and its own memory. NULL or 0 if the driver refuses.
void *native_create_queue(weir_device *device, bool out_of_order);
// Waits for all work of the queue, Weir's and the test's.
void native_finish_queue(weir_device *device, void *queue);
void native_destroy_queue(weir_device *device, void *queue);
uint64_t native_create_memory(weir_device *device, size_t size, bool read_only);
void native_destroy_memory(weir_device *device, uint64_t memory);

#endif
