// See the header. Written so that nothing wraps, and so that the common case has no
// taken branches.
#include "core/queue/operation.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "core/object/buffer.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/support/error.h"

static const char *const operation_names[] = {
    [WEIR_OPERATION_COPY] = "copy",           [WEIR_OPERATION_COPY_2D] = "copy_2d",
    [WEIR_OPERATION_FILL] = "fill",           [WEIR_OPERATION_LAUNCH] = "launch",
    [WEIR_OPERATION_HOST_CALL] = "host call", [WEIR_OPERATION_RECORD] = "record",
    [WEIR_OPERATION_WAIT] = "wait",           [WEIR_OPERATION_GRAPH] = "graph",
    [WEIR_OPERATION_NATIVE] = "native call",  [WEIR_OPERATION_POOL_ALLOCATE] = "pool allocate",
    [WEIR_OPERATION_POOL_FREE] = "pool free", [WEIR_OPERATION_FILL_2D] = "fill_2d",
    [WEIR_OPERATION_COPY_3D] = "copy_3d",     [WEIR_OPERATION_COLLECTIVE] = "collective",
    [WEIR_OPERATION_NOTE] = "note",
};

const char *weir__operation_name(enum weir_operation_kind kind)
{
    const size_t count = sizeof operation_names / sizeof *operation_names;
    return (size_t)kind < count && operation_names[kind] ? operation_names[kind] : "unknown kind";
}

bool weir__is_device_work(enum weir_operation_kind kind)
{
    switch (kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_COPY_2D:
    case WEIR_OPERATION_COPY_3D:
    case WEIR_OPERATION_FILL:
    case WEIR_OPERATION_FILL_2D:
    case WEIR_OPERATION_LAUNCH:
        return true;
    default:
        return false;
    }
}

// Two devices may have one name, and so have two runtimes' and one that is opened twice.
WEIR_COLD static weir_status refuse_device(const struct weir__caller *caller,
                                           const struct weir__role *role, const weir_buffer *buffer)
{
    const weir_device *device = buffer->member.device;
    const char *label = buffer->member.object.label;
    const char *queue = weir__label_or_none(caller->label);
    if (device->runtime != caller->device->runtime)
        return weir__fail_at(caller->file, caller->line, label, WEIR_ERROR_INVALID,
                             "open both devices in one runtime",
                             "%s: %s belongs to device '%s' of another runtime than queue '%s'",
                             role->call, role->name, device->info.name, queue);
    if (device->index == caller->device->index)
        return weir__fail_at(caller->file, caller->line, label, WEIR_ERROR_INVALID,
                             "open the device once, or copy through HOST buffers",
                             "%s: %s belongs to device '%s' as it was opened another time than for "
                             "queue '%s'",
                             role->call, role->name, device->info.name, queue);
    return weir__fail_at(caller->file, caller->line, label, WEIR_ERROR_INVALID,
                         "copy through a HOST buffer of each device",
                         "%s: %s belongs to device '%s' (index %zu), queue '%s' to '%s' (index "
                         "%zu)",
                         role->call, role->name, device->info.name, device->index, queue,
                         caller->device->info.name, caller->device->index);
}

// The range is of a buffer of the caller's device.
static weir_status weir__operation_check_buffer(const struct weir__caller *caller,
                                                const struct weir__role *role,
                                                const weir_buffer *buffer, size_t offset,
                                                size_t size)
{
    if (!buffer)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "create it first; destroying it sets the pointer to NULL",
                             "%s: %s is no buffer (NULL)", role->call, role->name);
    if (buffer->member.device != caller->device)
        return refuse_device(caller, role, buffer);
    return weir__buffer_check_range(buffer, role, offset, size, caller->file, caller->line);
}

// One side of a copy, which may be of a peer of the queue's device if `other`, the other side, is not.
static weir_status weir__operation_check_side(const struct weir__caller *caller,
                                              const struct weir__role *role,
                                              const weir_buffer *buffer, size_t offset, size_t size,
                                              const weir_buffer *other)
{
    if (!buffer || !other || buffer->member.device == caller->device)
        return weir__operation_check_buffer(caller, role, buffer, offset, size);
    if (other->member.device != caller->device)
        return weir__fail_at(caller->file, caller->line, buffer->member.object.label,
                             WEIR_ERROR_INVALID, "use a queue of the device of one of the two",
                             "%s: neither buffer of the copy belongs to device '%s' of queue '%s'",
                             role->call, caller->device->info.name,
                             weir__label_or_none(caller->label));
    if (!caller->peers && weir__peer_can(caller->device, buffer->member.device))
        return weir__fail_at(caller->file, caller->line, buffer->member.object.label,
                             WEIR_ERROR_INVALID, "submit it before or after the graph's launch",
                             "%s: a graph holds no copies between devices, and %s belongs to '%s'",
                             role->call, role->name, buffer->member.device->info.name);
    bool allowed;
    weir_status status = weir__peer_allow(caller->device, buffer->member.device, &allowed);
    if (status < 0)
        weir__error_place(status, buffer->member.object.label, caller->file, caller->line);
    else if (allowed)
        status = weir__buffer_check_range(buffer, role, offset, size, caller->file, caller->line);
    else
        status = refuse_device(caller, role, buffer);
    return status;
}

static bool overlap(size_t a, size_t b, size_t size)
{
    return a < b ? b - a < size : a - b < size;
}

weir_status weir__operation_copy(const struct weir__caller *caller, weir_buffer *dst,
                                 size_t dst_offset, weir_buffer *src, size_t src_offset,
                                 size_t size, struct weir_operation *out_operation)
{
    static const struct weir__role to = {"copy", "dst"}, from = {"copy", "src"};
    weir_status status = weir__operation_check_side(caller, &to, dst, dst_offset, size, src);
    if (status < 0)
        return status;
    status = weir__operation_check_side(caller, &from, src, src_offset, size, dst);
    if (status < 0)
        return status;
    if (dst == src && overlap(dst_offset, src_offset, size))
        return weir__fail_at(caller->file, caller->line, dst->member.object.label,
                             WEIR_ERROR_INVALID, "copy through a second buffer",
                             "copy of %zu bytes from offset %zu to %zu of one buffer: the ranges "
                             "overlap",
                             size, src_offset, dst_offset);

    weir__operation_begin(out_operation, WEIR_OPERATION_COPY, size ? 0 : WEIR_OPERATION_EMPTY,
                          caller->file, caller->line);
    out_operation->u.copy.dst = dst;
    out_operation->u.copy.src = src;
    out_operation->u.copy.dst_offset = dst_offset;
    out_operation->u.copy.src_offset = src_offset;
    out_operation->u.copy.size = size;
    return WEIR_OK;
}
// A pattern has 1, 2, 4, 8 or 16 bytes. `what` is the operation.
static weir_status weir__operation_check_pattern(const struct weir__caller *caller,
                                                 const char *what, size_t pattern_size)
{
    if (pattern_size > 0 && pattern_size <= 16 && (pattern_size & (pattern_size - 1)) == 0)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                         "pass sizeof of the value that is repeated",
                         "%s: a pattern has 1, 2, 4, 8 or 16 bytes, not %zu", what, pattern_size);
}

weir_status weir__operation_fill(const struct weir__caller *caller, weir_buffer *dst,
                                 size_t dst_offset, size_t size, const void *pattern,
                                 size_t pattern_size, struct weir_operation *out_operation)
{
    static const struct weir__role to = {"fill", "dst"};
    weir_status status = weir__operation_check_pattern(caller, to.call, pattern_size);
    if (status == WEIR_OK)
        status = weir__operation_check_buffer(caller, &to, dst, dst_offset, size);
    if (status < 0)
        return status;
    if (dst_offset % pattern_size || size % pattern_size)
        return weir__fail_at(caller->file, caller->line, dst->member.object.label,
                             WEIR_ERROR_INVALID, "offset and size count bytes, not patterns",
                             "fill: offset %zu and size %zu must be multiples of the pattern's %zu "
                             "bytes",
                             dst_offset, size, pattern_size);

    weir__operation_begin(out_operation, WEIR_OPERATION_FILL, size ? 0 : WEIR_OPERATION_EMPTY,
                          caller->file, caller->line);
    out_operation->u.fill.dst = dst;
    out_operation->u.fill.dst_offset = dst_offset;
    out_operation->u.fill.size = size;
    out_operation->u.fill.pattern = pattern;
    out_operation->u.fill.pattern_size = pattern_size;
    return WEIR_OK;
}
static weir_status check_native_argument(const struct weir__caller *caller, size_t index,
                                         const struct weir_argument *argument)
{
    char name[32];
    const struct weir__role role = {"native call", name};
    snprintf(name, sizeof name, "argument %zu", index);
    if (argument->kind != WEIR_PARAMETER_BUFFER)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "give values to the function through `user`",
                             "native call: %s is no buffer", name);
    if (argument->access < WEIR_ACCESS_READ || argument->access > WEIR_ACCESS_READ_WRITE)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "make arguments with weir_in(), weir_out() or weir_inout()",
                             "native call: access %d of %s is none of weir_access",
                             (int)argument->access, name);
    return weir__operation_check_buffer(caller, &role, argument->buffer, argument->offset,
                                        argument->size);
}

weir_status weir__operation_native(const struct weir__caller *caller, weir_native_function function,
                                   void *user, const struct weir_argument *arguments,
                                   size_t argument_count, struct weir_operation *out_operation)
{
    for (size_t i = 0; i < argument_count; i++) {
        weir_status status = check_native_argument(caller, i, &arguments[i]);
        if (status < 0)
            return status;
    }
    weir__operation_begin(out_operation, WEIR_OPERATION_NATIVE, 0, caller->file, caller->line);
    out_operation->u.native.function = function;
    out_operation->u.native.user = user;
    out_operation->u.native.arguments = arguments;
    out_operation->u.native.argument_count = argument_count;
    return WEIR_OK;
}

// Launches: the size of a grid and of a block, and launches whose blocks wait for each
// other.

static bool exceeds(const struct weir_extent *extent, const struct weir_extent *limit)
{
    return extent->x > limit->x || extent->y > limit->y || extent->z > limit->z;
}

static weir_status check_dimension(const struct weir__caller *caller, const weir_kernel *kernel,
                                   const char *what, char axis, uint32_t value, uint32_t limit)
{
    if (value <= limit)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                         WEIR_ERROR_INVALID,
                         what[0] == 'b' ? "use a smaller block and a larger grid"
                                        : "a grid counts blocks, not work-items; launch several "
                                          "grids, or let a work-item do more",
                         "launch: %s.%c is %" PRIu32 ", the device's limit is %" PRIu32, what, axis,
                         value, limit);
}

// Ids of work-items have 32 bits on CUDA (kernels/library/work_items.cl).
static bool items_fit(const struct weir_extent *grid, const struct weir_extent *block)
{
    return (uint64_t)grid->x * block->x <= UINT32_MAX &&
           (uint64_t)grid->y * block->y <= UINT32_MAX && (uint64_t)grid->z * block->z <= UINT32_MAX;
}

static weir_status check_items(const struct weir__caller *caller, const weir_kernel *kernel,
                               const struct weir_extent *grid, const struct weir_extent *block)
{
    const uint64_t x = (uint64_t)grid->x * block->x, y = (uint64_t)grid->y * block->y,
                   z = (uint64_t)grid->z * block->z;
    if (items_fit(grid, block))
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                         WEIR_ERROR_INVALID, "launch several grids, or let a work-item do more",
                         "launch: %" PRIu64 " x %" PRIu64 " x %" PRIu64
                         " work-items, the limit of each dimension is %" PRIu32,
                         x, y, z, UINT32_MAX);
}

static weir_status check_dimensions(const struct weir__caller *caller, const weir_kernel *kernel,
                                    const struct weir_extent *grid, const struct weir_extent *block)
{
    const struct weir_limits *limits = &kernel->member.device->limits;
    weir_status status;

    if ((status = check_dimension(caller, kernel, "grid", 'x', grid->x, limits->max_grid.x)) ||
        (status = check_dimension(caller, kernel, "grid", 'y', grid->y, limits->max_grid.y)) ||
        (status = check_dimension(caller, kernel, "grid", 'z', grid->z, limits->max_grid.z)) ||
        (status = check_dimension(caller, kernel, "block", 'x', block->x, limits->max_block.x)) ||
        (status = check_dimension(caller, kernel, "block", 'y', block->y, limits->max_block.y)) ||
        (status = check_dimension(caller, kernel, "block", 'z', block->z, limits->max_block.z)))
        return status;
    return check_items(caller, kernel, grid, block);
}

static bool is_required(const struct weir_extent *required, const struct weir_extent *block)
{
    return required->x == 0 ||
           (required->x == block->x && required->y == block->y && required->z == block->z);
}

// The product of a block within the device's limits does not wrap.
static bool extents_fit(const weir_kernel *kernel, const struct weir_extent *grid,
                        const struct weir_extent *block)
{
    const struct weir_limits *limits = &kernel->member.device->limits;
    return items_fit(grid, block) && !exceeds(grid, &limits->max_grid) &&
           !exceeds(block, &limits->max_block) &&
           (uint64_t)block->x * block->y * block->z <= kernel->info.max_block_items &&
           is_required(&kernel->signature->required_block, block);
}

WEIR_COLD weir_status weir__operation_check_extents(const struct weir__caller *caller,
                                                    const weir_kernel *kernel,
                                                    const struct weir_extent *grid,
                                                    const struct weir_extent *block)
{
    const struct weir_extent *required = &kernel->signature->required_block;
    weir_status status = check_dimensions(caller, kernel, grid, block);
    if (status < 0)
        return status;
    const uint64_t items = (uint64_t)block->x * block->y * block->z;
    if (items > kernel->info.max_block_items)
        return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                             WEIR_ERROR_INVALID, "use a smaller block and a larger grid",
                             "launch: a block of %" PRIu64 " work-items; this kernel's limit is "
                             "%" PRIu32,
                             items, kernel->info.max_block_items);
    if (!is_required(required, block))
        return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                             WEIR_ERROR_INVALID, "pass that block, or change the kernel's source",
                             "launch: a block of %" PRIu32 "×%" PRIu32 "×%" PRIu32
                             "; this kernel requires %" PRIu32 "×%" PRIu32 "×%" PRIu32,
                             block->x, block->y, block->z, required->x, required->y, required->z);
    return WEIR_OK;
}

struct weir_extent weir__operation_extent(struct weir_extent extent)
{
    return weir_dim(extent.x, extent.y ? extent.y : 1, extent.z ? extent.z : 1);
}

WEIR_COLD static weir_status refuse_kernel_of(const struct weir__caller *caller,
                                              const weir_kernel *kernel)
{
    return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                         WEIR_ERROR_INVALID,
                         "create the program for both devices (weir_program_params.devices)",
                         "launch: the kernel belongs to another device than queue '%s'",
                         weir__label_or_none(caller->label));
}

static size_t local_bytes_of(const struct weir_argument *arguments, size_t argument_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < argument_count; i++)
        if (arguments[i].kind == WEIR_PARAMETER_LOCAL)
            bytes = (size_t)weir__local_start(bytes) + arguments[i].size;
    return bytes;
}

// A launch whose blocks do not all run at once would never end. Apart from the common case, as the
// functions for errors are.
WEIR_COLD static weir_status check_cooperative(const struct weir__caller *caller,
                                               struct weir_operation *operation)
{
    weir_kernel *kernel = operation->u.launch.kernel;
    const struct weir_extent grid = operation->u.launch.grid;
    const uint64_t blocks = (uint64_t)grid.x * grid.y; // below 2^64, unlike with z
    struct weir_occupancy occupancy;
    operation->flags |= WEIR_OPERATION_COOPERATIVE;
    if (!caller->cooperative)
        return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                             WEIR_ERROR_INVALID, "launch it with weir_queue_launch_cooperative()",
                             "launch: blocks of this kernel wait for each other at "
                             "weir_grid_barrier(), so all of them must run at once");
    weir_status status = weir__kernel_occupancy(kernel, operation->u.launch.block,
                                                local_bytes_of(operation->u.launch.arguments,
                                                               operation->u.launch.argument_count),
                                                &occupancy);
    if (status < 0) {
        weir__error_place(status, kernel->member.object.label, caller->file, caller->line);
        return status;
    }
    const uint32_t most = occupancy.cooperative_blocks;
    if (blocks <= most / grid.z)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                         WEIR_ERROR_UNSUPPORTED,
                         "launch at most weir_kernel_cooperative_blocks(), and let each do more",
                         "cooperative launch: %" PRIu32 "×%" PRIu32 "×%" PRIu32
                         " blocks; with blocks of this size the device runs %" PRIu32
                         " at once that can wait for each other",
                         grid.x, grid.y, grid.z, most);
}

weir_status weir__operation_launch(const struct weir__caller *caller, weir_kernel *kernel,
                                   struct weir_extent grid, struct weir_extent block,
                                   const struct weir_argument *arguments, size_t argument_count,
                                   struct weir_operation *out_operation)
{
    if (kernel->member.device != caller->device) {
        weir_kernel *there = weir__kernel_on(kernel, caller->device);
        if (!there)
            return refuse_kernel_of(caller, kernel);
        kernel = there;
    }
    if (block.x == 0)
        return weir__fail_at(caller->file, caller->line, kernel->member.object.label,
                             WEIR_ERROR_INVALID, "a block has at least one work-item",
                             "launch: block.x is 0");
    grid = weir__operation_extent(grid);
    block = weir__operation_extent(block);
    if (!extents_fit(kernel, &grid, &block))
        return weir__operation_check_extents(caller, kernel, &grid, &block);
    weir_status status = weir__kernel_check(kernel, arguments, argument_count, caller->peers,
                                            caller->file, caller->line);
    if (status != WEIR_OK)
        return status;

    weir__operation_begin(out_operation, WEIR_OPERATION_LAUNCH, grid.x ? 0 : WEIR_OPERATION_EMPTY,
                          caller->file, caller->line);
    out_operation->u.launch.kernel = kernel;
    out_operation->u.launch.grid = grid;
    out_operation->u.launch.block = block;
    out_operation->u.launch.arguments = arguments;
    out_operation->u.launch.argument_count = argument_count;
    return caller->cooperative || kernel->grid_barrier ? check_cooperative(caller, out_operation)
                                                       : WEIR_OK;
}

// Copies and fills of rows and of slices. Rows alone are one slice.

static struct weir_volume slice_of(const struct weir_plane *plane)
{
    return (struct weir_volume){.buffer = plane->buffer,
                                .offset = plane->offset,
                                .pitch = plane->pitch};
}

// Bytes from the first to the last of `count` parts of `size` bytes, whose starts are `pitch` apart; false if
// that wraps.
static bool extent(size_t size, size_t count, size_t pitch, size_t *out_size)
{
    *out_size = 0;
    if (size == 0 || count == 0)
        return true;
    if (count > 1 && pitch > (SIZE_MAX - size) / (count - 1))
        return false;
    *out_size = (count - 1) * pitch + size;
    return true;
}

static bool volume_extent(const struct weir_volume *volume, size_t width, size_t height,
                          size_t depth, size_t *out_size)
{
    size_t slice;
    return extent(width, height, volume->pitch, &slice) &&
           extent(slice, depth, volume->slice_pitch, out_size);
}

static weir_status check_pitch(const struct weir__caller *caller, const struct weir__role *role,
                               size_t pitch, size_t width)
{
    if (pitch >= width)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                         "both count bytes; a pitch leads from a row to the next",
                         "%s: the pitch of %s, %zu, is below the width, %zu", role->call,
                         role->name, pitch, width);
}

static weir_status check_volume(const struct weir__caller *caller, const struct weir__role *role,
                                const struct weir_volume *volume, size_t width, size_t height,
                                size_t depth, const weir_buffer *other)
{
    size_t size;
    weir_status status = check_pitch(caller, role, volume->pitch, width);
    if (status < 0)
        return status;
    if (depth > 1 && volume_extent(volume, width, height, 1, &size) && volume->slice_pitch < size)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "a slice pitch counts bytes, and leads from a slice to the next",
                             "%s: the slice pitch of %s, %zu, is below the %zu bytes that the "
                             "rows of a slice take",
                             role->call, role->name, volume->slice_pitch, size);
    if (!volume_extent(volume, width, height, depth, &size))
        size = SIZE_MAX;
    return weir__operation_check_side(caller, role, volume->buffer, volume->offset, size, other);
}

// Whether a multiple of `pitch` is less than `width` away from `shift`, for one of the two
// multiples next to it, which is then `*out_rows`.
static bool meets(size_t shift, size_t pitch, size_t width, bool upper, size_t *out_rows)
{
    *out_rows = shift / pitch + upper;
    return upper ? pitch - shift % pitch < width : shift % pitch < width;
}

// Whether two boxes with the same pitches have a byte in common, if one begins `shift` bytes after
// the other and a slice has `rows` pitches: row and byte are counted like digits, and a
// distance has the two representations that `meets` finds.
static bool boxes_meet(size_t shift, size_t pitch, size_t rows, size_t width, size_t height,
                       size_t depth)
{
    for (int upper_row = 0; upper_row < 2; upper_row++) {
        size_t row;
        if (!meets(shift, pitch, width, upper_row, &row))
            continue;
        for (int upper_slice = 0; upper_slice < 2; upper_slice++) {
            size_t slice;
            if (meets(row, rows, height, upper_slice, &slice) && slice < depth)
                return true;
        }
    }
    return false;
}

// Slices and rows interleave freely, so two volumes of one buffer are refused if their whole
// extents intersect, unless they share both pitches, a slice pitch is a multiple of the pitch and
// no byte is in both.
static bool volumes_overlap(const struct weir_volume *dst, const struct weir_volume *src,
                            size_t width, size_t height, size_t depth)
{
    const struct weir_volume *low = dst->offset < src->offset ? dst : src;
    const struct weir_volume *high = low == dst ? src : dst;
    size_t low_size;
    if (dst->buffer != src->buffer || !volume_extent(low, width, height, depth, &low_size) ||
        high->offset - low->offset >= low_size)
        return false;
    if (dst->pitch != src->pitch ||
        (depth > 1 && (dst->slice_pitch != src->slice_pitch || dst->slice_pitch < dst->pitch ||
                       dst->slice_pitch % dst->pitch)))
        return true;
    return boxes_meet(high->offset - low->offset, low->pitch,
                      depth > 1 ? low->slice_pitch / low->pitch : SIZE_MAX, width, height, depth);
}

// Checks both sides of a copy, which is of no bytes if `*out_empty`.
static weir_status check_volumes(const struct weir__caller *caller, const char *call,
                                 const struct weir_volume *dst, const struct weir_volume *src,
                                 size_t width, size_t height, size_t depth, bool *out_empty)
{
    const struct weir__role to = {call, "dst"}, from = {call, "src"};
    weir_status status = check_volume(caller, &to, dst, width, height, depth, src->buffer);
    if (status == WEIR_OK)
        status = check_volume(caller, &from, src, width, height, depth, dst->buffer);
    if (status < 0)
        return status;
    *out_empty = width == 0 || height == 0 || depth == 0;
    if (!*out_empty && volumes_overlap(dst, src, width, height, depth))
        return weir__fail_at(caller->file, caller->line, dst->buffer->member.object.label,
                             WEIR_ERROR_INVALID, "copy through a second buffer",
                             "%s within one buffer: source and destination overlap", call);
    return WEIR_OK;
}

weir_status weir__operation_copy_2d(const struct weir__caller *caller, const struct weir_plane *dst,
                                    const struct weir_plane *src, size_t width, size_t height,
                                    struct weir_operation *out_operation)
{
    const struct weir_volume to = slice_of(dst), from = slice_of(src);
    bool empty;
    const weir_status status =
        check_volumes(caller, "copy_2d", &to, &from, width, height, 1, &empty);
    if (status < 0)
        return status;
    weir__operation_begin(out_operation, WEIR_OPERATION_COPY_2D, empty ? WEIR_OPERATION_EMPTY : 0,
                          caller->file, caller->line);
    out_operation->u.copy_2d.dst = *dst;
    out_operation->u.copy_2d.src = *src;
    out_operation->u.copy_2d.width = width;
    out_operation->u.copy_2d.height = height;
    return WEIR_OK;
}

weir_status weir__operation_copy_3d(const struct weir__caller *caller,
                                    const struct weir_volume *dst, const struct weir_volume *src,
                                    size_t width, size_t height, size_t depth,
                                    struct weir_operation *out_operation)
{
    bool empty;
    const weir_status status =
        check_volumes(caller, "copy_3d", dst, src, width, height, depth, &empty);
    if (status < 0)
        return status;
    weir__operation_begin(out_operation, WEIR_OPERATION_COPY_3D, empty ? WEIR_OPERATION_EMPTY : 0,
                          caller->file, caller->line);
    out_operation->u.copy_3d.dst = *dst;
    out_operation->u.copy_3d.src = *src;
    out_operation->u.copy_3d.width = width;
    out_operation->u.copy_3d.height = height;
    out_operation->u.copy_3d.depth = depth;
    return WEIR_OK;
}

// The range of a plane that is filled. A single row has no pitch.
static weir_status check_filled(const struct weir__caller *caller, const struct weir_plane *dst,
                                size_t width, size_t height, size_t pattern_size)
{
    size_t size;
    static const struct weir__role to = {"fill_2d", "dst"};
    weir_status status = check_pitch(caller, &to, dst->pitch, width);
    if (status < 0)
        return status;
    if (!extent(width, height, dst->pitch, &size))
        size = SIZE_MAX;
    status = weir__operation_check_buffer(caller, &to, dst->buffer, dst->offset, size);
    if (status < 0)
        return status;
    const size_t pitch = height > 1 ? dst->pitch : 0;
    if (dst->offset % pattern_size == 0 && pitch % pattern_size == 0 && width % pattern_size == 0)
        return WEIR_OK;
    return weir__fail_at(caller->file, caller->line, dst->buffer->member.object.label,
                         WEIR_ERROR_INVALID, "they count bytes, not patterns",
                         "fill_2d: offset %zu, pitch %zu and width %zu must be multiples of the "
                         "pattern's %zu bytes",
                         dst->offset, dst->pitch, width, pattern_size);
}

weir_status weir__operation_fill_2d(const struct weir__caller *caller, const struct weir_plane *dst,
                                    size_t width, size_t height, const void *pattern,
                                    size_t pattern_size, struct weir_operation *out_operation)
{
    weir_status status = weir__operation_check_pattern(caller, "fill_2d", pattern_size);
    if (status == WEIR_OK)
        status = check_filled(caller, dst, width, height, pattern_size);
    if (status < 0)
        return status;
    const bool empty = width == 0 || height == 0;

    weir__operation_begin(out_operation, WEIR_OPERATION_FILL_2D, empty ? WEIR_OPERATION_EMPTY : 0,
                          caller->file, caller->line);
    out_operation->u.fill_2d.dst = *dst;
    out_operation->u.fill_2d.width = width;
    out_operation->u.fill_2d.height = height;
    out_operation->u.fill_2d.pattern = pattern;
    out_operation->u.fill_2d.pattern_size = pattern_size;
    return WEIR_OK;
}

// Whether one row lies in a buffer of the device: the name of a range is written for the others only.
static bool is_plain_range(const struct weir__caller *caller, const struct weir_note_range *range)
{
    return range->rows <= 1 && range->slices <= 1 && range->access >= WEIR_ACCESS_READ &&
           range->access <= WEIR_ACCESS_READ_WRITE && range->buffer &&
           range->buffer->member.device == caller->device &&
           weir__buffer_holds(range->buffer, range->offset, range->size);
}

// A zero count is one, and its pitch that of adjacent rows or slices.
static weir_status check_note_range(const struct weir__caller *caller, size_t index,
                                    const struct weir_note_range *range)
{
    char name[32];
    const struct weir__role role = {"note", name};
    const size_t rows = range->rows ? range->rows : 1;
    const size_t slices = range->slices ? range->slices : 1;
    const struct weir_volume volume = {range->buffer, range->offset,
                                       rows > 1 ? range->pitch : range->size, range->slice_pitch};
    snprintf(name, sizeof name, "range %zu", index);
    if (range->access < WEIR_ACCESS_READ || range->access > WEIR_ACCESS_READ_WRITE)
        return weir__fail_at(caller->file, caller->line, caller->label, WEIR_ERROR_INVALID,
                             "use WEIR_ACCESS_READ, _WRITE or _READ_WRITE",
                             "note: access %d of %s is none of weir_access", (int)range->access,
                             name);
    return check_volume(caller, &role, &volume, range->size, rows, slices, NULL);
}

weir_status weir__operation_note(const struct weir__caller *caller,
                                 const struct weir_note_params *params,
                                 struct weir_operation *out_operation)
{
    for (size_t i = 0; i < params->range_count; i++) {
        const weir_status status = is_plain_range(caller, &params->ranges[i])
                                       ? WEIR_OK
                                       : check_note_range(caller, i, &params->ranges[i]);
        if (status < 0)
            return status;
    }
    weir__operation_begin(out_operation, WEIR_OPERATION_NOTE, 0, caller->file, caller->line);
    out_operation->u.note.name = weir__file_name(params->name);
    out_operation->u.note.ranges = params->ranges;
    out_operation->u.note.range_count = params->range_count;
    out_operation->u.note.work = params->work;
    out_operation->u.note.timed = params->timed;
    return WEIR_OK;
}
