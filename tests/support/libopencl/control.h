// Controls of the libOpenCL.so.1 of this folder, for a test in the same
// process.
#ifndef WEIR_TESTS_SUPPORT_LIBOPENCL_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBOPENCL_CONTROL_H

#include <stddef.h>

#define WEIR_TEST_OPENCL_SYMBOL "weir_test_opencl"

// What other drivers do, for `play`.
enum weir_test_opencl_play {
    // PoCL 6: all memory is shared, but fills take only memory of clSVMAlloc().
    WEIR_TEST_OPENCL_SYSTEM_SVM = 1,
    WEIR_TEST_OPENCL_NO_TIMES = 2,   // rusticl 22.3: the resolution of times is 0
    WEIR_TEST_OPENCL_SMALL_TOLD = 4, // rusticl 22.3: every kernel tells a limit of 32 work-items
    WEIR_TEST_OPENCL_NO_BUFFERS = 8, // Oclgrind with 4 GiB: a largest buffer of 0 bytes
    WEIR_TEST_OPENCL_NO_BLOCKS = 16, // blocks of 0 work-items
    // PoCL 7: no launch uses a buffer of which a sub-buffer is gone.
    WEIR_TEST_OPENCL_SUB_BUFFERS = 32,
    // Intel: memory is associated with an object that is refused.
    WEIR_TEST_OPENCL_INNER_OBJECT = 64,
    // PoCL 5: wait_group_events() is declared, but not defined.
    WEIR_TEST_OPENCL_NO_GROUP_WAITS = 128,
    WEIR_TEST_OPENCL_ANOTHER_NAME = 256, // a platform that is not known by its name
    // NVIDIA: its extension, which says that all commands after a failed launch fail.
    WEIR_TEST_OPENCL_ERRORS_STAY = 512,
    // A command that waits for a failed launch ends at once, while commands before it run.
    WEIR_TEST_OPENCL_EARLY_ERRORS = 1024,
    WEIR_TEST_OPENCL_UNTIMED_MARKERS = 2048, // NVIDIA: the time of a marker with a wait list is 0
    WEIR_TEST_OPENCL_NEW_NAMES = 4096,       // PoCL 6: its devices are called cpu and cpu-minimal
    WEIR_TEST_OPENCL_WIDE_BASE = 8192,       // NVIDIA: sub-buffers begin at multiples of 512 bytes
    WEIR_TEST_OPENCL_NO_C_2 = 16384          // PoCL 6: OpenCL C 2.0 is refused
};

struct weir_test_opencl {
    // Makes the N-th call of function `name` from now on, from 1, fail once
    // with a code; 0 means CL_OUT_OF_RESOURCES. The call is not forwarded,
    // unless it releases something. NULL: nothing fails.
    void (*fail)(const char *name, long n, int code);
    // How often the failure happened since `fail`.
    long (*struck)(void);
    // Calls of a function since the library was loaded, refused ones included.
    long (*calls)(const char *name);
    // Name of function `index` of those that the backend may call; NULL past
    // the last.
    const char *(*name)(size_t index);
    // Devices that are queried from now on report that they have no shared
    // virtual memory (1), or their real capabilities (0).
    void (*hide_svm)(int hidden);
    // Makes the N-th launch from now on, from 1, not run: its event ends with a negative status, and the
    // commands after it succeed, except those that have the event in their wait lists, or one of such
    // commands. 0: no launch, and one that failed is forgotten.
    void (*fail_launch)(long n, int status);
    // The same for another command, by the name of its function.
    void (*fail_command)(const char *name, long n, int status);
    // Devices that are queried from now on do what these bits of weir_test_opencl_play say.
    void (*play)(unsigned bits);
    // Hands a message to the context that was created last, without the user's pointer, as Oclgrind does.
    void (*notice)(const char *text);
    // Whether a launch used a buffer that SUB_BUFFERS forbids. Such a launch is refused.
    int (*misused)(void);
};

// The driver that driver.c is.

#define WEIR_TEST_OPENCL_DRIVER_SYMBOL "weir_test_opencl_driver"

struct weir_test_opencl_driver {
    const struct weir_test_opencl *calls;
    // Name of function `index` of those that the CUDA backend calls; NULL past the last.
    const char *(*name)(size_t index);
    long (*live)(void); // contexts, programs and kernels
    // From now on: the device's compute capability, 90; the driver's version, "580.0"; and 1 for PTX that uses a
    // pointer to local memory in a way that the driver's does not.
    void (*set)(unsigned architecture, const char *version, int is_strange);
    // The text of the program that was created last, and the options of the last build.
    const char *(*text)(void);
    const char *(*options)(void);
};

#endif
