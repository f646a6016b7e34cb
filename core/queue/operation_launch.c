// Launches; see operation.h. The size of a grid and of a block, and launches whose blocks wait for each
// other.
#include "core/queue/operation.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/object/device.h"
#include "core/object/program.h"
#include "core/queue/occupancy.h"
#include "core/support/error.h"
#include "core/support/log.h"

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

static weir_status check_dimensions(const struct weir__caller *caller, const weir_kernel *kernel,
                                    const struct weir_extent *grid, const struct weir_extent *block)
{
    const struct weir_limits *limits = &kernel->member.device->limits;
    weir_status status;

    if ((status = check_dimension(caller, kernel, "grid", 'x', grid->x, limits->max_grid.x)) ||
        (status = check_dimension(caller, kernel, "grid", 'y', grid->y, limits->max_grid.y)) ||
        (status = check_dimension(caller, kernel, "grid", 'z', grid->z, limits->max_grid.z)) ||
        (status = check_dimension(caller, kernel, "block", 'x', block->x, limits->max_block.x)) ||
        (status = check_dimension(caller, kernel, "block", 'y', block->y, limits->max_block.y)))
        return status;
    return check_dimension(caller, kernel, "block", 'z', block->z, limits->max_block.z);
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
    return !exceeds(grid, &limits->max_grid) && !exceeds(block, &limits->max_block) &&
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

static struct weir_extent without_zeros(struct weir_extent extent)
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
                         weir__label_shown(caller->label));
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
    grid = without_zeros(grid);
    block = without_zeros(block);
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

// With as many work-items as the grid has blocks, each has a byte of the largest range; with those of all
// blocks, most have none, and one in `block` would have done. A grid that was rounded up has fewer.
void weir__operation_hint_grid(weir_kernel *kernel, struct weir_extent grid,
                               struct weir_extent block, const struct weir_argument *arguments,
                               size_t argument_count, const char *file, int line)
{
    char message[512];
    uint64_t most = 0;
    if (block.x == 0) // refused
        return;
    grid = without_zeros(grid);
    block = without_zeros(block);
    const double blocks = (double)grid.x * grid.y * grid.z;
    const double items = (double)block.x * block.y * block.z;
    for (size_t i = 0; i < argument_count; i++)
        if (arguments[i].kind == WEIR_PARAMETER_BUFFER && arguments[i].size > most)
            most = arguments[i].size;
    const bool divides = grid.x % block.x == 0 && grid.y % block.y == 0 && grid.z % block.z == 0;
    if (items == 1 || blocks == 0 || !divides || blocks > (double)most ||
        blocks * items <= 2 * (double)most || atomic_exchange(&kernel->grid_was_told, true))
        return;
    snprintf(message, sizeof message,
             "launch of '%s': %.0f blocks of %.0f are %.0f work-items, and its largest range has "
             "%" PRIu64 " bytes; a grid counts blocks: is it meant in work-items? "
             "weir_queue_launch_count() takes their number (%s:%d)",
             weir__label_shown(kernel->member.object.label), blocks, items, blocks * items, most,
             file ? file : "?", line);
    weir__log(WEIR_LOG_WARNING, "core", message);
}
