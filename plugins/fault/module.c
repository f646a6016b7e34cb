// The ops table, and a link's life.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "plugins/fault/parts.h"
#include "plugins/kit/chain.h"

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

static const struct weir_module module_info = {
    .abi = WEIR_MODULE_ABI,
    .struct_size = sizeof(struct weir_module),
    .kind = WEIR_MODULE_PLUGIN,
    .name = "fault",
    .version = WEIR_VERSION_STRING,
    .build_id = __VERSION__, // the compiler's
    .sanitizer = WEIR_MODULE_SANITIZER,
    .keys = fault_keys,
    .key_count = FAULT_KEY_COUNT,
    .key_size = sizeof(struct weir_key),
    .slot_count = WEIR_MODULE_SLOT_COUNT,
    .operation_kinds = WEIR_OPERATION_KINDS,
    .ops = &ops,
    .about = about,
};

const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host)
{
    (void)host_abi;
    (void)host;
    return &module_info;
}
