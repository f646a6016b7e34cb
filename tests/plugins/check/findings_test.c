// What becomes of findings: their words, the pairs that are kept, suppressions and files. Each kind of finding:
// tests/races; what `weir check` makes of the files: tests/cli/check_test.sh.
#include <jansson.h>

#include "base/file.h"
#include "tests/plugins/check/rig.h"

// Fills on two queues that nothing orders, at lines of a file. The status of the second one.
static weir_status race_of(struct rig *rig, weir_buffer *buffer, const char *file, int first,
                           int second)
{
    rig_sync(rig->two);
    EXPECT_OK(weir_queue_fill_at(rig->one, buffer, 0, 64, "x", 1, file, first));
    const weir_status status =
        weir_queue_fill_at(rig->two, buffer, 0, 64, "x", 1, "src/app.c", second);
    if (status < 0)
        EXPECT_OK(weir_queue_recover(rig->two));
    rig_sync(rig->one);
    return status;
}

// A file of suppressions, and the lines of [check] that name it.
static const char *suppressions(const char *text)
{
    static char section[600];
    char message[512];
    const char *path = weir_test_path("known.json");
    if (!weir_file_write(path, text, strlen(text), message, sizeof message))
        weir_test_fail(__FILE__, __LINE__, "%s", message);
    snprintf(section, sizeof section, "report = fail\nsuppressions = %s\n", path);
    return section;
}

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

static void expect_json(const char *path, size_t count, bool complete)
{
    json_t *root = json_of(path);
    EXPECT_UINT_EQ(json_array_size(at(root, "findings")), count);
    EXPECT_INT_EQ(json_is_true(at(root, "complete")), complete);
    json_decref(root);
}

// Queues of one label and a buffer without one go by their numbers; what a terminal would obey is escaped.
RIG_TEST(CheckFindings, OfWhatHasNoNameOfItsOwn, "")
{
    own_queue other = test_queue(rig->device, "one");
    own_buffer plain = test_buffer(rig->device, "", SIZE, WEIR_PLACE_DEVICE);
    own_buffer odd = test_buffer(rig->device, "a\x1b[31m\nb\xff", SIZE, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_queue_fill(rig->one, plain, 17, 1, "x", 1));
    EXPECT_OK(weir_queue_fill_at(other, plain, 17, 1, "x", 1, NULL, 0));
    const struct weir_check_finding found = rig_finding(rig, 0);
    EXPECT_CONTAINS(found.message, "on 'one' (queue ");
    EXPECT_CONTAINS(found.message, "a line that is not known writes byte 17 of buffer ");
    EXPECT_CONTAINS(found.remedy, "'one' (queue ");
    EXPECT_OK(race_of(rig, odd, "src/app.c", 80, 91));
    EXPECT_CONTAINS(rig_finding(rig, 1).message, "'a\\x1b[31m\\nb\\xff'");
}

static void add_pairs(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        EXPECT_INT_EQ(race_of(rig, rig->a, "src/app.c", 80, 1000 + i), WEIR_ERROR_INVALID);
}

RIG_TEST(CheckFindings, MorePairsThanAreKept, "report = fail")
{
    add_pairs(rig, 1003);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1000);
    EXPECT_CONTAINS(weir_last_error_text(), "one more pair of lines than the 1000");
    rig_told[0] = '\0';
    rig_close(rig);
    EXPECT_CONTAINS(rig_told, "3 uses in more pairs of lines than the 1000");
}

// The file is whole at each moment, since a process may be killed. Of many findings it is not made anew each time.
WEIR_TEST(CheckFiles, AreWholeWithManyFindings)
{
    enum {
        MANY = 80
    };
    const char *path = weir_test_path("many.json");
    char section[600];
    struct rig rig;
    snprintf(section, sizeof section, "report = fail\njson = %s\n", path);
    rig_open(&rig, section);
    expect_json(path, 0, false);
    add_pairs(&rig, MANY);
    add_pairs(&rig, MANY);
    expect_json(path, MANY, false);
    rig_close(&rig);
    expect_json(path, MANY, true);
    json_t *root = json_of(path);
    for (size_t i = 0; i < MANY; i++) {
        const json_t *finding = json_array_get(at(root, "findings"), i);
        EXPECT_INT_EQ(json_integer_value(at(at(finding, "second"), "line")), 1000 + (int)i);
        EXPECT_INT_EQ(json_integer_value(at(finding, "count")), 2);
    }
    json_decref(root);
}

WEIR_TEST(CheckFindings, AreSuppressedByKindLinesAndBuffer)
{
    static const struct {
        const char *entry;
        bool applies;
    } rows[] = {
        {"\"kind\": \"write-after-write\"", true},
        {"\"kind\": \"host-read\"", false},
        {"\"first\": \"app.c:80\"", true},
        {"\"first\": \"src/app.c\"", true},
        {"\"first\": \"pp.c\"", false},
        {"\"first\": \"app.c:81\"", false},
        {"\"second\": \"app.c:91\", \"buffer\": \"h*t\"", true},
        {"\"second\": \"app.c:91\", \"buffer\": \"other\"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        char text[128];
        weir_test_note("%s", rows[i].entry);
        snprintf(text, sizeof text, "[{%s, \"reason\": \"it is so\"}]", rows[i].entry);
        rig_open(&rig, suppressions(text));
        EXPECT_INT_EQ(race_of(&rig, rig.host, "src/app.c", 80, 91),
                      rows[i].applies ? WEIR_OK : WEIR_ERROR_INVALID);
        EXPECT_UINT_EQ(weir_check_error_count(rig.runtime), !rows[i].applies);
        const char *reason = rig_finding(&rig, 0).suppression;
        EXPECT_STR_EQ(reason ? reason : "", rows[i].applies ? "it is so" : "");
        rig_close(&rig);
        EXPECT_TRUE(rows[i].applies == !strstr(rig_told, "entry 1 suppresses nothing"));
    }
    weir_test_note(NULL);
}

static void expect_refused(const char *section, weir_status status, const char *message,
                           const char *remedy)
{
    weir_runtime *runtime;
    char text[1024];
    snprintf(text, sizeof text, "[check]\n%s\n", section);
    EXPECT_FAILURE(weir_open(WEIR_PARAMS(weir_open, .backend = "null", .plugins = "check",
                                         .config_path = "rig.ini", .config_text = text),
                             &runtime),
                   status, message);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
}

WEIR_TEST(CheckSettings, WrongSuppressionsAreRefused)
{
    static const struct {
        const char *text, *message, *remedy;
    } rows[] = {
        {"", "line 1: ", "a list of objects"},
        {"[\n{\"reason\": }]", "line 2: ", "a list of objects"},
        {"{}", "the file holds no list", "a list of objects"},
        {"[3]", "entry 1 is no object", "a list of objects"},
        {"[{\"kind\": \"host-read\"}]", "entry 1 has no reason", "why nothing is wrong"},
        {"[{\"kind\": \"host-read\", \"reason\": \" \"}]", "entry 1 has no reason", "why"},
        {"[{\"reason\": \"x\"}]", "entry 1 would suppress everything", "name a kind"},
        {"[{\"reason\": 3}]", "entry 1 has a 'reason' that is no text", "write a text"},
        {"[{\"reson\": \"x\"}]", "entry 1 has a key 'reson', which does not exist",
         "did you mean 'reason'?"},
        {"[{\"qqqqqqqqqq\": \"x\"}]", "entry 1 has a key 'qqqqqqqqqq'",
         "its keys are kind, first, second, buffer and reason"},
        {"[{\"kind\": \"host-raed\", \"reason\": \"x\"}]", "entry 1 has the kind 'host-raed'",
         "did you mean 'host-read'?"},
        {"[{\"kind\": \"qqqqqqqqqq\", \"reason\": \"x\"}]", "has the kind 'qqqqqqqqqq'",
         "docs/check.md lists"},
        {"[{\"first\": \"a\", \"reason\": \"x\"},\n {\"first\": \"a\"}]", "entry 2 has no reason",
         "why"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_refused(suppressions(rows[i].text), WEIR_ERROR_CONFIG, rows[i].message,
                       rows[i].remedy);
}

WEIR_TEST(CheckSettings, WrongOnesAreRefused)
{
    char path[700] = "text = /";
    expect_refused("report = loud", WEIR_ERROR_CONFIG, "rig.ini:2: ", "");
    expect_refused("reprot = log", WEIR_ERROR_CONFIG, "report", "");
    expect_refused("suppressions = /nowhere/at/all.json", WEIR_ERROR_CONFIG, "/nowhere/at/all.json",
                   "");
    expect_refused("sarif = /nowhere/at/all.sarif", WEIR_ERROR_IO, "/nowhere/at/all.sarif", "");
    memset(path + strlen(path), 'a', sizeof path - 1 - strlen(path));
    expect_refused(path, WEIR_ERROR_CONFIG, "", "");
}

// No name is given out twice in a process.
WEIR_TEST(CheckFiles, OfTwoRuntimes)
{
    char section[600];
    struct rig first, second;
    snprintf(section, sizeof section, "json = %s\n", weir_test_path("runtimes.json"));
    rig_open(&first, section);
    rig_open(&second, section);
    EXPECT_OK(race_of(&second, second.a, "src/app.c", 80, 91));
    rig_close(&second);
    rig_close(&first);
    expect_json(weir_test_path("runtimes.json"), 0, true);
    expect_json(weir_test_path("runtimes.2.json"), 1, true);
}

static const json_t *place_of(const json_t *result, const char *key)
{
    return at(json_array_get(at(result, key), 0), "physicalLocation");
}

static const char *uri_of(const json_t *place)
{
    return json_string_value(at(at(place, "artifactLocation"), "uri"));
}

// What the standard requires of each object, and what tools of code review read.
static void expect_sarif(const json_t *run)
{
    const json_t *driver = at(at(run, "tool"), "driver"), *results = at(run, "results");
    const json_t *invocation = json_array_get(at(run, "invocations"), 0);
    EXPECT_STR_EQ(json_string_value(at(driver, "name")), "weir check");
    EXPECT_TRUE(json_is_true(at(invocation, "executionSuccessful")));
    ASSERT_UINT_EQ(json_array_size(results), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *result = json_array_get(results, i);
        const size_t index = (size_t)json_integer_value(at(result, "ruleIndex"));
        EXPECT_STR_EQ(json_string_value(at(json_array_get(at(driver, "rules"), index), "id")),
                      json_string_value(at(result, "ruleId")));
        EXPECT_STR_EQ(json_string_value(at(result, "level")), "error");
        EXPECT_TRUE(json_is_string(at(at(result, "message"), "text")));
        EXPECT_UINT_EQ(json_array_size(at(result, "suppressions")), i);
    }
    const json_t *result = json_array_get(results, 0);
    const json_t *place = place_of(result, "locations");
    EXPECT_STR_EQ(uri_of(place), "src/app.c");
    EXPECT_STR_EQ(json_string_value(at(at(place, "artifactLocation"), "uriBaseId")), "%SRCROOT%");
    EXPECT_INT_EQ(json_integer_value(at(at(place, "region"), "startLine")), 91);
    EXPECT_STR_EQ(uri_of(place_of(result, "relatedLocations")), "file:///a%20b/%C3%A4.c");
    result = json_array_get(results, 1);
    EXPECT_UINT_EQ(json_array_size(at(result, "locations")), 0);
    const json_t *suppression = json_array_get(at(result, "suppressions"), 0);
    EXPECT_STR_EQ(json_string_value(at(suppression, "kind")), "external");
    EXPECT_STR_EQ(json_string_value(at(suppression, "justification")), "it is so");
}

WEIR_TEST(CheckFiles, SarifHasItsRequiredFields)
{
    const char *path = weir_test_path("found.sarif");
    char section[1200];
    struct rig rig;
    snprintf(section, sizeof section, "%sreport = log\nsarif = %s\n",
             suppressions("[{\"kind\": \"unwritten\", \"reason\": \"it is so\"}]") +
                 strlen("report = fail\n"),
             path);
    rig_open(&rig, section);
    weir_buffer *blank = test_buffer(rig.device, "blank", SIZE, WEIR_PLACE_DEVICE);
    EXPECT_OK(race_of(&rig, rig.a, "/a b/ä.c", 80, 91));
    EXPECT_OK(weir_queue_copy_at(rig.one, rig.b, 0, blank, 0, SIZE, NULL, 0));
    weir_buffer_destroy(&blank);
    rig_close(&rig);
    json_t *log = json_of(path);
    EXPECT_STR_EQ(json_string_value(at(log, "version")), "2.1.0");
    expect_sarif(json_array_get(at(log, "runs"), 0));
    json_decref(log);
}
