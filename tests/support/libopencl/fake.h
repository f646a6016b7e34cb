// Shared by the files of the tests' libOpenCL: see control.h, and libopencl.c for what it is.
#ifndef WEIR_TESTS_SUPPORT_LIBOPENCL_FAKE_H
#define WEIR_TESTS_SUPPORT_LIBOPENCL_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "backends/clc/symbols.h"
#include "tests/support/libopencl/control.h"

// A driver hides its functions.
#ifdef FAKE_DRIVER
#define EXPORT __attribute__((visibility("hidden")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

// What is exported, by its declarations.
#define DECLARE(since, name) EXPORT __typeof__(name) name;
OCL_SYMBOLS(DECLARE)
#undef DECLARE

// libopencl.c

EXPORT extern const struct weir_test_opencl weir_test_opencl;
extern struct ocl_symbols fake_real;
extern atomic_long fake_live; // contexts, programs and kernels, where none is retained
// The backend uses no user events and shares none of its own.
extern cl_event (*fake_create_user_event)(cl_context, cl_int *);
extern cl_int (*fake_set_user_event_status)(cl_event, cl_int);
extern bool fake_withholds;
extern unsigned fake_played; // bits of weir_test_opencl_play

static inline bool fake_plays(enum weir_test_opencl_play bit)
{
    return (fake_played & bit) != 0;
}

// Counts a call. CL_SUCCESS: it is to be made.
cl_int fake_admit(const char *name);

// How functions begin that return an error, and those that return an object and store one.
#define ADMIT_AS(name)                            \
    do {                                          \
        const cl_int admitted = fake_admit(name); \
        if (admitted != CL_SUCCESS)               \
            return admitted;                      \
    } while (0)
#define ADMIT() ADMIT_AS(__func__)
#define ADMIT_CREATE()                                \
    do {                                              \
        const cl_int admitted = fake_admit(__func__); \
        if (error)                                    \
            *error = admitted;                        \
        if (admitted != CL_SUCCESS)                   \
            return NULL;                              \
    } while (0)

// calls_queue.c

void fake_fail_launch(long n, int status);
void fake_fail_command(const char *name, long n, int status);

extern bool fake_misused;

#endif
