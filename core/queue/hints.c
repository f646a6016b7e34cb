// See the header. What a kernel touches is not known, so each hint compares numbers that seldom meet by
// chance: the launch's work-items, the elements that its parameters point to, and its counts.
#include "core/queue/hints.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/object/buffer.h"
#include "core/object/program.h"
#include "core/queue/operation.h"
#include "core/support/error.h"

enum told {
    TOLD_ITEMS = 1,
    TOLD_EMPTY = 2,
    TOLD_ELEMENTS = 4,
};

static void tell(const struct weir__launch *launch, enum told what, const char *format, ...)
    WEIR_PRINTF(3, 4);

static void tell(const struct weir__launch *launch, enum told what, const char *format, ...)
{
    char text[384], message[640];
    if (atomic_fetch_or(&launch->kernel->told, what) & what)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "launch of '%.80s': %s (%s:%d)",
             weir__label_or_none(launch->kernel->member.object.label), text,
             launch->file ? launch->file : "?", launch->line);
    weir__log(WEIR_LOG_WARNING, "core", message);
}

static double product(struct weir_extent extent)
{
    return (double)extent.x * extent.y * extent.z;
}

// With as many work-items as the grid has blocks, each has a byte of the largest range; with those of all
// blocks, most have none, and one in `block` would have done. A grid that was rounded up has fewer.
static void hint_items(const struct weir__launch *launch)
{
    const struct weir_extent grid = launch->grid, block = launch->block;
    const double blocks = product(grid), items = product(block);
    size_t most = 0;
    for (size_t i = 0; i < launch->argument_count; i++)
        if (launch->arguments[i].kind == WEIR_PARAMETER_BUFFER && launch->arguments[i].size > most)
            most = launch->arguments[i].size;
    const bool divides = grid.x % block.x == 0 && grid.y % block.y == 0 && grid.z % block.z == 0;
    if (items == 1 || !divides || blocks > (double)most || blocks * items <= 2 * (double)most)
        return;
    tell(launch, TOLD_ITEMS,
         "%.0f blocks of %.0f are %.0f work-items, and its largest range has %zu bytes; a grid "
         "counts "
         "blocks: is it meant in work-items? weir_queue_launch_count() takes their number",
         blocks, items, blocks * items, most);
}

static const struct weir_parameter *parameter_at(const struct weir__launch *launch, size_t index)
{
    const struct weir_kernel_signature *signature = launch->kernel->signature;
    return index < signature->parameter_count ? weir_signature_parameter(signature, (uint32_t)index)
                                              : NULL;
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
static bool is_passed(const struct weir__launch *launch, uint64_t number)
{
    for (size_t i = 0; i < launch->argument_count; i++) {
        const struct weir_argument *argument = &launch->arguments[i];
        const bool is_integer =
            argument->scalar >= WEIR_SCALAR_I32 && argument->scalar <= WEIR_SCALAR_U64;
        if (argument->kind == WEIR_PARAMETER_VALUE && !argument->pointer && is_integer &&
            argument->bits == number)
            return true;
    }
    return false;
}

// Whether the range has as many bytes as there are work-items, but for a last block that is not full.
static bool is_of_items(const struct weir__launch *launch, size_t bytes)
{
    const double items = product(launch->block), all = product(launch->grid) * items;
    return bytes > 1 && (double)bytes <= all && (double)bytes > all - items;
}

// Whether no range of larger elements has more bytes.
static bool is_largest(const struct weir__launch *launch, size_t bytes)
{
    for (size_t i = 0; i < launch->argument_count; i++)
        if (launch->arguments[i].kind == WEIR_PARAMETER_BUFFER && launch->arguments[i].size > bytes)
            return false;
    return true;
}

static void hint_elements(const struct weir__launch *launch, size_t index)
{
    const struct weir_argument *argument = &launch->arguments[index];
    const struct weir_parameter *parameter = parameter_at(launch, index);
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
         (size_t)(product(launch->grid) * product(launch->block)), parameter->name, bytes,
         weir__label_or_none(buffer->member.object.label), place, bytes / unit, unit);
}

void weir__hint_launch(const struct weir__launch *given)
{
    struct weir__launch launch = *given;
    if (launch.block.x == 0 || !launch.kernel || (launch.argument_count && !launch.arguments))
        return; // refused
    if (launch.grid.x == 0) {
        tell(&launch, TOLD_EMPTY,
             "its grid has 0 blocks, so nothing runs; a count divided by the block's size rounds "
             "down: round up, or call weir_queue_launch_count() with the count");
        return;
    }
    launch.grid = weir__operation_extent(launch.grid);
    launch.block = weir__operation_extent(launch.block);
    hint_items(&launch);
    for (size_t i = 0; i < launch.argument_count; i++)
        hint_elements(&launch, i);
}
