// Launches: the size of a grid and of a block, launches whose blocks wait for each other, and how many blocks a
// device holds at once. The checks are written so that nothing wraps, and so that the common case has no taken
// branches.
#include <inttypes.h>

#include "core/object/buffer.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"

static bool exceeds(const struct weir_extent *extent, const struct weir_extent *limit)
{
    return extent->x > limit->x || extent->y > limit->y || extent->z > limit->z;
}

// Ids of work-items have 32 bits on CUDA (kernels/library/work_items.cl).
static bool items_fit(const struct weir_extent *grid, const struct weir_extent *block)
{
    return (uint64_t)grid->x * block->x <= UINT32_MAX &&
           (uint64_t)grid->y * block->y <= UINT32_MAX && (uint64_t)grid->z * block->z <= UINT32_MAX;
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

// The size of a launch, which has no zeros, part by part. The product of a block within the limits does not wrap.
WEIR_COLD static weir_status check_extents(const struct weir__caller *caller,
                                           const weir_kernel *kernel,
                                           const struct weir_extent *grid,
                                           const struct weir_extent *block)
{
    static const char fewer[] =
        "a grid counts blocks, not work-items; launch several grids, or let "
        "a work-item do more";
    static const char smaller[] = "use a smaller block and a larger grid";
    static const char device[] = "the device's limit", each[] = "the limit of each dimension";
    const struct weir_extent *required = &kernel->signature->required_block;
    const struct weir_limits *limits = &kernel->member.device->limits;
    const uint64_t items = (uint64_t)block->x * block->y * block->z;
    const struct {
        const char *name;
        uint64_t value;
        const char *of;
        uint64_t limit;
        const char *remedy;
    } all[] = {
        {"grid.x", grid->x, device, limits->max_grid.x, fewer},
        {"grid.y", grid->y, device, limits->max_grid.y, fewer},
        {"grid.z", grid->z, device, limits->max_grid.z, fewer},
        {"block.x", block->x, device, limits->max_block.x, smaller},
        {"block.y", block->y, device, limits->max_block.y, smaller},
        {"block.z", block->z, device, limits->max_block.z, smaller},
        {"the number of work-items in x", (uint64_t)grid->x * block->x, each, UINT32_MAX, fewer},
        {"the number of work-items in y", (uint64_t)grid->y * block->y, each, UINT32_MAX, fewer},
        {"the number of work-items in z", (uint64_t)grid->z * block->z, each, UINT32_MAX, fewer},
        {"the number of work-items of a block", items, "this kernel's limit",
         kernel->info.max_block_items, smaller},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value > all[i].limit)
            return weir__refuse(caller, kernel->member.object.label, all[i].remedy,
                                "launch: %s is %" PRIu64 ", %s is %" PRIu64, all[i].name,
                                all[i].value, all[i].of, all[i].limit);
    if (!is_required(required, block))
        return weir__refuse(caller, kernel->member.object.label,
                            "pass that block, or change the kernel's source",
                            "launch: a block of %" PRIu32 "×%" PRIu32 "×%" PRIu32
                            "; this kernel requires %" PRIu32 "×%" PRIu32 "×%" PRIu32,
                            block->x, block->y, block->z, required->x, required->y, required->z);
    return WEIR_OK;
}

// An extent whose zeros in y and z read as one.
static struct weir_extent without_zeros(struct weir_extent extent)
{
    return weir_dim(extent.x, extent.y ? extent.y : 1, extent.z ? extent.z : 1);
}

static size_t local_bytes_of(const struct weir_argument *arguments, size_t argument_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < argument_count; i++)
        if (arguments[i].kind == WEIR_PARAMETER_LOCAL)
            bytes = (size_t)weir__local_start(bytes) + arguments[i].size;
    return bytes;
}

// Asks the chain; the block has no zeros, and like `local_bytes` it was checked.
static weir_status ask_occupancy(weir_kernel *kernel, struct weir_extent block, size_t local_bytes,
                                 struct weir_occupancy *out_occupancy)
{
    const weir_device *device = kernel->member.device;
    *out_occupancy = (struct weir_occupancy){
        .struct_size = sizeof *out_occupancy,
        .compute_units = device->limits.compute_units,
        .cooperative_blocks = 1,
    };
    return device->first->ops->kernel_occupancy(device->first, kernel, block, local_bytes,
                                                out_occupancy);
}

// A launch whose blocks do not all run at once would never end. Apart from the common case, as the
// functions for errors are.
WEIR_COLD static weir_status check_cooperative(const struct weir__caller *caller,
                                               const struct weir_operation *operation)
{
    weir_kernel *kernel = operation->u.launch.kernel;
    const struct weir_extent grid = operation->u.launch.grid;
    const uint64_t blocks = (uint64_t)grid.x * grid.y; // below 2^64, unlike with z
    struct weir_occupancy occupancy;
    if (!(operation->flags & WEIR_OPERATION_COOPERATIVE))
        return weir__refuse(
            caller, kernel->member.object.label,
            "launch it with weir_queue_launch_cooperative(); in source at run time, put "
            "kernels that do not wait into another program",
            "launch: blocks of this kernel may wait for each other at "
            "weir_grid_barrier(), so all of them must run at once");
    weir_status status = ask_occupancy(kernel, operation->u.launch.block,
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

weir_status weir__operation_launch(const struct weir__caller *caller,
                                   struct weir_operation *operation, struct weir_extent grid,
                                   struct weir_extent block,
                                   struct weir_argument widened[WEIR__WIDEN_LIMIT])
{
    weir_kernel *kernel = operation->u.launch.kernel;
    if (kernel->member.device != caller->device) {
        kernel = weir__kernel_on(kernel, caller->device);
        if (!kernel)
            return weir__refuse(caller, operation->u.launch.kernel->member.object.label,
                                "create the program for both devices (weir_program_params.devices)",
                                "launch: the kernel belongs to another device than queue '%s'",
                                weir__label_or_none(caller->label));
        operation->u.launch.kernel = kernel;
    }
    if (block.x == 0)
        return weir__refuse(caller, kernel->member.object.label,
                            "a block has at least one work-item", "launch: block.x is 0");
    grid = without_zeros(grid);
    block = without_zeros(block);
    if (!extents_fit(kernel, &grid, &block))
        return check_extents(caller, kernel, &grid, &block);
    TRY(weir__kernel_check(kernel, &operation->u.launch.arguments,
                           operation->u.launch.argument_count, caller->peers, widened, caller->file,
                           caller->line));
    operation->u.launch.grid = grid;
    operation->u.launch.block = block;
    if (grid.x == 0)
        operation->flags |= WEIR_OPERATION_EMPTY;
    return operation->flags & WEIR_OPERATION_COOPERATIVE || kernel->signature->grid_barrier
               ? check_cooperative(caller, operation)
               : WEIR_OK;
}

// Occupancy, and the blocks that it suggests.

enum {
    USUAL_BLOCK_ITEMS = 256
};

static weir_status check_local(const weir_kernel *kernel, size_t local_bytes)
{
    const uint64_t limit = kernel->member.device->limits.max_local_bytes;
    const uint64_t own = kernel->info.local_bytes;
    if (own <= limit && local_bytes <= limit - own)
        return WEIR_OK;
    return weir__invalid(kernel->member.object.label, "use a smaller block, or less of it",
                         "occupancy: %zu bytes of local memory, and %" PRIu64
                         " of the kernel's own; the device's limit is %" PRIu64,
                         local_bytes, own, limit);
}

static weir_status find(weir_kernel *kernel, struct weir_extent block, size_t local_bytes,
                        struct weir_occupancy *out_occupancy)
{
    const struct weir__caller caller = {.device = kernel->member.device};
    const struct weir_extent grid = {1, 1, 1};
    if (block.x == 0)
        return weir__invalid(kernel->member.object.label, "a block has at least one work-item",
                             "occupancy: block.x is 0");
    block = without_zeros(block);
    TRY(check_extents(&caller, kernel, &grid, &block));
    TRY(check_local(kernel, local_bytes));
    weir_status status = ask_occupancy(kernel, block, local_bytes, out_occupancy);
    if (status < 0)
        weir__error_place(status, kernel->member.object.label, NULL, 0);
    return status;
}

weir_status weir_kernel_occupancy_sized(weir_kernel *kernel, struct weir_extent block,
                                        size_t local_bytes, struct weir_occupancy *out_occupancy,
                                        size_t size)
{
    WEIR_REQUIRE(NULL, out_occupancy);
    struct weir_occupancy occupancy = {.struct_size = sizeof occupancy};
    weir_sized_write_back(out_occupancy, size, &occupancy, sizeof occupancy);
    WEIR_ENTER(kernel);
    weir_status status = find(kernel, block, local_bytes, &occupancy);
    if (status == WEIR_OK)
        weir_sized_write_back(out_occupancy, size, &occupancy, sizeof occupancy);
    return weir__told(status);
}

weir_status weir_kernel_cooperative_blocks(weir_kernel *kernel, struct weir_extent block,
                                           size_t local_bytes, uint32_t *out_blocks)
{
    struct weir_occupancy occupancy;
    WEIR_REQUIRE(NULL, out_blocks);
    *out_blocks = 0;
    WEIR_ENTER(kernel);
    weir_status status = find(kernel, block, local_bytes, &occupancy);
    if (status == WEIR_OK)
        *out_blocks = occupancy.cooperative_blocks;
    return weir__told(status);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

// Block sizes are multiples of this, up to `*out_most`.
static uint32_t step_of(const weir_kernel *kernel, uint32_t *out_most)
{
    const struct weir_limits *limits = &kernel->member.device->limits;
    const uint32_t most = least(kernel->info.max_block_items, limits->max_block.x);
    const uint32_t preferred = kernel->info.preferred_block_items;
    *out_most = most;
    return preferred > 0 && preferred <= most ? preferred : 1;
}

static uint32_t usual_items(uint32_t step, uint32_t most)
{
    const uint32_t items = least(most, USUAL_BLOCK_ITEMS) / step * step;
    return items > 0 ? items : step;
}

// The work-items of a block of one dimension: those that the kernel requires, else at most 256.
// 0 if it requires blocks of more than one dimension.
static uint32_t usual_block(const weir_kernel *kernel)
{
    const struct weir_extent *required = &kernel->signature->required_block;
    uint32_t most;
    if (required->x > 0)
        return required->y > 1 || required->z > 1 ? 0 : required->x;
    const uint32_t step = step_of(kernel, &most);
    return usual_items(step, most);
}

// The largest number up to `most` that divides `items`.
static uint32_t divisor(uint32_t items, uint32_t most)
{
    uint32_t divides = least(items, most);
    while (divides > 0 && items % divides != 0)
        divides--;
    return divides > 0 ? divides : 1;
}

static double product(struct weir_extent extent)
{
    return (double)extent.x * extent.y * extent.z;
}

static struct weir_extent dividing(struct weir_extent items, struct weir_extent limit,
                                   uint32_t most)
{
    const uint32_t x = divisor(items.x, least(most, limit.x));
    const uint32_t y = divisor(items.y, least(most / x, limit.y));
    return weir_dim(x, y, divisor(items.z, least(most / x / y, limit.z)));
}

// The block for exactly these work-items, of which only `x` may be 0: the kernel's required one, else a row as
// long as can be, then rows, then slices. False if it does not divide them, or if it has fewer
// work-items than info.preferred_block_items and is not all of them.
static bool exact_block(const weir_kernel *kernel, struct weir_extent items,
                        struct weir_extent *out_block)
{
    const struct weir_extent required = kernel->signature->required_block;
    const struct weir_extent limit = kernel->member.device->limits.max_block;
    const uint32_t most = kernel->info.max_block_items;
    const uint32_t wanted = least(kernel->info.preferred_block_items, most);
    *out_block = required;
    if (required.x > 0)
        return items.x == 0 || (items.x % required.x == 0 && items.y % required.y == 0 &&
                                items.z % required.z == 0);
    *out_block = dividing(items, limit, least(most, USUAL_BLOCK_ITEMS));
    if (product(*out_block) < wanted) // a larger block may divide where these do not
        *out_block = dividing(items, limit, most);
    return items.x == 0 || product(*out_block) >= wanted || product(*out_block) >= product(items);
}

// Block sizes to try are the multiples of `step` up to `most`.
static weir_status search(weir_kernel *kernel, size_t local_bytes, uint32_t step, uint32_t most,
                          uint32_t *out_items)
{
    struct weir_occupancy occupancy;
    uint32_t resident = 0;
    weir_status status = WEIR_OK;
    for (uint32_t items = step; items <= most; items += step) {
        status = find(kernel, weir_dim(items, 1, 1), local_bytes, &occupancy);
        if (status < 0 || occupancy.max_unit_items == 0)
            break;
        if (occupancy.unit_items < resident)
            continue;
        resident = occupancy.unit_items;
        *out_items = items;
    }
    return status;
}

weir_status weir_kernel_suggest_block(weir_kernel *kernel, size_t local_bytes, uint32_t *out_items)
{
    WEIR_REQUIRE(NULL, out_items);
    *out_items = 0;
    WEIR_ENTER(kernel);
    const struct weir_extent *required = &kernel->signature->required_block;
    uint32_t most;
    const uint32_t step = step_of(kernel, &most);
    if (required->x > 0) {
        *out_items = required->x * required->y * required->z;
        return weir__told(check_local(kernel, local_bytes));
    }
    *out_items = usual_items(step, most);
    const weir_status status = search(kernel, local_bytes, step, most, out_items);
    if (status < 0)
        *out_items = 0;
    return weir__told(status);
}

// Calls of users.

// Hints in debug mode. What a kernel touches is not known, so each hint compares numbers that seldom meet by
// chance: the launch's work-items, the elements that its parameters point to, and its counts.

enum told {
    TOLD_ITEMS = 1,
    TOLD_EMPTY = 2,
    TOLD_ELEMENTS = 4,
};

WEIR_PRINTF(3, 4)
static void tell(const struct weir_operation *launch, enum told what, const char *format, ...)
{
    char text[384], message[640];
    if (atomic_fetch_or(&launch->u.launch.kernel->told, what) & what)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "launch of '%.80s': %s (%s:%d)",
             weir__label_or_none(launch->u.launch.kernel->member.object.label), text,
             launch->file ? launch->file : "?", launch->line);
    weir__log(WEIR_LOG_WARNING, "core", message);
}

// With as many work-items as the grid has blocks, each has a byte of the largest range; with those of all
// blocks, most have none, and one in `block` would have done. A grid that was rounded up has fewer.
static void hint_items(const struct weir_operation *launch)
{
    const struct weir_extent grid = launch->u.launch.grid, block = launch->u.launch.block;
    const double blocks = product(grid), items = product(block);
    size_t most = 0;
    for (size_t i = 0; i < launch->u.launch.argument_count; i++)
        if (launch->u.launch.arguments[i].kind == WEIR_PARAMETER_BUFFER &&
            launch->u.launch.arguments[i].size > most)
            most = launch->u.launch.arguments[i].size;
    const bool divides = grid.x % block.x == 0 && grid.y % block.y == 0 && grid.z % block.z == 0;
    if (items == 1 || !divides || blocks > (double)most || blocks * items <= 2 * (double)most)
        return;
    tell(launch, TOLD_ITEMS,
         "%.0f blocks of %.0f are %.0f work-items, and its largest range has %zu bytes; a grid "
         "counts "
         "blocks: is it meant in work-items? weir_queue_launch_count() takes their number",
         blocks, items, blocks * items, most);
}

// The bytes of what the parameter points to; 0: not known.
static size_t unit_of(const struct weir_parameter *parameter)
{
    static const unsigned char sizes[] = {
        [WEIR_SCALAR_I8] = 1,  [WEIR_SCALAR_U8] = 1,  [WEIR_SCALAR_I16] = 2, [WEIR_SCALAR_U16] = 2,
        [WEIR_SCALAR_I32] = 4, [WEIR_SCALAR_U32] = 4, [WEIR_SCALAR_I64] = 8, [WEIR_SCALAR_U64] = 8,
        [WEIR_SCALAR_F32] = 4, [WEIR_SCALAR_F64] = 8, [WEIR_SCALAR_F16] = 2,
    };
    const size_t element = (size_t)parameter->element;
    const size_t width = parameter->width == 3 ? 4 : parameter->width;
    return element < sizeof sizes ? sizes[element] * width : 0;
}

// Whether a value of the launch is that number: a count of elements.
static bool is_passed(const struct weir_operation *launch, uint64_t number)
{
    for (size_t i = 0; i < launch->u.launch.argument_count; i++) {
        const struct weir_argument *argument = &launch->u.launch.arguments[i];
        const bool is_integer =
            argument->scalar >= WEIR_SCALAR_I32 && argument->scalar <= WEIR_SCALAR_U64;
        if (argument->kind == WEIR_PARAMETER_VALUE && !argument->pointer && is_integer &&
            argument->bits == number)
            return true;
    }
    return false;
}

// Whether the range has as many bytes as there are work-items, but for a last block that is not full.
static bool is_of_items(const struct weir_operation *launch, size_t bytes)
{
    const double items = product(launch->u.launch.block),
                 all = product(launch->u.launch.grid) * items;
    return bytes > 1 && (double)bytes <= all && (double)bytes > all - items;
}

// Whether no range of larger elements has more bytes.
static bool is_largest(const struct weir_operation *launch, size_t bytes)
{
    for (size_t i = 0; i < launch->u.launch.argument_count; i++)
        if (launch->u.launch.arguments[i].kind == WEIR_PARAMETER_BUFFER &&
            launch->u.launch.arguments[i].size > bytes)
            return false;
    return true;
}

static void hint_elements(const struct weir_operation *launch, size_t index)
{
    const struct weir_argument *argument = &launch->u.launch.arguments[index];
    const struct weir_kernel_signature *signature = launch->u.launch.kernel->signature;
    const struct weir_parameter *parameter =
        index < signature->parameter_count ? weir_signature_parameter(signature, (uint32_t)index)
                                           : NULL;
    const size_t bytes = argument->size, unit = parameter ? unit_of(parameter) : 0;
    char place[WEIR__PLACE_SIZE];
    if (argument->kind != WEIR_PARAMETER_BUFFER || unit < 2 || !argument->buffer ||
        !is_of_items(launch, bytes) || is_passed(launch, bytes / unit))
        return;
    const weir_buffer *buffer = argument->buffer;
    const bool is_part = argument->offset == 0 && buffer->size / unit == bytes;
    if (!is_part && !is_passed(launch, bytes) && !is_largest(launch, bytes))
        return;
    weir__member_created(&buffer->member, place);
    tell(launch, TOLD_ELEMENTS,
         "%zu work-items, and '%.40s' has %zu bytes of '%.40s'%s, which are %zu of its elements; "
         "sizes "
         "count bytes: is this one meant in elements? Multiply it by %zu",
         (size_t)(product(launch->u.launch.grid) * product(launch->u.launch.block)),
         parameter->name, bytes, weir__label_or_none(buffer->member.object.label), place,
         bytes / unit, unit);
}

// In debug mode: what a launch is given. Hints at a grid of work-items instead of blocks, one without blocks, and ranges
// that count elements instead of bytes.
WEIR_COLD static weir_status look_at_launch(const char *function, const weir_queue *queue,
                                            const struct weir_operation *given,
                                            struct weir_extent grid, struct weir_extent block,
                                            bool counted)
{
    struct weir_operation launch = *given;
    const size_t count = launch.u.launch.argument_count;
    TRY(weir__enter_arguments(function, launch.file, launch.line, launch.u.launch.arguments,
                              count));
    launch.u.launch.kernel = weir__kernel_on(launch.u.launch.kernel, queue->member.device);
    if (block.x == 0 || !launch.u.launch.kernel || (count && !launch.u.launch.arguments))
        return WEIR_OK; // refused
    if (grid.x == 0) {
        if (!counted)
            tell(&launch, TOLD_EMPTY,
                 "its grid has 0 blocks, so nothing runs; a count divided by the block's size "
                 "rounds down: round up, or call weir_queue_launch_count() with the count");
        return WEIR_OK;
    }
    launch.u.launch.grid = without_zeros(grid);
    launch.u.launch.block = without_zeros(block);
    hint_items(&launch);
    for (size_t i = 0; i < count; i++)
        hint_elements(&launch, i);
    return WEIR_OK;
}

// What the functions of a launch are given, by the names of their parameters, as an operation. Its sizes are passed beside
// it: see weir__operation_launch().
#define BEGIN_LAUNCH(operation, flags)                                                      \
    WEIR_ENTER_AT(file, line, queue, kernel);                                               \
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), kernel);                           \
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), arguments || argument_count == 0); \
    weir__operation_begin(&(operation), WEIR_OPERATION_LAUNCH, flags, file, line);          \
    (operation).u.launch.kernel = kernel;                                                   \
    (operation).u.launch.arguments = arguments;                                             \
    (operation).u.launch.argument_count = argument_count

// `counted`: a count of 0 is on purpose, unlike a grid of 0 blocks.
static weir_status submit_launch(const char *function, weir_queue *queue,
                                 struct weir_operation *operation, struct weir_extent grid,
                                 struct weir_extent block, bool counted)
{
    struct weir_argument widened[WEIR__WIDEN_LIMIT];
    const struct weir__caller caller = {queue->member.device, queue->member.object.label,
                                        operation->file, operation->line,
                                        !weir__is_capturing(queue)};
    weir_status status = weir__is_unusual()
                             ? look_at_launch(function, queue, operation, grid, block, counted)
                             : WEIR_OK;
    if (status == WEIR_OK)
        status = weir__operation_launch(&caller, operation, grid, block, widened);
    return status < 0 ? status : weir__queue_submit(queue, operation);
}

weir_status weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel, struct weir_extent grid,
                                 struct weir_extent block, const struct weir_argument *arguments,
                                 size_t argument_count, const char *file, int line)
{
    struct weir_operation operation;
    BEGIN_LAUNCH(operation, 0);
    return submit_launch(__func__, queue, &operation, grid, block, false);
}

weir_status weir_queue_launch_cooperative_at(weir_queue *queue, weir_kernel *kernel,
                                             struct weir_extent grid, struct weir_extent block,
                                             const struct weir_argument *arguments,
                                             size_t argument_count, const char *file, int line)
{
    struct weir_operation operation;
    BEGIN_LAUNCH(operation, WEIR_OPERATION_COOPERATIVE);
    return submit_launch(__func__, queue, &operation, grid, block, false);
}

weir_status weir_queue_launch_count_at(weir_queue *queue, weir_kernel *kernel, size_t count,
                                       const struct weir_argument *arguments, size_t argument_count,
                                       const char *file, int line)
{
    struct weir_operation operation;
    BEGIN_LAUNCH(operation, 0);
    const weir_kernel *own = weir__kernel_on(kernel, queue->member.device);
    const uint32_t items = usual_block(own ? own : kernel);
    if (items == 0)
        return weir__fail_at(
            file, line, weir_queue_label(queue), WEIR_ERROR_INVALID,
            "launch it with weir_queue_launch()",
            "weir_queue_launch_count: kernel '%s' requires blocks of more than one "
            "dimension",
            weir__label_or_none(kernel->member.object.label));
    const size_t blocks = count / items + (count % items != 0);
    if (blocks > UINT32_MAX)
        return weir__fail_at(
            file, line, weir_queue_label(queue), WEIR_ERROR_INVALID, "launch it in parts",
            "weir_queue_launch_count: %zu work-items for kernel '%s' are %zu blocks "
            "of %u; a grid has at most %u",
            count, weir__label_or_none(kernel->member.object.label), blocks, items, UINT32_MAX);
    return submit_launch(__func__, queue, &operation, weir_dim((uint32_t)blocks, 1, 1),
                         weir_dim(items, 1, 1), true);
}

WEIR_COLD static weir_status refuse_global(const weir_queue *queue, const weir_kernel *kernel,
                                           struct weir_extent items, struct weir_extent block,
                                           const char *file, int line)
{
    static const char remedy[] =
        "launch more work-items, and let the kernel compare get_global_id() with the size: "
        "weir_queue_launch_count(), or weir_queue_launch() with a grid that is rounded up";
    const char *label = weir__label_or_none(kernel->member.object.label);
    if (kernel->signature->required_block.x > 0)
        return weir__fail_at(file, line, weir_queue_label(queue), WEIR_ERROR_INVALID, remedy,
                             "weir_queue_launch_global: %u×%u×%u work-items are not whole blocks "
                             "of %u×%u×%u, which kernel '%s' requires",
                             items.x, items.y, items.z, block.x, block.y, block.z, label);
    return weir__fail_at(
        file, line, weir_queue_label(queue), WEIR_ERROR_INVALID, remedy,
        "weir_queue_launch_global: of blocks of kernel '%s' that divide %u×%u×%u "
        "work-items the largest is %u×%u×%u; the device wants %u work-items or more",
        label, items.x, items.y, items.z, block.x, block.y, block.z,
        kernel->info.preferred_block_items);
}

weir_status weir_queue_launch_global_at(weir_queue *queue, weir_kernel *kernel,
                                        struct weir_extent items,
                                        const struct weir_argument *arguments,
                                        size_t argument_count, const char *file, int line)
{
    struct weir_operation operation;
    BEGIN_LAUNCH(operation, 0);
    const weir_kernel *there = weir__kernel_on(kernel, queue->member.device);
    const weir_kernel *own = there ? there : kernel;
    struct weir_extent block;
    items = without_zeros(items);
    if (!exact_block(own, items, &block))
        return refuse_global(queue, own, items, block, file, line);
    const struct weir_extent grid = {items.x / block.x, items.y / block.y, items.z / block.z};
    return submit_launch(__func__, queue, &operation, grid, block, false);
}
#undef BEGIN_LAUNCH
