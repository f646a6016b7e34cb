// The tests that the suite excuses. Both lists should stay short.
#ifndef WEIR_TESTS_CONFORMANCE_LISTS_H
#define WEIR_TESTS_CONFORMANCE_LISTS_H

#include <stddef.h>

// One test on one backend. `device` is part of the device's name; NULL: any.
struct conform_entry {
    const char *backend;
    const char *device;
    const char *test; // "Suite.Name"
    const char *reason;
};

// Permanent: the device cannot. No row of the memory model may be here for
// PoCL, NVIDIA's OpenCL or CUDA.
extern const struct conform_entry conform_unsupported[];

// Temporary: a known defect. The test runs in a separate process; if it passes,
// that is a failure, and the entry must be removed.
extern const struct conform_entry conform_expected_failures[];

// The entry of a list, which ends with a NULL test, that fits; or NULL.
const struct conform_entry *conform_find(const struct conform_entry *list, const char *backend,
                                         const char *device, const char *test);

#endif
