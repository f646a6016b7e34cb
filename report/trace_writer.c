// Writes a trace: its file, its rows, and the arrows between them.
#define _GNU_SOURCE // strerror_r that returns the text
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <weir/region.h>

#include "base/bus.h"
#include "base/file.h"
#include "base/grow.h"
#include "report/trace.h"
#include "report/trace_format.h"

// The row of an operation.

// {"ph": …, "name": …, "pid": …, "tid": …
static void row_begin(struct weir_long_text *out, const char *phase, const char *name, uint64_t pid,
                      uint64_t tid)
{
    weir__out_raw(out, "{\"ph\":\"");
    weir__out_raw(out, phase);
    weir__out_raw(out, "\"");
    weir__out_string_field(out, "name", name);
    weir__out_uint_field(out, "pid", pid);
    weir__out_uint_field(out, "tid", tid);
}

static void put_times(struct weir_long_text *out, uint64_t begin_ns, uint64_t end_ns)
{
    weir__out_us_field(out, "ts", begin_ns);
    weir__out_us_field(out, "dur", end_ns > begin_ns ? end_ns - begin_ns : 0);
}

static const char *category(const struct weir_trace_operation *operation)
{
    switch (operation->kind) {
    case WEIR_TRACE_COPY:
        return "gpu_memcpy";
    case WEIR_TRACE_FILL:
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

// As PyTorch's profiler writes them, and what Weir reads back:
// ["all-reduce", "f32", "sum", count, number, rank, ranks, root].
static void add_collective(struct weir_long_text *out, const struct weir_trace_operation *operation)
{
    const struct weir_trace_collective *it = operation->collective;
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
    weir__out_item(out, weir__collective_fields, it);
}

static void row_operation(struct weir_long_text *out, const struct weir_trace_operation *operation,
                          uint32_t device, uint64_t correlation)
{
    row_begin(out, operation->timed ? "X" : "i", weir_trace_operation_title(operation).text, device,
              operation->queue);
    weir__out_string_field(out, "cat", operation->timed ? category(operation) : "untimed");
    if (operation->timed) {
        put_times(out, operation->start_ns, operation->end_ns);
    } else {
        weir__out_string_field(out, "s", "t");
        weir__out_us_field(out, "ts", operation->submit_ns);
    }
    weir__out_raw(out, ",\"args\":{\"device\":");
    weir__out_uint(out, device);
    if (is_of_device(operation))
        weir__out_uint_field(out, "stream", operation->queue);
    weir__out_uint_field(out, "correlation", correlation);
    weir__out_fields(out, weir__operation_fields, operation);
    if (operation->scalar_count > 0)
        weir__out_items(out, "weir.scalars", weir__scalar_fields, operation->scalars,
                        operation->scalar_count, sizeof *operation->scalars);
    if (operation->collective)
        add_collective(out, operation);
    if (operation->wait_count > 0)
        weir__out_items(out, "weir.waits", weir__wait_fields, operation->waits,
                        operation->wait_count, sizeof *operation->waits);
    weir__out_raw(out, "}");
}

// Every row is one line that ends in ",\n", except the last one, so that flushed data is whole
// lines.

enum {
    FLUSH_SIZE = 1 << 18,
    RING = 1024,
    DRAW_EVERY = 256, // rows of operations
    WAIT_LIMIT = 4096
};

// The pid of the host's rows: the process's number, to which this is added if it could be mistaken
// for a device's.
#define LEAST_PROCESS 4096u
#define PROCESS_OFFSET 1000000u

struct point {
    uint64_t sequence;
    uint64_t last_ns; // the last nanosecond of the operation
};

// A wait without an arrow yet.
struct waiting {
    uint64_t queue;    // of the record
    uint64_t sequence; // of the record
    uint64_t to_queue;
    uint64_t to_ns;
};

struct queue {
    uint64_t id;
    uint32_t device;
    size_t count; // of all points so far; the last RING are kept
    size_t capacity;
    struct point *ring;
};

struct weir_trace_writer {
    gzFile file;
    char *path;
    uint64_t flushed;                 // bytes, before compression
    char reason[192];                 // of the first failure; "": there is none, or no memory
    struct weir_long_text out;        // lines that are not flushed
    struct weir_long_text properties; // of the devices, for the end
    struct queue *queues;             // those that rows or waits have named
    size_t queue_count;
    struct waiting *waits;
    size_t wait_count;
    size_t wait_capacity;
    uint64_t arrows;  // so far
    uint64_t process; // the pid of the host's rows
    uint64_t rows;    // operations so far
};

// The file. zlib's file functions write plain files too ("T"), so the code is the same for both kinds. A flush ends a
// block of compressed data, so that everything up to there can be unpacked, whatever follows.

// Notes a failure, of which the first one is kept, and removes the text.
static void fail(weir_trace_writer *writer, const char *reason)
{
    if (!writer->out.failed)
        snprintf(writer->reason, sizeof writer->reason, "%s", reason);
    writer->out.failed = true;
    writer->out.used = 0;
}

static void fail_errno(weir_trace_writer *writer, int error)
{
    char text[128];
    char reason[192];
    snprintf(reason, sizeof reason, "%s (errno %d)", strerror_r(error, text, sizeof text), error);
    fail(writer, reason);
}

static const char *reason_of(const weir_trace_writer *writer)
{
    return *writer->reason ? writer->reason : "there is no memory";
}

// False, with the reason.
static bool open_file(weir_trace_writer *writer, const char *path)
{
    const size_t length = strlen(path);
    const bool compressed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    writer->path = strdup(path);
    const int descriptor = writer->path ? weir_file_open_to_write(path, O_TRUNC) : -1;
    if (descriptor < 0) {
        if (writer->path && errno == ENXIO)
            fail(writer, "it is a pipe without a reader");
        else if (writer->path)
            fail_errno(writer, errno);
        return false;
    }
    writer->file = gzdopen(descriptor, compressed ? "wb4" : "wbT");
    if (writer->file)
        return true;
    close(descriptor);
    return false;
}

// Writes everything so far; between lines only.
static void flush(weir_trace_writer *writer)
{
    struct weir_long_text *out = &writer->out;
    if (out->failed || out->used == 0)
        return;
    errno = 0;
    if (gzwrite(writer->file, out->text, (unsigned)out->used) == (int)out->used &&
        gzflush(writer->file, Z_SYNC_FLUSH) == Z_OK) {
        writer->flushed += out->used;
        out->used = 0;
        return;
    }
    int number;
    const char *text = gzerror(writer->file, &number);
    if (number == Z_ERRNO || *text == '\0')
        fail_errno(writer, errno);
    else
        fail(writer, text);
}

// False, with a sentence, if anything failed since the file was opened.
static bool close_file(weir_trace_writer *writer, char *message, size_t message_size)
{
    struct weir_long_text *out = &writer->out;
    flush(writer);
    errno = 0;
    if (gzclose(writer->file) != Z_OK && !out->failed)
        fail_errno(writer, errno);
    if (out->failed)
        weir_text_about(message, message_size, writer->path,
                        "the trace is incomplete: %s; free space or choose another place for it",
                        reason_of(writer));
    return !out->failed;
}

static void release(weir_trace_writer *writer)
{
    free(writer->queues);
    free(writer->path);
    free(writer->out.text);
    free(writer->properties.text);
    free(writer);
}

static void end_row(weir_trace_writer *writer)
{
    weir__out_raw(&writer->out, "},\n");
    if (writer->out.used >= FLUSH_SIZE)
        flush(writer);
}

static struct queue *find_queue(const weir_trace_writer *writer, uint64_t id)
{
    for (size_t i = writer->queue_count; i-- > 0;)
        if (writer->queues[i].id == id)
            return &writer->queues[i];
    return NULL;
}

// The queue, which is added if it is not known. NULL if out of memory.
static struct queue *queue_of(weir_trace_writer *writer, uint64_t id)
{
    struct queue *known = find_queue(writer, id);
    if (known)
        return known;
    struct queue *queues = realloc(writer->queues, (writer->queue_count + 1) * sizeof *queues);
    if (!queues)
        return NULL;
    writer->queues = queues;
    queues[writer->queue_count] = (struct queue){.id = id};
    return &queues[writer->queue_count++];
}

// The head.

static void write_head(struct weir_long_text *out, const struct weir_trace_meta *meta)
{
    weir__out_raw(out, "{\n\"schemaVersion\": 1,\n"
                       "\"distributedInfo\": {\"backend\": \"none\", \"rank\": 0, "
                       "\"world_size\": 1},\n"
                       "\"displayTimeUnit\": \"ms\",\n"
                       "\"baseTimeNanoseconds\": ");
    weir__out_uint(out, meta->base_unix_ns);
    weir__out_raw(out, ",\n\"weir\": {\"format\":1");
    weir__out_fields(out, weir__head_fields, meta);
    weir__out_raw(out, "},\n\"traceEvents\": [\n");
}

// A row that names something. `fields` NULL: it has none.
static void write_name(weir_trace_writer *writer, const char *row, uint64_t pid, uint64_t tid,
                       const char *name, const struct weir__field *fields, const void *item)
{
    struct weir_long_text *out = &writer->out;
    row_begin(out, "M", row, pid, tid);
    weir__out_raw(out, ",\"args\":{");
    weir__out_string_field(out, "name", name);
    if (fields)
        weir__out_fields(out, fields, item);
    weir__out_raw(out, "}");
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
    if (!open_file(writer, path)) {
        weir_text_about(message, message_size, path,
                        "the trace cannot be written: %s; choose another place for it",
                        reason_of(writer));
        release(writer);
        return NULL;
    }
    writer->process = meta->process + (meta->process < LEAST_PROCESS ? PROCESS_OFFSET : 0);
    write_head(&writer->out, meta);
    write_name(writer, WEIR__TRACE_DEVICE_ROW, writer->process, 0, "host", NULL, NULL);
    return writer;
}

void weir_trace_writer_device(weir_trace_writer *writer, const struct weir_trace_device *device)
{
    char name[192];
    snprintf(name, sizeof name, "%u: %s", (unsigned)device->index,
             device->name ? device->name : "");
    write_name(writer, WEIR__TRACE_DEVICE_ROW, device->index, 0, name, weir__device_fields, device);
    weir__out_raw(&writer->properties, writer->properties.used ? ", " : "");
    weir__out_item(&writer->properties, weir__property_fields, device);
}

void weir_trace_writer_queue(weir_trace_writer *writer, const struct weir_trace_queue *queue)
{
    struct queue *known = queue_of(writer, queue->id);
    if (!known) {
        fail(writer, "");
        return;
    }
    known->device = queue->device;
    write_name(writer, WEIR__TRACE_QUEUE_ROW, queue->device, queue->id,
               weir_trace_queue_name(queue).text, weir__queue_fields, queue);
}

void weir_trace_writer_thread(weir_trace_writer *writer, const struct weir_trace_thread *thread)
{
    write_name(writer, WEIR__TRACE_QUEUE_ROW, writer->process, thread->id, thread->name, NULL,
               NULL);
}

// Operations.

static uint32_t device_of(const weir_trace_writer *writer, uint64_t id)
{
    const struct queue *queue = find_queue(writer, id);
    return queue ? queue->device : 0;
}

static void write_operation(weir_trace_writer *writer, const struct weir_trace_operation *operation,
                            uint32_t device)
{
    struct weir_long_text *out = &writer->out;
    row_operation(out, operation, device, writer->rows);
    end_row(writer);
    if (!operation->timed || !operation->finding || !*operation->finding)
        return;
    // For viewers: an instant at its beginning.
    row_begin(out, "i", operation->finding_kind, device, operation->queue);
    weir__out_string_field(out, "cat", "weir_check");
    weir__out_string_field(out, "s", "t");
    weir__out_us_field(out, "ts", operation->start_ns);
    weir__out_raw(out, ",\"args\":{");
    weir__out_string_field(out, "weir.finding", operation->finding);
    weir__out_string_field(out, "weir.remedy", operation->remedy);
    weir__out_raw(out, "}");
    end_row(writer);
}

static void write_arrow_end(weir_trace_writer *writer, const char *phase, const char *category,
                            uint64_t id, uint64_t pid, uint64_t tid, uint64_t ns)
{
    struct weir_long_text *out = &writer->out;
    row_begin(out, phase, category, pid, tid);
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
    struct weir_long_text *out = &writer->out;
    char name[32];
    if (operation->submit_end_ns < operation->submit_ns)
        return;
    snprintf(name, sizeof name, "weir_queue_%s", weir_trace_kind_name(operation->kind));
    row_begin(out, "X", name, writer->process, operation->thread);
    weir__out_string_field(out, "cat", "cuda_runtime");
    put_times(out, operation->submit_ns, operation->submit_end_ns);
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

// Arrows of waits. Each queue has a ring of its last operations, and the waits that are not drawn yet are a list. Now and
// then those are drawn of which the queue's rows have passed the record, and if the list is full all of them: with the
// rows known so far, which is correct unless rows arrive very late.

static bool add_point(struct queue *queue, const struct point *point)
{
    // It begins small: of queues that live briefly there may be very many.
    struct point *ring = queue->count < RING
                             ? weir_grow(queue->ring, queue->count, &queue->capacity, sizeof *ring)
                             : queue->ring;
    if (!ring)
        return false;
    queue->ring = ring;
    queue->ring[queue->count++ % RING] = *point;
    return true;
}

static void draw_wait(weir_trace_writer *writer, const struct queue *queue,
                      const struct waiting *wait)
{
    const size_t kept = queue->count < RING ? queue->count : RING;
    for (size_t back = 1; back <= kept; back++) {
        const struct point *point = &queue->ring[(queue->count - back) % RING];
        if (point->sequence > wait->sequence)
            continue;
        const uint64_t id = ++writer->arrows;
        write_arrow_end(writer, "s", "wait", id, queue->device, queue->id, point->last_ns);
        write_arrow_end(writer, "f", "wait", id, device_of(writer, wait->to_queue), wait->to_queue,
                        wait->to_ns);
        return;
    }
}

// Draws the waits whose record the queue's rows have passed, or all of them.
static void draw_known(weir_trace_writer *writer, bool all)
{
    size_t left = 0;
    for (size_t i = 0; i < writer->wait_count; i++) {
        const struct waiting wait = writer->waits[i];
        const struct queue *queue = find_queue(writer, wait.queue);
        const size_t count = queue ? queue->count : 0;
        if (count > 0 && (all || queue->ring[(count - 1) % RING].sequence > wait.sequence))
            draw_wait(writer, queue, &wait);
        else if (!all)
            writer->waits[left++] = wait;
    }
    writer->wait_count = left;
}

// Notes an operation and its waits. Of each queue the last 1,024 operations are remembered; a wait for an older one gets
// no arrow. False if out of memory.
static bool add_arrows(weir_trace_writer *writer, const struct weir_trace_operation *operation)
{
    // An arrow must begin within its row, so before the row's end.
    const struct point point = {
        .sequence = operation->sequence,
        .last_ns =
            operation->end_ns > operation->start_ns ? operation->end_ns - 1 : operation->start_ns,
    };
    struct queue *queue = queue_of(writer, operation->queue);
    if (!queue || !add_point(queue, &point))
        return false;
    for (size_t i = 0; i < operation->wait_count; i++) {
        const struct weir_trace_wait *wait = &operation->waits[i];
        if (wait->queue == operation->queue)
            continue;
        struct waiting *waits =
            weir_grow(writer->waits, writer->wait_count, &writer->wait_capacity, sizeof *waits);
        if (!waits)
            return false;
        writer->waits = waits;
        waits[writer->wait_count++] =
            (struct waiting){wait->queue, wait->sequence, operation->queue, operation->start_ns};
    }
    return true;
}

void weir_trace_writer_operation(weir_trace_writer *writer,
                                 const struct weir_trace_operation *operation)
{
    const uint32_t device = device_of(writer, operation->queue);
    writer->rows++;
    write_operation(writer, operation, device);
    write_call(writer, operation, device);
    if (operation->timed && !add_arrows(writer, operation))
        fail(writer, "");
    if (writer->rows % DRAW_EVERY == 0 || writer->wait_count >= WAIT_LIMIT)
        draw_known(writer, writer->wait_count >= WAIT_LIMIT);
}

void weir_trace_writer_span(weir_trace_writer *writer, const struct weir_trace_span *span)
{
    struct weir_long_text *out = &writer->out;
    row_begin(out, "X", span->name ? span->name : "", writer->process, span->thread);
    weir__out_string_field(out, "cat",
                           span->kind == WEIR_TRACE_SYNC ? "cuda_sync" : "user_annotation");
    put_times(out, span->begin_ns, span->end_ns);
    weir__out_raw(out, ",\"args\":{\"weir.span\":");
    weir__out_string(out, span->kind == WEIR_TRACE_SYNC ? "sync" : "region");
    if (span->number != WEIR_NO_NUMBER)
        weir__out_uint_field(out, "weir.number", span->number);
    weir__out_raw(out, "}");
    end_row(writer);
}

uint64_t weir_trace_writer_bytes(const weir_trace_writer *writer)
{
    return writer->flushed + writer->out.used;
}

bool weir_trace_writer_flush(weir_trace_writer *writer)
{
    flush(writer);
    return !writer->out.failed;
}

// The end.

static void write_end(weir_trace_writer *writer, const struct weir_trace_meta *end)
{
    struct weir_long_text *out = &writer->out;
    row_begin(out, "M", WEIR__TRACE_END_ROW, writer->process, 0);
    weir__out_raw(out, ",\"args\":{\"name\":\"end\"");
    weir__out_fields(out, weir__end_fields, end);
    weir__out_raw(out, "}}\n],\n\"deviceProperties\": [");
    weir__out_raw(out, writer->properties.used ? writer->properties.text : "");
    weir__out_raw(out, "]\n}\n");
    if (writer->properties.failed)
        fail(writer, "");
}

bool weir_trace_writer_close(weir_trace_writer **writer, const struct weir_trace_meta *end,
                             char *message, size_t message_size)
{
    weir_trace_writer *it = *writer;
    draw_known(it, true);
    for (size_t i = 0; i < it->queue_count; i++)
        free(it->queues[i].ring);
    free(it->waits);
    if (!end->truncated)
        write_end(it, end);
    const bool ok = close_file(it, message, message_size);
    release(it);
    *writer = NULL;
    return ok;
}
