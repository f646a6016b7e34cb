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
//   fill of HOST      clEnqueueSVMMemFill of memory of clSVMAlloc(), else the same way:
//                     PoCL 6 and 7 crash on other memory, although they share all of it
//
// Rows and slices have clEnqueueWriteBufferRect, clEnqueueReadBufferRect and clEnqueueCopyBufferRect.
// A fill of rows is one command for the first row and one for each doubling of the filled rows; in
// HOST memory it is one for each row.
#include <string.h>

#include "backends/opencl/opencl.h"

// A multiple of every pattern's size.
#define STAGING_BYTES ((size_t)1 << 20)

static weir_status check(const struct ocl_queue *queue, const char *call, cl_int code,
                         const char *what, size_t size)
{
    if (code == CL_SUCCESS)
        return WEIR_OK;
    if (code == OCL_NOT_KEPT)
        return weir_host_no_memory(queue->device->module->host, "the commands of a queue");
    return clc_native_error(queue->device->module->host, call, code, "%s of %zu bytes", what, size);
}

// The rest of a function that enqueues one command on `queue`: the call, what it does, of how many bytes, and its arguments
// between the queue and the wait list.
#define ENQUEUE(call, what, size, ...)                                                     \
    do {                                                                                   \
        const struct ocl_command *command = ocl_command_begin(queue);                      \
        const cl_int code =                                                                \
            queue->device->module->cl.call(queue->queue, __VA_ARGS__, command->wait_count, \
                                           command->waits, command->event);                \
        const cl_int ended = ocl_command_end(queue, code);                                 \
        return check(queue, ended == code ? #call : "clRetainEvent", ended, what, size);   \
    } while (0)

static char *address(const struct ocl_buffer *buffer, size_t offset)
{
    return (char *)buffer->pointer + offset;
}

static weir_status write_memory(struct ocl_queue *queue, cl_mem dst, size_t dst_offset,
                                const void *src, size_t size)
{
    ENQUEUE(clEnqueueWriteBuffer, "copy from HOST to DEVICE", size, dst, CL_FALSE, dst_offset, size,
            src);
}

static weir_status read_memory(struct ocl_queue *queue, void *dst, cl_mem src, size_t src_offset,
                               size_t size)
{
    ENQUEUE(clEnqueueReadBuffer, "copy from DEVICE to HOST", size, src, CL_FALSE, src_offset, size,
            dst);
}

static weir_status fill_memory(struct ocl_queue *queue, cl_mem dst, size_t dst_offset, size_t size,
                               const void *pattern, size_t pattern_size)
{
    ENQUEUE(clEnqueueFillBuffer, "fill", size, dst, pattern, pattern_size, dst_offset, size);
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
    ENQUEUE(clEnqueueSVMMemcpy, "copy from HOST to HOST", size, CL_FALSE, dst, src, size);
}

static weir_status copy_on_device(struct ocl_queue *queue, cl_mem dst, size_t dst_offset,
                                  cl_mem src, size_t src_offset, size_t size)
{
    ENQUEUE(clEnqueueCopyBuffer, "copy from DEVICE to DEVICE", size, src, dst, src_offset,
            dst_offset, size);
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

static weir_status submit_copy(const struct weir_link *link, struct ocl_queue *queue,
                               const struct weir_operation *operation)
{
    return copy(queue, ocl_buffer_of(link, operation->u.copy.dst), operation->u.copy.dst_offset,
                ocl_buffer_of(link, operation->u.copy.src), operation->u.copy.src_offset,
                operation->u.copy.size);
}

// One side of a 2-D or 3-D copy in OpenCL's terms. A plane is a volume of one slice. A HOST side is
// its address with an origin of zero, so that the offset need not be a multiple of the pitch.
struct side {
    const struct ocl_buffer *buffer;
    size_t offset;
    size_t pitch;
    size_t slice_pitch; // 0: one slice
    size_t origin[3];
};

static struct side side_of(const struct weir_link *link, const struct weir_volume *volume)
{
    struct side side = {
        .buffer = ocl_buffer_of(link, volume->buffer),
        .offset = volume->offset,
        .pitch = volume->pitch,
        .slice_pitch = volume->slice_pitch,
    };
    return side;
}

// Stores where the side begins, for the commands that count in rows and slices.
static void find_origin(struct side *side)
{
    const size_t in_slice = side->slice_pitch ? side->offset % side->slice_pitch : side->offset;
    side->origin[0] = in_slice % side->pitch;
    side->origin[1] = in_slice / side->pitch;
    side->origin[2] = side->slice_pitch ? side->offset / side->slice_pitch : 0;
}

static const size_t nowhere[3] = {0, 0, 0};

static weir_status write_box(struct ocl_queue *queue, const struct side *dst,
                             const struct side *src, const size_t region[3])
{
    ENQUEUE(clEnqueueWriteBufferRect, "copy of rows from HOST to DEVICE",
            region[0] * region[1] * region[2], dst->buffer->memory, CL_FALSE, dst->origin, nowhere,
            region, dst->pitch, dst->slice_pitch, src->pitch, src->slice_pitch,
            address(src->buffer, src->offset));
}

static weir_status read_box(struct ocl_queue *queue, const struct side *dst, const struct side *src,
                            const size_t region[3])
{
    ENQUEUE(clEnqueueReadBufferRect, "copy of rows from DEVICE to HOST",
            region[0] * region[1] * region[2], src->buffer->memory, CL_FALSE, src->origin, nowhere,
            region, src->pitch, src->slice_pitch, dst->pitch, dst->slice_pitch,
            address(dst->buffer, dst->offset));
}

static weir_status copy_box(struct ocl_queue *queue, const struct side *dst, const struct side *src,
                            const size_t region[3])
{
    ENQUEUE(clEnqueueCopyBufferRect, "copy of rows from DEVICE to DEVICE",
            region[0] * region[1] * region[2], src->buffer->memory, dst->buffer->memory,
            src->origin, dst->origin, region, src->pitch, src->slice_pitch, dst->pitch,
            dst->slice_pitch);
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

// OpenCL has no command for rows between host addresses, and within one buffer only with equal
// pitches.
static bool is_row_by_row(const struct side *dst, const struct side *src)
{
    return dst->buffer == src->buffer || (dst->buffer->pointer && src->buffer->pointer);
}

// One command.
static weir_status copy_region(struct ocl_queue *queue, struct side *dst, struct side *src,
                               const size_t region[3])
{
    find_origin(dst);
    find_origin(src);
    if (dst->buffer->pointer)
        return read_box(queue, dst, src, region);
    if (src->buffer->pointer)
        return write_box(queue, dst, src, region);
    return copy_box(queue, dst, src, region);
}

static weir_status copy_slice(struct ocl_queue *queue, struct side dst, struct side src,
                              size_t width, size_t height)
{
    const size_t region[3] = {width, height, 1};

    if (height == 1 || (dst.pitch == width && src.pitch == width))
        return copy(queue, dst.buffer, dst.offset, src.buffer, src.offset, width * height);
    if (is_row_by_row(&dst, &src))
        return copy_rows(queue, &dst, &src, width, height);
    dst.slice_pitch = 0;
    src.slice_pitch = 0;
    return copy_region(queue, &dst, &src, region);
}

static struct weir_volume volume_of(const struct weir_plane *plane)
{
    return (struct weir_volume){plane->buffer, plane->offset, plane->pitch, 0};
}

static weir_status submit_copy_2d(const struct weir_link *link, struct ocl_queue *queue,
                                  const struct weir_operation *operation)
{
    const struct weir_volume dst = volume_of(&operation->u.copy_2d.dst);
    const struct weir_volume src = volume_of(&operation->u.copy_2d.src);
    return copy_slice(queue, side_of(link, &dst), side_of(link, &src), operation->u.copy_2d.width,
                      operation->u.copy_2d.height);
}

static weir_status copy_slices(struct ocl_queue *queue, const struct side *dst,
                               const struct side *src, const size_t region[3])
{
    weir_status status = WEIR_OK;
    struct side to = *dst;
    struct side from = *src;
    for (size_t slice = 0; slice < region[2] && status == WEIR_OK; slice++) {
        to.offset = dst->offset + slice * dst->slice_pitch;
        from.offset = src->offset + slice * src->slice_pitch;
        status = copy_slice(queue, to, from, region[0], region[1]);
    }
    return status;
}

// NVIDIA's driver refuses a box whose last slice is not whole in the buffer, with the bytes to its
// end that no row of the box has.
static bool ends_within_a_slice(const struct side *side, size_t depth)
{
    const size_t first = side->offset / side->slice_pitch;
    return !side->buffer->pointer && (first + depth) * side->slice_pitch > side->buffer->size;
}

// The last slice is a command of its own.
static weir_status copy_box_to_the_end(struct ocl_queue *queue, struct side dst, struct side src,
                                       const size_t region[3])
{
    const size_t before[3] = {region[0], region[1], region[2] - 1};
    weir_status status = copy_region(queue, &dst, &src, before);
    dst.offset += before[2] * dst.slice_pitch;
    src.offset += before[2] * src.slice_pitch;
    return status != WEIR_OK ? status : copy_slice(queue, dst, src, region[0], region[1]);
}

static bool is_packed(const struct side *side, const size_t region[3])
{
    return side->slice_pitch == side->pitch * region[1];
}

// Slices of one row are the rows of one slice. A slice pitch must be a multiple of its pitch for
// OpenCL.
static weir_status submit_copy_3d(const struct weir_link *link, struct ocl_queue *queue,
                                  const struct weir_operation *operation)
{
    struct side dst = side_of(link, &operation->u.copy_3d.dst);
    struct side src = side_of(link, &operation->u.copy_3d.src);
    const size_t region[3] = {operation->u.copy_3d.width, operation->u.copy_3d.height,
                              operation->u.copy_3d.depth};

    if (is_packed(&dst, region) && is_packed(&src, region))
        return copy_slice(queue, dst, src, region[0], region[1] * region[2]);
    if (region[1] == 1 && region[2] > 1) {
        dst.pitch = dst.slice_pitch;
        src.pitch = src.slice_pitch;
        return copy_slice(queue, dst, src, region[0], region[2]);
    }
    if (region[2] == 1 || is_row_by_row(&dst, &src) || dst.slice_pitch % dst.pitch ||
        src.slice_pitch % src.pitch)
        return copy_slices(queue, &dst, &src, region);
    if (ends_within_a_slice(&dst, region[2]) || ends_within_a_slice(&src, region[2]))
        return copy_box_to_the_end(queue, dst, src, region);
    return copy_region(queue, &dst, &src, region);
}

// Wrapped memory may begin at any address, and OpenCL fills only at multiples of the pattern's
// size.
static weir_status fill(struct ocl_queue *queue, const struct ocl_buffer *dst, size_t offset,
                        size_t size, const void *pattern, size_t pattern_size)
{
    if (!dst->pointer)
        return fill_memory(queue, dst->memory, offset, size, pattern, pattern_size);
    if (!dst->address || (uintptr_t)address(dst, offset) % pattern_size != 0)
        return fill_staged(queue, address(dst, offset), size, pattern, pattern_size);
    ENQUEUE(clEnqueueSVMMemFill, "fill of a HOST buffer", size, address(dst, offset), pattern,
            pattern_size, size);
}

static weir_status submit_fill(const struct weir_link *link, struct ocl_queue *queue,
                               const struct weir_operation *operation)
{
    return fill(queue, ocl_buffer_of(link, operation->u.fill.dst), operation->u.fill.dst_offset,
                operation->u.fill.size, operation->u.fill.pattern, operation->u.fill.pattern_size);
}

// Copies the first row to the next one, these two to the next two, and so on: a command for each
// doubling of the rows. Rows before and after the middle of a copy never intersect.
static weir_status repeat_rows(struct ocl_queue *queue, const struct side *rows, size_t width,
                               size_t height)
{
    weir_status status = WEIR_OK;
    for (size_t done = 1; done < height && status == WEIR_OK; done *= 2) {
        const size_t region[3] = {width, height - done < done ? height - done : done, 1};
        struct side src = *rows;
        struct side dst = *rows;
        dst.offset += done * rows->pitch;
        status = copy_region(queue, &dst, &src, region);
    }
    return status;
}

// OpenCL has no fill of rows.
static weir_status submit_fill_2d(const struct weir_link *link, struct ocl_queue *queue,
                                  const struct weir_operation *operation)
{
    const struct weir_volume volume = volume_of(&operation->u.fill_2d.dst);
    const struct side dst = side_of(link, &volume);
    const size_t width = operation->u.fill_2d.width;
    const size_t height = operation->u.fill_2d.height;
    const void *pattern = operation->u.fill_2d.pattern;
    const size_t pattern_size = operation->u.fill_2d.pattern_size;
    const size_t rows = dst.buffer->pointer ? height : 1;
    weir_status status = WEIR_OK;

    if (dst.pitch == width)
        return fill(queue, dst.buffer, dst.offset, width * height, pattern, pattern_size);
    for (size_t row = 0; row < rows && status == WEIR_OK; row++)
        status =
            fill(queue, dst.buffer, dst.offset + row * dst.pitch, width, pattern, pattern_size);
    if (status < 0 || dst.buffer->pointer)
        return status;
    return repeat_rows(queue, &dst, width, height);
}

weir_status ocl_submit_copy(const struct weir_link *link, struct ocl_queue *queue,
                            const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        return submit_copy(link, queue, operation);
    case WEIR_OPERATION_COPY_2D:
        return submit_copy_2d(link, queue, operation);
    case WEIR_OPERATION_COPY_3D:
        return submit_copy_3d(link, queue, operation);
    case WEIR_OPERATION_FILL:
        return submit_fill(link, queue, operation);
    default:
        return submit_fill_2d(link, queue, operation);
    }
}
