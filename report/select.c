// Sets of operations by name, and how much two of them overlap.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"

enum {
    COPIES = 1 << WEIR_ENGINE_TO_DEVICE | 1 << WEIR_ENGINE_TO_HOST | 1 << WEIR_ENGINE_ON_DEVICE
};

static const struct {
    const char *name;
    uint32_t engines;
} engine_sets[] = {
    {"copy", COPIES},
    {"compute", 1 << WEIR_ENGINE_KERNELS},
    {"kernels", 1 << WEIR_ENGINE_KERNELS},
    {"to_device", 1 << WEIR_ENGINE_TO_DEVICE},
    {"h2d", 1 << WEIR_ENGINE_TO_DEVICE},
    {"to_host", 1 << WEIR_ENGINE_TO_HOST},
    {"d2h", 1 << WEIR_ENGINE_TO_HOST},
    {"on_device", 1 << WEIR_ENGINE_ON_DEVICE},
    {"d2d", 1 << WEIR_ENGINE_ON_DEVICE},
    {"host", 1 << WEIR_ENGINE_HOST},
    {"communication", 1 << WEIR_ENGINE_COMMUNICATION},
    {"all", 0},
};

enum {
    SET_COUNT = sizeof engine_sets / sizeof *engine_sets
};

static const char how[] =
    "a set is copy, compute, to_device, to_host, on_device, communication, host, all, "
    "queue:LABEL, name:NAME or region:PATH";

static weir_status refuse(const char *text, const char *nearest)
{
    if (nearest)
        return weir__report_fail(WEIR_ERROR_INVALID, how,
                                 "there is no set of operations '%s'; did you mean '%s'?", text,
                                 nearest);
    return weir__report_fail(WEIR_ERROR_INVALID, how, "there is no set of operations '%s'", text);
}

// The rest of `text` after "PREFIX:", if a row of the table has that name.
static weir_status match(const weir_report *report, weir_report_table table, const char *text,
                         size_t prefix, const char **out_name)
{
    const char *nearest = NULL;
    for (size_t i = 0; i < report->tables[table].count; i++) {
        const char *name = report->tables[table].rows[i].name;
        nearest = weir_text_nearer(text + prefix, nearest, name);
        if (strcmp(name, text + prefix) == 0) {
            *out_name = name;
            return WEIR_OK;
        }
    }
    return refuse(text, nearest);
}

weir_status weir__set_parse(const weir_report *report, const char *text, struct weir__set *out_set)
{
    const char *nearest = NULL;
    *out_set = (struct weir__set){0};
    if (strncmp(text, "queue:", 6) == 0)
        return match(report, WEIR_REPORT_QUEUES, text, 6, &out_set->queue);
    if (strncmp(text, "name:", 5) == 0)
        return match(report, WEIR_REPORT_NAMES, text, 5, &out_set->name);
    if (strncmp(text, "region:", 7) == 0)
        return match(report, WEIR_REPORT_REGIONS, text, 7, &out_set->region);
    for (size_t i = 0; i < SET_COUNT; i++) {
        nearest = weir_text_nearer(text, nearest, engine_sets[i].name);
        if (strcmp(engine_sets[i].name, text) == 0) {
            out_set->engines = engine_sets[i].engines;
            return WEIR_OK;
        }
    }
    return refuse(text, nearest);
}

bool weir__set_has(const weir_report *report, const struct weir__set *set,
                   const struct weir__run *run)
{
    const struct weir_trace_operation *operation = &report->trace->operations[run->operation];
    char text[512];
    if (set->engines)
        return (set->engines >> report->lanes[run->lane].engine & 1) &&
               (run->of_device || set->engines == 1 << WEIR_ENGINE_HOST);
    if (set->queue)
        return run->of_device &&
               strcmp(set->queue, weir__queue_name(&report->trace->queues[operation->queue_index],
                                                   text, sizeof text)) == 0;
    if (set->name)
        return strcmp(set->name, weir_trace_operation_title(operation, text, sizeof text)) == 0;
    if (set->region) {
        weir__region_family(operation->region, text, sizeof text);
        return strcmp(set->region, text) == 0;
    }
    return run->of_device;
}

struct weir_report_time weir__set_busy(const weir_report *report, const struct weir__set *set)
{
    struct weir__cover most = {0};
    struct weir__cover least = {0};
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        if (weir__set_has(report, set, run))
            weir__cover_add(&most, run->begin, run->end);
        run = &report->runs[report->by_certain[i]];
        if (weir__set_has(report, set, run))
            weir__cover_add(&least, run->certain, run->end);
    }
    return (struct weir_report_time){least.covered, most.covered};
}

// Those of two sets, from their latest or their earliest starts.
static void list_members(const weir_report *report, const struct weir__set *first,
                         const struct weir__set *second, bool certain, struct weir__member *members)
{
    for (size_t i = 0; i < report->run_count; i++) {
        const struct weir__run *run = &report->runs[i];
        members[i] = (struct weir__member){
            .begin = certain ? run->certain : run->begin,
            .end = run->end,
            .first = weir__set_has(report, first, run),
            .second = weir__set_has(report, second, run),
        };
    }
}

static void explain(struct weir_report_overlap *overlap, const weir_report *report,
                    const char *first, const char *second)
{
    size_t used = 0;
    const char *empty = overlap->first.most_ns == 0    ? first
                        : overlap->second.most_ns == 0 ? second
                                                       : NULL;
    if (empty)
        weir_text_append(overlap->reason, sizeof overlap->reason, &used,
                         "no operation of '%s' took any time", empty);
    else if (*report->summary.serial_reason)
        weir_text_append(overlap->reason, sizeof overlap->reason, &used, "%s",
                         report->summary.serial_reason);
    overlap->applies = *overlap->reason == '\0';
}

static weir_status measure(const weir_report *report, const char *first, const char *second,
                           struct weir_report_overlap *overlap)
{
    struct weir__set sets[2];
    if (!report || !first || !second)
        return weir__report_fail(WEIR_ERROR_INVALID, "", "an overlap needs a report and two sets");
    weir_status status = weir__set_parse(report, first, &sets[0]);
    if (status == WEIR_OK)
        status = weir__set_parse(report, second, &sets[1]);
    if (status != WEIR_OK)
        return status;

    struct weir__member *members = malloc((report->run_count + 1) * sizeof *members);
    bool ok = members != NULL;
    if (ok) {
        list_members(report, &sets[0], &sets[1], false, members);
        ok = weir__intersection(members, report->run_count, &overlap->both.most_ns);
    }
    if (ok) {
        list_members(report, &sets[0], &sets[1], true, members);
        ok = weir__intersection(members, report->run_count, &overlap->both.least_ns);
    }
    free(members);
    if (!ok)
        return weir__report_fail(WEIR_ERROR_OUT_OF_MEMORY, "", "no memory for the overlap");
    overlap->first = weir__set_busy(report, &sets[0]);
    overlap->second = weir__set_busy(report, &sets[1]);
    explain(overlap, report, first, second);
    if (overlap->first.most_ns > 0)
        overlap->least = (double)overlap->both.least_ns / (double)overlap->first.most_ns;
    overlap->most = overlap->both.most_ns == 0 ? 0
                    : overlap->both.most_ns >= overlap->first.least_ns
                        ? 1
                        : (double)overlap->both.most_ns / (double)overlap->first.least_ns;
    return WEIR_OK;
}

weir_status weir_report_get_overlap_sized(const weir_report *report, const char *first,
                                          const char *second,
                                          struct weir_report_overlap *out_overlap, size_t size)
{
    struct weir_report_overlap overlap = {.applies = false};
    const weir_status status = measure(report, first, second, &overlap);
    weir_sized_write(out_overlap, size, &overlap, sizeof overlap);
    return status;
}
