// Opening and closing a link: settings, the file, the thread, and at the end the report and the
// page.
#include "plugins/trace/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/report.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/thread_local.h"
#include "plugins/kit/kit.h"
#include "report/page.h"

// The report and the page, at a link's close.
// The report's library sets errors through the public API, which a module does not link; the
// functions that it needs are defined here.

// The names of its files may be given out again.
static void trace_paths_give_back(const struct trace *trace)
{
    weir_output_path_give_back(trace->path);
    weir_output_path_give_back(trace->report_path);
    weir_output_path_give_back(trace->html_path);
}

// The replacement of `stdin`; see BUILD for the reason.
extern FILE *const trace_no_stdin;
FILE *const trace_no_stdin = NULL;

// Errors of the report's library.

// Of the thread that reads a report.
static WEIR_MODULE_THREAD_LOCAL struct weir_error *last_error;

weir_status weir_error_set_sized(const struct weir_error *detail, size_t size)
{
    (void)size; // the report's library is of the same version
    const struct weir_error error = detail ? *detail : (struct weir_error){.status = WEIR_OK};
    if (last_error)
        *last_error = error;
    return error.status;
}

// The report and the page.

static bool write_report(const char *path, const weir_report *report, char *message, size_t size)
{
    char *text = weir_report_text(report);
    const bool written = text && weir_file_write(path, text, strlen(text), message, size);
    if (!text)
        snprintf(message, size, "%s: there is no memory for the report", path);
    weir_report_free_text(&text);
    return written;
}

static void fail(struct trace *trace, const char *message)
{
    if (!trace->failure[0])
        weir_text_escape(trace->failure, sizeof trace->failure, message, "");
}

static bool read_report(struct trace *trace, weir_report **out_report)
{
    struct weir_error error = {.status = WEIR_OK};
    last_error = &error;
    const bool read = weir_report_read(trace->path, NULL, out_report) >= 0;
    last_error = NULL;
    if (!read)
        fail(trace, error.message);
    return read;
}

// Writes the report and the page if they are requested. A failure is described in `failure`.
static void trace_outputs_write(struct trace *trace)
{
    weir_report *report = NULL;
    char message[1024];
    if ((!trace->report_path[0] && !trace->html_path[0]) || trace->write_failed)
        return;
    if (!read_report(trace, &report))
        return;
    if (trace->report_path[0] && !write_report(trace->report_path, report, message, sizeof message))
        fail(trace, message);
    if (trace->html_path[0] &&
        !weir_page_write(trace->html_path, report, NULL, message, sizeof message))
        fail(trace, message);
    weir_report_destroy(&report);
}

// Two runs in virtual time have the same number.
#define VIRTUAL_PROCESS UINT64_C(1)

// In the order of the key table.
enum key {
    KEY_FILE,
    KEY_BUFFER,
    KEY_FLUSH,
    KEY_REPORT,
    KEY_HTML,
    KEY_LIMIT,
    KEY_COUNT
};

static const struct weir_key keys[KEY_COUNT] = {
    [KEY_FILE] =
        WEIR_TEXT_KEY("file", "trace.json",
                      "The file to write, over what stands there; a name that ends in .gz is "
                      "compressed, and %p stands for the number of the process. A second runtime "
                      "of the process writes beside it, with a number in the name."),
    [KEY_BUFFER] = WEIR_INTEGER_KEY(
        "buffer", "16384", 1024, 1 << 20,
        "Operations of a queue that are kept until they are written, rounded up to "
        "a power of two, 0.3 KiB each. What finds no room is counted and "
        "not kept."),
    [KEY_FLUSH] =
        WEIR_INTEGER_KEY("flush", "200", 1, 60000,
                         "Milliseconds after which what is complete is in the file, should the "
                         "process be killed."),
    [KEY_REPORT] =
        WEIR_TEXT_KEY("report", "",
                      "A file for the report on the trace, as text, written when the runtime is "
                      "closed. Empty: none. %p as in `file`."),
    [KEY_HTML] =
        WEIR_TEXT_KEY("html", "", "A file for the page with timeline and report, likewise."),
    [KEY_LIMIT] = WEIR_INTEGER_KEY(
        "limit", "4096", 1, 1 << 20,
        "MiB that the file may have, before compression. Operations after that are "
        "counted and not kept."),
};

// The head of the file.

// This plugin and those after it; a link cannot see those before it. The last two links are the
// front end's own and the backend.
static void plugin_names(const struct weir_link *link, char *names, size_t size)
{
    size_t used = 0;
    names[0] = '\0';
    for (; link->next->next; link = link->next)
        weir_text_append(names, size, &used, "%s%s", used ? ", " : "", link->name);
}

static const char *source_of(const char *backend)
{
    if (strcmp(backend, "opencl") == 0)
        return "profiling";
    return strcmp(backend, "null") == 0 ? "host" : "driver";
}

static bool create_writer(struct trace *trace, char *message, size_t message_size)
{
    char program[128];
    char plugins[256];
    struct timespec unix_time;
    plugin_program_name(program, sizeof program);
    plugin_names(trace->link, plugins, sizeof plugins);
    clock_gettime(CLOCK_REALTIME, &unix_time);
    const uint64_t unix_ns = (uint64_t)unix_time.tv_sec * 1000000000u + (uint64_t)unix_time.tv_nsec;
    trace->base_ns = trace_now_ns(trace);
    const struct weir_trace_meta meta = {
        .program = program,
        .weir = WEIR_VERSION_STRING,
        .backend = trace->backend->name,
        .plugins = plugins,
        .source = source_of(trace->backend->name),
        .base_unix_ns = trace->clock ? 0 : unix_ns,
        .process = trace->clock ? VIRTUAL_PROCESS : (uint64_t)getpid(),
    };
    trace->writer = weir_trace_writer_create(trace->path, &meta, message, message_size);
    return trace->writer != NULL;
}

// Opening.

static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 1;
    while (power < least)
        power *= 2;
    return power;
}

static weir_status open_file(struct trace *trace, const struct weir_setting *const *settings)
{
    char message[512];
    if (!weir_output_path_claim(settings[KEY_FILE]->text, trace->path) ||
        !weir_output_path_claim(settings[KEY_REPORT]->text, trace->report_path) ||
        !weir_output_path_claim(settings[KEY_HTML]->text, trace->html_path) || !trace->path[0])
        return weir_host_fail(trace->link->host, WEIR_ERROR_CONFIG,
                              "use names of fewer than 450 bytes, and one for `file`",
                              "a name of a file in [trace] is too long, or `file` has none");
    if (create_writer(trace, message, sizeof message))
        return WEIR_OK;
    return weir_host_fail(trace->link->host, WEIR_ERROR_IO,
                          "name another file with `file` in [trace]", "no trace can be written: %s",
                          message);
}

static void release(struct trace *trace)
{
    trace_threads_finish(trace);
    trace_objects_finish(trace);
    weir_names_destroy(trace->names.texts);
    pthread_mutex_destroy(&trace->names.lock);
    pthread_mutex_destroy(&trace->lists);
    pthread_mutex_destroy(&trace->lock);
    free(trace);
}

static weir_status trace_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return weir_host_no_memory(link->host, "a trace");
    trace->link = link;
    trace->backend = plugin_last_link(link);
    trace->clock = link->next->ops->extension(link->next, WEIR_HOST_CLOCK);
    trace->ring_size = power_of_two((uint64_t)settings[KEY_BUFFER]->integer);
    trace->flush_ns = (uint64_t)settings[KEY_FLUSH]->integer * 1000000u;
    trace->limit = (uint64_t)settings[KEY_LIMIT]->integer << 20;
    pthread_mutex_init(&trace->lists, NULL);
    pthread_mutex_init(&trace->lock, NULL);
    pthread_mutex_init(&trace->names.lock, NULL);
    trace->names.texts = weir_names_create();
    weir_status status = trace->names.texts ? open_file(trace, settings)
                                            : weir_host_no_memory(link->host, "a trace");
    if (status == WEIR_OK && !trace_drain_start(trace)) {
        struct weir_trace_meta end = {.end_ns = 0};
        char message[512];
        weir_trace_writer_close(&trace->writer, &end, NULL, 0, message, sizeof message);
        status = weir_host_fail(link->host, WEIR_ERROR_SYSTEM, "raise the limit of threads",
                                "no thread for writing the trace");
    }
    if (status < 0) {
        trace_paths_give_back(trace);
        release(trace);
        return status;
    }
    *out_state = trace;
    return WEIR_OK;
}

static void say_what_is_missing(const struct trace *trace)
{
    char text[512];
    if (trace->dropped == 0 && trace->spans_dropped == 0)
        return;
    snprintf(text, sizeof text,
             "%.200s: %" PRIu64 " operations and %" PRIu64
             " stretches of threads were not kept, as "
             "they came faster than they are written; a larger `buffer` in [trace] helps",
             trace->path, trace->dropped, trace->spans_dropped);
    trace->link->host->log(WEIR_LOG_WARNING, "trace", text);
}

static void tell_failure(const struct trace *trace)
{
    const struct weir_host *host = trace->link->host;
    if (!trace->failure[0])
        return;
    host->log(WEIR_LOG_ERROR, "trace", trace->failure);
    (void)weir_host_fail(host, WEIR_ERROR_IO, NULL, "%s", trace->failure);
}

// A runtime that has never opened a device leaves no file.
static void trace_close(const struct weir_link *link)
{
    struct trace *trace = trace_of(link);
    const bool used = trace->device_count > 0;
    trace_drain_finish(trace);
    say_what_is_missing(trace);
    if (used) {
        trace_outputs_write(trace);
        tell_failure(trace);
    } else {
        weir_output_path_remove(trace->path);
        trace_paths_give_back(trace);
    }
    release(trace);
}

static const struct weir_module_ops ops = {
    .open = trace_open,
    .close = trace_close,
    .device_create = trace_device_create,
    .device_destroy = trace_device_destroy,
    .device_limits = trace_device_limits,
    .queue_create = trace_queue_create,
    .queue_destroy = trace_queue_destroy,
    .queue_submit = trace_queue_submit,
    .queue_finish = trace_queue_finish,
    .event_wait = trace_event_wait,
    .buffer_create = trace_buffer_create,
    .buffer_destroy = trace_buffer_destroy,
    .kernel_create = trace_kernel_create,
    .kernel_destroy = trace_kernel_destroy,
    .queue_times = trace_queue_times,
    .region = trace_region,
    .host_note = trace_host_note,
    .queue_retire = trace_queue_retire,
};

static const char *const about[] = {
    "summary",
    "Records which operation ran when, and writes a file for `weir trace` and viewers of PyTorch's "
    "traces.",
    NULL,
};

PLUGIN_MODULE("trace", keys, KEY_COUNT, WEIR_MODULE_WANTS_TIMES)
