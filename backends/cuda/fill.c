// Fills. For patterns of more than four bytes in HOST memory, and addresses there that are not a
// multiple of the pattern's size, the driver has no memset, so they are made in device memory and
// copied.
//
// The driver has no memset for patterns of 8 and 16 bytes on the device either: the first pattern
// is written word by word, and the filled part is then copied to the bytes after it, doubling each
// time. So it is with the rows of a 2-D fill.
#include <string.h>

#include "backends/cuda/copy_parts.h"

// Commands of a stream.

static CUresult set_line(const struct cu_symbols *cu, const CUDA_MEMSET_NODE_PARAMS *set,
                         CUstream stream, const char **out_call)
{
    switch (set->elementSize) {
    case 1:
        *out_call = "cuMemsetD8Async";
        return cu->cuMemsetD8Async(set->dst, (unsigned char)set->value, set->width, stream);
    case 2:
        *out_call = "cuMemsetD16Async";
        return cu->cuMemsetD16Async(set->dst, (unsigned short)set->value, set->width, stream);
    default:
        *out_call = "cuMemsetD32Async";
        return cu->cuMemsetD32Async(set->dst, set->value, set->width, stream);
    }
}

static CUresult set_plane(const struct cu_symbols *cu, const CUDA_MEMSET_NODE_PARAMS *set,
                          CUstream stream, const char **out_call)
{
    switch (set->elementSize) {
    case 1:
        *out_call = "cuMemsetD2D8Async";
        return cu->cuMemsetD2D8Async(set->dst, set->pitch, (unsigned char)set->value, set->width,
                                     set->height, stream);
    case 2:
        *out_call = "cuMemsetD2D16Async";
        return cu->cuMemsetD2D16Async(set->dst, set->pitch, (unsigned short)set->value, set->width,
                                      set->height, stream);
    default:
        *out_call = "cuMemsetD2D32Async";
        return cu->cuMemsetD2D32Async(set->dst, set->pitch, set->value, set->width, set->height,
                                      stream);
    }
}

weir_status cu_set_in_stream(const struct cu_target *target, const CUDA_MEMSET_NODE_PARAMS *set)
{
    const struct cu_queue *queue = target->queue;
    const bool is_line = set->height == 1;
    const char *call;
    const CUresult code = is_line ? set_line(cu_symbols_of(queue), set, queue->stream, &call)
                                  : set_plane(cu_symbols_of(queue), set, queue->stream, &call);
    return cu_copy_command(queue, call, code, is_line ? "fill" : "2-D fill",
                           set->width * set->elementSize * set->height);
}

// Rows of `width` bytes with elements of 1, 2 or 4; one row has no pitch.
static weir_status set(const struct cu_target *target, CUdeviceptr dst, size_t pitch,
                       const void *pattern, unsigned element, size_t width, size_t height)
{
    uint32_t value = 0;
    memcpy(&value, pattern, element); // hosts with CUDA are little-endian
    const CUDA_MEMSET_NODE_PARAMS rows = {
        .dst = dst,
        .pitch = height > 1 ? pitch : 0,
        .value = value,
        .elementSize = element,
        .width = width / element,
        .height = height,
    };
    return target->commands->set(target, &rows);
}

static bool repeats_a_word(const char *pattern, size_t pattern_size)
{
    return memcmp(pattern, pattern + 4, pattern_size - 4) == 0;
}

static weir_status set_long(const struct cu_target *target, CUdeviceptr dst, size_t size,
                            const char *pattern, size_t pattern_size)
{
    weir_status status = WEIR_OK;
    if (repeats_a_word(pattern, pattern_size))
        return set(target, dst, 0, pattern, 4, size, 1);
    for (size_t i = 0; i < pattern_size && status == WEIR_OK; i += 4)
        status = set(target, dst + i, 0, pattern + i, 4, 4, 1);
    for (size_t done = pattern_size; done < size && status == WEIR_OK; done *= 2)
        status = cu_copy_device(target, dst + done, dst, size - done < done ? size - done : done);
    return status;
}

// `dst` is a multiple of the pattern's size.
static weir_status fill_device(const struct cu_target *target, CUdeviceptr dst, size_t size,
                               const void *pattern, size_t pattern_size)
{
    return pattern_size <= 4 ? set(target, dst, 0, pattern, (unsigned)pattern_size, size, 1)
                             : set_long(target, dst, size, pattern, pattern_size);
}

static weir_status fill_staged(const struct cu_target *target, char *dst, size_t size,
                               const void *pattern, size_t pattern_size)
{
    CUdeviceptr staging;
    const size_t first = cu_piece_of(size, 0);
    weir_status status = target->commands->take_staging(target, first, &staging);
    if (status < 0)
        return status;
    status = fill_device(target, staging, first, pattern, pattern_size);
    for (size_t done = 0; done < size && status == WEIR_OK; done += CU_STAGING_BYTES)
        status = target->commands->read(target, dst + done, staging, cu_piece_of(size, done));
    return target->commands->drop_staging(target, staging, status);
}

static bool is_staged(const struct cu_buffer *dst, size_t offset, size_t pattern_size)
{
    return dst->pointer && (pattern_size > 4 || (dst->address + offset) % pattern_size != 0);
}

static weir_status fill(const struct cu_target *target, const struct cu_buffer *dst, size_t offset,
                        size_t size, const void *pattern, size_t pattern_size)
{
    if (is_staged(dst, offset, pattern_size))
        return fill_staged(target, dst->pointer + offset, size, pattern, pattern_size);
    return fill_device(target, dst->address + offset, size, pattern, pattern_size);
}

weir_status cu_split_fill(const struct weir_link *link, const struct cu_target *target,
                          const struct weir_operation *operation)
{
    return fill(target, cu_buffer_of(link, operation->u.fill.dst), operation->u.fill.dst_offset,
                operation->u.fill.size, operation->u.fill.pattern, operation->u.fill.pattern_size);
}

// 2-D fills.

static weir_status fill_by_row(const struct cu_target *target, const struct cu_buffer *to,
                               const struct weir_plane *dst, const struct cu_size *size,
                               const void *pattern, size_t pattern_size)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < size->height && status == WEIR_OK; row++)
        status =
            fill(target, to, dst->offset + row * dst->pitch, size->width, pattern, pattern_size);
    return status;
}

// Fills staging memory on the device with packed rows and copies it to the host, as often as it
// takes.
static weir_status fill_rows_staged(const struct cu_target *target, const struct cu_buffer *to,
                                    const struct weir_plane *dst, const struct cu_size *size,
                                    const void *pattern, size_t pattern_size)
{
    const size_t most = CU_STAGING_BYTES / size->width;
    const size_t rows = most < size->height ? most : size->height;
    struct cu_buffer staging = {.device = target->device, .size = rows * size->width};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
    if (status < 0)
        return status;
    struct cu_box box = {
        .to = to,
        .from = &staging,
        .dst = cu_volume_of(dst, size->height),
        .src = {NULL, 0, size->width, staging.size},
        .size = *size,
    };
    status = fill_device(target, staging.address, staging.size, pattern, pattern_size);
    for (size_t row = 0; row < size->height && status == WEIR_OK; row += rows) {
        box.dst.offset = dst->offset + row * dst->pitch;
        box.size.height = size->height - row < rows ? size->height - row : rows;
        status = cu_copy_box(target, &box);
    }
    return target->commands->drop_staging(target, staging.address, status);
}

// Fills the first row and copies the filled rows to the next ones, doubling each time.
static weir_status fill_rows_long(const struct cu_target *target, const struct cu_buffer *to,
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
        fill_device(target, to->address + dst->offset, size->width, pattern, pattern_size);
    for (size_t done = 1; done < size->height && status == WEIR_OK; done *= 2) {
        box.dst.offset = dst->offset + done * dst->pitch;
        box.size.height = size->height - done < done ? size->height - done : done;
        status = cu_copy_box(target, &box);
    }
    return status;
}

static weir_status fill_rows(const struct cu_target *target, const struct cu_buffer *to,
                             const struct weir_plane *dst, const struct cu_size *size,
                             const char *pattern, size_t pattern_size)
{
    const bool is_long = pattern_size > 4;
    if (is_long && !repeats_a_word(pattern, pattern_size))
        return fill_rows_long(target, to, dst, size, pattern, pattern_size);
    return set(target, to->address + dst->offset, dst->pitch, pattern,
               is_long ? 4 : (unsigned)pattern_size, size->width, size->height);
}

weir_status cu_split_fill_2d(const struct weir_link *link, const struct cu_target *target,
                             const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.fill_2d.dst;
    const struct cu_buffer *to = cu_buffer_of(link, dst->buffer);
    const struct cu_size size = {operation->u.fill_2d.width, operation->u.fill_2d.height, 1};
    const void *pattern = operation->u.fill_2d.pattern;
    const size_t pattern_size = operation->u.fill_2d.pattern_size;
    const bool staged = is_staged(to, dst->offset, pattern_size);

    if (size.height == 1 || dst->pitch == size.width)
        return fill(target, to, dst->offset, size.width * size.height, pattern, pattern_size);
    if (dst->pitch > target->device->attributes.max_pitch ||
        (staged && size.width > CU_STAGING_BYTES))
        return fill_by_row(target, to, dst, &size, pattern, pattern_size);
    if (staged)
        return fill_rows_staged(target, to, dst, &size, pattern, pattern_size);
    return fill_rows(target, to, dst, &size, pattern, pattern_size);
}
