// Every row is one line that ends in ",\n", except the last one, so that flushed data is whole
// lines. Devices are kept in a list until the first other row, because the head of the file names
// them.
#include "report/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/region.h>

#include "report/trace_arrows.h"
#include "report/trace_out.h"
#include "report/trace_parts.h"
#include "report/trace_row.h"

struct known_queue {
    uint64_t id;
    uint32_t device;
};

struct weir_trace_writer {
    struct weir__out out;
    struct weir__arrows arrows;
    struct known_queue *queues;
    size_t queue_count;
    uint64_t process; // the pid of the host's rows
    uint64_t rows;    // operations so far
    size_t device_count;
    bool began; // the head is written
    // The head of the file, but for deviceProperties.
    char *head;
    size_t head_size;
};

enum {
    FLUSH_SIZE = 1 << 18
};

static void end_row(weir_trace_writer *writer)
{
    weir__out_raw(&writer->out, "},\n");
    if (writer->out.used >= FLUSH_SIZE)
        weir__out_flush(&writer->out);
}

// The head.

static void write_property(struct weir__out *out, const struct weir_trace_device *device)
{
    weir__out_raw(out, "{\"id\": ");
    weir__out_uint(out, device->index);
    weir__out_raw(out, ", \"name\": ");
    weir__out_string(out, device->name);
    weir__out_raw(out, ", \"totalGlobalMem\": ");
    weir__out_uint(out, device->memory_bytes);
    weir__out_raw(out, ", \"numSms\": ");
    weir__out_uint(out, device->compute_units);
    weir__out_raw(out, "}");
}

static void write_head(struct weir__out *out, const struct weir_trace_meta *meta)
{
    weir__out_raw(out, "{\n\"schemaVersion\": 1,\n"
                       "\"distributedInfo\": {\"backend\": \"none\", \"rank\": 0, "
                       "\"world_size\": 1},\n"
                       "\"displayTimeUnit\": \"ms\",\n"
                       "\"baseTimeNanoseconds\": ");
    weir__out_uint(out, meta->base_unix_ns);
    weir__out_raw(out, ",\n\"weir\": {\"format\":1");
    weir__out_string_field(out, "version", meta->weir);
    weir__out_string_field(out, "program", meta->program);
    weir__out_string_field(out, "backend", meta->backend);
    weir__out_string_field(out, "plugins", meta->plugins);
    weir__out_string_field(out, "source", meta->source);
    weir__out_uint_field(out, "process", meta->process);
    weir__out_raw(out, "},\n\"deviceProperties\": [");
}

static void write_thread_name(weir_trace_writer *writer, uint64_t pid, uint64_t tid,
                              const char *name)
{
    weir__row_begin(&writer->out, "M", WEIR__TRACE_QUEUE_ROW, pid, tid);
    weir__out_raw(&writer->out, ",\"args\":{\"name\":");
    weir__out_string(&writer->out, name);
    weir__out_raw(&writer->out, "}");
    end_row(writer);
}

// Ends the head, and names the host's process.
static void begin(weir_trace_writer *writer)
{
    struct weir__out *out = &writer->out;
    if (writer->began)
        return;
    writer->began = true;
    weir__out_raw(out, "],\n\"traceEvents\": [\n");
    if (writer->head)
        weir__out_raw(out, writer->head);
    free(writer->head);
    writer->head = NULL;
    weir__row_begin(out, "M", WEIR__TRACE_DEVICE_ROW, writer->process, 0);
    weir__out_raw(out, ",\"args\":{\"name\":\"host\"}");
    end_row(writer);
}

weir_trace_writer *weir_trace_writer_create(const char *path, const struct weir_trace_meta *meta,
                                            char *message, size_t message_size)
{
    weir_trace_writer *writer = calloc(1, sizeof *writer);
    if (!writer) {
        snprintf(message, message_size, "%s: there is no memory for a trace", path);
        return NULL;
    }
    if (!weir__out_open(&writer->out, path, message, message_size)) {
        free(writer);
        return NULL;
    }
    writer->process = meta->process < WEIR__TRACE_LEAST_PROCESS
                          ? meta->process + WEIR__TRACE_PROCESS_OFFSET
                          : meta->process;
    write_head(&writer->out, meta);
    return writer;
}

// Rows that name things.

static void write_device(struct weir__out *out, const struct weir_trace_device *device)
{
    char name[192];
    snprintf(name, sizeof name, "%u: %s", (unsigned)device->index,
             device->name ? device->name : "");
    weir__row_begin(out, "M", WEIR__TRACE_DEVICE_ROW, device->index, 0);
    weir__out_raw(out, ",\"args\":{\"name\":");
    weir__out_string(out, name);
    weir__out_string_field(out, "weir.name", device->name);
    weir__out_string_field(out, "weir.platform", device->platform);
    weir__out_string_field(out, "weir.driver", device->driver);
    weir__out_string_field(out, "weir.label", device->label);
    weir__row_count(out, "weir.memory_bytes", device->memory_bytes);
    weir__row_count(out, "weir.compute_units", device->compute_units);
    weir__row_count(out, "weir.copy_engines_to_device", device->copy_engines_to_device);
    weir__row_count(out, "weir.copy_engines_to_host", device->copy_engines_to_host);
    weir__row_count(out, "weir.concurrent_kernels", device->concurrent_kernels);
    weir__row_count(out, "weir.unified_memory", device->unified_memory);
    weir__out_raw(out, "}");
}

// Keeps the device's row, as text, until the head is complete.
static void keep_row(weir_trace_writer *writer, size_t from)
{
    struct weir__out *out = &writer->out;
    const size_t size = out->used - from;
    char *head = out->failed ? NULL : realloc(writer->head, writer->head_size + size + 1);
    if (!head) {
        out->used = from;
        if (!out->failed)
            weir__out_fail(out, "there is no memory");
        return;
    }
    memcpy(head + writer->head_size, out->data + from, size);
    writer->head = head;
    writer->head_size += size;
    head[writer->head_size] = '\0';
    out->used = from;
}

void weir_trace_writer_device(weir_trace_writer *writer, const struct weir_trace_device *device)
{
    struct weir__out *out = &writer->out;
    if (writer->began) {
        write_device(out, device);
        end_row(writer);
        return;
    }
    if (writer->device_count++ > 0)
        weir__out_raw(out, ", ");
    write_property(out, device);
    const size_t from = out->used;
    write_device(out, device);
    weir__out_raw(out, "},\n");
    keep_row(writer, from);
}

void weir_trace_writer_queue(weir_trace_writer *writer, const struct weir_trace_queue *queue)
{
    struct weir__out *out = &writer->out;
    begin(writer);
    struct known_queue *queues =
        realloc(writer->queues, (writer->queue_count + 1) * sizeof *queues);
    if (!queues) {
        weir__out_fail(out, "there is no memory");
        return;
    }
    writer->queues = queues;
    queues[writer->queue_count++] = (struct known_queue){queue->id, queue->device};

    char name[160];
    snprintf(name, sizeof name, "%s", queue->label ? queue->label : "");
    if (*name == '\0')
        snprintf(name, sizeof name, "queue %llu", (unsigned long long)queue->id);
    weir__row_begin(out, "M", WEIR__TRACE_QUEUE_ROW, queue->device, queue->id);
    weir__out_raw(out, ",\"args\":{\"name\":");
    weir__out_string(out, name);
    weir__out_string_field(out, "weir.label", queue->label);
    weir__out_string_field(out, "weir.backend", queue->backend);
    weir__out_int_field(out, "weir.priority", queue->priority);
    weir__out_raw(out, "}");
    end_row(writer);
}

void weir_trace_writer_thread(weir_trace_writer *writer, const struct weir_trace_thread *thread)
{
    begin(writer);
    write_thread_name(writer, writer->process, thread->id, thread->name);
}

// Operations.

static uint32_t device_of(const weir_trace_writer *writer, uint64_t queue)
{
    for (size_t i = writer->queue_count; i-- > 0;)
        if (writer->queues[i].id == queue)
            return writer->queues[i].device;
    return 0;
}

static void write_operation(weir_trace_writer *writer, const struct weir_trace_operation *operation,
                            uint32_t device)
{
    weir__row_operation(&writer->out, operation, device, writer->rows);
    end_row(writer);
}

static void write_arrow_end(weir_trace_writer *writer, const char *phase, const char *category,
                            uint64_t id, uint64_t pid, uint64_t tid, uint64_t ns)
{
    struct weir__out *out = &writer->out;
    weir__row_begin(out, phase, category, pid, tid);
    weir__out_string_field(out, "cat", category);
    weir__out_uint_field(out, "id", id);
    weir__out_us_field(out, "ts", ns);
    if (*phase == 'f')
        weir__out_string_field(out, "bp", "e");
    end_row(writer);
}

// The host's call, and the arrow from it to the operation.
static void write_call(weir_trace_writer *writer, const struct weir_trace_operation *operation,
                       uint32_t device)
{
    struct weir__out *out = &writer->out;
    if (operation->submit_end_ns < operation->submit_ns || operation->node > 0)
        return;
    weir__row_begin(out, "X", weir__row_call_name(operation->kind), writer->process,
                    operation->thread);
    weir__out_string_field(out, "cat", "cuda_runtime");
    weir__out_us_field(out, "ts", operation->submit_ns);
    weir__out_us_field(out, "dur", operation->submit_end_ns - operation->submit_ns);
    weir__out_raw(out, ",\"args\":{\"correlation\":");
    weir__out_uint(out, writer->rows);
    weir__out_raw(out, "}");
    end_row(writer);
    if (!operation->timed)
        return;
    write_arrow_end(writer, "s", "ac2g", writer->rows, writer->process, operation->thread,
                    operation->submit_ns);
    write_arrow_end(writer, "f", "ac2g", writer->rows, device, operation->queue,
                    operation->start_ns);
}

// A weir__arrow_function: the arrow of a wait.
static void write_wait(void *user, const struct weir__arrow *arrow)
{
    weir_trace_writer *writer = user;
    write_arrow_end(writer, "s", "wait", arrow->id, device_of(writer, arrow->from_queue),
                    arrow->from_queue, arrow->from_ns);
    write_arrow_end(writer, "f", "wait", arrow->id, device_of(writer, arrow->to_queue),
                    arrow->to_queue, arrow->to_ns);
}

void weir_trace_writer_operation(weir_trace_writer *writer,
                                 const struct weir_trace_operation *operation)
{
    begin(writer);
    const uint32_t device = device_of(writer, operation->queue);
    writer->rows++;
    write_operation(writer, operation, device);
    write_call(writer, operation, device);
    if (operation->timed && operation->node == 0 &&
        !weir__arrows_add(&writer->arrows, operation, write_wait, writer))
        weir__out_fail(&writer->out, "there is no memory");
}

void weir_trace_writer_span(weir_trace_writer *writer, const struct weir_trace_span *span)
{
    struct weir__out *out = &writer->out;
    begin(writer);
    weir__row_begin(out, "X", span->name ? span->name : "", writer->process, span->thread);
    weir__out_string_field(out, "cat",
                           span->kind == WEIR_TRACE_SYNC ? "cuda_sync" : "user_annotation");
    weir__out_us_field(out, "ts", span->begin_ns);
    weir__out_us_field(out, "dur",
                       span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0);
    weir__out_raw(out, ",\"args\":{\"weir.span\":");
    weir__out_string(out, span->kind == WEIR_TRACE_SYNC ? "sync" : "region");
    if (span->number != WEIR_NO_NUMBER)
        weir__out_uint_field(out, "weir.number", span->number);
    weir__out_raw(out, "}");
    end_row(writer);
}

bool weir_trace_writer_flush(weir_trace_writer *writer)
{
    // The head is open as long as devices may be added to it.
    if (writer->began)
        weir__out_flush(&writer->out);
    return !writer->out.failed;
}

// The end.

static void write_clocks(struct weir__out *out, const struct weir_trace_device *devices,
                         size_t count)
{
    weir__out_raw(out, ",\"weir.clocks\":[");
    for (size_t i = 0; i < count; i++) {
        weir__out_raw(out, i > 0 ? ",[" : "[");
        weir__out_uint(out, devices[i].index);
        weir__out_raw(out, ",");
        weir__out_uint(out, devices[i].clock.pairs);
        weir__out_raw(out, ",");
        weir__out_double(out, devices[i].clock.drift_ppm);
        weir__out_raw(out, ",");
        weir__out_uint(out, devices[i].clock.uncertainty_ns);
        weir__out_raw(out, "]");
    }
    weir__out_raw(out, "]");
}

bool weir_trace_writer_close(weir_trace_writer **writer, const struct weir_trace_meta *end,
                             const struct weir_trace_device *devices, size_t device_count,
                             char *message, size_t message_size)
{
    weir_trace_writer *it = *writer;
    struct weir__out *out = &it->out;
    begin(it);
    weir__arrows_finish(&it->arrows, write_wait, it);
    weir__row_begin(out, "M", WEIR__TRACE_END_ROW, it->process, 0);
    weir__out_raw(out, ",\"args\":{\"name\":\"end\"");
    weir__out_uint_field(out, "weir.end", end->end_ns);
    weir__out_uint_field(out, "weir.dropped", end->dropped);
    weir__out_uint_field(out, "weir.unfinished", end->unfinished);
    write_clocks(out, devices, device_count);
    weir__out_raw(out, "}}\n]\n}\n");
    const bool ok = weir__out_close(out, message, message_size);
    free(it->queues);
    free(it->head);
    free(it);
    *writer = NULL;
    return ok;
}
