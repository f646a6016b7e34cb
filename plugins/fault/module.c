// The plugin: which operations and creations are chosen, their numbers, and the list; what becomes of those that get a
// fault; a device after its loss; keys, the ops table, and a link's life.
//
// Each chosen operation of a runtime gets a number, counted from 1, and the number alone decides
// whether it gets a fault: a run whose calls come in the same order gets the same faults.
//
// No locks. What a queue keeps is changed only by its submits, which are never concurrent.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "plugins/kit/kit.h"

enum {
    GARBAGE_STATUS = -4711, // no status of Weir's
};

// What can get a fault: operations, by enum weir_operation_kind, and creations.
enum target {
    NEW_DEVICE = WEIR_OPERATION_KINDS,
    NEW_QUEUE,
    NEW_BUFFER,
    NEW_PROGRAM,
    NEW_KERNEL,
    NEW_GRAPH,
    TARGETS,
};

static const char *const target_names[TARGETS] = {
    [WEIR_OPERATION_COPY] = "copy",
    [WEIR_OPERATION_FILL] = "fill",
    [WEIR_OPERATION_LAUNCH] = "launch",
    [WEIR_OPERATION_HOST_CALL] = "host-call",
    [WEIR_OPERATION_RECORD] = "record",
    [WEIR_OPERATION_WAIT] = "wait",
    [WEIR_OPERATION_GRAPH] = "graph",
    [WEIR_OPERATION_NATIVE] = "native",
    [WEIR_OPERATION_COLLECTIVE] = "collective",
    [NEW_DEVICE] = "new-device",
    [NEW_QUEUE] = "new-queue",
    [NEW_BUFFER] = "new-buffer",
    [NEW_PROGRAM] = "new-program",
    [NEW_KERNEL] = "new-kernel",
    [NEW_GRAPH] = "new-graph",
};

// What happens to it.
enum kind {
    REFUSE,
    FAIL,
    SLOW,
    LOSE,
    GARBAGE,
    MEMORY,
    KINDS,
};

static const char *const kind_names[KINDS + 1] = {
    [REFUSE] = "refuse", [FAIL] = "fail",     [SLOW] = "slow",
    [LOSE] = "lose",     [MEMORY] = "memory", [GARBAGE] = "garbage",
};

#define BIT(target) (1u << (target))
#define ORDER (BIT(WEIR_OPERATION_RECORD) | BIT(WEIR_OPERATION_WAIT))
#define WORK                                                                                  \
    (BIT(WEIR_OPERATION_COPY) | BIT(WEIR_OPERATION_FILL) | BIT(WEIR_OPERATION_LAUNCH) |       \
     BIT(WEIR_OPERATION_HOST_CALL) | BIT(WEIR_OPERATION_GRAPH) | BIT(WEIR_OPERATION_NATIVE) | \
     BIT(WEIR_OPERATION_COLLECTIVE))

// The targets of each kind of fault.
static const uint32_t possible[KINDS] = {
    [REFUSE] = WORK | ORDER,
    [FAIL] = WORK,
    [SLOW] = WORK,
    [LOSE] = WORK | ORDER,
    [GARBAGE] = BIT(WEIR_OPERATION_HOST_CALL),
    [MEMORY] = BIT(NEW_DEVICE) | BIT(NEW_QUEUE) | BIT(NEW_BUFFER) | BIT(NEW_PROGRAM) |
               BIT(NEW_KERNEL) | BIT(NEW_GRAPH),
};

// In the order of the key table.
enum key {
    KEY_FAULT,
    KEY_AT,
    KEY_ONE_IN,
    KEY_SEED,
    KEY_TARGETS,
    KEY_QUEUE,
    KEY_LABEL,
    KEY_DELAY,
    KEY_LIST,
    KEY_COUNT,
};

// The link's state.
struct fault {
    const struct weir_link *link;
    const struct weir_setting *const *settings; // by enum key; 0 and "" choose nothing, or any
    enum kind kind;
    uint32_t targets;           // a bit for each
    char remedy[192];           // the options of `weir fault` that choose the same operations
    atomic_uint_fast64_t count; // of chosen operations
    // Indexes of devices that were lost, below 64, for a second opening.
    atomic_uint_fast64_t lost;
    int list; // a descriptor, or -1
};

struct device {
    size_t index;
    atomic_bool leaving;     // a thread writes the cause, or has
    atomic_bool lost;        // and the cause is there
    struct weir_error cause; // of the loss
};

// A host call that the plugin has put into a queue, or around the user's.
struct call {
    struct call *next;
    const struct fault *fault;
    uint64_t number;
    uint32_t target;
    atomic_bool done;
    weir_host_function function; // the user's
    void *user;
};

struct queue {
    struct device *device;
    struct call *calls; // those that may still run
    // Numbers of calls: the last one that has been submitted, and the last one up to which none runs any more.
    atomic_uint_fast64_t submitted;
    atomic_uint_fast64_t finished;
};

WEIR_STATE_OF(fault_of, struct fault)
WEIR_DATA_OF(device_of, struct device, weir_device)
WEIR_DATA_OF(queue_of, struct queue, weir_queue)
// A program keeps a pointer to its device's.
WEIR_DATA_OF(device_of_program, struct device, weir_program)

static uint64_t number_of(const struct fault *fault, enum key key)
{
    return (uint64_t)fault->settings[key]->integer;
}

static const char *text_of(const struct fault *fault, enum key key)
{
    return fault->settings[key]->text;
}

// Which operations are chosen, and which of these get the fault.

// An operation or a creation, as it is asked about.
struct candidate {
    uint32_t target;
    const char *queue;     // its label, or NULL
    const char *labels[2]; // of what it uses or creates, or NULL
    const char *file;      // or NULL
    int line;
};

static bool is_label(const char *wanted, const char *label)
{
    return label && strcmp(wanted, label) == 0;
}

static bool is_chosen(const struct fault *fault, const struct candidate *candidate)
{
    const char *queue = text_of(fault, KEY_QUEUE);
    const char *label = text_of(fault, KEY_LABEL);
    return fault->targets & BIT(candidate->target) &&
           (!*queue || is_label(queue, candidate->queue)) &&
           (!*label || is_label(label, candidate->labels[0]) ||
            is_label(label, candidate->labels[1]));
}

// The list, a line for each: number, kind, queue, label, file, line, with tabs between them. One
// write each, so that it is there when the process crashes.
static void add_to_list(const struct fault *fault, const struct candidate *candidate,
                        uint64_t number)
{
    const char *const given[] = {candidate->queue, candidate->labels[0], candidate->file};
    char texts[3][256];
    char line[1024];
    size_t used = 0;
    for (size_t i = 0; i < 3; i++)
        weir_text_escape(texts[i], sizeof texts[i], given[i] ? given[i] : "", "");
    weir_text_append(line, sizeof line, &used, "%" PRIu64 "\t%s\t%s\t%s\t%s\t%d\n", number,
                     target_names[candidate->target], texts[0], texts[1], texts[2],
                     candidate->line);
    if (write(fault->list, line, used) != (ssize_t)used)
        fault->link->host->log(WEIR_LOG_ERROR, fault->link->name,
                               "a line of the list cannot be written");
}

static void tell(const struct fault *fault, const struct candidate *candidate, uint64_t number)
{
    char text[768];
    size_t used = 0;
    weir_text_append(text, sizeof text, &used, "number %" PRIu64 " gets the fault '%s': %s", number,
                     kind_names[fault->kind], target_names[candidate->target]);
    if (candidate->queue && *candidate->queue)
        weir_text_append(text, sizeof text, &used, " on queue '%.100s'", candidate->queue);
    if (candidate->file)
        weir_text_append(text, sizeof text, &used, " at %.200s:%d", candidate->file,
                         candidate->line);
    fault->link->host->log(WEIR_LOG_WARNING, fault->link->name, text);
}

// Whether it gets the fault; its number is in `*out_number` then. The list and the log are told. The number decides
// alone, so that threads do not change which of the numbers get a fault.
static bool choose(struct fault *fault, const struct candidate *candidate, uint64_t *out_number)
{
    const uint64_t at = number_of(fault, KEY_AT);
    const uint64_t one_in = number_of(fault, KEY_ONE_IN);
    const uint64_t seed = number_of(fault, KEY_SEED);
    if (!is_chosen(fault, candidate))
        return false;
    const uint64_t number = *out_number = atomic_fetch_add(&fault->count, 1) + 1;
    const bool hit = at ? number == at : one_in && weir_random(seed, 0, number) % one_in == 0;
    if (fault->list >= 0 && (hit || (!at && !one_in)))
        add_to_list(fault, candidate, number);
    if (hit)
        tell(fault, candidate, number);
    return hit;
}

// The fault as an error: `what` is a noun, such as "a refusal".
static struct weir_error describe(const struct fault *fault, weir_status status, const char *what,
                                  uint32_t target, uint64_t number)
{
    struct weir_error error = {.status = status};
    snprintf(error.message, sizeof error.message,
             "the plugin fault injected %s (number %" PRIu64 ", %s)", what, number,
             target_names[target]);
    snprintf(error.remedy, sizeof error.remedy,
             "`weir fault %s --at %" PRIu64 " PROGRAM` repeats it", fault->remedy, number);
    return error;
}

// Reports it. Returns `status`.
static weir_status report(const struct fault *fault, weir_status status, const char *what,
                          uint32_t target, uint64_t number)
{
    const struct weir_error error = describe(fault, status, what, target, number);
    return fault->link->host->error(&error, sizeof error);
}

// A device after its loss: every call that needs it returns the first cause, as docs/faults.md has
// it. What was submitted before runs to its end in truth, and waits for it still wait: memory that
// it uses must not be freed early.

// WEIR_OK, or the first cause of the device's loss as the thread's error.
static weir_status loss_of(const struct weir_link *link, const struct device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_acquire)
               ? link->host->error(&device->cause, sizeof device->cause)
               : WEIR_OK;
}

// Loses the device by operation `number`, and returns the error.
static weir_status lose(const struct weir_link *link, struct device *device, uint32_t target,
                        uint64_t number)
{
    struct fault *fault = fault_of(link);
    const struct weir_error cause =
        describe(fault, WEIR_ERROR_DEVICE_LOST, "the loss of the device", target, number);
    if (!atomic_exchange(&device->leaving, true)) {
        device->cause = cause;
        atomic_store_explicit(&device->lost, true, memory_order_release);
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
                                 : loss_of(link, queue_of(link, queue)->device);
    return loss < 0 ? loss : status;
}

static weir_status queue_flush(const struct weir_link *link, weir_queue *queue)
{
    return answer(link, queue, link->next->ops->queue_flush(link->next, queue));
}

static weir_status queue_finish(const struct weir_link *link, weir_queue *object)
{
    struct queue *queue = queue_of(link, object);
    const uint64_t submitted = atomic_load(&queue->submitted);
    const weir_status status = link->next->ops->queue_finish(link->next, object);
    if (status == WEIR_OK)
        atomic_store(&queue->finished, submitted);
    return answer(link, object, status);
}

static weir_status event_query(const struct weir_link *link, weir_queue *queue, uint64_t sequence)
{
    return answer(link, queue, link->next->ops->event_query(link->next, queue, sequence));
}

static weir_status event_wait(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t timeout_ns)
{
    return answer(link, queue,
                  link->next->ops->event_wait(link->next, queue, sequence, timeout_ns));
}

static weir_status event_time(const struct weir_link *link, weir_queue *queue, uint64_t sequence,
                              uint64_t *out_time_ns)
{
    const weir_status loss = loss_of(link, queue_of(link, queue)->device);
    return loss < 0 ? loss : link->next->ops->event_time(link->next, queue, sequence, out_time_ns);
}

static weir_status device_trim(const struct weir_link *link, weir_device *device)
{
    const weir_status loss = loss_of(link, device_of(link, device));
    return loss < 0 ? loss : link->next->ops->device_trim(link->next, device);
}

// Host calls of the plugin's. The library holds a queue at a host call, finishes what is before it,
// runs it, and books its failure as the queue's: what a driver does that reports an error late.
// A call that has run, or was in its queue when that finished, is freed when the queue gets the next one; the last
// ones are freed when the queue is destroyed. One that follows a failure never runs.

// `all`: none of them runs any more.
static void collect_calls(const struct weir_link *link, struct queue *queue, bool all)
{
    for (struct call **at = &queue->calls; *at;) {
        struct call *call = *at;
        if (!all && call->number > atomic_load(&queue->finished) &&
            !atomic_load_explicit(&call->done, memory_order_acquire)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        link->host->release(call);
    }
}

// The function of all calls. Nothing of the call is used after it is done.
static weir_status run_call(void *user)
{
    struct call *call = user;
    const struct fault *fault = call->fault;
    weir_status status = WEIR_OK;
    switch (fault->kind) {
    case SLOW:
        weir_clock_sleep_ns(number_of(fault, KEY_DELAY) * 1000000);
        break;
    case GARBAGE:
        (void)call->function(call->user);
        status =
            report(fault, (weir_status)GARBAGE_STATUS,
                   "the status -4711 as the answer of a host call", call->target, call->number);
        break;
    default: // FAIL
        status = report(fault, WEIR_ERROR_DEVICE, "a failure by a host call", call->target,
                        call->number);
    }
    atomic_store_explicit(&call->done, true, memory_order_release);
    return status;
}

static weir_status forward(const struct weir_link *link, weir_queue *queue,
                           const struct weir_operation *operation)
{
    return link->next->ops->queue_submit(link->next, queue, operation);
}

// Whether the operation runs after the call. Other ranks and later collectives count on a collective, so it follows the
// failure of its queue, and is skipped there as one that is submitted after any failure. A call that always runs, does.
static bool comes_after(const struct fault *fault, const struct weir_operation *operation)
{
    if (fault->kind == GARBAGE) // the call is the operation
        return false;
    return fault->kind == SLOW || operation->kind == WEIR_OPERATION_COLLECTIVE ||
           operation->flags & (WEIR_OPERATION_ALWAYS | WEIR_OPERATION_COLLECTIVES);
}

// Submits a call in the place of the operation, or for SLOW before it. For GARBAGE it is the operation, with another
// function.
static weir_status submit_call(const struct weir_link *link, weir_queue *object,
                               const struct weir_operation *operation, uint32_t target,
                               uint64_t number)
{
    const struct fault *fault = fault_of(link);
    struct queue *queue = queue_of(link, object);
    struct weir_operation_room room;
    struct weir_operation own =
        weir_operation_internal(WEIR_OPERATION_HOST_CALL, operation,
                                operation->sequence - (fault->kind == SLOW));
    struct weir_operation *submitted =
        fault->kind == GARBAGE ? weir_operation_copy(&room, operation) : &own;
    collect_calls(link, queue, false);
    struct call *call = link->host->allocate(sizeof *call);
    if (!call)
        return weir_host_no_memory(link->host, "a fault");
    *call = (struct call){
        .next = queue->calls,
        .fault = fault,
        .number = number,
        .target = target,
        .function = submitted->u.host_call.function, // of GARBAGE
        .user = submitted->u.host_call.user,
    };
    queue->calls = call;
    submitted->u.host_call.function = run_call;
    submitted->u.host_call.user = call;
    const weir_status status = forward(link, object, submitted);
    atomic_store(&queue->submitted, number);
    return status < 0 || !comes_after(fault, operation) ? status : forward(link, object, operation);
}

static void find_labels(const struct weir_operation *operation, const char **labels)
{
    const struct weir_box *box = weir_operation_box(operation);
    if (box) {
        labels[0] = weir_buffer_object(box->dst.buffer)->label;
        labels[1] = box->src.buffer ? weir_buffer_object(box->src.buffer)->label : NULL;
    } else if (operation->kind == WEIR_OPERATION_LAUNCH) {
        labels[0] = weir_kernel_object(operation->u.launch.kernel)->label;
    } else if (operation->kind == WEIR_OPERATION_COLLECTIVE) {
        labels[0] = weir_comm_object(operation->u.collective.comm)->label;
    } else if (operation->kind == WEIR_OPERATION_GRAPH) {
        labels[0] = weir_graph_object(operation->u.graph.graph)->label;
    }
}

static weir_status queue_submit(const struct weir_link *link, weir_queue *queue,
                                const struct weir_operation *operation)
{
    struct fault *fault = fault_of(link);
    struct device *device = queue_of(link, queue)->device;
    struct candidate candidate = {
        .target = operation->kind,
        .queue = weir_queue_object(queue)->label,
        .file = operation->file,
        .line = operation->line,
    };
    // What no driver sees is never chosen.
    const uint32_t unseen = WEIR_OPERATION_IMPLIED | WEIR_OPERATION_INTERNAL | WEIR_OPERATION_EMPTY;
    uint64_t number;
    // Records of the library's own are forwarded even when the device is lost: with them it finds out
    // when memory that is in use can be freed.
    if (operation->kind == WEIR_OPERATION_RECORD && operation->flags & WEIR_OPERATION_INTERNAL)
        return forward(link, queue, operation);
    weir_status status = loss_of(link, device);
    if (status < 0)
        return status;
    find_labels(operation, candidate.labels);
    if (operation->flags & unseen || operation->kind >= WEIR_OPERATION_KINDS ||
        !choose(fault, &candidate, &number))
        return forward(link, queue, operation);
    if (fault->kind == REFUSE)
        return report(fault, WEIR_ERROR_DEVICE, "a refusal", candidate.target, number);
    if (fault->kind == LOSE)
        return lose(link, device, candidate.target, number);
    return submit_call(link, queue, operation, candidate.target, number);
}

// Creation, and what the plugin keeps with objects. Destroying always works, as on a device that is
// lost.

// Of an object that is about to be created on the device, or NULL device.
static weir_status check(const struct weir_link *link, const struct device *device, uint32_t target,
                         const char *label)
{
    struct fault *fault = fault_of(link);
    const struct candidate candidate = {
        .target = target,
        .queue = target == NEW_QUEUE ? label : NULL,
        .labels = {label, NULL},
    };
    uint64_t number;
    weir_status status = device ? loss_of(link, device) : WEIR_OK;
    if (status < 0 || !choose(fault, &candidate, &number))
        return status;
    return report(fault, WEIR_ERROR_OUT_OF_MEMORY, "a lack of memory", target, number);
}

static weir_status device_create(const struct weir_link *link, weir_device *object,
                                 const struct weir_device_setup *setup, void **out_data)
{
    weir_status status = check(link, NULL, NEW_DEVICE, setup->label);
    if (status < 0)
        return status;
    if (setup->index < 64 && atomic_load(&fault_of(link)->lost) >> setup->index & 1)
        return weir_host_fail(link->host, WEIR_ERROR_DEVICE_LOST, "restart the process",
                              "this process has lost the device before, by the plugin fault");
    struct device *device = link->host->allocate(sizeof *device);
    if (!device)
        return weir_host_no_memory(link->host, "a device of the plugin fault");
    device->index = setup->index;
    *out_data = device;
    return WEIR_OK;
}

static void device_destroy(const struct weir_link *link, weir_device *device)
{
    link->host->release(device_of(link, device));
}

static weir_status queue_create(const struct weir_link *link, weir_device *device,
                                weir_queue *object, const struct weir_queue_setup *setup,
                                void **out_data)
{
    weir_status status =
        check(link, device_of(link, device), NEW_QUEUE, weir_queue_object(object)->label);
    if (status < 0)
        return status;
    struct queue *queue = link->host->allocate(sizeof *queue);
    if (!queue)
        return weir_host_no_memory(link->host, "a queue of the plugin fault");
    queue->device = device_of(link, device);
    *out_data = queue;
    return WEIR_OK;
}

static void queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct queue *queue = queue_of(link, object);
    collect_calls(link, queue, true);
    link->host->release(queue);
}

static weir_status buffer_create(const struct weir_link *link, weir_device *device,
                                 weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                 void **out_data, void **out_pointer)
{
    return check(link, device_of(link, device), NEW_BUFFER, weir_buffer_object(buffer)->label);
}

static void buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
}

static weir_status program_create(const struct weir_link *link, weir_device *device,
                                  weir_program *program, const struct weir_program_params *params,
                                  void **out_data)
{
    *out_data = device_of(link, device);
    return check(link, device_of(link, device), NEW_PROGRAM, weir_program_object(program)->label);
}

static void program_destroy(const struct weir_link *link, weir_program *program)
{
}

static weir_status kernel_create(const struct weir_link *link, weir_program *program,
                                 weir_kernel *kernel, const struct weir_kernel_signature *signature,
                                 struct weir_kernel_info *info, void **out_data)
{
    return check(link, device_of_program(link, program), NEW_KERNEL, signature->name);
}

static void kernel_destroy(const struct weir_link *link, weir_kernel *kernel)
{
}

static weir_status graph_create(const struct weir_link *link, weir_device *device,
                                weir_graph *graph, const struct weir_graph_setup *setup,
                                void **out_data)
{
    return check(link, device_of(link, device), NEW_GRAPH, weir_graph_object(graph)->label);
}

static void graph_destroy(const struct weir_link *link, weir_graph *graph)
{
}

// The section [fault].

#define NUMBER_MAX INT64_C(1000000000000)

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_FAULT] = WEIR_CHOICE_KEY(
        "fault", "refuse", kind_names,
        "What happens to an operation: it is refused when it is submitted, fails later, "
        "is slow, loses its device; memory: a creation finds no memory; garbage: a host "
        "call returns a status that does not exist."),
    [KEY_AT] = WEIR_INTEGER_KEY(
        "at", "0", 0, NUMBER_MAX,
        "The number of the operation, among those that the keys below choose; 0: none."),
    [KEY_ONE_IN] = WEIR_INTEGER_KEY(
        "one_in", "0", 0, NUMBER_MAX,
        "In place of `at`: one in so many of the chosen operations, drawn by `seed`."),
    [KEY_SEED] = WEIR_INTEGER_KEY("seed", "0", 0, UINT32_MAX,
                                  "For `one_in`: another number draws other operations."),
    [KEY_TARGETS] = WEIR_TEXT_KEY(
        "kinds", "",
        "Kinds of operation to choose, with commas between them; all that the fault can "
        "happen to if empty: copy, fill, launch, host-call, record, wait, graph, native, "
        "new-device, new-queue, new-buffer, new-program, new-kernel, new-graph."),
    [KEY_QUEUE] =
        WEIR_TEXT_KEY("queue", "",
                      "Chooses only operations on queues of this label, and the creation of them."),
    [KEY_LABEL] = WEIR_TEXT_KEY(
        "label", "",
        "Chooses only launches of the kernel, and uses of the buffer, program or graph, "
        "of this label."),
    [KEY_DELAY] = WEIR_INTEGER_KEY("delay_ms", "1000", 1, 3600000,
                                   "For slow: how long the operation waits before it runs."),
    [KEY_LIST] = WEIR_TEXT_KEY(
        "list", "",
        "A file to which a line is appended for each fault, or for each chosen operation "
        "if neither `at` nor `one_in` is set. Empty: none."),
};

static weir_status refuse_target(const struct fault *fault, const char *name)
{
    char names[256];
    size_t used = 0;
    for (size_t i = 0; i < TARGETS; i++)
        if (possible[fault->kind] & BIT(i))
            weir_text_append(names, sizeof names, &used, "%s%s", used ? ", " : "", target_names[i]);
    return weir_host_fail(fault->link->host, WEIR_ERROR_CONFIG,
                          "name some of those, or another `fault`",
                          "[fault]: kinds: '%.60s' is nothing to which '%s' can happen; it can to "
                          "%s",
                          name, kind_names[fault->kind], names);
}

static weir_status read_targets(struct fault *fault)
{
    char copy[512];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text_of(fault, KEY_TARGETS));
    fault->targets = *copy ? 0 : possible[fault->kind];
    for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        uint32_t target = 0;
        while (target < TARGETS && !is_label(name, target_names[target]))
            target++;
        if (target == TARGETS || !(possible[fault->kind] & BIT(target)))
            return refuse_target(fault, name);
        fault->targets |= BIT(target);
    }
    return WEIR_OK;
}

// The number is added to them.
static void write_remedy(struct fault *fault)
{
    static const struct {
        const char *option;
        enum key key;
    } options[] = {{"--kinds", KEY_TARGETS}, {"--queue", KEY_QUEUE}, {"--label", KEY_LABEL}};
    size_t used = 0;
    weir_text_append(fault->remedy, sizeof fault->remedy, &used, "--fault %s",
                     kind_names[fault->kind]);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (*text_of(fault, options[i].key))
            weir_text_append(fault->remedy, sizeof fault->remedy, &used, " %s '%s'",
                             options[i].option, text_of(fault, options[i].key));
}

static weir_status read_settings(struct fault *fault)
{
    const char *list = text_of(fault, KEY_LIST);
    while (strcmp(kind_names[fault->kind], text_of(fault, KEY_FAULT)) != 0)
        fault->kind++;
    if (number_of(fault, KEY_AT) && number_of(fault, KEY_ONE_IN))
        return weir_host_fail(fault->link->host, WEIR_ERROR_CONFIG, "leave out one of them",
                              "[fault]: at and one_in are both set");
    write_remedy(fault);
    const weir_status status = read_targets(fault);
    if (status < 0)
        return status;
    fault->list = *list ? weir_file_open_to_write(list, O_APPEND) : -1;
    if (!*list || fault->list >= 0)
        return WEIR_OK;
    return weir_host_fail(fault->link->host, WEIR_ERROR_IO, "name another file with `list`",
                          "[fault]: the list %s cannot be written: %s", list, strerror(errno));
}

static weir_status fault_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    struct fault *fault = calloc(1, sizeof *fault);
    if (!fault)
        return weir_host_no_memory(link->host, "the plugin fault");
    fault->link = link;
    fault->settings = settings;
    // Both would give the same numbers to different operations.
    weir_status status = plugin_refuse_second(link, "list it once");
    if (status == WEIR_OK)
        status = read_settings(fault);
    if (status < 0) {
        free(fault);
        return status;
    }
    *out_state = fault;
    return WEIR_OK;
}

static void fault_close(const struct weir_link *link)
{
    struct fault *fault = fault_of(link);
    const uint64_t count = atomic_load(&fault->count);
    const uint64_t at = number_of(fault, KEY_AT);
    char text[160];
    if (at > count) { // a number that was never reached is likely a mistake
        snprintf(text, sizeof text,
                 "no fault: `at` is %" PRIu64 ", and the chosen operations end with %" PRIu64, at,
                 count);
        link->host->log(WEIR_LOG_WARNING, link->name, text);
    }
    if (fault->list >= 0)
        close(fault->list);
    free(fault);
}

static const struct weir_module_ops ops = {
    .open = fault_open,
    .close = fault_close,
    .device_create = device_create,
    .device_destroy = device_destroy,
    .device_trim = device_trim,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = queue_submit,
    .queue_flush = queue_flush,
    .queue_finish = queue_finish,
    .event_query = event_query,
    .event_wait = event_wait,
    .event_time = event_time,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .kernel_create = kernel_create,
    .kernel_destroy = kernel_destroy,
    .graph_create = graph_create,
    .graph_destroy = graph_destroy,
};

static const char *const about[] = {
    "summary",
    "Makes chosen operations fail, for tests of what a program does then.",
    NULL,
};

PLUGIN_MODULE("fault", keys, KEY_COUNT, 0)
