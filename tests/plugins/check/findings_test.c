// The store of findings: pairs of lines, words, suppressions, files, refusals.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/file.h"
#include "plugins/check/finding.h"
#include "report/findings.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

#define own_findings OWN(check_findings_destroy) struct check_findings *
#define own_reader OWN(weir_findings_reader_destroy) weir_findings_reader *

// A host that keeps what it is told.

static char logged[8192];
static struct weir_error told;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_log(weir_log_level level, const char *source, const char *message)
{
    pthread_mutex_lock(&log_lock);
    const size_t used = strlen(logged);
    snprintf(logged + used, sizeof logged - used, "%d %s: %s\n", (int)level, source, message);
    pthread_mutex_unlock(&log_lock);
}

static weir_status keep_error(const struct weir_error *detail, size_t size)
{
    told = *detail;
    return size == sizeof told ? detail->status : WEIR_OK;
}

static const struct weir_host host = {.struct_size = sizeof host,
                                      .log = keep_log,
                                      .error = keep_error};
static const struct weir_link here = {.struct_size = sizeof here, .host = &host, .name = "check"};

static struct check_findings *create(const struct check_findings_params *wanted)
{
    struct check_findings *findings = NULL;
    struct check_findings_params params = *wanted;
    params.link = &here;
    params.suppressions = params.suppressions ? params.suppressions : "";
    for (size_t i = 0; i < CHECK_FORMS; i++)
        params.files[i] = params.files[i] ? params.files[i] : "";
    logged[0] = '\0';
    memset(&told, 0, sizeof told);
    (void)check_findings_create(&params, &findings);
    return findings;
}

static const struct check_findings_params plain = {.fail = false};
static const struct check_findings_params strict = {.fail = true};

static const struct weir_check_use copy_party = {
    .operation = "copy",
    .access = WEIR_ACCESS_WRITE,
    .queue = "copy",
    .queue_id = 1,
    .sequence = 3,
    .file = "src/app.c",
    .line = 80,
    .size = 8192,
};
static const struct weir_check_use launch_party = {
    .operation = "launch",
    .access = WEIR_ACCESS_READ,
    .queue = "compute",
    .queue_id = 2,
    .sequence = 12,
    .kernel = "blur",
    .file = "src/app.c",
    .line = 91,
    .size = 4096,
    .region = "frame",
    .region_number = 7,
};
static const struct weir_check_use host_party = {.operation = "host access",
                                                 .access = WEIR_ACCESS_READ,
                                                 .file = "src/app.c",
                                                 .line = 99,
                                                 .size = 4096};

static struct check_conflict conflict_of(weir_check_kind kind, const struct weir_check_use *first,
                                         const struct weir_check_use *second)
{
    static const struct weir_check_use none = {.operation = NULL};
    const struct check_conflict conflict = {.finding = {.kind = kind,
                                                        .buffer = "image",
                                                        .buffer_id = 5,
                                                        .size = 4096,
                                                        .first = first ? *first : none,
                                                        .second = *second}};
    return conflict;
}

static struct check_conflict race(void)
{
    return conflict_of(WEIR_CHECK_READ_AFTER_WRITE, &copy_party, &launch_party);
}

static struct weir_check_finding get(struct check_findings *findings, size_t index)
{
    struct weir_check_finding finding = {.message = "", .remedy = ""};
    EXPECT_TRUE(check_findings_get(findings, index, &finding, sizeof finding));
    return finding;
}

// What a finding says: the uses and their places in the message, and where to act in the remedy.

static void expect_facts(const struct check_conflict *conflict, const char *const message[4],
                         const char *const remedy[2])
{
    own_findings findings = create(&plain);
    ASSERT_TRUE(findings != NULL);
    EXPECT_INT_EQ(check_findings_add(findings, conflict), WEIR_OK);
    const struct weir_check_finding finding = get(findings, 0);
    for (size_t i = 0; i < 4 && message[i]; i++)
        EXPECT_CONTAINS(finding.message, message[i]);
    for (size_t i = 0; i < 2 && remedy[i]; i++)
        EXPECT_CONTAINS(finding.remedy, remedy[i]);
    EXPECT_STR_NE(finding.remedy, "");
}

#define FACTS(...) ((const char *const[4]){__VA_ARGS__})
#define AT(...) ((const char *const[2]){__VA_ARGS__})

WEIR_TEST(CheckFacts, OfQueues)
{
    struct check_conflict conflict = race();
    expect_facts(&conflict, FACTS("'compute' at src/app.c:91", "'frame' 7", "'image'", "0 to 4095"),
                 AT("src/app.c:80", "src/app.c:91"));
    // Queues of one label, one byte, no region, a buffer without a label.
    conflict.finding.size = 1;
    conflict.finding.offset = 17;
    conflict.finding.second.queue = "copy";
    conflict.finding.second.region = NULL;
    conflict.finding.buffer = NULL;
    expect_facts(&conflict, FACTS("(queue 2)", "(queue 1)", "byte 17", "buffer 5"),
                 AT("(queue 1)", "(queue 2)"));
    conflict.finding.second.queue = conflict.finding.second.file = conflict.finding.second.kernel =
        NULL;
    conflict.finding.second.operation = "operation";
    expect_facts(&conflict, FACTS("queue 2"), AT("queue 2"));
}

// Each kind, with the place of the second use and of the first one.
WEIR_TEST(CheckFacts, OfEachKind)
{
    struct weir_check_use gone = copy_party, record = copy_party, wait = launch_party;
    const struct weir_check_use sync = {.operation = "sync", .file = "src/app.c", .line = 91};
    gone.operation = "pool free";
    record.operation = "record";
    wait.operation = "wait";
    wait.kernel = wait.region = NULL;
    gone.access = record.access = wait.access = (weir_access)0;
    const struct {
        weir_check_kind kind;
        const struct weir_check_use *first, *second;
        const char *at_first, *at_second;
    } kinds[] = {
        {WEIR_CHECK_HOST_READ, &copy_party, &host_party, "src/app.c:80", "src/app.c:99"},
        {WEIR_CHECK_OPEN_ACCESS, &host_party, &launch_party, "src/app.c:99", "src/app.c:91"},
        {WEIR_CHECK_READ_AFTER_WRITE, &host_party, &launch_party, "src/app.c:99", "src/app.c:91"},
        {WEIR_CHECK_AFTER_FREE, &gone, &launch_party, "src/app.c:80", "src/app.c:91"},
        {WEIR_CHECK_AFTER_FREE, &launch_party, &gone, "src/app.c:91", "src/app.c:80"},
        {WEIR_CHECK_UNWRITTEN, NULL, &launch_party, "'image'", "src/app.c:91"},
        {WEIR_CHECK_OUTSIDE, NULL, &launch_party, "'image'", "src/app.c:91"},
        {WEIR_CHECK_FALSE_SHARING, &copy_party, &wait, "src/app.c:80", "src/app.c:91"},
        {WEIR_CHECK_IMPLIED_WAIT, &record, &wait, "src/app.c:80", "src/app.c:91"},
        {WEIR_CHECK_NEEDLESS_WAIT, &record, &wait, "src/app.c:80", "src/app.c:91"},
        {WEIR_CHECK_NEEDLESS_SYNC, &record, &sync, "src/app.c:80", "src/app.c:91"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct check_conflict conflict =
            conflict_of(kinds[i].kind, kinds[i].first, kinds[i].second);
        weir_test_note("row %zu", i);
        expect_facts(&conflict, FACTS(kinds[i].at_first, kinds[i].at_second),
                     AT(kinds[i].at_second));
    }
    struct check_conflict conflict = conflict_of(WEIR_CHECK_OUTSIDE, NULL, &launch_party);
    conflict.finding.offset = 4096;
    conflict.finding.size = 4;
    expect_facts(&conflict, FACTS("4096 to 4099"), AT(NULL));
    conflict = conflict_of(WEIR_CHECK_NEEDLESS_SYNC, &record, &sync);
    conflict.finding.first.file = NULL;
    expect_facts(&conflict, FACTS("src/app.c:91", "'copy'"), AT(NULL));
    EXPECT_STR_EQ(weir_findings_kind_name((weir_check_kind)50), "unknown");
}

// A use of which neither a queue nor a line is known is none, but for a sync.
WEIR_TEST(CheckFacts, OfNoPlace)
{
    own_findings findings = create(&plain);
    ASSERT_TRUE(findings != NULL);
    const struct weir_check_use sync = {.operation = "sync"};
    struct weir_check_use lost = host_party;
    lost.file = NULL;
    lost.line = 0;
    struct check_conflict conflict = conflict_of(WEIR_CHECK_NEEDLESS_SYNC, &copy_party, &sync);
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    EXPECT_STR_EQ(get(findings, 0).second.operation, "sync");
    EXPECT_CONTAINS(get(findings, 0).message, "the host at a line that is not known waits for");
    conflict = conflict_of(WEIR_CHECK_HOST_READ, &copy_party, &lost);
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    EXPECT_STR_EQ(get(findings, 1).second.operation, "");
    conflict = conflict_of(WEIR_CHECK_UNWRITTEN, NULL, &launch_party);
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    EXPECT_STR_EQ(get(findings, 2).first.operation, "");
}

// The store.

WEIR_TEST(CheckFindings, APairIsOnceAndCounted)
{
    struct check_findings *findings = create(&plain);
    struct check_conflict conflict = race();
    for (int i = 0; i < 30; i++)
        EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    conflict.finding.kind = WEIR_CHECK_WRITE_AFTER_WRITE; // the same two lines
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    conflict.finding.second.line = 92;
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    conflict.finding.second.file = "other.c";
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    EXPECT_INT_EQ(check_findings_count(findings, false), 3);
    EXPECT_INT_EQ(get(findings, 0).count, 31);
    EXPECT_INT_EQ(get(findings, 1).count, 1);
    EXPECT_STR_EQ(get(findings, 0).second.region, "frame");
    EXPECT_INT_EQ(get(findings, 0).second.region_number, 7);
    EXPECT_TRUE(get(findings, 0).first.region_number == UINT64_MAX);
    EXPECT_STR_EQ(get(findings, 0).first.operation, "copy");
    conflict.finding.kind = WEIR_CHECK_NEEDLESS_WAIT;
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    EXPECT_INT_EQ(check_findings_count(findings, false), 4);
    EXPECT_INT_EQ(check_findings_count(findings, true), 3);
    struct weir_check_finding finding;
    EXPECT_FALSE(check_findings_get(findings, 4, &finding, sizeof finding));
    EXPECT_CONTAINS(logged, "2 check: read-after-write: the launch of 'blur'");
    EXPECT_CONTAINS(logged, "3 check: needless-wait: ");
    EXPECT_NOT_CONTAINS(strstr(logged, "read-after-write") + 1, "read-after-write");
    check_findings_destroy(&findings);
    check_findings_destroy(&findings);
}

// An older program's structure is not written beyond its end.
WEIR_TEST(CheckFindings, SmallerStructures)
{
    own_findings findings = create(&plain);
    const struct check_conflict conflict = race();
    struct weir_check_finding finding;
    memset(&finding, 0x5a, sizeof finding);
    check_findings_add(findings, &conflict);
    EXPECT_TRUE(
        check_findings_get(findings, 0, &finding, offsetof(struct weir_check_finding, message)));
    EXPECT_STR_EQ(finding.buffer, "image");
    const unsigned char *rest = (const unsigned char *)&finding.message;
    EXPECT_INT_EQ(rest[0], 0x5a);
}

WEIR_TEST(CheckFindings, TextsOfProgramsAreEscaped)
{
    own_findings findings = create(&plain);
    struct check_conflict conflict = race();
    conflict.finding.buffer = "a\x1b[31m\nb\xff";
    check_findings_add(findings, &conflict);
    EXPECT_CONTAINS(get(findings, 0).message, "'a\\x1b[31m\\nb\\xff'");
}

WEIR_TEST(CheckFindings, MorePairsThanAreKept)
{
    struct check_findings *findings = create(&strict);
    struct check_conflict conflict = race();
    for (int i = 0; i < 1003; i++) {
        conflict.finding.second.line = 1000 + i;
        EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_ERROR_INVALID);
    }
    EXPECT_INT_EQ(check_findings_count(findings, false), 1000);
    EXPECT_CONTAINS(told.message, "one more pair of lines than the 1000");
    logged[0] = '\0';
    check_findings_destroy(&findings);
    EXPECT_CONTAINS(logged, "3 uses in more pairs of lines than the 1000");
}

static void *add_many(void *user)
{
    struct check_conflict conflict = race();
    for (int i = 0; i < 1000; i++) {
        conflict.finding.second.line = 100 + i % 10;
        check_findings_add(user, &conflict);
    }
    return NULL;
}

WEIR_TEST(CheckFindings, OfManyThreads)
{
    own_findings findings = create(&plain);
    pthread_t threads[4];
    uint64_t count = 0;
    for (size_t i = 0; i < 4; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, add_many, findings), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT_INT_EQ(check_findings_count(findings, false), 10);
    for (size_t i = 0; i < 10; i++)
        count += get(findings, i).count;
    EXPECT_UINT_EQ(count, 4000);
}

// Suppressions.

static const char *file_of(char *path, const char *name, const char *text)
{
    char message[512];
    snprintf(path, 512, "%s/%s", weir_test_temp_dir(), name);
    if (!weir_file_write(path, text, strlen(text), message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    return path;
}

WEIR_TEST(CheckSuppressions, OfKindLinesAndBuffer)
{
    char path[512];
    const struct check_findings_params params = {
        .fail = true,
        .suppressions = file_of(path, "suppressions.json",
                                "[{\"kind\": \"host-read\", \"reason\": \"not this one\"},\n"
                                " {\"second\": \"pp.c\", \"reason\": \"not this one either\"},\n"
                                " {\"first\": \"app.c:80\", \"second\": \"src/app.c\", \"buffer\": "
                                "\"im*\", \"reason\": \"it is so\"}]"),
    };
    struct check_findings *findings = create(&params);
    ASSERT_TRUE(findings != NULL);
    struct check_conflict conflict = race();
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_OK);
    EXPECT_STR_EQ(get(findings, 0).suppression, "it is so");
    EXPECT_STR_EQ(logged, "");
    conflict.finding.first.line = 81;
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_ERROR_INVALID);
    conflict = race();
    conflict.finding.second.line = 93;
    conflict.finding.buffer = "other";
    EXPECT_INT_EQ(check_findings_add(findings, &conflict), WEIR_ERROR_INVALID);
    EXPECT_TRUE(get(findings, 2).suppression == NULL);
    EXPECT_INT_EQ(check_findings_count(findings, true), 2);
    logged[0] = '\0';
    check_findings_destroy(&findings);
    EXPECT_TRUE(strstr(logged, "entry 1 suppresses nothing that was found, remove it: not this") !=
                NULL);
    EXPECT_CONTAINS(logged, "entry 2 suppresses nothing");
    EXPECT_NOT_CONTAINS(logged, "entry 3");
}

static void expect_refused(const char *text, const char *message, const char *remedy)
{
    char path[512];
    const struct check_findings_params params = {
        .suppressions = file_of(path, "wrong.json", text),
    };
    EXPECT_TRUE(create(&params) == NULL);
    EXPECT_INT_EQ(told.status, WEIR_ERROR_CONFIG);
    if (!strstr(told.message, message) || !strstr(told.message, "wrong.json") ||
        !strstr(told.remedy, remedy))
        weir_test_fail(__FILE__, __LINE__, "'%s' ('%s')", told.message, told.remedy);
}

WEIR_TEST(CheckSuppressions, WrongFiles)
{
    expect_refused("", "line 1: ", "a list of objects");
    expect_refused("[\n{\"reason\": }]", "line 2: ", "a list of objects");
    expect_refused("{}", "the file holds no list", "a list of objects");
    expect_refused("[3]", "entry 1 is no object", "a list of objects");
    expect_refused("[{\"kind\": \"host-read\"}]", "entry 1 has no reason", "why nothing is wrong");
    expect_refused("[{\"kind\": \"host-read\", \"reason\": \" \"}]", "entry 1 has no reason",
                   "why");
    expect_refused("[{\"reason\": \"x\"}]", "entry 1 would suppress everything", "name a kind");
    expect_refused("[{\"reason\": 3}]", "entry 1 has a 'reason' that is no text", "write a text");
    expect_refused("[{\"reson\": \"x\"}]", "entry 1 has a key 'reson'", "did you mean 'reason'?");
    expect_refused("[{\"zzzzzz\": \"x\"}]", "entry 1 has a key 'zzzzzz'", "its keys are kind");
    expect_refused("[{\"kind\": \"host-raed\", \"reason\": \"x\"}]",
                   "entry 1 has the kind 'host-raed'", "did you mean 'host-read'?");
    expect_refused("[{\"kind\": \"qqqqqqqqqq\", \"reason\": \"x\"}]", "has the kind 'qqqqqqqqqq'",
                   "docs/check.md lists");
    expect_refused("[{\"first\": \"a\", \"reason\": \"x\"},\n {\"first\": \"a\"}]",
                   "entry 2 has no reason", "why");
    const struct check_findings_params missing = {.suppressions = "/nowhere/at/all.json"};
    EXPECT_TRUE(create(&missing) == NULL);
    EXPECT_INT_EQ(told.status, WEIR_ERROR_CONFIG);
    EXPECT_CONTAINS(told.message, "/nowhere/at/all.json");
}

// Files.

static json_t *json_of(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        weir_test_fail(__FILE__, __LINE__, "%s: %s", path, error.text);
    return root;
}

static const json_t *at(const json_t *root, const char *key)
{
    return json_object_get(root, key);
}

// No name is given out twice in a process.
static struct check_findings *with_files(const char *name, char *text, char *json, char *sarif,
                                         const char *suppressions)
{
    snprintf(text, 512, "%s/%s.txt", weir_test_temp_dir(), name);
    snprintf(json, 512, "%s/%s.json", weir_test_temp_dir(), name);
    snprintf(sarif, 512, "%s/%s.sarif", weir_test_temp_dir(), name);
    const struct check_findings_params params = {.files = {text, json, sarif},
                                                 .suppressions = suppressions};
    return create(&params);
}

static void expect_files(const char *json, const char *sarif, size_t count, bool complete)
{
    json_t *root = json_of(json);
    json_t *log = json_of(sarif);
    const json_t *run = json_array_get(at(log, "runs"), 0);
    EXPECT_INT_EQ(json_array_size(at(root, "findings")), count);
    EXPECT_INT_EQ(json_is_true(at(root, "complete")), complete);
    EXPECT_INT_EQ(json_array_size(at(run, "results")), count);
    const json_t *invocation = json_array_get(at(run, "invocations"), 0);
    EXPECT_INT_EQ(json_is_true(at(invocation, "executionSuccessful")), complete);
    json_decref(root);
    json_decref(log);
}

// A process may be killed at any moment: what was found is in the files.
WEIR_TEST(CheckFiles, AreCompleteAtEachMoment)
{
    char text[512], json[512], sarif[512], message[512];
    void *report;
    size_t size;
    struct check_findings *findings = with_files("moments", text, json, sarif, NULL);
    ASSERT_TRUE(findings != NULL);
    expect_files(json, sarif, 0, false);
    struct check_conflict conflict = race();
    check_findings_add(findings, &conflict);
    expect_files(json, sarif, 1, false);
    conflict.finding.kind = WEIR_CHECK_NEEDLESS_WAIT;
    check_findings_add(findings, &conflict);
    expect_files(json, sarif, 2, false);
    check_findings_add(findings, &conflict);
    ASSERT_TRUE(weir_file_read(text, 1 << 20, &report, &size, message, sizeof message));
    EXPECT_CONTAINS(report, "1 finding, 1 hint, 0 suppressed; the program had not closed its "
                            "runtime\n");
    free(report);
    check_findings_destroy(&findings);
    expect_files(json, sarif, 2, true);
    ASSERT_TRUE(weir_file_read(text, 1 << 20, &report, &size, message, sizeof message));
    EXPECT_CONTAINS(report, "read-after-write, 1 time\n  the launch of 'blur'");
    EXPECT_CONTAINS(report, "\n\nneedless-wait, 2 times\n");
    EXPECT_CONTAINS(report, ": 1 finding, 1 hint, 0 suppressed\n");
    EXPECT_CONTAINS(report, "\n  to do: record on 'copy' after src/app.c:80, wait on");
    free(report);
}

// Of many the JSON is not made anew each time.
WEIR_TEST(CheckFiles, AreCompleteWithManyFindings)
{
    enum {
        MANY = 80
    };
    char text[512], json[512], sarif[512];
    struct check_findings *findings = with_files("many", text, json, sarif, NULL);
    ASSERT_TRUE(findings != NULL);
    struct check_conflict conflict = race();
    for (int i = 0; i < MANY; i++) {
        conflict.finding.second.line = 1000 + i;
        check_findings_add(findings, &conflict);
        check_findings_add(findings, &conflict);
    }
    expect_files(json, sarif, MANY, false);
    check_findings_destroy(&findings);
    expect_files(json, sarif, MANY, true);
    json_t *root = json_of(json);
    for (size_t i = 0; i < MANY; i++) {
        const json_t *finding = json_array_get(at(root, "findings"), i);
        EXPECT_INT_EQ(json_integer_value(at(at(finding, "second"), "line")), 1000 + i);
        EXPECT_INT_EQ(json_integer_value(at(finding, "count")), 2);
    }
    json_decref(root);
}

WEIR_TEST(CheckFiles, OfTwoRuntimes)
{
    char text[512], json[512], sarif[512], second[600];
    struct check_findings *findings = with_files("runtimes", text, json, sarif, NULL);
    const struct check_findings_params same = {.files = {text, json, sarif}};
    struct check_findings *other = create(&same);
    ASSERT_TRUE(findings != NULL && other != NULL);
    const struct check_conflict conflict = race();
    check_findings_add(other, &conflict);
    check_findings_destroy(&other);
    check_findings_destroy(&findings);
    json_t *root = json_of(json);
    const bool first_is_named = json_array_size(at(root, "findings")) == 0;
    json_decref(root);
    EXPECT_TRUE(first_is_named);
    snprintf(second, sizeof second, "%.*s.2.json", (int)(strlen(json) - strlen(".json")), json);
    root = json_of(second);
    EXPECT_INT_EQ(json_array_size(at(root, "findings")), 1);
    json_decref(root);
}

WEIR_TEST(CheckFiles, ThatCannotBeWritten)
{
    const struct check_findings_params missing = {.files = {[CHECK_JSON] = "/nowhere/at/all.json"}};
    EXPECT_TRUE(create(&missing) == NULL);
    EXPECT_INT_EQ(told.status, WEIR_ERROR_IO);
    EXPECT_CONTAINS(told.message, "/nowhere/at/all.json");
    char path[700];
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    const struct check_findings_params longer = {.files = {path}};
    EXPECT_TRUE(create(&longer) == NULL);
    EXPECT_INT_EQ(told.status, WEIR_ERROR_CONFIG);
}

// What the standard requires of each object, and what tools of code review read.
WEIR_TEST(CheckFiles, SarifHasItsRequiredFields)
{
    char text[512], json[512], sarif[512], path[512];
    struct check_findings *findings =
        with_files("sarif", text, json, sarif,
                   file_of(path, "suppressions.json",
                           "[{\"kind\": \"unwritten\", \"reason\": \"it is so\"}]"));
    struct check_conflict conflict = race();
    conflict.finding.first.file = "/a b/ä.c";
    check_findings_add(findings, &conflict);
    conflict = conflict_of(WEIR_CHECK_UNWRITTEN, NULL, &launch_party);
    check_findings_add(findings, &conflict);
    conflict.finding.kind = WEIR_CHECK_OUTSIDE;
    conflict.finding.second.file = NULL;
    conflict.finding.second.line = 0;
    check_findings_add(findings, &conflict);
    check_findings_destroy(&findings);

    json_t *log = json_of(sarif);
    EXPECT_STR_EQ(json_string_value(at(log, "version")), "2.1.0");
    const json_t *run = json_array_get(at(log, "runs"), 0);
    const json_t *driver = at(at(run, "tool"), "driver");
    const json_t *rules = at(driver, "rules");
    EXPECT_STR_EQ(json_string_value(at(driver, "name")), "weir check");
    EXPECT_INT_EQ(json_array_size(rules), 13);
    for (size_t i = 0; i < json_array_size(at(run, "results")); i++) {
        const json_t *result = json_array_get(at(run, "results"), i);
        const size_t index = (size_t)json_integer_value(at(result, "ruleIndex"));
        EXPECT_STR_EQ(json_string_value(at(json_array_get(rules, index), "id")),
                      json_string_value(at(result, "ruleId")));
        EXPECT_STR_EQ(json_string_value(at(result, "level")), "error");
        EXPECT_TRUE(json_is_string(at(at(result, "message"), "text")));
    }
    const json_t *result = json_array_get(at(run, "results"), 0);
    const json_t *place = at(json_array_get(at(result, "locations"), 0), "physicalLocation");
    EXPECT_STR_EQ(json_string_value(at(at(place, "artifactLocation"), "uri")), "src/app.c");
    EXPECT_STR_EQ(json_string_value(at(at(place, "artifactLocation"), "uriBaseId")), "%SRCROOT%");
    EXPECT_INT_EQ(json_integer_value(at(at(place, "region"), "startLine")), 91);
    place = at(json_array_get(at(result, "relatedLocations"), 0), "physicalLocation");
    EXPECT_STR_EQ(json_string_value(at(at(place, "artifactLocation"), "uri")),
                  "file:///a%20b/%C3%A4.c");
    EXPECT_INT_EQ(json_array_size(at(result, "suppressions")), 0);
    result = json_array_get(at(run, "results"), 1);
    const json_t *suppression = json_array_get(at(result, "suppressions"), 0);
    EXPECT_STR_EQ(json_string_value(at(suppression, "kind")), "external");
    EXPECT_STR_EQ(json_string_value(at(suppression, "justification")), "it is so");
    result = json_array_get(at(run, "results"), 2);
    EXPECT_INT_EQ(json_array_size(at(result, "locations")), 0);
    json_decref(log);
}

// The reader.

WEIR_TEST(CheckReader, AddsUpSeveralRuns)
{
    char text[512], json[512], sarif[512], path[512], message[512];
    own_reader reader = weir_findings_reader_create();
    for (int run = 0; run < 2; run++) {
        struct check_findings *findings =
            with_files(run == 0 ? "run0" : "run1", text, json, sarif,
                       file_of(path, "suppressions.json",
                               "[{\"first\": \"b.c\", \"reason\": \"x\"},"
                               " {\"kind\": \"host-read\", \"reason\": \"it is so\"}]"));
        struct check_conflict conflict = race();
        check_findings_add(findings, &conflict);
        conflict.finding.second.line = 100 + run;
        conflict.finding.kind = WEIR_CHECK_HOST_READ;
        check_findings_add(findings, &conflict);
        check_findings_destroy(&findings);
        EXPECT_TRUE(weir_findings_read(reader, json, message, sizeof message));
    }
    const struct weir_findings *all = weir_findings_all(reader);
    const struct weir_findings_sum sum = weir_findings_sum(all);
    EXPECT_INT_EQ(all->count, 3);
    EXPECT_INT_EQ(sum.errors, 1);
    EXPECT_INT_EQ(sum.suppressed, 2);
    EXPECT_INT_EQ(all->items[0]->count, 2);
    EXPECT_STR_EQ(all->items[0]->second.kernel, "blur");
    EXPECT_INT_EQ(all->items[0]->first.access, WEIR_ACCESS_WRITE);
    EXPECT_INT_EQ(all->items[0]->second.region_number, 7);
    EXPECT_TRUE(all->items[0]->first.region_number == UINT64_MAX);
    EXPECT_STR_EQ(all->items[1]->suppression, "it is so");
    EXPECT_INT_EQ(all->rule_count, 2);
    EXPECT_INT_EQ(all->rules[0]->used, 0);
    EXPECT_INT_EQ(all->rules[1]->used, 2);
    EXPECT_TRUE(all->complete);
    char *report = weir_findings_text(all);
    EXPECT_CONTAINS(report, "suppressions.json: entry 1 suppresses nothing");
    EXPECT_NOT_CONTAINS(report, "suppressions.json: entry 2");
    free(report);
}

WEIR_TEST(CheckReader, RefusesOtherFiles)
{
    char path[512], message[512];
    static const char *const texts[] = {"",
                                        "{}",
                                        "[]",
                                        "{\"weir_check\": 2, \"findings\": []}",
                                        "{\"weir_check\": 1, \"findings\": [{\"kind\": \"none\"}]}",
                                        "{\"weir_check\": 1}"};
    own_reader reader = weir_findings_reader_create();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        EXPECT_FALSE(weir_findings_read(reader, file_of(path, "other.json", texts[i]), message,
                                        sizeof message));
        EXPECT_CONTAINS(message, "other.json: this is no report of the plugin check");
    }
    EXPECT_FALSE(weir_findings_read(reader, "/nowhere.json", message, sizeof message));
    EXPECT_INT_EQ(weir_findings_all(reader)->count, 0);
}
