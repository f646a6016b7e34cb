// What a report measures of a trace's operations: runs, tables and the summary.
#define _GNU_SOURCE // qsort_r
#include <string.h>

#include "base/text.h"
#include "report/report.h"

// Intervals.

void weir__cover_add(struct weir__cover *it, uint64_t begin, uint64_t end)
{
    if (it->covered > 0 && end > it->begin)
        end = it->begin;
    if (end <= begin)
        return;
    it->covered += end - begin;
    it->begin = begin;
}

// Makes runs from operations: cut to the window, in order, each with its latest start.

static int by_begin(const void *a, const void *b)
{
    const struct weir__run *x = a;
    const struct weir__run *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return x->operation < y->operation ? -1 : x->operation > y->operation;
}

static int by_end(const void *a, const void *b, void *runs)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct weir__run *of = runs;
    if (of[x].end != of[y].end)
        return of[x].end < of[y].end ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool is_of_device(const struct weir_trace_operation *operation)
{
    return operation->kind != WEIR_TRACE_HOST_CALL;
}

uint64_t weir__first_start(const struct weir_trace *trace)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < trace->operation_count; i++) {
        const struct weir_trace_operation *it = &trace->operations[i];
        if (it->timed && it->engine != WEIR_ENGINE_NONE && is_of_device(it) && it->start_ns < first)
            first = it->start_ns;
    }
    return first == UINT64_MAX ? 0 : first;
}

static void add_run(weir_report *report, size_t index, uint64_t from, uint64_t to)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_trace_operation *operation = &trace->operations[index];
    const uint64_t begin = operation->start_ns > from ? operation->start_ns : from;
    const uint64_t end = operation->end_ns < to ? operation->end_ns : to;
    const uint64_t latest = operation->latest_start_ns < end ? operation->latest_start_ns : end;
    if (!operation->timed) {
        report->summary.untimed++;
        return;
    }
    if (operation->engine == WEIR_ENGINE_NONE)
        return;
    if (operation->end_ns < from || operation->start_ns > to || end < begin)
        return;
    const size_t device = trace->queues[operation->queue_index].device_index;
    const uint32_t lane = (uint32_t)device * WEIR_ENGINE_COUNT + operation->engine;
    report->lane_used[lane] = true;
    report->runs[report->run_count++] = (struct weir__run){
        .begin = begin,
        .certain = latest > begin ? latest : begin,
        .end = end,
        .operation = index,
        .lane = lane,
        .of_device = is_of_device(operation),
    };
}

static bool make_runs(weir_report *report)
{
    const struct weir_trace *trace = report->trace;
    const uint64_t to = report->params.to_ns ? report->params.to_ns : UINT64_MAX;
    report->runs = malloc((trace->operation_count + 1) * sizeof *report->runs);
    report->run_of = calloc(trace->operation_count + 1, sizeof *report->run_of);
    report->lane_count = trace->device_count * WEIR_ENGINE_COUNT;
    report->lane_used = calloc(report->lane_count + 1, sizeof *report->lane_used);
    report->origin_ns = weir__first_start(trace);
    if (!report->runs || !report->run_of || !report->lane_used)
        return false;
    for (size_t i = 0; i < trace->operation_count; i++)
        add_run(report, i, report->params.from_ns, to);
    return true;
}

static bool find_before(weir_report *report)
{
    uint32_t *last = calloc(report->lane_count + 1, sizeof *last);
    if (!last)
        return false;
    for (size_t i = 0; i < report->run_count; i++) {
        uint32_t *latest = &last[report->runs[i].lane];
        report->runs[i].before = *latest;
        if (*latest == 0 || report->runs[i].end >= report->runs[*latest - 1].end)
            *latest = (uint32_t)i + 1;
    }
    free(last);
    return true;
}

static void find_span(weir_report *report)
{
    struct weir_report_summary *summary = &report->summary;
    summary->begin_ns = UINT64_MAX;
    summary->exact = true;
    summary->operations = report->run_count;
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        report->run_of[run->operation] = (uint32_t)i + 1;
        if (!run->of_device)
            continue;
        if (run->begin < summary->begin_ns)
            summary->begin_ns = run->begin;
        if (run->end > summary->end_ns)
            summary->end_ns = run->end;
        if (run->certain > run->begin)
            summary->exact = false;
    }
    if (summary->begin_ns == UINT64_MAX)
        summary->begin_ns = 0;
    summary->span_ns = summary->end_ns - summary->begin_ns;
}

static bool measure_runs(weir_report *report)
{
    if (report->trace->operation_count >= UINT32_MAX || !make_runs(report))
        return false;
    qsort(report->runs, report->run_count, sizeof *report->runs, by_begin);
    report->by_end = malloc((report->run_count + 1) * sizeof *report->by_end);
    if (!report->by_end || !find_before(report))
        return false;
    for (size_t i = 0; i < report->run_count; i++)
        report->by_end[i] = (uint32_t)i;
    qsort_r(report->by_end, report->run_count, sizeof *report->by_end, by_end, report->runs);
    find_span(report);
    return true;
}

static const struct weir_trace_operation *operation_of(const weir_report *report,
                                                       const struct weir__run *run)
{
    return &report->trace->operations[run->operation];
}

// A table is a grouping of runs: each run belongs to one row, or to none. In one pass over the runs each row keeps its
// unions, with their earliest and with their latest starts.

struct group {
    struct weir__cover most;
    struct weir__cover least;
    struct weir_report_row row;
};

#define NO_GROUP UINT32_MAX

// A region's path without numbers: "frame 12/texture" is "frame/texture".
static struct weir_trace_name region_family(const char *region)
{
    struct weir_trace_name family;
    size_t used = 0;
    while (*region) {
        const size_t length = strcspn(region, "/");
        size_t kept = length;
        while (kept > 0 && region[kept - 1] >= '0' && region[kept - 1] <= '9')
            kept--;
        // "frame 12" without its number, but all of "frame12", "12" and "frame".
        kept = kept < length && kept > 1 && region[kept - 1] == ' ' ? kept - 1 : length;
        for (size_t i = 0; i < kept && used + 1 < sizeof family.text; i++)
            family.text[used++] = region[i];
        region += length;
        if (*region && used + 1 < sizeof family.text)
            family.text[used++] = '/';
        if (*region)
            region++;
    }
    family.text[used] = '\0';
    return family;
}

struct weir_trace_name weir__run_name(const weir_report *report, weir_report_table table,
                                      const struct weir__run *run)
{
    struct weir_trace_name kind;
    const struct weir_trace_operation *operation = operation_of(report, run);
    switch (table) {
    case WEIR_REPORT_QUEUES:
        return weir_trace_queue_name(&report->trace->queues[operation->queue_index]);
    case WEIR_REPORT_KINDS:
        snprintf(kind.text, sizeof kind.text, "%s", weir_trace_kind_name(operation->kind));
        return kind;
    case WEIR_REPORT_REGIONS:
        return region_family(operation->region);
    default:
        return weir_trace_operation_title(operation);
    }
}

// The run's group: the index of its device or queue, its lane, or the number of its name. False if out of memory.
static bool find_group(weir_report *report, weir_report_table table, const struct weir__run *run,
                       uint32_t *out_group)
{
    *out_group = NO_GROUP;
    if (table == WEIR_REPORT_ENGINES) {
        *out_group = run->lane;
    } else if (table == WEIR_REPORT_DEVICES || table == WEIR_REPORT_QUEUES) {
        if (run->of_device)
            *out_group = table == WEIR_REPORT_DEVICES ? weir__lane_device(run->lane)
                                                      : operation_of(report, run)->queue_index;
    } else {
        const struct weir_trace_name name = weir__run_name(report, table, run);
        const size_t number = *name.text ? weir_names_number(report->names, name.text) : NO_GROUP;
        *out_group = (uint32_t)number;
        return number != SIZE_MAX;
    }
    return true;
}

// How many groups there may be.
static size_t count_groups(const weir_report *report, weir_report_table table)
{
    switch (table) {
    case WEIR_REPORT_DEVICES:
        return report->trace->device_count;
    case WEIR_REPORT_QUEUES:
        return report->trace->queue_count;
    case WEIR_REPORT_ENGINES:
        return report->lane_count;
    default:
        return weir_names_count(report->names);
    }
}

static void fill(const weir_report *report, const uint32_t *group_of, struct group *groups)
{
    for (size_t i = report->run_count; i-- > 0;) {
        const uint32_t index = report->by_end[i];
        const struct weir__run *run = &report->runs[index];
        if (group_of[index] == NO_GROUP)
            continue;
        struct group *group = &groups[group_of[index]];
        weir__cover_add(&group->most, run->begin, run->end);
        weir__cover_add(&group->least, run->certain, run->end);
        group->row.count++;
        group->row.bytes += operation_of(report, run)->bytes;
        group->row.sum.most_ns += run->end - run->begin;
        group->row.sum.least_ns += run->end - run->certain;
        if (run->end - run->begin > group->row.longest_ns)
            group->row.longest_ns = run->end - run->begin;
    }
}

int weir__rows_by_busy(const void *a, const void *b)
{
    const struct weir_report_row *x = &((const struct weir__row *)a)->row;
    const struct weir_report_row *y = &((const struct weir__row *)b)->row;
    if (x->busy.most_ns != y->busy.most_ns)
        return x->busy.most_ns > y->busy.most_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

// What the row is of. Its name is NULL if out of memory.
static void name_row(weir_report *report, weir_report_table table, uint32_t group,
                     struct weir_report_row *row)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_trace_queue *queue;
    switch (table) {
    case WEIR_REPORT_DEVICES:
        row->name = trace->devices[group].name;
        row->device = trace->devices[group].index;
        break;
    case WEIR_REPORT_QUEUES:
        queue = &trace->queues[group];
        row->name = weir_names_keep(report->names, weir_trace_queue_name(queue).text);
        row->device = queue->device;
        row->queue = queue->id;
        break;
    case WEIR_REPORT_ENGINES:
        row->name = weir_trace_engine_name(weir__lane_engine(group));
        row->device = trace->devices[weir__lane_device(group)].index;
        break;
    default:
        row->name = weir_names_text(report->names, group);
        break;
    }
}

// Makes rows of the groups that have runs, in the order of the trace, or of names the busiest first.
static bool make_rows(weir_report *report, weir_report_table table, const struct group *groups,
                      size_t count)
{
    struct weir__rows_of_table *out = &report->tables[table];
    const uint64_t span = report->summary.span_ns;
    out->rows = calloc(count + 1, sizeof *out->rows);
    if (!out->rows)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct group *group = &groups[i];
        struct weir_report_row *row = &out->rows[out->count].row;
        if (group->row.count == 0)
            continue;
        *row = group->row;
        row->busy = (struct weir_report_time){group->least.covered, group->most.covered};
        row->utilisation = span > 0 ? (double)group->most.covered / (double)span : 0;
        name_row(report, table, i, row);
        if (!row->name)
            return false;
        out->count++;
    }
    if (table >= WEIR_REPORT_KINDS)
        qsort(out->rows, out->count, sizeof *out->rows, weir__rows_by_busy);
    return true;
}

static bool measure_table(weir_report *report, weir_report_table table)
{
    uint32_t *group_of = malloc((report->run_count + 1) * sizeof *group_of);
    bool ok = group_of;
    for (size_t i = 0; ok && i < report->run_count; i++)
        ok = find_group(report, table, &report->runs[i], &group_of[i]);
    const size_t count = count_groups(report, table);
    struct group *groups = ok ? calloc(count + 1, sizeof *groups) : NULL;
    if (groups)
        fill(report, group_of, groups);
    ok = groups && make_rows(report, table, groups, count);
    free(groups);
    free(group_of);
    return ok;
}

// The figures of the whole run.

static void measure_breakdown(weir_report *report, uint64_t *out_busy)
{
    struct weir_report_summary *summary = &report->summary;
    struct weir__cover all = {0};
    struct weir__cover compute = {0};
    for (size_t i = report->run_count; i-- > 0;) {
        const struct weir__run *run = &report->runs[report->by_end[i]];
        const char *name = operation_of(report, run)->name;
        if (run->of_device)
            weir__cover_add(&all, run->begin, run->end);
        // As HTA distinguishes them, by the name only.
        if (weir__lane_engine(run->lane) == WEIR_ENGINE_KERNELS &&
            !weir_trace_is_communication(name) && !strstr(name, "Memcpy") &&
            !strstr(name, "Memset"))
            weir__cover_add(&compute, run->begin, run->end);
    }
    *out_busy = all.covered;
    summary->idle_ns = summary->span_ns - all.covered;
    summary->compute_ns = compute.covered;
    summary->non_compute_ns = all.covered - compute.covered;
}

// The rows of engines are in the order of those lanes that are used.
static void measure_bound(weir_report *report)
{
    struct weir_report_summary *summary = &report->summary;
    const struct weir__row *next = report->tables[WEIR_REPORT_ENGINES].rows;
    summary->bound_engine = "";
    for (uint32_t i = 0; i < report->lane_count; i++) {
        if (!report->lane_used[i])
            continue;
        const struct weir_report_row *row = &next++->row;
        if (weir__lane_engine(i) == WEIR_ENGINE_HOST || row->busy.most_ns <= summary->bound_ns)
            continue;
        summary->bound_ns = row->busy.most_ns;
        summary->bound_device = row->device;
        summary->bound_engine = row->name;
        report->bound_lane = i;
    }
    if (summary->bound_ns > 0)
        summary->bound_distance = (double)summary->span_ns / (double)summary->bound_ns;
}

// A device may run more at once than its limits promise: then it is not serial.
static void find_serial(weir_report *report, uint64_t sum, uint64_t busy)
{
    const struct weir_trace *trace = report->trace;
    const struct weir__rows_of_table *devices = &report->tables[WEIR_REPORT_DEVICES];
    report->summary.serial_reason = report->serial_reason;
    if (sum > busy || devices->count != 1)
        return;
    for (size_t i = 0; i < trace->device_count; i++) {
        const struct weir_trace_device *device = &trace->devices[i];
        if (device->index == devices->rows[0].row.device && device->copy_engines_to_device == 0 &&
            device->copy_engines_to_host == 0 && device->concurrent_kernels == 1)
            snprintf(report->serial_reason, sizeof report->serial_reason,
                     "%.100s has no copy engine and runs one kernel at a time, and no two "
                     "operations ran at once",
                     *device->name ? device->name : "the device");
    }
}

static void measure_summary(weir_report *report)
{
    struct weir_report_summary *summary = &report->summary;
    const struct weir__rows_of_table *devices = &report->tables[WEIR_REPORT_DEVICES];
    struct weir_report_time sum = {0};
    uint64_t busy;
    measure_breakdown(report, &busy);
    measure_bound(report);
    for (size_t i = 0; i < devices->count; i++) {
        sum.most_ns += devices->rows[i].row.sum.most_ns;
        sum.least_ns += devices->rows[i].row.sum.least_ns;
    }
    if (summary->span_ns > 0) {
        summary->speedup_least = (double)sum.least_ns / (double)summary->span_ns;
        summary->speedup_most = (double)sum.most_ns / (double)summary->span_ns;
    }
    summary->dropped = report->trace->meta.dropped;
    summary->truncated = report->trace->meta.truncated;
    find_serial(report, sum.most_ns, busy);
}

static weir_status measure(weir_report *report)
{
    const struct weir_report_params *params = &report->params;
    report->names = weir_names_create();
    if (!report->names || !measure_runs(report))
        return WEIR_ERROR_OUT_OF_MEMORY;
    if (report->run_count == 0 && (params->from_ns > 0 || params->to_ns > 0))
        return weir__report_fail(
            WEIR_ERROR_INVALID, "choose a window inside it",
            "no operation ran in the window that was asked for; the trace is %s long",
            weir_text_duration((double)report->trace->meta.end_ns).text);
    for (weir_report_table table = WEIR_REPORT_DEVICES; table <= WEIR_REPORT_REGIONS; table++)
        if (!measure_table(report, table))
            return WEIR_ERROR_OUT_OF_MEMORY;
    measure_summary(report);
    return weir__measure_path(report) ? WEIR_OK : WEIR_ERROR_OUT_OF_MEMORY;
}

weir_status weir__report_make(struct weir_trace *trace, const struct weir_report_params *params,
                              weir_report **out_report)
{
    static const struct weir_report_params none = {.struct_size = sizeof none};
    weir_report *report = calloc(1, sizeof *report);
    *out_report = NULL;
    if (!report) {
        weir_trace_destroy(&trace);
        return weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for a report");
    }
    report->trace = trace;
    report->params = params ? *params : none;
    const weir_status status = measure(report);
    if (status == WEIR_OK) {
        *out_report = report;
        return WEIR_OK;
    }
    weir_report_destroy(&report);
    return status == WEIR_ERROR_OUT_OF_MEMORY
               ? weir__report_fail(status, "trace a shorter run, or report on a part of it",
                                   "no memory for a report")
               : status;
}
