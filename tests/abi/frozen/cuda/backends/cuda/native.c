// Streams and memory of the caller are checked here, because the driver detects a wrong one late
// or, for a stream of another context, crashes. A stream that is being captured accepts no records
// of a queue, and the per-thread default stream would be a different stream on the thread that
// delivers held operations.
#include <inttypes.h>

#include "tests/abi/frozen/cuda/backends/cuda/cu.h"

// CU_STREAM_PER_THREAD, a macro of <cuda.h>.
#define STREAM_PER_THREAD 2u

// kDLCUDA of <dlpack/dlpack.h>.
#define DLPACK_CUDA 2

weir_status cu_device_native(const struct weir_link *link, weir_device *object,
                             struct weir_native_device *out_native)
{
    const struct cu_device *device = cu_device_of(link, object);
    out_native->api = WEIR_NATIVE_CUDA;
    out_native->context = device->context;
    out_native->ordinal = device->listed->native;
    out_native->dlpack = DLPACK_CUDA;
    return WEIR_OK;
}

static struct weir_native_queue describe(const struct cu_queue *queue)
{
    return (struct weir_native_queue){
        .struct_size = sizeof(struct weir_native_queue),
        .api = WEIR_NATIVE_CUDA,
        .context = queue->device->context,
        .queue = queue->stream,
    };
}

weir_status cu_queue_native(const struct weir_link *link, weir_queue *object,
                            struct weir_native_queue *out_native)
{
    const struct weir_native_queue native = describe(cu_queue_of(link, object));
    WEIR_WRITE(out_native, &native);
    return WEIR_OK;
}

weir_status cu_buffer_native(const struct weir_link *link, weir_buffer *object,
                             struct weir_native_buffer *out_native)
{
    const struct cu_buffer *buffer = cu_buffer_of(link, object);
    out_native->api = WEIR_NATIVE_CUDA;
    out_native->address = buffer->address;
    out_native->host = buffer->pointer;
    return WEIR_OK;
}

weir_status cu_submit_native(const struct cu_queue *queue, const struct weir_operation *operation)
{
    const struct weir_native_queue native = describe(queue);
    return operation->u.native.function(&native, operation->u.native.user);
}

weir_status cu_wrap_stream(struct cu_queue *queue, void *native)
{
    struct cu_device *device = queue->device;
    const struct cu_module *module = device->module;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUcontext context = NULL;
    CUstream stream = native;

    if ((uintptr_t)native == STREAM_PER_THREAD)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID, "wrap a stream that you created",
                              "the per-thread default stream is another one on each thread");
    const char *call = "cuStreamGetCtx";
    CUresult code = module->cu.cuStreamGetCtx(stream, &context);
    if (code == CUDA_SUCCESS && context != device->context)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID,
                              "create it in the primary context, as the CUDA runtime does",
                              "the stream is of another context than the device's");
    if (code == CUDA_SUCCESS) {
        call = "cuStreamIsCapturing";
        code = module->cu.cuStreamIsCapturing(stream, &capture);
    }
    if (code != CUDA_SUCCESS)
        return cu_native_error(device, call, code, "cannot wrap a stream");
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return weir_host_fail(module->host, WEIR_ERROR_INVALID,
                              "wrap it before the capture, or after",
                              "the stream is being captured");
    queue->stream = stream;
    queue->wrapped = true;
    return WEIR_OK;
}

// Memory.

static weir_status refuse_end(const struct cu_buffer *buffer, CUdeviceptr native, size_t there)
{
    return weir_host_fail(buffer->device->module->host, WEIR_ERROR_INVALID,
                          "adopt as much as there is",
                          "at 0x%llx are %zu bytes, and %zu were asked for",
                          (unsigned long long)native, there, buffer->size);
}

// A range may consist of several allocations at adjacent addresses (PyTorch's expandable segments),
// and the driver reports one at a time.
static weir_status check_range(const struct cu_buffer *buffer, CUdeviceptr native)
{
    const struct cu_module *module = buffer->device->module;
    for (size_t there = 0; there < buffer->size;) {
        CUdeviceptr start;
        size_t size;
        CUresult code = module->cu.cuMemGetAddressRange(&start, &size, native + there);
        if (code != CUDA_SUCCESS && there == 0)
            return cu_native_error(buffer->device, "cuMemGetAddressRange", code,
                                   "cannot adopt %zu bytes at 0x%llx", buffer->size,
                                   (unsigned long long)native);
        if (code != CUDA_SUCCESS || start + size <= native + there)
            return refuse_end(buffer, native, there);
        there = (size_t)(start + size - native);
    }
    return WEIR_OK;
}

// For memory that the driver does not know it returns CUDA_ERROR_INVALID_VALUE.
static weir_status ask(const struct cu_buffer *buffer, CUpointer_attribute what, CUdeviceptr native,
                       void *out_value)
{
    CUresult code = buffer->device->module->cu.cuPointerGetAttribute(out_value, what, native);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_VALUE)
        return WEIR_OK;
    return cu_native_error(buffer->device, "cuPointerGetAttribute", code,
                           "cannot adopt %zu bytes at 0x%llx", buffer->size,
                           (unsigned long long)native);
}

static weir_status check_place(const struct cu_buffer *buffer, CUdeviceptr native,
                               weir_placement placement)
{
    const struct cu_device *device = buffer->device;
    const bool on_host = placement == WEIR_PLACE_HOST;
    CUmemorytype type = 0;
    int ordinal = device->listed->native;

    weir_status status = ask(buffer, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, native, &type);
    if (status < 0)
        return status;
    if (type != (on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE))
        return weir_host_fail(device->module->host, WEIR_ERROR_INVALID,
                              on_host ? "wrap it: weir_buffer_wrap() pins it"
                                      : "weir_buffer_wrap() takes memory of the host",
                              "CUDA knows no %s memory at 0x%llx", on_host ? "pinned" : "device",
                              (unsigned long long)native);
    if (!on_host)
        status = ask(buffer, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, native, &ordinal);
    if (status < 0 || ordinal == device->listed->native)
        return status;
    return weir_host_fail(device->module->host, WEIR_ERROR_INVALID,
                          "adopt it on the device that it is on",
                          "the memory at 0x%llx is on CUDA device %d, and '%s' is device %d",
                          (unsigned long long)native, ordinal, device->listed->info.name,
                          device->listed->native);
}

weir_status cu_adopt(struct cu_buffer *buffer, CUdeviceptr native, weir_placement placement)
{
    weir_status status = check_place(buffer, native, placement);
    if (status == WEIR_OK && placement == WEIR_PLACE_DEVICE)
        status = check_range(buffer, native);
    if (status < 0)
        return status;
    buffer->adopted = true;
    if (placement == WEIR_PLACE_HOST)
        buffer->pointer = (char *)(uintptr_t)native;
    else
        buffer->address = native;
    return WEIR_OK;
}
