// Copies. The driver copies within host memory only by blocking, so such copies go through device
// memory that is allocated and freed in the order of the queue.
#include "backends/cuda/copy_parts.h"

// Commands of a stream.

static weir_status write_in_stream(const struct cu_target *target, CUdeviceptr dst, const char *src,
                                   size_t size)
{
    const struct cu_queue *queue = target->queue;
    return cu_copy_command(queue, "cuMemcpyHtoDAsync",
                           cu_symbols_of(queue)->cuMemcpyHtoDAsync(dst, src, size, queue->stream),
                           "copy from HOST to DEVICE", size);
}

static weir_status read_in_stream(const struct cu_target *target, char *dst, CUdeviceptr src,
                                  size_t size)
{
    const struct cu_queue *queue = target->queue;
    return cu_copy_command(queue, "cuMemcpyDtoHAsync",
                           cu_symbols_of(queue)->cuMemcpyDtoHAsync(dst, src, size, queue->stream),
                           "copy from DEVICE to HOST", size);
}

static weir_status copy_in_stream(const struct cu_target *target, CUdeviceptr dst, CUdeviceptr src,
                                  size_t size)
{
    const struct cu_queue *queue = target->queue;
    return cu_copy_command(queue, "cuMemcpyDtoDAsync",
                           cu_symbols_of(queue)->cuMemcpyDtoDAsync(dst, src, size, queue->stream),
                           "copy from DEVICE to DEVICE", size);
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

static weir_status box_in_stream(const struct cu_target *target, const CUDA_MEMCPY3D *box)
{
    const struct cu_queue *queue = target->queue;
    if (box->Depth == 1)
        return copy_rectangle(queue, box);
    return cu_copy_command(queue, "cuMemcpy3DAsync",
                           cu_symbols_of(queue)->cuMemcpy3DAsync(box, queue->stream), "3-D copy",
                           box->WidthInBytes * box->Height * box->Depth);
}

static weir_status take_in_stream(const struct cu_target *target, size_t size,
                                  CUdeviceptr *out_staging)
{
    const struct cu_queue *queue = target->queue;
    CUresult code =
        cu_symbols_of(queue)->cuMemAllocFromPoolAsync(out_staging, size, queue->device->pool,
                                                      queue->stream);
    return cu_copy_check(queue, "cuMemAllocFromPoolAsync", code,
                         "memory on the way between HOST buffers", size);
}

static weir_status drop_in_stream(const struct cu_target *target, CUdeviceptr staging,
                                  weir_status status)
{
    const struct cu_queue *queue = target->queue;
    CUresult code = cu_symbols_of(queue)->cuMemFreeAsync(staging, queue->stream);
    return status < 0 ? status
                      : cu_copy_check(queue, "cuMemFreeAsync", code, "end of memory on the way", 0);
}

static const struct cu_commands in_stream = {
    .write = write_in_stream,
    .read = read_in_stream,
    .copy = copy_in_stream,
    .box = box_in_stream,
    .set = cu_set_in_stream,
    .peer = cu_copy_peer,
    .peer_box = cu_copy_peer_3d,
    .take_staging = take_in_stream,
    .drop_staging = drop_in_stream,
};

// Copies of bytes.

static weir_status copy_on_host(const struct cu_target *target, char *dst, const char *src,
                                size_t size)
{
    CUdeviceptr staging;
    weir_status status = target->commands->take_staging(target, cu_piece_of(size, 0), &staging);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += CU_STAGING_BYTES) {
        const size_t piece = cu_piece_of(size, done);
        status = target->commands->write(target, staging, src + done, piece);
        if (status == WEIR_OK)
            status = target->commands->read(target, dst + done, staging, piece);
    }
    return target->commands->drop_staging(target, staging, status);
}

// Between the host and a device whose memory the target's device cannot access: through memory
// of the latter.
static weir_status copy_by_own_device(const struct cu_target *target, const struct cu_buffer *dst,
                                      size_t dst_offset, const struct cu_buffer *src,
                                      size_t src_offset, size_t size)
{
    struct cu_buffer staging = {.device = target->device, .size = cu_piece_of(size, 0)};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += CU_STAGING_BYTES) {
        const size_t piece = cu_piece_of(size, done);
        if (src->pointer) {
            status = target->commands->write(target, staging.address,
                                             src->pointer + src_offset + done, piece);
            if (status == WEIR_OK)
                status = target->commands->peer(target, dst, dst_offset + done, &staging, 0, piece);
        } else {
            status = target->commands->peer(target, &staging, 0, src, src_offset + done, piece);
            if (status == WEIR_OK)
                status = target->commands->read(target, dst->pointer + dst_offset + done,
                                                staging.address, piece);
        }
    }
    return target->commands->drop_staging(target, staging.address, status);
}

// Whether this is a copy between the host and memory that the target's device cannot access.
static bool is_out_of_reach(const struct cu_target *target, const struct cu_buffer *dst,
                            const struct cu_buffer *src)
{
    return (dst->pointer && !src->pointer && !cu_reaches(target->device, src)) ||
           (src->pointer && !dst->pointer && !cu_reaches(target->device, dst));
}

static weir_status copy(const struct cu_target *target, const struct cu_buffer *dst,
                        size_t dst_offset, const struct cu_buffer *src, size_t src_offset,
                        size_t size)
{
    if (dst->pointer && src->pointer)
        return copy_on_host(target, dst->pointer + dst_offset, src->pointer + src_offset, size);
    if (is_out_of_reach(target, dst, src))
        return copy_by_own_device(target, dst, dst_offset, src, src_offset, size);
    if (dst->pointer)
        return target->commands->read(target, dst->pointer + dst_offset, src->address + src_offset,
                                      size);
    if (src->pointer)
        return target->commands->write(target, dst->address + dst_offset, src->pointer + src_offset,
                                       size);
    if (cu_is_peer_copy(dst, src))
        return target->commands->peer(target, dst, dst_offset, src, src_offset, size);
    return cu_copy_device(target, dst->address + dst_offset, src->address + src_offset, size);
}

static weir_status split_copy(const struct weir_link *link, const struct cu_target *target,
                              const struct weir_operation *operation)
{
    return copy(target, cu_buffer_of(link, operation->u.copy.dst), operation->u.copy.dst_offset,
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

weir_status cu_copy_box(const struct cu_target *target, const struct cu_box *box)
{
    CUDA_MEMCPY3D command_box = {.WidthInBytes = box->size.width,
                                 .Height = box->size.height,
                                 .Depth = box->size.depth};
    set_source(&command_box, box->from, &box->src);
    set_destination(&command_box, box->to, &box->dst);
    return target->commands->box(target, &command_box);
}

// Copies rows in pieces, packed in staging memory on the device.
static weir_status copy_rows_on_host(const struct cu_target *target, const struct cu_box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;
    const size_t rows = CU_STAGING_BYTES / width < height ? CU_STAGING_BYTES / width : height;
    struct cu_buffer staging = {.device = target->device, .size = rows * width};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
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
        status = cu_copy_box(target, &in);
        if (status == WEIR_OK)
            status = cu_copy_box(target, &out);
    }
    return target->commands->drop_staging(target, staging.address, status);
}

static weir_status copy_by_row(const struct cu_target *target, const struct cu_box *box)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < box->size.height && status == WEIR_OK; row++)
        status = copy(target, box->to, box->dst.offset + row * box->dst.pitch, box->from,
                      box->src.offset + row * box->src.pitch, box->size.width);
    return status;
}

static bool is_beyond_pitch(const struct cu_target *target, const struct cu_box *box)
{
    const size_t limit = target->device->attributes.max_pitch;
    return box->dst.pitch > limit || box->src.pitch > limit;
}

// Rows that the driver does not accept as a rectangle (a pitch beyond its limit) are copied one by
// one.
static weir_status copy_slice(const struct cu_target *target, const struct cu_box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;

    if (height == 1 || (box->dst.pitch == width && box->src.pitch == width))
        return copy(target, box->to, box->dst.offset, box->from, box->src.offset, width * height);
    if (is_beyond_pitch(target, box) || is_out_of_reach(target, box->to, box->from))
        return copy_by_row(target, box);
    if (cu_is_peer_copy(box->to, box->from))
        return target->commands->peer_box(target, box->to, &box->dst, box->from, &box->src,
                                          &box->size);
    if (box->to->pointer && box->from->pointer)
        return width > CU_STAGING_BYTES ? copy_by_row(target, box) : copy_rows_on_host(target, box);
    return cu_copy_box(target, box);
}

static weir_status split_copy_2d(const struct weir_link *link, const struct cu_target *target,
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
    return copy_slice(target, &box);
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

static bool is_one_command(const struct cu_target *target, const struct cu_box *box)
{
    return has_whole_rows(&box->dst) && has_whole_rows(&box->src) &&
           !is_beyond_pitch(target, box) && !is_out_of_reach(target, box->to, box->from) &&
           !(box->to->pointer && box->from->pointer);
}

static weir_status copy_by_slice(const struct cu_target *target, const struct cu_box *box)
{
    weir_status status = WEIR_OK;
    struct cu_box slice = *box;
    slice.size.depth = 1;
    for (size_t i = 0; i < box->size.depth && status == WEIR_OK; i++) {
        slice.dst.offset = box->dst.offset + i * box->dst.slice_pitch;
        slice.src.offset = box->src.offset + i * box->src.slice_pitch;
        status = copy_slice(target, &slice);
    }
    return status;
}

static weir_status split_copy_3d(const struct weir_link *link, const struct cu_target *target,
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
    if (box.size.depth == 1 || !is_one_command(target, &box))
        return copy_by_slice(target, &box);
    if (cu_is_peer_copy(box.to, box.from))
        return target->commands->peer_box(target, box.to, &box.dst, box.from, &box.src, &box.size);
    return cu_copy_box(target, &box);
}

weir_status cu_split_copy(const struct weir_link *link, const struct cu_target *target,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        return split_copy(link, target, operation);
    case WEIR_OPERATION_COPY_2D:
        return split_copy_2d(link, target, operation);
    case WEIR_OPERATION_COPY_3D:
        return split_copy_3d(link, target, operation);
    case WEIR_OPERATION_FILL:
        return cu_split_fill(link, target, operation);
    default:
        return cu_split_fill_2d(link, target, operation);
    }
}

weir_status cu_submit_copy(const struct weir_link *link, struct cu_queue *queue,
                           const struct weir_operation *operation)
{
    const struct cu_target target = {.device = queue->device,
                                     .commands = &in_stream,
                                     .queue = queue};
    return cu_split_copy(link, &target, operation);
}
