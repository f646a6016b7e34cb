// The figures of the whole run.
#include <stdio.h>
#include <string.h>

#include "base/sum.h"
#include "report/report.h"

// As HTA distinguishes them, by the name only.
static bool is_compute(const weir_report *report, const struct weir__run *run)
{
    const char *name = report->trace->operations[run->operation].name;
    return report->lanes[run->lane].engine == WEIR_ENGINE_KERNELS &&
           !weir_trace_is_communication(name) && !strstr(name, "Memcpy") && !strstr(name, "Memset");
}

static void measure_breakdown(weir_report *report, uint64_t *out_busy)
{
    struct weir_report_summary *summary = &report->summary;
    struct weir__cover all = {0};
    struct weir__cover compute = {0};
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        if (run->of_device)
            weir__cover_add(&all, run->begin, run->end);
        if (is_compute(report, run))
            weir__cover_add(&compute, run->begin, run->end);
    }
    *out_busy = all.covered;
    summary->idle_ns = summary->span_ns - all.covered;
    summary->compute_ns = compute.covered;
    summary->non_compute_ns = all.covered - compute.covered;
}

static void measure_bound(weir_report *report)
{
    struct weir_report_summary *summary = &report->summary;
    summary->bound_engine = "";
    for (size_t i = 0; i < report->lane_count; i++) {
        const struct weir__lane *lane = &report->lanes[i];
        if (lane->engine == WEIR_ENGINE_HOST)
            continue;
        const struct weir__rows_of_table *table = &report->tables[WEIR_REPORT_ENGINES];
        const uint32_t device = report->trace->devices[lane->device].index;
        const char *name = weir_trace_engine_name(lane->engine);
        for (size_t k = 0; k < table->count; k++) {
            const struct weir_report_row *row = &table->rows[k];
            if (row->device != device || strcmp(row->name, name) != 0 ||
                row->busy.most_ns <= summary->bound_ns)
                continue;
            summary->bound_ns = row->busy.most_ns;
            summary->bound_device = device;
            summary->bound_engine = name;
            report->bound_lane = i;
        }
    }
    if (summary->bound_ns > 0)
        summary->bound_distance = (double)summary->span_ns / (double)summary->bound_ns;
}

static bool tells_of_no_overlap(const struct weir_trace_device *device)
{
    return device->copy_engines_to_device == 0 && device->copy_engines_to_host == 0 &&
           device->concurrent_kernels == 1;
}

// A device may run more at once than its limits promise: then it is not serial.
static void find_serial(weir_report *report, uint64_t sum, uint64_t busy)
{
    const struct weir_trace *trace = report->trace;
    const struct weir__rows_of_table *devices = &report->tables[WEIR_REPORT_DEVICES];
    report->summary.serial_reason = report->serial_reason;
    if (sum > busy || devices->count != 1)
        return;
    for (size_t i = 0; i < trace->device_count; i++)
        if (trace->devices[i].index == devices->rows[0].device &&
            tells_of_no_overlap(&trace->devices[i]))
            snprintf(report->serial_reason, sizeof report->serial_reason,
                     "%.100s has no copy engine and runs one kernel at a time, and no two "
                     "operations ran at once",
                     *trace->devices[i].name ? trace->devices[i].name : "the device");
}

bool weir__measure_summary(weir_report *report)
{
    struct weir_report_summary *summary = &report->summary;
    struct weir_report_time sum = {0};
    uint64_t busy;
    measure_breakdown(report, &busy);
    measure_bound(report);
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        if (!run->of_device)
            continue;
        weir_sum_add(&sum.most_ns, run->end - run->begin);
        weir_sum_add(&sum.least_ns, run->end - run->certain);
    }
    if (summary->span_ns > 0) {
        summary->speedup_least = (double)sum.least_ns / (double)summary->span_ns;
        summary->speedup_most = (double)sum.most_ns / (double)summary->span_ns;
    }
    summary->dropped = report->trace->meta.dropped;
    summary->truncated = report->trace->meta.truncated;
    find_serial(report, sum.most_ns, busy);
    return true;
}
