// Tarn: a driver library made for tests and for docs/writing-a-backend.md, with the common
// properties of drivers of accelerators. Streams run their work in order, each on its own thread;
// events mark points of streams; freeing and unregistering memory and unloading modules wait for
// the whole device; and nearly every call uses the context that is current on the calling thread.
//
// A kernel is a function of the device, found by its name. The compiler reads OpenCL C, finds the
// kernels that the text defines, and refuses those for which the device has no function.
//
// Threads: all functions are safe.
#ifndef TARN_H
#define TARN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_result {
    TARN_OK = 0,
    TARN_NOT_READY = 1,
    TARN_OUT_OF_MEMORY = 2,
    TARN_INVALID_VALUE = 3,
    TARN_NO_CONTEXT = 4, // none is current, or the object is of another one
    TARN_NOT_FOUND = 5,
    TARN_BUILD_FAILED = 6,
    TARN_ALREADY_REGISTERED = 7,
    TARN_UNKNOWN_MEMORY = 8, // an address that was neither allocated nor registered
    TARN_NO_DEVICE = 9,
} tarn_result;

typedef struct tarn_context tarn_context;
typedef struct tarn_stream tarn_stream;
typedef struct tarn_event tarn_event;
typedef struct tarn_module tarn_module;
typedef struct tarn_kernel tarn_kernel;

struct tarn_device_info {
    char name[64];
    uint64_t memory_bytes;
    uint32_t max_threads; // of a block
    uint32_t max_local_bytes;
    uint32_t compute_units;
    uint32_t engines;        // that can copy while kernels run
    int32_t priority_lowest; // of streams; a larger number has precedence
    int32_t priority_highest;
};

struct tarn_kernel_info {
    uint32_t max_threads;
    uint32_t preferred_threads;
    uint32_t local_bytes;
};

// An argument of a launch: `size` bytes at `value`, which are an address or a value; if `value` is
// NULL, as many bytes of local memory.
struct tarn_argument {
    const void *value;
    size_t size;
};

// To be called first. May be called again.
tarn_result tarn_init(void);
// "TARN_OK"; NULL for an unknown code.
const char *tarn_result_name(tarn_result result);
// 10200 is version 1.2.
tarn_result tarn_version(int *version);
tarn_result tarn_device_count(int *count);
tarn_result tarn_device_describe(int ordinal, struct tarn_device_info *info);

// A new context is not current on any thread.
tarn_result tarn_context_create(tarn_context **context, int ordinal);
tarn_result tarn_context_destroy(tarn_context *context);
// The context of the calling thread; NULL: none.
tarn_result tarn_context_get_current(tarn_context **context);
tarn_result tarn_context_set_current(tarn_context *context);

// All functions below need a current context.

tarn_result tarn_stream_create(tarn_stream **stream, int priority);
// Waits for the stream's work.
tarn_result tarn_stream_destroy(tarn_stream *stream);
// TARN_NOT_READY while there is work.
tarn_result tarn_stream_query(tarn_stream *stream);
tarn_result tarn_stream_synchronize(tarn_stream *stream);
// Later work of the stream waits for the last record of the event.
tarn_result tarn_stream_wait_event(tarn_stream *stream, tarn_event *event);

// An event that was never recorded is complete.
tarn_result tarn_event_create(tarn_event **event);
tarn_result tarn_event_destroy(tarn_event *event);
tarn_result tarn_event_record(tarn_event *event, tarn_stream *stream);
tarn_result tarn_event_query(tarn_event *event);
tarn_result tarn_event_synchronize(tarn_event *event);
// When a complete record was reached, on the host's monotonic clock.
tarn_result tarn_event_time(tarn_event *event, uint64_t *time_ns);

tarn_result tarn_memory_allocate(void **pointer, size_t size);
// These four wait for the device.
tarn_result tarn_memory_free(void *pointer);
tarn_result tarn_host_free(void *pointer);
tarn_result tarn_host_unregister(void *pointer);
tarn_result tarn_module_unload(tarn_module *module);
// Memory of the host at an address that kernels can use.
tarn_result tarn_host_allocate(void **pointer, size_t size);
tarn_result tarn_host_register(void *pointer, size_t size);
// TARN_OK if all of the range lies in one piece of memory that copies can use, else
// TARN_UNKNOWN_MEMORY.
tarn_result tarn_memory_query(const void *pointer, size_t size);

// Copies between any two places of memory that Tarn knows, as work of the stream.
tarn_result tarn_copy(void *dst, const void *src, size_t size, tarn_stream *stream);
tarn_result tarn_copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t height, tarn_stream *stream);
// Patterns of 1, 2, 4, 8 and 16 bytes; `size` is a multiple.
tarn_result tarn_fill(void *dst, size_t size, const void *pattern, size_t pattern_size,
                      tarn_stream *stream);
tarn_result tarn_launch(tarn_kernel *kernel, const uint32_t grid[3], const uint32_t block[3],
                        const struct tarn_argument *arguments, size_t count, tarn_stream *stream);

// Compiles to a binary, to be freed with free(). The log is truncated to its size and terminated;
// it is "" if there are no messages.
tarn_result tarn_compile(const char *source, const char *options, void **binary, size_t *size,
                         char *log, size_t log_size);
tarn_result tarn_module_load(tarn_module **module, const void *binary, size_t size);
// The kernel lives as long as the module.
tarn_result tarn_module_kernel(tarn_module *module, const char *name, tarn_kernel **kernel);
tarn_result tarn_kernel_describe(tarn_kernel *kernel, struct tarn_kernel_info *info);

#ifdef __cplusplus
}
#endif

#endif
