// Devices. They have no driver, so they carry no data; a real backend
// opens the device's context in device_create and keeps it in `*out_data`.
#include "backends/null/null.h"

#include <unistd.h>

static uint64_t memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : PTRDIFF_MAX;
}

size_t null_device_count(const struct weir_link *link)
{
    return null_module_of(link)->device_count;
}

// The front end has checked that `index` is below the count.
weir_status null_device_describe(const struct weir_link *link, size_t index,
                                 struct weir_device_info *out_info)
{
    snprintf(out_info->name, sizeof out_info->name, "null device %zu", index);
    snprintf(out_info->platform, sizeof out_info->platform, "null");
    snprintf(out_info->driver, sizeof out_info->driver, "%s", WEIR_VERSION_STRING);
    out_info->memory_bytes = memory_bytes();
    return WEIR_OK;
}

weir_status null_device_create(const struct weir_link *link, weir_device *device,
                               const struct weir_device_setup *setup, void **out_data)
{
    *out_data = NULL;
    return WEIR_OK;
}

void null_device_destroy(const struct weir_link *link, weir_device *device)
{
}

// Zero means: not supported. Nothing overlaps here, so there are no copy engines. The limits of
// launches are those of common GPUs, so that a launch that is accepted here is not refused there
// for its shape.
void null_device_limits(const struct weir_link *link, weir_device *device,
                        struct weir_limits *limits)
{
    const struct weir_limits mine = {
        .struct_size = sizeof mine,
        .memory_bytes = memory_bytes(),
        .max_buffer_bytes = memory_bytes(),
        .argument_alignment_bytes = NULL_ALIGNMENT,
        .unified_memory = 1,
        .host_in_kernels = 1,
        .max_block_items = 1024,
        .max_block = {1024, 1024, 64},
        .max_grid = {INT32_MAX, UINT16_MAX, UINT16_MAX},
        .max_local_bytes = UINT64_C(48) * 1024,
        .compute_units = 1,
        .concurrent_kernels = 1,
        .timing_resolution_ns = 1,
        .timing_history = NULL_TIMING_HISTORY,
        .managed_memory = 1,
        .byte_offsets = 1,
        .device_addresses = 1,
        .max_constant_bytes = UINT64_C(64) * 1024,
        .kind = WEIR_DEVICE_CPU,
    };
    WEIR_WRITE(limits, &mine);
}

// All memory is host memory. A real backend queries the driver, and enables access for the two
// devices.
weir_status null_device_peer(const struct weir_link *link, weir_device *device, weir_device *other,
                             bool *out_peers)
{
    *out_peers = true;
    return WEIR_OK;
}

weir_status null_device_reach(const struct weir_link *link, weir_device *device, weir_device *other,
                              weir_buffer *buffer, bool *out_reaches)
{
    *out_reaches = true;
    return WEIR_OK;
}
