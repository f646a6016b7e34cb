// Any bytes given to the reader of traces, and the report of what is one: a refusal is one sentence that begins with
// the file's name, and leaves no trace; queues, operations and waits point to what is there, and stand in order; busy
// times lie in the span, shares between 0 and 1, and idle, compute and the rest add up to the span, as does the path.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

#include "base/file.h"
#include "report/report.h"
#include "tests/fuzz/damage.h"
#include "tests/report/made.h"
#include "tests/support/test.h"

static size_t accepted;

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

// NULL, or the rule that is broken.
static const char *check_bytes(const uint8_t *data, size_t size)
{
    struct weir_trace *trace = NULL;
    own_report report = NULL;
    char message[512] = "";
    const char *path = damage_file(data, size);
    if (!path)
        return "the file cannot be written";
    if (!weir_trace_read(path, NULL, &trace, message, sizeof message)) {
        if (trace)
            return "a refusal left a trace";
        return strncmp(message, path, strlen(path)) == 0 && !strchr(message, '\n')
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
    return check_report(report);
}

enum {
    ROUNDS = 4000,
    SEEDS = 12,
    GROWTH = 4096
};

static const char *const pieces[] = {
    "\n",
    "},\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "-",
    "9",
    "0",
    "e99",
    "null",
    "true",
    "1e308",
    "-1",
    ".5",
    "\xff",
    "\x01",
    "\\u0",
    "\"ph\":",
    "\"ts\":",
    "\"tid\":",
    "\"pid\":",
    "\"weir\": {}",
    "9223372036854775807",
    "99999999999999999999",
    "[[1,2,3,\"\",4]]",
    "\"weir.sequence\":",
    "\"weir.waits\":[[10,1,\"\",1]],",
};

struct seed {
    uint8_t *bytes;
    size_t size;
};

static void make_seeds(struct seed seeds[SEEDS])
{
    const char *path = weir_test_path("seed.json");
    for (uint32_t i = 0; i < SEEDS; i++) {
        struct made made;
        void *data = NULL;
        char message[512];
        made_random(&made, i * 31 + 7, 1000);
        // Short ones, so that changes have an effect.
        made.operation_count = made.operation_count < 8 ? made.operation_count : 8;
        made_write(&made, path);
        if (!weir_file_read(path, (size_t)1 << 20, &data, &seeds[i].size, message, sizeof message))
            WEIR_FAIL("%s", message);
        seeds[i].bytes = data;
    }
}

WEIR_TEST(TraceFuzz, DamagedTracesKeepTheRules)
{
    struct seed seeds[SEEDS] = {{0}};
    uint32_t state = 20261121;
    make_seeds(seeds);
    for (size_t round = 0; round < ROUNDS && !weir_test_has_failed(); round++) {
        const struct seed *seed = &seeds[round % SEEDS];
        struct damaged text = {.bytes = malloc(seed->size + GROWTH),
                               .size = seed->size,
                               .room = seed->size + GROWTH};
        ASSERT_NOT_NULL(text.bytes);
        memcpy(text.bytes, seed->bytes, seed->size);
        for (size_t i = damage_below(&state, 4) + 1; i > 0; i--)
            damage_change(&text, &state, pieces, sizeof pieces / sizeof *pieces);
        const char *broken = damage_check(check_bytes, text.bytes, text.size);
        if (broken)
            weir_test_fail(__FILE__, __LINE__, "round %zu: %s in:\n%.*s", round, broken,
                           (int)text.size, (const char *)text.bytes);
        free(text.bytes);
    }
    EXPECT_UINT_GT(accepted, ROUNDS / 20);
    EXPECT_UINT_LT(accepted, ROUNDS);
    for (size_t i = 0; i < SEEDS; i++)
        free(seeds[i].bytes);
}

// Values that are no text of a trace, at every place of one.
WEIR_TEST(TraceFuzz, BytesOfAnyKindKeepTheRules)
{
    static const char huge[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (\","
        "\"ts\":1e300,\"dur\":1e300,\"args\":{\"device\":4294967295,\"stream\":1e18}}]}";
    static const char *const texts[] = {
        "{\"traceEvents\": []}",
        "[]",
        "[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":2,\"args\":{\"stream\":1}}]",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        huge,
        "{\n\"weir\": {\"format\":1},\n\"traceEvents\": [\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t size = 0; size <= strlen(texts[i]); size++)
            EXPECT_NULL(damage_check(check_bytes, (const uint8_t *)texts[i], size));
}
