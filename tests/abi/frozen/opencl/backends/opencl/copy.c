// Copies and fills, by the placement of the two sides.
//
// HOST memory is read and written through its address, never as a buffer object: in OpenCL a
// command that uses a buffer while it is mapped is undefined, and HOST buffers are always mapped.
// So
//
//   HOST to DEVICE    clEnqueueWriteBuffer from the address, not blocking
//   DEVICE to HOST    clEnqueueReadBuffer to the address, not blocking
//   DEVICE to DEVICE  clEnqueueCopyBuffer
//   HOST to HOST      clEnqueueSVMMemcpy where the device shares memory with the
//                     host; else in pieces through a DEVICE buffer of the queue,
//                     the only way in OpenCL 1.2 that keeps the order
//   fill of HOST      clEnqueueSVMMemFill of shared memory, else the same way
#include <string.h>

#include "tests/abi/frozen/opencl/backends/opencl/opencl.h"

// A multiple of every pattern's size.
#define STAGING_BYTES ((size_t)1 << 20)

static weir_status check(const struct ocl_queue *queue, const char *call, cl_int code,
                         const char *what, size_t size)
{
    if (code == CL_SUCCESS)
        return WEIR_OK;
    return ocl_native_error(queue->device->module, call, code, "%s of %zu bytes", what, size);
}

static char *address(const struct ocl_buffer *buffer, size_t offset)
{
    return (char *)buffer->pointer + offset;
}

static weir_status write_memory(const struct ocl_queue *queue, cl_mem dst, size_t dst_offset,
                                const void *src, size_t size)
{
    cl_int code = queue->device->module->cl.clEnqueueWriteBuffer(queue->queue, dst, CL_FALSE,
                                                                 dst_offset, size, src, 0, NULL,
                                                                 ocl_command_event(queue));
    return check(queue, "clEnqueueWriteBuffer", code, "copy from HOST to DEVICE", size);
}

static weir_status read_memory(const struct ocl_queue *queue, void *dst, cl_mem src,
                               size_t src_offset, size_t size)
{
    cl_int code =
        queue->device->module->cl.clEnqueueReadBuffer(queue->queue, src, CL_FALSE, src_offset, size,
                                                      dst, 0, NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueReadBuffer", code, "copy from DEVICE to HOST", size);
}

static weir_status fill_memory(const struct ocl_queue *queue, cl_mem dst, size_t dst_offset,
                               size_t size, const void *pattern, size_t pattern_size)
{
    cl_int code = queue->device->module->cl.clEnqueueFillBuffer(queue->queue, dst, pattern,
                                                                pattern_size, dst_offset, size, 0,
                                                                NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueFillBuffer", code, "fill", size);
}

// Called by the thread that submits to the queue only.
static weir_status need_staging(struct ocl_queue *queue)
{
    const struct ocl_device *device = queue->device;
    cl_int code;
    if (queue->staging)
        return WEIR_OK;
    queue->staging = device->module->cl.clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                                       STAGING_BYTES, NULL, &code);
    if (!queue->staging)
        return check(queue, "clCreateBuffer", code, "staging memory", STAGING_BYTES);
    device->module->host->count_driver_object();
    return WEIR_OK;
}

static weir_status copy_staged(struct ocl_queue *queue, char *dst, const char *src, size_t size)
{
    weir_status status = need_staging(queue);
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        status = write_memory(queue, queue->staging, 0, src + done, piece);
        if (status == WEIR_OK)
            status = read_memory(queue, dst + done, queue->staging, 0, piece);
    }
    return status;
}

static weir_status fill_staged(struct ocl_queue *queue, char *dst, size_t size, const void *pattern,
                               size_t pattern_size)
{
    weir_status status = need_staging(queue);
    if (status < 0)
        return status;
    const size_t first = size < STAGING_BYTES ? size : STAGING_BYTES;
    status = fill_memory(queue, queue->staging, 0, first, pattern, pattern_size);
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        status = read_memory(queue, dst + done, queue->staging, 0, piece);
    }
    return status;
}

static weir_status copy_on_host(struct ocl_queue *queue, char *dst, const char *src, size_t size)
{
    if (!queue->device->svm)
        return copy_staged(queue, dst, src, size);
    cl_int code =
        queue->device->module->cl.clEnqueueSVMMemcpy(queue->queue, CL_FALSE, dst, src, size, 0,
                                                     NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueSVMMemcpy", code, "copy from HOST to HOST", size);
}

static weir_status copy_on_device(const struct ocl_queue *queue, cl_mem dst, size_t dst_offset,
                                  cl_mem src, size_t src_offset, size_t size)
{
    cl_int code = queue->device->module->cl.clEnqueueCopyBuffer(queue->queue, src, dst, src_offset,
                                                                dst_offset, size, 0, NULL,
                                                                ocl_command_event(queue));
    return check(queue, "clEnqueueCopyBuffer", code, "copy from DEVICE to DEVICE", size);
}

static weir_status copy(struct ocl_queue *queue, const struct ocl_buffer *dst, size_t dst_offset,
                        const struct ocl_buffer *src, size_t src_offset, size_t size)
{
    if (dst->pointer && src->pointer)
        return copy_on_host(queue, address(dst, dst_offset), address(src, src_offset), size);
    if (dst->pointer)
        return read_memory(queue, address(dst, dst_offset), src->memory, src_offset, size);
    if (src->pointer)
        return write_memory(queue, dst->memory, dst_offset, address(src, src_offset), size);
    return copy_on_device(queue, dst->memory, dst_offset, src->memory, src_offset, size);
}

weir_status ocl_submit_copy(const struct weir_link *link, struct ocl_queue *queue,
                            const struct weir_operation *operation)
{
    return copy(queue, ocl_buffer_of(link, operation->u.copy.dst), operation->u.copy.dst_offset,
                ocl_buffer_of(link, operation->u.copy.src), operation->u.copy.src_offset,
                operation->u.copy.size);
}

// One side of a 2-D copy in OpenCL's terms. A HOST side is its address with an origin of zero, so
// that the offset need not be a multiple of the pitch.
struct side {
    const struct ocl_buffer *buffer;
    size_t offset;
    size_t pitch;
    size_t origin[3];
};

static struct side side_of(const struct weir_link *link, const struct weir_plane *plane)
{
    struct side side = {
        .buffer = ocl_buffer_of(link, plane->buffer),
        .offset = plane->offset,
        .pitch = plane->pitch,
    };
    side.origin[0] = plane->offset % plane->pitch;
    side.origin[1] = plane->offset / plane->pitch;
    return side;
}

static const size_t nowhere[3] = {0, 0, 0};

static weir_status write_rectangle(const struct ocl_queue *queue, const struct side *dst,
                                   const struct side *src, const size_t region[3])
{
    cl_int code = queue->device->module->cl.clEnqueueWriteBufferRect(
        queue->queue, dst->buffer->memory, CL_FALSE, dst->origin, nowhere, region, dst->pitch, 0,
        src->pitch, 0, address(src->buffer, src->offset), 0, NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueWriteBufferRect", code, "2-D copy from HOST to DEVICE",
                 region[0] * region[1]);
}

static weir_status read_rectangle(const struct ocl_queue *queue, const struct side *dst,
                                  const struct side *src, const size_t region[3])
{
    cl_int code = queue->device->module->cl.clEnqueueReadBufferRect(
        queue->queue, src->buffer->memory, CL_FALSE, src->origin, nowhere, region, src->pitch, 0,
        dst->pitch, 0, address(dst->buffer, dst->offset), 0, NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueReadBufferRect", code, "2-D copy from DEVICE to HOST",
                 region[0] * region[1]);
}

static weir_status copy_rectangle(const struct ocl_queue *queue, const struct side *dst,
                                  const struct side *src, const size_t region[3])
{
    cl_int code = queue->device->module->cl.clEnqueueCopyBufferRect(
        queue->queue, src->buffer->memory, dst->buffer->memory, src->origin, dst->origin, region,
        src->pitch, 0, dst->pitch, 0, 0, NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueCopyBufferRect", code, "2-D copy from DEVICE to DEVICE",
                 region[0] * region[1]);
}

static weir_status copy_rows(struct ocl_queue *queue, const struct side *dst,
                             const struct side *src, size_t width, size_t height)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < height && status == WEIR_OK; row++)
        status = copy(queue, dst->buffer, dst->offset + row * dst->pitch, src->buffer,
                      src->offset + row * src->pitch, width);
    return status;
}

// Copies row by row: OpenCL has no rectangular copy between host addresses, and within one buffer
// only with equal pitches.
weir_status ocl_submit_copy_2d(const struct weir_link *link, struct ocl_queue *queue,
                               const struct weir_operation *operation)
{
    const struct side dst = side_of(link, &operation->u.copy_2d.dst);
    const struct side src = side_of(link, &operation->u.copy_2d.src);
    const size_t region[3] = {operation->u.copy_2d.width, operation->u.copy_2d.height, 1};

    if (dst.pitch == region[0] && src.pitch == region[0])
        return copy(queue, dst.buffer, dst.offset, src.buffer, src.offset, region[0] * region[1]);
    if (dst.buffer == src.buffer || (dst.buffer->pointer && src.buffer->pointer))
        return copy_rows(queue, &dst, &src, region[0], region[1]);
    if (dst.buffer->pointer)
        return read_rectangle(queue, &dst, &src, region);
    if (src.buffer->pointer)
        return write_rectangle(queue, &dst, &src, region);
    return copy_rectangle(queue, &dst, &src, region);
}

weir_status ocl_submit_fill(const struct weir_link *link, struct ocl_queue *queue,
                            const struct weir_operation *operation)
{
    const struct ocl_buffer *dst = ocl_buffer_of(link, operation->u.fill.dst);
    const size_t offset = operation->u.fill.dst_offset;
    const size_t size = operation->u.fill.size;
    const void *pattern = operation->u.fill.pattern;
    const size_t pattern_size = operation->u.fill.pattern_size;

    if (!dst->pointer)
        return fill_memory(queue, dst->memory, offset, size, pattern, pattern_size);
    // Wrapped memory may begin at any address, and OpenCL fills only at multiples of the pattern's
    // size.
    if (!dst->svm || (uintptr_t)address(dst, offset) % pattern_size != 0)
        return fill_staged(queue, address(dst, offset), size, pattern, pattern_size);
    cl_int code = queue->device->module->cl.clEnqueueSVMMemFill(queue->queue, address(dst, offset),
                                                                pattern, pattern_size, size, 0,
                                                                NULL, ocl_command_event(queue));
    return check(queue, "clEnqueueSVMMemFill", code, "fill of a HOST buffer", size);
}
