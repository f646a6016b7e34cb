// See the header. A plugin may put its own function before the one here, which gets the status from
// its thread: the queue's worker.
#include "core/queue/always.h"

#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/queue/refused.h"
#include "core/queue/registry.h"
#include "core/support/debug.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

struct always {
    weir_always_function function;
    void *user;
};

static _Thread_local weir_status told;

void weir__always_tell(weir_status status)
{
    told = status;
}

void weir__always_await(weir_queue *queue, uint64_t sequence)
{
    const struct weir_error saved = *weir_last_error();
    struct weir__wait wait = {.own = 1};
    for (; weir__refused_next(queue, wait.own - 1, sequence, &wait);
         weir__refused_end(queue, &wait)) {
        weir_queue *producer = weir__registry_pin(wait.event.queue);
        if (!producer)
            continue;
        const struct weir_link *link = producer->delivery.link;
        (void)link->ops->event_wait(link, producer, wait.event.sequence, WEIR_FOREVER);
        weir__registry_unpin(producer);
    }
    weir__error_set(&saved);
}

static weir_status call(void *user)
{
    const struct always always = *(const struct always *)user;
    weir__release(user);
    always.function(always.user, told);
    return WEIR_OK;
}

weir_status weir_queue_host_call_always_at(weir_queue *queue, weir_always_function function,
                                           void *user, const char *file, int line)
{
    WEIR_ENTER_AT(file, line, queue);
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct always *always = weir__allocate(sizeof *always);
    if (!always)
        return weir__fail_at(file, line, queue->member.object.label, WEIR_ERROR_OUT_OF_MEMORY, NULL,
                             "no memory for a host call");
    *always = (struct always){function, user};
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, WEIR_OPERATION_ALWAYS, file, line);
    operation.u.host_call.function = call;
    operation.u.host_call.user = always;
    const weir_status status = weir__queue_submit(queue, &operation);
    if (status < 0)
        weir__release(always);
    return status;
}
