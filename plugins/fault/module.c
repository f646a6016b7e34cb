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
#include "plugins/kit/chain.h"

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
    [FAULT_KEY_FAULT] =
        {
            .name = "fault",
            .type = WEIR_KEY_CHOICE,
            .fallback = "refuse",
            .choices = fault_kind_names,
            .help =
                "What happens to an operation: it is refused when it is submitted, fails later, "
                "is slow, loses its device; memory: a creation finds no memory; garbage: a host "
                "call returns a status that does not exist.",
        },
    [FAULT_KEY_AT] =
        {
            .name = "at",
            .type = WEIR_KEY_INTEGER,
            .fallback = "0",
            .maximum = NUMBER_MAX,
            .help = "The number of the operation, among those that the keys below choose; 0: none.",
        },
    [FAULT_KEY_ONE_IN] =
        {
            .name = "one_in",
            .type = WEIR_KEY_INTEGER,
            .fallback = "0",
            .maximum = NUMBER_MAX,
            .help = "In place of `at`: one in so many of the chosen operations, drawn by `seed`.",
        },
    [FAULT_KEY_SEED] =
        {
            .name = "seed",
            .type = WEIR_KEY_INTEGER,
            .fallback = "0",
            .maximum = UINT32_MAX,
            .help = "For `one_in`: another number draws other operations.",
        },
    [FAULT_KEY_TARGETS] =
        {
            .name = "kinds",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help =
                "Kinds of operation to choose, with commas between them; all that the fault can "
                "happen to if empty: copy, fill, launch, host-call, record, wait, graph, native, "
                "new-device, new-queue, new-buffer, new-program, new-kernel, new-graph.",
        },
    [FAULT_KEY_QUEUE] =
        {
            .name = "queue",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help = "Chooses only operations on queues of this label, and the creation of them.",
        },
    [FAULT_KEY_LABEL] =
        {
            .name = "label",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help =
                "Chooses only launches of the kernel, and uses of the buffer, program or graph, "
                "of this label.",
        },
    [FAULT_KEY_DELAY] =
        {
            .name = "delay_ms",
            .type = WEIR_KEY_INTEGER,
            .fallback = "1000",
            .minimum = 1,
            .maximum = 3600000,
            .help = "For slow: how long the operation waits before it runs.",
        },
    [FAULT_KEY_LIST] =
        {
            .name = "list",
            .type = WEIR_KEY_TEXT,
            .fallback = "",
            .help =
                "A file to which a line is appended for each fault, or for each chosen operation "
                "if neither `at` nor `one_in` is set. Empty: none.",
        },
};

static weir_status refuse_target(const struct weir_host *host, const char *name,
                                 const struct fault_settings *settings)
{
    char names[256];
    size_t used = 0;
    for (size_t i = 0; i < FAULT_TARGETS; i++)
        if (possible[settings->kind] & 1u << i)
            weir_text_append(names, sizeof names, &used, "%s%s", used ? ", " : "",
                             fault_target_names[i]);
    return weir_host_fail(host, WEIR_ERROR_CONFIG, "name some of those, or another `fault`",
                          "[fault]: kinds: '%.60s' is nothing to which '%s' can happen; it can to "
                          "%s",
                          name, fault_kind_names[settings->kind], names);
}

static weir_status read_targets(const struct weir_host *host, const char *text,
                                struct fault_settings *settings)
{
    char copy[512];
    char *rest = NULL;
    settings->targets = *text ? 0 : possible[settings->kind];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        size_t target = 0;
        while (target < FAULT_TARGETS && strcmp(fault_target_names[target], name) != 0)
            target++;
        if (target == FAULT_TARGETS || !(possible[settings->kind] & 1u << target))
            return refuse_target(host, name, settings);
        settings->targets |= 1u << target;
    }
    return WEIR_OK;
}

static weir_status read_text(const struct weir_host *host, const char *key, const char *text,
                             char *out, size_t size)
{
    if (strlen(text) < size) {
        memcpy(out, text, strlen(text) + 1);
        return WEIR_OK;
    }
    return weir_host_fail(host, WEIR_ERROR_CONFIG, "use a shorter one",
                          "[fault]: %s has more than %zu bytes", key, size - 1);
}

// The options of `weir fault` that choose the same operations; the number is added to them.
static void write_remedy(const struct weir_setting *const *settings, struct fault_settings *out)
{
    size_t used = 0;
    char *text = out->remedy;
    const size_t size = sizeof out->remedy;
    weir_text_append(text, size, &used, "--fault %s", fault_kind_names[out->kind]);
    if (*settings[FAULT_KEY_TARGETS]->text)
        weir_text_append(text, size, &used, " --kinds '%s'", settings[FAULT_KEY_TARGETS]->text);
    if (out->queue[0])
        weir_text_append(text, size, &used, " --queue '%s'", out->queue);
    if (out->label[0])
        weir_text_append(text, size, &used, " --label '%s'", out->label);
}

static weir_status fault_settings_read(const struct weir_host *host,
                                       const struct weir_setting *const *settings,
                                       struct fault_settings *out)
{
    *out = (struct fault_settings){0};
    while (strcmp(fault_kind_names[out->kind], settings[FAULT_KEY_FAULT]->text) != 0)
        out->kind++;
    out->at = (uint64_t)settings[FAULT_KEY_AT]->integer;
    out->one_in = (uint64_t)settings[FAULT_KEY_ONE_IN]->integer;
    out->seed = (uint64_t)settings[FAULT_KEY_SEED]->integer;
    out->delay_ns = (uint64_t)settings[FAULT_KEY_DELAY]->integer * 1000000u;
    if (out->at && out->one_in)
        return weir_host_fail(host, WEIR_ERROR_CONFIG, "leave out one of them",
                              "[fault]: at and one_in are both set");
    weir_status status = read_targets(host, settings[FAULT_KEY_TARGETS]->text, out);
    if (status == WEIR_OK)
        status = read_text(host, "queue", settings[FAULT_KEY_QUEUE]->text, out->queue,
                           sizeof out->queue);
    if (status == WEIR_OK)
        status = read_text(host, "label", settings[FAULT_KEY_LABEL]->text, out->label,
                           sizeof out->label);
    if (status == WEIR_OK)
        status =
            read_text(host, "list", settings[FAULT_KEY_LIST]->text, out->list, sizeof out->list);
    write_remedy(settings, out);
    return status;
}

static weir_status open_list(struct fault *fault)
{
    const char *path = fault->settings.list;
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
    // Both would give the same numbers to different operations.
    weir_status status = plugin_refuse_second(link, "list it once");
    if (status == WEIR_OK)
        status = fault_settings_read(link->host, settings, &fault->settings);
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
    if (fault->settings.at <= count)
        return;
    snprintf(text, sizeof text,
             "no fault: `at` is %" PRIu64 ", and the chosen operations end with %" PRIu64,
             fault->settings.at, count);
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
