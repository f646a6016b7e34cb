// The ops table, and a link's life.
#include "plugins/fault/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "plugins/kit/kit.h"

// Creation, and what the plugin keeps with objects. Destroying always works, as on a device that is
// lost.

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

// `status` is the next link's answer, which counts while the device is not lost, and if there is
// none yet.
static weir_status answer(const struct weir_link *link, weir_queue *queue, weir_status status)
{
    const weir_status loss = status == WEIR_NOT_READY || status == WEIR_TIMEOUT
                                 ? WEIR_OK
                                 : fault_loss(link, fault_queue_of(link, queue)->device);
    return loss < 0 ? loss : status;
}

static weir_status fault_queue_flush(const struct weir_link *link, weir_queue *queue)
{
    return answer(link, queue, link->next->ops->queue_flush(link->next, queue));
}

static weir_status fault_queue_finish(const struct weir_link *link, weir_queue *queue)
{
    struct fault_queue *own = fault_queue_of(link, queue);
    const uint64_t submitted = atomic_load(&own->submitted);
    const weir_status status = link->next->ops->queue_finish(link->next, queue);
    if (status == WEIR_OK)
        atomic_store(&own->finished, submitted);
    return answer(link, queue, status);
}

static weir_status fault_event_query(const struct weir_link *link, weir_queue *queue,
                                     uint64_t sequence)
{
    return answer(link, queue, link->next->ops->event_query(link->next, queue, sequence));
}

static weir_status fault_event_wait(const struct weir_link *link, weir_queue *queue,
                                    uint64_t sequence, uint64_t timeout_ns)
{
    return answer(link, queue,
                  link->next->ops->event_wait(link->next, queue, sequence, timeout_ns));
}

static weir_status fault_event_time(const struct weir_link *link, weir_queue *queue,
                                    uint64_t sequence, uint64_t *out_time_ns)
{
    const weir_status loss = fault_loss(link, fault_queue_of(link, queue)->device);
    return loss < 0 ? loss : link->next->ops->event_time(link->next, queue, sequence, out_time_ns);
}

static weir_status fault_device_trim(const struct weir_link *link, weir_device *device)
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

static weir_status fault_device_create(const struct weir_link *link, weir_device *object,
                                       const struct weir_device_setup *setup, void **out_data)
{
    struct fault *fault = fault_of(link);
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

static void fault_device_destroy(const struct weir_link *link, weir_device *device)
{
    link->host->release(fault_device_of(link, device));
}

static weir_status fault_queue_create(const struct weir_link *link, weir_device *device,
                                      weir_queue *object, const struct weir_queue_setup *setup,
                                      void **out_data)
{
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

static void fault_queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct fault_queue *queue = fault_queue_of(link, object);
    fault_calls_collect(link, queue, true);
    link->host->release(queue);
}

static weir_status fault_buffer_create(const struct weir_link *link, weir_device *device,
                                       weir_buffer *buffer, const struct weir_buffer_setup *setup,
                                       void **out_data, void **out_pointer)
{
    return check(link, fault_device_of(link, device), FAULT_NEW_BUFFER,
                 weir_buffer_object(buffer)->label);
}

static void fault_buffer_destroy(const struct weir_link *link, weir_buffer *buffer)
{
}

static weir_status fault_program_create(const struct weir_link *link, weir_device *device,
                                        weir_program *program,
                                        const struct weir_program_params *params, void **out_data)
{
    *out_data = fault_device_of(link, device);
    return check(link, fault_device_of(link, device), FAULT_NEW_PROGRAM,
                 weir_program_object(program)->label);
}

static void fault_program_destroy(const struct weir_link *link, weir_program *program)
{
}

static weir_status fault_kernel_create(const struct weir_link *link, weir_program *program,
                                       weir_kernel *kernel,
                                       const struct weir_kernel_signature *signature,
                                       struct weir_kernel_info *info, void **out_data)
{
    return check(link, fault_program_device(link, program), FAULT_NEW_KERNEL, signature->name);
}

static void fault_kernel_destroy(const struct weir_link *link, weir_kernel *kernel)
{
}

static weir_status fault_graph_create(const struct weir_link *link, weir_device *device,
                                      weir_graph *graph, const struct weir_graph_setup *setup,
                                      void **out_data)
{
    return check(link, fault_device_of(link, device), FAULT_NEW_GRAPH,
                 weir_graph_object(graph)->label);
}

static void fault_graph_destroy(const struct weir_link *link, weir_graph *graph)
{
}

// The section [fault].

const char *const fault_kind_names[FAULT_KINDS + 1] = {
    [FAULT_REFUSE] = "refuse", [FAULT_FAIL] = "fail",     [FAULT_SLOW] = "slow",
    [FAULT_LOSE] = "lose",     [FAULT_MEMORY] = "memory", [FAULT_GARBAGE_STATUS] = "garbage",
};

const char *const fault_target_names[FAULT_TARGETS] = {
    [FAULT_COPY] = "copy",
    [FAULT_FILL] = "fill",
    [FAULT_LAUNCH] = "launch",
    [FAULT_HOST_CALL] = "host-call",
    [FAULT_RECORD] = "record",
    [FAULT_WAIT] = "wait",
    [FAULT_GRAPH] = "graph",
    [FAULT_NATIVE] = "native",
    [FAULT_COLLECTIVE] = "collective",
    [FAULT_NEW_DEVICE] = "new-device",
    [FAULT_NEW_QUEUE] = "new-queue",
    [FAULT_NEW_BUFFER] = "new-buffer",
    [FAULT_NEW_PROGRAM] = "new-program",
    [FAULT_NEW_KERNEL] = "new-kernel",
    [FAULT_NEW_GRAPH] = "new-graph",
};

#define NUMBER_MAX INT64_C(1000000000000)

#define BIT(target) (1u << FAULT_##target)
#define WORK (BIT(COPY) | BIT(FILL) | BIT(LAUNCH) | BIT(HOST_CALL) | BIT(GRAPH) | BIT(NATIVE))
#define CREATION                                                                               \
    (BIT(NEW_DEVICE) | BIT(NEW_QUEUE) | BIT(NEW_BUFFER) | BIT(NEW_PROGRAM) | BIT(NEW_KERNEL) | \
     BIT(NEW_GRAPH))

// The targets of each kind of fault.
static const uint32_t possible[FAULT_KINDS] = {
    [FAULT_REFUSE] = WORK | BIT(RECORD) | BIT(WAIT) | BIT(COLLECTIVE),
    [FAULT_FAIL] = WORK | BIT(COLLECTIVE),
    [FAULT_SLOW] = WORK | BIT(COLLECTIVE),
    [FAULT_LOSE] = WORK | BIT(RECORD) | BIT(WAIT) | BIT(COLLECTIVE),
    [FAULT_GARBAGE_STATUS] = BIT(HOST_CALL),
    [FAULT_MEMORY] = CREATION,
};

const struct weir_key fault_keys[FAULT_KEY_COUNT] = {
    [FAULT_KEY_FAULT] = WEIR_CHOICE_KEY(
        "fault", "refuse", fault_kind_names,
        "What happens to an operation: it is refused when it is submitted, fails later, "
        "is slow, loses its device; memory: a creation finds no memory; garbage: a host "
        "call returns a status that does not exist."),
    [FAULT_KEY_AT] = WEIR_INTEGER_KEY(
        "at", "0", 0, NUMBER_MAX,
        "The number of the operation, among those that the keys below choose; 0: none."),
    [FAULT_KEY_ONE_IN] = WEIR_INTEGER_KEY(
        "one_in", "0", 0, NUMBER_MAX,
        "In place of `at`: one in so many of the chosen operations, drawn by `seed`."),
    [FAULT_KEY_SEED] = WEIR_INTEGER_KEY("seed", "0", 0, UINT32_MAX,
                                        "For `one_in`: another number draws other operations."),
    [FAULT_KEY_TARGETS] = WEIR_TEXT_KEY(
        "kinds", "",
        "Kinds of operation to choose, with commas between them; all that the fault can "
        "happen to if empty: copy, fill, launch, host-call, record, wait, graph, native, "
        "new-device, new-queue, new-buffer, new-program, new-kernel, new-graph."),
    [FAULT_KEY_QUEUE] =
        WEIR_TEXT_KEY("queue", "",
                      "Chooses only operations on queues of this label, and the creation of them."),
    [FAULT_KEY_LABEL] = WEIR_TEXT_KEY(
        "label", "",
        "Chooses only launches of the kernel, and uses of the buffer, program or graph, "
        "of this label."),
    [FAULT_KEY_DELAY] = WEIR_INTEGER_KEY("delay_ms", "1000", 1, 3600000,
                                         "For slow: how long the operation waits before it runs."),
    [FAULT_KEY_LIST] = WEIR_TEXT_KEY(
        "list", "",
        "A file to which a line is appended for each fault, or for each chosen operation "
        "if neither `at` nor `one_in` is set. Empty: none."),
};

static weir_status refuse_target(const struct fault *fault, const char *name)
{
    char names[256];
    size_t used = 0;
    for (size_t i = 0; i < FAULT_TARGETS; i++)
        if (possible[fault->kind] & 1u << i)
            weir_text_append(names, sizeof names, &used, "%s%s", used ? ", " : "",
                             fault_target_names[i]);
    return weir_host_fail(fault->link->host, WEIR_ERROR_CONFIG,
                          "name some of those, or another `fault`",
                          "[fault]: kinds: '%.60s' is nothing to which '%s' can happen; it can to "
                          "%s",
                          name, fault_kind_names[fault->kind], names);
}

static weir_status read_targets(struct fault *fault)
{
    char copy[512];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", fault_text(fault, FAULT_KEY_TARGETS));
    fault->targets = *copy ? 0 : possible[fault->kind];
    for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        size_t target = 1;
        while (target < FAULT_TARGETS && strcmp(fault_target_names[target], name) != 0)
            target++;
        if (target == FAULT_TARGETS || !(possible[fault->kind] & 1u << target))
            return refuse_target(fault, name);
        fault->targets |= 1u << target;
    }
    return WEIR_OK;
}

// The number is added to them.
static void write_remedy(struct fault *fault)
{
    static const struct {
        const char *option;
        enum fault_key key;
    } options[] = {{"--kinds", FAULT_KEY_TARGETS},
                   {"--queue", FAULT_KEY_QUEUE},
                   {"--label", FAULT_KEY_LABEL}};
    size_t used = 0;
    weir_text_append(fault->remedy, sizeof fault->remedy, &used, "--fault %s",
                     fault_kind_names[fault->kind]);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (*fault_text(fault, options[i].key))
            weir_text_append(fault->remedy, sizeof fault->remedy, &used, " %s '%s'",
                             options[i].option, fault_text(fault, options[i].key));
}

static weir_status read_settings(struct fault *fault)
{
    while (strcmp(fault_kind_names[fault->kind], fault_text(fault, FAULT_KEY_FAULT)) != 0)
        fault->kind++;
    if (fault_number(fault, FAULT_KEY_AT) && fault_number(fault, FAULT_KEY_ONE_IN))
        return weir_host_fail(fault->link->host, WEIR_ERROR_CONFIG, "leave out one of them",
                              "[fault]: at and one_in are both set");
    write_remedy(fault);
    return read_targets(fault);
}

static weir_status open_list(struct fault *fault)
{
    const char *path = fault_text(fault, FAULT_KEY_LIST);
    fault->list = -1;
    if (!path[0])
        return WEIR_OK;
    fault->list = weir_file_open_to_write(path, O_APPEND);
    if (fault->list >= 0)
        return WEIR_OK;
    return weir_host_fail(fault->link->host, WEIR_ERROR_IO, "name another file with `list`",
                          "[fault]: the list %s cannot be written: %s", path, strerror(errno));
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
    if (status == WEIR_OK)
        status = open_list(fault);
    if (status < 0) {
        free(fault);
        return status;
    }
    *out_state = fault;
    return WEIR_OK;
}

// A number that was never reached is likely a mistake in it.
static void tell_end(const struct fault *fault)
{
    char text[160];
    const uint64_t count = atomic_load(&fault->count);
    const uint64_t at = fault_number(fault, FAULT_KEY_AT);
    if (at <= count)
        return;
    snprintf(text, sizeof text,
             "no fault: `at` is %" PRIu64 ", and the chosen operations end with %" PRIu64, at,
             count);
    fault->link->host->log(WEIR_LOG_WARNING, fault->link->name, text);
}

static void fault_close(const struct weir_link *link)
{
    struct fault *fault = fault_of(link);
    tell_end(fault);
    if (fault->list >= 0)
        close(fault->list);
    free(fault);
}

static const struct weir_module_ops ops = {
    .open = fault_open,
    .close = fault_close,
    .device_create = fault_device_create,
    .device_destroy = fault_device_destroy,
    .device_trim = fault_device_trim,
    .queue_create = fault_queue_create,
    .queue_destroy = fault_queue_destroy,
    .queue_submit = fault_queue_submit,
    .queue_flush = fault_queue_flush,
    .queue_finish = fault_queue_finish,
    .event_query = fault_event_query,
    .event_wait = fault_event_wait,
    .event_time = fault_event_time,
    .buffer_create = fault_buffer_create,
    .buffer_destroy = fault_buffer_destroy,
    .program_create = fault_program_create,
    .program_destroy = fault_program_destroy,
    .kernel_create = fault_kernel_create,
    .kernel_destroy = fault_kernel_destroy,
    .graph_create = fault_graph_create,
    .graph_destroy = fault_graph_destroy,
};

static const char *const about[] = {
    "summary",
    "Makes chosen operations fail, for tests of what a program does then.",
    NULL,
};

PLUGIN_MODULE("fault", fault_keys, FAULT_KEY_COUNT, 0)
