// A runtime, a device and buffers for a pattern's tests on a real chain: null by
// default, or what WEIR_BACKEND names.
#ifndef WEIR_TESTS_PATTERNS_RIG_H
#define WEIR_TESTS_PATTERNS_RIG_H

#include <weir/weir.h>

#include "tests/support/test.h"

// One at a time.
struct rig {
    weir_runtime *runtime;
    weir_device *device;
};

extern struct rig rig;

weir_status rig_open(void);

// With lines of a configuration: INI text, in which [pipeline] may stand.
weir_status rig_open_with(const char *config);

// Closes it; fails the test if a queue or buffer of the device is left.
void rig_close(void);

weir_status rig_buffer(size_t size, weir_placement placement, weir_buffer **out_buffer);
weir_status rig_queue(const char *label, weir_queue **out_queue);

// Writes words `first`, `first` + 1 … to a HOST buffer, from its word `at` on.
void rig_write_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first);

// The number of these words of a HOST buffer that are not `first`, `first` + 1
// ….
size_t rig_wrong_words(weir_buffer *buffer, size_t at, size_t count, uint32_t first);

// A host function: takes from 0 to 400 µs, by `user`.
weir_status rig_dawdle(void *user);

void rig_sleep_ns(long duration_ns);

#endif
