// Copies and fills: how they are split into commands, and the commands of a stream. The driver copies within
// host memory only by blocking, so such copies go through device memory that is allocated and freed in the
// order of the queue.
#include <string.h>

#include "backends/cuda/cu.h"

// The most temporary memory of an operation.
#define STAGING_BYTES ((size_t)16 << 20)

struct box {
    const struct cu_buffer *to;
    const struct cu_buffer *from;
    struct weir_volume dst;
    struct weir_volume src;
    struct cu_size size;
};

// Commands of a stream.

static const struct cu_symbols *symbols_of(const struct cu_queue *queue)
{
    return &queue->device->module->cu;
}

static weir_status check(const struct cu_queue *queue, const char *call, CUresult code,
                         const char *what, size_t size)
{
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, call, code, "%s of %zu bytes", what, size);
}

// The rest of a function of `target`: a command of the operation, what it does, to how many bytes, and its arguments before
// the stream.
#define COMMAND(call, what, size, ...)                                             \
    do {                                                                           \
        const struct cu_queue *queue = target->queue;                              \
        const CUresult code = symbols_of(queue)->call(__VA_ARGS__, queue->stream); \
        cu_watch_command(queue);                                                   \
        return check(queue, #call, code, what, size);                              \
    } while (0)

static weir_status write_in_stream(const struct cu_target *target, CUdeviceptr dst, const char *src,
                                   size_t size)
{
    COMMAND(cuMemcpyHtoDAsync, "copy from HOST to DEVICE", size, dst, src, size);
}

static weir_status read_in_stream(const struct cu_target *target, char *dst, CUdeviceptr src,
                                  size_t size)
{
    COMMAND(cuMemcpyDtoHAsync, "copy from DEVICE to HOST", size, dst, src, size);
}

static weir_status copy_in_stream(const struct cu_target *target, CUdeviceptr dst, CUdeviceptr src,
                                  size_t size)
{
    COMMAND(cuMemcpyDtoDAsync, "copy from DEVICE to DEVICE", size, dst, src, size);
}

static weir_status box_in_stream(const struct cu_target *target, const CUDA_MEMCPY3D *box)
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
    const size_t size = box->WidthInBytes * box->Height * box->Depth;
    if (box->Depth == 1)
        COMMAND(cuMemcpy2DAsync, "2-D copy", size, &rectangle);
    COMMAND(cuMemcpy3DAsync, "3-D copy", size, box);
}

static weir_status take_in_stream(const struct cu_target *target, size_t size,
                                  CUdeviceptr *out_staging)
{
    const struct cu_queue *queue = target->queue;
    CUresult code = symbols_of(queue)->cuMemAllocFromPoolAsync(out_staging, size,
                                                               queue->device->pool, queue->stream);
    return check(queue, "cuMemAllocFromPoolAsync", code, "memory on the way between HOST buffers",
                 size);
}

static weir_status drop_in_stream(const struct cu_target *target, CUdeviceptr staging,
                                  weir_status status)
{
    const struct cu_queue *queue = target->queue;
    CUresult code = symbols_of(queue)->cuMemFreeAsync(staging, queue->stream);
    return status < 0 ? status
                      : check(queue, "cuMemFreeAsync", code, "end of memory on the way", 0);
}

#define SET(bits, type)                                                                            \
    do {                                                                                           \
        if (set->height == 1)                                                                      \
            COMMAND(cuMemsetD##bits##Async, "fill", size, set->dst, (type)set->value, set->width); \
        COMMAND(cuMemsetD2D##bits##Async, "2-D fill", size, set->dst, set->pitch,                  \
                (type)set->value, set->width, set->height);                                        \
    } while (0)

static weir_status set_in_stream(const struct cu_target *target, const CUDA_MEMSET_NODE_PARAMS *set)
{
    const size_t size = set->width * set->elementSize * set->height;
    switch (set->elementSize) {
    case 1:
        SET(8, unsigned char);
    case 2:
        SET(16, unsigned short);
    default:
        SET(32, unsigned);
    }
}

static weir_status copy_to_peer(const struct cu_target *target, const struct cu_buffer *dst,
                                size_t dst_offset, const struct cu_buffer *src, size_t src_offset,
                                size_t size)
{
    const struct cu_queue *queue = target->queue;
    CUresult code =
        queue->device->module->cu.cuMemcpyPeerAsync(dst->address + dst_offset, dst->device->context,
                                                    src->address + src_offset, src->device->context,
                                                    size, queue->stream);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuMemcpyPeerAsync", code,
                           "copy of %zu bytes from '%s' to '%s'", size,
                           src->device->listed->info.name, dst->device->listed->info.name);
}

// A box of slices; each slice pitch is a multiple of its pitch.
static weir_status copy_box_to_peer(const struct cu_target *target, const struct cu_buffer *dst,
                                    const struct weir_volume *dst_volume,
                                    const struct cu_buffer *src,
                                    const struct weir_volume *src_volume,
                                    const struct cu_size *size)
{
    const struct cu_queue *queue = target->queue;
    const CUDA_MEMCPY3D_PEER block = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = src->address + src_volume->offset,
        .srcContext = src->device->context,
        .srcPitch = src_volume->pitch,
        .srcHeight = src_volume->slice_pitch / src_volume->pitch,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = dst->address + dst_volume->offset,
        .dstContext = dst->device->context,
        .dstPitch = dst_volume->pitch,
        .dstHeight = dst_volume->slice_pitch / dst_volume->pitch,
        .WidthInBytes = size->width,
        .Height = size->height,
        .Depth = size->depth,
    };
    CUresult code = queue->device->module->cu.cuMemcpy3DPeerAsync(&block, queue->stream);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuMemcpy3DPeerAsync", code,
                           "copy of %zu bytes in rows from '%s' to '%s'",
                           size->width * size->height * size->depth, src->device->listed->info.name,
                           dst->device->listed->info.name);
}

static const struct cu_commands in_stream = {
    .write = write_in_stream,
    .read = read_in_stream,
    .copy = copy_in_stream,
    .box = box_in_stream,
    .set = set_in_stream,
    .peer = copy_to_peer,
    .peer_box = copy_box_to_peer,
    .take_staging = take_in_stream,
    .drop_staging = drop_in_stream,
};

// Copies of bytes.

static size_t piece_of(size_t size, size_t done)
{
    return size - done < STAGING_BYTES ? size - done : STAGING_BYTES;
}

static weir_status copy_on_host(const struct cu_target *target, char *dst, const char *src,
                                size_t size)
{
    CUdeviceptr staging;
    weir_status status = target->commands->take_staging(target, piece_of(size, 0), &staging);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = piece_of(size, done);
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
    struct cu_buffer staging = {.device = target->device, .size = piece_of(size, 0)};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
    if (status < 0)
        return status;
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES) {
        const size_t piece = piece_of(size, done);
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

// Whether the buffers belong to different devices. Every device has managed memory at its address.
static bool is_peer_copy(const struct cu_buffer *dst, const struct cu_buffer *src)
{
    return !dst->pointer && !src->pointer && !dst->managed && !src->managed &&
           dst->device->context != src->device->context;
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
    if (is_peer_copy(dst, src))
        return target->commands->peer(target, dst, dst_offset, src, src_offset, size);
    return target->commands->copy(target, dst->address + dst_offset, src->address + src_offset,
                                  size);
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

static weir_status copy_box(const struct cu_target *target, const struct box *box)
{
    CUDA_MEMCPY3D command_box = {.WidthInBytes = box->size.width,
                                 .Height = box->size.height,
                                 .Depth = box->size.depth};
    set_source(&command_box, box->from, &box->src);
    set_destination(&command_box, box->to, &box->dst);
    return target->commands->box(target, &command_box);
}

// Copies rows in pieces, packed in staging memory on the device.
static weir_status copy_rows_on_host(const struct cu_target *target, const struct box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;
    const size_t rows = STAGING_BYTES / width < height ? STAGING_BYTES / width : height;
    struct cu_buffer staging = {.device = target->device, .size = rows * width};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
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
        status = copy_box(target, &in);
        if (status == WEIR_OK)
            status = copy_box(target, &out);
    }
    return target->commands->drop_staging(target, staging.address, status);
}

static weir_status copy_by_row(const struct cu_target *target, const struct box *box)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < box->size.height && status == WEIR_OK; row++)
        status = copy(target, box->to, box->dst.offset + row * box->dst.pitch, box->from,
                      box->src.offset + row * box->src.pitch, box->size.width);
    return status;
}

static bool is_beyond_pitch(const struct cu_target *target, const struct box *box)
{
    const size_t limit = target->device->attributes.max_pitch;
    return box->dst.pitch > limit || box->src.pitch > limit;
}

// Rows that the driver does not accept as a rectangle (a pitch beyond its limit) are copied one by
// one.
static weir_status copy_slice(const struct cu_target *target, const struct box *box)
{
    const size_t width = box->size.width;
    const size_t height = box->size.height;

    if (height == 1 || (box->dst.pitch == width && box->src.pitch == width))
        return copy(target, box->to, box->dst.offset, box->from, box->src.offset, width * height);
    if (is_beyond_pitch(target, box) || is_out_of_reach(target, box->to, box->from))
        return copy_by_row(target, box);
    if (is_peer_copy(box->to, box->from))
        return target->commands->peer_box(target, box->to, &box->dst, box->from, &box->src,
                                          &box->size);
    if (box->to->pointer && box->from->pointer)
        return width > STAGING_BYTES ? copy_by_row(target, box) : copy_rows_on_host(target, box);
    return copy_box(target, box);
}

// The slice pitch of a plane is only used by commands that have one.
static struct weir_volume volume_of(const struct weir_plane *plane, size_t height)
{
    return (struct weir_volume){plane->buffer, plane->offset, plane->pitch, plane->pitch * height};
}

static weir_status split_copy_2d(const struct weir_link *link, const struct cu_target *target,
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
    return copy_slice(target, &box);
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

static bool is_one_command(const struct cu_target *target, const struct box *box)
{
    return has_whole_rows(&box->dst) && has_whole_rows(&box->src) &&
           !is_beyond_pitch(target, box) && !is_out_of_reach(target, box->to, box->from) &&
           !(box->to->pointer && box->from->pointer);
}

static weir_status copy_by_slice(const struct cu_target *target, const struct box *box)
{
    weir_status status = WEIR_OK;
    struct box slice = *box;
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
    if (box.size.depth == 1 || !is_one_command(target, &box))
        return copy_by_slice(target, &box);
    if (is_peer_copy(box.to, box.from))
        return target->commands->peer_box(target, box.to, &box.dst, box.from, &box.src, &box.size);
    return copy_box(target, &box);
}

// Fills.
//
// For patterns of more than four bytes in HOST memory, and addresses there that are not a
// multiple of the pattern's size, the driver has no memset, so they are made in device memory and
// copied.
//
// The driver has no memset for patterns of 8 and 16 bytes on the device either: the first pattern
// is written word by word, and the filled part is then copied to the bytes after it, doubling each
// time. So it is with the rows of a 2-D fill.

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
        status = target->commands->copy(target, dst + done, dst,
                                        size - done < done ? size - done : done);
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
    const size_t first = piece_of(size, 0);
    weir_status status = target->commands->take_staging(target, first, &staging);
    if (status < 0)
        return status;
    status = fill_device(target, staging, first, pattern, pattern_size);
    for (size_t done = 0; done < size && status == WEIR_OK; done += STAGING_BYTES)
        status = target->commands->read(target, dst + done, staging, piece_of(size, done));
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

static weir_status split_fill(const struct weir_link *link, const struct cu_target *target,
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
    const size_t most = STAGING_BYTES / size->width;
    const size_t rows = most < size->height ? most : size->height;
    struct cu_buffer staging = {.device = target->device, .size = rows * size->width};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
    if (status < 0)
        return status;
    struct box box = {
        .to = to,
        .from = &staging,
        .dst = volume_of(dst, size->height),
        .src = {NULL, 0, size->width, staging.size},
        .size = *size,
    };
    status = fill_device(target, staging.address, staging.size, pattern, pattern_size);
    for (size_t row = 0; row < size->height && status == WEIR_OK; row += rows) {
        box.dst.offset = dst->offset + row * dst->pitch;
        box.size.height = size->height - row < rows ? size->height - row : rows;
        status = copy_box(target, &box);
    }
    return target->commands->drop_staging(target, staging.address, status);
}

// Fills the first row and copies the filled rows to the next ones, doubling each time.
static weir_status fill_rows_long(const struct cu_target *target, const struct cu_buffer *to,
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
        fill_device(target, to->address + dst->offset, size->width, pattern, pattern_size);
    for (size_t done = 1; done < size->height && status == WEIR_OK; done *= 2) {
        box.dst.offset = dst->offset + done * dst->pitch;
        box.size.height = size->height - done < done ? size->height - done : done;
        status = copy_box(target, &box);
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

static weir_status split_fill_2d(const struct weir_link *link, const struct cu_target *target,
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
    if (dst->pitch > target->device->attributes.max_pitch || (staged && size.width > STAGING_BYTES))
        return fill_by_row(target, to, dst, &size, pattern, pattern_size);
    if (staged)
        return fill_rows_staged(target, to, dst, &size, pattern, pattern_size);
    return fill_rows(target, to, dst, &size, pattern, pattern_size);
}

// Entries.

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
        return split_fill(link, target, operation);
    default:
        return split_fill_2d(link, target, operation);
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
