// Interoperation with other libraries: native handles for cuBLAS, NPP or clBLAST, their streams
// and memory as queues and buffers, and DLPack tensors for array libraries.
//
// Everything here needs `limits.native`; if it is 0, the calls return WEIR_ERROR_UNSUPPORTED.
#ifndef WEIR_INTEROP_H
#define WEIR_INTEROP_H

#include <string.h>

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/graph.h>
#include <weir/launch.h>
#include <weir/queue.h>
#include <weir/status.h>

// The API that the handles belong to. The list is open: other backends use other names, and their
// documentation says what the handles are. Compare with weir_native_is().
#define WEIR_NATIVE_CUDA "cuda"
#define WEIR_NATIVE_OPENCL "opencl"

// Whether `api`, that of a native device, queue or buffer, is the one of that name.
static inline bool weir_native_is(const char *api, const char *name)
{
    return api && strcmp(api, name) == 0;
}

// Members that do not belong to `api` are NULL or 0.
struct weir_native_device {
    size_t struct_size;
    const char *api; // static storage, as in the others
    void *context;   // CUcontext, the primary one; cl_context
    void *device;    // cl_device_id
    int ordinal;     // CUdevice; OpenCL: the index of weir_device_describe()
    int dlpack;      // DLPack's device type of DEVICE buffers (kDLCUDA); 0: it has none
};

struct weir_native_queue {
    size_t struct_size;
    const char *api;
    void *context; // as above
    void *queue;   // CUstream, which is a cudaStream_t; cl_command_queue
};

struct weir_native_buffer {
    size_t struct_size;
    const char *api;
    uint64_t address; // CUDA: the device's address of byte 0
    void *memory;     // cl_mem
    size_t offset;    // bytes from the start of `memory` to byte 0
    void *host;       // HOST buffers: the host's address of byte 0
};

// Ownership: the handles stay the object's and are valid as long as the object.
// Errors: WEIR_ERROR_UNSUPPORTED.
WEIR_CALL weir_status weir_device_get_native_sized(weir_device *device,
                                                   struct weir_native_device *out_native,
                                                   size_t size);
WEIR_CALL weir_status weir_queue_get_native_sized(weir_queue *queue,
                                                  struct weir_native_queue *out_native,
                                                  size_t size);
WEIR_CALL weir_status weir_buffer_get_native_sized(weir_buffer *buffer,
                                                   struct weir_native_buffer *out_native,
                                                   size_t size);
#define weir_device_get_native(device, out_native) \
    weir_device_get_native_sized(device, out_native, sizeof(struct weir_native_device))
#define weir_queue_get_native(queue, out_native) \
    weir_queue_get_native_sized(queue, out_native, sizeof(struct weir_native_queue))
#define weir_buffer_get_native(buffer, out_native) \
    weir_buffer_get_native_sized(buffer, out_native, sizeof(struct weir_native_buffer))

// Submits the caller's own work to the native queue, in the order of `queue`: `function(native,
// user)` is called, on this thread or on a library thread, after all earlier operations of the
// queue were handed to the driver, and submits its work to `native->queue`. Name the buffers
// that this work uses as launch arguments: plugins see them, and a buffer that is destroyed
// meanwhile is kept until the work has finished. `user` must live until the function has
// returned. On CUDA the device's primary context is current during the call.
//
//     weir_queue_native(queue, multiply, &product, weir_in(a, 0, bytes), weir_out(c, 0, bytes));
//
// The macro takes one buffer or more; weir_queue_native_array() takes an array, which may be
// empty. The function must not wait, and must not call Weir, so call weir_buffer_get_native() for
// its buffers beforehand. It can be captured (<weir/graph.h>). A negative return fails the queue;
// weir_error_set() is the one call that the function may make, to give the reason.
//
// Errors: WEIR_ERROR_UNSUPPORTED; WEIR_ERROR_INVALID for an argument that is not a buffer of the
// device, or a range outside its buffer; the queue's first failure.
typedef weir_status (*weir_native_function)(const struct weir_native_queue *native, void *user);
WEIR_CALL weir_status weir_queue_native_at(weir_queue *queue, weir_native_function function,
                                           void *user, const struct weir_argument *arguments,
                                           size_t argument_count, const char *file, int line);
#define weir_queue_native_array(...) weir_queue_native_at(__VA_ARGS__, __FILE__, __LINE__)

// Gives a native call of a graph (<weir/graph.h>) another function, `user` and buffers, as
// arguments of the macro weir_graph_set_native() or as an array. Where the backend has graphs the
// function is called by this call, and what it submits takes the place of what the node did; if
// launches are held, as those that wait for other ranks are, it is called when they have begun, on
// a library thread. Elsewhere later launches call it. Earlier launches keep the old ones.
//
// Errors: those of weir_queue_native_array(), of the driver and of the function, after which the
// node is as it was, or, if launches were held, later launches fail with them; WEIR_ERROR_INVALID
// for a node of another kind; WEIR_ERROR_UNSUPPORTED if the backend's module is of an older version.
WEIR_CALL weir_status weir_graph_set_native_at(weir_graph *graph, uint32_t node,
                                               weir_native_function function, void *user,
                                               const struct weir_argument *arguments,
                                               size_t argument_count, const char *file, int line);
#define weir_graph_set_native_array(...) weir_graph_set_native_at(__VA_ARGS__, __FILE__, __LINE__)

struct weir_queue_wrap_params {
    size_t struct_size;
    const char *label;
    // CUstream or cl_command_queue, in order, of the device's context. CUDA's default
    // stream is CU_STREAM_LEGACY, which is 1; the per-thread one cannot be wrapped.
    void *native;
    bool timing; // OpenCL: only where it was created with CL_QUEUE_PROFILING_ENABLE
};

// Makes a queue of a stream or command queue that the caller already has. The driver orders the
// caller's own submissions and Weir's by the time of their submission. The native queue must
// outlive the Weir queue and all its work: sync, then destroy the Weir queue, then the native
// one.
//
// While the Weir queue exists, a buffer that is destroyed is kept until all work has finished
// that had been submitted to the native queue by then, through Weir or not.
//
// Ownership: the Weir queue is the caller's; the native queue stays the caller's.
// Errors: WEIR_ERROR_UNSUPPORTED; WEIR_ERROR_INVALID for a native queue that is of another
// context, out of order, or being captured.
WEIR_CALL weir_status weir_queue_wrap_at(weir_device *device,
                                         const struct weir_queue_wrap_params *params,
                                         weir_queue **out_queue, const char *file, int line);
#define weir_queue_wrap(...) weir_queue_wrap_at(__VA_ARGS__, __FILE__, __LINE__)

struct weir_adopt_params {
    size_t struct_size;
    const char *label;
    uint64_t native; // CUdeviceptr, or a cl_mem cast to an integer, of the device's context
    size_t size;     // bytes from there
};

// Makes a DEVICE buffer of memory that the caller already has on the device (cudaMalloc,
// clCreateBuffer). The memory must outlive the buffer and all work that uses it. Kernels that
// read vectors need an address that is a multiple of the vector's size.
//
// Ownership: as weir_queue_wrap(). A cl_mem is retained, so the caller may release it at once.
// Errors: WEIR_ERROR_UNSUPPORTED; WEIR_ERROR_INVALID for memory of another device or of the
// host, for a cl_mem that is not a read-write buffer, or one smaller than `size`.
WEIR_CALL weir_status weir_buffer_adopt_at(weir_device *device,
                                           const struct weir_adopt_params *params,
                                           weir_buffer **out_buffer, const char *file, int line);
#define weir_buffer_adopt(...) weir_buffer_adopt_at(__VA_ARGS__, __FILE__, __LINE__)

#ifdef __cplusplus
template <typename... Arguments>
inline WEIR_CHECKED weir_status weir__native(const char *file, int line, weir_queue *queue,
                                             weir_native_function function, void *user,
                                             Arguments... arguments)
{
    const weir_argument list[] = {weir__argument(arguments)...};
    return weir_queue_native_at(queue, function, user, list, sizeof...(arguments), file, line);
}

#define weir_queue_native(queue, function, user, ...) \
    weir__native(__FILE__, __LINE__, queue, function, user, __VA_ARGS__)

template <typename... Arguments>
inline WEIR_CHECKED weir_status weir__set_native(const char *file, int line, weir_graph *graph,
                                                 uint32_t node, weir_native_function function,
                                                 void *user, Arguments... arguments)
{
    const weir_argument list[] = {weir__argument(arguments)...};
    return weir_graph_set_native_at(graph, node, function, user, list, sizeof...(arguments), file,
                                    line);
}

#define weir_graph_set_native(graph, node, function, user, ...) \
    weir__set_native(__FILE__, __LINE__, graph, node, function, user, __VA_ARGS__)

#else

#define weir_queue_native(queue, function, user, ...)                                              \
    weir_queue_native_at(queue, function, user, WEIR__LIST(__VA_ARGS__), WEIR__COUNT(__VA_ARGS__), \
                         __FILE__, __LINE__)
#define weir_graph_set_native(graph, node, function, user, ...)                    \
    weir_graph_set_native_at(graph, node, function, user, WEIR__LIST(__VA_ARGS__), \
                             WEIR__COUNT(__VA_ARGS__), __FILE__, __LINE__)

#endif

#endif
