// One in-order command queue for each queue. OpenCL need not start anything before a flush, even if
// another queue waits for it. The numbers of the last operation submitted and of the last one
// flushed tell for each event whether a flush is necessary.
#include <inttypes.h>

#include "backends/opencl/opencl.h"

static void release(struct ocl_queue *queue)
{
    const struct ocl_module *module = queue->device->module;
    weir_kit_records_destroy(&queue->records);
    ocl_launches_finish(queue);
    ocl_watch_finish(queue);
    ocl_commands_finish(queue);
    if (queue->staging)
        module->cl.clReleaseMemObject(queue->staging);
    if (queue->queue)
        module->cl.clReleaseCommandQueue(queue->queue);
    module->host->release(queue);
}

static weir_status create_native(struct ocl_queue *queue, const struct weir_queue_setup *setup)
{
    const struct ocl_device *device = queue->device;
    const struct ocl_symbols *cl = &device->module->cl;
    const cl_bitfield flags = setup->timing || setup->times ? CL_QUEUE_PROFILING_ENABLE : 0;
    const char *call = "clCreateCommandQueue";
    cl_int code = CL_SUCCESS;
    if (!device->priorities || setup->priority == 0) {
        queue->queue =
            cl->clCreateCommandQueue(device->context, device->listed->device, flags, &code);
    } else {
        const cl_queue_properties properties[] = {
            CL_QUEUE_PROPERTIES,
            flags,
            CL_QUEUE_PRIORITY_KHR,
            setup->priority > 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR,
            0,
        };
        call = "clCreateCommandQueueWithProperties";
        queue->queue =
            cl->clCreateCommandQueueWithProperties(device->context, device->listed->device,
                                                   properties, &code);
    }
    if (!queue->queue)
        return ocl_native_error(device->module, call, code, "cannot create a queue");
    device->module->host->count_driver_object();
    return WEIR_OK;
}

static weir_status open_queue(struct ocl_queue *queue, const struct weir_queue_setup *setup)
{
    bool profiling = true;
    weir_status status = ocl_records_init(queue, setup->timing);
    if (status == WEIR_OK)
        status = ocl_launches_create(queue);
    if (status == WEIR_OK)
        status = setup->native ? ocl_wrap_queue(queue, setup->native, setup->timing, &profiling)
                               : create_native(queue, setup);
    // Commands of a queue without profiling have no times.
    if (status == WEIR_OK && setup->times && profiling)
        status = ocl_watch_init(queue);
    return status;
}

weir_status ocl_queue_create(const struct weir_link *link, weir_device *device, weir_queue *object,
                             const struct weir_queue_setup *setup, void **out_data)
{
    const struct weir_host *host = link->host;
    (void)object;
    struct ocl_queue *queue = host->allocate(sizeof *queue);
    if (!queue)
        return weir_host_no_memory(host, "a queue");
    queue->device = ocl_device_of(link, device);
    ocl_commands_init(queue, setup->timing);
    weir_status status = open_queue(queue, setup);
    if (status < 0) {
        release(queue);
        return status;
    }
    *out_data = queue;
    return WEIR_OK;
}

void ocl_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    release(ocl_queue_of(link, object));
}

// Stores the event in `*out_event` where it has to be asked how the launch ended.
static weir_status enqueue_kernel(struct ocl_queue *queue, cl_kernel kernel,
                                  const struct weir_operation *operation, cl_event *out_event)
{
    const struct ocl_module *module = queue->device->module;
    const struct weir_extent grid = operation->u.launch.grid;
    const struct weir_extent block = operation->u.launch.block;
    const size_t local[] = {block.x, block.y, block.z};
    const size_t global[] = {(size_t)grid.x * block.x, (size_t)grid.y * block.y,
                             (size_t)grid.z * block.z};
    const struct ocl_command *command = ocl_command_begin(queue, true);
    const cl_int code =
        module->cl.clEnqueueNDRangeKernel(queue->queue, kernel, 3, NULL, global, local,
                                          command->wait_count, command->waits, command->event);
    const cl_int shared = ocl_command_end_launch(queue, code, out_event);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clEnqueueNDRangeKernel", code,
                                "launch of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                                " blocks of %" PRIu32 " x %" PRIu32 " x %" PRIu32,
                                grid.x, grid.y, grid.z, block.x, block.y, block.z);
    if (shared != CL_SUCCESS)
        return ocl_native_error(module, "clRetainEvent", shared, "keep the event of a launch");
    return WEIR_OK;
}

// Arguments belong to the kernel object, so its lock is held from setting them to the enqueueing.
static weir_status submit_launch(const struct weir_link *link, struct ocl_queue *queue,
                                 const struct weir_operation *operation)
{
    struct ocl_kernel *kernel = ocl_kernel_of(link, operation->u.launch.kernel);
    cl_kernel bound;
    cl_event event = NULL;

    pthread_mutex_lock(&kernel->lock);
    weir_status status = ocl_arguments_bind(link, kernel, operation->u.launch.arguments,
                                            operation->u.launch.argument_count, &bound);
    if (status == WEIR_OK)
        status = enqueue_kernel(queue, bound, operation, &event);
    ocl_arguments_put(kernel, operation->u.launch.argument_count);
    pthread_mutex_unlock(&kernel->lock);
    return event ? ocl_launches_keep(queue, operation->sequence, event) : status;
}

static weir_status submit(const struct weir_link *link, struct ocl_queue *queue,
                          const struct weir_operation *operation)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        return ocl_submit_copy(link, queue, operation);
    case WEIR_OPERATION_COPY_2D:
        return ocl_submit_copy_2d(link, queue, operation);
    case WEIR_OPERATION_COPY_3D:
        return ocl_submit_copy_3d(link, queue, operation);
    case WEIR_OPERATION_FILL:
        return ocl_submit_fill(link, queue, operation);
    case WEIR_OPERATION_FILL_2D:
        return ocl_submit_fill_2d(link, queue, operation);
    case WEIR_OPERATION_LAUNCH:
        return submit_launch(link, queue, operation);
    case WEIR_OPERATION_NATIVE:
        return ocl_submit_native(queue, operation);
    case WEIR_OPERATION_RECORD:
        return ocl_submit_record(queue, operation->sequence);
    case WEIR_OPERATION_WAIT:
        return ocl_submit_wait(queue, operation->sequence,
                               ocl_queue_of(link, operation->u.wait.producer),
                               operation->u.wait.event.sequence);
    default: // the library keeps the others
        return weir_host_unknown_kind(link, operation);
    }
}

// Called after an error too: a part of the operation may have been enqueued.
weir_status ocl_queue_submit(const struct weir_link *link, weir_queue *object,
                             const struct weir_operation *operation)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    weir_status status = submit(link, queue, operation);
    if (queue->watch)
        ocl_watch_keep(queue, operation->sequence, status == WEIR_OK);
    // A flush between several operations with one number must not count for all of them.
    if (!(operation->flags & WEIR_OPERATION_PART))
        atomic_store_explicit(&queue->submitted, operation->sequence, memory_order_release);
    return status;
}

// `flushed` only increases, in whichever order concurrent flushes end.
static void note_flushed(struct ocl_queue *queue, uint64_t sequence)
{
    uint64_t seen = atomic_load_explicit(&queue->flushed, memory_order_relaxed);
    while (seen < sequence &&
           !atomic_compare_exchange_weak_explicit(&queue->flushed, &seen, sequence,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

weir_status ocl_queue_flush_to(struct ocl_queue *queue, uint64_t sequence)
{
    const struct ocl_module *module = queue->device->module;
    if (atomic_load_explicit(&queue->flushed, memory_order_acquire) >= sequence)
        return WEIR_OK;
    // Read before the flush: operations submitted during it may not be flushed.
    const uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_acquire);
    cl_int code = module->cl.clFlush(queue->queue);
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clFlush", code, "flush");
    note_flushed(queue, submitted);
    return WEIR_OK;
}

weir_status ocl_queue_flush(const struct weir_link *link, weir_queue *object)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    return ocl_queue_flush_to(queue, atomic_load_explicit(&queue->submitted, memory_order_acquire));
}

// A failure that the front end knows is not reported again, so that the queue can be recovered.
weir_status ocl_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct ocl_queue *queue = ocl_queue_of(link, object);
    const struct ocl_module *module = queue->device->module;
    const uint64_t submitted = atomic_load_explicit(&queue->submitted, memory_order_acquire);
    // What was before waits that are refused, and what they are for, is waited for all the same.
    const weir_status settled = ocl_commands_settle(queue);
    cl_int code = module->cl.clFinish(queue->queue);
    if (settled < 0) {
        ocl_commands_sit_out(queue);
        return settled;
    }
    if (code != CL_SUCCESS)
        return ocl_native_error(module, "clFinish", code, "wait for the queue to finish");
    note_flushed(queue, submitted);
    ocl_commands_forget_failed(queue);
    const weir_status records = weir_kit_records_settle(queue->records);
    const weir_status launches = ocl_launches_settle(queue, submitted);
    if (atomic_exchange(&queue->failed, false))
        return WEIR_OK;
    return launches < 0 ? launches : records;
}
