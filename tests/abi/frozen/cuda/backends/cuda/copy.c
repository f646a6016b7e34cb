// Copies and fills. The driver copies within host memory only by blocking, so such copies go
// through device memory that is allocated and freed in the order of the queue. So do fills of HOST
// memory for which the driver has no memset: patterns of more than four bytes, and addresses that
// are not a multiple of the pattern's size.
//
// The driver has no memset for patterns of 8 and 16 bytes on the device either: the first pattern
// is written word by word, and the filled part is then copied to the bytes after it, doubling each
// time.
#include <string.h>

#include "tests/abi/frozen/cuda/backends/cuda/cu.h"

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
    const CUDA_MEMCPY2D line = {
        .srcMemoryType = from,
        .srcHost = from == CU_MEMORYTYPE_HOST ? (const void *)(uintptr_t)src : NULL,
        .srcDevice = from == CU_MEMORYTYPE_HOST ? 0 : src,
        .srcPitch = size,
        .dstMemoryType = to,
        .dstHost = to == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)dst : NULL,
        .dstDevice = to == CU_MEMORYTYPE_HOST ? 0 : dst,
        .dstPitch = size,
        .WidthInBytes = size,
        .Height = 1,
    };
    return cu_build_copy(queue->builder, &line);
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

// 2-D copies.

static void set_source(CUDA_MEMCPY2D *rectangle, const struct cu_buffer *buffer, size_t offset,
                       size_t pitch)
{
    rectangle->srcMemoryType = buffer->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (buffer->pointer)
        rectangle->srcHost = buffer->pointer + offset;
    else
        rectangle->srcDevice = buffer->address + offset;
    rectangle->srcPitch = pitch;
}

static void set_destination(CUDA_MEMCPY2D *rectangle, const struct cu_buffer *buffer, size_t offset,
                            size_t pitch)
{
    rectangle->dstMemoryType = buffer->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (buffer->pointer)
        rectangle->dstHost = buffer->pointer + offset;
    else
        rectangle->dstDevice = buffer->address + offset;
    rectangle->dstPitch = pitch;
}

static weir_status copy_rectangle(const struct cu_queue *queue, const CUDA_MEMCPY2D *rectangle)
{
    if (queue->builder)
        return cu_build_copy(queue->builder, rectangle);
    return command(queue, "cuMemcpy2DAsync",
                   symbols_of(queue)->cuMemcpy2DAsync(rectangle, queue->stream), "2-D copy",
                   rectangle->WidthInBytes * rectangle->Height);
}

// Copies rows in pieces, packed in staging memory on the device, which holds `rows` of them.
static weir_status copy_rows_on_host(const struct cu_queue *queue, const struct weir_plane *dst,
                                     const struct cu_buffer *to, const struct weir_plane *src,
                                     const struct cu_buffer *from, size_t width, size_t height)
{
    const size_t rows = STAGING_BYTES / width < height ? STAGING_BYTES / width : height;
    struct cu_buffer staging = {.device = queue->device, .size = rows * width};
    weir_status status = take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    for (size_t row = 0; row < height && status == WEIR_OK; row += rows) {
        CUDA_MEMCPY2D rectangle = {
            .WidthInBytes = width,
            .Height = height - row < rows ? height - row : rows,
        };
        set_source(&rectangle, from, src->offset + row * src->pitch, src->pitch);
        set_destination(&rectangle, &staging, 0, width);
        status = copy_rectangle(queue, &rectangle);
        if (status < 0)
            break;
        CUDA_MEMCPY2D back = {.WidthInBytes = width, .Height = rectangle.Height};
        set_source(&back, &staging, 0, width);
        set_destination(&back, to, dst->offset + row * dst->pitch, dst->pitch);
        status = copy_rectangle(queue, &back);
    }
    return drop_staging(queue, staging.address, status);
}

static weir_status copy_by_row(const struct cu_queue *queue, const struct weir_plane *dst,
                               const struct cu_buffer *to, const struct weir_plane *src,
                               const struct cu_buffer *from, size_t width, size_t height)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < height && status == WEIR_OK; row++)
        status = copy(queue, to, dst->offset + row * dst->pitch, from,
                      src->offset + row * src->pitch, width);
    return status;
}

// Copies that the driver does not accept as a rectangle (a pitch beyond its limit) are made row by
// row.
weir_status cu_submit_copy_2d(const struct weir_link *link, struct cu_queue *queue,
                              const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.copy_2d.dst;
    const struct weir_plane *src = &operation->u.copy_2d.src;
    const struct cu_buffer *to = cu_buffer_of(link, dst->buffer);
    const struct cu_buffer *from = cu_buffer_of(link, src->buffer);
    const size_t width = operation->u.copy_2d.width;
    const size_t height = operation->u.copy_2d.height;
    const size_t limit = queue->device->attributes.max_pitch;

    if (height == 1 || (dst->pitch == width && src->pitch == width))
        return copy(queue, to, dst->offset, from, src->offset, width * height);
    if (dst->pitch > limit || src->pitch > limit || is_out_of_reach(queue, to, from))
        return copy_by_row(queue, dst, to, src, from, width, height);
    if (cu_is_peer_copy(to, from))
        return cu_copy_peer_2d(queue, to, dst, from, src, width, height);
    if (to->pointer && from->pointer)
        return width > STAGING_BYTES ? copy_by_row(queue, dst, to, src, from, width, height)
                                     : copy_rows_on_host(queue, dst, to, src, from, width, height);
    CUDA_MEMCPY2D rectangle = {.WidthInBytes = width, .Height = height};
    set_source(&rectangle, from, src->offset, src->pitch);
    set_destination(&rectangle, to, dst->offset, dst->pitch);
    return copy_rectangle(queue, &rectangle);
}

// Fills.

static weir_status set_bytes(const struct cu_queue *queue, CUdeviceptr dst, size_t size,
                             const void *pattern)
{
    uint8_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return cu_build_set(queue->builder, dst, value, sizeof value, size);
    return command(queue, "cuMemsetD8Async",
                   symbols_of(queue)->cuMemsetD8Async(dst, value, size, queue->stream), "fill",
                   size);
}

static weir_status set_halves(const struct cu_queue *queue, CUdeviceptr dst, size_t size,
                              const void *pattern)
{
    uint16_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return cu_build_set(queue->builder, dst, value, sizeof value, size / 2);
    return command(queue, "cuMemsetD16Async",
                   symbols_of(queue)->cuMemsetD16Async(dst, value, size / 2, queue->stream), "fill",
                   size);
}

static weir_status set_words(const struct cu_queue *queue, CUdeviceptr dst, size_t size,
                             const void *pattern)
{
    uint32_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return cu_build_set(queue->builder, dst, value, sizeof value, size / 4);
    return command(queue, "cuMemsetD32Async",
                   symbols_of(queue)->cuMemsetD32Async(dst, value, size / 4, queue->stream), "fill",
                   size);
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
        return set_words(queue, dst, size, pattern);
    for (size_t i = 0; i < pattern_size && status == WEIR_OK; i += 4)
        status = set_words(queue, dst + i, 4, pattern + i);
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
        return set_bytes(queue, dst, size, pattern);
    case 2:
        return set_halves(queue, dst, size, pattern);
    case 4:
        return set_words(queue, dst, size, pattern);
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

weir_status cu_submit_fill(const struct weir_link *link, struct cu_queue *queue,
                           const struct weir_operation *operation)
{
    const struct cu_buffer *dst = cu_buffer_of(link, operation->u.fill.dst);
    const size_t offset = operation->u.fill.dst_offset;
    const size_t size = operation->u.fill.size;
    const void *pattern = operation->u.fill.pattern;
    const size_t pattern_size = operation->u.fill.pattern_size;
    const bool aligned = (dst->address + offset) % pattern_size == 0;

    if (dst->pointer && (pattern_size > 4 || !aligned))
        return fill_staged(queue, dst->pointer + offset, size, pattern, pattern_size);
    return fill_device(queue, dst->address + offset, size, pattern, pattern_size);
}
