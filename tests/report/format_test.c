// A strict checker of the form of the file: the requirements of Perfetto, chrome://tracing
// and HTA on a trace of PyTorch's profiler, and their unstated assumptions.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/region.h>
#include <weir/report.h>
#include <weir/status.h>

#include "base/file.h"
#include "tests/report/made.h"
#include "tests/support/report.h"
#include "tests/support/test.h"

enum {
    FLOW_LIMIT = 512
};

// An end of an arrow.
struct flow {
    const char *category;
    json_int_t id;
    char phase;
    double ts;
};

struct checker {
    const char *file; // as text
    json_t *root;
    size_t of_device;
    size_t of_calls;
    size_t arrows; // of waits
    struct flow flows[FLOW_LIMIT];
    size_t flow_count;
};

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool is_among(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, text) == 0)
            return true;
    return false;
}

static void expect_integer(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    weir_test_note("%s", key);
    EXPECT_TRUE(json_is_integer(value));
    EXPECT_INT_GE(json_integer_value(value), 0);
    weir_test_note(NULL);
}

// Microseconds that are written with three decimals, as the profiler does.
static void expect_decimals(const char *line, const char *key)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, "\"%s\":", key);
    const char *at = strstr(line, pattern);
    ASSERT_NOT_NULL(at);
    at += strlen(pattern);
    const size_t whole = strspn(at, "0123456789");
    EXPECT_UINT_GT(whole, 0);
    EXPECT_INT_EQ(at[whole], '.');
    EXPECT_UINT_EQ(strspn(at + whole + 1, "0123456789"), 3);
}

static void check_head(const struct checker *checker)
{
    const json_t *info = json_object_get(checker->root, "distributedInfo");
    const json_t *properties = json_object_get(checker->root, "deviceProperties");
    EXPECT_INT_EQ(json_integer_value(json_object_get(checker->root, "schemaVersion")), 1);
    EXPECT_INT_EQ(json_integer_value(json_object_get(info, "rank")), 0);
    // HTA looks for the text, with the space.
    EXPECT_CONTAINS(checker->file, "\"rank\": 0");
    expect_integer(checker->root, "baseTimeNanoseconds");
    ASSERT_UINT_GT(json_array_size(properties), 0);
    for (size_t i = 0; i < json_array_size(properties); i++) {
        const json_t *property = json_array_get(properties, i);
        expect_integer(property, "id");
        expect_integer(property, "totalGlobalMem");
        EXPECT_TRUE(json_is_string(json_object_get(property, "name")));
    }
    // The events are the last member of the object.
    void *last = NULL;
    for (void *at = json_object_iter(checker->root); at;
         at = json_object_iter_next(checker->root, at))
        last = at;
    ASSERT_NOT_NULL(last);
    EXPECT_STR_EQ(json_object_iter_key(last), "traceEvents");
}

static void check_device_row(struct checker *checker, const json_t *event, const char *category)
{
    const json_t *args = json_object_get(event, "args");
    const char *name = string_of(event, "name");
    const bool copies = strstr(name, "Memcpy") != NULL;
    const bool fills = strstr(name, "Memset") != NULL;
    expect_integer(args, "stream");
    expect_integer(args, "correlation");
    expect_integer(args, "device");
    EXPECT_INT_EQ(json_integer_value(json_object_get(args, "stream")),
                  json_integer_value(json_object_get(event, "tid")));
    EXPECT_INT_EQ(json_integer_value(json_object_get(args, "device")),
                  json_integer_value(json_object_get(event, "pid")));
    // HTA distinguishes kinds only by name.
    EXPECT_TRUE(copies == (strcmp(category, "gpu_memcpy") == 0));
    EXPECT_TRUE(fills == (strcmp(category, "gpu_memset") == 0));
    if (copies) {
        char from[16];
        char to[16];
        char one;
        char other;
        EXPECT_INT_EQ(sscanf(name, "Memcpy %cto%c (%15[A-Za-z] -> %15[A-Za-z])", &one, &other, from,
                             to),
                      4);
        expect_integer(args, "bytes");
    }
    checker->of_device++;
}

static void check_slice(struct checker *checker, const json_t *event, const char *line)
{
    static const char *const device[] = {"kernel", "gpu_memcpy", "gpu_memset", NULL};
    static const char *const others[] = {"cuda_runtime", "cuda_sync", "user_annotation",
                                         "host_call",    "graph",     NULL};
    const char *category = string_of(event, "cat");
    const json_t *args = json_object_get(event, "args");
    EXPECT_TRUE(json_is_object(args));
    expect_decimals(line, "ts");
    expect_decimals(line, "dur");
    EXPECT_DOUBLE_GE(json_number_value(json_object_get(event, "ts")), 0);
    EXPECT_DOUBLE_GE(json_number_value(json_object_get(event, "dur")), 0);
    if (is_among(category, device)) {
        check_device_row(checker, event, category);
        return;
    }
    if (!is_among(category, others))
        WEIR_FAIL("there is no category '%s' in: %s", category, line);
    // Whatever has a stream counts as work of the device.
    EXPECT_NULL(json_object_get(args, "stream"));
    if (strcmp(category, "cuda_runtime") == 0) {
        expect_integer(args, "correlation");
        checker->of_calls++;
    }
}

static void check_flow(struct checker *checker, const json_t *event, const char *line)
{
    const char *category = string_of(event, "cat");
    expect_integer(event, "id");
    expect_decimals(line, "ts");
    EXPECT_TRUE(strcmp(category, "ac2g") == 0 || strcmp(category, "wait") == 0);
    EXPECT_STR_EQ(string_of(event, "name"), category);
    if (*string_of(event, "ph") == 'f')
        EXPECT_STR_EQ(string_of(event, "bp"), "e");
    ASSERT_UINT_LT(checker->flow_count, FLOW_LIMIT);
    checker->flows[checker->flow_count++] = (struct flow){
        .category = category,
        .id = json_integer_value(json_object_get(event, "id")),
        .phase = *string_of(event, "ph"),
        .ts = json_number_value(json_object_get(event, "ts")),
    };
    checker->arrows += strcmp(category, "wait") == 0 && *string_of(event, "ph") == 's';
}

static void check_event(struct checker *checker, const json_t *event, const char *line)
{
    const char *phase = string_of(event, "ph");
    EXPECT_TRUE(json_is_string(json_object_get(event, "name")));
    expect_integer(event, "pid");
    expect_integer(event, "tid");
    if (strcmp(phase, "X") == 0)
        check_slice(checker, event, line);
    else if (strcmp(phase, "s") == 0 || strcmp(phase, "f") == 0)
        check_flow(checker, event, line);
    else if (strcmp(phase, "M") == 0)
        EXPECT_TRUE(json_is_string(json_object_get(json_object_get(event, "args"), "name")));
    else if (strcmp(phase, "i") == 0)
        EXPECT_STR_EQ(string_of(event, "s"), "t");
    else
        WEIR_FAIL("there is no phase '%s' in: %s", phase, line);
}

// Each arrow has both ends, and each end belongs to one arrow.
static void check_flows(const struct checker *checker)
{
    for (size_t i = 0; i < checker->flow_count; i++) {
        size_t same = 0;
        size_t opposite = 0;
        for (size_t k = 0; k < checker->flow_count; k++) {
            if (checker->flows[k].id != checker->flows[i].id ||
                strcmp(checker->flows[k].category, checker->flows[i].category) != 0)
                continue;
            same += checker->flows[k].phase == checker->flows[i].phase;
            opposite += checker->flows[k].phase != checker->flows[i].phase;
        }
        EXPECT_UINT_EQ(same, 1);
        EXPECT_UINT_EQ(opposite, 1);
    }
}

// An end of an arrow must be inside a slice of its row, or viewers do not draw it.
static void check_bindings(const struct checker *checker, const json_t *events)
{
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *flow = json_array_get(events, i);
        const char *phase = string_of(flow, "ph");
        bool bound = false;
        if (strcmp(phase, "s") != 0 && strcmp(phase, "f") != 0)
            continue;
        const double ts = json_number_value(json_object_get(flow, "ts"));
        for (size_t k = 0; k < json_array_size(events) && !bound; k++) {
            const json_t *slice = json_array_get(events, k);
            const double begin = json_number_value(json_object_get(slice, "ts"));
            const double end = begin + json_number_value(json_object_get(slice, "dur"));
            bound = strcmp(string_of(slice, "ph"), "X") == 0 &&
                    json_equal(json_object_get(slice, "pid"), json_object_get(flow, "pid")) &&
                    json_equal(json_object_get(slice, "tid"), json_object_get(flow, "tid")) &&
                    ts >= begin - 1e-9 && ts <= end + 1e-9;
        }
        EXPECT_TRUE(bound);
    }
}

static void check_file(const char *path, struct checker *checker)
{
    void *data = NULL;
    size_t size = 0;
    char message[512] = "";
    json_error_t error;
    *checker = (struct checker){0};
    if (!weir_file_read(path, (size_t)1 << 24, &data, &size, message, sizeof message))
        WEIR_FAIL("%s", message);
    checker->file = data;
    // As strict as jansson can be.
    checker->root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
    if (!checker->root)
        WEIR_FAIL("line %d: %s", error.line, error.text);
    check_head(checker);
    const json_t *events = json_object_get(checker->root, "traceEvents");
    // One event per line, in order.
    const char *line = strstr(data, "\"traceEvents\": [\n") + strlen("\"traceEvents\": [\n");
    for (size_t i = 0; i < json_array_size(events); i++) {
        char text[4096];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        check_event(checker, json_array_get(events, i), text);
        line += strcspn(line, "\n") + 1;
    }
    EXPECT_STR_EQ(line, "]\n}\n");
    check_flows(checker);
    check_bindings(checker, events);
    json_decref(checker->root);
    free(data);
}

static struct made made;

static const char *path_of_trace(void)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/trace.json", weir_test_temp_dir());
    return path;
}

WEIR_TEST(Format, EveryKindOfRowIsSound)
{
    struct checker checker;
    const char *path = path_of_trace();
    made_begin(&made);
    made_queue(&made, "up \"<&\x02\xff>");
    made_queue(&made, "run");
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
    made_write(&made, path);
    check_file(path, &checker);
    EXPECT_UINT_EQ(checker.of_device, 4);
    EXPECT_UINT_EQ(checker.of_calls, 7);
    EXPECT_UINT_EQ(checker.arrows, 1);
}

WEIR_TEST(Format, RandomTracesAreSound)
{
    const char *path = path_of_trace();
    size_t arrows = 0;
    for (uint32_t seed = 1; seed <= 100 && !weir_test_has_failed(); seed++) {
        struct checker checker;
        weir_test_note("seed %u", (unsigned)seed);
        made_random(&made, seed, 1234567);
        made_write(&made, path);
        check_file(path, &checker);
        EXPECT_UINT_EQ(checker.of_calls, made.operation_count);
        arrows += checker.arrows;
    }
    EXPECT_UINT_GT(arrows, 100);
}

WEIR_TEST(Format, ProcessesAreNotTakenForDevices)
{
    struct checker checker;
    own_trace trace = NULL;
    char message[512];
    const char *path = path_of_trace();
    made_begin(&made);
    made.meta.process = 0; // as in a container, but worse
    made_queue(&made, "q");
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 5000, 6000);
    made_write(&made, path);
    check_file(path, &checker);
    ASSERT_TRUE(weir_trace_read(path, NULL, &trace, message, sizeof message));
    EXPECT_UINT_EQ(trace->device_count, 1);
    EXPECT_UINT_EQ(trace->thread_count, 1);
}

// In a program whose locale has a decimal comma, figures are read and written as ever. The
// locale is made here, of a table of ASCII and of nothing but its numbers.

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
    EXPECT_OK(weir_report_check(report, "idle<=0.99", &finding));
    EXPECT_TRUE(finding.holds);
    EXPECT_OK(weir_report_check(report, "speedup>=1.5", &finding));
    EXPECT_FALSE(finding.holds);
    EXPECT_CONTAINS(finding.sentence, "1.25, and not >= 1.5");
    EXPECT_OK(weir_report_check(report, "bubbles<=0.5ms", &finding));
    EXPECT_TRUE(finding.holds);
    EXPECT_INT_LT(weir_report_check(report, "idle<=0,99", &finding), 0);
    char *text = weir_report_text(report);
    EXPECT_CONTAINS(text, "1.25: the durations");
    EXPECT_CONTAINS(text, "2.00 us: idle 0.0 %");
    EXPECT_NOT_CONTAINS(text, "1,25");
    weir_report_free_text(&text);
    text = weir_report_json(report);
    EXPECT_CONTAINS(text, "\"speedup_most\": 1.25");
    weir_report_free_text(&text);
    weir_report_destroy(&report);
    expect_comma(); // nothing has changed the program's locale
    setlocale(LC_NUMERIC, "C");
}
