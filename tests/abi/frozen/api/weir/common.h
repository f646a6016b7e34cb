// What every public header of Weir shares: the version, the export mark, the
// opaque types and the few open ones that appear in many signatures.
//
// Conventions of the whole API:
//   - Functions that can fail return `weir_status` (<weir/status.h>).
//   - Outputs come last, are named `out_*`, and are set to NULL or zero first.
//   - `params` structures start with `struct_size`; zero elsewhere means default.
//     Write `= {.struct_size = sizeof params}`, so that nothing is left unset.
//   - Objects are safe to use from several threads unless their header says
//     otherwise. A call on a NULL object is an error, `destroy(NULL)` is not. For a
//     NULL object a getter returns NULL, 0 or "".
//   - Programs, modules and libraries of different versions work together, because every
//     structure that may grow is handed over with its size: see "Sizes" below.
//   - After fork() every call in the child returns WEIR_ERROR_FORKED, except those of
//     <weir/report.h>, which need no runtime; destroy functions do nothing.
#ifndef WEIR_COMMON_H
#define WEIR_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define WEIR_API
#define WEIR_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

// One loaded chain of modules: <weir/runtime.h>.
typedef struct weir_runtime weir_runtime;
// One opened device: <weir/device.h>.
typedef struct weir_device weir_device;
// One in-order stream of work: <weir/queue.h>.
typedef struct weir_queue weir_queue;
// Memory on the device, or pinned on the host: <weir/buffer.h>.
typedef struct weir_buffer weir_buffer;
// Loaded device code, and one entry point of it: <weir/program.h>.
typedef struct weir_program weir_program;
typedef struct weir_kernel weir_kernel;
// Work captured once and launched many times: <weir/graph.h>.
typedef struct weir_graph weir_graph;
// Memory handed out and taken back in the order of queues: <weir/pool.h>.
typedef struct weir_pool weir_pool;

// Sizes. A structure grows at its end alone, below the line "above: VERSION", and whoever
// allocates one says how large it is:
//   - `params` and others that begin with `struct_size`: sizeof, set by whoever allocates it.
//     Of params, a field that the program's headers do not have is zero to the library; one
//     that the library does not know must be zero, else the call is refused.
//   - What the library fills for a program: the function is a macro that adds the size.
//   - What the library hands out by pointer can be read, and copied, as the program's
//     headers declare it: a field that the library does not know is zero there.
//   - Of anything else that begins with `struct_size`, such as what a bundle holds or a native
//     function is given, WEIR_HAS() tells whether a field is there that was appended.
// A structure marked "closed" never changes.

// Whether `*pointer`, which begins with `struct_size`, is large enough to hold `field`.
#define WEIR_HAS(pointer, field)                                                  \
    ((size_t)((const char *)(&(pointer)->field + 1) - (const char *)(pointer)) <= \
     (pointer)->struct_size)

// Three counts: of blocks in a grid, or of work-items in a block. A zero in
// `y` or `z` reads as one. Closed.
struct weir_extent {
    uint32_t x;
    uint32_t y;
    uint32_t z;
};

static inline struct weir_extent weir_dim(uint32_t x, uint32_t y, uint32_t z)
{
    struct weir_extent extent;
    extent.x = x;
    extent.y = y;
    extent.z = z;
    return extent;
}

// A wait without a time limit, for every timeout in nanoseconds.
#define WEIR_FOREVER UINT64_MAX

// The version of the library that is running, as "major.minor.patch".
WEIR_API const char *weir_version(void);

#ifdef __cplusplus
}
#endif

#endif
