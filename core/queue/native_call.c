// See the header.
#include "core/queue/native_call.h"

#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/thread.h"

// `user` is the operation as it was submitted.
static weir_status call(const struct weir_native_queue *native, void *user)
{
    const struct weir_operation *operation = user;
    // The detail of an earlier failure in this thread must not be mistaken for
    // this one's.
    weir_error_set(NULL);
    const struct weir__call_scope outer = weir__enter_native_call();
    weir_status status = operation->u.native.function(native, operation->u.native.user);
    weir__leave_call(outer);
    if (status < 0 && weir_last_error()->status != status)
        weir__report(status, NULL, "the function returned %s (%d)", weir_status_name(status),
                     (int)status);
    return status < 0 ? status : WEIR_OK;
}

weir_status weir__native_submit(const struct weir_link *backend, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct weir_operation guarded;
    weir__operation_take(&guarded, operation);
    const struct weir_error before = *weir_last_error();
    guarded.u.native.function = call;
    guarded.u.native.user = (void *)(uintptr_t)operation; // read only, by call()
    atomic_store_explicit(&queue->in_native, true, memory_order_relaxed);
    weir_status status = backend->ops->queue_submit(backend, queue, &guarded);
    atomic_store_explicit(&queue->in_native, false, memory_order_relaxed);
    // On success the thread's detail is not changed.
    if (status >= 0)
        weir_error_set(&before);
    return status;
}
