// DLPack: tensors to and from array libraries (PyTorch, CuPy, JAX, NumPy) without a copy.
// `struct DLManagedTensor` is the one of <dlpack/dlpack.h>; a program that reads its members
// includes that header itself. In Python it is passed in a capsule named "dltensor".
//
// A tensor carries no ordering. Before its memory is used on the other side, the work that
// wrote it must have finished, or the consumer's stream must wait for it:
//
//   - A producer with streams makes the consumer's stream wait for its own: PyTorch's
//     `tensor.__dlpack__(stream=s)` does so for the stream with handle s (-1: no wait, 1:
//     CUDA's default stream). Get the handle of the Weir queue that will use the tensor from
//     weir_queue_get_native(), and request the capsule with it.
//   - A consumer of a tensor from Weir does not wait for Weir. Sync first, or wrap the
//     consumer's stream as a queue (weir_queue_wrap()) and submit a wait to it.
//   - A consumer may drop a tensor at any time, perhaps while work on its stream still uses
//     it. If a queue wraps that stream, Weir keeps the memory until that work has finished;
//     otherwise sync with the stream before the tensor is dropped.
#ifndef WEIR_DLPACK_H
#define WEIR_DLPACK_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/status.h>

struct DLManagedTensor;

// The type of an element. The values are DLPack's type codes.
typedef enum weir_element {
    WEIR_ELEMENT_INT = 0,
    WEIR_ELEMENT_UINT = 1,
    WEIR_ELEMENT_FLOAT = 2,
    WEIR_ELEMENT_OPAQUE = 3,
    WEIR_ELEMENT_BFLOAT = 4,
    WEIR_ELEMENT_COMPLEX = 5,
    WEIR_ELEMENT_BOOL = 6,
} weir_element;

enum {
    WEIR_TENSOR_DIMENSIONS = 32, // maximum
};

// An array in a buffer.
struct weir_tensor {
    size_t struct_size;
    weir_buffer *buffer;
    size_t offset; // bytes from the buffer's start to the first element
    weir_element element;
    uint32_t bits;          // of an element: 32 for a float
    uint32_t lanes;         // 0 and 1: a scalar; 4 for a float4
    uint32_t dimensions;    // 0: one element
    const int64_t *shape;   // elements in each dimension
    const int64_t *strides; // elements from one to the next, not negative; NULL: dense, the last
                            // dimension varies fastest
};

// Makes a DLPack tensor over the memory of a buffer. The tensor of a DEVICE buffer is of
// kDLCUDA or kDLOpenCL, that of a HOST buffer of kDLCPU; a MANAGED buffer counts as DEVICE on CUDA and
// as HOST elsewhere. Shape and strides are copied.
//
// Ownership: the consumer of the tensor calls its `deleter` once, from any thread. Until
// then the tensor holds a reference to the buffer: weir_buffer_destroy() on the buffer is
// legal but frees nothing, and the device cannot be closed.
// Errors: WEIR_ERROR_INVALID for a range outside the buffer, and for a buffer from a pool;
// WEIR_ERROR_UNSUPPORTED for a DEVICE buffer where `limits.native` is 0.
WEIR_CALL weir_status weir_dlpack_export_at(const struct weir_tensor *tensor,
                                            struct DLManagedTensor **out_tensor, const char *file,
                                            int line);
#define weir_dlpack_export(...) weir_dlpack_export_at(__VA_ARGS__, __FILE__, __LINE__)

// Makes a buffer of a tensor's memory and describes the tensor in `*out_tensor`, whose
// struct_size the caller has set. kDLCUDA and kDLOpenCL tensors become DEVICE buffers of a
// device of that API, kDLCPU and kDLCUDAHost tensors become HOST buffers of any device. The
// buffer ends with the tensor's last element; shape and strides are valid as long as the
// buffer.
//
// Ownership: the buffer is the caller's. It takes ownership of `tensor` and calls its
// deleter after the buffer was destroyed and no work uses it any more, on a thread that
// calls Weir. After an error `tensor` stays the caller's.
// Errors: WEIR_ERROR_INVALID for a tensor of another device, of an unknown element type,
// with strides that are not dense, or without elements; WEIR_ERROR_UNSUPPORTED; as
// weir_buffer_adopt() and weir_buffer_wrap().
WEIR_CALL weir_status weir_dlpack_import_at(weir_device *device, const char *label,
                                            struct DLManagedTensor *tensor,
                                            struct weir_tensor *out_tensor, const char *file,
                                            int line);
#define weir_dlpack_import(...) weir_dlpack_import_at(__VA_ARGS__, __FILE__, __LINE__)

#endif
