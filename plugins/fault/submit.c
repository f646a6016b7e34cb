// What becomes of an operation that gets a fault.
#include <string.h>

#include "plugins/fault/parts.h"

// Operations that a driver sees. False: others are never chosen.
static bool target_of(const struct weir_operation *operation, enum fault_target *out_target)
{
    static const unsigned char targets[WEIR_OPERATION_KINDS] = {
        [WEIR_OPERATION_COPY] = FAULT_COPY + 1,
        [WEIR_OPERATION_COPY_2D] = FAULT_COPY + 1,
        [WEIR_OPERATION_COPY_3D] = FAULT_COPY + 1,
        [WEIR_OPERATION_FILL] = FAULT_FILL + 1,
        [WEIR_OPERATION_FILL_2D] = FAULT_FILL + 1,
        [WEIR_OPERATION_LAUNCH] = FAULT_LAUNCH + 1,
        [WEIR_OPERATION_HOST_CALL] = FAULT_HOST_CALL + 1,
        [WEIR_OPERATION_RECORD] = FAULT_RECORD + 1,
        [WEIR_OPERATION_WAIT] = FAULT_WAIT + 1,
        [WEIR_OPERATION_GRAPH] = FAULT_GRAPH + 1,
        [WEIR_OPERATION_NATIVE] = FAULT_NATIVE + 1,
        [WEIR_OPERATION_COLLECTIVE] = FAULT_COLLECTIVE + 1,
    };
    const uint32_t unseen = WEIR_OPERATION_IMPLIED | WEIR_OPERATION_INTERNAL | WEIR_OPERATION_EMPTY;
    if (operation->flags & unseen || operation->kind >= WEIR_OPERATION_KINDS ||
        !targets[operation->kind])
        return false;
    *out_target = (enum fault_target)(targets[operation->kind] - 1);
    return true;
}

static const char *buffer_label(const weir_buffer *buffer)
{
    return weir_buffer_object(buffer)->label;
}

static void find_labels(const struct weir_operation *operation, const char **labels)
{
    switch (operation->kind) {
    case WEIR_OPERATION_COPY:
        labels[0] = buffer_label(operation->u.copy.dst);
        labels[1] = buffer_label(operation->u.copy.src);
        break;
    case WEIR_OPERATION_COPY_2D:
        labels[0] = buffer_label(operation->u.copy_2d.dst.buffer);
        labels[1] = buffer_label(operation->u.copy_2d.src.buffer);
        break;
    case WEIR_OPERATION_COPY_3D:
        labels[0] = buffer_label(operation->u.copy_3d.dst.buffer);
        labels[1] = buffer_label(operation->u.copy_3d.src.buffer);
        break;
    case WEIR_OPERATION_FILL:
        labels[0] = buffer_label(operation->u.fill.dst);
        break;
    case WEIR_OPERATION_FILL_2D:
        labels[0] = buffer_label(operation->u.fill_2d.dst.buffer);
        break;
    case WEIR_OPERATION_LAUNCH:
        labels[0] = weir_kernel_object(operation->u.launch.kernel)->label;
        break;
    case WEIR_OPERATION_COLLECTIVE:
        labels[0] = weir_comm_object(operation->u.collective.comm)->label;
        break;
    case WEIR_OPERATION_GRAPH:
        labels[0] = weir_graph_object(operation->u.graph.graph)->label;
        break;
    default:
        break;
    }
}

static weir_status forward(const struct weir_link *link, weir_queue *queue,
                           const struct weir_operation *operation)
{
    return link->next->ops->queue_submit(link->next, queue, operation);
}

// Submits a host call of the plugin's, with the sequence of the operation or the one before it.
static weir_status submit_call(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *operation, uint64_t sequence,
                               weir_host_function function, struct fault_call *call)
{
    struct weir_operation own = {
        .struct_size = sizeof own,
        .kind = WEIR_OPERATION_HOST_CALL,
        .flags = WEIR_OPERATION_INTERNAL,
        .file = operation->file,
        .line = operation->line,
        .sequence = sequence,
    };
    own.u.host_call.function = function;
    own.u.host_call.user = call;
    return forward(link, queue, &own);
}

// The operation waits in its queue, and runs.
static weir_status delay(const struct weir_link *link, weir_queue *queue,
                         const struct weir_operation *operation, struct fault_call *call)
{
    weir_status status =
        submit_call(link, queue, operation, operation->sequence - 1, fault_call_wait, call);
    return status < 0 ? status : forward(link, queue, operation);
}

// The user's function runs, and its answer is replaced.
static weir_status answer(const struct weir_link *link, weir_queue *queue,
                          const struct weir_operation *operation, struct fault_call *call)
{
    struct weir_operation_room room;
    struct weir_operation *changed = weir_operation_copy(&room, operation);
    changed->u.host_call.function = fault_call_answer;
    changed->u.host_call.user = call;
    return forward(link, queue, changed);
}

// Other ranks and later collectives count on a collective, so it follows the failure of its queue, and is
// skipped there as one that is submitted after any failure. A call that always runs, does.
static weir_status fail(const struct weir_link *link, weir_queue *queue,
                        const struct weir_operation *operation, struct fault_call *call)
{
    weir_status status =
        submit_call(link, queue, operation, operation->sequence, fault_call_fail, call);
    const bool counts = operation->kind == WEIR_OPERATION_COLLECTIVE ||
                        operation->flags & (WEIR_OPERATION_ALWAYS | WEIR_OPERATION_COLLECTIVES);
    return status == WEIR_OK && counts ? forward(link, queue, operation) : status;
}

static weir_status submit_late(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation, enum fault_target target,
                               uint64_t number)
{
    struct fault_queue *queue = fault_queue_of(link, object);
    struct fault_call *call = fault_call_add(link, queue, operation, target, number);
    weir_status status;
    if (!call)
        return weir_host_no_memory(link->host, "a fault");
    switch (fault_of(link)->settings.kind) {
    case FAULT_SLOW:
        status = delay(link, object, operation, call);
        break;
    case FAULT_GARBAGE_STATUS:
        status = answer(link, object, operation, call);
        break;
    default: // FAULT_FAIL: the operation never runs
        status = fail(link, object, operation, call);
        break;
    }
    fault_call_added(queue, call);
    return status;
}

static weir_status inject(const struct weir_link *link, weir_queue *object,
                          const struct weir_operation *operation, enum fault_target target,
                          uint64_t number)
{
    const struct fault *fault = fault_of(link);
    switch (fault->settings.kind) {
    case FAULT_REFUSE:
        return fault_report(fault, WEIR_ERROR_DEVICE, "a refusal", target, number);
    case FAULT_LOSE:
        return fault_lose(link, fault_queue_of(link, object)->device, target, number);
    default:
        return submit_late(link, object, operation, target, number);
    }
}

// Records of the library's own are forwarded even when the device is lost: with them it finds out
// when memory that is in use can be freed.
static bool is_own_record(const struct weir_operation *operation)
{
    return operation->kind == WEIR_OPERATION_RECORD && operation->flags & WEIR_OPERATION_INTERNAL;
}

weir_status fault_queue_submit(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *operation)
{
    struct fault_candidate candidate = {
        .queue = weir_queue_object(queue)->label,
        .file = operation->file,
        .line = operation->line,
    };
    uint64_t number;
    if (is_own_record(operation))
        return forward(link, queue, operation);
    weir_status status = fault_loss(link, fault_queue_of(link, queue)->device);
    if (status < 0)
        return status;
    if (!target_of(operation, &candidate.target))
        return forward(link, queue, operation);
    find_labels(operation, candidate.labels);
    if (!fault_choose(fault_of(link), &candidate, &number))
        return forward(link, queue, operation);
    return inject(link, queue, operation, candidate.target, number);
}
