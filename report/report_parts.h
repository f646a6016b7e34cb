// Shared by the two forms of a report.
#ifndef WEIR_REPORT_REPORT_PARTS_H
#define WEIR_REPORT_REPORT_PARTS_H

#include <stddef.h>

#include <weir/report.h>

// The overlaps that every report lists.
struct weir__pair {
    const char *first;
    const char *second;
};

enum {
    WEIR__PAIR_COUNT = 8
};

extern const struct weir__pair weir__pairs[WEIR__PAIR_COUNT];

const char *weir__verdict_name(weir_report_verdict verdict); // "device-bound"
const char *weir__cause_name(weir_report_cause cause);       // "submit"
const char *weir__table_name(weir_report_table table);       // "queues"

#endif
