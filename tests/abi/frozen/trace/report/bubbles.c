// Gaps in the unions of devices, and of the engine that is the bound. One pass finds all of them;
// causes are determined only for the longest, which are kept.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/base/sum.h"
#include "tests/abi/frozen/trace/base/text.h"
#include "tests/abi/frozen/trace/report/report.h"

enum {
    DEFAULT_LIMIT = 100,
    NO_RUN = UINT32_MAX
};

struct gap {
    uint64_t begin;
    uint64_t end;
    uint32_t next;   // the run after it, or NO_RUN
    uint32_t device; // index into trace.devices
};

struct gaps {
    struct gap *items;
    size_t count;
    size_t capacity;
};

static bool add_gap(struct gaps *gaps, struct gap gap)
{
    if (gap.end <= gap.begin)
        return true;
    if (gaps->count == gaps->capacity) {
        const size_t capacity = gaps->capacity ? 2 * gaps->capacity : 256;
        struct gap *items = realloc(gaps->items, capacity * sizeof *items);
        if (!items)
            return false;
        gaps->items = items;
        gaps->capacity = capacity;
    }
    gaps->items[gaps->count++] = gap;
    return true;
}

// Of each device, between its first and its last operation.
static bool find_device_gaps(const weir_report *report, struct gaps *gaps)
{
    struct weir__cover *unions = calloc(report->trace->device_count + 1, sizeof *unions);
    bool ok = unions != NULL;
    for (size_t i = 0; ok && i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        const uint32_t device = report->lanes[run->lane].device;
        if (!run->of_device || run->end <= run->begin)
            continue;
        if (unions[device].any)
            ok = add_gap(gaps, (struct gap){unions[device].end, run->begin, (uint32_t)i, device});
        weir__cover_add(&unions[device], run->begin, run->end);
    }
    free(unions);
    return ok;
}

// Of the engine that is the bound, in all of the span.
static bool find_bound_gaps(const weir_report *report, struct gaps *gaps)
{
    uint64_t at = report->summary.begin_ns;
    const uint32_t device = report->lane_count ? report->lanes[report->bound_lane].device : 0;
    bool ok = true;
    for (size_t i = 0; ok && i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        if (run->lane != report->bound_lane || !run->of_device || run->end <= run->begin)
            continue;
        if (run->begin > at)
            ok = add_gap(gaps, (struct gap){at, run->begin, (uint32_t)i, device});
        if (run->end > at)
            at = run->end;
    }
    return ok && add_gap(gaps, (struct gap){at, report->summary.end_ns, NO_RUN, device});
}

static int by_length(const void *a, const void *b)
{
    const struct gap *x = a;
    const struct gap *y = b;
    const uint64_t length_x = x->end - x->begin;
    const uint64_t length_y = y->end - y->begin;
    if (length_x != length_y)
        return length_x > length_y ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

// The innermost span of a thread around a moment.
static const struct weir_trace_span *span_at(const weir_report *report, uint64_t thread,
                                             uint64_t ns, enum weir_trace_span_kind kind)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_trace_span *found = NULL;
    size_t low = 0;
    size_t high = trace->span_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct weir_trace_span *span = &trace->spans[middle];
        if (span->thread < thread || (span->thread == thread && span->begin_ns <= ns))
            low = middle + 1;
        else
            high = middle;
    }
    // An operation long before is not worth naming.
    for (size_t i = 0; i < 64 && low > 0 && trace->spans[low - 1].thread == thread; i++, low--)
        if (trace->spans[low - 1].kind == kind && trace->spans[low - 1].end_ns > ns) {
            found = &trace->spans[low - 1];
            break;
        }
    return found;
}

static void say_submit(const weir_report *report, const struct weir__run *run,
                       const struct gap *gap, char *text, size_t size)
{
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    const struct weir_trace_span *sync =
        span_at(report, operation->thread, gap->begin, WEIR_TRACE_SYNC);
    char name[224];
    char late[WEIR_TEXT_QUANTITY_SIZE];
    const uint64_t submit = operation->submit_ns > gap->begin ? operation->submit_ns : gap->begin;
    snprintf(text, size, "%s was submitted %s after the last work had ended%s%.64s",
             weir__describe(report, run->operation, name, sizeof name),
             weir_text_duration(late, (double)(submit - gap->begin)),
             sync ? "; its thread was in " : "", sync ? sync->name : "");
}

static void say_other(const weir_report *report, const struct weir__run *run, size_t other,
                      bool waited, char *text, size_t size)
{
    char name[224];
    char what[224];
    weir__describe(report, run->operation, name, sizeof name);
    weir__describe(report, other, what, sizeof what);
    snprintf(text, size, waited ? "%s waited for %s" : "%s came after %s in its queue", name, what);
}

// Finds the cause that delayed the run until shortly before it began.
static void attribute(const weir_report *report, const struct gap *gap,
                      struct weir_report_bubble *bubble, char *text, size_t size)
{
    const struct weir__run *run = &report->runs[gap->next];
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    struct weir__before before;
    char name[224];
    char ready_text[WEIR_TEXT_QUANTITY_SIZE];
    weir__before_find(report, run, &before);
    const uint64_t waited = weir__operation_end(report, before.waited);
    const uint64_t queued = weir__operation_end(report, before.queue);
    uint64_t ready = before.submitted;
    bubble->cause = WEIR_REPORT_CAUSE_SUBMIT;
    bubble->file = operation->file;
    bubble->line = operation->line;
    if (queued >= ready && queued > gap->begin) {
        ready = queued;
        bubble->cause = WEIR_REPORT_CAUSE_QUEUE;
    }
    if (waited >= ready && waited > gap->begin) {
        ready = waited;
        bubble->cause = WEIR_REPORT_CAUSE_WAIT;
        bubble->file = operation->waits[before.wait].file;
        bubble->line = operation->waits[before.wait].line;
    }
    if (ready > run->begin)
        ready = run->begin;
    if (ready < gap->begin || run->begin - ready > ready - gap->begin) {
        const uint64_t free_since = ready < gap->begin ? gap->begin : ready;
        bubble->cause = WEIR_REPORT_CAUSE_LATENCY;
        bubble->file = operation->file;
        bubble->line = operation->line;
        snprintf(text, size, "%s was free to run %s before it began",
                 weir__describe(report, run->operation, name, sizeof name),
                 weir_text_duration(ready_text, (double)(run->begin - free_since)));
    } else if (bubble->cause == WEIR_REPORT_CAUSE_SUBMIT) {
        say_submit(report, run, gap, text, size);
    } else {
        const bool wait = bubble->cause == WEIR_REPORT_CAUSE_WAIT;
        say_other(report, run, wait ? before.waited : before.queue, wait, text, size);
    }
}

static bool make_bubble(weir_report *report, const struct gap *gap, const char *engine,
                        struct weir_report_bubble *bubble)
{
    char text[640];
    *bubble = (struct weir_report_bubble){
        .begin_ns = gap->begin,
        .end_ns = gap->end,
        .device = report->trace->devices[gap->device].index,
        .engine = engine,
        .file = "",
    };
    if (gap->next == NO_RUN)
        snprintf(text, sizeof text, "nothing more was submitted for this engine");
    else
        attribute(report, gap, bubble, text, sizeof text);
    bubble->sentence = weir__report_keep(report, text);
    return bubble->sentence != NULL;
}

static bool keep_longest(weir_report *report, struct gaps *gaps, bool of_bound)
{
    struct weir__bubbles *out = &report->bubbles[of_bound];
    const size_t limit = report->params.bubble_limit ? report->params.bubble_limit : DEFAULT_LIMIT;
    const size_t count = gaps->count < limit ? gaps->count : limit;
    if (gaps->count > 1)
        qsort(gaps->items, gaps->count, sizeof *gaps->items, by_length);
    out->items = calloc(count + 1, sizeof *out->items);
    if (!out->items)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!make_bubble(report, &gaps->items[i], of_bound ? report->summary.bound_engine : "",
                         &out->items[i]))
            return false;
        out->count++;
    }
    return true;
}

static bool measure(weir_report *report, bool of_bound)
{
    struct gaps gaps = {0};
    bool ok = of_bound ? find_bound_gaps(report, &gaps) : find_device_gaps(report, &gaps);
    for (size_t i = 0; ok && !of_bound && i < gaps.count; i++) {
        const uint64_t length = gaps.items[i].end - gaps.items[i].begin;
        report->summary.bubbles++;
        weir_sum_add(&report->summary.bubbles_ns, length);
        if (length > report->summary.longest_bubble_ns)
            report->summary.longest_bubble_ns = length;
    }
    ok = ok && keep_longest(report, &gaps, of_bound);
    free(gaps.items);
    return ok;
}

bool weir__measure_bubbles(weir_report *report)
{
    return measure(report, false) && (report->summary.bound_ns == 0 || measure(report, true));
}
