// One stream for each queue. Tarn starts work at once, so there is nothing to flush.
#include <inttypes.h>

#include "trn.h"

// Within the device's context. The list serves the check whether the device is idle.
static weir_status create_stream(struct trn_queue *queue, int32_t priority)
{
    struct trn_device *device = queue->device;
    tarn_result result = device->module->tarn.tarn_stream_create(&queue->stream, priority);
    if (result != TARN_OK)
        return trn_error(device->module, "tarn_stream_create", result, "cannot create a queue");
    device->module->host->count_driver_object();
    pthread_mutex_lock(&device->lock);
    queue->next = device->queues;
    device->queues = queue;
    pthread_mutex_unlock(&device->lock);
    return WEIR_OK;
}

static void release(struct trn_queue *queue)
{
    struct trn_device *device = queue->device;
    weir_kit_records_destroy(&queue->records);
    if (queue->stream) {
        pthread_mutex_lock(&device->lock);
        struct trn_queue **at = &device->queues;
        while (*at != queue)
            at = &(*at)->next;
        *at = queue->next;
        pthread_mutex_unlock(&device->lock);
        device->module->tarn.tarn_stream_destroy(queue->stream);
    }
    device->module->host->release(queue);
}

weir_status trn_queue_create(const struct weir_link *link, weir_device *device, weir_queue *object,
                             const struct weir_queue_setup *setup, void **out_data)
{
    tarn_context *before;
    (void)object;
    struct trn_queue *queue = link->host->allocate(sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "a queue");
    queue->device = trn_device_of(link, device);
    weir_status status = trn_enter(queue->device, &before);
    if (status < 0) {
        link->host->release(queue);
        return status;
    }
    status = trn_records_create(queue, setup->timing);
    if (status == WEIR_OK)
        status = create_stream(queue, setup->priority);
    if (status == WEIR_OK)
        *out_data = queue;
    else
        release(queue);
    trn_leave(trn_device_of(link, device), before);
    return status;
}

void trn_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct trn_queue *queue = trn_queue_of(link, object);
    struct trn_device *device = queue->device;
    tarn_context *before;
    weir_status status = trn_enter(device, &before);
    release(queue);
    if (status == WEIR_OK)
        trn_leave(device, before);
}

static weir_status check(const struct trn_queue *queue, const char *call, tarn_result result,
                         const char *what, size_t size)
{
    if (result == TARN_OK)
        return WEIR_OK;
    return trn_error(queue->device->module, call, result, "%s of %zu bytes", what, size);
}

static weir_status submit_copy(const struct weir_link *link, struct trn_queue *queue,
                               const struct weir_operation *operation)
{
    char *dst = trn_buffer_of(link, operation->u.copy.dst)->address + operation->u.copy.dst_offset;
    char *src = trn_buffer_of(link, operation->u.copy.src)->address + operation->u.copy.src_offset;
    const size_t size = operation->u.copy.size;
    return check(queue, "tarn_copy",
                 queue->device->module->tarn.tarn_copy(dst, src, size, queue->stream), "copy",
                 size);
}

static weir_status submit_copy_2d(const struct weir_link *link, struct trn_queue *queue,
                                  const struct weir_operation *operation)
{
    const struct weir_plane *dst = &operation->u.copy_2d.dst;
    const struct weir_plane *src = &operation->u.copy_2d.src;
    const size_t width = operation->u.copy_2d.width;
    const size_t height = operation->u.copy_2d.height;
    tarn_result result = queue->device->module->tarn.tarn_copy_2d(
        trn_buffer_of(link, dst->buffer)->address + dst->offset, dst->pitch,
        trn_buffer_of(link, src->buffer)->address + src->offset, src->pitch, width, height,
        queue->stream);
    return check(queue, "tarn_copy_2d", result, "2-D copy", width * height);
}

static weir_status submit_fill(const struct weir_link *link, struct trn_queue *queue,
                               const struct weir_operation *operation)
{
    char *dst = trn_buffer_of(link, operation->u.fill.dst)->address + operation->u.fill.dst_offset;
    const size_t size = operation->u.fill.size;
    return check(queue, "tarn_fill",
                 queue->device->module->tarn.tarn_fill(dst, size, operation->u.fill.pattern,
                                                       operation->u.fill.pattern_size,
                                                       queue->stream),
                 "fill", size);
}

static weir_status submit_fill_2d(const struct weir_link *link, struct trn_queue *queue,
                                  const struct weir_operation *operation)
{
    struct weir_operation row = {.struct_size = sizeof row, .kind = WEIR_OPERATION_FILL};
    const struct weir_plane *dst = &operation->u.fill_2d.dst;
    weir_status status = WEIR_OK;
    row.u.fill.dst = dst->buffer;
    row.u.fill.size = operation->u.fill_2d.width;
    row.u.fill.pattern = operation->u.fill_2d.pattern;
    row.u.fill.pattern_size = operation->u.fill_2d.pattern_size;
    for (size_t i = 0; i < operation->u.fill_2d.height && status == WEIR_OK; i++) {
        row.u.fill.dst_offset = dst->offset + i * dst->pitch;
        status = submit_fill(link, queue, &row);
    }
    return status;
}

static weir_status submit_copy_3d(const struct weir_link *link, struct trn_queue *queue,
                                  const struct weir_operation *operation)
{
    struct weir_operation slice = {.struct_size = sizeof slice, .kind = WEIR_OPERATION_COPY_2D};
    const struct weir_volume *dst = &operation->u.copy_3d.dst;
    const struct weir_volume *src = &operation->u.copy_3d.src;
    weir_status status = WEIR_OK;
    slice.u.copy_2d.width = operation->u.copy_3d.width;
    slice.u.copy_2d.height = operation->u.copy_3d.height;
    for (size_t i = 0; i < operation->u.copy_3d.depth && status == WEIR_OK; i++) {
        slice.u.copy_2d.dst =
            (struct weir_plane){dst->buffer, dst->offset + i * dst->slice_pitch, dst->pitch};
        slice.u.copy_2d.src =
            (struct weir_plane){src->buffer, src->offset + i * src->slice_pitch, src->pitch};
        status = submit_copy_2d(link, queue, &slice);
    }
    return status;
}

static weir_status submit_launch(const struct weir_link *link, struct trn_queue *queue,
                                 const struct weir_operation *operation)
{
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    const uint32_t grids[] = {grid.x, grid.y, grid.z};
    const uint32_t blocks[] = {block.x, block.y, block.z};
    const size_t count = operation->u.launch.argument_count;
    struct tarn_argument packed[TRN_PARAMETER_LIMIT];
    const void *addresses[TRN_PARAMETER_LIMIT];
    for (size_t i = 0; i < count; i++) {
        const struct weir_argument *argument = &operation->u.launch.arguments[i];
        packed[i].size = argument->size;
        packed[i].value = argument->pointer ? argument->pointer : &argument->bits;
        if (argument->kind == WEIR_PARAMETER_LOCAL) {
            packed[i].value = NULL;
        } else if (argument->kind == WEIR_PARAMETER_BUFFER) {
            addresses[i] = trn_buffer_of(link, argument->buffer)->address + argument->offset;
            packed[i].value = &addresses[i];
            packed[i].size = sizeof addresses[i];
        }
    }
    tarn_kernel *kernel = weir_kernel_data(link, operation->u.launch.kernel);
    tarn_result result = queue->device->module->tarn.tarn_launch(kernel, grids, blocks, packed,
                                                                 count, queue->stream);
    if (result == TARN_OK)
        return WEIR_OK;
    return trn_error(queue->device->module, "tarn_launch", result,
                     "launch of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " blocks of %" PRIu32
                     " x %" PRIu32 " x %" PRIu32,
                     grid.x, grid.y, grid.z, block.x, block.y, block.z);
}

static weir_status submit(const struct weir_link *link, struct trn_queue *queue,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        return submit_copy(link, queue, operation);
    case WEIR_OPERATION_COPY_2D:
        return submit_copy_2d(link, queue, operation);
    case WEIR_OPERATION_COPY_3D:
        return submit_copy_3d(link, queue, operation);
    case WEIR_OPERATION_FILL:
        return submit_fill(link, queue, operation);
    case WEIR_OPERATION_FILL_2D:
        return submit_fill_2d(link, queue, operation);
    case WEIR_OPERATION_LAUNCH:
        return submit_launch(link, queue, operation);
    case WEIR_OPERATION_RECORD:
        return trn_submit_record(queue, operation->sequence);
    case WEIR_OPERATION_WAIT:
        return trn_submit_wait(queue, trn_queue_of(link, operation->u.wait.producer),
                               operation->u.wait.event.sequence);
    default: // the library keeps the others
        return weir_host_unknown_kind(link, operation);
    }
}

weir_status trn_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation)
{
    struct trn_queue *queue = trn_queue_of(link, object);
    tarn_context *before;
    weir_status status = trn_enter(queue->device, &before);
    if (status < 0)
        return status;
    status = submit(link, queue, operation);
    trn_leave(queue->device, before);
    return status;
}

weir_status trn_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct trn_queue *queue = trn_queue_of(link, object);
    struct trn_device *device = queue->device;
    tarn_context *before;
    weir_status status = trn_enter(device, &before);
    if (status < 0)
        return status;
    tarn_result result = device->module->tarn.tarn_stream_synchronize(queue->stream);
    if (result == TARN_OK) {
        status = weir_kit_records_settle(queue->records);
        weir_kit_idle_settle(device->idle);
    } else {
        status = trn_error(device->module, "tarn_stream_synchronize", result,
                           "wait for the queue to finish");
    }
    trn_leave(device, before);
    return status;
}
