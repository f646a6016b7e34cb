// See the header.
#include "core/queue/node_call.h"

#include <stdio.h>
#include <string.h>

#include "core/queue/completion.h"
#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/memory.h"
#include "core/support/thread.h"

static void end_call(struct weir__runs *runs, bool failed)
{
    weir_queue *ended = NULL;
    weir_lock_take(&runs->lock);
    struct weir__run *run = weir__run_at(runs, 0);
    run->failed = run->failed || failed;
    if (--run->left == 0) {
        ended = run->queue;
        runs->first = (runs->first + 1) & (runs->capacity - 1);
        runs->count--;
    }
    weir_lock_release(&runs->lock);
    weir__registry_unpin(ended);
}

// Targets.

struct weir__node_target weir__node_call_set(struct weir__node_call *call,
                                             struct weir__node_target target)
{
    struct weir__runs *runs = call->runs;
    weir_lock_take(&runs->lock);
    const struct weir__node_target before = runs->targets[call->number];
    runs->targets[call->number] = target;
    weir_lock_release(&runs->lock);
    return before;
}

// Where no launch is kept.
static struct weir__node_target target_of(const struct weir__node_call *call)
{
    weir_lock_take(&call->runs->lock);
    const struct weir__node_target target = call->runs->targets[call->number];
    weir_lock_release(&call->runs->lock);
    return target;
}

// Calls.

weir_status weir__node_explain(uint32_t index, const char *what, const char *file, int line,
                               weir_status status)
{
    const struct weir_error cause = weir__error_of(status);
    struct weir_error detail = cause;
    snprintf(detail.message, sizeof detail.message, "node %u, a %s captured at %s:%d: %.400s",
             (unsigned)index, what, file ? file : "", line, cause.message);
    return weir__error_set(&detail);
}

static weir_status explain(const struct weir__node_call *call, const char *what, weir_status status)
{
    return weir__node_explain(call->index, what, call->file, call->line, status);
}

static weir_status end_function(weir_status status, enum weir__call outer)
{
    (void)weir__enter_call(outer);
    if (status < 0 && weir_last_error()->status != status)
        weir__report(status, NULL, "the function returned %s (%d)", weir_status_name(status),
                     (int)status);
    return status < 0 ? status : WEIR_OK;
}

weir_status weir__call_host(weir_host_function function, void *user, const struct weir_error *cause)
{
    weir_error_set(cause);
    const enum weir__call outer = weir__enter_call(WEIR__HOST_CALL);
    return end_function(function(user), outer);
}

weir_status weir__call_native(weir_native_function function, void *user,
                              const struct weir_native_queue *native)
{
    const struct weir_error before = *weir_last_error();
    weir_error_set(NULL);
    const enum weir__call outer = weir__enter_call(WEIR__NATIVE_CALL);
    const weir_status status = end_function(function(native, user), outer);
    if (status == WEIR_OK)
        weir_error_set(&before);
    return status;
}

// On a thread of the driver's: it may wait for nothing, and no queue is finalized.
static void call_in_driver(struct weir__node_call *call)
{
    struct weir_operation launch; // for messages
    weir_lock_take(&call->runs->lock);
    const struct weir__run *first = weir__run_at(call->runs, 0); // the launch that calls
    const struct weir__node_target target = first->targets[call->number];
    const struct weir__run run = *first; // without its targets
    weir_lock_release(&call->runs->lock);
    weir_status status = WEIR_OK;
    if (!run.failed && (!run.queue || weir__completion_status(run.queue, run.sequence) == WEIR_OK))
        status = weir__call_host(target.host, target.user, NULL);
    if (run.queue)
        atomic_fetch_add(&run.queue->member.device->calls_ended, 1);
    if (status < 0 && run.queue) {
        weir__operation_begin(&launch, WEIR_OPERATION_GRAPH, 0, run.file, run.line);
        launch.sequence = run.sequence;
        weir__queue_fail(run.queue, &launch, explain(call, "host call", status));
    }
    end_call(call->runs, status < 0);
}

// Also a worker calls it, where the graph is not the backend's, or a plugin has taken it apart.
static weir_status run_host(void *user)
{
    struct weir__node_call *call = user;
    if (weir__in_host_call()) {
        const struct weir__node_target target = target_of(call);
        return target.host(target.user);
    }
    call_in_driver(call);
    return WEIR_OK;
}

static weir_status run_native(const struct weir_native_queue *native, void *user)
{
    struct weir__node_call *call = user;
    const struct weir__node_target target = target_of(call);
    const weir_status status = weir__call_native(target.native, target.user, native);
    return status < 0 && call->runs->in_backend ? explain(call, "native call", status) : status;
}

// Wrapping.

struct weir__node_call *weir__node_call_of(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_NATIVE ? operation->u.native.user
                                                    : operation->u.host_call.user;
}

static void set_function(struct weir_operation *operation, struct weir__node_target target)
{
    if (operation->kind == WEIR_OPERATION_NATIVE) {
        operation->u.native.function = target.native;
        operation->u.native.user = target.user;
    } else {
        operation->u.host_call.function = target.host;
        operation->u.host_call.user = target.user;
    }
}

struct weir__node_call *weir__node_call_wrap(struct weir_operation *operation, uint32_t index)
{
    struct weir__node_call *call = weir__allocate(sizeof *call);
    if (!call)
        return NULL;
    call->index = index;
    call->file = operation->file;
    call->line = operation->line;
    if (operation->kind == WEIR_OPERATION_NATIVE)
        call->latest = (struct weir__node_target){.native = operation->u.native.function,
                                                  .user = operation->u.native.user};
    else
        call->latest = (struct weir__node_target){.host = operation->u.host_call.function,
                                                  .user = operation->u.host_call.user};
    set_function(operation, (struct weir__node_target){run_native, run_host, call});
    return call;
}

void weir__node_call_unwrap(struct weir_operation *operation)
{
    set_function(operation, weir__node_call_of(operation)->latest);
}
