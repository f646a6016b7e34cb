// How many blocks of a kernel a multiprocessor holds at once. The driver tells the number and not its
// reason, which is found by computing what each resource alone allows.
#include "backends/cuda/cu.h"

enum {
    WARP_REGISTERS = 256, // a warp's registers are a multiple of it, and
    LOCAL_BYTES = 128,    // a block's local memory of this
};

static unsigned round_up(unsigned number, unsigned step)
{
    return (number + step - 1) / step * step;
}

// A launch of blocks with that many warps.
struct shape {
    unsigned warps;
    size_t local_bytes; // that the driver does not reserve
};

static unsigned allowed_by_items(const struct cu_device *device, const struct shape *shape)
{
    return device->attributes.unit_items / (shape->warps * device->attributes.warp_size);
}

static unsigned allowed_by_local(const struct cu_device *device, const struct shape *shape)
{
    const size_t bytes = shape->local_bytes + device->attributes.reserved_local_bytes;
    const size_t rounded = (bytes + LOCAL_BYTES - 1) / LOCAL_BYTES * LOCAL_BYTES;
    return rounded > 0 ? (unsigned)(device->attributes.unit_local_bytes / rounded) : UINT32_MAX;
}

static unsigned allowed_by_registers(const struct cu_kernel *kernel, const struct shape *shape)
{
    const struct cu_attributes *has = &kernel->device->attributes;
    const unsigned of_warp = round_up(kernel->registers * has->warp_size, WARP_REGISTERS);
    return of_warp > 0 ? has->unit_registers / of_warp / shape->warps : UINT32_MAX;
}

// Of several resources that allow no further block, the first.
static weir_occupancy_limit find_limit(const struct cu_kernel *kernel, const struct shape *shape,
                                       unsigned blocks)
{
    if (blocks >= allowed_by_items(kernel->device, shape))
        return WEIR_OCCUPANCY_ITEMS;
    if (blocks >= kernel->device->attributes.unit_blocks)
        return WEIR_OCCUPANCY_BLOCKS;
    if (blocks >= allowed_by_local(kernel->device, shape))
        return WEIR_OCCUPANCY_LOCAL_BYTES;
    if (blocks >= allowed_by_registers(kernel, shape))
        return WEIR_OCCUPANCY_REGISTERS;
    return WEIR_OCCUPANCY_UNKNOWN;
}

static void describe(const struct cu_kernel *kernel, const struct shape *shape, unsigned blocks,
                     struct weir_occupancy *occupancy)
{
    const struct cu_attributes *has = &kernel->device->attributes;
    occupancy->unit_blocks = blocks;
    occupancy->unit_items = blocks * shape->warps * has->warp_size;
    occupancy->max_unit_items = has->unit_items;
    occupancy->limit = find_limit(kernel, shape, blocks);
    if (has->cooperative)
        occupancy->cooperative_blocks = blocks * has->multiprocessors;
}

weir_status cu_kernel_occupancy(const struct weir_link *link, weir_kernel *object,
                                struct weir_extent block, size_t local_bytes,
                                struct weir_occupancy *occupancy)
{
    const struct cu_kernel *kernel = cu_kernel_of(link, object);
    struct cu_device *device = kernel->device;
    const unsigned items = block.x * block.y * block.z;
    const unsigned warp = device->attributes.warp_size;
    const struct shape shape = {(items + warp - 1) / warp, local_bytes + kernel->own_local_bytes};
    struct cu_scope scope;
    int blocks = 0;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    const CUresult code =
        device->module->cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function,
                                                                       (int)items, local_bytes);
    if (code != CUDA_SUCCESS)
        status = cu_native_error(device, "cuOccupancyMaxActiveBlocksPerMultiprocessor", code,
                                 "the occupancy of kernel '%s'", kernel->name);
    else
        describe(kernel, &shape, (unsigned)blocks, occupancy);
    cu_leave(device, &scope);
    return status;
}
