// The rows of a trace: Weir's own operations, of which all data is in `args`, and those of other programs.
#include "report/trace_reader.h"

#include <jansson.h>
#include <string.h>

#include <weir/region.h>

#include "base/text.h"
#include "report/trace_out.h"

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

static inline const char *text_of(const struct weir__rows *rows, const json_t *object,
                                  const char *key)
{
    const char *text =
        weir__trace_intern(rows->trace->storage, json_string_value(json_object_get(object, key)));
    return text ? text : "";
}

static inline uint64_t whole(const json_t *value)
{
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    const double number = json_real_value(value);
    return number >= 1 && number < 9e18 ? (uint64_t)number : 0;
}

static inline uint64_t uint_of(const json_t *object, const char *key)
{
    return whole(json_object_get(object, key));
}

static inline uint32_t small(const json_t *value)
{
    const uint64_t number = whole(value);
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static inline uint32_t small_of(const json_t *object, const char *key)
{
    return small(json_object_get(object, key));
}

static inline int int_of_value(const json_t *value)
{
    const json_int_t number = json_integer_value(value);
    return number > INT32_MAX ? INT32_MAX : number < INT32_MIN ? INT32_MIN : (int)number;
}

static inline uint64_t ns_of(const json_t *object, const char *key)
{
    const double us = json_number_value(json_object_get(object, key));
    return !(us > 0) ? 0 : us < 9e15 ? (uint64_t)(us * 1000 + 0.5) : 9000000000000000000u;
}

static inline const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static struct weir_trace_operation *add_operation(struct weir__rows *rows)
{
    struct weir_trace *trace = rows->trace;
    if (trace->operation_count >= rows->operation_limit) {
        weir_text_about(rows->message, rows->message_size, rows->name,
                        "it holds more than %zu operations, which is more than is read at "
                        "once; trace a shorter run",
                        rows->operation_limit);
        return NULL;
    }
    struct weir_trace_operation *operations =
        weir__trace_grow(trace->operations, trace->operation_count,
                         &trace->storage->operation_capacity, sizeof *operations);
    if (!operations) {
        weir__rows_no_memory(rows);
        return NULL;
    }
    trace->operations = operations;
    return &operations[trace->operation_count++];
}

static enum weir_trace_kind kind_of(const char *name)
{
    static const enum weir_trace_kind kinds[] = {
        WEIR_TRACE_COPY,    WEIR_TRACE_COPY_2D,    WEIR_TRACE_COPY_3D,   WEIR_TRACE_FILL,
        WEIR_TRACE_FILL_2D, WEIR_TRACE_LAUNCH,     WEIR_TRACE_HOST_CALL, WEIR_TRACE_GRAPH,
        WEIR_TRACE_NATIVE,  WEIR_TRACE_COLLECTIVE, WEIR_TRACE_NOTE,
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(weir_trace_kind_name(kinds[i]), name) == 0)
            return kinds[i];
    return (enum weir_trace_kind)0;
}

static enum weir_trace_engine engine_of(const char *name)
{
    int engine = WEIR_ENGINE_COUNT - 1;
    while (engine > 0 && strcmp(weir_trace_engine_name((enum weir_trace_engine)engine), name) != 0)
        engine--;
    return (enum weir_trace_engine)engine;
}

static enum weir_trace_memory memory_of(const char *name, size_t length)
{
    for (int memory = WEIR_TRACE_DEVICE_MEMORY; memory <= WEIR_TRACE_MANAGED_MEMORY; memory++) {
        const char *known = weir__trace_memory_name((enum weir_trace_memory)memory);
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return (enum weir_trace_memory)memory;
    }
    return WEIR_TRACE_NO_MEMORY;
}

static void read_triple(uint32_t triple[3], const json_t *list)
{
    for (size_t i = 0; i < 3; i++)
        triple[i] = small(json_array_get(list, i));
}

// Items that are no lists are no waits.
static size_t count_lists(const json_t *list)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        count += json_is_array(json_array_get(list, i));
    return count;
}

static bool read_waits(struct weir__rows *rows, struct weir_trace_operation *operation,
                       const json_t *list)
{
    struct weir_trace_storage *storage = rows->trace->storage;
    const size_t count = count_lists(list);
    size_t used = 0;
    if (count == 0)
        return true;
    if (!have_room(rows, count))
        return false;
    struct weir_trace_wait *waits = weir__trace_allocate(storage, count * sizeof *waits);
    if (!waits)
        return weir__rows_no_memory(rows);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_array(item))
            continue;
        const char *file = weir__trace_intern(storage, json_string_value(json_array_get(item, 3)));
        waits[used++] = (struct weir_trace_wait){
            .queue = whole(json_array_get(item, 0)),
            .sequence = whole(json_array_get(item, 1)),
            .implied = whole(json_array_get(item, 2)) > 0,
            .file = file ? file : "",
            .line = int_of_value(json_array_get(item, 4)),
            .operation = WEIR_TRACE_NO_INDEX,
        };
    }
    operation->waits = waits;
    operation->wait_count = count;
    rows->wait_count += count;
    return true;
}

// Items that are no lists are no scalars.
static bool read_scalars(struct weir__rows *rows, struct weir_trace_operation *operation,
                         const json_t *list)
{
    const size_t count = count_lists(list);
    size_t used = 0;
    if (count == 0)
        return true;
    struct weir_trace_scalar *scalars =
        weir__trace_allocate(rows->trace->storage, count * sizeof *scalars);
    if (!scalars)
        return weir__rows_no_memory(rows);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (json_is_array(item))
            scalars[used++] = (struct weir_trace_scalar){
                .argument = small(json_array_get(item, 0)),
                .value = json_number_value(json_array_get(item, 1)),
            };
    }
    operation->scalars = scalars;
    operation->scalar_count = count;
    return true;
}

static const char *text_at(struct weir__rows *rows, const json_t *list, size_t index)
{
    const char *text = json_string_value(json_array_get(list, index));
    const char *kept = text ? weir__trace_intern(rows->trace->storage, text) : NULL;
    return kept ? kept : "";
}

static bool read_collective(struct weir__rows *rows, struct weir_trace_operation *operation,
                            const json_t *list)
{
    if (!json_is_array(list))
        return true;
    struct weir_trace_collective *collective =
        weir__trace_allocate(rows->trace->storage, sizeof *collective);
    if (!collective)
        return weir__rows_no_memory(rows);
    *collective = (struct weir_trace_collective){
        .kind = text_at(rows, list, 0),
        .element = text_at(rows, list, 1),
        .reduction = text_at(rows, list, 2),
        .count = whole(json_array_get(list, 3)),
        .number = whole(json_array_get(list, 4)),
        .rank = small(json_array_get(list, 5)),
        .rank_count = small(json_array_get(list, 6)),
        .root = small(json_array_get(list, 7)),
    };
    operation->collective = collective;
    return true;
}

// An operation of Weir's. False with a message.
static bool read_operation(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    const char *dst = string_of(args, "weir.dst_memory");
    const char *src = string_of(args, "weir.src_memory");
    const json_t *waits = json_object_get(args, "weir.waits");
    const uint64_t id = uint_of(event, "tid");
    struct weir_trace_operation *operation = add_operation(rows);
    if (!operation)
        return false;
    *operation = (struct weir_trace_operation){
        .queue = id,
        .sequence = uint_of(args, "weir.sequence"),
        .node = small_of(args, "weir.node"),
        .kind = kind_of(string_of(args, "weir.kind")),
        .engine = engine_of(string_of(args, "weir.engine")),
        .bytes = uint_of(args, "bytes"),
        .name = text_of(rows, args, "weir.name"),
        .label = text_of(rows, args, "weir.label"),
        .dst_label = text_of(rows, args, "weir.dst"),
        .src_label = text_of(rows, args, "weir.src"),
        .dst_memory = memory_of(dst, strlen(dst)),
        .src_memory = memory_of(src, strlen(src)),
        .argument_bytes = uint_of(args, "weir.argument_bytes"),
        .file = text_of(rows, args, "weir.file"),
        .line = int_of_value(json_object_get(args, "weir.line")),
        .region = text_of(rows, args, "weir.region"),
        .finding_kind = text_of(rows, args, "weir.finding_kind"),
        .finding = text_of(rows, args, "weir.finding"),
        .remedy = text_of(rows, args, "weir.remedy"),
        .thread = uint_of(args, "weir.thread"),
        .submit_ns = uint_of(args, "weir.submit"),
        .submit_end_ns = uint_of(args, "weir.submit_end"),
        .timed = strcmp(string_of(event, "ph"), "X") == 0,
        .start_is_earliest = json_is_true(json_object_get(args, "weir.start_is_earliest")),
        .failed = json_is_true(json_object_get(args, "weir.failed")),
    };
    if (operation->timed) {
        operation->start_ns = ns_of(event, "ts");
        operation->end_ns = operation->start_ns + ns_of(event, "dur");
    }
    read_triple(operation->grid, json_object_get(args, "grid"));
    read_triple(operation->block, json_object_get(args, "block"));
    if (!weir__trace_queue(rows->trace, id, small_of(event, "pid")))
        return weir__rows_no_memory(rows);
    return read_scalars(rows, operation, json_object_get(args, "weir.scalars")) &&
           read_collective(rows, operation, json_object_get(args, "weir.collective")) &&
           read_waits(rows, operation, waits);
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
        operation->src_memory = memory_of(open + 1, (size_t)(arrow - open - 1));
        operation->dst_memory = memory_of(arrow + 4, (size_t)(close - arrow - 4));
    } else {
        operation->dst_memory = memory_of(open + 1, (size_t)(close - open - 1));
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

static bool read_foreign(struct weir__rows *rows, const json_t *event, const json_t *args,
                         const char *category)
{
    const char *title = string_of(event, "name");
    const uint32_t device = small_of(args, "device");
    // Streams of different devices may have equal numbers.
    const uint64_t id = (uint64_t)device << 32 | small_of(args, "stream");
    struct weir_trace_operation *operation = add_operation(rows);
    if (!operation)
        return false;
    *operation = (struct weir_trace_operation){
        .queue = id,
        .sequence = uint_of(args, "correlation"),
        .bytes = uint_of(args, "bytes"),
        .name = "",
        .label = "",
        .dst_label = "",
        .src_label = "",
        .file = "",
        .region = "",
        .finding_kind = "",
        .finding = "",
        .remedy = "",
        .timed = true,
        .start_ns = ns_of(event, "ts"),
    };
    operation->end_ns = operation->start_ns + ns_of(event, "dur");
    classify(operation, category, title);
    if (operation->kind == WEIR_TRACE_LAUNCH)
        operation->name = text_of(rows, event, "name");
    read_triple(operation->grid, json_object_get(args, "grid"));
    read_triple(operation->block, json_object_get(args, "block"));
    return weir__trace_queue(rows->trace, id, device) ? true : weir__rows_no_memory(rows);
}

static bool read_call(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    if (!have_room(rows, 1))
        return false;
    struct weir__call *calls =
        weir__trace_grow(rows->calls, rows->call_count, &rows->call_capacity, sizeof *calls);
    if (!calls)
        return weir__rows_no_memory(rows);
    rows->calls = calls;
    calls[rows->call_count++] = (struct weir__call){
        .correlation = uint_of(args, "correlation"),
        .thread = uint_of(event, "tid"),
        .begin_ns = ns_of(event, "ts"),
        .end_ns = ns_of(event, "ts") + ns_of(event, "dur"),
    };
    return true;
}

// A row of Weir has all of its data in `args`; names and categories are for other programs. The
// trace of another program has only those.

enum {
    DEVICE_LIMIT = 4096
};

// The head.

static void read_meta(struct weir__rows *rows, const json_t *value)
{
    struct weir_trace_meta *meta = &rows->trace->meta;
    rows->own = true;
    meta->weir = text_of(rows, value, "version");
    meta->program = text_of(rows, value, "program");
    meta->backend = text_of(rows, value, "backend");
    meta->plugins = text_of(rows, value, "plugins");
    meta->source = text_of(rows, value, "source");
    meta->process = uint_of(value, "process");
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
        struct weir_trace_device *device = device_at(rows, small_of(item, "id"));
        if (!device)
            return false;
        device->name = text_of(rows, item, "name");
        device->memory_bytes = uint_of(item, "totalGlobalMem");
        device->compute_units = small_of(item, "numSms");
    }
    return true;
}

bool weir__rows_head(struct weir__rows *rows, const char *key, const json_t *value)
{
    if (strcmp(key, "weir") == 0)
        read_meta(rows, value);
    else if (strcmp(key, "baseTimeNanoseconds") == 0)
        rows->trace->meta.base_unix_ns = whole(value);
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
    device->name = text_of(rows, args, "weir.name");
    device->platform = text_of(rows, args, "weir.platform");
    device->driver = text_of(rows, args, "weir.driver");
    device->label = text_of(rows, args, "weir.label");
    device->memory_bytes = uint_of(args, "weir.memory_bytes");
    device->compute_units = small_of(args, "weir.compute_units");
    device->copy_engines_to_device = small_of(args, "weir.copy_engines_to_device");
    device->copy_engines_to_host = small_of(args, "weir.copy_engines_to_host");
    device->concurrent_kernels = small_of(args, "weir.concurrent_kernels");
    device->unified_memory = small_of(args, "weir.unified_memory");
    device->kind = small_of(args, "weir.device_kind");
    return true;
}

static bool read_queue(struct weir__rows *rows, uint32_t device, uint64_t id, const json_t *args)
{
    struct weir_trace_queue *queue = weir__trace_queue(rows->trace, id, device);
    if (!queue)
        return weir__rows_no_memory(rows);
    queue->label = text_of(rows, args, "weir.label");
    queue->backend = text_of(rows, args, "weir.backend");
    queue->priority = int_of_value(json_object_get(args, "weir.priority"));
    return true;
}

static bool read_thread(struct weir__rows *rows, uint64_t id, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    if (!have_room(rows, 1))
        return false;
    struct weir_trace_thread *threads =
        weir__trace_grow(trace->threads, trace->thread_count, &trace->storage->thread_capacity,
                         sizeof *threads);
    if (!threads)
        return weir__rows_no_memory(rows);
    trace->threads = threads;
    threads[trace->thread_count++] =
        (struct weir_trace_thread){.id = id, .name = text_of(rows, args, "name")};
    return true;
}

static void read_end(struct weir__rows *rows, const json_t *args)
{
    struct weir_trace_meta *meta = &rows->trace->meta;
    const json_t *clocks = json_object_get(args, "weir.clocks");
    meta->end_ns = uint_of(args, "weir.end");
    meta->dropped = uint_of(args, "weir.dropped");
    meta->beyond = uint_of(args, "weir.beyond");
    meta->unfinished = uint_of(args, "weir.unfinished");
    for (size_t i = 0; i < json_array_size(clocks) && i < DEVICE_LIMIT; i++) {
        const json_t *item = json_array_get(clocks, i);
        struct weir_trace_device *device = device_at(rows, small(json_array_get(item, 0)));
        if (!device)
            return;
        device->clock = (struct weir_trace_clock){
            .pairs = small(json_array_get(item, 1)),
            .drift_ppm = json_number_value(json_array_get(item, 2)),
            .uncertainty_ns = whole(json_array_get(item, 3)),
        };
    }
    rows->ended = true;
}

static bool read_name(struct weir__rows *rows, const json_t *event)
{
    const char *name = string_of(event, "name");
    const json_t *args = json_object_get(event, "args");
    const uint64_t pid = uint_of(event, "pid");
    if (!rows->own)
        return true;
    if (strcmp(name, WEIR__TRACE_END_ROW) == 0)
        read_end(rows, args);
    else if (strcmp(name, WEIR__TRACE_DEVICE_ROW) == 0)
        return pid == rows->host || pid > UINT32_MAX || read_device(rows, (uint32_t)pid, args);
    else if (strcmp(name, WEIR__TRACE_QUEUE_ROW) == 0)
        return pid == rows->host
                   ? read_thread(rows, uint_of(event, "tid"), args)
                   : read_queue(rows, small_of(event, "pid"), uint_of(event, "tid"), args);
    return true;
}

// Spans, and all rows.

static bool read_span(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    struct weir_trace *trace = rows->trace;
    const json_t *number = json_object_get(args, "weir.number");
    if (!have_room(rows, 1))
        return false;
    struct weir_trace_span *spans = weir__trace_grow(trace->spans, trace->span_count,
                                                     &trace->storage->span_capacity, sizeof *spans);
    if (!spans)
        return weir__rows_no_memory(rows);
    trace->spans = spans;
    spans[trace->span_count++] = (struct weir_trace_span){
        .kind =
            strcmp(string_of(args, "weir.span"), "sync") == 0 ? WEIR_TRACE_SYNC : WEIR_TRACE_REGION,
        .thread = uint_of(event, "tid"),
        .name = text_of(rows, event, "name"),
        .number = number ? whole(number) : WEIR_NO_NUMBER,
        .begin_ns = ns_of(event, "ts"),
        .end_ns = ns_of(event, "ts") + ns_of(event, "dur"),
    };
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
