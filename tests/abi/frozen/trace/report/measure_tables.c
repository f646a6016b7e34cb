// A table is a grouping of runs: each run belongs to one row. There are two passes over the runs,
// in the order of their earliest and of their latest starts, and each row keeps its union.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/base/sum.h"
#include "tests/abi/frozen/trace/report/names.h"
#include "tests/abi/frozen/trace/report/report.h"

struct group {
    struct weir__cover most;
    struct weir__cover least;
    struct weir_report_row row;
};

struct grouping {
    uint32_t *group_of; // of each run; NO_GROUP for those in none
    struct group *groups;
    size_t count;
};

#define NO_GROUP UINT32_MAX

static void fill(const weir_report *report, struct grouping *grouping)
{
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        if (grouping->group_of[i] == NO_GROUP)
            continue;
        struct group *group = &grouping->groups[grouping->group_of[i]];
        weir__cover_add(&group->most, run->begin, run->end);
        group->row.count++;
        weir_sum_add(&group->row.bytes, report->trace->operations[run->operation].bytes);
        weir_sum_add(&group->row.sum.most_ns, run->end - run->begin);
        weir_sum_add(&group->row.sum.least_ns, run->end - run->certain);
        if (run->end - run->begin > group->row.longest_ns)
            group->row.longest_ns = run->end - run->begin;
    }
    for (size_t i = 0; i < report->run_count; i++) {
        const uint32_t index = report->by_certain[i];
        const struct weir__run *run = &report->runs[index];
        if (grouping->group_of[index] != NO_GROUP)
            weir__cover_add(&grouping->groups[grouping->group_of[index]].least, run->certain,
                            run->end);
    }
}

int weir__rows_by_busy(const void *a, const void *b)
{
    const struct weir_report_row *x = a;
    const struct weir_report_row *y = b;
    if (x->busy.most_ns != y->busy.most_ns)
        return x->busy.most_ns > y->busy.most_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

// Makes rows of the groups that have runs. Without `sorted` they keep their order.
static bool make_rows(weir_report *report, weir_report_table table, struct grouping *grouping,
                      bool sorted)
{
    struct weir__rows_of_table *out = &report->tables[table];
    const uint64_t span = report->summary.span_ns;
    out->rows = malloc((grouping->count + 1) * sizeof *out->rows);
    if (!out->rows)
        return false;
    fill(report, grouping);
    for (size_t i = 0; i < grouping->count; i++) {
        struct group *group = &grouping->groups[i];
        if (group->row.count == 0)
            continue;
        group->row.busy = (struct weir_report_time){group->least.covered, group->most.covered};
        group->row.utilisation = span > 0 ? (double)group->most.covered / (double)span : 0;
        out->rows[out->count++] = group->row;
    }
    if (sorted)
        qsort(out->rows, out->count, sizeof *out->rows, weir__rows_by_busy);
    return true;
}

static bool begin_grouping(const weir_report *report, struct grouping *grouping, size_t groups)
{
    grouping->count = groups;
    grouping->group_of = malloc((report->run_count + 1) * sizeof *grouping->group_of);
    grouping->groups = calloc(groups + 1, sizeof *grouping->groups);
    return grouping->group_of && grouping->groups;
}

static void end_grouping(struct grouping *grouping)
{
    free(grouping->group_of);
    free(grouping->groups);
}

static const struct weir_trace_operation *operation_of(const weir_report *report, size_t run)
{
    return &report->trace->operations[report->runs[run].operation];
}

// Devices, queues and engines: the groups are known.

static bool measure_devices(weir_report *report)
{
    const struct weir_trace *trace = report->trace;
    struct grouping grouping;
    bool ok = begin_grouping(report, &grouping, trace->device_count);
    for (size_t i = 0; ok && i < trace->device_count; i++) {
        grouping.groups[i].row.name = trace->devices[i].name;
        grouping.groups[i].row.device = trace->devices[i].index;
    }
    for (size_t i = 0; ok && i < report->run_count; i++)
        grouping.group_of[i] =
            report->runs[i].of_device ? report->lanes[report->runs[i].lane].device : NO_GROUP;
    ok = ok && make_rows(report, WEIR_REPORT_DEVICES, &grouping, false);
    end_grouping(&grouping);
    return ok;
}

static bool measure_queues(weir_report *report)
{
    const struct weir_trace *trace = report->trace;
    struct grouping grouping;
    char text[160];
    bool ok = begin_grouping(report, &grouping, trace->queue_count);
    for (size_t i = 0; ok && i < trace->queue_count; i++) {
        struct weir_report_row *row = &grouping.groups[i].row;
        row->name =
            weir__report_keep(report, weir__queue_name(&trace->queues[i], text, sizeof text));
        row->device = trace->queues[i].device;
        row->queue = trace->queues[i].id;
        ok = row->name != NULL;
    }
    for (size_t i = 0; ok && i < report->run_count; i++)
        grouping.group_of[i] =
            report->runs[i].of_device ? operation_of(report, i)->queue_index : NO_GROUP;
    ok = ok && make_rows(report, WEIR_REPORT_QUEUES, &grouping, false);
    end_grouping(&grouping);
    return ok;
}

static int by_lane(const void *a, const void *b)
{
    const struct weir_report_row *x = a;
    const struct weir_report_row *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->queue < y->queue ? -1 : x->queue > y->queue;
}

static bool measure_engines(weir_report *report)
{
    struct grouping grouping;
    bool ok = begin_grouping(report, &grouping, report->lane_count);
    for (size_t i = 0; ok && i < report->lane_count; i++) {
        const struct weir__lane *lane = &report->lanes[i];
        grouping.groups[i].row.name = weir_trace_engine_name(lane->engine);
        grouping.groups[i].row.device = report->trace->devices[lane->device].index;
        grouping.groups[i].row.queue = (uint64_t)lane->engine; // the sort key
    }
    for (size_t i = 0; ok && i < report->run_count; i++)
        grouping.group_of[i] = report->runs[i].lane;
    ok = ok && make_rows(report, WEIR_REPORT_ENGINES, &grouping, false);
    end_grouping(&grouping);
    if (!ok)
        return false;
    struct weir__rows_of_table *table = &report->tables[WEIR_REPORT_ENGINES];
    qsort(table->rows, table->count, sizeof *table->rows, by_lane);
    for (size_t i = 0; i < table->count; i++)
        table->rows[i].queue = 0;
    return true;
}

// Kinds, names and regions: the groups come from the operations.

typedef const char *(*name_function)(const struct weir_trace_operation *operation, char *text,
                                     size_t size);

static const char *kind_name(const struct weir_trace_operation *operation, char *text, size_t size)
{
    snprintf(text, size, "%s", weir_trace_kind_name(operation->kind));
    return text;
}

static const char *region_name(const struct weir_trace_operation *operation, char *text,
                               size_t size)
{
    weir__region_family(operation->region, text, size);
    return text;
}

// Operations without a name, such as those outside of regions, are in no row.
static bool measure_named(weir_report *report, weir_report_table table, name_function name)
{
    struct weir__names *names = weir__names_create();
    struct grouping grouping = {0};
    char text[512];
    uint32_t *numbers = malloc((report->run_count + 1) * sizeof *numbers);
    bool ok = names && numbers;
    for (size_t i = 0; ok && i < report->run_count; i++) {
        const char *it = name(operation_of(report, i), text, sizeof text);
        const size_t number = *it ? weir__names_number(names, it) : NO_GROUP;
        ok = number != SIZE_MAX;
        numbers[i] = (uint32_t)number;
    }
    const size_t count = ok ? weir__names_count(names) : 0;
    ok = ok && begin_grouping(report, &grouping, count);
    for (size_t i = 0; ok && i < count; i++) {
        grouping.groups[i].row.name = weir__report_keep(report, weir__names_text(names, i));
        ok = grouping.groups[i].row.name != NULL;
    }
    if (ok)
        memcpy(grouping.group_of, numbers, report->run_count * sizeof *numbers);
    ok = ok && make_rows(report, table, &grouping, true);
    end_grouping(&grouping);
    free(numbers);
    weir__names_destroy(names);
    return ok;
}

bool weir__measure_tables(weir_report *report)
{
    return measure_devices(report) && measure_queues(report) && measure_engines(report) &&
           measure_named(report, WEIR_REPORT_KINDS, kind_name) &&
           measure_named(report, WEIR_REPORT_NAMES, weir_trace_operation_title) &&
           measure_named(report, WEIR_REPORT_REGIONS, region_name);
}
