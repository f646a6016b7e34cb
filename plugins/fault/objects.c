// Creation, and what the plugin keeps with objects. Destroying always works, as on a device that is
// lost.
#include "plugins/fault/parts.h"

#include <stdlib.h>
#include <string.h>

// A device after its loss: every call that needs it returns the first cause, as docs/faults.md has
// it. What was submitted before runs to its end in truth, and waits for it still wait: memory that
// it uses must not be freed early.

static bool is_lost(const struct fault_device *device)
{
    return atomic_load_explicit(&device->loss, memory_order_acquire) == FAULT_LOST;
}

weir_status fault_loss(const struct weir_link *link, const struct fault_device *device)
{
    return is_lost(device) ? link->host->error(&device->cause, sizeof device->cause) : WEIR_OK;
}

weir_status fault_lose(const struct weir_link *link, struct fault_device *device,
                       enum fault_target target, uint64_t number)
{
    struct weir_error cause;
    struct fault *fault = fault_of(link);
    int present = FAULT_PRESENT;
    fault_describe(fault, WEIR_ERROR_DEVICE_LOST, "the loss of the device", target, number, &cause);
    if (atomic_compare_exchange_strong(&device->loss, &present, FAULT_LEAVING)) {
        device->cause = cause;
        atomic_store_explicit(&device->loss, FAULT_LOST, memory_order_release);
        if (device->index < 64)
            atomic_fetch_or(&fault->lost, UINT64_C(1) << device->index);
    }
    return link->host->error(&cause, sizeof cause);
}

// `status` is the next link's answer, which counts while the device is not lost, and if there is
// none yet.
static weir_status answer(const struct weir_link *link, weir_queue *queue, weir_status status)
{
    const weir_status loss = status == WEIR_NOT_READY || status == WEIR_TIMEOUT
                                 ? WEIR_OK
                                 : fault_loss(link, fault_queue_of(link, queue)->device);
    return loss < 0 ? loss : status;
}

weir_status fault_queue_flush(const struct weir_link *link, weir_queue *queue)
{
    return answer(link, queue, link->next->ops->queue_flush(link->next, queue));
}

static void raise_settled(struct fault_queue *queue, uint64_t sequence)
{
    uint_fast64_t known = atomic_load(&queue->settled);
    while (known < sequence && !atomic_compare_exchange_weak(&queue->settled, &known, sequence)) {
    }
}

weir_status fault_queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct fault_queue *queue = fault_queue_of(link, object);
    const uint64_t last = atomic_load(&queue->last);
    weir_status status = link->next->ops->queue_finish(link->next, object);
    raise_settled(queue, last);
    return answer(link, object, status);
}

weir_status fault_event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    return answer(link, queue, link->next->ops->event_query(link->next, queue, sequence));
}

weir_status fault_event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                             uint64_t timeout_ns)
{
    return answer(link, queue,
                  link->next->ops->event_wait(link->next, queue, sequence, timeout_ns));
}

weir_status fault_event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                             uint64_t *out_time_ns)
{
    const weir_status loss = fault_loss(link, fault_queue_of(link, queue)->device);
    return loss < 0 ? loss : link->next->ops->event_time(link->next, queue, sequence, out_time_ns);
}

weir_status fault_device_trim(const struct weir_link *link, weir_device *device)
{
    const weir_status loss = fault_loss(link, fault_device_of(link, device));
    return loss < 0 ? loss : link->next->ops->device_trim(link->next, device);
}

// Of an object that is about to be created on the device, or NULL device.
static weir_status check(const struct weir_link *link, const struct fault_device *device,
                         enum fault_target target, const char *label)
{
    struct fault *fault = fault_of(link);
    const struct fault_candidate candidate = {
        .target = target,
        .queue = target == FAULT_NEW_QUEUE ? label : NULL,
        .labels = {label, NULL},
    };
    uint64_t number;
    weir_status status = device ? fault_loss(link, device) : WEIR_OK;
    if (status < 0 || !fault_choose(fault, &candidate, &number))
        return status;
    return fault_report(fault, WEIR_ERROR_OUT_OF_MEMORY, "a lack of memory", target, number);
}

static bool was_lost(struct fault *fault, size_t index)
{
    return index < 64 && atomic_load(&fault->lost) >> index & 1;
}

weir_status fault_device_create(const struct weir_link *link, weir_device *object,
                                const struct weir_device_setup *setup, void **out_data)
{
    struct fault *fault = fault_of(link);
    (void)object;
    weir_status status = check(link, NULL, FAULT_NEW_DEVICE, setup->label);
    if (status < 0)
        return status;
    if (was_lost(fault, setup->index))
        return weir_host_fail(link->host, WEIR_ERROR_DEVICE_LOST, "restart the process",
                              "this process has lost the device before, by the plugin fault");
    struct fault_device *device = link->host->allocate(sizeof *device);
    if (!device)
        return weir_host_no_memory(link->host, "a device of the plugin fault");
    device->index = setup->index;
    *out_data = device;
    return WEIR_OK;
}

void fault_device_destroy(const struct weir_link *link, weir_device *device)
{
    link->host->release(fault_device_of(link, device));
}

weir_status fault_queue_create(const struct weir_link *link, weir_device *device,
                               weir_queue *object, const struct weir_queue_setup *setup,
                               void **out_data)
{
    (void)setup;
    weir_status status = check(link, fault_device_of(link, device), FAULT_NEW_QUEUE,
                               weir_queue_object(object)->label);
    if (status < 0)
        return status;
    struct fault_queue *queue = link->host->allocate(sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "a queue of the plugin fault");
    queue->device = fault_device_of(link, device);
    *out_data = queue;
    return WEIR_OK;
}

void fault_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct fault_queue *queue = fault_queue_of(link, object);
    fault_calls_finish(link, queue);
    link->host->release(queue);
}

weir_status fault_buffer_create(const struct weir_link *link, weir_device *device,
                                weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                void **out_data, void **out_pointer)
{
    (void)setup;
    (void)out_data;
    (void)out_pointer;
    return check(link, fault_device_of(link, device), FAULT_NEW_BUFFER,
                 weir_buffer_object(buffer)->label);
}

void fault_buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
    (void)link;
    (void)buffer;
}

weir_status fault_program_create(const struct weir_link *link, weir_device *device,
                                 weir_program *program, const struct weir_program_params *params,
                                 void **out_data)
{
    (void)params;
    *out_data = fault_device_of(link, device);
    return check(link, fault_device_of(link, device), FAULT_NEW_PROGRAM,
                 weir_program_object(program)->label);
}

void fault_program_destroy(const struct weir_link *link, weir_program *program)
{
    (void)link;
    (void)program;
}

weir_status fault_kernel_create(const struct weir_link *link, weir_program *program,
                                weir_kernel *kernel, const struct weir_kernel_signature *signature,
                                struct weir_kernel_info *info, void **out_data)
{
    (void)kernel;
    (void)info;
    (void)out_data;
    return check(link, fault_program_device(link, program), FAULT_NEW_KERNEL, signature->name);
}

void fault_kernel_destroy(const struct weir_link *link, weir_kernel *kernel)
{
    (void)link;
    (void)kernel;
}

weir_status fault_graph_create(const struct weir_link *link, weir_device *device, weir_graph *graph,
                               const struct weir_graph_setup *setup, void **out_data)
{
    (void)setup;
    (void)out_data;
    return check(link, fault_device_of(link, device), FAULT_NEW_GRAPH,
                 weir_graph_object(graph)->label);
}

void fault_graph_destroy(const struct weir_link *link, weir_graph *graph)
{
    (void)link;
    (void)graph;
}
