// DLPack: tensors to and from array libraries (PyTorch, CuPy, JAX, NumPy) without a copy.
// `struct DLManagedTensor` is that of <dlpack/dlpack.h>, which a program that looks into
// one includes itself; in Python it travels in a capsule named "dltensor".
//
// A tensor carries no order. Before its memory is used on the other side, what wrote it
// must have finished, or the user's stream must wait for it:
//
//   - A producer that has streams makes the consumer's wait for its own: PyTorch's
//     `tensor.__dlpack__(stream=s)` does so for the stream whose handle is s, which
//     weir_queue_get_native() tells of a Weir queue (-1: no wait, 1: CUDA's default
//     stream). So ask for the capsule with the stream of the queue that will use it.
//   - A consumer of Weir's tensors does not wait for Weir. Sync first, or use a queue that
//     wraps the consumer's stream (weir_queue_wrap()) and submit a wait to it.
//   - A consumer drops a tensor when it likes, perhaps with work on its stream still to
//     come. A queue that wraps that stream makes Weir keep the memory until that is done;
//     else sync with the stream before the tensor is dropped.
#ifndef WEIR_DLPACK_H
#define WEIR_DLPACK_H

#include <weir/buffer.h>
#include <weir/common.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;

// What an element is. The values are DLPack's type codes.
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
    WEIR_TENSOR_DIMENSIONS = 32, // at most
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
    const int64_t *strides; // elements from one to the next, not negative; NULL: dense, the
                            // last dimension fastest
};

// Makes a tensor over memory of a buffer, as DLPack hands it around. A DEVICE buffer's is
// kDLCUDA or kDLOpenCL, a HOST buffer's is kDLCPU. Shape and strides are copied.
//
// Ownership: the tensor's user calls `deleter` on it, once, from any thread. Until then it
// holds the buffer: weir_buffer_destroy() of it is legal and frees nothing, and the device
// does not close.
// Errors: WEIR_ERROR_INVALID for a range outside the buffer, and for a buffer out of a pool;
// WEIR_ERROR_UNSUPPORTED for a DEVICE buffer where `limits.native` is 0.
WEIR_API weir_status weir_dlpack_export(const struct weir_tensor *tensor,
                                        struct DLManagedTensor **out_tensor);

// Makes a buffer of a tensor's memory and describes the tensor in `*out_tensor`, whose
// struct_size is set before. kDLCUDA and kDLOpenCL become DEVICE buffers of a device of that
// API, kDLCPU and kDLCUDAHost become HOST buffers of any device. The buffer ends with the
// tensor's last element; shape and strides are valid as long as it is.
//
// Ownership: of the buffer the caller's. It takes `tensor` over and calls its deleter when
// the buffer was destroyed and no work uses it any more, on a thread that calls Weir. After
// an error `tensor` stays the caller's.
// Errors: WEIR_ERROR_INVALID for a tensor of another device, of unknown elements, with
// strides that are not dense, or without elements; WEIR_ERROR_UNSUPPORTED; as
// weir_buffer_adopt() and weir_buffer_wrap().
WEIR_API weir_status weir_dlpack_import(weir_device *device, const char *label,
                                        struct DLManagedTensor *tensor,
                                        struct weir_tensor *out_tensor);

#ifdef __cplusplus
}
#endif

#endif
