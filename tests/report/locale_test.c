// In a program whose locale has a decimal comma, figures are read and written as ever. The
// locale is made here, of a table of ASCII and of nothing but its numbers.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/report.h>
#include <weir/status.h>

#include "tests/report/made.h"
#include "tests/support/report.h"
#include "tests/support/test.h"

#define NAME "weir_COMMA"

static void write_sources(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/map", folder);
    FILE *map = fopen(path, "w");
    ASSERT_NOT_NULL(map);
    fputs("<code_set_name> ANSI_X3.4-1968\n<comment_char> %\n<escape_char> /\nCHARMAP\n", map);
    for (int i = 0; i < 128; i++)
        fprintf(map, "<U%04X> /x%02x X\n", i, i);
    fputs("END CHARMAP\n", map);
    ASSERT_INT_EQ(fclose(map), 0);

    snprintf(path, sizeof path, "%s/numbers", folder);
    FILE *numbers = fopen(path, "w");
    ASSERT_NOT_NULL(numbers);
    fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n",
          numbers);
    ASSERT_INT_EQ(fclose(numbers), 0);
}

// False where there is no localedef, which glibc's own package has.
static bool take_comma(void)
{
    const char *folder = weir_test_temp_dir();
    int status = 0;
    write_sources(folder);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) != 0 || !freopen("messages", "w", stdout) || dup2(1, 2) < 0)
            _exit(126);
        execlp("localedef", "localedef", "-c", "-f", "./map", "-i", "./numbers", "./" NAME,
               (char *)NULL);
        _exit(127);
    }
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) == 127)
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

// A copy and a kernel that overlap by half: 1.5 us of 1.5 us and 0.5 us.
static weir_report *report_on_halves(void)
{
    struct made made;
    char path[512];
    weir_report *report = NULL;
    made_begin(&made);
    made_queue(&made, "up");
    made_queue(&made, "run");
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 0, 1500);
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 1000, 2000);
    snprintf(path, sizeof path, "%s/trace.json", weir_test_temp_dir());
    made_write(&made, path);
    if (weir_report_read(path, NULL, &report) != WEIR_OK)
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return report;
}

WEIR_TEST(DecimalComma, FiguresHaveAPoint)
{
    struct weir_report_finding finding;
    if (!take_comma())
        WEIR_SKIP("there is no localedef to make a locale with");
    expect_comma();
    weir_report *report = report_on_halves();
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    EXPECT_UINT_EQ(summary->span_ns, 2000);
    EXPECT_NEAR(summary->speedup_most, 1.25, 1e-9);
    EXPECT_INT_EQ(weir_report_check(report, "idle<=0.99", &finding), WEIR_OK);
    EXPECT_TRUE(finding.holds);
    EXPECT_INT_EQ(weir_report_check(report, "speedup>=1.5", &finding), WEIR_OK);
    EXPECT_FALSE(finding.holds);
    EXPECT_CONTAINS(finding.sentence, "1.25, and not >= 1.5");
    EXPECT_INT_EQ(weir_report_check(report, "bubbles<=0.5ms", &finding), WEIR_OK);
    EXPECT_TRUE(finding.holds);
    EXPECT_INT_LT(weir_report_check(report, "idle<=0,99", &finding), 0);
    char *text = weir_report_text(report);
    EXPECT_CONTAINS(text, "1.25: the durations");
    EXPECT_CONTAINS(text, "2.00 us: idle 0.0 %");
    EXPECT_NULL(strstr(text, "1,25"));
    weir_report_free_text(&text);
    text = weir_report_json(report);
    EXPECT_CONTAINS(text, "\"speedup_most\": 1.25");
    weir_report_free_text(&text);
    weir_report_destroy(&report);
    expect_comma(); // nothing has changed the program's locale
    setlocale(LC_NUMERIC, "C");
}
