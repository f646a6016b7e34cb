// Allocations of the store of findings, of its reports and of their reader fail once in turn:
// nothing is lost but what is told, and nothing leaks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plugins/check/finding.h"
#include "report/findings.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"

enum {
    MOST_ALLOCATIONS = 2000
};

static void ignore_log(weir_log_level level, const char *source, const char *message)
{
}

static weir_status keep_status(const struct weir_error *detail, size_t size)
{
    return detail->status;
}

static const struct weir_host host = {.struct_size = sizeof host,
                                      .log = ignore_log,
                                      .error = keep_status};
static const struct weir_link here = {.struct_size = sizeof here, .host = &host, .name = "check"};

static char known[512], json[512], report[512];

static struct check_conflict conflict_at(int line)
{
    const struct weir_check_use first = {.operation = "copy",
                                         .access = WEIR_ACCESS_WRITE,
                                         .queue = "copy",
                                         .queue_id = 1,
                                         .file = "app.c",
                                         .line = 80,
                                         .size = 64,
                                         .region = "frame"};
    struct weir_check_use second = first;
    second.queue = "compute";
    second.queue_id = 2;
    second.line = line;
    second.kernel = "blur";
    return (struct check_conflict){.finding = {.kind = WEIR_CHECK_WRITE_AFTER_WRITE,
                                               .buffer = "image",
                                               .size = 64,
                                               .first = first,
                                               .second = second}};
}

// What is not kept is counted, and an operation is refused with a finding or without one.
static void use_store(void)
{
    const struct check_findings_params params = {.link = &here,
                                                 .fail = true,
                                                 .suppressions = known,
                                                 .files = {"", json, ""}};
    struct check_findings *findings;
    const weir_status status = check_findings_create(&params, &findings);
    EXPECT_TRUE((status == WEIR_OK) == (findings != NULL));
    if (!findings)
        return;
    const struct check_conflict conflicts[] = {conflict_at(91), conflict_at(92)};
    EXPECT_INT_EQ(check_findings_add(findings, &conflicts[0]), WEIR_ERROR_INVALID);
    const weir_status known_status = check_findings_add(findings, &conflicts[1]);
    EXPECT_TRUE(known_status == WEIR_OK || known_status == WEIR_ERROR_INVALID);
    EXPECT_TRUE(check_findings_count(findings, false) <= 2);
    struct weir_check_finding finding;
    for (size_t i = 0; check_findings_get(findings, i, &finding, sizeof finding); i++)
        EXPECT_TRUE(finding.message[0] && finding.remedy[0]);
    check_findings_destroy(&findings);
}

static void use_reader(void)
{
    char message[512];
    weir_findings_reader *reader = weir_findings_reader_create();
    for (int i = 0; reader && i < 2; i++) {
        const bool read = weir_findings_read(reader, report, message, sizeof message);
        EXPECT_TRUE(read || message[0]);
    }
    if (reader) {
        const struct weir_findings *all = weir_findings_all(reader);
        free(weir_findings_text(all));
        free(weir_findings_json(all));
        free(weir_findings_sarif(all));
    }
    weir_findings_reader_destroy(&reader);
}

static void write_file(char *path, const char *name, const char *content)
{
    char message[512];
    snprintf(path, 512, "%s/%s", weir_test_temp_dir(), name);
    ASSERT_TRUE(!content ||
                weir_file_write(path, content, strlen(content), message, sizeof message));
}

// The first ones and then one of seven: many are of JSON's values, which are alike. Returns how many
// allocations there were to fail.
static long fail_each(void (*use)(void))
{
    long round = 0;
    for (bool failed = true; failed && round < MOST_ALLOCATIONS; round += round < 200 ? 1 : 7) {
        weir_test_fail_allocation(round);
        use();
        failed = weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
    }
    return round;
}

WEIR_TEST(CheckMemory, AllocationsFailOnce)
{
    write_file(known, "known.json", "[{\"second\": \"app.c:92\", \"reason\": \"It is known.\"}]");
    write_file(json, "out.json", NULL);
    snprintf(report, sizeof report, "%s", json);
    use_store();
    const long of_reader = fail_each(use_reader);
    const long of_store = fail_each(use_store);
    EXPECT_TRUE(of_reader > 30 && of_reader < MOST_ALLOCATIONS);
    EXPECT_TRUE(of_store > 30 && of_store < MOST_ALLOCATIONS);
    printf("%ld and %ld allocations\n", of_reader, of_store);
}
