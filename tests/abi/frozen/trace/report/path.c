// The critical path, followed backwards: a cursor moves from the end of the span to its begin, and
// all time that it passes is assigned to an operation, to the host, or to latency.
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/base/sum.h"
#include "tests/abi/frozen/trace/report/names.h"
#include "tests/abi/frozen/trace/report/report.h"

struct path {
    struct weir__names *names;
    struct weir_report_row *rows;
    size_t capacity;
    uint64_t host_ns; // not submitted yet, and host calls
    uint64_t latency_ns;
};

static struct weir_report_row *row_of(struct path *path, const char *name)
{
    const size_t number = weir__names_number(path->names, name);
    if (number == SIZE_MAX)
        return NULL;
    if (number >= path->capacity) {
        const size_t capacity = path->capacity ? 2 * path->capacity : 64;
        struct weir_report_row *rows = realloc(path->rows, capacity * sizeof *rows);
        if (!rows)
            return NULL;
        memset(rows + path->capacity, 0, (capacity - path->capacity) * sizeof *rows);
        path->rows = rows;
        path->capacity = capacity;
    }
    return &path->rows[number];
}

static bool book(struct path *path, const char *name, uint64_t ns, uint64_t bytes)
{
    struct weir_report_row *row = row_of(path, name);
    if (!row)
        return false;
    row->count++;
    weir_sum_add(&row->bytes, bytes);
    row->busy.most_ns += ns;
    if (ns > row->longest_ns)
        row->longest_ns = ns;
    return true;
}

// The interval between the end of the earlier operation and the begin of this one: until the submit
// it is the host's, after that it is latency.
static bool book_gap(struct path *path, uint64_t from, uint64_t to, uint64_t submitted)
{
    const uint64_t turn = submitted < from ? from : submitted > to ? to : submitted;
    path->host_ns += turn - from;
    path->latency_ns += to - turn;
    return (turn == from || book(path, WEIR_REPORT_SUBMITTING, turn - from, 0)) &&
           (to == turn || book(path, WEIR_REPORT_LATENCY, to - turn, 0));
}

// Returns the operation that ended last of those that had to end first; of equal ones a wait, which
// explains more than a queue. Only runs that begin earlier count, so that the path ends.
static size_t last_before(const weir_report *report, size_t run, const struct weir__before *before)
{
    const size_t candidates[] = {before->waited, before->queue, before->engine};
    size_t last = WEIR_TRACE_NO_INDEX;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] != WEIR_TRACE_NO_INDEX && report->run_of[candidates[i]] > 0 &&
            report->run_of[candidates[i]] - 1 < run &&
            weir__operation_end(report, candidates[i]) > weir__operation_end(report, last))
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

static bool walk(weir_report *report, struct path *path, size_t run_index)
{
    const uint64_t start = report->summary.begin_ns;
    uint64_t cursor = report->summary.end_ns;
    char text[192];
    for (;;) {
        const struct weir__run *run = &report->runs[run_index];
        const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
        const uint64_t begin = run->begin > start ? run->begin : start;
        struct weir__before before;
        if (begin < cursor) {
            if (!book(path, weir_trace_operation_title(operation, text, sizeof text),
                      cursor - begin, operation->bytes))
                return false;
            path->host_ns += run->of_device ? 0 : cursor - begin;
            cursor = begin;
        }
        if (cursor <= start)
            return true;
        weir__before_find(report, run, &before);
        const size_t last = last_before(report, run_index, &before);
        size_t next = last == WEIR_TRACE_NO_INDEX ? SIZE_MAX : report->run_of[last] - 1;
        if (next == SIZE_MAX || report->runs[next].end < before.submitted)
            next = last_ended(report, run_index, before.submitted);
        uint64_t end = next == SIZE_MAX ? start : report->runs[next].end;
        end = end > cursor ? cursor : end < start ? start : end;
        if (!book_gap(path, end, cursor, before.submitted))
            return false;
        cursor = end;
        if (next == SIZE_MAX || cursor <= start)
            return true;
        run_index = next;
    }
}

static bool make_rows(weir_report *report, struct path *path)
{
    struct weir__rows_of_table *table = &report->tables[WEIR_REPORT_PATH];
    const uint64_t span = report->summary.span_ns;
    // Without an operation there is no row, and no array.
    for (size_t i = 0; path->rows && i < weir__names_count(path->names); i++) {
        struct weir_report_row *row = &path->rows[i];
        row->name = weir__report_keep(report, weir__names_text(path->names, i));
        if (!row->name)
            return false;
        row->busy.least_ns = row->busy.most_ns;
        row->sum = row->busy;
        row->utilisation = span > 0 ? (double)row->busy.most_ns / (double)span : 0;
    }
    table->count = weir__names_count(path->names);
    table->rows = path->rows;
    path->rows = NULL;
    if (table->rows)
        qsort(table->rows, table->count, sizeof *table->rows, weir__rows_by_busy);
    return true;
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

bool weir__measure_path(weir_report *report)
{
    struct path path = {.names = weir__names_create()};
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < report->run_count; i++)
        if (report->runs[i].of_device && report->runs[i].end == report->summary.end_ns)
            last = i;
    bool ok = path.names != NULL;
    if (ok && last != SIZE_MAX && report->summary.span_ns > 0)
        ok = walk(report, &path, last);
    ok = ok && make_rows(report, &path);
    judge(&report->summary, &path);
    free(path.rows);
    weir__names_destroy(path.names);
    return ok;
}
