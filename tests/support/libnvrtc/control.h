// Controls of the libnvrtc.so.13 of this folder, which stands for NVRTC. It compiles every text but
// one with the word `not_declared`, to an image for the tests' libcuda in which the text's kernels
// are found by their names.
//
// In the process that loaded the library, a test may look up `weir_test_nvrtc` in it.
#ifndef WEIR_TESTS_SUPPORT_LIBNVRTC_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBNVRTC_CONTROL_H

#include <stddef.h>

#define WEIR_TEST_NVRTC_SYMBOL "weir_test_nvrtc"

struct weir_test_nvrtc {
    // Makes the n-th call of function `name` from now on, from 1, fail. NULL: nothing fails.
    void (*fail)(const char *name, long n);
    long (*struck)(void);
    // The name of function `index`; NULL past the last.
    const char *(*name)(size_t index);
    long (*calls)(const char *name);
    long (*live)(void); // programs
    // The newest architecture that is known; 90.
    void (*set_newest)(int architecture);
    // The options of the last compilation, each followed by a space.
    const char *(*options)(void);
};

#endif
