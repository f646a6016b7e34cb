// One context for each opened device. It is current on a thread only during a slot, which restores
// the caller's context.
#include "trn.h"

weir_status trn_enter(const struct trn_device *device, tarn_context **out_before)
{
    const struct trn_symbols *tarn = &device->module->tarn;
    const char *call = "tarn_context_get_current";
    tarn_result result = tarn->tarn_context_get_current(out_before);
    if (result == TARN_OK && *out_before != device->context) {
        call = "tarn_context_set_current";
        result = tarn->tarn_context_set_current(device->context);
    }
    if (result == TARN_OK)
        return WEIR_OK;
    return trn_error(device->module, call, result, "enter the device's context");
}

void trn_leave(const struct trn_device *device, tarn_context *before)
{
    if (before != device->context)
        device->module->tarn.tarn_context_set_current(before);
}

static void release(struct trn_device *device)
{
    const struct trn_module *module = device->module;
    tarn_context *before;
    if (device->idle && device->context && trn_enter(device, &before) == WEIR_OK) {
        weir_kit_idle_drain(device->idle);
        trn_blocks_release(device);
        trn_leave(device, before);
    }
    weir_kit_idle_destroy(&device->idle);
    if (device->context)
        module->tarn.tarn_context_destroy(device->context);
    weir_kit_blocks_destroy(&device->on_device);
    weir_kit_blocks_destroy(&device->on_host);
    pthread_mutex_destroy(&device->lock);
    module->host->release(device);
}

weir_status trn_device_create(const struct weir_link *link, weir_device *object,
                              const struct weir_device_setup *setup, void **out_data)
{
    struct trn_module *module = trn_module_of(link);
    (void)object;
    struct trn_device *device = module->host->allocate(sizeof *device);
    if (!device)
        return weir_host_no_memory(module->host, "a device");
    device->module = module;
    device->info = &module->devices[setup->index];
    pthread_mutex_init(&device->lock, NULL);
    weir_status status = trn_idle_create(device);
    if (status == WEIR_OK)
        status = weir_kit_blocks_create(module->host, &device->on_device);
    if (status == WEIR_OK)
        status = weir_kit_blocks_create(module->host, &device->on_host);
    if (status == WEIR_OK) {
        tarn_result result = module->tarn.tarn_context_create(&device->context, (int)setup->index);
        if (result == TARN_OK)
            module->host->count_driver_object();
        else
            status =
                trn_error(module, "tarn_context_create", result, "open '%s'", device->info->name);
    }
    if (status < 0) {
        release(device);
        return status;
    }
    *out_data = device;
    return WEIR_OK;
}

void trn_device_destroy(const struct weir_link *link, weir_device *object)
{
    release(trn_device_of(link, object));
}

weir_status trn_device_trim(const struct weir_link *link, weir_device *object)
{
    struct trn_device *device = trn_device_of(link, object);
    tarn_context *before;
    weir_status status = trn_enter(device, &before);
    if (status < 0)
        return status;
    weir_kit_idle_drain(device->idle);
    trn_blocks_release(device);
    trn_leave(device, before);
    return WEIR_OK;
}

// Limits that are not set are zero: not supported.
void trn_device_limits(const struct weir_link *link, weir_device *object,
                       struct weir_limits *limits)
{
    const struct tarn_device_info *info = trn_device_of(link, object)->info;
    limits->memory_bytes = info->memory_bytes;
    limits->max_buffer_bytes = info->memory_bytes;
    limits->argument_alignment_bytes = TRN_ALIGNMENT;
    limits->host_in_kernels = 1;
    limits->max_block_items = info->max_threads;
    limits->max_block = weir_dim(info->max_threads, info->max_threads, info->max_threads);
    limits->max_grid = weir_dim(UINT32_MAX, UINT16_MAX, UINT16_MAX);
    limits->max_local_bytes = info->max_local_bytes;
    limits->compute_units = info->compute_units;
    limits->concurrent_kernels = info->compute_units;
    limits->copy_engines_to_device = info->engines > 0;
    limits->copy_engines_to_host = info->engines > 1;
    limits->priority_lowest = info->priority_lowest;
    limits->priority_highest = info->priority_highest;
    limits->timing_resolution_ns = 1;
    limits->timing_history = TRN_TIMING_HISTORY;
}
