// The form of the file, which format.py checks, and figures in a program whose locale has a decimal comma.
#include <locale.h>

#include "tests/report/made.h"

static struct made made;

// Every kind of row.
static void make_rows(void)
{
    made_begin(&made, 2, "up \"<&\x02\xff>", "run");
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 5000, 6000);
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 7000, 9000);
    made_wait(&made, 0);
    made_operation(&made, 0, WEIR_ENGINE_TO_HOST, 7000, 8000);
    made_operation(&made, 0, WEIR_ENGINE_ON_DEVICE, 8000, 8100)->kind = WEIR_TRACE_FILL;
    made_operation(&made, 0, WEIR_ENGINE_HOST, 9000, 9100);
    made_operation(&made, 1, WEIR_ENGINE_NONE, 9500, 9900)->kind = WEIR_TRACE_GRAPH;
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 0, 0)->timed = false;
    made.spans[made.span_count++] =
        (struct weir_trace_span){WEIR_TRACE_REGION, 99, "frame", 3, 10, 20000};
    made.spans[made.span_count++] =
        (struct weir_trace_span){WEIR_TRACE_SYNC, 99, "weir_event_sync", WEIR_NO_NUMBER, 15, 18};
}

WEIR_TEST(Format, EveryRowIsSound)
{
    const char *folder = weir_test_temp_dir();
    char path[512];
    char command[1024];
    snprintf(path, sizeof path, "%s/rows.json", folder);
    make_rows();
    made_write(&made, path);
    // The host's rows are not taken for a device's where the process has a device's number.
    made.meta.process = 0;
    snprintf(path, sizeof path, "%s/process.json", folder);
    made_write(&made, path);
    for (uint32_t seed = 1; seed <= 100; seed++) {
        snprintf(path, sizeof path, "%s/%u.json", folder, (unsigned)seed);
        made_random(&made, seed, 1234567);
        made_write(&made, path);
    }
    snprintf(command, sizeof command, "python3 %s %s", weir_test_runfile("tests/report/format.py"),
             folder);
    EXPECT_INT_EQ(system(command), 0);
}

// In a program whose locale has a decimal comma, figures are read and written as ever. The
// locale is made here, of a table of ASCII and of nothing but its numbers.

#define NAME "weir_COMMA"

static void write_source(const char *name, const char *head, const char *end)
{
    FILE *file = fopen(weir_test_path(name), "w");
    ASSERT_NOT_NULL(file);
    fputs(head, file);
    for (int i = 0; *end && i < 128; i++)
        fprintf(file, "<U%04X> /x%02x X\n", i, i);
    fputs(end, file);
    ASSERT_INT_EQ(fclose(file), 0);
}

// False where there is no localedef, which glibc's own package has.
static bool take_comma(void)
{
    char command[1024];
    const char *folder = weir_test_path(".");
    write_source("map",
                 "<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\nCHARMAP\n",
                 "END CHARMAP\n");
    write_source(
        "numbers",
        "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n", "");
    snprintf(command, sizeof command,
             "cd '%s' && localedef -c -f ./map -i ./numbers ./" NAME " >messages 2>&1", folder);
    if (WEXITSTATUS(system(command)) == 127)
        return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, NAME) != NULL;
}

static void expect_comma(void)
{
    char text[16];
    snprintf(text, sizeof text, "%.1f", 0.5);
    EXPECT_STR_EQ(text, "0,5");
}

WEIR_TEST(DecimalComma, FiguresHaveAPoint)
{
    struct weir_report_finding finding;
    if (!take_comma())
        WEIR_SKIP("there is no localedef to make a locale with");
    expect_comma();
    // A copy and a kernel that overlap by half: 1.5 us of 1.5 us and 0.5 us.
    made_begin(&made, 2, "up", "run");
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 0, 1500);
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 1000, 2000);
    own_report report = made_report(&made, NULL);
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    EXPECT_UINT_EQ(summary->span_ns, 2000);
    EXPECT_NEAR(summary->speedup_most, 1.25, 1e-9);
    EXPECT_OK(weir_report_check(report, "idle<=0.99", &finding));
    EXPECT_TRUE(finding.holds);
    EXPECT_OK(weir_report_check(report, "speedup>=1.5", &finding));
    EXPECT_FALSE(finding.holds);
    EXPECT_CONTAINS(finding.sentence, "1.25, and not >= 1.5");
    EXPECT_OK(weir_report_check(report, "bubbles<=0.5ms", &finding));
    EXPECT_TRUE(finding.holds);
    EXPECT_INT_LT(weir_report_check(report, "idle<=0,99", &finding), 0);
    own_text text = weir_report_text(report);
    EXPECT_CONTAINS(text, "1.25: the durations");
    EXPECT_CONTAINS(text, "2.00 us: idle 0.0 %");
    EXPECT_NOT_CONTAINS(text, "1,25");
    own_text json = weir_report_json(report);
    EXPECT_CONTAINS(json, "\"speedup_most\": 1.25");
    expect_comma(); // nothing has changed the program's locale
    setlocale(LC_NUMERIC, "C");
}
