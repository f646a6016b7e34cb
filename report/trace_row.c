// The row of an operation.
#include "report/trace_row.h"

#include "base/bus.h"
#include "report/trace_parts.h"

void weir__row_text(struct weir__out *out, const char *name, const char *text)
{
    if (text && *text)
        weir__out_string_field(out, name, text);
}

void weir__row_count(struct weir__out *out, const char *name, uint64_t number)
{
    if (number > 0)
        weir__out_uint_field(out, name, number);
}

void weir__row_begin(struct weir__out *out, const char *phase, const char *name, uint64_t pid,
                     uint64_t tid)
{
    weir__out_raw(out, "{\"ph\":\"");
    weir__out_raw(out, phase);
    weir__out_raw(out, "\"");
    weir__out_string_field(out, "name", name);
    weir__out_uint_field(out, "pid", pid);
    weir__out_uint_field(out, "tid", tid);
}

static const char *category(const struct weir_trace_operation *operation)
{
    switch (operation->kind) {
    case WEIR_TRACE_COPY:
    case WEIR_TRACE_COPY_2D:
    case WEIR_TRACE_COPY_3D:
        return "gpu_memcpy";
    case WEIR_TRACE_FILL:
    case WEIR_TRACE_FILL_2D:
        return "gpu_memset";
    case WEIR_TRACE_HOST_CALL:
        return "host_call";
    default:
        return operation->engine == WEIR_ENGINE_NONE ? "graph" : "kernel";
    }
}

// Tools treat every row with a stream as work of the device.
static bool is_of_device(const struct weir_trace_operation *operation)
{
    return operation->timed && operation->kind != WEIR_TRACE_HOST_CALL &&
           operation->engine != WEIR_ENGINE_NONE;
}

static void add_triple(struct weir__out *out, const char *name, const uint32_t triple[3])
{
    if (triple[0] == 0)
        return;
    weir__out_key(out, name);
    for (size_t i = 0; i < 3; i++) {
        weir__out_raw(out, i == 0 ? "[" : ",");
        weir__out_uint(out, triple[i]);
    }
    weir__out_raw(out, "]");
}

static void add_memory(struct weir__out *out, const char *name, enum weir_trace_memory memory)
{
    if (memory != WEIR_TRACE_NO_MEMORY)
        weir__out_string_field(out, name, weir__trace_memory_name(memory));
}

// [[queue, sequence, implied, "file", line], ...]
static void add_waits(struct weir__out *out, const struct weir_trace_operation *operation)
{
    if (operation->wait_count == 0)
        return;
    weir__out_key(out, "weir.waits");
    for (size_t i = 0; i < operation->wait_count; i++) {
        const struct weir_trace_wait *wait = &operation->waits[i];
        weir__out_raw(out, i == 0 ? "[[" : ",[");
        weir__out_uint(out, wait->queue);
        weir__out_raw(out, ",");
        weir__out_uint(out, wait->sequence);
        weir__out_raw(out, wait->implied ? ",1," : ",0,");
        weir__out_string(out, wait->file);
        weir__out_raw(out, ",");
        weir__out_int(out, wait->line);
        weir__out_raw(out, "]");
    }
    weir__out_raw(out, "]");
}

static void add_scalars(struct weir__out *out, const struct weir_trace_operation *operation)
{
    if (operation->scalar_count == 0)
        return;
    weir__out_key(out, "weir.scalars");
    for (size_t i = 0; i < operation->scalar_count; i++) {
        weir__out_raw(out, i == 0 ? "[[" : ",[");
        weir__out_uint(out, operation->scalars[i].argument);
        weir__out_raw(out, ",");
        weir__out_double(out, operation->scalars[i].value);
        weir__out_raw(out, "]");
    }
    weir__out_raw(out, "]");
}

// As PyTorch's profiler writes them, and what Weir reads back:
// ["all-reduce", "f32", "sum", count, number, rank, ranks, root].
static void add_collective(struct weir__out *out, const struct weir_trace_operation *operation)
{
    const struct weir_trace_collective *it = operation->collective;
    const uint64_t numbers[] = {it->count, it->number, it->rank, it->rank_count, it->root};
    const uint64_t ns = operation->end_ns - operation->start_ns;
    weir__out_string_field(out, "Collective name", it->kind);
    weir__out_string_field(out, "dtype", it->element);
    weir__out_uint_field(out, "Group size", it->rank_count);
    weir__out_string_field(out, "Process Group Name", operation->label ? operation->label : "");
    if (operation->timed && operation->end_ns > operation->start_ns) {
        const double rate = (double)operation->bytes / (double)ns; // bytes a ns are GB a second
        weir__out_double_field(out, "algorithm GB/s", rate);
        weir__out_double_field(out, "bus GB/s", rate * weir_bus_factor(it->kind, it->rank_count));
    }
    weir__out_key(out, "weir.collective");
    weir__out_raw(out, "[");
    weir__out_string(out, it->kind);
    weir__out_raw(out, ",");
    weir__out_string(out, it->element);
    weir__out_raw(out, ",");
    weir__out_string(out, it->reduction);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        weir__out_raw(out, ",");
        weir__out_uint(out, numbers[i]);
    }
    weir__out_raw(out, "]");
}

static void add_facts(struct weir__out *out, const struct weir_trace_operation *operation)
{
    weir__out_uint_field(out, "weir.sequence", operation->sequence);
    weir__row_count(out, "weir.node", operation->node);
    weir__out_string_field(out, "weir.kind", weir_trace_kind_name(operation->kind));
    weir__out_string_field(out, "weir.engine", weir_trace_engine_name(operation->engine));
    weir__row_text(out, "weir.name", operation->name);
    weir__row_text(out, "weir.label", operation->label);
    weir__row_text(out, "weir.dst", operation->dst_label);
    weir__row_text(out, "weir.src", operation->src_label);
    add_memory(out, "weir.dst_memory", operation->dst_memory);
    add_memory(out, "weir.src_memory", operation->src_memory);
    weir__row_count(out, "weir.argument_bytes", operation->argument_bytes);
    add_scalars(out, operation);
    if (operation->collective)
        add_collective(out, operation);
    weir__row_text(out, "weir.file", operation->file);
    if (operation->line != 0)
        weir__out_int_field(out, "weir.line", operation->line);
    weir__row_text(out, "weir.region", operation->region);
    weir__row_count(out, "weir.thread", operation->thread);
    weir__out_uint_field(out, "weir.submit", operation->submit_ns);
    weir__row_count(out, "weir.submit_end", operation->submit_end_ns);
    if (operation->start_is_earliest)
        weir__out_bool_field(out, "weir.start_is_earliest", true);
    if (operation->failed)
        weir__out_bool_field(out, "weir.failed", true);
    add_waits(out, operation);
}

void weir__row_operation(struct weir__out *out, const struct weir_trace_operation *operation,
                         uint32_t device, uint64_t correlation)
{
    char title[192];
    weir_trace_operation_title(operation, title, sizeof title);
    weir__row_begin(out, operation->timed ? "X" : "i", title, device, operation->queue);
    weir__out_string_field(out, "cat", operation->timed ? category(operation) : "untimed");
    if (operation->timed) {
        weir__out_us_field(out, "ts", operation->start_ns);
        weir__out_us_field(out, "dur",
                           operation->end_ns > operation->start_ns
                               ? operation->end_ns - operation->start_ns
                               : 0);
    } else {
        weir__out_string_field(out, "s", "t");
        weir__out_us_field(out, "ts", operation->submit_ns);
    }
    weir__out_raw(out, ",\"args\":{\"device\":");
    weir__out_uint(out, device);
    if (is_of_device(operation))
        weir__out_uint_field(out, "stream", operation->queue);
    weir__out_uint_field(out, "correlation", correlation);
    weir__row_count(out, "bytes", operation->bytes);
    add_triple(out, "grid", operation->grid);
    add_triple(out, "block", operation->block);
    add_facts(out, operation);
    weir__out_raw(out, "}");
}

const char *weir__row_call_name(enum weir_trace_kind kind)
{
    switch (kind) {
    case WEIR_TRACE_COPY:
        return "weir_queue_copy";
    case WEIR_TRACE_COPY_2D:
        return "weir_queue_copy_2d";
    case WEIR_TRACE_COPY_3D:
        return "weir_queue_copy_3d";
    case WEIR_TRACE_FILL:
        return "weir_queue_fill";
    case WEIR_TRACE_FILL_2D:
        return "weir_queue_fill_2d";
    case WEIR_TRACE_LAUNCH:
        return "weir_queue_launch";
    case WEIR_TRACE_HOST_CALL:
        return "weir_queue_host_call";
    case WEIR_TRACE_GRAPH:
        return "weir_queue_graph";
    case WEIR_TRACE_NATIVE:
        return "weir_queue_native";
    case WEIR_TRACE_COLLECTIVE:
        return "weir_queue_collective";
    }
    return "weir_queue_submit";
}
