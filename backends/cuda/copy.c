// Copies. The driver copies within host memory only by blocking, so such copies go through device
// memory that is allocated and freed in the order of the queue.
#include "backends/cuda/copy_parts.h"

// The same command as a node of a graph.
static weir_status build_line(const struct cu_queue *queue, CUmemorytype to, CUdeviceptr dst,
                              CUmemorytype from, CUdeviceptr src, size_t size)
{
    const CUDA_MEMCPY3D line = {
        .srcMemoryType = from,
        .srcHost = from == CU_MEMORYTYPE_HOST ? (const void *)(uintptr_t)src : NULL,
        .srcDevice = from == CU_MEMORYTYPE_HOST ? 0 : src,
        .srcPitch = size,
        .srcHeight = 1,
        .dstMemoryType = to,
        .dstHost = to == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)dst : NULL,
        .dstDevice = to == CU_MEMORYTYPE_HOST ? 0 : dst,
        .dstPitch = size,
        .dstHeight = 1,
        .WidthInBytes = size,
        .Height = 1,
        .Depth = 1,
    };
    return cu_build_box(queue->builder, &line);
}

static weir_status write_device(const struct cu_queue *queue, CUdeviceptr dst, const char *src,
                                size_t size)
{
    if (queue->builder)
        return build_line(queue, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST,
                          (CUdeviceptr)(uintptr_t)src, size);
    return cu_copy_command(queue, "cuMemcpyHtoDAsync",
                           cu_symbols_of(queue)->cuMemcpyHtoDAsync(dst, src, size, queue->stream),
                           "copy from HOST to DEVICE", size);
}

weir_status cu_read_device(const struct cu_queue *queue, char *dst, CUdeviceptr src, size_t size)
{
    if (queue->builder)
        return build_line(queue, CU_MEMORYTYPE_HOST, (CUdeviceptr)(uintptr_t)dst,
                          CU_MEMORYTYPE_DEVICE, src, size);
    return cu_copy_command(queue, "cuMemcpyDtoHAsync",
                           cu_symbols_of(queue)->cuMemcpyDtoHAsync(dst, src, size, queue->stream),
                           "copy from DEVICE to HOST", size);
}

weir_status cu_copy_device(const struct cu_queue *queue, CUdeviceptr dst, CUdeviceptr src,
                           size_t size)
{
    if (queue->builder)
        return build_line(queue, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, size);
    return cu_copy_command(queue, "cuMemcpyDtoDAsync",
                           cu_symbols_of(queue)->cuMemcpyDtoDAsync(dst, src, size, queue->stream),
                           "copy from DEVICE to DEVICE", size);
}

weir_status cu_take_staging(const struct cu_queue *queue, size_t size, CUdeviceptr *out_staging)
{
    if (queue->builder)
        return cu_build_staging(queue->builder, size, out_staging);
    CUresult code =
        cu_symbols_of(queue)->cuMemAllocFromPoolAsync(out_staging, size, queue->device->pool,
                                                      queue->stream);
    return cu_copy_check(queue, "cuMemAllocFromPoolAsync", code,
                         "memory on the way between HOST buffers", size);
}

weir_status cu_drop_staging(const struct cu_queue *queue, CUdeviceptr staging, weir_status status)
{
    if (queue->builder)
        return status;
    CUresult code = cu_symbols_of(queue)->cuMemFreeAsync(staging, queue->stream);
    return status < 0 ? status
                      : cu_copy_check(queue, "cuMemFreeAsync", code, "end of memory on the way", 0);
}

static weir_status copy_on_host(const struct cu_queue *queue, char *dst, const char *src,
                                size_t size)
{
    CUdeviceptr staging;
    weir_status status = cu_take_staging(queue, cu_piece_of(size, 0), &staging);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += CU_STAGING_BYTES) {
        const size_t piece = cu_piece_of(size, done);
        status = write_device(queue, staging, src + done, piece);
        if (status == WEIR_OK)
            status = cu_read_device(queue, dst + done, staging, piece);
    }
    return cu_drop_staging(queue, staging, status);
}

// Between the host and a device whose memory this queue's device cannot access: through memory of
// the queue's device.
static weir_status copy_by_own_device(const struct cu_queue *queue, const struct cu_buffer *dst,
                                      size_t dst_offset, const struct cu_buffer *src,
                                      size_t src_offset, size_t size)
{
    struct cu_buffer staging = {.device = queue->device, .size = cu_piece_of(size, 0)};
    weir_status status = cu_take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += CU_STAGING_BYTES) {
        const size_t piece = cu_piece_of(size, done);
        if (src->pointer) {
            status = write_device(queue, staging.address, src->pointer + src_offset + done, piece);
            if (status == WEIR_OK)
                status = cu_copy_peer(queue, dst, dst_offset + done, &staging, 0, piece);
        } else {
            status = cu_copy_peer(queue, &staging, 0, src, src_offset + done, piece);
            if (status == WEIR_OK)
                status =
                    cu_read_device(queue, dst->pointer + dst_offset + done, staging.address, piece);
        }
    }
    return cu_drop_staging(queue, staging.address, status);
}

// Whether this is a copy between the host and memory that the queue's device cannot access.
static bool is_out_of_reach(const struct cu_queue *queue, const struct cu_buffer *dst,
                            const struct cu_buffer *src)
{
    return (dst->pointer && !src->pointer && !cu_reaches(queue->device, src)) ||
           (src->pointer && !dst->pointer && !cu_reaches(queue->device, dst));
}

static weir_status copy(const struct cu_queue *queue, const struct cu_buffer *dst,
                        size_t dst_offset, const struct cu_buffer *src, size_t src_offset,
                        size_t size)
{
    if (dst->pointer && src->pointer)
        return copy_on_host(queue, dst->pointer + dst_offset, src->pointer + src_offset, size);
    if (is_out_of_reach(queue, dst, src))
        return copy_by_own_device(queue, dst, dst_offset, src, src_offset, size);
    if (dst->pointer)
        return cu_read_device(queue, dst->pointer + dst_offset, src->address + src_offset, size);
    if (src->pointer)
        return write_device(queue, dst->address + dst_offset, src->pointer + src_offset, size);
    if (cu_is_peer_copy(dst, src))
        return cu_copy_peer(queue, dst, dst_offset, src, src_offset, size);
    return cu_copy_device(queue, dst->address + dst_offset, src->address + src_offset, size);
}

weir_status cu_submit_copy(const struct weir_link *link, struct cu_queue *queue,
                           const struct weir_operation *operation)
{
    return copy(queue, cu_buffer_of(link, operation->u.copy.dst), operation->u.copy.dst_offset,
                cu_buffer_of(link, operation->u.copy.src), operation->u.copy.src_offset,
                operation->u.copy.size);
}

// 2-D and 3-D copies. A 2-D copy is a box of one slice.

static void set_source(CUDA_MEMCPY3D *command, const struct cu_buffer *buffer,
                       const struct weir_volume *src)
{
    command->srcMemoryType = buffer->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (buffer->pointer)
        command->srcHost = buffer->pointer + src->offset;
    else
        command->srcDevice = buffer->address + src->offset;
    command->srcPitch = src->pitch;
    command->srcHeight = src->slice_pitch / src->pitch;
}

static void set_destination(CUDA_MEMCPY3D *command, const struct cu_buffer *buffer,
                            const struct weir_volume *dst)
{
    command->dstMemoryType = buffer->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (buffer->pointer)
        command->dstHost = buffer->pointer + dst->offset;
    else
        command->dstDevice = buffer->address + dst->offset;
    command->dstPitch = dst->pitch;
    command->dstHeight = dst->slice_pitch / dst->pitch;
}

static weir_status copy_rectangle(const struct cu_queue *queue, const CUDA_MEMCPY3D *box)
{
    const CUDA_MEMCPY2D rectangle = {
        .srcMemoryType = box->srcMemoryType,
        .srcHost = box->srcHost,
        .srcDevice = box->srcDevice,
        .srcPitch = box->srcPitch,
        .dstMemoryType = box->dstMemoryType,
        .dstHost = box->dstHost,
        .dstDevice = box->dstDevice,
        .dstPitch = box->dstPitch,
        .WidthInBytes = box->WidthInBytes,
        .Height = box->Height,
    };
    return cu_copy_command(queue, "cuMemcpy2DAsync",
                           cu_symbols_of(queue)->cuMemcpy2DAsync(&rectangle, queue->stream),
                           "2-D copy", rectangle.WidthInBytes * rectangle.Height);
}

weir_status cu_copy_box(const struct cu_queue *queue, const struct cu_box *box)
{
    CUDA_MEMCPY3D command_box = {.WidthInBytes = box->size.width,
                                 .Height = box->size.height,
                                 .Depth = box->size.depth};
    set_source(&command_box, box->from, &box->src);
    set_destination(&command_box, box->to, &box->dst);
    if (queue->builder)
        return cu_build_box(queue->builder, &command_box);
    if (box->size.depth == 1)
        return copy_rectangle(queue, &command_box);
    return cu_copy_command(queue, "cuMemcpy3DAsync",
                           cu_symbols_of(queue)->cuMemcpy3DAsync(&command_box, queue->stream),
                           "3-D copy", box->size.width * box->size.height * box->size.depth);
}

// Copies rows in pieces, packed in staging memory on the device.
static weir_status copy_rows_on_host(const struct cu_queue *queue, const struct cu_box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;
    const size_t rows = CU_STAGING_BYTES / width < height ? CU_STAGING_BYTES / width : height;
    struct cu_buffer staging = {.device = queue->device, .size = rows * width};
    weir_status status = cu_take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    const struct weir_volume packed = {NULL, 0, width, staging.size};
    for (size_t row = 0; row < height && status == WEIR_OK; row += rows) {
        struct cu_box in = *box;
        in.size.height = height - row < rows ? height - row : rows;
        in.src.offset += row * in.src.pitch;
        in.dst.offset += row * in.dst.pitch;
        struct cu_box out = in;
        in.to = &staging;
        in.dst = packed;
        out.from = &staging;
        out.src = packed;
        status = cu_copy_box(queue, &in);
        if (status == WEIR_OK)
            status = cu_copy_box(queue, &out);
    }
    return cu_drop_staging(queue, staging.address, status);
}

static weir_status copy_by_row(const struct cu_queue *queue, const struct cu_box *box)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < box->size.height && status == WEIR_OK; row++)
        status = copy(queue, box->to, box->dst.offset + row * box->dst.pitch, box->from,
                      box->src.offset + row * box->src.pitch, box->size.width);
    return status;
}

static bool is_beyond_pitch(const struct cu_queue *queue, const struct cu_box *box)
{
    const size_t limit = queue->device->attributes.max_pitch;
    return box->dst.pitch > limit || box->src.pitch > limit;
}

// Rows that the driver does not accept as a rectangle (a pitch beyond its limit) are copied one by
// one.
static weir_status copy_slice(const struct cu_queue *queue, const struct cu_box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;

    if (height == 1 || (box->dst.pitch == width && box->src.pitch == width))
        return copy(queue, box->to, box->dst.offset, box->from, box->src.offset, width * height);
    if (is_beyond_pitch(queue, box) || is_out_of_reach(queue, box->to, box->from))
        return copy_by_row(queue, box);
    if (cu_is_peer_copy(box->to, box->from))
        return cu_copy_peer_3d(queue, box->to, &box->dst, box->from, &box->src, &box->size);
    if (box->to->pointer && box->from->pointer)
        return width > CU_STAGING_BYTES ? copy_by_row(queue, box) : copy_rows_on_host(queue, box);
    return cu_copy_box(queue, box);
}

weir_status cu_submit_copy_2d(const struct weir_link *link, struct cu_queue *queue,
                              const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.copy_2d.dst;
    const struct weir_plane *src = &operation->u.copy_2d.src;
    const size_t height = operation->u.copy_2d.height;
    const struct cu_box box = {
        .to = cu_buffer_of(link, dst->buffer),
        .from = cu_buffer_of(link, src->buffer),
        .dst = cu_volume_of(dst, height),
        .src = cu_volume_of(src, height),
        .size = {operation->u.copy_2d.width, height, 1},
    };
    return copy_slice(queue, &box);
}

static bool is_packed(const struct weir_volume *volume, size_t height)
{
    return volume->slice_pitch == volume->pitch * height;
}

// Makes one slice of several, if rows and slices have one pitch.
static void flatten(struct cu_box *box)
{
    const size_t height = box->size.height;
    if (height == 1) {
        box->dst.pitch = box->dst.slice_pitch;
        box->src.pitch = box->src.slice_pitch;
    }
    if (height != 1 && (!is_packed(&box->dst, height) || !is_packed(&box->src, height)))
        return;
    box->size.height *= box->size.depth;
    box->size.depth = 1;
    box->dst.slice_pitch = box->dst.pitch * box->size.height;
    box->src.slice_pitch = box->src.pitch * box->size.height;
}

// The driver counts the rows from one slice to the next.
static bool has_whole_rows(const struct weir_volume *volume)
{
    return volume->slice_pitch % volume->pitch == 0;
}

static bool is_one_command(const struct cu_queue *queue, const struct cu_box *box)
{
    return has_whole_rows(&box->dst) && has_whole_rows(&box->src) && !is_beyond_pitch(queue, box) &&
           !is_out_of_reach(queue, box->to, box->from) && !(box->to->pointer && box->from->pointer);
}

static weir_status copy_by_slice(const struct cu_queue *queue, const struct cu_box *box)
{
    weir_status status = WEIR_OK;
    struct cu_box slice = *box;
    slice.size.depth = 1;
    for (size_t i = 0; i < box->size.depth && status == WEIR_OK; i++) {
        slice.dst.offset = box->dst.offset + i * box->dst.slice_pitch;
        slice.src.offset = box->src.offset + i * box->src.slice_pitch;
        status = copy_slice(queue, &slice);
    }
    return status;
}

weir_status cu_submit_copy_3d(const struct weir_link *link, struct cu_queue *queue,
                              const struct weir_operation *operation)
{
    struct cu_box box = {
        .to = cu_buffer_of(link, operation->u.copy_3d.dst.buffer),
        .from = cu_buffer_of(link, operation->u.copy_3d.src.buffer),
        .dst = operation->u.copy_3d.dst,
        .src = operation->u.copy_3d.src,
        .size = {operation->u.copy_3d.width, operation->u.copy_3d.height,
                 operation->u.copy_3d.depth},
    };
    if (box.size.depth > 1)
        flatten(&box);
    if (box.size.depth == 1 || !is_one_command(queue, &box))
        return copy_by_slice(queue, &box);
    if (cu_is_peer_copy(box.to, box.from))
        return cu_copy_peer_3d(queue, box.to, &box.dst, box.from, &box.src, &box.size);
    return cu_copy_box(queue, &box);
}
