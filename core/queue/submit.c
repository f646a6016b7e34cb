// The queue's operations, as users call them. A refused argument returns before the submit
// lock is taken; after that only a number is assigned and the chain is called.
#include <inttypes.h>

#include "core/queue/operation.h"
#include "core/queue/queue.h"
#include "core/support/error.h"
#include "core/support/thread.h"

weir_status weir__queue_submit(weir_queue *queue, struct weir_operation *operation)
{
    weir_status status;
    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    weir__queue_enter(queue);
    if (!weir__is_capturing(queue) || !weir__queue_note(queue, operation, &status))
        status = atomic_load_explicit(&queue->completion.failed, memory_order_acquire)
                     ? weir__completion_refuse(queue)
                     : weir__queue_submit_locked(queue, operation);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

// The queue's capture notes a record. False: it has just ended.
static bool note_record(weir_queue *queue, struct weir_event *out_event, weir_status *out_status)
{
    return atomic_load_explicit(&queue->capture, memory_order_relaxed)
        ->ops->record(queue, out_event, out_status);
}

static struct weir__caller caller_of(const weir_queue *queue, const char *file, int line)
{
    return (struct weir__caller){queue->member.device, queue->member.object.label, file, line,
                                 !weir__is_capturing(queue)};
}

weir_status weir_queue_copy_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset,
                               weir_buffer *src, size_t src_offset, size_t size, const char *file,
                               int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_copy(&caller, dst, dst_offset, src, src_offset, size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_copy_2d_at(weir_queue *queue, struct weir_plane dst, struct weir_plane src,
                                  size_t width, size_t height, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status = weir__operation_copy_2d(&caller, &dst, &src, width, height, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_fill_at(weir_queue *queue, weir_buffer *dst, size_t dst_offset, size_t size,
                               const void *pattern, size_t pattern_size, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), pattern);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_fill(&caller, dst, dst_offset, size, pattern, pattern_size, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel, struct weir_extent grid,
                                 struct weir_extent block, const struct weir_argument *arguments,
                                 size_t argument_count, const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), kernel);
    WEIR_REQUIRE_AT(file, line, weir_queue_label(queue), arguments || argument_count == 0);
    struct weir_operation operation;
    const struct weir__caller caller = caller_of(queue, file, line);
    weir_status status =
        weir__operation_launch(&caller, kernel, grid, block, arguments, argument_count, &operation);
    return status < 0 ? status : weir__queue_submit(queue, &operation);
}

weir_status weir_queue_host_call_at(weir_queue *queue, weir_host_function function, void *user,
                                    const char *file, int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    WEIR_REQUIRE_AT(file, line, queue->member.object.label, function);
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_HOST_CALL, 0, file, line);
    operation.u.host_call.function = function;
    operation.u.host_call.user = user;
    return weir__queue_submit(queue, &operation);
}

weir_status weir_queue_record_at(weir_queue *queue, struct weir_event *out_event, const char *file,
                                 int line)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE_AT(file, line, NULL, out_event);
    *out_event = (struct weir_event){0};
    WEIR_REQUIRE_AT(file, line, NULL, queue);
    struct weir_operation operation;
    weir__operation_begin(&operation, WEIR_OPERATION_RECORD, 0, file, line);

    if (weir__queue_is_called_back(queue))
        return weir__queue_refuse_callback(queue);
    weir__queue_enter(queue);
    weir_status status;
    if (weir__is_capturing(queue) && note_record(queue, out_event, &status)) {
        // noted
    } else if (atomic_load_explicit(&queue->completion.failed, memory_order_acquire)) {
        status = weir__completion_refuse(queue);
    } else {
        status = weir__queue_submit_locked(queue, &operation);
        if (status == WEIR_OK) {
            queue->last_record = operation.sequence;
            *out_event = (struct weir_event){queue->member.object.id, operation.sequence};
        }
    }
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}

weir_status weir_queue_flush(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    weir_status status = queue->first->ops->queue_flush(queue->first, queue);
    if (status < 0)
        weir__error_place(queue->member.object.label, NULL, 0);
    return status;
}

weir_status weir_queue_recover(weir_queue *queue)
{
    WEIR_REFUSE_FORK();
    WEIR_REQUIRE(NULL, queue);
    if (weir__in_host_call())
        return weir__fail_at(NULL, 0, queue->member.object.label, WEIR_ERROR_INVALID,
                             "call it on a thread of the program's",
                             "weir_queue_recover waits, and a host call may not wait");
    if (weir__is_capturing(queue))
        return weir__queue_refuse_capturing(queue, NULL, 0, "weir_queue_recover would mix with it",
                                            "end or cancel the capture first");
    if (!atomic_load(&queue->completion.failed))
        return WEIR_OK;
    weir_status status = weir__completion_refuse(queue);
    if (status == WEIR_ERROR_DEVICE_LOST)
        return status;
    // After the lock was taken nothing is submitted any more: later submits see the failure.
    // The wait itself is outside the lock, since a running host call may need it.
    weir_biased_lock_take(&queue->submit_lock);
    weir_biased_lock_release(&queue->submit_lock);
    status = weir__queue_finish(queue);
    if (status < 0)
        return status;
    weir_biased_lock_take(&queue->submit_lock);
    weir__completion_recover(queue, queue->sequence);
    weir__legacy_recovered(queue);
    weir_biased_lock_release(&queue->submit_lock);
    return status;
}
