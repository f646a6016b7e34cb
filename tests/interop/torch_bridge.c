// The library that torch_test.py calls through ctypes: a device, its tensors and queues, as
// plain C functions. Elements are 32-bit integers, so that every result is exact.
//
// Functions return 0 or a pointer on success; bridge_error() returns the error's text.
#include <dlpack/dlpack.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"

// Python finds the functions by their names: no header declares them.
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

struct bridge {
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *increment;
};

static struct bridge bridge;

WEIR_API const char *bridge_error(void)
{
    return weir_last_error_text();
}

// The backend is the environment's; on CUDA `ordinal` is the device's.
WEIR_API int bridge_open(const char *ordinal)
{
    const struct weir_program_params program = {.struct_size = sizeof program,
                                                .bundle = &conformance_kernels};
    const struct weir_device_params device = {.struct_size = sizeof device, .select = ordinal};
    weir_status status = weir_open(NULL, &bridge.runtime);
    if (status == WEIR_OK)
        status = weir_device_open(bridge.runtime, &device, &bridge.device);
    if (status == WEIR_OK)
        status = weir_program_create(bridge.device, &program, &bridge.program);
    if (status == WEIR_OK)
        status = weir_kernel_create(bridge.program, "increment", &bridge.increment);
    return status;
}

WEIR_API int bridge_close(void)
{
    weir_kernel_destroy(&bridge.increment);
    weir_program_destroy(&bridge.program);
    weir_status status = weir_device_close(&bridge.device);
    return status < 0 ? status : weir_close(&bridge.runtime);
}

// Queues. `stream` is a CUstream to wrap, or NULL for an ordinary Weir queue.

WEIR_API weir_queue *bridge_queue(void *stream)
{
    weir_queue *queue = NULL;
    if (stream)
        WEIR_IGNORE(
            weir_queue_wrap(bridge.device,
                            WEIR_PARAMS(weir_queue_wrap, .label = "PyTorch's", .native = stream),
                            &queue));
    else
        WEIR_IGNORE(weir_queue_create(bridge.device, NULL, &queue));
    return queue;
}

WEIR_API void bridge_queue_destroy(weir_queue *queue)
{
    weir_queue_destroy(&queue);
}

WEIR_API int bridge_sync(weir_queue *queue)
{
    return weir_queue_sync(queue, WEIR_FOREVER);
}

// Later work of `queue` waits for everything submitted to `before` so far.
WEIR_API int bridge_wait(weir_queue *queue, weir_queue *before)
{
    struct weir_event event;
    weir_status status = weir_queue_record(before, &event);
    return status < 0 ? status : weir_queue_wait(queue, event);
}

// The stream of a queue, for __dlpack__(stream=…); 0 if there is none.
WEIR_API uint64_t bridge_stream(weir_queue *queue)
{
    struct weir_native_queue native;
    return weir_queue_get_native(queue, &native) == WEIR_OK &&
                   weir_native_is(native.api, WEIR_NATIVE_CUDA)
               ? (uint64_t)(uintptr_t)native.queue
               : 0;
}

// Tensors.

struct own_tensor {
    struct weir_tensor tensor;
    int64_t length;
};

WEIR_API struct weir_tensor *bridge_create(int64_t count, int on_host)
{
    struct own_tensor *own = calloc(1, sizeof *own);
    if (!own ||
        weir_buffer_create(bridge.device,
                           WEIR_PARAMS(weir_buffer, .label = "tensor", .size = 4 * (size_t)count,
                                       .placement = on_host ? WEIR_PLACE_HOST : WEIR_PLACE_DEVICE),
                           &own->tensor.buffer) < 0) {
        free(own);
        return NULL;
    }
    own->length = count;
    own->tensor.struct_size = sizeof own->tensor;
    own->tensor.element = WEIR_ELEMENT_INT;
    own->tensor.bits = 32;
    own->tensor.dimensions = 1;
    own->tensor.shape = &own->length;
    return &own->tensor;
}

WEIR_API void bridge_destroy(struct weir_tensor *tensor)
{
    weir_buffer_destroy(&tensor->buffer);
    free(tensor);
}

WEIR_API int bridge_fill(weir_queue *queue, struct weir_tensor *tensor, uint32_t value)
{
    return weir_queue_fill(queue, tensor->buffer, 0, weir_buffer_size(tensor->buffer), &value,
                           sizeof value);
}

// A kernel adds `by` to every element.
WEIR_API int bridge_increment(weir_queue *queue, struct weir_tensor *tensor, uint32_t by)
{
    const size_t bytes = weir_buffer_size(tensor->buffer) - tensor->offset;
    const uint32_t count = (uint32_t)(bytes / 4);
    return weir_queue_launch(queue, bridge.increment, weir_dim((count + 255) / 256, 1, 1),
                             weir_dim(256, 1, 1), weir_inout(tensor->buffer, tensor->offset, bytes),
                             by, count);
}

// Element `index`, after everything in the queue.
WEIR_API int64_t bridge_element(weir_queue *queue, struct weir_tensor *tensor, int64_t index)
{
    int32_t value;
    if (weir_download(queue, &value, tensor->buffer, tensor->offset + 4 * (size_t)index,
                      sizeof value) < 0)
        return INT64_MIN;
    return value;
}

// Makes the tensor for a capsule, and takes the tensor of one.

WEIR_API DLManagedTensor *bridge_export(struct weir_tensor *tensor)
{
    DLManagedTensor *out;
    WEIR_IGNORE(weir_dlpack_export(tensor, &out));
    return out;
}

WEIR_API struct weir_tensor *bridge_import(DLManagedTensor *from)
{
    struct weir_tensor *tensor = calloc(1, sizeof *tensor);
    if (!tensor)
        return NULL;
    tensor->struct_size = sizeof *tensor;
    if (weir_dlpack_import(bridge.device, "imported", from, tensor) == WEIR_OK)
        return tensor;
    free(tensor);
    return NULL;
}
