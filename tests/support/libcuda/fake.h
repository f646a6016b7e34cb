// Shared by the files of the fake libcuda: see control.h.
#ifndef WEIR_TESTS_SUPPORT_LIBCUDA_FAKE_H
#define WEIR_TESTS_SUPPORT_LIBCUDA_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/symbols.h"
#include "tests/support/twins/twins.h"

enum {
    FAKE_INVALID_VALUE = 1,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_REGISTERED = 713,
    FAKE_TOO_LARGE = 720,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_UNKNOWN = 999,
    FAKE_LOCAL_LIMIT = 232448,
    FAKE_MEMORY_BYTES = 1 << 30, // of each device
    // Multiprocessors, and what each holds.
    FAKE_UNITS = 132,
    FAKE_UNIT_ITEMS = 2048,
    FAKE_UNIT_BLOCKS = 32,
    FAKE_UNIT_LOCAL = 233472,
    FAKE_UNIT_REGISTERS = 65536,
    FAKE_RESERVED_LOCAL = 1024,
};

// One lock for all state, and one condition for every change of it.
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;
extern long fake_live;
extern CUresult fake_sticky; // the code that a dead context returns; CUDA_SUCCESS: alive
extern bool fake_dead;       // a new context is dead too
extern int fake_held;
extern bool fake_lets_go; // see the control `let_go`

// libcuda.c: ranges that the driver knows. All under the lock.

enum fake_kind {
    FAKE_DEVICE = 1,
    FAKE_PINNED = 2,
    FAKE_REGISTERED = 4,
    FAKE_MANAGED = 8, // where device memory may be, it may be too
};
#define FAKE_HOST (FAKE_PINNED | FAKE_REGISTERED)

struct fake_range {
    struct fake_range *next;
    uintptr_t start;
    size_t size;
    enum fake_kind kind;
    int device;
};

bool fake_memory_add(const void *pointer, size_t size, enum fake_kind kind, int device);
// Forgets the range that starts at `pointer`. False: there is none of these kinds.
bool fake_memory_remove(const void *pointer, int kinds);
// The range that contains a byte; NULL: none does.
const struct fake_range *fake_memory_find(uintptr_t byte);
// Whether the whole range is inside one known range of these kinds.
bool fake_memory_holds(const void *pointer, size_t size, int kinds);
bool fake_memory_overlaps(const void *pointer, size_t size);
// In all, of a kind, and of a device.
size_t fake_memory_used(enum fake_kind kind, int device);

// A kernel is a function in C.
struct CUfunc_st {
    struct twin twin;
};

// stream.c

// A point of a stream, that is reached once.
struct fake_fence {
    unsigned references;
    bool done;
    uint64_t time_ns;
};

enum fake_operation_kind {
    FAKE_COPY,
    FAKE_SET,
    FAKE_LAUNCH,
    FAKE_FREE,
    FAKE_SIGNAL,
    FAKE_WAIT,
    FAKE_WRITE, // `value` to `dst`
    FAKE_CALL,
    FAKE_NOTHING,
    FAKE_CHILD, // a node only
};

struct fake_operation {
    struct fake_operation *next;
    enum fake_operation_kind kind;
    uint32_t correlation; // of its call, for CUPTI
    bool of_graph;        // a node; the call is the launch's
    bool ends_graph;      // the last one
    char *dst;
    const char *src;
    size_t dst_pitch;
    size_t src_pitch;
    size_t dst_slice; // bytes; 0: one slice
    size_t src_slice;
    size_t width;
    size_t height;
    size_t depth;   // COPY: 0 is 1
    uint32_t value; // SET: `height` rows of `width` elements of `element` bytes
    size_t element;
    struct fake_fence *fence;
    const struct CUfunc_st *function;
    struct twin_launch launch;
    size_t local_bytes;
    bool cooperative;
    void (*call)(void *user); // CALL
    void *user;
    void *(*clone)(void *user); // of a node that is a CALL
    void (*drop)(void *user);
    CUgraph child; // of a CHILD
};

// calls_memory.c

// Reads the box of a copy. False: it is none that the driver accepts, which does not include the
// memory of its sides.
bool fake_box_read(const CUDA_MEMCPY3D *box, struct fake_operation *out_copy);
// From the first byte that it touches to the last.
size_t fake_dst_bytes(const struct fake_operation *copy);
size_t fake_src_bytes(const struct fake_operation *copy);
// Reads a SET. False: the driver refuses it.
bool fake_set_read(const CUDA_MEMSET_NODE_PARAMS *set, struct fake_operation *out_set);

// Whether the blocks of a launch can wait for each other, if its kernel's do: where they cannot, it would
// never end, or trap.
bool fake_launch_ends(const struct fake_operation *operation);
// Reads a launch and its arguments. False: the driver refuses these, or the launch's extents.
bool fake_launch_read(const CUDA_KERNEL_NODE_PARAMS *params, struct fake_operation *out_launch);

void fake_set_fault(const char *kernel, long n);

// calls_graph.c

extern bool fake_captures_fork; // see the control `fork_captures`
// Whether the call would spoil what another library captures, with the lock; and the
// control `others_capture`.
bool fake_spoils_others(const char *name);
long fake_capture_others(int begin);
// Makes a node of an operation of a stream that is captured. False: it is not.
bool fake_capture_take(CUstream stream, const struct fake_operation *operation);
// A call that cannot be captured ends the capture's use. False: the stream is not captured.
bool fake_capture_spoil(CUstream stream);

CUstream fake_stream_create(int device);
int fake_stream_device(CUstream stream);
void fake_stream_destroy(CUstream stream);
bool fake_stream_known(CUstream stream);
// Ends the process if the stream does not exist: the real driver may then do anything.
void fake_stream_check(CUstream stream, const char *call);
bool fake_stream_idle(CUstream stream);
// Appends a copy of the operation to the stream.
void fake_stream_add(CUstream stream, const struct fake_operation *operation);
// Block until all work is done, of the stream or of the current device; the lock is held except while waiting.
void fake_stream_finish(CUstream stream);
void fake_device_finish(void);

struct fake_fence *fake_fence_create(void);
void fake_fence_retain(struct fake_fence *fence);
void fake_fence_release(struct fake_fence *fence);
void fake_fence_wait(struct fake_fence *fence);
// Reaches the point now. For a stream without work, whose thread would only be woken for
// this.
void fake_fence_reach(struct fake_fence *fence);

// cupti.c: under the lock.

uint64_t fake_cupti_now(void);
// The number of the call that is being made.
uint32_t fake_cupti_call(void);
// An operation has ended just now.
void fake_cupti_note(const struct fake_operation *operation, uint64_t start_ns);

// calls_memory.c

// Whether device memory may be used by work of the current context.
bool fake_device_reaches(const struct fake_range *range);
// The device's primary context ends, and with it what it reached and what reached it.
void fake_access_end(CUdevice device);
struct CUmemPoolHandle_st {
    int device;
};

// libcuda.c

enum {
    FAKE_DEVICE_LIMIT = 4
};
struct CUctx_st {
    int device;
    int references;
};

extern _Thread_local CUcontext fake_current;
extern int fake_version;
extern int fake_architecture; // 90: compute capability 9.0
extern int fake_pinned_bytes;
extern int fake_peers;
extern int fake_registers; // of a work-item of every kernel
extern int fake_own_local; // local memory that every kernel declares
extern int fake_managed;
CUcontext fake_context(int device);

// Under the lock. Counts the call, and returns whether it has to fail.
CUresult fake_admit(const char *name, bool needs_context);

// Every function begins and ends with one of these.
#define BEGIN(needs_context)                             \
    pthread_mutex_lock(&fake_lock);                      \
    CUresult code = fake_admit(__func__, needs_context); \
    do {                                                 \
    } while (0)
// What is admitted goes on, unless there is a reason to refuse it.
#define REFUSE(condition, error)              \
    do {                                      \
        if (condition) {                      \
            pthread_mutex_unlock(&fake_lock); \
            return error;                     \
        }                                     \
    } while (0)
#define ADMIT(needs_context) \
    BEGIN(needs_context);    \
    REFUSE(code != CUDA_SUCCESS, code)
#define END                           \
    pthread_mutex_unlock(&fake_lock); \
    return code

// A function that is one statement, made to fail or not.
#define SIMPLE(name, parameters, needs_context, statement) \
    CUresult name parameters                               \
    {                                                      \
        BEGIN(needs_context);                              \
        statement;                                         \
        END;                                               \
    }

// The functions that the backend may call.
#define FAKE_DECLARE(since, result, name, parameters) result name parameters;
CU_SYMBOLS(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
