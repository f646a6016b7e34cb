// See the header.
#include "report/page_report.h"

#include "report/page_findings.h"

static const char *verdict_text(weir_report_verdict verdict)
{
    switch (verdict) {
    case WEIR_REPORT_DEVICE_BOUND:
        return "device-bound";
    case WEIR_REPORT_SUBMIT_BOUND:
        return "submit-bound";
    case WEIR_REPORT_MIXED:
        return "partly submit-bound, partly device-bound";
    case WEIR_REPORT_NOTHING_RAN:
        break;
    }
    return "empty";
}

static void write_summary(struct weir__out *out, const weir_report *report)
{
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    weir__out_string_field(out, "verdict", verdict_text(summary->verdict));
    weir__out_uint_field(out, "operations", summary->operations);
    weir__out_uint_field(out, "span", summary->span_ns);
    weir__out_uint_field(out, "idle", summary->idle_ns);
    weir__out_uint_field(out, "compute", summary->compute_ns);
    weir__out_uint_field(out, "non_compute", summary->non_compute_ns);
    weir__out_double_field(out, "speedup_least", summary->speedup_least);
    weir__out_double_field(out, "speedup_most", summary->speedup_most);
    weir__out_uint_field(out, "bound", summary->bound_ns);
    weir__out_string_field(out, "bound_engine", summary->bound_engine);
    weir__out_double_field(out, "bound_distance", summary->bound_distance);
    weir__out_string_field(out, "serial_reason", summary->serial_reason);
}

static void write_overlaps(struct weir__out *out, const weir_report *report)
{
    static const char *const pairs[][3] = {
        {"copy/compute", "copy", "compute"},
        {"to device/to host", "to_device", "to_host"},
        {"compute/compute", "compute", "compute"},
        {"copy/copy", "copy", "copy"},
        {"communication/compute", "communication", "compute"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct weir_report_overlap overlap = {0};
        const bool known =
            weir_report_get_overlap(report, pairs[i][1], pairs[i][2], &overlap) == WEIR_OK;
        weir__out_raw(out, i ? ",{" : "{");
        weir__out_string_field(out, "name", pairs[i][0]);
        weir__out_bool_field(out, "applies", known && overlap.applies);
        weir__out_string_field(out, "reason", overlap.reason);
        weir__out_double_field(out, "least", overlap.least);
        weir__out_double_field(out, "most", overlap.most);
        weir__out_uint_field(out, "both_least", overlap.both.least_ns);
        weir__out_uint_field(out, "both_most", overlap.both.most_ns);
        weir__out_raw(out, "}");
    }
}

static void write_table(struct weir__out *out, const weir_report *report, const char *name,
                        weir_report_table table)
{
    weir__out_key(out, name);
    weir__out_raw(out, "[");
    for (size_t i = 0; i < weir_report_row_count(report, table); i++) {
        const struct weir_report_row *row = weir_report_get_row(report, table, i);
        weir__out_raw(out, i ? ",{" : "{");
        weir__out_string_field(out, "name", row->name);
        weir__out_uint_field(out, "count", row->count);
        weir__out_uint_field(out, "busy", row->busy.most_ns);
        weir__out_uint_field(out, "longest", row->longest_ns);
        weir__out_double_field(out, "utilisation", row->utilisation);
        weir__out_raw(out, "}");
    }
    weir__out_raw(out, "]");
}

static void write_bubbles(struct weir__out *out, const weir_report *report, bool of_bound)
{
    const size_t count = weir_report_bubble_count(report, of_bound);
    for (size_t i = 0; i < count; i++) {
        const struct weir_report_bubble *bubble = weir_report_get_bubble(report, of_bound, i);
        weir__out_raw(out, i ? ",{" : "{");
        weir__out_string_field(out, "sentence", bubble->sentence);
        weir__out_uint_field(out, "begin", bubble->begin_ns);
        weir__out_uint_field(out, "end", bubble->end_ns);
        weir__out_raw(out, "}");
    }
}

void weir__page_report(struct weir__out *out, const weir_report *report,
                       const struct weir_findings *findings)
{
    weir__out_raw(out, "{\"summary\":{");
    write_summary(out, report);
    weir__out_raw(out, "},\n\"overlaps\":[");
    write_overlaps(out, report);
    weir__out_raw(out, "],\n\"tables\":{");
    write_table(out, report, "engines", WEIR_REPORT_ENGINES);
    write_table(out, report, "queues", WEIR_REPORT_QUEUES);
    write_table(out, report, "names", WEIR_REPORT_NAMES);
    write_table(out, report, "regions", WEIR_REPORT_REGIONS);
    write_table(out, report, "path", WEIR_REPORT_PATH);
    weir__out_raw(out, "},\n\"bubbles\":{\"device\":[");
    write_bubbles(out, report, false);
    weir__out_raw(out, "],\"bound\":[");
    write_bubbles(out, report, true);
    weir__out_raw(out, "]}");
    if (findings) {
        weir__out_raw(out, ",\n\"findings\":");
        weir__page_findings(out, findings);
    }
    weir__out_raw(out, "}");
}
