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

#include "backends/kit/box.h"
#include "backends/opencl/opencl.h"

// A multiple of every pattern's size.
#define STAGING_BYTES ((size_t)1 << 20)

// The rest of a function that enqueues one command on `queue`: the call, what it does, of how many bytes, and its arguments
// between the queue and the wait list.
#define ENQUEUE(call, what, size, ...)                                                     \
    do {                                                                                   \
        const struct ocl_command *command = ocl_command_begin(queue);                      \
        const cl_int code =                                                                \
            queue->device->module->cl.call(queue->queue, __VA_ARGS__, command->wait_count, \
                                           command->waits, command->event);                \
        return ocl_command_end(queue, code, #call, "%s of %zu bytes", what, size);         \
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
        return clc_native_error(device->module->host, "clCreateBuffer", code,
                                "staging memory of %zu bytes", STAGING_BYTES);
    device->module->host->count_driver_object();
    return WEIR_OK;
}

// A copy in pieces, or without `src` a fill.
static weir_status stage(struct ocl_queue *queue, char *dst, const char *src, size_t size,
                         const void *pattern, size_t pattern_size)
{
    const size_t first = size < STAGING_BYTES ? size : STAGING_BYTES;
    weir_status status = need_staging(queue);
    if (status == WEIR_OK && !src)
        status = fill_memory(queue, queue->staging, 0, first, pattern, pattern_size);
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
        if (src)
            status = write_memory(queue, queue->staging, 0, src + done, piece);
        if (status == WEIR_OK)
            status = read_memory(queue, dst + done, queue->staging, 0, piece);
    }
    return status;
}

static weir_status copy(struct ocl_queue *queue, const struct ocl_buffer *dst, size_t dst_offset,
                        const struct ocl_buffer *src, size_t src_offset, size_t size)
{
    if (dst->pointer && src->pointer && !queue->device->svm)
        return stage(queue, address(dst, dst_offset), address(src, src_offset), size, NULL, 0);
    if (dst->pointer && src->pointer)
        ENQUEUE(clEnqueueSVMMemcpy, "copy from HOST to HOST", size, CL_FALSE,
                address(dst, dst_offset), address(src, src_offset), size);
    if (dst->pointer)
        return read_memory(queue, address(dst, dst_offset), src->memory, src_offset, size);
    if (src->pointer)
        return write_memory(queue, dst->memory, dst_offset, address(src, src_offset), size);
    ENQUEUE(clEnqueueCopyBuffer, "copy from DEVICE to DEVICE", size, src->memory, dst->memory,
            src_offset, dst_offset, size);
}

// A copy or a fill, or a part of one.
struct box {
    const struct ocl_buffer *to;
    const struct ocl_buffer *from; // a copy's
    struct weir_box shape;
};

// Stores where a side begins, counted in rows and slices. `slice_pitch` is 0 for one slice. A HOST side is its address with
// an origin of zero, so that the offset need not be a multiple of the pitch.
static void find_origin(const struct weir_volume *side, size_t slice_pitch, size_t origin[3])
{
    const size_t in_slice = slice_pitch ? side->offset % slice_pitch : side->offset;
    origin[0] = in_slice % side->pitch;
    origin[1] = in_slice / side->pitch;
    origin[2] = slice_pitch ? side->offset / slice_pitch : 0;
}

// One command.
static weir_status copy_box(struct ocl_queue *queue, const struct box *box)
{
    static const size_t nowhere[3] = {0, 0, 0};
    const struct weir_box *shape = &box->shape;
    const struct weir_volume *dst = &shape->dst;
    const struct weir_volume *src = &shape->src;
    const size_t region[3] = {shape->width, shape->height, shape->depth};
    const size_t bytes = weir_box_bytes(shape);
    const size_t to_pitch = shape->depth > 1 ? dst->slice_pitch : 0;
    const size_t from_pitch = shape->depth > 1 ? src->slice_pitch : 0;
    size_t to[3];
    size_t from[3];
    find_origin(dst, to_pitch, to);
    find_origin(src, from_pitch, from);
    if (box->to->pointer)
        ENQUEUE(clEnqueueReadBufferRect, "copy of rows from DEVICE to HOST", bytes,
                box->from->memory, CL_FALSE, from, nowhere, region, src->pitch, from_pitch,
                dst->pitch, to_pitch, address(box->to, dst->offset));
    if (box->from->pointer)
        ENQUEUE(clEnqueueWriteBufferRect, "copy of rows from HOST to DEVICE", bytes,
                box->to->memory, CL_FALSE, to, nowhere, region, dst->pitch, to_pitch, src->pitch,
                from_pitch, address(box->from, src->offset));
    ENQUEUE(clEnqueueCopyBufferRect, "copy of rows from DEVICE to DEVICE", bytes, box->from->memory,
            box->to->memory, from, to, region, src->pitch, from_pitch, dst->pitch, to_pitch);
}

// OpenCL has no command for rows between host addresses, and within one buffer only with equal
// pitches.
static bool is_row_by_row(const struct box *box)
{
    return box->to == box->from || (box->to->pointer && box->from->pointer);
}

// Wrapped memory may begin at any address, and OpenCL fills only at multiples of the pattern's
// size.
static weir_status fill(struct ocl_queue *queue, const struct ocl_buffer *dst, size_t offset,
                        size_t size, const void *pattern, size_t pattern_size)
{
    if (!dst->pointer)
        return fill_memory(queue, dst->memory, offset, size, pattern, pattern_size);
    if (!dst->address || (uintptr_t)address(dst, offset) % pattern_size != 0)
        return stage(queue, address(dst, offset), NULL, size, pattern, pattern_size);
    ENQUEUE(clEnqueueSVMMemFill, "fill of a HOST buffer", size, address(dst, offset), pattern,
            pattern_size, size);
}

// Fills the first row and copies it to the next one, these two to the next two, and so on: a command for each
// doubling of the rows. Rows before and after the middle of a copy never intersect.
static weir_status fill_rows(struct ocl_queue *queue, const struct box *box)
{
    const struct weir_box *shape = &box->shape;
    const struct weir_volume *rows = &shape->dst;
    weir_status status =
        fill(queue, box->to, rows->offset, shape->width, shape->pattern, shape->pattern_size);
    for (size_t done = 1; done < shape->height && status == WEIR_OK; done *= 2) {
        struct box next = {box->to, box->to, *shape};
        next.shape.height = shape->height - done < done ? shape->height - done : done;
        next.shape.src = *rows;
        next.shape.dst.offset += done * rows->pitch;
        status = copy_box(queue, &next);
    }
    return status;
}

static weir_status do_row(struct ocl_queue *queue, const struct box *box)
{
    const struct weir_box *row = &box->shape;
    return row->pattern
               ? fill(queue, box->to, row->dst.offset, row->width, row->pattern, row->pattern_size)
               : copy(queue, box->to, row->dst.offset, box->from, row->src.offset, row->width);
}

// NVIDIA's driver refuses a box whose last slice is not whole in the buffer, with the bytes to its
// end that no row of the box has.
static bool ends_within_a_slice(const struct ocl_buffer *buffer, const struct weir_volume *side,
                                size_t depth)
{
    const size_t first = side->offset / side->slice_pitch;
    return depth > 1 && !buffer->pointer && (first + depth) * side->slice_pitch > buffer->size;
}

// Slices and rows are commands of their own where OpenCL has none for all: a slice pitch must be a multiple of its pitch.
static weir_status do_box(struct ocl_queue *queue, const struct box *box)
{
    const struct weir_box *shape = &box->shape;
    size_t done = 0;
    weir_status status = WEIR_OK;
    if (weir_kit_box_is_row(shape))
        return do_row(queue, box);
    if (shape->pattern && !box->to->pointer) // OpenCL has no fill of rows
        return fill_rows(queue, box);
    if (!shape->pattern && !is_row_by_row(box) && weir_kit_box_has_whole_rows(shape)) {
        const bool cut = ends_within_a_slice(box->to, &shape->dst, shape->depth) ||
                         ends_within_a_slice(box->from, &shape->src, shape->depth);
        struct box whole = *box;
        whole.shape.depth -= cut;
        status = copy_box(queue, &whole);
        done = weir_kit_box_parts(shape) - cut;
    }
    for (size_t i = done; i < weir_kit_box_parts(shape) && status == WEIR_OK; i++) {
        const struct box part = {box->to, box->from, weir_kit_box_part(shape, i)};
        status = do_box(queue, &part);
    }
    return status;
}

weir_status ocl_submit_copy(const struct weir_link *link, struct ocl_queue *queue,
                            const struct weir_operation *operation)
{
    struct box box = {.shape = operation->u.box};
    weir_kit_box_reduce(&box.shape);
    box.to = ocl_buffer_of(link, box.shape.dst.buffer);
    box.from = box.shape.pattern ? NULL : ocl_buffer_of(link, box.shape.src.buffer);
    return do_box(queue, &box);
}
