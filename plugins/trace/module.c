// Opening and closing a link: settings, the file, the thread, and at the end the report and the
// page.
#define _GNU_SOURCE // program_invocation_short_name
#include "plugins/trace/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/wait.h"
#include "plugins/kit/kit.h"
#include "report/page.h"
#include "report/report.h"

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

// The report's library sets errors through the public API, which a module does not link. Here all of
// them are of memory that has run out.
weir_status weir_error_set_sized(const struct weir_error *detail, size_t size)
{
    return detail->status;
}

// The report and the page, at a link's close.

static void fail(struct trace *trace, const char *message)
{
    if (!trace->failure[0])
        weir_text_escape(trace->failure, sizeof trace->failure, message, "");
}

// Writes the report and the page if they are requested. A failure is described in `failure`.
static void write_outputs(struct trace *trace)
{
    struct weir_trace *whole = NULL;
    weir_report *report = NULL;
    char message[1024];
    if ((!trace->report_path[0] && !trace->html_path[0]) || trace->write_failed)
        return;
    if (!weir_trace_read(trace->path, NULL, &whole, message, sizeof message)) {
        fail(trace, message);
        return;
    }
    if (weir__report_make(whole, NULL, &report) < 0) {
        fail(trace, "there is no memory for the report");
        return;
    }
    const char *path = trace->report_path;
    char *text = path[0] ? weir_report_text(report) : NULL;
    if (path[0] && !text)
        snprintf(message, sizeof message, "%s: there is no memory for the report", path);
    if (path[0] && (!text || !weir_file_write(path, text, strlen(text), message, sizeof message)))
        fail(trace, message);
    weir_report_free_text(&text);
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
        "a power of two, 0.4 KiB each. What finds no room is counted and "
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

static const char *source_of(const char *backend)
{
    if (strcmp(backend, "opencl") == 0)
        return "profiling";
    return strcmp(backend, "null") == 0 ? "host" : "driver";
}

static bool create_writer(struct trace *trace, char *message, size_t message_size)
{
    char plugins[256] = "";
    char program[128]; // a process that changes its title may leave a long text
    size_t used = 0;
    struct timespec unix_time;
    // This plugin and those after it; a link cannot see those before it. The last two links are the
    // front end's own and the backend.
    for (const struct weir_link *link = trace->link; link->next->next; link = link->next)
        weir_text_append(plugins, sizeof plugins, &used, "%s%s", used ? ", " : "", link->name);
    snprintf(program, sizeof program, "%.127s", program_invocation_short_name);
    clock_gettime(CLOCK_REALTIME, &unix_time);
    const uint64_t unix_ns = (uint64_t)unix_time.tv_sec * 1000000000u + (uint64_t)unix_time.tv_nsec;
    trace->base_ns = trace_now_ns(trace);
    const struct weir_trace_meta meta = {
        .program = program,
        .weir = WEIR_VERSION_STRING,
        .backend = trace->link->backend->name,
        .plugins = plugins,
        .source = source_of(trace->link->backend->name),
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

static void free_device(struct trace_device *device)
{
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static void release(struct trace *trace)
{
    trace_thread_leave(trace);
    for (struct trace_device *device = trace->devices; device;) {
        struct trace_device *next = device->next;
        free_device(device);
        device = next;
    }
    pthread_mutex_destroy(&trace->lists);
    pthread_mutex_destroy(&trace->lock);
    pthread_cond_destroy(&trace->wake);
    pthread_cond_destroy(&trace->written);
    free(trace);
}

static weir_status trace_open(struct weir_link *link, const struct weir_setting *const *settings,
                              void **out_state)
{
    static _Atomic uint64_t numbers;
    struct trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return weir_host_no_memory(link->host, "a trace");
    trace->link = link;
    trace->number = atomic_fetch_add(&numbers, 1) + 1;
    trace->clock = link->next->ops->extension(link->next, WEIR_HOST_CLOCK);
    trace->ring_size = power_of_two((uint64_t)settings[KEY_BUFFER]->integer);
    trace->flush_ns = (uint64_t)settings[KEY_FLUSH]->integer * 1000000u;
    trace->limit = (uint64_t)settings[KEY_LIMIT]->integer << 20;
    pthread_mutex_init(&trace->lists, NULL);
    pthread_mutex_init(&trace->lock, NULL);
    weir_condition_init(&trace->wake);
    pthread_cond_init(&trace->written, NULL);
    weir_status status = open_file(trace, settings);
    if (status == WEIR_OK && weir_thread_start(&trace->thread, trace_drain, trace) != 0) {
        struct weir_trace_meta end = {.end_ns = 0};
        char message[512];
        weir_trace_writer_close(&trace->writer, &end, message, sizeof message);
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

// A runtime that has never opened a device leaves no file.
static void trace_close(const struct weir_link *link)
{
    struct trace *trace = trace_of(link);
    const struct weir_host *host = link->host;
    const bool used = trace->device_count > 0;
    // No other thread uses the runtime.
    pthread_mutex_lock(&trace->lock);
    trace->stop = true;
    pthread_cond_signal(&trace->wake);
    pthread_mutex_unlock(&trace->lock);
    weir_thread_join(&trace->thread);
    say_what_is_missing(trace);
    if (used) {
        write_outputs(trace);
        if (trace->failure[0]) {
            host->log(WEIR_LOG_ERROR, "trace", trace->failure);
            (void)weir_host_fail(host, WEIR_ERROR_IO, NULL, "%s", trace->failure);
        }
    } else {
        weir_output_path_remove(trace->path);
        trace_paths_give_back(trace);
    }
    release(trace);
}

// The front end's objects. A queue's ring outlives the queue until all of it is written.

// For how long the last times of a destroyed queue are queried. If another thread of the driver
// delivers them, they arrive somewhat after the end.
#define LAST_TIMES_NS 20000000
// How often the clock of a device that has no reading yet is queried before its last queue is gone.
#define CLOCK_TRIES 100

static weir_status no_memory(const struct weir_link *link, const char *what)
{
    return weir_host_fail(link->host, WEIR_ERROR_OUT_OF_MEMORY,
                          "use a smaller `buffer` in [trace], or fewer queues",
                          "no memory is left to trace %s", what);
}

static weir_status device_create(const struct weir_link *link, weir_device *object,
                                 const struct weir_device_setup *setup, void **out_data)
{
    struct trace_device *device = calloc(1, sizeof *device);
    if (!device)
        return no_memory(link, "a device");
    device->info.struct_size = sizeof device->info;
    link->backend->ops->device_describe(link->backend, setup->index, &device->info);
    snprintf(device->label, sizeof device->label, "%s", setup->label ? setup->label : "");
    device->object = object;
    pthread_mutex_init(&device->lock, NULL);
    *out_data = device;
    return WEIR_OK;
}

// A device on the list stays there until the trace is closed.
static void device_destroy(const struct weir_link *link, weir_device *object)
{
    struct trace_device *device = trace_device_of(link, object);
    if (!device->enlisted)
        free_device(device);
}

// Called once when the device is complete; before that its limits are unknown.
static void device_limits(const struct weir_link *link, weir_device *object,
                          struct weir_limits *limits)
{
    struct trace *trace = trace_of(link);
    struct trace_device *device = trace_device_of(link, object);
    device->has_collectives = limits->collectives == 2;
    device->row = (struct weir_trace_device){
        .name = device->info.name,
        .platform = device->info.platform,
        .driver = device->info.driver,
        .label = device->label,
        .memory_bytes = device->info.memory_bytes,
        .compute_units = limits->compute_units,
        .copy_engines_to_device = limits->copy_engines_to_device,
        .copy_engines_to_host = limits->copy_engines_to_host,
        .concurrent_kernels = limits->concurrent_kernels,
        .kind = limits->kind,
    };
    device->enlisted = true;
    pthread_mutex_lock(&trace->lists);
    device->row.index = trace->device_count++;
    device->next = trace->devices;
    trace->devices = device;
    pthread_mutex_unlock(&trace->lists);
}

static weir_status queue_create(const struct weir_link *link, weir_device *device_object,
                                weir_queue *object, const struct weir_queue_setup *setup,
                                void **out_data)
{
    struct trace *trace = trace_of(link);
    // Aligned, so that the two sides of the ring are in separate cache lines.
    struct trace_queue *queue = aligned_alloc(_Alignof(struct trace_queue), sizeof *queue);
    if (!queue)
        return no_memory(link, "a queue");
    memset(queue, 0, sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    queue->trace = trace;
    queue->device = trace_device_of(link, device_object);
    queue->mask = trace->ring_size - 1;
    queue->row = (struct weir_trace_queue){
        .id = weir_queue_object(object)->id,
        .device = queue->device->row.index,
        .priority = setup->priority,
        .label = weir_queue_object(object)->label,
    };
    queue->ring = calloc(trace->ring_size, sizeof *queue->ring);
    queue->times = calloc(trace->ring_size, sizeof *queue->times);
    if (!queue->ring || !queue->times) {
        trace_queue_free(queue);
        return no_memory(link, "a queue");
    }
    *out_data = queue;
    return WEIR_OK;
}

static void queue_retire(const struct weir_link *link, weir_queue *object)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    struct trace_device *device = queue->device;
    const uint64_t begin_ns = weir_clock_now_ns();
    if (!queue->enlisted)
        return;
    if (queue->trace->clock)
        trace_drain_now(queue->trace);
    pthread_mutex_lock(&device->lock);
    trace_pair_clocks(link, device, device->queue_count == 1);
    for (int i = 0; i < CLOCK_TRIES && device->pairs == 0; i++)
        trace_pair_clocks(link, device, true);
    device->queue_count--;
    pthread_mutex_unlock(&device->lock);

    pthread_mutex_lock(&queue->lock);
    trace_fetch(queue);
    const uint64_t last = atomic_load_explicit(&queue->last_timed, memory_order_relaxed);
    while (queue->last_fetched < last && weir_clock_now_ns() - begin_ns < LAST_TIMES_NS) {
        weir_clock_sleep_ns(500000);
        trace_fetch(queue);
    }
    queue->object = NULL;
    pthread_mutex_unlock(&queue->lock);
}

// A queue without operations is not on the list.
static void queue_destroy(const struct weir_link *link, weir_queue *object)
{
    struct trace_queue *queue = trace_queue_of(link, object);
    if (!queue->enlisted)
        trace_queue_free(queue);
    else
        atomic_store(&queue->destroyed, true);
}

static weir_status buffer_create(const struct weir_link *link, weir_device *device,
                                 weir_buffer *object, const struct weir_buffer_setup *setup,
                                 void **out_data, void **out_pointer)
{
    static const enum weir_trace_memory device_memory = WEIR_TRACE_DEVICE_MEMORY,
                                        pinned = WEIR_TRACE_PINNED_MEMORY,
                                        managed = WEIR_TRACE_MANAGED_MEMORY;
    *out_data = (void *)(setup->placement == WEIR_PLACE_HOST      ? &pinned
                         : setup->placement == WEIR_PLACE_MANAGED ? &managed
                                                                  : &device_memory);
    return WEIR_OK;
}

static void buffer_destroy(const struct weir_link *link, weir_buffer *object)
{
}

static const struct weir_module_ops ops = {
    .open = trace_open,
    .close = trace_close,
    .device_create = device_create,
    .device_destroy = device_destroy,
    .device_limits = device_limits,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_submit = trace_queue_submit,
    .queue_finish = trace_queue_finish,
    .event_wait = trace_event_wait,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .queue_times = trace_queue_times,
    .region = trace_region,
    .host_note = trace_host_note,
    .queue_retire = queue_retire,
};

static const char *const about[] = {
    "summary",
    "Records which operation ran when, and writes a file for `weir trace` and viewers of PyTorch's "
    "traces.",
    NULL,
};

PLUGIN_MODULE("trace", keys, KEY_COUNT, WEIR_MODULE_WANTS_TIMES)
