// A row of Weir has all of its data in `args`; names and categories are for other programs. The
// trace of another program has only those.
#include "report/trace_rows.h"

#include <string.h>

#include <weir/region.h>

#include "base/text.h"
#include "report/trace_parts.h"
#include "report/trace_storage.h"
#include "report/trace_values.h"

enum {
    DEVICE_LIMIT = 4096
};

bool weir__rows_no_memory(struct weir__rows *rows)
{
    weir_text_about(rows->message, rows->message_size, rows->name,
                    "there is no memory for the trace; close other programs, or trace less");
    return false;
}

// The head.

static void read_meta(struct weir__rows *rows, const json_t *value)
{
    struct weir_trace_meta *meta = &rows->trace->meta;
    rows->own = true;
    meta->weir = weir__text_of(rows, value, "version");
    meta->program = weir__text_of(rows, value, "program");
    meta->backend = weir__text_of(rows, value, "backend");
    meta->plugins = weir__text_of(rows, value, "plugins");
    meta->source = weir__text_of(rows, value, "source");
    meta->process = weir__uint_of(value, "process");
    rows->host = meta->process < WEIR__TRACE_LEAST_PROCESS
                     ? meta->process + WEIR__TRACE_PROCESS_OFFSET
                     : meta->process;
}

static struct weir_trace_device *device_at(struct weir__rows *rows, uint32_t index)
{
    struct weir_trace *trace = rows->trace;
    for (size_t i = trace->device_count; i-- > 0;)
        if (trace->devices[i].index == index)
            return &trace->devices[i];
    if (trace->device_count >= DEVICE_LIMIT)
        return NULL;
    struct weir_trace_device *devices =
        weir__trace_grow(trace->devices, trace->device_count, &trace->storage->device_capacity,
                         sizeof *devices);
    if (!devices)
        return NULL;
    trace->devices = devices;
    devices[trace->device_count] = (struct weir_trace_device){
        .index = index, .name = "", .platform = "", .driver = "", .label = ""};
    return &devices[trace->device_count++];
}

// The data on devices in the trace of another program.
static bool read_properties(struct weir__rows *rows, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list) && i < DEVICE_LIMIT; i++) {
        const json_t *item = json_array_get(list, i);
        struct weir_trace_device *device = device_at(rows, weir__small_of(item, "id"));
        if (!device)
            return false;
        device->name = weir__text_of(rows, item, "name");
        device->memory_bytes = weir__uint_of(item, "totalGlobalMem");
        device->compute_units = weir__small_of(item, "numSms");
    }
    return true;
}

bool weir__rows_head(struct weir__rows *rows, const char *key, const json_t *value)
{
    if (strcmp(key, "weir") == 0)
        read_meta(rows, value);
    else if (strcmp(key, "baseTimeNanoseconds") == 0)
        rows->trace->meta.base_unix_ns = weir__whole(value);
    else if (strcmp(key, "deviceProperties") == 0 && !read_properties(rows, value))
        return weir__rows_no_memory(rows);
    return true;
}

// Rows that name things.

static bool read_device(struct weir__rows *rows, uint32_t index, const json_t *args)
{
    struct weir_trace_device *device = device_at(rows, index);
    if (!device)
        return true; // too many devices: the file is invalid, which later rows show
    device->name = weir__text_of(rows, args, "weir.name");
    device->platform = weir__text_of(rows, args, "weir.platform");
    device->driver = weir__text_of(rows, args, "weir.driver");
    device->label = weir__text_of(rows, args, "weir.label");
    device->memory_bytes = weir__uint_of(args, "weir.memory_bytes");
    device->compute_units = weir__small_of(args, "weir.compute_units");
    device->copy_engines_to_device = weir__small_of(args, "weir.copy_engines_to_device");
    device->copy_engines_to_host = weir__small_of(args, "weir.copy_engines_to_host");
    device->concurrent_kernels = weir__small_of(args, "weir.concurrent_kernels");
    device->unified_memory = weir__small_of(args, "weir.unified_memory");
    return true;
}

struct weir_trace_queue *weir__rows_queue(struct weir__rows *rows, uint64_t id, uint32_t device)
{
    struct weir_trace_queue *queue = weir__trace_queue(rows->trace, id);
    if (queue)
        return queue;
    queue = weir__trace_add_queue(rows->trace, id);
    if (queue)
        queue->device = device;
    return queue;
}

static bool read_queue(struct weir__rows *rows, uint32_t device, uint64_t id, const json_t *args)
{
    struct weir_trace_queue *queue = weir__rows_queue(rows, id, device);
    if (!queue)
        return weir__rows_no_memory(rows);
    queue->label = weir__text_of(rows, args, "weir.label");
    queue->backend = weir__text_of(rows, args, "weir.backend");
    queue->priority = weir__int(json_object_get(args, "weir.priority"));
    return true;
}

bool weir__rows_have_room(struct weir__rows *rows, size_t more)
{
    const struct weir_trace *trace = rows->trace;
    const size_t kept =
        rows->wait_count + rows->call_count + trace->span_count + trace->thread_count;
    const size_t limit = rows->operation_limit > SIZE_MAX / WEIR__OTHERS_LIMIT
                             ? SIZE_MAX
                             : WEIR__OTHERS_LIMIT * rows->operation_limit;
    if (kept <= limit && more <= limit - kept)
        return true;
    weir_text_about(rows->message, rows->message_size, rows->name,
                    "it holds more than %zu waits, regions and calls, which is more than is read "
                    "at once; trace a shorter run",
                    limit);
    return false;
}

static bool read_thread(struct weir__rows *rows, uint64_t id, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    if (!weir__rows_have_room(rows, 1))
        return false;
    struct weir_trace_thread *threads =
        weir__trace_grow(trace->threads, trace->thread_count, &trace->storage->thread_capacity,
                         sizeof *threads);
    if (!threads)
        return weir__rows_no_memory(rows);
    trace->threads = threads;
    threads[trace->thread_count++] =
        (struct weir_trace_thread){.id = id, .name = weir__text_of(rows, args, "name")};
    return true;
}

static void read_end(struct weir__rows *rows, const json_t *args)
{
    struct weir_trace_meta *meta = &rows->trace->meta;
    const json_t *clocks = json_object_get(args, "weir.clocks");
    meta->end_ns = weir__uint_of(args, "weir.end");
    meta->dropped = weir__uint_of(args, "weir.dropped");
    meta->unfinished = weir__uint_of(args, "weir.unfinished");
    for (size_t i = 0; i < json_array_size(clocks) && i < DEVICE_LIMIT; i++) {
        const json_t *item = json_array_get(clocks, i);
        struct weir_trace_device *device = device_at(rows, weir__small(json_array_get(item, 0)));
        if (!device)
            return;
        device->clock = (struct weir_trace_clock){
            .pairs = weir__small(json_array_get(item, 1)),
            .drift_ppm = json_number_value(json_array_get(item, 2)),
            .uncertainty_ns = weir__whole(json_array_get(item, 3)),
        };
    }
    rows->ended = true;
}

static bool read_name(struct weir__rows *rows, const json_t *event)
{
    const char *name = weir__string_of(event, "name");
    const json_t *args = json_object_get(event, "args");
    const uint64_t pid = weir__uint_of(event, "pid");
    if (!rows->own)
        return true;
    if (strcmp(name, WEIR__TRACE_END_ROW) == 0)
        read_end(rows, args);
    else if (strcmp(name, WEIR__TRACE_DEVICE_ROW) == 0)
        return pid == rows->host || pid > UINT32_MAX || read_device(rows, (uint32_t)pid, args);
    else if (strcmp(name, WEIR__TRACE_QUEUE_ROW) == 0)
        return pid == rows->host ? read_thread(rows, weir__uint_of(event, "tid"), args)
                                 : read_queue(rows, weir__small_of(event, "pid"),
                                              weir__uint_of(event, "tid"), args);
    return true;
}

// Spans, and all rows.

static bool read_span(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    const json_t *number = json_object_get(args, "weir.number");
    if (!weir__rows_have_room(rows, 1))
        return false;
    struct weir_trace_span *spans = weir__trace_grow(trace->spans, trace->span_count,
                                                     &trace->storage->span_capacity, sizeof *spans);
    if (!spans)
        return weir__rows_no_memory(rows);
    trace->spans = spans;
    spans[trace->span_count++] = (struct weir_trace_span){
        .kind = strcmp(weir__string_of(args, "weir.span"), "sync") == 0 ? WEIR_TRACE_SYNC
                                                                        : WEIR_TRACE_REGION,
        .thread = weir__uint_of(event, "tid"),
        .name = weir__text_of(rows, event, "name"),
        .number = number ? weir__whole(number) : WEIR_NO_NUMBER,
        .begin_ns = weir__ns_of(event, "ts"),
        .end_ns = weir__ns_of(event, "ts") + weir__ns_of(event, "dur"),
    };
    return true;
}

bool weir__rows_event(struct weir__rows *rows, const json_t *event)
{
    const char *phase = weir__string_of(event, "ph");
    const char *category = weir__string_of(event, "cat");
    const json_t *args = json_object_get(event, "args");
    if (strcmp(phase, "M") == 0)
        return read_name(rows, event);
    if (strcmp(phase, "X") != 0 && strcmp(phase, "i") != 0)
        return true;
    if (json_object_get(args, "weir.sequence"))
        return weir__rows_operation(rows, event, args);
    if (json_object_get(args, "weir.span"))
        return read_span(rows, event, args);
    if (rows->own)
        return true;
    if (strcmp(category, "kernel") == 0 || strcmp(category, "gpu_memcpy") == 0 ||
        strcmp(category, "gpu_memset") == 0)
        return weir__rows_foreign(rows, event, args, category);
    if (strcmp(category, "cuda_runtime") == 0 || strcmp(category, "cuda_driver") == 0)
        return weir__rows_call(rows, event, args);
    return true;
}
