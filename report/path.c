// What holds operations up: what had to end before each, the critical path, and the gaps of devices.
#include <inttypes.h>

#include "base/text.h"
#include "report/report.h"

// The operations that had to end before another could begin, and descriptions of operations.

struct before {
    uint64_t submitted; // when the operation was
    size_t queue;       // the operation before it in its queue, or WEIR_TRACE_NO_INDEX
    size_t waited;      // the operation that was waited for and ended last
    size_t wait;        // the index of that wait
    size_t engine;      // the operation before it on its engine, where that is exclusive
};

// When an operation ended, 0 for WEIR_TRACE_NO_INDEX.
static uint64_t operation_end(const weir_report *report, size_t operation)
{
    if (operation == WEIR_TRACE_NO_INDEX || !report->trace->operations[operation].timed)
        return 0;
    return report->trace->operations[operation].end_ns;
}

static size_t before_in_queue(const weir_report *report, size_t index)
{
    const struct weir_trace_operation *operations = report->trace->operations;
    const size_t first = report->trace->queues[operations[index].queue_index].first_operation;
    while (index-- > first)
        if (operations[index].timed)
            return index;
    return WEIR_TRACE_NO_INDEX;
}

// Whether the engine runs one operation at a time.
static bool is_exclusive(const weir_report *report, uint32_t lane)
{
    const struct weir_trace_device *device = &report->trace->devices[weir__lane_device(lane)];
    switch (weir__lane_engine(lane)) {
    case WEIR_ENGINE_TO_DEVICE:
        return device->copy_engines_to_device <= 1;
    case WEIR_ENGINE_TO_HOST:
        return device->copy_engines_to_host <= 1;
    case WEIR_ENGINE_KERNELS:
        return device->concurrent_kernels == 1;
    default:
        return false;
    }
}

static void before_find(const weir_report *report, const struct weir__run *run,
                        struct before *out_before)
{
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    const uint64_t handed =
        operation->submit_end_ns > 0 ? operation->submit_end_ns : operation->submit_ns;
    *out_before = (struct before){
        // If the driver runs it inside the call, the call's begin counts.
        .submitted = handed <= run->begin ? handed : operation->submit_ns,
        .queue = before_in_queue(report, run->operation),
        .waited = WEIR_TRACE_NO_INDEX,
        // The times of an engine that runs one operation at a time may overlap, if it begins to prepare the
        // next operation early: an operation that had begun before counts, even if it had not ended.
        .engine = run->before > 0 && is_exclusive(report, run->lane)
                      ? report->runs[run->before - 1].operation
                      : WEIR_TRACE_NO_INDEX,
    };
    for (size_t i = 0; i < operation->wait_count; i++) {
        const size_t other = operation->waits[i].operation;
        if (other == WEIR_TRACE_NO_INDEX || other == run->operation ||
            operation_end(report, other) <= operation_end(report, out_before->waited))
            continue;
        out_before->waited = other;
        out_before->wait = i;
    }
}

// "'scale' on queue 'run'", for sentences.
static struct weir_trace_name describe(const weir_report *report, size_t operation)
{
    const struct weir_trace_operation *it = &report->trace->operations[operation];
    struct weir_trace_name name;
    snprintf(name.text, sizeof name.text, "'%.127s' on queue '%.63s'",
             weir_trace_operation_title(it).text,
             weir_trace_queue_name(&report->trace->queues[it->queue_index]).text);
    return name;
}

// The critical path, followed backwards: a cursor moves from the end of the span to its begin, and
// all time that it passes is assigned to an operation, to the host, or to latency.

struct path {
    struct weir__row *rows; // by the numbers of names
    size_t submitting;      // a row
    size_t latency;
    uint64_t host_ns; // not submitted yet, and host calls
    uint64_t latency_ns;
};

static void book(struct path *path, size_t number, uint64_t ns, uint64_t bytes)
{
    struct weir_report_row *row = &path->rows[number].row;
    if (ns == 0)
        return;
    row->count++;
    row->bytes += bytes;
    row->busy.most_ns += ns;
    if (ns > row->longest_ns)
        row->longest_ns = ns;
}

// The interval between the end of the earlier operation and the begin of this one: until the submit
// it is the host's, after that it is latency.
static void book_gap(struct path *path, uint64_t from, uint64_t to, uint64_t submitted)
{
    const uint64_t turn = submitted < from ? from : submitted > to ? to : submitted;
    path->host_ns += turn - from;
    path->latency_ns += to - turn;
    book(path, path->submitting, turn - from, 0);
    book(path, path->latency, to - turn, 0);
}

// Returns the operation that ended last of those that had to end first; of equal ones a wait, which
// explains more than a queue. Only runs that begin earlier count, so that the path ends.
static size_t last_before(const weir_report *report, size_t run, const struct before *before)
{
    const size_t candidates[] = {before->waited, before->queue, before->engine};
    size_t last = WEIR_TRACE_NO_INDEX;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] != WEIR_TRACE_NO_INDEX && report->run_of[candidates[i]] > 0 &&
            report->run_of[candidates[i]] - 1 < run &&
            operation_end(report, candidates[i]) > operation_end(report, last))
            last = candidates[i];
    return last;
}

// The run before this one, in the order of begins, that had ended last when this one was
// submitted: the host may have waited for it. SIZE_MAX: none.
static size_t last_ended(const weir_report *report, size_t run, uint64_t submitted)
{
    if (submitted > report->runs[run].begin)
        submitted = report->runs[run].begin;
    size_t low = 0;
    size_t high = report->run_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (report->runs[report->by_end[middle]].end <= submitted)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && report->by_end[low - 1] >= run)
        low--;
    return low > 0 ? report->by_end[low - 1] : SIZE_MAX;
}

static void walk(const weir_report *report, struct path *path, size_t run_index)
{
    const uint64_t start = report->summary.begin_ns;
    uint64_t cursor = report->summary.end_ns;
    for (;;) {
        const struct weir__run *run = &report->runs[run_index];
        const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
        const uint64_t begin = run->begin > start ? run->begin : start;
        struct before before;
        if (begin < cursor) {
            const struct weir_trace_name name = weir__run_name(report, WEIR_REPORT_NAMES, run);
            book(path, weir_names_find(report->names, name.text), cursor - begin, operation->bytes);
            path->host_ns += run->of_device ? 0 : cursor - begin;
            cursor = begin;
        }
        if (cursor <= start)
            return;
        before_find(report, run, &before);
        const size_t last = last_before(report, run_index, &before);
        size_t next = last == WEIR_TRACE_NO_INDEX ? SIZE_MAX : report->run_of[last] - 1;
        if (next == SIZE_MAX || report->runs[next].end < before.submitted)
            next = last_ended(report, run_index, before.submitted);
        uint64_t end = next == SIZE_MAX ? start : report->runs[next].end;
        end = end > cursor ? cursor : end < start ? start : end;
        book_gap(path, end, cursor, before.submitted);
        cursor = end;
        if (next == SIZE_MAX || cursor <= start)
            return;
        run_index = next;
    }
}

// Keeps the rows of names that are on the path.
static void finish_rows(weir_report *report, size_t names)
{
    struct weir__rows_of_table *table = &report->tables[WEIR_REPORT_PATH];
    const uint64_t span = report->summary.span_ns;
    for (size_t i = 0; i < names; i++) {
        struct weir_report_row row = table->rows[i].row;
        if (row.count == 0)
            continue;
        row.name = weir_names_text(report->names, i);
        row.busy.least_ns = row.busy.most_ns;
        row.sum = row.busy;
        row.utilisation = span > 0 ? (double)row.busy.most_ns / (double)span : 0;
        table->rows[table->count++].row = row;
    }
    qsort(table->rows, table->count, sizeof *table->rows, weir__rows_by_busy);
}

static void judge(struct weir_report_summary *summary, const struct path *path)
{
    const double span = (double)summary->span_ns;
    if (summary->span_ns == 0)
        return;
    summary->host_share = (double)path->host_ns / span;
    summary->latency_share = (double)path->latency_ns / span;
    summary->device_share = 1 - summary->host_share - summary->latency_share;
    summary->verdict = summary->host_share >= 0.5   ? WEIR_REPORT_SUBMIT_BOUND
                       : summary->host_share <= 0.1 ? WEIR_REPORT_DEVICE_BOUND
                                                    : WEIR_REPORT_MIXED;
}

// The names of operations are known.
static bool measure_path(weir_report *report)
{
    struct path path = {.submitting = weir_names_number(report->names, WEIR_REPORT_SUBMITTING),
                        .latency = weir_names_number(report->names, WEIR_REPORT_LATENCY)};
    const size_t names = weir_names_count(report->names);
    size_t last = SIZE_MAX;
    path.rows = report->tables[WEIR_REPORT_PATH].rows = calloc(names + 1, sizeof *path.rows);
    if (!path.rows || path.submitting == SIZE_MAX || path.latency == SIZE_MAX)
        return false;
    for (size_t i = 0; i < report->run_count; i++)
        if (report->runs[i].of_device && report->runs[i].end == report->summary.end_ns)
            last = i;
    if (last != SIZE_MAX && report->summary.span_ns > 0)
        walk(report, &path, last);
    finish_rows(report, names);
    judge(&report->summary, &path);
    return true;
}

// Gaps in the unions of devices, and of the engine that is the bound. One pass finds all of them;
// causes are determined only for the longest, which are kept.

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
    struct gap *items; // at most one for each run, and one at the end
    size_t count;
};

static void add_gap(struct gaps *gaps, struct gap gap)
{
    if (gap.end > gap.begin)
        gaps->items[gaps->count++] = gap;
}

// Of each device, between its first and its last operation, or of the engine that is the bound, in all of the span.
// False if out of memory.
static bool find_gaps(const weir_report *report, bool of_bound, struct gaps *gaps)
{
    const uint32_t bound = weir__lane_device(report->bound_lane);
    uint64_t *ends = calloc(report->trace->device_count + 1, sizeof *ends); // 0: nothing has run
    if (!ends)
        return false;
    ends[bound] = of_bound ? report->summary.begin_ns : 0;
    gaps->count = 0;
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        const uint32_t device = weir__lane_device(run->lane);
        if (!run->of_device || run->end <= run->begin ||
            (of_bound && run->lane != report->bound_lane))
            continue;
        if (of_bound || ends[device] > 0)
            add_gap(gaps, (struct gap){ends[device], run->begin, (uint32_t)i, device});
        if (run->end > ends[device])
            ends[device] = run->end;
    }
    if (of_bound)
        add_gap(gaps, (struct gap){ends[bound], report->summary.end_ns, NO_RUN, bound});
    free(ends);
    return true;
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
    const uint64_t submit = operation->submit_ns > gap->begin ? operation->submit_ns : gap->begin;
    snprintf(text, size, "%s was submitted %s after the last work had ended%s%.64s",
             describe(report, run->operation).text,
             weir_text_duration((double)(submit - gap->begin)).text,
             sync ? "; its thread was in " : "", sync ? sync->name : "");
}

// Finds the cause that delayed the run until shortly before it began.
static void attribute(const weir_report *report, const struct gap *gap,
                      struct weir_report_bubble *bubble, char *text, size_t size)
{
    const struct weir__run *run = &report->runs[gap->next];
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    struct before before;
    before_find(report, run, &before);
    const uint64_t waited = operation_end(report, before.waited);
    const uint64_t queued = operation_end(report, before.queue);
    uint64_t ready = before.submitted;
    bubble->cause = WEIR_REPORT_CAUSE_SUBMIT;
    if (queued >= ready && queued > gap->begin) {
        ready = queued;
        bubble->cause = WEIR_REPORT_CAUSE_QUEUE;
    }
    if (waited >= ready && waited > gap->begin) {
        ready = waited;
        bubble->cause = WEIR_REPORT_CAUSE_WAIT;
    }
    if (ready > run->begin)
        ready = run->begin;
    if (ready < gap->begin || run->begin - ready > ready - gap->begin)
        bubble->cause = WEIR_REPORT_CAUSE_LATENCY;
    const bool wait = bubble->cause == WEIR_REPORT_CAUSE_WAIT;
    bubble->file = wait ? operation->waits[before.wait].file : operation->file;
    bubble->line = wait ? operation->waits[before.wait].line : operation->line;
    if (ready < gap->begin)
        ready = gap->begin;
    if (bubble->cause == WEIR_REPORT_CAUSE_LATENCY)
        snprintf(text, size, "%s was free to run %s before it began",
                 describe(report, run->operation).text,
                 weir_text_duration((double)(run->begin - ready)).text);
    else if (bubble->cause == WEIR_REPORT_CAUSE_SUBMIT)
        say_submit(report, run, gap, text, size);
    else
        snprintf(text, size, wait ? "%s waited for %s" : "%s came after %s in its queue",
                 describe(report, run->operation).text,
                 describe(report, wait ? before.waited : before.queue).text);
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
    bubble->sentence = weir_names_keep(report->names, text);
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
                         &out->items[i].bubble))
            return false;
        out->count++;
    }
    return true;
}

static bool measure_gaps(weir_report *report, struct gaps *gaps)
{
    struct weir_report_summary *summary = &report->summary;
    if (!gaps->items || !find_gaps(report, false, gaps))
        return false;
    summary->bubbles = gaps->count;
    for (size_t i = 0; i < gaps->count; i++) {
        const uint64_t length = gaps->items[i].end - gaps->items[i].begin;
        summary->bubbles_ns += length;
        if (length > summary->longest_bubble_ns)
            summary->longest_bubble_ns = length;
    }
    if (!keep_longest(report, gaps, false))
        return false;
    if (summary->bound_ns == 0)
        return true;
    return find_gaps(report, true, gaps) && keep_longest(report, gaps, true);
}

bool weir__measure_path(weir_report *report)
{
    struct gaps gaps = {.items = malloc((report->run_count + 1) * sizeof *gaps.items)};
    const bool ok = measure_path(report) && measure_gaps(report, &gaps);
    free(gaps.items);
    return ok;
}
