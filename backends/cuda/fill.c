// Fills. For patterns of more than four bytes in HOST memory, and addresses there that are not a
// multiple of the pattern's size, the driver has no memset, so they are made in device memory and
// copied.
//
// The driver has no memset for patterns of 8 and 16 bytes on the device either: the first pattern
// is written word by word, and the filled part is then copied to the bytes after it, doubling each
// time. So it is with the rows of a 2-D fill.
#include <string.h>

#include "backends/cuda/copy_parts.h"

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
    const struct cu_symbols *cu = cu_symbols_of(queue);
    uint8_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return build_set(queue, dst, pitch, value, sizeof value, width, height);
    if (height == 1)
        return cu_copy_command(queue, "cuMemsetD8Async",
                               cu->cuMemsetD8Async(dst, value, width, queue->stream), "fill",
                               width);
    return cu_copy_command(queue, "cuMemsetD2D8Async",
                           cu->cuMemsetD2D8Async(dst, pitch, value, width, height, queue->stream),
                           "2-D fill", width * height);
}

static weir_status set_halves(const struct cu_queue *queue, CUdeviceptr dst, size_t pitch,
                              const void *pattern, size_t width, size_t height)
{
    const struct cu_symbols *cu = cu_symbols_of(queue);
    uint16_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return build_set(queue, dst, pitch, value, sizeof value, width, height);
    if (height == 1)
        return cu_copy_command(queue, "cuMemsetD16Async",
                               cu->cuMemsetD16Async(dst, value, width / 2, queue->stream), "fill",
                               width);
    return cu_copy_command(queue, "cuMemsetD2D16Async",
                           cu->cuMemsetD2D16Async(dst, pitch, value, width / 2, height,
                                                  queue->stream),
                           "2-D fill", width * height);
}

static weir_status set_words(const struct cu_queue *queue, CUdeviceptr dst, size_t pitch,
                             const void *pattern, size_t width, size_t height)
{
    const struct cu_symbols *cu = cu_symbols_of(queue);
    uint32_t value;
    memcpy(&value, pattern, sizeof value);
    if (queue->builder)
        return build_set(queue, dst, pitch, value, sizeof value, width, height);
    if (height == 1)
        return cu_copy_command(queue, "cuMemsetD32Async",
                               cu->cuMemsetD32Async(dst, value, width / 4, queue->stream), "fill",
                               width);
    return cu_copy_command(queue, "cuMemsetD2D32Async",
                           cu->cuMemsetD2D32Async(dst, pitch, value, width / 4, height,
                                                  queue->stream),
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
        status = cu_copy_device(queue, dst + done, dst, size - done < done ? size - done : done);
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
    const size_t first = cu_piece_of(size, 0);
    weir_status status = cu_take_staging(queue, first, &staging);
    if (status < 0)
        return status;
    status = fill_device(queue, staging, first, pattern, pattern_size);
    for (size_t done = 0; done < size && status == WEIR_OK; done += CU_STAGING_BYTES)
        status = cu_read_device(queue, dst + done, staging, cu_piece_of(size, done));
    return cu_drop_staging(queue, staging, status);
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
    const size_t most = CU_STAGING_BYTES / size->width;
    const size_t rows = most < size->height ? most : size->height;
    struct cu_buffer staging = {.device = queue->device, .size = rows * size->width};
    weir_status status = cu_take_staging(queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    struct cu_box box = {
        .to = to,
        .from = &staging,
        .dst = cu_volume_of(dst, size->height),
        .src = {NULL, 0, size->width, staging.size},
        .size = *size,
    };
    status = fill_device(queue, staging.address, staging.size, pattern, pattern_size);
    for (size_t row = 0; row < size->height && status == WEIR_OK; row += rows) {
        box.dst.offset = dst->offset + row * dst->pitch;
        box.size.height = size->height - row < rows ? size->height - row : rows;
        status = cu_copy_box(queue, &box);
    }
    return cu_drop_staging(queue, staging.address, status);
}

// Fills the first row and copies the filled rows to the next ones, doubling each time.
static weir_status fill_rows_long(const struct cu_queue *queue, const struct cu_buffer *to,
                                  const struct weir_plane *dst, const struct cu_size *size,
                                  const void *pattern, size_t pattern_size)
{
    struct cu_box box = {
        .to = to,
        .from = to,
        .dst = cu_volume_of(dst, size->height),
        .src = cu_volume_of(dst, size->height),
        .size = *size,
    };
    weir_status status =
        fill_device(queue, to->address + dst->offset, size->width, pattern, pattern_size);
    for (size_t done = 1; done < size->height && status == WEIR_OK; done *= 2) {
        box.dst.offset = dst->offset + done * dst->pitch;
        box.size.height = size->height - done < done ? size->height - done : done;
        status = cu_copy_box(queue, &box);
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
    if (dst->pitch > queue->device->attributes.max_pitch ||
        (staged && size.width > CU_STAGING_BYTES))
        return fill_by_row(queue, to, dst, &size, pattern, pattern_size);
    if (staged)
        return fill_rows_staged(queue, to, dst, &size, pattern, pattern_size);
    return fill_rows(queue, to, dst, &size, pattern, pattern_size);
}
