// Shared by all public headers of Weir: the version, the export attribute, the opaque types, and
// the few open types that occur in many signatures.
//
// Conventions of the whole API:
//   - Functions that can fail return `weir_status` (<weir/status.h>), and the compiler warns of a call
//     that drops it: WEIR_CHECKED.
//   - Outputs come last, are named `out_*`, and are set to NULL or zero first.
//   - `params` structures start with `struct_size`; zero elsewhere means default.
//     Write `= {.struct_size = sizeof params}`, so that nothing is left unset.
//   - What a call creates, opens or reads is the caller's, until the destroy or close call of its kind,
//     which sets the pointer to NULL, and accepts NULL and a pointer to NULL. Its device or runtime
//     outlives it. What a getter returns is the object's, and lives as long as the object.
//   - Objects are safe to use from several threads unless their header says
//     otherwise. A call on a NULL object is an error, but a NULL runtime of weir_device_open() is the
//     default one. For a NULL object a getter returns NULL, 0 or "".
//   - Calls that create, open, close, submit or wait are macros, which add the caller's file:line,
//     for errors and for plugins, to the functions with `_at`. Those that take structures or arrays
//     are variadic, so that a compound literal can be passed. With NULL and 0 for these such a
//     function records no location: `weir_open_at(&params, &runtime, NULL, 0)`.
//     `file` need only live until the call returns: the library keeps a copy of each name, once in a
//     process, in 1 MiB; names beyond that read "(file not kept)". Patterns, compiled into the
//     program, keep the pointer for as long as their object.
//   - Programs, modules and libraries of different versions work together, because every
//     structure that may grow is passed with its size: see "Sizes" below.
//   - Functions of the program that the library calls must return: pthread_exit(), longjmp() or a
//     C++ exception that leaves one is an error of the program, after which nothing is defined; and
//     so is pthread_cancel() of a thread in a call of the library.
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

#ifdef __cplusplus
#define WEIR__LINKAGE extern "C"
#else
#define WEIR__LINKAGE
#endif

// Of each function that the library or a module exports: visible, and of C.
#if defined(__GNUC__)
#define WEIR_API WEIR__LINKAGE __attribute__((visibility("default")))
#define WEIR_PRINTF(text, first) __attribute__((format(printf, text, first)))
// The compiler warns of a call whose status is dropped, also after (void): WEIR_IGNORE() in <weir/status.h>
// drops one on purpose.
#define WEIR_CHECKED __attribute__((warn_unused_result))
#else
#define WEIR_API WEIR__LINKAGE
#define WEIR_CHECKED
#define WEIR_PRINTF(text, first)
#endif
// Of each exported function that returns a status.
#define WEIR_CALL WEIR_API WEIR_CHECKED

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
// Memory that is allocated and freed in the order of queues: <weir/pool.h>.
typedef struct weir_pool weir_pool;
// Ranks that combine and exchange what their buffers hold: <weir/comm.h>.
typedef struct weir_comm weir_comm;

// Sizes. After the first release a structure grows only at its end. It is passed with its size,
// which its allocator sets:
//   - `params` and other structures that begin with `struct_size`: set it to sizeof. In params, a
//     field that the program's headers lack is zero for the library; a field that the library
//     does not know must be zero, else the call is refused.
//   - A structure that the library fills for a program: the function is a macro, which adds the
//     size.
//   - A structure that the library returns by pointer can be read, and copied, as the program's
//     headers declare it: fields that the library does not know are zero.
//   - In every other structure that begins with `struct_size`, such as the parts of a bundle or the
//     argument of a native function, test with WEIR_HAS() whether an appended field is present.
// A structure marked "closed" never changes.

// Whether `*pointer`, which begins with `struct_size`, is large enough to hold `field`.
#define WEIR_HAS(pointer, field)                                                  \
    ((size_t)((const char *)(&(pointer)->field + 1) - (const char *)(pointer)) <= \
     (pointer)->struct_size)

// The params of a create call, in C: weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = n),
// &buffer). `object` and "_params" name the structure; its fields follow, and the rest is zero.
#ifndef __cplusplus
#define WEIR_PARAMS(object, ...) \
    (&(const struct object##_params){.struct_size = sizeof(struct object##_params), __VA_ARGS__})
#endif

// Three counts: of blocks in a grid, or of work-items in a block. A zero in
// `y` or `z` reads as one. Closed.
struct weir_extent {
    uint32_t x;
    uint32_t y;
    uint32_t z;
};

// The extent of a grid or of a block.
static inline struct weir_extent weir_dim(uint32_t x, uint32_t y, uint32_t z)
{
    struct weir_extent extent;
    extent.x = x;
    extent.y = y;
    extent.z = z;
    return extent;
}

// Timeouts are in nanoseconds: weir_event_sync(event, WEIR_MS(5)). Whole numbers only.
#define WEIR_US(count) ((uint64_t)(count)*1000u)
#define WEIR_MS(count) ((uint64_t)(count)*1000000u)
#define WEIR_S(count) ((uint64_t)(count)*1000000000u)

// A wait without a time limit, for every timeout in nanoseconds.
#define WEIR_FOREVER UINT64_MAX

// The version of the library that is running, as "major.minor.patch".
WEIR_API const char *weir_version(void);

#endif
