// The functions about the occupancy of kernels.

#include <inttypes.h>

#include "base/sized.h"
#include "core/object/device.h"
#include "core/object/program.h"
#include "core/queue/operation.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/thread.h"

enum {
    USUAL_BLOCK_ITEMS = 256
};

weir_status weir__kernel_occupancy(weir_kernel *kernel, struct weir_extent block,
                                   size_t local_bytes, struct weir_occupancy *out_occupancy)
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

static weir_status check_local(const weir_kernel *kernel, size_t local_bytes)
{
    const uint64_t limit = kernel->member.device->limits.max_local_bytes;
    const uint64_t own = kernel->info.local_bytes;
    if (own <= limit && local_bytes <= limit - own)
        return WEIR_OK;
    return weir__fail_at(NULL, 0, kernel->member.object.label, WEIR_ERROR_INVALID,
                         "use a smaller block, or less of it",
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
        return weir__fail_at(NULL, 0, kernel->member.object.label, WEIR_ERROR_INVALID,
                             "a block has at least one work-item", "occupancy: block.x is 0");
    block = weir__operation_extent(block);
    weir_status status = weir__operation_check_extents(&caller, kernel, &grid, &block);
    if (status == WEIR_OK)
        status = check_local(kernel, local_bytes);
    if (status < 0)
        return status;
    status = weir__kernel_occupancy(kernel, block, local_bytes, out_occupancy);
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
    WEIR_REQUIRE(NULL, kernel);
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
    WEIR_REQUIRE(NULL, kernel);
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

uint32_t weir__usual_block(const weir_kernel *kernel)
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

static uint64_t product(struct weir_extent extent)
{
    return (uint64_t)extent.x * extent.y * extent.z;
}

static struct weir_extent dividing(struct weir_extent items, struct weir_extent limit,
                                   uint32_t most)
{
    const uint32_t x = divisor(items.x, least(most, limit.x));
    const uint32_t y = divisor(items.y, least(most / x, limit.y));
    return weir_dim(x, y, divisor(items.z, least(most / x / y, limit.z)));
}

bool weir__exact_block(const weir_kernel *kernel, struct weir_extent items,
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
    return items.x == 0 || product(*out_block) >= wanted || product(*out_block) == product(items);
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
    WEIR_REQUIRE(NULL, kernel);
    const struct weir_extent *required = &kernel->signature->required_block;
    uint32_t most;
    const uint32_t step = step_of(kernel, &most);
    if (required->x > 0) {
        *out_items = required->x * required->y * required->z;
        return weir__told(check_local(kernel, local_bytes));
    }
    *out_items = usual_items(step, most);
    weir_status status = check_local(kernel, local_bytes);
    if (status == WEIR_OK)
        status = search(kernel, local_bytes, step, most, out_items);
    if (status < 0)
        *out_items = 0;
    return weir__told(status);
}
