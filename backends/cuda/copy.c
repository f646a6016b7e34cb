// Copies and fills. The driver copies within host memory only by blocking, so such copies go
// through device memory that is allocated and freed in the order of the queue. So do fills of HOST
// memory for which the driver has no memset: patterns of more than four bytes, and addresses that
// are not a multiple of the pattern's size.
//
// The driver has no memset for patterns of 8 and 16 bytes on the device either: the first pattern
// is written word by word, and the filled part is then copied to the bytes after it, doubling each
// time. So it is with the rows of a 2-D fill.
#include <string.h>

#include "backends/cuda/cu.h"

#define STAGING_BYTES ((size_t)16 << 20)

static weir_status check(const struct cu_queue *queue, const char *call, CUresult code,
                         const char *what, size_t size)
{
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, call, code, "%s of %zu bytes", what, size);
}

// A command of the operation.
static weir_status command(const struct cu_queue *queue, const char *call, CUresult code,
                           const char *what, size_t size)
{
    cu_watch_command(queue);
    return check(queue, call, code, what, size);
}

static const struct cu_symbols *symbols_of(const struct cu_queue *queue)
{
    return &queue->device->module->cu;
}

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
    return command(queue, "cuMemcpyHtoDAsync",
                   symbols_of(queue)->cuMemcpyHtoDAsync(dst, src, size, queue->stream),
                   "copy from HOST to DEVICE", size);
}

static weir_status read_device(const struct cu_queue *queue, char *dst, CUdeviceptr src,
                               size_t size)
{
    if (queue->builder)
        return build_line(queue, CU_MEMORYTYPE_HOST, (CUdeviceptr)(uintptr_t)dst,
                          CU_MEMORYTYPE_DEVICE, src, size);
    return command(queue, "cuMemcpyDtoHAsync",
                   symbols_of(queue)->cuMemcpyDtoHAsync(dst, src, size, queue->stream),
                   "copy from DEVICE to HOST", size);
}

static weir_status copy_device(const struct cu_queue *queue, CUdeviceptr dst, CUdeviceptr src,
                               size_t size)
{
    if (queue->builder)
        return build_line(queue, CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, size);
    return command(queue, "cuMemcpyDtoDAsync",
                   symbols_of(queue)->cuMemcpyDtoDAsync(dst, src, size, queue->stream),
                   "copy from DEVICE to DEVICE", size);
}

// Temporary memory, allocated and freed in the order of the queue.
static weir_status take_staging(const struct cu_queue *queue, size_t size, CUdeviceptr *out_staging)
{
    if (queue->builder)
        return cu_build_staging(queue->builder, size, out_staging);
    CUresult code = symbols_of(queue)->cuMemAllocFromPoolAsync(out_staging, size,
                                                               queue->device->pool, queue->stream);
    return check(queue, "cuMemAllocFromPoolAsync", code, "memory on the way between HOST buffers",
                 size);
}

// Keeps the first error.
static weir_status drop_staging(const struct cu_queue *queue, CUdeviceptr staging,
                                weir_status status)
{
    if (queue->builder)
        return status;
    CUresult code = symbols_of(queue)->cuMemFreeAsync(staging, queue->stream);
    return status < 0 ? status
                      : check(queue, "cuMemFreeAsync", code, "end of memory on the way", 0);
}

static size_t piece_of(size_t size, size_t done)
{
    return size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
}

static weir_status copy_on_host(const struct cu_queue *queue, char *dst, const char *src,
                                size_t size)
{
    CUdeviceptr staging;
    weir_status status = take_staging(queue, piece_of(size, 0), &staging);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = piece_of(size, done);
        status = write_device(queue, staging, src + done, piece);
        if (status == WEIR_OK)
            status = read_device(queue, dst + done, staging, piece);
    }
    return drop_staging(queue, staging, status);
}

// Between the host and a device whose memory this queue's device cannot access: through memory of
// the queue's device.
static weir_status copy_by_own_device(const struct cu_queue *queue, const struct cu_buffer *dst,
                                      size_t dst_offset, const struct cu_buffer *src,
                                      size_t src_offset, size_t size)
{
    struct cu_buffer staging = {.device = queue->device, .size = piece_of(size, 0)};
    weir_status status = take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = piece_of(size, done);
        if (src->pointer) {
            status = write_device(queue, staging.address, src->pointer + src_offset + done, piece);
            if (status == WEIR_OK)
                status = cu_copy_peer(queue, dst, dst_offset + done, &staging, 0, piece);
        } else {
            status = cu_copy_peer(queue, &staging, 0, src, src_offset + done, piece);
            if (status == WEIR_OK)
                status =
                    read_device(queue, dst->pointer + dst_offset + done, staging.address, piece);
        }
    }
    return drop_staging(queue, staging.address, status);
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
        return read_device(queue, dst->pointer + dst_offset, src->address + src_offset, size);
    if (src->pointer)
        return write_device(queue, dst->address + dst_offset, src->pointer + src_offset, size);
    if (cu_is_peer_copy(dst, src))
        return cu_copy_peer(queue, dst, dst_offset, src, src_offset, size);
    return copy_device(queue, dst->address + dst_offset, src->address + src_offset, size);
}

weir_status cu_submit_copy(const struct weir_link *link, struct cu_queue *queue,
                           const struct weir_operation *operation)
{
    return copy(queue, cu_buffer_of(link, operation->u.copy.dst), operation->u.copy.dst_offset,
                cu_buffer_of(link, operation->u.copy.src), operation->u.copy.src_offset,
                operation->u.copy.size);
}

// 2-D and 3-D copies. A 2-D copy is a box of one slice.

struct box {
    const struct cu_buffer *to;
    const struct cu_buffer *from;
    struct weir_volume dst;
    struct weir_volume src;
    struct cu_size size;
};

// The slice pitch of a plane is only used by commands that have one.
static struct weir_volume volume_of(const struct weir_plane *plane, size_t height)
{
    return (struct weir_volume){plane->buffer, plane->offset, plane->pitch, plane->pitch * height};
}

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
    return command(queue, "cuMemcpy2DAsync",
                   symbols_of(queue)->cuMemcpy2DAsync(&rectangle, queue->stream), "2-D copy",
                   rectangle.WidthInBytes * rectangle.Height);
}

// One command.
static weir_status copy_box(const struct cu_queue *queue, const struct box *box)
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
    return command(queue, "cuMemcpy3DAsync",
                   symbols_of(queue)->cuMemcpy3DAsync(&command_box, queue->stream), "3-D copy",
                   box->size.width * box->size.height * box->size.depth);
}

// Copies rows in pieces, packed in staging memory on the device.
static weir_status copy_rows_on_host(const struct cu_queue *queue, const struct box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;
    const size_t rows = STAGING_BYTES / width < height ? STAGING_BYTES / width : height;
    struct cu_buffer staging = {.device = queue->device, .size = rows * width};
    weir_status status = take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    const struct weir_volume packed = {NULL, 0, width, staging.size};
    for (size_t row = 0; row < height && status == WEIR_OK; row += rows) {
        struct box in = *box;
        in.size.height = height - row < rows ? height - row : rows;
        in.src.offset += row * in.src.pitch;
        in.dst.offset += row * in.dst.pitch;
        struct box out = in;
        in.to = &staging;
        in.dst = packed;
        out.from = &staging;
        out.src = packed;
        status = copy_box(queue, &in);
        if (status == WEIR_OK)
            status = copy_box(queue, &out);
    }
    return drop_staging(queue, staging.address, status);
}

static weir_status copy_by_row(const struct cu_queue *queue, const struct box *box)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < box->size.height && status == WEIR_OK; row++)
        status = copy(queue, box->to, box->dst.offset + row * box->dst.pitch, box->from,
                      box->src.offset + row * box->src.pitch, box->size.width);
    return status;
}

static bool is_beyond_pitch(const struct cu_queue *queue, const struct box *box)
{
    const size_t limit = queue->device->attributes.max_pitch;
    return box->dst.pitch > limit || box->src.pitch > limit;
}

// Rows that the driver does not accept as a rectangle (a pitch beyond its limit) are copied one by
// one.
static weir_status copy_slice(const struct cu_queue *queue, const struct box *box)
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
        return width > STAGING_BYTES ? copy_by_row(queue, box) : copy_rows_on_host(queue, box);
    return copy_box(queue, box);
}

weir_status cu_submit_copy_2d(const struct weir_link *link, struct cu_queue *queue,
                              const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.copy_2d.dst;
    const struct weir_plane *src = &operation->u.copy_2d.src;
    const size_t height = operation->u.copy_2d.height;
    const struct box box = {
        .to = cu_buffer_of(link, dst->buffer),
        .from = cu_buffer_of(link, src->buffer),
        .dst = volume_of(dst, height),
        .src = volume_of(src, height),
        .size = {operation->u.copy_2d.width, height, 1},
    };
    return copy_slice(queue, &box);
}

static bool is_packed(const struct weir_volume *volume, size_t height)
{
    return volume->slice_pitch == volume->pitch * height;
}

// Makes one slice of several, if rows and slices have one pitch.
static void flatten(struct box *box)
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

static bool is_one_command(const struct cu_queue *queue, const struct box *box)
{
    return has_whole_rows(&box->dst) && has_whole_rows(&box->src) && !is_beyond_pitch(queue, box) &&
           !is_out_of_reach(queue, box->to, box->from) && !(box->to->pointer && box->from->pointer);
}

static weir_status copy_by_slice(const struct cu_queue *queue, const struct box *box)
{
    weir_status status = WEIR_OK;
    struct box slice = *box;
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
    struct box box = {
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
    return copy_box(queue, &box);
}

// Fills.

static weir_status build_set(const struct cu_queue *queue, CUdeviceptr dst, size_t pitch,
                             uint32_t value, unsigned element, size_t width, size_t height)
{
    const CUDA_MEMSET_NODE_PARAMS set = {
        .dst = dst,
        .pitch = height > 1 ? pitch : 0,
        .value = value,
        .elementSize = element,
        .width = width / element,
        .height = height,
    };
    return cu_build_set(queue->builder, &set);
}

// Rows of `width` bytes; one row has no pitch.
static weir_status set_bytes(const struct cu_queue *queue, CUdeviceptr dst, size_t pitch,
                             const void *pattern, size_t width, size_t height)
{
    const struct cu_symbols *cu = symbols_of(queue);
    uint8_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return build_set(queue, dst, pitch, value, sizeof value, width, height);
    if (height == 1)
        return command(queue, "cuMemsetD8Async",
                       cu->cuMemsetD8Async(dst, value, width, queue->stream), "fill", width);
    return command(queue, "cuMemsetD2D8Async",
                   cu->cuMemsetD2D8Async(dst, pitch, value, width, height, queue->stream),
                   "2-D fill", width * height);
}

static weir_status set_halves(const struct cu_queue *queue, CUdeviceptr dst, size_t pitch,
                              const void *pattern, size_t width, size_t height)
{
    const struct cu_symbols *cu = symbols_of(queue);
    uint16_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return build_set(queue, dst, pitch, value, sizeof value, width, height);
    if (height == 1)
        return command(queue, "cuMemsetD16Async",
                       cu->cuMemsetD16Async(dst, value, width / 2, queue->stream), "fill", width);
    return command(queue, "cuMemsetD2D16Async",
                   cu->cuMemsetD2D16Async(dst, pitch, value, width / 2, height, queue->stream),
                   "2-D fill", width * height);
}

static weir_status set_words(const struct cu_queue *queue, CUdeviceptr dst, size_t pitch,
                             const void *pattern, size_t width, size_t height)
{
    const struct cu_symbols *cu = symbols_of(queue);
    uint32_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return build_set(queue, dst, pitch, value, sizeof value, width, height);
    if (height == 1)
        return command(queue, "cuMemsetD32Async",
                       cu->cuMemsetD32Async(dst, value, width / 4, queue->stream), "fill", width);
    return command(queue, "cuMemsetD2D32Async",
                   cu->cuMemsetD2D32Async(dst, pitch, value, width / 4, height, queue->stream),
                   "2-D fill", width * height);
}

static bool repeats_a_word(const char *pattern, size_t pattern_size)
{
    return memcmp(pattern, pattern + 4, pattern_size - 4) == 0;
}

static weir_status set_long(const struct cu_queue *queue, CUdeviceptr dst, size_t size,
                            const char *pattern, size_t pattern_size)
{
    weir_status status = WEIR_OK;
    if (repeats_a_word(pattern, pattern_size))
        return set_words(queue, dst, 0, pattern, size, 1);
    for (size_t i = 0; i < pattern_size && status == WEIR_OK; i += 4)
        status = set_words(queue, dst + i, 0, pattern + i, 4, 1);
    for (size_t done = pattern_size; done < size && status == WEIR_OK; done *= 2)
        status = copy_device(queue, dst + done, dst, size - done < done ? size - done : done);
    return status;
}

// `dst` is a multiple of the pattern's size.
static weir_status fill_device(const struct cu_queue *queue, CUdeviceptr dst, size_t size,
                               const void *pattern, size_t pattern_size)
{
    switch (pattern_size) {
    case 1:
        return set_bytes(queue, dst, 0, pattern, size, 1);
    case 2:
        return set_halves(queue, dst, 0, pattern, size, 1);
    case 4:
        return set_words(queue, dst, 0, pattern, size, 1);
    default:
        return set_long(queue, dst, size, pattern, pattern_size);
    }
}

static weir_status fill_staged(const struct cu_queue *queue, char *dst, size_t size,
                               const void *pattern, size_t pattern_size)
{
    CUdeviceptr staging;
    const size_t first = piece_of(size, 0);
    weir_status status = take_staging(queue, first, &staging);
    if (status < 0)
        return status;
    status = fill_device(queue, staging, first, pattern, pattern_size);
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES)
        status = read_device(queue, dst + done, staging, piece_of(size, done));
    return drop_staging(queue, staging, status);
}

static bool is_staged(const struct cu_buffer *dst, size_t offset, size_t pattern_size)
{
    return dst->pointer && (pattern_size > 4 || (dst->address + offset) % pattern_size != 0);
}

static weir_status fill(const struct cu_queue *queue, const struct cu_buffer *dst, size_t offset,
                        size_t size, const void *pattern, size_t pattern_size)
{
    if (is_staged(dst, offset, pattern_size))
        return fill_staged(queue, dst->pointer + offset, size, pattern, pattern_size);
    return fill_device(queue, dst->address + offset, size, pattern, pattern_size);
}

weir_status cu_submit_fill(const struct weir_link *link, struct cu_queue *queue,
                           const struct weir_operation *operation)
{
    return fill(queue, cu_buffer_of(link, operation->u.fill.dst), operation->u.fill.dst_offset,
                operation->u.fill.size, operation->u.fill.pattern, operation->u.fill.pattern_size);
}

// 2-D fills.

static weir_status fill_by_row(const struct cu_queue *queue, const struct cu_buffer *to,
                               const struct weir_plane *dst, const struct cu_size *size,
                               const void *pattern, size_t pattern_size)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < size->height && status == WEIR_OK; row++)
        status =
            fill(queue, to, dst->offset + row * dst->pitch, size->width, pattern, pattern_size);
    return status;
}

// Fills staging memory on the device with packed rows and copies it to the host, as often as it
// takes.
static weir_status fill_rows_staged(const struct cu_queue *queue, const struct cu_buffer *to,
                                    const struct weir_plane *dst, const struct cu_size *size,
                                    const void *pattern, size_t pattern_size)
{
    const size_t most = STAGING_BYTES / size->width;
    const size_t rows = most < size->height ? most : size->height;
    struct cu_buffer staging = {.device = queue->device, .size = rows * size->width};
    weir_status status = take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    struct box box = {
        .to = to,
        .from = &staging,
        .dst = volume_of(dst, size->height),
        .src = {NULL, 0, size->width, staging.size},
        .size = *size,
    };
    status = fill_device(queue, staging.address, staging.size, pattern, pattern_size);
    for (size_t row = 0; row < size->height && status == WEIR_OK; row += rows) {
        box.dst.offset = dst->offset + row * dst->pitch;
        box.size.height = size->height - row < rows ? size->height - row : rows;
        status = copy_box(queue, &box);
    }
    return drop_staging(queue, staging.address, status);
}

// Fills the first row and copies the filled rows to the next ones, doubling each time.
static weir_status fill_rows_long(const struct cu_queue *queue, const struct cu_buffer *to,
                                  const struct weir_plane *dst, const struct cu_size *size,
                                  const void *pattern, size_t pattern_size)
{
    struct box box = {
        .to = to,
        .from = to,
        .dst = volume_of(dst, size->height),
        .src = volume_of(dst, size->height),
        .size = *size,
    };
    weir_status status =
        fill_device(queue, to->address + dst->offset, size->width, pattern, pattern_size);
    for (size_t done = 1; done < size->height && status == WEIR_OK; done *= 2) {
        box.dst.offset = dst->offset + done * dst->pitch;
        box.size.height = size->height - done < done ? size->height - done : done;
        status = copy_box(queue, &box);
    }
    return status;
}

static weir_status fill_rows(const struct cu_queue *queue, const struct cu_buffer *to,
                             const struct weir_plane *dst, const struct cu_size *size,
                             const char *pattern, size_t pattern_size)
{
    const CUdeviceptr address = to->address + dst->offset;
    switch (pattern_size) {
    case 1:
        return set_bytes(queue, address, dst->pitch, pattern, size->width, size->height);
    case 2:
        return set_halves(queue, address, dst->pitch, pattern, size->width, size->height);
    default:
        if (pattern_size == 4 || repeats_a_word(pattern, pattern_size))
            return set_words(queue, address, dst->pitch, pattern, size->width, size->height);
        return fill_rows_long(queue, to, dst, size, pattern, pattern_size);
    }
}

weir_status cu_submit_fill_2d(const struct weir_link *link, struct cu_queue *queue,
                              const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.fill_2d.dst;
    const struct cu_buffer *to = cu_buffer_of(link, dst->buffer);
    const struct cu_size size = {operation->u.fill_2d.width, operation->u.fill_2d.height, 1};
    const void *pattern = operation->u.fill_2d.pattern;
    const size_t pattern_size = operation->u.fill_2d.pattern_size;
    const bool staged = is_staged(to, dst->offset, pattern_size);

    if (size.height == 1 || dst->pitch == size.width)
        return fill(queue, to, dst->offset, size.width * size.height, pattern, pattern_size);
    if (dst->pitch > queue->device->attributes.max_pitch || (staged && size.width > STAGING_BYTES))
        return fill_by_row(queue, to, dst, &size, pattern, pattern_size);
    if (staged)
        return fill_rows_staged(queue, to, dst, &size, pattern, pattern_size);
    return fill_rows(queue, to, dst, &size, pattern, pattern_size);
}
