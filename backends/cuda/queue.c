// One non-blocking stream each. The driver starts what it is given at once, so
// there is nothing to flush.
#include <inttypes.h>

#include "backends/cuda/ask.h"
#include "backends/cuda/cu.h"
#include "kernels/ptx/ptx.h"

static void enlist(struct cu_queue *queue)
{
    struct cu_device *device = queue->device;
    pthread_mutex_lock(&device->lock);
    queue->next = device->queues;
    queue->link = &device->queues;
    if (queue->next)
        queue->next->link = &queue->next;
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
}

static void delist(struct cu_queue *queue)
{
    pthread_mutex_lock(&queue->device->lock);
    if (queue->link) {
        *queue->link = queue->next;
        if (queue->next)
            queue->next->link = queue->link;
    }
    pthread_mutex_unlock(&queue->device->lock);
}

// Within the device's context.
static void release(struct cu_queue *queue)
{
    const struct cu_module *module = queue->device->module;
    delist(queue);
    cu_comms_forget_queue(queue);
    weir_kit_records_destroy(&queue->records);
    cu_watch_finish(queue);
    if (queue->stream && !queue->wrapped)
        module->cu.cuStreamDestroy(queue->stream);
    cu_history_finish(queue);
    module->host->release(queue);
}

static weir_status create_stream(struct cu_queue *queue, const struct weir_queue_setup *setup)
{
    struct cu_device *device = queue->device;
    if (setup->native) {
        weir_status status = cu_wrap_stream(queue, setup->native);
        if (status == WEIR_OK)
            enlist(queue);
        return status;
    }
    CUresult code =
        device->module->cu.cuStreamCreateWithPriority(&queue->stream, CU_STREAM_NON_BLOCKING,
                                                      -setup->priority);
    if (code != CUDA_SUCCESS) {
        queue->stream = NULL;
        return cu_native_error(device, "cuStreamCreateWithPriority", code, "cannot create a queue");
    }
    device->module->host->count_driver_object();
    enlist(queue);
    return WEIR_OK;
}

weir_status cu_queue_create(const struct weir_link *link, weir_device *device_object,
                            weir_queue *object, const struct weir_queue_setup *setup,
                            void **out_data)
{
    struct cu_device *device = cu_device_of(link, device_object);
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    struct cu_queue *queue = link->host->allocate(sizeof *queue);
    if (!queue) {
        cu_leave(device, &scope);
        return weir_host_no_memory(link->host, "a queue");
    }
    queue->device = device;
    queue->timing = setup->timing;
    status = cu_records_init(queue);
    if (status == WEIR_OK)
        status = cu_history_init(queue, object);
    if (status == WEIR_OK)
        status = create_stream(queue, setup);
    if (status == WEIR_OK && setup->times)
        status = cu_watch_init(queue);
    if (status < 0)
        release(queue);
    else
        *out_data = queue;
    cu_leave(device, &scope);
    return status;
}

void cu_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_device *device = queue->device;
    struct cu_scope scope;
    cu_enter_to_destroy(device, &scope);
    release(queue);
    cu_leave(device, &scope);
}

// A pointer to local memory is an offset: kernels/ptx/ptx.h.
static void pack_local(struct cu_packed *packed, size_t index, size_t size)
{
    const size_t offset = (packed->local_bytes + WEIR_PTX_LOCAL_ALIGNMENT - 1) /
                          WEIR_PTX_LOCAL_ALIGNMENT * WEIR_PTX_LOCAL_ALIGNMENT;
    packed->places[index] = offset;
    packed->pointers[index] = &packed->places[index];
    packed->local_bytes = offset + size;
}

static void pack(const struct weir_link *link, struct cu_packed *packed,
                 const struct weir_argument *arguments, size_t count)
{
    packed->local_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct weir_argument *argument = &arguments[i];
        switch (argument->kind) {
        case WEIR_PARAMETER_BUFFER:
            packed->places[i] = cu_buffer_of(link, argument->buffer)->address + argument->offset;
            packed->pointers[i] = &packed->places[i];
            break;
        case WEIR_PARAMETER_VALUE: // the driver only reads through the pointer
            packed->pointers[i] = argument->pointer ? (void *)(uintptr_t)argument->pointer
                                                    : (void *)(uintptr_t)&argument->bits;
            break;
        case WEIR_PARAMETER_LOCAL:
            pack_local(packed, i, argument->size);
            break;
        }
    }
}

weir_status cu_pack(const struct weir_link *link, const struct weir_operation *operation,
                    struct cu_packed *packed)
{
    const struct cu_kernel *kernel = cu_kernel_of(link, operation->u.launch.kernel);
    pack(link, packed, operation->u.launch.arguments, operation->u.launch.argument_count);
    if (packed->local_bytes <= kernel->max_dynamic_bytes)
        return WEIR_OK;
    return weir_host_fail(link->host, WEIR_ERROR_INVALID, "use smaller local arrays or blocks",
                          "launch: %zu bytes of local memory in all; this kernel can have %u",
                          packed->local_bytes, kernel->max_dynamic_bytes);
}

static weir_status submit_launch(const struct weir_link *link, struct cu_queue *queue,
                                 const struct weir_operation *operation)
{
    struct cu_device *device = queue->device;
    const struct cu_kernel *kernel = cu_kernel_of(link, operation->u.launch.kernel);
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    struct cu_packed packed; // large, so only what is used of it is written
    weir_status status = cu_pack(link, operation, &packed);
    if (status < 0)
        return status;

    const bool cooperative = cu_is_cooperative(device, operation);
    const unsigned local_bytes = (unsigned)packed.local_bytes;
    const struct cu_symbols *cu = &device->module->cu;
    CUresult code =
        cooperative
            ? cu->cuLaunchCooperativeKernel(kernel->function, grid.x, grid.y, grid.z, block.x,
                                            block.y, block.z, local_bytes, queue->stream,
                                            packed.pointers)
            : cu->cuLaunchKernel(kernel->function, grid.x, grid.y, grid.z, block.x, block.y,
                                 block.z, local_bytes, queue->stream, packed.pointers, NULL);
    cu_watch_command(queue);
    if (code == CUDA_SUCCESS)
        return WEIR_OK;
    return cu_native_error(device, cooperative ? "cuLaunchCooperativeKernel" : "cuLaunchKernel",
                           code,
                           "launch of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " blocks of %" PRIu32
                           " x %" PRIu32 " x %" PRIu32 " with %zu bytes of local memory",
                           grid.x, grid.y, grid.z, block.x, block.y, block.z, packed.local_bytes);
}

static weir_status submit(const struct weir_link *link, struct cu_queue *queue,
                          const struct weir_operation *operation)
{
    if (queue->carried && operation->kind != WEIR_OPERATION_RECORD &&
        operation->kind != WEIR_OPERATION_COLLECTIVE)
        cu_comms_mark_queue(queue);
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
    case WEIR_OPERATION_COPY_2D:
    case WEIR_OPERATION_COPY_3D:
    case WEIR_OPERATION_FILL:
    case WEIR_OPERATION_FILL_2D:
        return cu_submit_copy(link, queue, operation);
    case WEIR_OPERATION_LAUNCH:
        return submit_launch(link, queue, operation);
    case WEIR_OPERATION_NATIVE:
        return cu_submit_native(queue, operation);
    case WEIR_OPERATION_RECORD:
        return cu_submit_record(queue, operation->sequence);
    case WEIR_OPERATION_WAIT:
        return cu_submit_wait(queue, cu_queue_of(link, operation->u.wait.producer),
                              operation->u.wait.event.sequence);
    case WEIR_OPERATION_GRAPH:
        return cu_submit_graph(link, queue, operation);
    case WEIR_OPERATION_COLLECTIVE:
        return cu_submit_collective(link, queue, operation);
    default: // the library keeps the others
        return weir_host_unknown_kind(link, operation);
    }
}

weir_status cu_queue_submit(const struct weir_link *link, weir_queue *object,
                            const struct weir_operation *operation)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_scope scope;
    weir_status status = cu_enter(queue->device, &scope);
    if (status < 0)
        return status;
    cu_history_note(link, queue, operation);
    if (queue->watch)
        cu_watch_begin(queue, operation);
    status = submit(link, queue, operation);
    if (queue->watch)
        cu_watch_end(queue, status == WEIR_OK);
    if (queue->device->module->attribute_faults && status == WEIR_OK)
        cu_history_mark(queue, operation);
    cu_leave(queue->device, &scope);
    return status;
}

weir_status cu_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    struct cu_device *device = queue->device;
    struct cu_scope scope;
    weir_status status = cu_enter(device, &scope);
    if (status < 0)
        return status;
    CUresult code = cu_await_work(device, queue->stream);
    cu_prints_take(device);
    if (code != CUDA_SUCCESS)
        status =
            cu_native_error(device, "cuStreamSynchronize", code, "wait for the queue to finish");
    else
        weir_kit_idle_settle(device->idle);
    cu_leave(device, &scope);
    return status;
}

void cu_queue_leave(const struct weir_link *link, weir_queue *object)
{
    struct cu_queue *queue = cu_queue_of(link, object);
    // Held until the queue goes.
    const struct weir_kit_event *end = weir_kit_records_hold_last(queue->records);
    pthread_mutex_lock(&queue->device->lock);
    queue->left = true;
    queue->end = end ? end->native : NULL;
    pthread_mutex_unlock(&queue->device->lock);
}
