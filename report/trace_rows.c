// The rows of a trace: Weir's own operations, of which all data is in `args`, and those of other programs.
#include "report/trace_reader.h"

#include <stdlib.h>
#include <string.h>

#include <weir/region.h>

#include "report/trace_format.h"

bool weir__rows_no_memory(struct weir__rows *rows)
{
    weir_text_about(rows->message, rows->message_size, rows->name,
                    "there is no memory for the trace; close other programs, or trace less");
    return false;
}

// Whether so many more waits, spans, threads or calls may be kept; false with a message.
static bool have_room(struct weir__rows *rows, size_t more)
{
    const struct weir_trace *trace = rows->trace;
    const size_t kept = rows->wait_count + rows->call_count + trace->span_count +
                        trace->thread_count + trace->queue_count;
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

static uint64_t uint_of(const json_t *object, const char *key)
{
    return weir__in_count(json_object_get(object, key));
}

static uint32_t small_of(const json_t *object, const char *key)
{
    const uint64_t number = uint_of(object, key);
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static uint64_t ns_of(const json_t *object, const char *key)
{
    const double us = json_number_value(json_object_get(object, key));
    return !(us > 0) ? 0 : us < 9e15 ? (uint64_t)(us * 1000 + 0.5) : 9000000000000000000u;
}

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const char *text_of(const struct weir__rows *rows, const json_t *object, const char *key)
{
    static const struct weir__field field = {.type = WEIR__TEXT};
    const char *text;
    weir__in_value(&field, json_object_get(object, key), rows->trace->texts, &text);
    return text;
}

static void read_fields(const struct weir__rows *rows, const struct weir__field *fields,
                        const json_t *value, void *item)
{
    weir__in_fields(fields, value, rows->trace->texts, item);
}

static size_t count_lists(const json_t *list)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        count += json_is_array(json_array_get(list, i));
    return count;
}

// The items of a list that are lists themselves, as many as `count`; NULL with a message if out of memory.
static void *read_lists(struct weir__rows *rows, const struct weir__field *fields,
                        const json_t *list, size_t count, size_t size)
{
    char *items = malloc(count * size);
    size_t used = 0;
    if (!items) {
        weir__rows_no_memory(rows);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_array(json_array_get(list, i)))
            read_fields(rows, fields, json_array_get(list, i), items + size * used++);
    return items;
}

// Operations of Weir's.

static struct weir_trace_operation *add_operation(struct weir__rows *rows, uint32_t device,
                                                  uint64_t queue)
{
    struct weir_trace *trace = rows->trace;
    if (trace->operation_count >= rows->operation_limit) {
        weir_text_about(rows->message, rows->message_size, rows->name,
                        "it holds more than %zu operations, which is more than is read at "
                        "once; trace a shorter run",
                        rows->operation_limit);
        return NULL;
    }
    struct weir_trace_operation *operation =
        WEIR__ADD(rows, trace->operations, trace->operation_count);
    if (operation) {
        operation->queue_index = device;
        operation->queue = queue;
    }
    return operation;
}

static bool read_waits(struct weir__rows *rows, struct weir_trace_operation *operation,
                       const json_t *list)
{
    operation->wait_count = count_lists(list);
    if (operation->wait_count == 0)
        return true;
    if (!have_room(rows, operation->wait_count))
        return false;
    operation->waits =
        read_lists(rows, weir__wait_fields, list, operation->wait_count, sizeof *operation->waits);
    rows->wait_count += operation->wait_count;
    return operation->waits;
}

static bool read_collective(struct weir__rows *rows, struct weir_trace_operation *operation,
                            const json_t *list)
{
    if (!json_is_array(list))
        return true;
    struct weir_trace_collective *collective = malloc(sizeof *collective);
    if (!collective)
        return weir__rows_no_memory(rows);
    read_fields(rows, weir__collective_fields, list, collective);
    operation->collective = collective;
    return true;
}

static bool read_operation(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    const json_t *scalars = json_object_get(args, "weir.scalars");
    struct weir_trace_operation *operation =
        add_operation(rows, small_of(event, "pid"), uint_of(event, "tid"));
    if (!operation)
        return false;
    read_fields(rows, weir__operation_fields, args, operation);
    operation->timed = strcmp(string_of(event, "ph"), "X") == 0;
    if (operation->timed) {
        operation->start_ns = ns_of(event, "ts");
        operation->end_ns = operation->start_ns + ns_of(event, "dur");
    }
    operation->scalar_count = count_lists(scalars);
    if (operation->scalar_count > 0)
        operation->scalars = read_lists(rows, weir__scalar_fields, scalars, operation->scalar_count,
                                        sizeof *operation->scalars);
    return (operation->scalar_count == 0 || operation->scalars) &&
           read_collective(rows, operation, json_object_get(args, "weir.collective")) &&
           read_waits(rows, operation, json_object_get(args, "weir.waits"));
}

// Other programs' traces.

// "Memcpy HtoD (Pageable -> Device)" and "Memset (Device)".
static void read_memories(struct weir_trace_operation *operation, const char *title)
{
    const char *open = strchr(title, '(');
    const char *arrow = open ? strstr(open, " -> ") : NULL;
    const char *close = open ? strchr(open, ')') : NULL;
    if (!close)
        return;
    if (arrow && arrow < close) {
        operation->src_memory =
            (enum weir_trace_memory)weir__named(WEIR__MEMORY, open + 1, (size_t)(arrow - open - 1));
        operation->dst_memory = (enum weir_trace_memory)weir__named(WEIR__MEMORY, arrow + 4,
                                                                    (size_t)(close - arrow - 4));
    } else {
        operation->dst_memory =
            (enum weir_trace_memory)weir__named(WEIR__MEMORY, open + 1, (size_t)(close - open - 1));
    }
}

static void classify(struct weir_trace_operation *operation, const char *category,
                     const char *title)
{
    if (strcmp(category, "kernel") == 0) {
        operation->kind = WEIR_TRACE_LAUNCH;
        operation->engine =
            weir_trace_is_communication(title) ? WEIR_ENGINE_COMMUNICATION : WEIR_ENGINE_KERNELS;
        return;
    }
    const bool copies = strcmp(category, "gpu_memcpy") == 0;
    operation->kind = copies ? WEIR_TRACE_COPY : WEIR_TRACE_FILL;
    operation->engine = copies && strstr(title, "HtoD")   ? WEIR_ENGINE_TO_DEVICE
                        : copies && strstr(title, "DtoH") ? WEIR_ENGINE_TO_HOST
                                                          : WEIR_ENGINE_ON_DEVICE;
    read_memories(operation, title);
}

// Streams of different devices may have equal numbers.
static bool read_foreign(struct weir__rows *rows, const json_t *event, const json_t *args,
                         const char *category)
{
    const uint32_t device = small_of(args, "device");
    struct weir_trace_operation *operation =
        add_operation(rows, device, (uint64_t)device << 32 | small_of(args, "stream"));
    if (!operation)
        return false;
    read_fields(rows, weir__operation_fields, args, operation);
    operation->sequence = uint_of(args, "correlation");
    operation->timed = true;
    operation->start_ns = ns_of(event, "ts");
    operation->end_ns = operation->start_ns + ns_of(event, "dur");
    classify(operation, category, string_of(event, "name"));
    if (operation->kind == WEIR_TRACE_LAUNCH)
        operation->name = text_of(rows, event, "name");
    return true;
}

static bool read_call(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    struct weir__call *call =
        have_room(rows, 1) ? WEIR__ADD(rows, rows->calls, rows->call_count) : NULL;
    if (!call)
        return false;
    call->correlation = uint_of(args, "correlation");
    call->thread = uint_of(event, "tid");
    call->begin_ns = ns_of(event, "ts");
    call->end_ns = call->begin_ns + ns_of(event, "dur");
    return true;
}

// The head.

enum {
    DEVICE_LIMIT = 4096
};

// NULL if there are too many: the file is invalid, which later rows show.
static struct weir_trace_device *device_at(struct weir__rows *rows, uint32_t index)
{
    struct weir_trace *trace = rows->trace;
    for (size_t i = trace->device_count; i-- > 0;)
        if (trace->devices[i].index == index)
            return &trace->devices[i];
    return trace->device_count < DEVICE_LIMIT ? weir__rows_device(rows, index) : NULL;
}

void weir__rows_head(struct weir__rows *rows, const char *key, const json_t *value)
{
    struct weir_trace_meta *meta = &rows->trace->meta;
    if (strcmp(key, "weir") == 0) {
        rows->own = true;
        read_fields(rows, weir__head_fields, value, meta);
    } else if (strcmp(key, "baseTimeNanoseconds") == 0) {
        meta->base_unix_ns = weir__in_count(value);
    } else if (strcmp(key, "deviceProperties") == 0) {
        // The data on devices in the trace of another program.
        for (size_t i = 0; i < json_array_size(value) && i < DEVICE_LIMIT; i++) {
            const json_t *item = json_array_get(value, i);
            struct weir_trace_device *device = device_at(rows, small_of(item, "id"));
            if (device)
                read_fields(rows, weir__property_fields, item, device);
        }
    }
}

// Rows that name things. Those of the host have nothing of Weir's, and neither have those of other programs.

static bool read_queue(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    struct weir_trace_queue *queue =
        have_room(rows, 1) ? WEIR__ADD(rows, trace->queues, trace->queue_count) : NULL;
    if (!queue)
        return false;
    queue->device = small_of(event, "pid");
    queue->id = uint_of(event, "tid");
    read_fields(rows, weir__queue_fields, args, queue);
    return true;
}

static bool read_thread(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    struct weir_trace_thread *thread =
        have_room(rows, 1) ? WEIR__ADD(rows, trace->threads, trace->thread_count) : NULL;
    if (!thread)
        return false;
    thread->id = uint_of(event, "tid");
    thread->name = text_of(rows, args, "name");
    return true;
}

static bool read_name(struct weir__rows *rows, const json_t *event)
{
    const char *name = string_of(event, "name");
    const json_t *args = json_object_get(event, "args");
    const bool labelled = json_object_get(args, "weir.label");
    const uint64_t pid = uint_of(event, "pid");
    if (strcmp(name, WEIR__TRACE_END_ROW) == 0) {
        read_fields(rows, weir__end_fields, args, &rows->trace->meta);
        rows->ended = true;
    } else if (strcmp(name, WEIR__TRACE_DEVICE_ROW) == 0 && json_object_get(args, "weir.name")) {
        struct weir_trace_device *device =
            pid <= UINT32_MAX ? device_at(rows, (uint32_t)pid) : NULL;
        if (device)
            read_fields(rows, weir__device_fields, args, device);
    } else if (strcmp(name, WEIR__TRACE_QUEUE_ROW) == 0) {
        return labelled ? read_queue(rows, event, args) : read_thread(rows, event, args);
    }
    return true;
}

// Spans, and all rows.

static bool read_span(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    const json_t *number = json_object_get(args, "weir.number");
    struct weir_trace_span *span =
        have_room(rows, 1) ? WEIR__ADD(rows, trace->spans, trace->span_count) : NULL;
    if (!span)
        return false;
    span->kind =
        strcmp(string_of(args, "weir.span"), "sync") == 0 ? WEIR_TRACE_SYNC : WEIR_TRACE_REGION;
    span->thread = uint_of(event, "tid");
    span->name = text_of(rows, event, "name");
    span->number = number ? weir__in_count(number) : WEIR_NO_NUMBER;
    span->begin_ns = ns_of(event, "ts");
    span->end_ns = span->begin_ns + ns_of(event, "dur");
    return true;
}

bool weir__rows_event(struct weir__rows *rows, const json_t *event)
{
    const char *phase = string_of(event, "ph");
    const char *category = string_of(event, "cat");
    const json_t *args = json_object_get(event, "args");
    if (strcmp(phase, "M") == 0)
        return read_name(rows, event);
    if (strcmp(phase, "X") != 0 && strcmp(phase, "i") != 0)
        return true;
    if (json_object_get(args, "weir.sequence"))
        return read_operation(rows, event, args);
    if (json_object_get(args, "weir.span"))
        return read_span(rows, event, args);
    if (rows->own)
        return true;
    if (strcmp(category, "kernel") == 0 || strcmp(category, "gpu_memcpy") == 0 ||
        strcmp(category, "gpu_memset") == 0)
        return read_foreign(rows, event, args, category);
    if (strcmp(category, "cuda_runtime") == 0 || strcmp(category, "cuda_driver") == 0)
        return read_call(rows, event, args);
    return true;
}
