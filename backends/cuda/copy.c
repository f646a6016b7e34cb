// Copies and fills: how they are split into commands, and the commands of a stream. The driver copies within
// host memory only by blocking, so such copies go through device memory that is allocated and freed in the
// order of the queue.
#include <string.h>

#include "backends/cuda/cu.h"

// The most temporary memory of an operation.
#define STAGING_BYTES ((size_t)16 << 20)

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

static weir_status line_in_stream(const struct cu_target *target, const struct cu_box *box)
{
    const CUdeviceptr dst = box->to->address + box->dst.offset;
    const CUdeviceptr src = box->from->address + box->src.offset;
    if (box->to->pointer)
        COMMAND(cuMemcpyDtoHAsync, "copy from DEVICE to HOST", box->width,
                box->to->pointer + box->dst.offset, src, box->width);
    if (box->from->pointer)
        COMMAND(cuMemcpyHtoDAsync, "copy from HOST to DEVICE", box->width, dst,
                box->from->pointer + box->src.offset, box->width);
    COMMAND(cuMemcpyDtoDAsync, "copy from DEVICE to DEVICE", box->width, dst, src, box->width);
}

static weir_status move_in_stream(const struct cu_target *target, const struct cu_box *box)
{
    if (box->line)
        return line_in_stream(target, box);
    const CUDA_MEMCPY3D all = cu_memcpy_of(box);
    const CUDA_MEMCPY2D rectangle = {
        .srcMemoryType = all.srcMemoryType,
        .srcHost = all.srcHost,
        .srcDevice = all.srcDevice,
        .srcPitch = all.srcPitch,
        .dstMemoryType = all.dstMemoryType,
        .dstHost = all.dstHost,
        .dstDevice = all.dstDevice,
        .dstPitch = all.dstPitch,
        .WidthInBytes = all.WidthInBytes,
        .Height = all.Height,
    };
    if (box->depth == 1)
        COMMAND(cuMemcpy2DAsync, "2-D copy", box->width * box->height, &rectangle);
    COMMAND(cuMemcpy3DAsync, "3-D copy", box->width * box->height * box->depth, &all);
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

static weir_status line_to_peer(const struct cu_queue *queue, const struct cu_box *box)
{
    const CUresult code =
        symbols_of(queue)->cuMemcpyPeerAsync(box->to->address + box->dst.offset,
                                             box->to->device->context,
                                             box->from->address + box->src.offset,
                                             box->from->device->context, box->width, queue->stream);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuMemcpyPeerAsync", code,
                           "copy of %zu bytes from '%s' to '%s'", box->width,
                           box->from->device->listed->info.name,
                           box->to->device->listed->info.name);
}

// Each slice pitch is a multiple of its pitch.
static weir_status copy_to_peer(const struct cu_target *target, const struct cu_box *box)
{
    const struct cu_queue *queue = target->queue;
    if (box->line)
        return line_to_peer(queue, box);
    const CUDA_MEMCPY3D all = cu_memcpy_of(box);
    const CUDA_MEMCPY3D_PEER block = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = all.srcDevice,
        .srcContext = box->from->device->context,
        .srcPitch = all.srcPitch,
        .srcHeight = all.srcHeight,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = all.dstDevice,
        .dstContext = box->to->device->context,
        .dstPitch = all.dstPitch,
        .dstHeight = all.dstHeight,
        .WidthInBytes = all.WidthInBytes,
        .Height = all.Height,
        .Depth = all.Depth,
    };
    const CUresult code = symbols_of(queue)->cuMemcpy3DPeerAsync(&block, queue->stream);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(queue->device, "cuMemcpy3DPeerAsync", code,
                           "copy of %zu bytes in rows from '%s' to '%s'",
                           box->width * box->height * box->depth,
                           box->from->device->listed->info.name,
                           box->to->device->listed->info.name);
}

static const struct cu_commands in_stream = {
    .move = move_in_stream,
    .set = set_in_stream,
    .peer = copy_to_peer,
    .take_staging = take_in_stream,
    .drop_staging = drop_in_stream,
};

// Parts of boxes.

CUDA_MEMCPY3D cu_memcpy_of(const struct cu_box *box)
{
    const struct cu_buffer *to = box->to;
    const struct cu_buffer *from = box->from;
    return (CUDA_MEMCPY3D){
        .srcMemoryType = from->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from->pointer ? from->pointer + box->src.offset : NULL,
        .srcDevice = from->pointer ? 0 : from->address + box->src.offset,
        .srcPitch = box->src.pitch,
        .srcHeight = box->src.slice_pitch / box->src.pitch,
        .dstMemoryType = to->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = to->pointer ? to->pointer + box->dst.offset : NULL,
        .dstDevice = to->pointer ? 0 : to->address + box->dst.offset,
        .dstPitch = box->dst.pitch,
        .dstHeight = box->dst.slice_pitch / box->dst.pitch,
        .WidthInBytes = box->width,
        .Height = box->height,
        .Depth = box->depth,
    };
}

// `size` bytes, which begin so many after those of the box.
static struct cu_box line_of(const struct cu_box *box, size_t dst, size_t src, size_t size)
{
    struct cu_box line = *box;
    line.line = true;
    line.dst = (struct weir_volume){NULL, box->dst.offset + dst, size, size};
    line.src = (struct weir_volume){NULL, box->src.offset + src, size, size};
    line.width = size;
    line.height = line.depth = 1;
    return line;
}

// What staging memory holds of a line or a slice, of which `done` bytes or rows are done.
static struct cu_box piece_of(const struct cu_box *box, size_t done)
{
    const size_t most = box->line ? STAGING_BYTES : STAGING_BYTES / box->width;
    const size_t left = (box->line ? box->width : box->height) - done;
    const size_t count = left < most ? left : most;
    if (box->line)
        return line_of(box, done, done, count);
    struct cu_box piece = *box;
    piece.height = count;
    piece.dst.offset += done * box->dst.pitch;
    piece.src.offset += done * box->src.pitch;
    return piece;
}

// Whether the buffers belong to different devices. Every device has managed memory at its address.
static bool is_peer_copy(const struct cu_box *box)
{
    const struct cu_buffer *to = box->to;
    const struct cu_buffer *from = box->from;
    return !to->pointer && !from->pointer && !to->managed && !from->managed &&
           to->device->context != from->device->context;
}

static bool is_on_host(const struct cu_box *box)
{
    return box->to->pointer && box->from->pointer;
}

// Whether this is a copy between the host and memory that the target's device cannot access.
static bool is_out_of_reach(const struct cu_target *target, const struct cu_box *box)
{
    const struct cu_buffer *to = box->to;
    const struct cu_buffer *from = box->from;
    return (to->pointer && !from->pointer && !cu_reaches(target->device, from)) ||
           (from->pointer && !to->pointer && !cu_reaches(target->device, to));
}

static weir_status move(const struct cu_target *target, const struct cu_box *box)
{
    return is_peer_copy(box) ? target->commands->peer(target, box)
                             : target->commands->move(target, box);
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

static bool repeats_a_word(const struct cu_box *box)
{
    return memcmp(box->pattern, box->pattern + 4, box->pattern_size - 4) == 0;
}

// Fills bytes of a buffer with the box's pattern, of whose size their address is a multiple.
static weir_status fill_bytes(const struct cu_target *target, const struct cu_buffer *buffer,
                              size_t offset, size_t size, const struct cu_box *box)
{
    const CUdeviceptr dst = buffer->address + offset;
    const size_t pattern_size = box->pattern_size;
    weir_status status = WEIR_OK;
    if (pattern_size <= 4 || repeats_a_word(box))
        return set(target, dst, 0, box->pattern, pattern_size < 4 ? (unsigned)pattern_size : 4,
                   size, 1);
    for (size_t i = 0; i < pattern_size && status == WEIR_OK; i += 4)
        status = set(target, dst + i, 0, box->pattern + i, 4, 4, 1);
    const struct cu_buffer filled = {.device = target->device, .address = dst};
    const struct cu_box whole = {.to = &filled, .from = &filled};
    for (size_t done = pattern_size; done < size && status == WEIR_OK; done *= 2) {
        const struct cu_box next =
            line_of(&whole, done, 0, size - done < done ? size - done : done);
        status = target->commands->move(target, &next);
    }
    return status;
}

static bool is_staged(const struct cu_box *box)
{
    return box->to->pointer &&
           (box->pattern_size > 4 || (box->to->address + box->dst.offset) % box->pattern_size != 0);
}

// Fills the first row and copies the filled rows to the next ones, doubling each time.
static weir_status fill_rows(const struct cu_target *target, const struct cu_box *box)
{
    struct cu_box rows = *box;
    rows.from = box->to;
    rows.src = box->dst;
    weir_status status = fill_bytes(target, box->to, box->dst.offset, box->width, box);
    for (size_t done = 1; done < box->height && status == WEIR_OK; done *= 2) {
        rows.dst.offset = box->dst.offset + done * box->dst.pitch;
        rows.height = box->height - done < done ? box->height - done : done;
        status = target->commands->move(target, &rows);
    }
    return status;
}

// Lines and slices. What the driver has no command for goes in pieces through memory of the target's device: copies within
// the host's memory, between that and a device's that cannot be reached, and fills of the host's.

static weir_status by_staging(const struct cu_target *target, const struct cu_box *box)
{
    const size_t total = box->line ? box->width : box->height;
    struct cu_box piece = piece_of(box, 0);
    struct cu_buffer staging = {.device = target->device, .size = piece.width * piece.height};
    weir_status status = target->commands->take_staging(target, staging.size, &staging.address);
    if (status < 0)
        return status;
    if (box->pattern)
        status = fill_bytes(target, &staging, 0, staging.size, box);
    for (size_t done = 0; done < total && status == WEIR_OK;
         done += box->line ? piece.width : piece.height) {
        piece = piece_of(box, done);
        struct cu_box in = piece;
        struct cu_box out = piece;
        in.to = out.from = &staging;
        in.dst = out.src =
            (struct weir_volume){NULL, 0, piece.width, box->line ? piece.width : staging.size};
        if (!box->pattern)
            status = move(target, &in);
        if (status == WEIR_OK)
            status = move(target, &out);
    }
    return target->commands->drop_staging(target, staging.address, status);
}

static weir_status do_line(const struct cu_target *target, const struct cu_box *line)
{
    if (line->pattern && !is_staged(line))
        return fill_bytes(target, line->to, line->dst.offset, line->width, line);
    if (line->pattern || is_on_host(line) || is_out_of_reach(target, line))
        return by_staging(target, line);
    return move(target, line);
}

static weir_status do_rows(const struct cu_target *target, const struct cu_box *box)
{
    weir_status status = WEIR_OK;
    for (size_t row = 0; row < box->height && status == WEIR_OK; row++) {
        const struct cu_box line =
            line_of(box, row * box->dst.pitch, row * box->src.pitch, box->width);
        status = do_line(target, &line);
    }
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
    const size_t width = box->width;
    if (box->height == 1 || (box->dst.pitch == width && box->src.pitch == width)) {
        const struct cu_box line = line_of(box, 0, 0, width * box->height);
        return do_line(target, &line);
    }
    if (is_beyond_pitch(target, box) || is_out_of_reach(target, box) ||
        (is_on_host(box) && width > STAGING_BYTES))
        return do_rows(target, box);
    return is_on_host(box) ? by_staging(target, box) : move(target, box);
}

static weir_status fill_slice(const struct cu_target *target, const struct cu_box *box)
{
    const size_t width = box->width;
    const bool staged = is_staged(box);
    if (box->height == 1 || box->dst.pitch == width) {
        const struct cu_box line = line_of(box, 0, 0, width * box->height);
        return do_line(target, &line);
    }
    if (is_beyond_pitch(target, box) || (staged && width > STAGING_BYTES))
        return do_rows(target, box);
    if (staged)
        return by_staging(target, box);
    if (box->pattern_size > 4 && !repeats_a_word(box))
        return fill_rows(target, box);
    return set(target, box->to->address + box->dst.offset, box->dst.pitch, box->pattern,
               box->pattern_size < 4 ? (unsigned)box->pattern_size : 4, width, box->height);
}

// Boxes of several slices.

static bool is_packed(const struct weir_volume *volume, size_t height)
{
    return volume->slice_pitch == volume->pitch * height;
}

// Makes one slice of several, if rows and slices have one pitch.
static void flatten(struct cu_box *box)
{
    const size_t height = box->height;
    if (height == 1) {
        box->dst.pitch = box->dst.slice_pitch;
        box->src.pitch = box->src.slice_pitch;
    }
    if (height != 1 && (!is_packed(&box->dst, height) || !is_packed(&box->src, height)))
        return;
    box->height *= box->depth;
    box->depth = 1;
    box->dst.slice_pitch = box->dst.pitch * box->height;
    box->src.slice_pitch = box->src.pitch * box->height;
}

// The driver counts the rows from one slice to the next.
static bool has_whole_rows(const struct weir_volume *volume)
{
    return volume->slice_pitch % volume->pitch == 0;
}

static bool is_one_command(const struct cu_target *target, const struct cu_box *box)
{
    return has_whole_rows(&box->dst) && has_whole_rows(&box->src) &&
           !is_beyond_pitch(target, box) && !is_out_of_reach(target, box) && !is_on_host(box);
}

static weir_status copy_slices(const struct cu_target *target, const struct cu_box *box)
{
    weir_status status = WEIR_OK;
    struct cu_box slice = *box;
    slice.depth = 1;
    for (size_t i = 0; i < box->depth && status == WEIR_OK; i++) {
        slice.dst.offset = box->dst.offset + i * box->dst.slice_pitch;
        slice.src.offset = box->src.offset + i * box->src.slice_pitch;
        status = copy_slice(target, &slice);
    }
    return status;
}

// Entries.

static weir_status split_copy(const struct weir_link *link, const struct cu_target *target,
                              const struct weir_operation *operation)
{
    const size_t size = operation->u.copy.size;
    const struct cu_box line = {
        .to = cu_buffer_of(link, operation->u.copy.dst),
        .from = cu_buffer_of(link, operation->u.copy.src),
        .dst = {NULL, operation->u.copy.dst_offset, size, size},
        .src = {NULL, operation->u.copy.src_offset, size, size},
        .width = size,
        .height = 1,
        .depth = 1,
        .line = true,
    };
    return do_line(target, &line);
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
    const struct cu_box box = {
        .to = cu_buffer_of(link, dst->buffer),
        .from = cu_buffer_of(link, src->buffer),
        .dst = volume_of(dst, height),
        .src = volume_of(src, height),
        .width = operation->u.copy_2d.width,
        .height = height,
        .depth = 1,
    };
    return copy_slice(target, &box);
}

static weir_status split_copy_3d(const struct weir_link *link, const struct cu_target *target,
                                 const struct weir_operation *operation)
{
    struct cu_box box = {
        .to = cu_buffer_of(link, operation->u.copy_3d.dst.buffer),
        .from = cu_buffer_of(link, operation->u.copy_3d.src.buffer),
        .dst = operation->u.copy_3d.dst,
        .src = operation->u.copy_3d.src,
        .width = operation->u.copy_3d.width,
        .height = operation->u.copy_3d.height,
        .depth = operation->u.copy_3d.depth,
    };
    if (box.depth > 1)
        flatten(&box);
    if (box.depth == 1 || !is_one_command(target, &box))
        return copy_slices(target, &box);
    return move(target, &box);
}

static weir_status split_fill(const struct weir_link *link, const struct cu_target *target,
                              const struct weir_operation *operation)
{
    const struct cu_box line = {
        .to = cu_buffer_of(link, operation->u.fill.dst),
        .dst = {NULL, operation->u.fill.dst_offset, 0, 0},
        .width = operation->u.fill.size,
        .height = 1,
        .depth = 1,
        .line = true,
        .pattern = operation->u.fill.pattern,
        .pattern_size = operation->u.fill.pattern_size,
    };
    return do_line(target, &line);
}

static weir_status split_fill_2d(const struct weir_link *link, const struct cu_target *target,
                                 const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.fill_2d.dst;
    const struct cu_box box = {
        .to = cu_buffer_of(link, dst->buffer),
        .dst = volume_of(dst, operation->u.fill_2d.height),
        .width = operation->u.fill_2d.width,
        .height = operation->u.fill_2d.height,
        .depth = 1,
        .pattern = operation->u.fill_2d.pattern,
        .pattern_size = operation->u.fill_2d.pattern_size,
    };
    return fill_slice(target, &box);
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
