// Marks of findings: the trace is read, and written again.
#include "report/mark.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "report/trace.h"

static bool is_at(const struct weir_check_use *use, const struct weir_trace_operation *operation)
{
    return use->line == operation->line && strcmp(use->file, operation->file) == 0;
}

static const struct weir_check_finding *find(const struct weir_findings *findings,
                                             const struct weir_trace_operation *operation)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct weir_check_finding *finding = findings->items[i];
        if ((int)finding->kind < WEIR_CHECK_FIRST_HINT && !finding->suppression &&
            (is_at(&finding->first, operation) || is_at(&finding->second, operation)))
            return finding;
    }
    return NULL;
}

// Returns how many are new.
static uint64_t mark(struct weir_trace *trace, const struct weir_findings *findings)
{
    uint64_t marked = 0;
    for (size_t i = 0; i < trace->operation_count; i++) {
        struct weir_trace_operation *operation = &trace->operations[i];
        if (!operation->timed || *operation->finding || !*operation->file)
            continue;
        const struct weir_check_finding *finding = find(findings, operation);
        if (!finding)
            continue;
        operation->finding_kind = weir_findings_kind_name(finding->kind);
        operation->finding = finding->message;
        operation->remedy = finding->remedy;
        marked++;
    }
    return marked;
}

// Writing. Arrows need the operations of all queues in the order of their ends; those of a queue stay in theirs.

struct turn {
    uint64_t end_ns; // of the queue's operations up to this one
    size_t operation;
};

static int by_end(const void *a, const void *b)
{
    const struct turn *x = a;
    const struct turn *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return x->operation < y->operation ? -1 : x->operation > y->operation;
}

static struct turn *order(const struct weir_trace *trace)
{
    struct turn *turns = malloc((trace->operation_count + 1) * sizeof *turns);
    for (size_t i = 0; turns && i < trace->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        const bool first = i == 0 || it[-1].queue_index != it->queue_index;
        const uint64_t before_ns = first ? 0 : turns[i - 1].end_ns;
        turns[i] = (struct turn){it->end_ns > before_ns ? it->end_ns : before_ns, i};
    }
    if (turns)
        qsort(turns, trace->operation_count, sizeof *turns, by_end);
    return turns;
}

static bool write_trace(const struct weir_trace *trace, const struct turn *turns, const char *path,
                        char *message, size_t message_size)
{
    weir_trace_writer *writer = weir_trace_writer_create(path, &trace->meta, message, message_size);
    if (!writer)
        return false;
    for (size_t i = 0; i < trace->device_count; i++)
        weir_trace_writer_device(writer, &trace->devices[i]);
    for (size_t i = 0; i < trace->queue_count; i++)
        weir_trace_writer_queue(writer, &trace->queues[i]);
    for (size_t i = 0; i < trace->thread_count; i++)
        weir_trace_writer_thread(writer, &trace->threads[i]);
    for (size_t i = 0; i < trace->operation_count; i++)
        weir_trace_writer_operation(writer, &trace->operations[turns[i].operation]);
    for (size_t i = 0; i < trace->span_count; i++)
        weir_trace_writer_span(writer, &trace->spans[i]);
    return weir_trace_writer_close(&writer, &trace->meta, trace->devices, trace->device_count,
                                   message, message_size);
}

static bool put_in_place(const char *part, const char *output, char *message, size_t message_size)
{
    if (rename(part, output) == 0)
        return true;
    weir_text_about(message, message_size, output,
                    "the trace cannot be put there (errno %d); choose another place for it", errno);
    return false;
}

static bool replace(const struct weir_trace *trace, const char *output, char *message,
                    size_t message_size)
{
    const size_t length = strlen(output);
    const bool compressed = length > 3 && strcmp(output + length - 3, ".gz") == 0;
    const size_t size = length + sizeof ".part.gz";
    char *part = malloc(size);
    struct turn *turns = order(trace);
    bool fine = part && turns;
    if (fine) {
        snprintf(part, size, "%s.part%s", output, compressed ? ".gz" : "");
        fine = write_trace(trace, turns, part, message, message_size) &&
               put_in_place(part, output, message, message_size);
        if (!fine)
            unlink(part);
    } else {
        weir_text_about(message, message_size, output, "there is no memory to write it");
    }
    free(part);
    free(turns);
    return fine;
}

bool weir_trace_mark(const char *path, const struct weir_findings *findings, const char *output,
                     uint64_t *out_marked, char *message, size_t message_size)
{
    struct weir_trace *trace;
    *out_marked = 0;
    if (!weir_trace_read(path, NULL, &trace, message, message_size))
        return false;
    const bool own = *trace->meta.weir;
    if (own)
        *out_marked = mark(trace, findings);
    else
        weir_text_about(message, message_size, path,
                        "another program's trace has no lines of operations to mark");
    const bool fine = own && replace(trace, output, message, message_size);
    weir_trace_destroy(&trace);
    return fine;
}
