// Beside other libraries: native handles for cuBLAS, NPP or clBLAST, streams and
// memory of theirs as queues and buffers, and DLPack tensors for array libraries.
//
// All of it needs `limits.native`; where that is 0, calls return
// WEIR_ERROR_UNSUPPORTED.
#ifndef WEIR_INTEROP_H
#define WEIR_INTEROP_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/launch.h>
#include <weir/queue.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_native_api {
    WEIR_NATIVE_CUDA = 1,
    WEIR_NATIVE_OPENCL = 2,
} weir_native_api;

// What is not of the API is NULL or 0.
struct weir_native_device {
    weir_native_api api;
    void *context; // CUcontext, the primary one; cl_context
    void *device;  // cl_device_id
    int ordinal;   // CUdevice; OpenCL: the index of weir_device_describe()
};

struct weir_native_queue {
    weir_native_api api;
    void *context; // as above
    void *queue;   // CUstream, which is a cudaStream_t; cl_command_queue
};

struct weir_native_buffer {
    weir_native_api api;
    uint64_t address; // CUDA: the device's address of byte 0
    void *memory;     // cl_mem
    size_t offset;    // bytes from the start of `memory` to byte 0
    void *host;       // HOST buffers: the host's address of byte 0
};

// Ownership: what they store stays the object's and lives as long as it.
// Errors: WEIR_ERROR_UNSUPPORTED.
WEIR_API weir_status weir_device_get_native(weir_device *device,
                                            struct weir_native_device *out_native);
WEIR_API weir_status weir_queue_get_native(weir_queue *queue, struct weir_native_queue *out_native);
WEIR_API weir_status weir_buffer_get_native(weir_buffer *buffer,
                                            struct weir_native_buffer *out_native);

// Submits work of the caller's own to the native queue, in the order of the queue:
// `function(native, user)` runs, on this thread or on one of the library's, when
// everything before it is with the driver, and hands its own work to
// `native->queue`. Buffers that this work uses are named as launch arguments, which
// plugins see; a buffer that is destroyed meanwhile lives until the work has finished.
// `user` must live until the function has run. On CUDA the device's primary context is
// current during the call.
//
//     weir_queue_native(queue, multiply, &product, weir_in(a, 0, bytes), weir_out(c, 0, bytes));
//
// The macro takes one buffer or more; weir_queue_native_array() takes an array, which may
// be empty. The function may not wait and may not call Weir; what it needs of buffers, ask
// weir_buffer_get_native() for before. A negative return fails the queue; weir_error_set()
// is the one call that it may make, to say why.
//
// Errors: WEIR_ERROR_UNSUPPORTED; WEIR_ERROR_INVALID for an argument that is no buffer of the
// device, or a range outside it; the queue's first failure.
typedef weir_status (*weir_native_function)(const struct weir_native_queue *native, void *user);
WEIR_API weir_status weir_queue_native_at(weir_queue *queue, weir_native_function function,
                                          void *user, const struct weir_argument *arguments,
                                          size_t argument_count, const char *file, int line);
#define weir_queue_native_array(queue, ...) \
    weir_queue_native_at(queue, __VA_ARGS__, __FILE__, __LINE__)

struct weir_queue_wrap_params {
    size_t struct_size;
    const char *label;
    // CUstream or cl_command_queue, in order, of the device's context. CUDA's default
    // stream is CU_STREAM_LEGACY, which is 1; the per-thread one cannot be wrapped.
    void *native;
    bool timing; // OpenCL: only where it was created with CL_QUEUE_PROFILING_ENABLE
};

// Makes a queue of a stream or command queue that the caller already has. What the caller
// submits to it beside Weir is ordered with Weir's work as the driver orders it. It must
// outlive the queue and all its work: sync, then destroy the queue, then the native one.
//
// While the queue exists, a buffer that is destroyed is kept until everything has finished
// that the native queue had been given by then, Weir's work or not.
//
// Ownership: of the queue the caller's; the native one stays the caller's.
// Errors: WEIR_ERROR_UNSUPPORTED; WEIR_ERROR_INVALID for one of another context, out of order,
// or under capture.
WEIR_API weir_status weir_queue_wrap(weir_device *device,
                                     const struct weir_queue_wrap_params *params,
                                     weir_queue **out_queue);

struct weir_adopt_params {
    size_t struct_size;
    const char *label;
    uint64_t native; // CUdeviceptr, or a cl_mem cast to an integer, of the device's context
    size_t size;     // bytes from there
};

// Makes a DEVICE buffer of memory that the caller already has on the device (cudaMalloc,
// clCreateBuffer). It must outlive the buffer and all work that uses it. Kernels that read
// vectors need an address that is a multiple of their size.
//
// Ownership: as weir_queue_wrap(). A cl_mem is retained, so it may be released at once.
// Errors: WEIR_ERROR_UNSUPPORTED; WEIR_ERROR_INVALID for memory of another device or of the
// host, for a cl_mem that is no buffer for reading and writing, or one smaller than `size`.
WEIR_API weir_status weir_buffer_adopt(weir_device *device, const struct weir_adopt_params *params,
                                       weir_buffer **out_buffer);

#ifdef __cplusplus
}

template <typename... Arguments>
inline weir_status weir__native(const char *file, int line, weir_queue *queue,
                                weir_native_function function, void *user, Arguments... arguments)
{
    const weir_argument list[] = {weir__argument(arguments)...};
    return weir_queue_native_at(queue, function, user, list, sizeof...(arguments), file, line);
}

#define weir_queue_native(queue, function, user, ...) \
    weir__native(__FILE__, __LINE__, queue, function, user, __VA_ARGS__)

#else

#define weir_queue_native(queue, function, user, ...)                                  \
    weir_queue_native_at(queue, function, user,                                        \
                         (const struct weir_argument[]){WEIR__ARGUMENTS(__VA_ARGS__)}, \
                         WEIR__COUNT(__VA_ARGS__), __FILE__, __LINE__)

#endif

#endif
