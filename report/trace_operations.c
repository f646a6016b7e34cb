// Operations of a trace: Weir's own, of which all data is in `args`, and those of other programs.
#include <string.h>

#include "base/text.h"
#include "report/trace_parts.h"
#include "report/trace_rows.h"
#include "report/trace_storage.h"
#include "report/trace_values.h"

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
        WEIR_TRACE_NATIVE,  WEIR_TRACE_COLLECTIVE,
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
        triple[i] = weir__small(json_array_get(list, i));
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
    if (!weir__rows_have_room(rows, count))
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
            .queue = weir__whole(json_array_get(item, 0)),
            .sequence = weir__whole(json_array_get(item, 1)),
            .implied = weir__whole(json_array_get(item, 2)) > 0,
            .file = file ? file : "",
            .line = weir__int(json_array_get(item, 4)),
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
                .argument = weir__small(json_array_get(item, 0)),
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
        .count = weir__whole(json_array_get(list, 3)),
        .number = weir__whole(json_array_get(list, 4)),
        .rank = weir__small(json_array_get(list, 5)),
        .rank_count = weir__small(json_array_get(list, 6)),
        .root = weir__small(json_array_get(list, 7)),
    };
    operation->collective = collective;
    return true;
}

bool weir__rows_operation(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    const char *dst = weir__string_of(args, "weir.dst_memory");
    const char *src = weir__string_of(args, "weir.src_memory");
    const json_t *waits = json_object_get(args, "weir.waits");
    const uint64_t id = weir__uint_of(event, "tid");
    struct weir_trace_operation *operation = add_operation(rows);
    if (!operation)
        return false;
    *operation = (struct weir_trace_operation){
        .queue = id,
        .sequence = weir__uint_of(args, "weir.sequence"),
        .node = weir__small_of(args, "weir.node"),
        .kind = kind_of(weir__string_of(args, "weir.kind")),
        .engine = engine_of(weir__string_of(args, "weir.engine")),
        .bytes = weir__uint_of(args, "bytes"),
        .name = weir__text_of(rows, args, "weir.name"),
        .label = weir__text_of(rows, args, "weir.label"),
        .dst_label = weir__text_of(rows, args, "weir.dst"),
        .src_label = weir__text_of(rows, args, "weir.src"),
        .dst_memory = memory_of(dst, strlen(dst)),
        .src_memory = memory_of(src, strlen(src)),
        .argument_bytes = weir__uint_of(args, "weir.argument_bytes"),
        .file = weir__text_of(rows, args, "weir.file"),
        .line = weir__int(json_object_get(args, "weir.line")),
        .region = weir__text_of(rows, args, "weir.region"),
        .thread = weir__uint_of(args, "weir.thread"),
        .submit_ns = weir__uint_of(args, "weir.submit"),
        .submit_end_ns = weir__uint_of(args, "weir.submit_end"),
        .timed = strcmp(weir__string_of(event, "ph"), "X") == 0,
        .start_is_earliest = json_is_true(json_object_get(args, "weir.start_is_earliest")),
        .failed = json_is_true(json_object_get(args, "weir.failed")),
    };
    if (operation->timed) {
        operation->start_ns = weir__ns_of(event, "ts");
        operation->end_ns = operation->start_ns + weir__ns_of(event, "dur");
    }
    read_triple(operation->grid, json_object_get(args, "grid"));
    read_triple(operation->block, json_object_get(args, "block"));
    if (!weir__rows_queue(rows, id, weir__small_of(event, "pid")))
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

bool weir__rows_foreign(struct weir__rows *rows, const json_t *event, const json_t *args,
                        const char *category)
{
    const char *title = weir__string_of(event, "name");
    const uint32_t device = weir__small_of(args, "device");
    // Streams of different devices may have equal numbers.
    const uint64_t id = (uint64_t)device << 32 | weir__small_of(args, "stream");
    struct weir_trace_operation *operation = add_operation(rows);
    if (!operation)
        return false;
    *operation = (struct weir_trace_operation){
        .queue = id,
        .sequence = weir__uint_of(args, "correlation"),
        .bytes = weir__uint_of(args, "bytes"),
        .name = "",
        .label = "",
        .dst_label = "",
        .src_label = "",
        .file = "",
        .region = "",
        .timed = true,
        .start_ns = weir__ns_of(event, "ts"),
    };
    operation->end_ns = operation->start_ns + weir__ns_of(event, "dur");
    classify(operation, category, title);
    if (operation->kind == WEIR_TRACE_LAUNCH)
        operation->name = weir__text_of(rows, event, "name");
    read_triple(operation->grid, json_object_get(args, "grid"));
    read_triple(operation->block, json_object_get(args, "block"));
    return weir__rows_queue(rows, id, device) ? true : weir__rows_no_memory(rows);
}

bool weir__rows_call(struct weir__rows *rows, const json_t *event, const json_t *args)
{
    if (!weir__rows_have_room(rows, 1))
        return false;
    struct weir__call *calls =
        weir__trace_grow(rows->calls, rows->call_count, &rows->call_capacity, sizeof *calls);
    if (!calls)
        return weir__rows_no_memory(rows);
    rows->calls = calls;
    calls[rows->call_count++] = (struct weir__call){
        .correlation = weir__uint_of(args, "correlation"),
        .thread = weir__uint_of(event, "tid"),
        .begin_ns = weir__ns_of(event, "ts"),
        .end_ns = weir__ns_of(event, "ts") + weir__ns_of(event, "dur"),
    };
    return true;
}
