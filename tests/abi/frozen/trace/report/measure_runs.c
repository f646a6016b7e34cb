// Makes runs from operations: cut to the window, in order, each with its latest start.
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/report/report.h"

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

// qsort has no context argument, so keys are stored with the indexes.
struct keyed {
    uint64_t key;
    uint32_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a;
    const struct keyed *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool is_of_device(const struct weir_trace_operation *operation)
{
    return operation->kind != WEIR_TRACE_HOST_CALL;
}

static size_t lane_of(weir_report *report, uint32_t device, enum weir_trace_engine engine)
{
    for (size_t i = report->lane_count; i-- > 0;)
        if (report->lanes[i].device == device && report->lanes[i].engine == engine)
            return i;
    struct weir__lane *lanes =
        realloc(report->lanes, (report->lane_count + 1) * sizeof *report->lanes);
    if (!lanes)
        return WEIR_TRACE_NO_INDEX;
    report->lanes = lanes;
    lanes[report->lane_count] = (struct weir__lane){.device = device, .engine = engine};
    return report->lane_count++;
}

// The device of a queue, as an index into trace.devices, which are few and in order.
static uint32_t device_position(const struct weir_trace *trace, uint32_t index)
{
    size_t low = 0;
    size_t high = trace->device_count;
    while (low + 1 < high) {
        const size_t middle = low + (high - low) / 2;
        if (trace->devices[middle].index <= index)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static bool add_run(weir_report *report, size_t index, uint64_t from, uint64_t to)
{
    const struct weir_trace *trace = report->trace;
    const struct weir_trace_operation *operation = &trace->operations[index];
    const uint64_t begin = operation->start_ns > from ? operation->start_ns : from;
    const uint64_t end = operation->end_ns < to ? operation->end_ns : to;
    if (!operation->timed) {
        report->summary.untimed++;
        return true;
    }
    if (operation->engine == WEIR_ENGINE_NONE)
        return true;
    if (is_of_device(operation) && operation->start_ns < report->origin_ns)
        report->origin_ns = operation->start_ns;
    if (operation->end_ns < from || operation->start_ns > to || end < begin)
        return true;
    const uint32_t device = device_position(trace, trace->queues[operation->queue_index].device);
    const size_t lane = lane_of(report, device, operation->engine);
    if (lane == WEIR_TRACE_NO_INDEX)
        return false;
    report->runs[report->run_count++] = (struct weir__run){
        .begin = begin,
        .certain = begin,
        .end = end,
        .operation = index,
        .lane = (uint32_t)lane,
        .of_device = is_of_device(operation),
    };
    return true;
}

static bool make_runs(weir_report *report)
{
    const struct weir_trace *trace = report->trace;
    const uint64_t to = report->params.to_ns ? report->params.to_ns : UINT64_MAX;
    report->runs = malloc((trace->operation_count + 1) * sizeof *report->runs);
    report->run_of = calloc(trace->operation_count + 1, sizeof *report->run_of);
    report->origin_ns = UINT64_MAX;
    if (!report->runs || !report->run_of)
        return false;
    for (size_t i = 0; i < trace->operation_count; i++)
        if (!add_run(report, i, report->params.from_ns, to))
            return false;
    if (report->origin_ns == UINT64_MAX)
        report->origin_ns = 0;
    return true;
}

static bool sort_lanes(weir_report *report)
{
    struct keyed *keys = malloc((report->run_count + 1) * sizeof *keys);
    size_t *next = calloc(report->lane_count + 1, sizeof *next);
    bool ok = keys && next;
    // The end of each lane's part of `keys`, after all of it is filled.
    for (size_t i = 0; ok && i < report->run_count; i++)
        next[report->runs[i].lane + 1]++;
    for (size_t i = 0; ok && i < report->lane_count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; ok && i < report->run_count; i++)
        keys[next[report->runs[i].lane]++] = (struct keyed){report->runs[i].end, (uint32_t)i};
    for (size_t i = 0; ok && i < report->lane_count; i++) {
        struct weir__lane *lane = &report->lanes[i];
        const size_t first = i > 0 ? next[i - 1] : 0;
        lane->count = next[i] - first;
        free(lane->by_end);
        lane->by_end = malloc((lane->count + 1) * sizeof *lane->by_end);
        ok = lane->by_end != NULL;
        qsort(keys + first, lane->count, sizeof *keys, by_key);
        for (size_t k = 0; ok && k < lane->count; k++)
            lane->by_end[k] = keys[first + k].index;
    }
    free(keys);
    free(next);
    return ok;
}

static void find_exclusive(weir_report *report)
{
    for (size_t i = 0; i < report->lane_count; i++) {
        struct weir__lane *lane = &report->lanes[i];
        const struct weir_trace_device *device = &report->trace->devices[lane->device];
        if (lane->engine == WEIR_ENGINE_TO_DEVICE)
            lane->exclusive = device->copy_engines_to_device <= 1;
        else if (lane->engine == WEIR_ENGINE_TO_HOST)
            lane->exclusive = device->copy_engines_to_host <= 1;
        else if (lane->engine == WEIR_ENGINE_KERNELS)
            lane->exclusive = device->concurrent_kernels == 1;
    }
}

// Determines the latest start of runs of which only a lower bound of the start is known: the last
// end of another run on the engine before the run's own end. In a direction with one engine this is
// the exact start.
static void find_certain(weir_report *report)
{
    for (size_t i = 0; i < report->lane_count; i++) {
        const struct weir__lane *lane = &report->lanes[i];
        const bool copies =
            lane->engine == WEIR_ENGINE_TO_DEVICE || lane->engine == WEIR_ENGINE_TO_HOST;
        uint64_t last_end = 0;    // of the runs with an end before this one's
        uint64_t current_end = 0; // of the run before
        for (size_t k = 0; k < lane->count; k++) {
            struct weir__run *run = &report->runs[lane->by_end[k]];
            if (k > 0 && run->end > current_end)
                last_end = current_end;
            current_end = run->end;
            if (!report->trace->operations[run->operation].start_is_earliest)
                continue;
            run->certain = last_end > run->begin ? last_end : run->begin;
            if (copies && lane->exclusive)
                run->begin = run->certain;
        }
    }
}

// The indexes refer to an order of runs that changes when starts move.
static void drop_lane_orders(weir_report *report)
{
    for (size_t i = 0; i < report->lane_count; i++) {
        free(report->lanes[i].by_end);
        report->lanes[i].by_end = NULL;
    }
}

// The runs' indexes by one of their times, or NULL if out of memory.
static uint32_t *order_by(const weir_report *report, bool certain)
{
    struct keyed *keys = malloc((report->run_count + 1) * sizeof *keys);
    uint32_t *order = malloc((report->run_count + 1) * sizeof *order);
    if (!keys || !order) {
        free(keys);
        free(order);
        return NULL;
    }
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        keys[i] = (struct keyed){certain ? run->certain : run->end, (uint32_t)i};
    }
    qsort(keys, report->run_count, sizeof *keys, by_key);
    for (size_t i = 0; i < report->run_count; i++)
        order[i] = keys[i].index;
    free(keys);
    return order;
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

bool weir__measure_runs(weir_report *report)
{
    if (report->trace->operation_count >= UINT32_MAX || !make_runs(report))
        return false;
    qsort(report->runs, report->run_count, sizeof *report->runs, by_begin);
    if (!sort_lanes(report))
        return false;
    find_exclusive(report);
    find_certain(report);
    drop_lane_orders(report);
    // Copies whose start is exact now may begin later than before.
    qsort(report->runs, report->run_count, sizeof *report->runs, by_begin);
    report->by_certain = order_by(report, true);
    report->by_end = order_by(report, false);
    if (!report->by_certain || !report->by_end || !find_before(report))
        return false;
    find_span(report);
    return true;
}
