// The check, and the entry point of libFuzzer:
//
//     clang -std=c11 -D_POSIX_C_SOURCE=200809L -I. -Iapi -g -O1
//         -fsanitize=fuzzer,address,undefined tests/fuzz/trace_fuzz.c report/[b-g]*.c
//         report/[i-o]*.c report/pa[t]*.c report/re*.c report/s*.c report/t*.c base/*.c
//         core/*.c -linih -ljansson -lz -ldl -o trace_fuzz
//     ./trace_fuzz -max_len=20000 CORPUS
#include "tests/fuzz/trace_fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

#include "report/report.h"

static size_t accepted;

size_t trace_fuzz_accepted(void)
{
    return accepted;
}

static const char *check_waits(const struct weir_trace *trace,
                               const struct weir_trace_operation *operation)
{
    for (size_t i = 0; i < operation->wait_count; i++) {
        const struct weir_trace_wait *wait = &operation->waits[i];
        if (wait->operation == WEIR_TRACE_NO_INDEX)
            continue;
        if (wait->operation >= trace->operation_count ||
            trace->operations[wait->operation].queue != wait->queue ||
            trace->operations[wait->operation].sequence > wait->sequence)
            return "a wait stands for another operation than it may";
    }
    return NULL;
}

static const char *check_trace(const struct weir_trace *trace)
{
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *operation = &trace->operations[i];
        if (operation->queue_index >= trace->queue_count ||
            trace->queues[operation->queue_index].id != operation->queue)
            return "an operation has no queue";
        const struct weir_trace_queue *queue = &trace->queues[operation->queue_index];
        if (i < queue->first_operation || i >= queue->first_operation + queue->operation_count)
            return "an operation is outside of its queue's";
        if (operation->end_ns < operation->start_ns)
            return "an operation ends before it begins";
        if (i > 0 && operation[-1].queue_index == operation->queue_index &&
            operation[-1].sequence > operation->sequence)
            return "operations of a queue are out of order";
        const char *broken = check_waits(trace, operation);
        if (broken)
            return broken;
    }
    for (size_t i = 0; i < trace->queue_count; i++)
        if (weir_trace_find_queue(trace, trace->queues[i].id) != i)
            return "a queue is not found by its id";
    return NULL;
}

static bool is_share(double value)
{
    return value >= -1e-9 && value <= 1 + 1e-9;
}

static const char *check_summary(const weir_report *report)
{
    const struct weir_report_summary *s = weir_report_get_summary(report);
    uint64_t path = 0;
    if (s->idle_ns + s->compute_ns + s->non_compute_ns != s->span_ns || s->idle_ns > s->span_ns ||
        s->compute_ns > s->span_ns)
        return "idle, compute and the rest are not the span";
    if (s->bound_ns > s->span_ns || s->longest_bubble_ns > s->span_ns)
        return "the bound or a bubble is longer than the span";
    if (!is_share(s->device_share) || !is_share(s->host_share) || !is_share(s->latency_share))
        return "a share of the path is none";
    for (size_t i = 0; i < weir_report_row_count(report, WEIR_REPORT_PATH); i++)
        path += weir_report_get_row(report, WEIR_REPORT_PATH, i)->busy.most_ns;
    return path == s->span_ns ? NULL : "the critical path is not the span";
}

static const char *check_report(const weir_report *report)
{
    const char *broken = check_summary(report);
    for (int table = WEIR_REPORT_DEVICES; table <= WEIR_REPORT_QUEUES && !broken; table++)
        for (size_t i = 0; i < weir_report_row_count(report, (weir_report_table)table); i++) {
            const struct weir_report_row *row =
                weir_report_get_row(report, (weir_report_table)table, i);
            if (row->busy.least_ns > row->busy.most_ns || !is_share(row->utilisation))
                broken = "a row is busy for longer than the span";
        }
    struct weir_report_overlap overlap;
    if (!broken && weir_report_get_overlap(report, "all", "all", &overlap) == WEIR_OK &&
        (!is_share(overlap.least) || !is_share(overlap.most) ||
         overlap.least > overlap.most + 1e-9))
        broken = "an overlap is no share";
    char *text = weir_report_text(report);
    char *json = weir_report_json(report);
    if (!broken && (!text || !json))
        broken = "a report has no text";
    weir_report_free_text(&text);
    weir_report_free_text(&json);
    return broken;
}

const char *trace_fuzz_check(const uint8_t *data, size_t size)
{
    struct weir_trace *trace = NULL;
    weir_report *report = NULL;
    char message[512] = "";
    if (!weir_trace_read_memory("f", data, size, NULL, &trace, message, sizeof message)) {
        if (trace)
            return "a refusal left a trace";
        return strncmp(message, "f: ", 3) == 0 && !strchr(message, '\n')
                   ? NULL
                   : "a refusal does not begin with the file, or is more than a line";
    }
    accepted++;
    const char *broken = check_trace(trace);
    if (broken) {
        weir_trace_destroy(&trace);
        return broken;
    }
    if (weir__report_make(trace, NULL, &report) != WEIR_OK)
        return "a trace has no report";
    broken = check_report(report);
    weir_report_destroy(&report);
    return broken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *broken = trace_fuzz_check(data, size);
    if (broken) {
        fprintf(stderr, "%s\n", broken);
        abort();
    }
    return 0;
}
