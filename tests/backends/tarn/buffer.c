// Memory of both placements has one address, which copies and kernels use. Freeing it waits for the
// device, so it is kept for later buffers; unregistering memory of the caller is deferred until the
// device is idle.
#include "trn.h"

static struct weir_kit_registrations registrations = WEIR_KIT_REGISTRATIONS;

static bool is_idle(void *user)
{
    struct trn_device *device = user;
    bool idle = true;
    pthread_mutex_lock(&device->lock);
    for (const struct trn_queue *queue = device->queues; queue && idle; queue = queue->next)
        idle = device->module->tarn.tarn_stream_query(queue->stream) == TARN_OK;
    pthread_mutex_unlock(&device->lock);
    return idle;
}

static void unregister(void *user, void *pointer)
{
    const struct trn_device *device = user;
    device->module->tarn.tarn_host_unregister(pointer);
}

weir_status trn_idle_create(struct trn_device *device)
{
    const struct weir_kit_idle_params params = {
        .host = device->module->host,
        .device = device,
        .is_idle = is_idle,
        .registrations = &registrations,
        .unregister = unregister,
    };
    return weir_kit_idle_create(&params, &device->idle);
}

static void free_on_device(void *user, struct weir_kit_block *block)
{
    const struct trn_device *device = user;
    device->module->tarn.tarn_memory_free(block->pointer);
    device->module->host->release(block);
}

static void free_on_host(void *user, struct weir_kit_block *block)
{
    const struct trn_device *device = user;
    device->module->tarn.tarn_host_free(block->pointer);
    device->module->host->release(block);
}

void trn_blocks_release(struct trn_device *device)
{
    weir_kit_blocks_empty(device->on_device, free_on_device, device);
    weir_kit_blocks_empty(device->on_host, free_on_host, device);
}

static weir_kit_blocks *blocks_of(const struct trn_buffer *buffer)
{
    const struct trn_device *device = buffer->device;
    return buffer->placement == WEIR_PLACE_DEVICE ? device->on_device : device->on_host;
}

static tarn_result allocate(const struct trn_buffer *buffer, void **out_pointer, size_t size)
{
    const struct trn_symbols *tarn = &buffer->device->module->tarn;
    return buffer->placement == WEIR_PLACE_DEVICE ? tarn->tarn_memory_allocate(out_pointer, size)
                                                  : tarn->tarn_host_allocate(out_pointer, size);
}

static weir_status create_block(struct trn_buffer *buffer, size_t size)
{
    const struct trn_module *module = buffer->device->module;
    const bool on_device = buffer->placement == WEIR_PLACE_DEVICE;
    struct weir_kit_block *block = module->host->allocate(sizeof *block);
    if (!block)
        return weir_host_no_memory(module->host, "a buffer");
    tarn_result result = allocate(buffer, &block->pointer, size);
    if (result == TARN_OUT_OF_MEMORY) {
        trn_blocks_release(buffer->device);
        result = allocate(buffer, &block->pointer, size);
    }
    if (result != TARN_OK) {
        module->host->release(block);
        return trn_error(module, on_device ? "tarn_memory_allocate" : "tarn_host_allocate", result,
                         "cannot make a %s buffer of %zu bytes", on_device ? "DEVICE" : "HOST",
                         size);
    }
    module->host->count_driver_object();
    block->size = size;
    buffer->block = block;
    return WEIR_OK;
}

static weir_status create_own(struct trn_buffer *buffer, size_t size)
{
    size = weir_kit_block_size(size);
    buffer->block = weir_kit_block_take(blocks_of(buffer), size, size);
    if (!buffer->block) {
        weir_status status = create_block(buffer, size);
        if (!buffer->block)
            return status;
    }
    buffer->address = buffer->block->pointer;
    return WEIR_OK;
}

// Whether the memory is pinned already, by a HOST buffer or by other code in the process, and not
// by a registration of this backend, which may end.
static bool is_pinned_by_others(const struct trn_device *device, void *pointer, size_t size)
{
    return device->module->tarn.tarn_memory_query(pointer, size) == TARN_OK &&
           !weir_kit_registration_touches(device->idle, pointer, size);
}

static weir_status wrap(struct trn_buffer *buffer, void *pointer, size_t size)
{
    const struct trn_module *module = buffer->device->module;
    weir_kit_idle *idle = buffer->device->idle;
    buffer->address = pointer;
    buffer->registration = weir_kit_registration_share(idle, pointer, size);
    if (buffer->registration)
        return WEIR_OK;
    tarn_result result = module->tarn.tarn_host_register(pointer, size);
    if (result != TARN_OK && is_pinned_by_others(buffer->device, pointer, size))
        return WEIR_OK;
    if (result != TARN_OK)
        return trn_error(module, "tarn_host_register", result, "cannot pin %zu bytes at %p", size,
                         pointer);
    buffer->registration = weir_kit_registration_add(idle, pointer, size);
    if (!buffer->registration) {
        module->tarn.tarn_host_unregister(pointer);
        return weir_host_no_memory(module->host, "a buffer");
    }
    module->host->count_driver_object();
    return WEIR_OK;
}

weir_status trn_buffer_create(const struct weir_link *link, weir_device *device,
                              weir_buffer *object, const struct weir_buffer_setup *setup,
                              void **out_data, void **out_pointer)
{
    tarn_context *before;
    (void)object;
    struct trn_buffer *buffer = link->host->allocate(sizeof *buffer);
    if (!buffer)
        return weir_host_no_memory(link->host, "a buffer");
    buffer->device = trn_device_of(link, device);
    buffer->placement = setup->placement;
    weir_status status = trn_enter(buffer->device, &before);
    if (status == WEIR_OK) {
        status = setup->user_pointer ? wrap(buffer, setup->user_pointer, setup->size)
                                     : create_own(buffer, setup->size);
        trn_leave(buffer->device, before);
    }
    if (status < 0) {
        link->host->release(buffer);
        return status;
    }
    *out_data = buffer;
    *out_pointer = setup->placement == WEIR_PLACE_HOST ? buffer->address : NULL;
    return WEIR_OK;
}

void trn_buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
    struct trn_buffer *buffer = trn_buffer_of(link, object);
    if (buffer->block)
        weir_kit_block_put(blocks_of(buffer), buffer->block);
    else if (buffer->registration)
        weir_kit_registration_put(buffer->device->idle, buffer->registration);
    link->host->release(buffer);
}
