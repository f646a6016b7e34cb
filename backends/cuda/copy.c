// Copies and fills: how they are split into commands, and the commands of a stream. The driver copies within
// host memory only by blocking, so such copies go through device memory that is allocated and freed in the
// order of the queue.

#include "backends/cuda/graph.h"

// The most temporary memory of an operation.
#define STAGING_BYTES ((size_t)16 << 20)

// Commands of a stream.

// The rest of a function of `queue`: a command of the operation, what it does, to how many bytes, and its arguments before
// the stream.
#define COMMAND(call, what, size, ...)                          \
    do {                                                        \
        struct cu_trial trial = {.device = queue->device};      \
        CU_TRY(&trial, call, __VA_ARGS__, queue->stream);       \
        cu_watch_command(queue);                                \
        if (trial.code == CUDA_SUCCESS)                         \
            return WEIR_OK;                                     \
        return cu_tried(&trial, "%s of %zu bytes", what, size); \
    } while (0)

static CUDA_MEMCPY3D memcpy_of(const struct cu_box *box)
{
    const struct cu_buffer *to = box->to;
    const struct cu_buffer *from = box->from;
    return (CUDA_MEMCPY3D){
        .srcMemoryType = from->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from->pointer ? from->pointer + box->shape.src.offset : NULL,
        .srcDevice = from->pointer ? 0 : from->address + box->shape.src.offset,
        .srcPitch = box->shape.src.pitch,
        .srcHeight = box->shape.src.slice_pitch / box->shape.src.pitch,
        .dstMemoryType = to->pointer ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = to->pointer ? to->pointer + box->shape.dst.offset : NULL,
        .dstDevice = to->pointer ? 0 : to->address + box->shape.dst.offset,
        .dstPitch = box->shape.dst.pitch,
        .dstHeight = box->shape.dst.slice_pitch / box->shape.dst.pitch,
        .WidthInBytes = box->shape.width,
        .Height = box->shape.height,
        .Depth = box->shape.depth,
    };
}

static weir_status move_in_stream(const struct cu_queue *queue, const struct cu_box *box)
{
    const struct weir_box *shape = &box->shape;
    const CUdeviceptr dst = box->to->address + shape->dst.offset;
    const CUdeviceptr src = box->from->address + shape->src.offset;
    if (!weir_kit_box_is_row(shape)) {
        const CUDA_MEMCPY3D all = memcpy_of(box);
        COMMAND(cuMemcpy3DAsync, shape->depth == 1 ? "2-D copy" : "3-D copy", weir_box_bytes(shape),
                &all);
    }
    if (box->to->pointer)
        COMMAND(cuMemcpyDtoHAsync, "copy from DEVICE to HOST", shape->width,
                box->to->pointer + shape->dst.offset, src, shape->width);
    if (box->from->pointer)
        COMMAND(cuMemcpyHtoDAsync, "copy from HOST to DEVICE", shape->width, dst,
                box->from->pointer + shape->src.offset, shape->width);
    COMMAND(cuMemcpyDtoDAsync, "copy from DEVICE to DEVICE", shape->width, dst, src, shape->width);
}

static weir_status take_in_stream(const struct cu_queue *queue, size_t size,
                                  CUdeviceptr *out_staging)
{
    struct cu_trial trial = {.device = queue->device};
    CU_TRY(&trial, cuMemAllocFromPoolAsync, out_staging, size, queue->device->pool, queue->stream);
    return cu_tried(&trial, "memory on the way between HOST buffers of %zu bytes", size);
}

// As create_device() in buffer.c: the memory stream has no other work.
static weir_status take_in_node(struct cu_builder *builder, size_t size, CUdeviceptr *out_address)
{
    struct cu_device *device = builder->device;
    struct cu_trial trial = {.device = device};
    struct cu_staging *staging = builder->node->staging;
    if (staging && staging->size >= size) {
        *out_address = staging->address;
        return WEIR_OK;
    }
    staging = device->module->host->allocate(sizeof *staging);
    if (!staging)
        return weir_host_no_memory(device->module->host, "a node of a graph");
    CU_TRY(&trial, cuMemAllocFromPoolAsync, &staging->address, size, device->pool,
           device->memory_stream);
    if (trial.code != CUDA_SUCCESS) {
        device->module->host->release(staging);
        return cu_tried(&trial, "%zu bytes of memory on the way between HOST buffers", size);
    }
    staging->size = size;
    staging->next = builder->node->staging;
    builder->node->staging = staging;
    CU_TRY_AWAIT(&trial, device->memory_stream);
    *out_address = staging->address;
    return cu_tried(&trial, "memory on the way between HOST buffers");
}

static weir_status drop_in_stream(const struct cu_queue *queue, CUdeviceptr staging,
                                  weir_status status)
{
    struct cu_trial trial = {.device = queue->device};
    CU_TRY(&trial, cuMemFreeAsync, staging, queue->stream);
    return status < 0 ? status : cu_tried(&trial, "end of memory on the way");
}

#define SET(bits, type)                                                                            \
    do {                                                                                           \
        if (set->height == 1)                                                                      \
            COMMAND(cuMemsetD##bits##Async, "fill", size, set->dst, (type)set->value, set->width); \
        COMMAND(cuMemsetD2D##bits##Async, "2-D fill", size, set->dst, set->pitch,                  \
                (type)set->value, set->width, set->height);                                        \
    } while (0)

static weir_status set_in_stream(const struct cu_queue *queue, const CUDA_MEMSET_NODE_PARAMS *set)
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

_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D), "the contexts are elsewhere");

// Each slice pitch is a multiple of its pitch.
static weir_status copy_to_peer(const struct cu_queue *queue, const struct cu_box *box)
{
    const struct cu_device *from = box->from->device;
    const struct cu_device *to = box->to->device;
    struct cu_trial trial = {.device = queue->device};
    if (weir_kit_box_is_row(&box->shape)) {
        CU_TRY(&trial, cuMemcpyPeerAsync, box->to->address + box->shape.dst.offset, to->context,
               box->from->address + box->shape.src.offset, from->context, box->shape.width,
               queue->stream);
    } else {
        const CUDA_MEMCPY3D all = memcpy_of(box);
        CUDA_MEMCPY3D_PEER block;
        memcpy(&block, &all, sizeof block); // the contexts are in the place of two reserved members
        block.srcContext = from->context;
        block.dstContext = to->context;
        CU_TRY(&trial, cuMemcpy3DPeerAsync, &block, queue->stream);
    }
    if (trial.code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_tried(&trial, "copy of %zu bytes from '%s' to '%s'", weir_box_bytes(&box->shape),
                    from->listed->info.name, to->listed->info.name);
}

// Parts of boxes.

// `size` bytes, which begin so many after those of the box.
static struct cu_box line_of(const struct cu_box *box, size_t dst, size_t src, size_t size)
{
    struct cu_box line = *box;
    line.shape.dst = (struct weir_volume){NULL, box->shape.dst.offset + dst, size, size};
    line.shape.src = (struct weir_volume){NULL, box->shape.src.offset + src, size, size};
    line.shape.width = size;
    line.shape.height = line.shape.depth = 1;
    return line;
}

// What staging memory holds of a row or a slice, of which `done` bytes or rows are done.
static struct cu_box piece_of(const struct cu_box *box, size_t done)
{
    const bool row = weir_kit_box_is_row(&box->shape);
    const size_t most = row ? STAGING_BYTES : STAGING_BYTES / box->shape.width;
    const size_t left = (row ? box->shape.width : box->shape.height) - done;
    const size_t count = left < most ? left : most;
    if (row)
        return line_of(box, done, done, count);
    struct cu_box piece = *box;
    piece.shape.height = count;
    piece.shape.dst.offset += done * box->shape.dst.pitch;
    piece.shape.src.offset += done * box->shape.src.pitch;
    return piece;
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
    const struct cu_buffer *to = box->to;
    const struct cu_buffer *from = box->from;
    // Every device has managed memory at its address. No copy between devices is in a graph.
    if (!to->pointer && !from->pointer && !to->managed && !from->managed &&
        to->device->context != from->device->context)
        return copy_to_peer(target->queue, box);
    if (!target->builder)
        return move_in_stream(target->queue, box);
    const struct cu_part part = {.kind = CU_PART_COPY, .u.copy = memcpy_of(box)};
    return cu_add_part(target->builder, &part);
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
    if (!target->builder)
        return set_in_stream(target->queue, &rows);
    return cu_add_part(target->builder, &(struct cu_part){.kind = CU_PART_SET, .u.set = rows});
}

static bool repeats_a_word(const struct cu_box *box)
{
    const char *pattern = box->shape.pattern;
    return memcmp(pattern, pattern + 4, box->shape.pattern_size - 4) == 0;
}

// Fills bytes of a buffer with the box's pattern, of whose size their address is a multiple.
static weir_status fill_bytes(const struct cu_target *target, const struct cu_buffer *buffer,
                              size_t offset, size_t size, const struct cu_box *box)
{
    const CUdeviceptr dst = buffer->address + offset;
    const size_t pattern_size = box->shape.pattern_size;
    weir_status status = WEIR_OK;
    if (pattern_size <= 4 || repeats_a_word(box))
        return set(target, dst, 0, box->shape.pattern,
                   pattern_size < 4 ? (unsigned)pattern_size : 4, size, 1);
    for (size_t i = 0; i < pattern_size && status == WEIR_OK; i += 4)
        status = set(target, dst + i, 0, (const char *)box->shape.pattern + i, 4, 4, 1);
    const struct cu_buffer filled = {.device = target->device, .address = dst};
    const struct cu_box whole = {.to = &filled, .from = &filled};
    for (size_t done = pattern_size; done < size && status == WEIR_OK; done *= 2) {
        const struct cu_box next =
            line_of(&whole, done, 0, size - done < done ? size - done : done);
        status = move(target, &next);
    }
    return status;
}

static bool is_staged(const struct cu_box *box)
{
    return box->to->pointer &&
           (box->shape.pattern_size > 4 ||
            (box->to->address + box->shape.dst.offset) % box->shape.pattern_size != 0);
}

// Fills the first row and copies the filled rows to the next ones, doubling each time.
static weir_status fill_rows(const struct cu_target *target, const struct cu_box *box)
{
    struct cu_box rows = *box;
    rows.from = box->to;
    rows.shape.src = box->shape.dst;
    weir_status status = fill_bytes(target, box->to, box->shape.dst.offset, box->shape.width, box);
    for (size_t done = 1; done < box->shape.height && status == WEIR_OK; done *= 2) {
        rows.shape.dst.offset = box->shape.dst.offset + done * box->shape.dst.pitch;
        rows.shape.height = box->shape.height - done < done ? box->shape.height - done : done;
        status = move(target, &rows);
    }
    return status;
}

// Rows and slices. What the driver has no command for goes in pieces through memory of the target's device: copies within
// the host's memory, between that and a device's that cannot be reached, and fills of the host's.

static weir_status by_staging(const struct cu_target *target, const struct cu_box *box)
{
    const bool row = weir_kit_box_is_row(&box->shape);
    const size_t total = row ? box->shape.width : box->shape.height;
    struct cu_box piece = piece_of(box, 0);
    struct cu_buffer staging = {.device = target->device,
                                .size = piece.shape.width * piece.shape.height};
    weir_status status = target->builder
                             ? take_in_node(target->builder, staging.size, &staging.address)
                             : take_in_stream(target->queue, staging.size, &staging.address);
    if (status < 0)
        return status;
    if (box->shape.pattern)
        status = fill_bytes(target, &staging, 0, staging.size, box);
    for (size_t done = 0; done < total && status == WEIR_OK;
         done += row ? piece.shape.width : piece.shape.height) {
        piece = piece_of(box, done);
        struct cu_box in = piece;
        struct cu_box out = piece;
        in.to = out.from = &staging;
        in.shape.dst = out.shape.src = (struct weir_volume){NULL, 0, piece.shape.width,
                                                            row ? piece.shape.width : staging.size};
        if (!box->shape.pattern)
            status = move(target, &in);
        if (status == WEIR_OK)
            status = move(target, &out);
    }
    return target->builder ? status : drop_in_stream(target->queue, staging.address, status);
}

static bool is_beyond_pitch(const struct cu_target *target, const struct cu_box *box)
{
    const size_t limit = target->device->attributes.max_pitch;
    return box->shape.dst.pitch > limit || box->shape.src.pitch > limit;
}

// Rows and slices that the driver does not accept as one (a pitch beyond its limit) are done one by one.
static weir_status do_box(const struct cu_target *target, const struct cu_box *box)
{
    const struct weir_box *shape = &box->shape;
    const bool row = weir_kit_box_is_row(shape);
    const bool apart = !shape->pattern && is_out_of_reach(target, box);
    const bool staged = shape->pattern ? is_staged(box) : apart || is_on_host(box);
    const bool too_much = shape->depth > 1
                              ? shape->pattern || staged || !weir_kit_box_has_whole_rows(shape)
                              : staged && shape->width > STAGING_BYTES;
    weir_status status = WEIR_OK;
    if (!row && (is_beyond_pitch(target, box) || apart || too_much)) {
        for (size_t i = 0; i < weir_kit_box_parts(shape) && status == WEIR_OK; i++) {
            const struct cu_box part = {box->to, box->from, weir_kit_box_part(shape, i)};
            status = do_box(target, &part);
        }
        return status;
    }
    if (staged)
        return by_staging(target, box);
    if (!shape->pattern)
        return move(target, box);
    if (row)
        return fill_bytes(target, box->to, shape->dst.offset, shape->width, box);
    if (shape->pattern_size > 4 && !repeats_a_word(box))
        return fill_rows(target, box);
    return set(target, box->to->address + shape->dst.offset, shape->dst.pitch, shape->pattern,
               shape->pattern_size < 4 ? (unsigned)shape->pattern_size : 4, shape->width,
               shape->height);
}

weir_status cu_split_copy(const struct weir_link *link, const struct cu_target *target,
                          const struct weir_operation *operation)
{
    struct cu_box box = {.shape = operation->u.box};
    weir_kit_box_reduce(&box.shape);
    box.to = cu_buffer_of(link, box.shape.dst.buffer);
    box.from = box.shape.pattern ? NULL : cu_buffer_of(link, box.shape.src.buffer);
    return do_box(target, &box);
}
