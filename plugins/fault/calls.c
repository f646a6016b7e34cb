// Host calls of the plugin's. The library holds a queue at a host call, finishes what is before it,
// runs it, and books its failure as the queue's: what a driver does that reports an error late.
//
// A call is freed by a later submit of its queue: when it has run, or when the queue has finished
// what was submitted up to it, since the calls that follow a failure never run.
#include "base/clock.h"
#include "plugins/fault/parts.h"

static bool may_run(const struct fault_call *call, uint64_t settled)
{
    return call->sequence > settled && !atomic_load_explicit(&call->done, memory_order_acquire);
}

static void collect(const struct weir_link *link, struct fault_queue *queue)
{
    const uint64_t settled = atomic_load(&queue->settled);
    for (struct fault_call **at = &queue->calls; *at;) {
        struct fault_call *call = *at;
        if (may_run(call, settled)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        link->host->release(call);
    }
}

struct fault_call *fault_call_add(const struct weir_link *link, struct fault_queue *queue,
                                  const struct weir_operation *operation, enum fault_target target,
                                  uint64_t number)
{
    collect(link, queue);
    struct fault_call *call = link->host->allocate(sizeof *call);
    if (!call)
        return NULL;
    call->fault = fault_of(link);
    call->number = number;
    call->sequence = operation->sequence;
    call->target = target;
    if (operation->kind == WEIR_OPERATION_HOST_CALL) {
        call->function = operation->u.host_call.function;
        call->user = operation->u.host_call.user;
    }
    call->next = queue->calls;
    queue->calls = call;
    return call;
}

void fault_call_added(struct fault_queue *queue, const struct fault_call *call)
{
    atomic_store(&queue->last, call->sequence);
}

void fault_calls_finish(const struct weir_link *link, struct fault_queue *queue)
{
    atomic_store(&queue->settled, UINT64_MAX);
    collect(link, queue);
}

// The functions. Nothing of the call is used after it is done.

weir_status fault_call_fail(void *user)
{
    struct fault_call *call = user;
    weir_status status = fault_report(call->fault, WEIR_ERROR_DEVICE, "a failure by a host call",
                                      call->target, call->number);
    atomic_store_explicit(&call->done, true, memory_order_release);
    return status;
}

weir_status fault_call_wait(void *user)
{
    struct fault_call *call = user;
    weir_clock_sleep_ns(call->fault->settings.delay_ns);
    atomic_store_explicit(&call->done, true, memory_order_release);
    return WEIR_OK;
}

weir_status fault_call_answer(void *user)
{
    struct fault_call *call = user;
    (void)call->function(call->user);
    weir_status status =
        fault_report(call->fault, (weir_status)FAULT_GARBAGE,
                     "the status -4711 as the answer of a host call", call->target, call->number);
    atomic_store_explicit(&call->done, true, memory_order_release);
    return status;
}
