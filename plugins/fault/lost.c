// A device after its loss: every call that needs it returns the first cause, as docs/faults.md has
// it. What was submitted before runs to its end in truth, and waits for it still wait: memory that
// it uses must not be freed early.
#include <string.h>

#include "plugins/fault/parts.h"

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
