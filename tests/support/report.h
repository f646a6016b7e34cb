// Assertions on reports of traces, <weir/report.h>. They report a failure and continue.
//
//     WEIR_EXPECT_OVERLAP_GE(report, "copy", "compute", 0.6);
//     WEIR_EXPECT_REPORT(report, "bubbles<=1ms");
//
// A test that uses them depends on //report and, after it, on //core.
#ifndef WEIR_TESTS_SUPPORT_REPORT_H
#define WEIR_TESTS_SUPPORT_REPORT_H

#include <stdio.h>

#include <weir/report.h>
#include <weir/status.h>

#include "tests/support/test.h"

static inline void weir_test_report(const char *file, int line, const weir_report *report,
                                    const char *condition)
{
    struct weir_report_finding check;
    if (weir_report_check(report, condition, &check) != WEIR_OK)
        weir_test_fail(file, line, "%s", weir_last_error_text());
    else if (!check.holds)
        weir_test_fail(file, line, "Expected: %s\n  %s", condition, check.sentence);
}

static inline void weir_test_overlap_ge(const char *file, int line, const weir_report *report,
                                        const char *first, const char *second, double share)
{
    char condition[256];
    snprintf(condition, sizeof condition, "overlap %s/%s>=%.17g", first, second, share);
    weir_test_report(file, line, report, condition);
}

// The condition holds, as weir_report_check() says.
#define WEIR_EXPECT_REPORT(report, condition) \
    weir_test_report(__FILE__, __LINE__, report, condition)

// The second set ran during at least that share of the first set's time. If not all
// starts are known, the least possible share counts. Fails if overlap is n/a.
#define WEIR_EXPECT_OVERLAP_GE(report, first, second, share) \
    weir_test_overlap_ge(__FILE__, __LINE__, report, first, second, share)

#endif
