// The operations that had to end before another could begin, and descriptions of operations.
#include <stdio.h>
#include <string.h>

#include "tests/abi/frozen/trace/report/report.h"

uint64_t weir__operation_end(const weir_report *report, size_t operation)
{
    if (operation == WEIR_TRACE_NO_INDEX || !report->trace->operations[operation].timed)
        return 0;
    return report->trace->operations[operation].end_ns;
}

// Nodes of one graph do not wait for each other in the queue.
static size_t before_in_queue(const weir_report *report, size_t index)
{
    const struct weir_trace_operation *operations = report->trace->operations;
    const struct weir_trace_queue *queue = &report->trace->queues[operations[index].queue_index];
    size_t at = index;
    while (at > queue->first_operation) {
        at--;
        if (operations[at].sequence < operations[index].sequence && operations[at].timed)
            return at;
    }
    return WEIR_TRACE_NO_INDEX;
}

// The times of an engine that runs one operation at a time may overlap, if it begins to prepare the
// next operation early: an operation that had begun before counts, even if it had not ended.
static size_t before_on_engine(const weir_report *report, const struct weir__run *run)
{
    if (!report->lanes[run->lane].exclusive || run->before == 0)
        return WEIR_TRACE_NO_INDEX;
    return report->runs[run->before - 1].operation;
}

void weir__before_find(const weir_report *report, const struct weir__run *run,
                       struct weir__before *out_before)
{
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    const uint64_t handed =
        operation->submit_end_ns > 0 ? operation->submit_end_ns : operation->submit_ns;
    *out_before = (struct weir__before){
        // If the driver runs it inside the call, the call's begin counts.
        .submitted = handed <= run->begin ? handed : operation->submit_ns,
        .queue = before_in_queue(report, run->operation),
        .waited = WEIR_TRACE_NO_INDEX,
        .engine = before_on_engine(report, run),
    };
    for (size_t i = 0; i < operation->wait_count; i++) {
        const size_t other = operation->waits[i].operation;
        if (other == WEIR_TRACE_NO_INDEX || other == run->operation ||
            weir__operation_end(report, other) <= weir__operation_end(report, out_before->waited))
            continue;
        out_before->waited = other;
        out_before->wait = i;
    }
}

const char *weir__queue_name(const struct weir_trace_queue *queue, char *text, size_t size)
{
    if (*queue->label)
        snprintf(text, size, "%s", queue->label);
    else
        snprintf(text, size, "queue %llu", (unsigned long long)queue->id);
    return text;
}

const char *weir__describe(const weir_report *report, size_t operation, char *text, size_t size)
{
    const struct weir_trace_operation *it = &report->trace->operations[operation];
    char title[128];
    char queue[64];
    snprintf(text, size, "'%s' on queue '%s'", weir_trace_operation_title(it, title, sizeof title),
             weir__queue_name(&report->trace->queues[it->queue_index], queue, sizeof queue));
    return text;
}

// Whether the part of the path that begins at `part` and has `length` characters ends in a separate
// number: "frame 12".
static size_t without_number(const char *part, size_t length)
{
    size_t end = length;
    while (end > 0 && part[end - 1] >= '0' && part[end - 1] <= '9')
        end--;
    return end < length && end > 1 && part[end - 1] == ' ' ? end - 1 : length;
}

void weir__region_family(const char *region, char *text, size_t size)
{
    size_t used = 0;
    while (*region) {
        const size_t length = strcspn(region, "/");
        const size_t kept = without_number(region, length);
        for (size_t i = 0; i < kept && used + 1 < size; i++)
            text[used++] = region[i];
        region += length;
        if (*region && used + 1 < size)
            text[used++] = '/';
        if (*region)
            region++;
    }
    text[used] = '\0';
}
