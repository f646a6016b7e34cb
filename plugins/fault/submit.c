// What becomes of an operation that gets a fault.
#include "plugins/fault/parts.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "plugins/kit/kit.h"

// Which operations are chosen, and which of these get the fault.

static bool is_label(const char *wanted, const char *label)
{
    return label && strcmp(wanted, label) == 0;
}

static bool is_chosen(const struct fault *fault, const struct fault_candidate *candidate)
{
    const char *queue = fault_text(fault, FAULT_KEY_QUEUE);
    const char *label = fault_text(fault, FAULT_KEY_LABEL);
    return fault->targets & 1u << candidate->target &&
           (!*queue || is_label(queue, candidate->queue)) &&
           (!*label || is_label(label, candidate->labels[0]) ||
            is_label(label, candidate->labels[1]));
}

// The number decides alone, so that threads do not change which of the numbers get a fault.
static bool is_hit(const struct fault *fault, uint64_t number)
{
    const uint64_t at = fault_number(fault, FAULT_KEY_AT);
    const uint64_t one_in = fault_number(fault, FAULT_KEY_ONE_IN);
    const uint64_t seed = fault_number(fault, FAULT_KEY_SEED);
    return at ? number == at : one_in && weir_random(seed, 0, number) % one_in == 0;
}

// The list, a line for each: number, kind, queue, label, file, line, with tabs between them. One
// write each, so that it is there when the process crashes.
static void add_to_list(const struct fault *fault, const struct fault_candidate *candidate,
                        uint64_t number)
{
    char texts[3][256];
    char line[1024];
    size_t used = 0;
    const char *label = candidate->labels[0];
    if (fault->list < 0)
        return;
    weir_text_escape(texts[0], sizeof texts[0], candidate->queue ? candidate->queue : "", "");
    weir_text_escape(texts[1], sizeof texts[1], label ? label : "", "");
    weir_text_escape(texts[2], sizeof texts[2], candidate->file ? candidate->file : "", "");
    weir_text_append(line, sizeof line, &used, "%" PRIu64 "\t%s\t%s\t%s\t%s\t%d\n", number,
                     fault_target_names[candidate->target], texts[0], texts[1], texts[2],
                     candidate->line);
    const bool written = write(fault->list, line, used) == (ssize_t)used;
    if (!written)
        fault->link->host->log(WEIR_LOG_ERROR, fault->link->name,
                               "a line of the list cannot be written");
}

static void tell(const struct fault *fault, const struct fault_candidate *candidate,
                 uint64_t number)
{
    char text[768];
    size_t used = 0;
    weir_text_append(text, sizeof text, &used, "number %" PRIu64 " gets the fault '%s': %s", number,
                     fault_kind_names[fault->kind], fault_target_names[candidate->target]);
    if (candidate->queue && *candidate->queue)
        weir_text_append(text, sizeof text, &used, " on queue '%.100s'", candidate->queue);
    if (candidate->file)
        weir_text_append(text, sizeof text, &used, " at %.200s:%d", candidate->file,
                         candidate->line);
    fault->link->host->log(WEIR_LOG_WARNING, fault->link->name, text);
}

bool fault_choose(struct fault *fault, const struct fault_candidate *candidate,
                  uint64_t *out_number)
{
    const bool lists_all =
        !fault_number(fault, FAULT_KEY_AT) && !fault_number(fault, FAULT_KEY_ONE_IN);
    if (!is_chosen(fault, candidate))
        return false;
    *out_number = atomic_fetch_add(&fault->count, 1) + 1;
    const bool hit = is_hit(fault, *out_number);
    if (hit || lists_all)
        add_to_list(fault, candidate, *out_number);
    if (hit)
        tell(fault, candidate, *out_number);
    return hit;
}

static struct weir_error describe(const struct fault *fault, weir_status status, const char *what,
                                  enum fault_target target, uint64_t number)
{
    struct weir_error error = {.status = status};
    snprintf(error.message, sizeof error.message,
             "the plugin fault injected %s (number %" PRIu64 ", %s)", what, number,
             fault_target_names[target]);
    snprintf(error.remedy, sizeof error.remedy,
             "`weir fault %s --at %" PRIu64 " PROGRAM` repeats it", fault->remedy, number);
    return error;
}

weir_status fault_report(const struct fault *fault, weir_status status, const char *what,
                         enum fault_target target, uint64_t number)
{
    const struct weir_error error = describe(fault, status, what, target, number);
    return fault->link->host->error(&error, sizeof error);
}

// Host calls of the plugin's. The library holds a queue at a host call, finishes what is before it,
// runs it, and books its failure as the queue's: what a driver does that reports an error late.
// A call that has run, or was in its queue when that finished, is freed when the queue gets the next one; the last
// ones are freed when the queue is destroyed. One that follows a failure never runs.

void fault_calls_collect(const struct weir_link *link, struct fault_queue *queue, bool all)
{
    for (struct fault_call **at = &queue->calls; *at;) {
        struct fault_call *call = *at;
        if (!all && call->number > atomic_load(&queue->finished) &&
            !atomic_load_explicit(&call->done, memory_order_acquire)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        link->host->release(call);
    }
}

// A call of the queue's list, or NULL if out of memory. With the queue's submit lock held.
static struct fault_call *fault_call_add(const struct weir_link *link, struct fault_queue *queue,
                                         const struct weir_operation *operation,
                                         enum fault_target target, uint64_t number)
{
    fault_calls_collect(link, queue, false);
    struct fault_call *call = link->host->allocate(sizeof *call);
    if (!call)
        return NULL;
    call->fault = fault_of(link);
    call->number = number;
    call->target = target;
    if (operation->kind == WEIR_OPERATION_HOST_CALL) {
        call->function = operation->u.host_call.function;
        call->user = operation->u.host_call.user;
    }
    call->next = queue->calls;
    queue->calls = call;
    return call;
}

// The function of all calls. Nothing of the call is used after it is done.
static weir_status run_call(void *user)
{
    struct fault_call *call = user;
    const struct fault *fault = call->fault;
    weir_status status = WEIR_OK;
    switch (fault->kind) {
    case FAULT_SLOW:
        weir_clock_sleep_ns(fault_number(fault, FAULT_KEY_DELAY) * 1000000);
        break;
    case FAULT_GARBAGE_STATUS:
        (void)call->function(call->user);
        status = fault_report(fault, (weir_status)FAULT_GARBAGE,
                              "the status -4711 as the answer of a host call", call->target,
                              call->number);
        break;
    default: // FAULT_FAIL
        status = fault_report(fault, WEIR_ERROR_DEVICE, "a failure by a host call", call->target,
                              call->number);
    }
    atomic_store_explicit(&call->done, true, memory_order_release);
    return status;
}

// Of operations that a driver sees. Others are never chosen.
static enum fault_target target_of(const struct weir_operation *operation)
{
    static const unsigned char targets[WEIR_OPERATION_KINDS] = {
        [WEIR_OPERATION_COPY] = FAULT_COPY,
        [WEIR_OPERATION_COPY_2D] = FAULT_COPY,
        [WEIR_OPERATION_COPY_3D] = FAULT_COPY,
        [WEIR_OPERATION_FILL] = FAULT_FILL,
        [WEIR_OPERATION_FILL_2D] = FAULT_FILL,
        [WEIR_OPERATION_LAUNCH] = FAULT_LAUNCH,
        [WEIR_OPERATION_HOST_CALL] = FAULT_HOST_CALL,
        [WEIR_OPERATION_RECORD] = FAULT_RECORD,
        [WEIR_OPERATION_WAIT] = FAULT_WAIT,
        [WEIR_OPERATION_GRAPH] = FAULT_GRAPH,
        [WEIR_OPERATION_NATIVE] = FAULT_NATIVE,
        [WEIR_OPERATION_COLLECTIVE] = FAULT_COLLECTIVE,
    };
    const uint32_t unseen = WEIR_OPERATION_IMPLIED | WEIR_OPERATION_INTERNAL | WEIR_OPERATION_EMPTY;
    if (operation->flags & unseen || operation->kind >= WEIR_OPERATION_KINDS)
        return FAULT_NOTHING;
    return (enum fault_target)targets[operation->kind];
}

static const char *buffer_label(const weir_buffer *buffer)
{
    return buffer ? weir_buffer_object(buffer)->label : NULL;
}

static void find_labels(const struct weir_operation *operation, const char **labels)
{
    struct plugin_transfer transfer;
    if (plugin_transfer_of(operation, &transfer)) {
        labels[0] = buffer_label(transfer.dst);
        labels[1] = buffer_label(transfer.src);
    } else if (operation->kind == WEIR_OPERATION_LAUNCH) {
        labels[0] = weir_kernel_object(operation->u.launch.kernel)->label;
    } else if (operation->kind == WEIR_OPERATION_COLLECTIVE) {
        labels[0] = weir_comm_object(operation->u.collective.comm)->label;
    } else if (operation->kind == WEIR_OPERATION_GRAPH) {
        labels[0] = weir_graph_object(operation->u.graph.graph)->label;
    }
}

static weir_status forward(const struct weir_link *link, weir_queue *queue,
                           const struct weir_operation *operation)
{
    return link->next->ops->queue_submit(link->next, queue, operation);
}

// In the place of the operation, or for FAULT_SLOW before it. For FAULT_GARBAGE_STATUS it is the operation, with another
// function.
static weir_status submit_call(const struct weir_link *link, weir_queue *queue,
                               const struct weir_operation *operation, struct fault_call *call)
{
    struct weir_operation_room room;
    struct weir_operation own = {
        .struct_size = sizeof own,
        .kind = WEIR_OPERATION_HOST_CALL,
        .flags = WEIR_OPERATION_INTERNAL,
        .file = operation->file,
        .line = operation->line,
        .sequence = operation->sequence - (call->fault->kind == FAULT_SLOW),
    };
    struct weir_operation *submitted =
        call->fault->kind == FAULT_GARBAGE_STATUS ? weir_operation_copy(&room, operation) : &own;
    submitted->u.host_call.function = run_call;
    submitted->u.host_call.user = call;
    return forward(link, queue, submitted);
}

// Whether the operation runs after the call. Other ranks and later collectives count on a collective, so it follows the
// failure of its queue, and is skipped there as one that is submitted after any failure. A call that always runs, does.
static bool comes_after(const struct fault *fault, const struct weir_operation *operation)
{
    if (fault->kind == FAULT_GARBAGE_STATUS) // the call is the operation
        return false;
    return fault->kind == FAULT_SLOW || operation->kind == WEIR_OPERATION_COLLECTIVE ||
           operation->flags & (WEIR_OPERATION_ALWAYS | WEIR_OPERATION_COLLECTIVES);
}

static weir_status submit_late(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation, enum fault_target target,
                               uint64_t number)
{
    struct fault_queue *queue = fault_queue_of(link, object);
    struct fault_call *call = fault_call_add(link, queue, operation, target, number);
    if (!call)
        return weir_host_no_memory(link->host, "a fault");
    const weir_status status = submit_call(link, object, operation, call);
    if (status < 0 || !comes_after(call->fault, operation))
        return status;
    return forward(link, object, operation);
}

// Loses the device by operation `number`, and returns the error.
static weir_status lose(const struct weir_link *link, struct fault_device *device,
                        enum fault_target target, uint64_t number)
{
    struct fault *fault = fault_of(link);
    const struct weir_error cause =
        describe(fault, WEIR_ERROR_DEVICE_LOST, "the loss of the device", target, number);
    int present = FAULT_PRESENT;
    if (atomic_compare_exchange_strong(&device->loss, &present, FAULT_LEAVING)) {
        device->cause = cause;
        atomic_store_explicit(&device->loss, FAULT_LOST, memory_order_release);
        if (device->index < 64)
            atomic_fetch_or(&fault->lost, UINT64_C(1) << device->index);
    }
    return link->host->error(&cause, sizeof cause);
}

static weir_status inject(const struct weir_link *link, weir_queue *object,
                          const struct weir_operation *operation, enum fault_target target,
                          uint64_t number)
{
    const struct fault *fault = fault_of(link);
    switch (fault->kind) {
    case FAULT_REFUSE:
        return fault_report(fault, WEIR_ERROR_DEVICE, "a refusal", target, number);
    case FAULT_LOSE:
        return lose(link, fault_queue_of(link, object)->device, target, number);
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
        .target = target_of(operation),
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
    find_labels(operation, candidate.labels);
    if (!candidate.target || !fault_choose(fault_of(link), &candidate, &number))
        return forward(link, queue, operation);
    return inject(link, queue, operation, candidate.target, number);
}
