// Reports on traces with known results.

#include <jansson.h>

#include "tests/report/made.h"

enum {
    US = 1000,
    MS = 1000000
};

static struct made made;

static struct weir_report_overlap overlap_of(const weir_report *report, const char *first,
                                             const char *second)
{
    struct weir_report_overlap overlap;
    if (weir_report_get_overlap(report, first, second, &overlap) != WEIR_OK)
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return overlap;
}

// An operation that was submitted long before, at 0.
static struct weir_trace_operation *early(size_t queue, enum weir_trace_engine engine,
                                          uint64_t start_ns, uint64_t end_ns)
{
    struct weir_trace_operation *operation = made_operation(&made, queue, engine, start_ns, end_ns);
    operation->submit_ns = operation->submit_end_ns = 0;
    return operation;
}

// The sentence about the condition has these words.
static void expect_check(const weir_report *report, const char *condition, bool holds,
                         const char *words)
{
    struct weir_report_finding check;
    weir_test_note("%s", condition);
    EXPECT_OK(weir_report_check(report, condition, &check));
    EXPECT_TRUE(check.holds == holds);
    EXPECT_STR_NE(check.sentence, "");
    EXPECT_CONTAINS(check.sentence, words);
    weir_test_note(NULL);
}

// Copies up and down and a kernel, each for `each`, three chunks deep: up, run, down.
static void make_chunks(uint64_t each)
{
    made_begin(&made, 3, "up", "run", "down");
    for (uint64_t i = 0; i < 4; i++) {
        early(0, WEIR_ENGINE_TO_DEVICE, i * each, (i + 1) * each);
        early(1, WEIR_ENGINE_KERNELS, (i + 1) * each, (i + 2) * each);
        made_wait(&made, 0);
        early(2, WEIR_ENGINE_TO_HOST, (i + 2) * each, (i + 3) * each);
        made_wait(&made, 1);
    }
}

WEIR_TEST(Report, OfChunksThatOverlap)
{
    make_chunks(MS);
    weir_report *report = made_report(&made, NULL);
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    // Twelve operations of 1 ms in 6 ms.
    EXPECT_UINT_EQ(summary->operations, 12);
    EXPECT_UINT_EQ(summary->span_ns, 6 * MS);
    EXPECT_UINT_EQ(summary->idle_ns, 0);
    EXPECT_UINT_EQ(summary->compute_ns, 4 * MS);
    EXPECT_UINT_EQ(summary->non_compute_ns, 2 * MS);
    EXPECT_NEAR(summary->speedup_most, 2.0, 1e-9);
    EXPECT_NEAR(summary->speedup_least, 2.0, 1e-9);
    EXPECT_TRUE(summary->exact);
    EXPECT_UINT_EQ(summary->bound_ns, 4 * MS);
    EXPECT_NEAR(summary->bound_distance, 1.5, 1e-9);
    EXPECT_STR_EQ(summary->serial_reason, "");
    EXPECT_UINT_EQ(summary->bubbles, 0);
    EXPECT_INT_EQ(summary->verdict, WEIR_REPORT_DEVICE_BOUND);
    EXPECT_NEAR(summary->device_share, 1.0, 1e-9);
    const struct weir_report_overlap overlap = overlap_of(report, "copy", "compute");
    EXPECT_TRUE(overlap.applies);
    // Copies run all the time, kernels four of six.
    EXPECT_UINT_EQ(overlap.both.most_ns, 4 * MS);
    EXPECT_NEAR(overlap.least, 4.0 / 6, 1e-9);
    EXPECT_NEAR(overlap_of(report, "compute", "copy").least, 1.0, 1e-9);
    EXPECT_NEAR(overlap_of(report, "h2d", "d2h").least, 0.5, 1e-9);
    EXPECT_NEAR(overlap_of(report, "copy", "copy").least, 2.0 / 6, 1e-9);
    EXPECT_NEAR(overlap_of(report, "queue:up", "name:scale").least, 0.75, 1e-9);
    EXPECT_STR_EQ(weir_report_get_row(report, WEIR_REPORT_QUEUES, 1)->name, "run");
    EXPECT_UINT_EQ(weir_report_get_row(report, WEIR_REPORT_QUEUES, 1)->busy.most_ns, 4 * MS);
    EXPECT_UINT_EQ(weir_report_find_row(report, WEIR_REPORT_KINDS, "copy")->count, 8);
    EXPECT_UINT_EQ(weir_report_find_row(report, WEIR_REPORT_ENGINES, "to_host")->bytes, 400);
    EXPECT_NULL(weir_report_find_row(report, WEIR_REPORT_KINDS, "fill"));
    weir_report_destroy(&report);
    EXPECT_NULL(report);
}

WEIR_TEST(Report, KernelsWithoutStartsGiveAnInterval)
{
    made_begin(&made, 2, "a", "b");
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, 4 * MS)->start_is_earliest = true;
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 0, 10 * MS)->start_is_earliest = true;
    own_report report = made_report(&made, NULL);
    const struct weir_report_overlap overlap = overlap_of(report, "compute", "compute");
    EXPECT_FALSE(weir_report_get_summary(report)->exact);
    // The second may have begun with the first, or after it.
    EXPECT_UINT_EQ(overlap.both.least_ns, 0);
    EXPECT_UINT_EQ(overlap.both.most_ns, 4 * MS);
    EXPECT_NEAR(overlap.least, 0, 1e-9);
    EXPECT_NEAR(overlap.most, 0.4, 1e-9);
    EXPECT_UINT_EQ(overlap.first.least_ns, 10 * MS);
    EXPECT_NEAR(weir_report_get_summary(report)->speedup_least, 1.0, 1e-9);
    EXPECT_NEAR(weir_report_get_summary(report)->speedup_most, 1.4, 1e-9);
    expect_check(report, "overlap compute/compute>=0.2", false, "between 0.0 % and 40.0 %");
}

WEIR_TEST(Report, ADeviceThatSerialisesHasNoOverlap)
{
    made_begin(&made, 0);
    made.devices[0].copy_engines_to_device = 0;
    made.devices[0].copy_engines_to_host = 0;
    made.devices[0].concurrent_kernels = 1;
    made_queue(&made, "a");
    made_queue(&made, "b");
    made_operation(&made, 0, WEIR_ENGINE_TO_DEVICE, 0, MS);
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, MS, 2 * MS);
    own_report report = made_report(&made, NULL);
    struct weir_report_overlap overlap = overlap_of(report, "copy", "compute");
    EXPECT_FALSE(overlap.applies);
    EXPECT_CONTAINS(overlap.reason, "a device has no copy engine and runs one kernel at a time");
    EXPECT_CONTAINS(weir_report_get_summary(report)->serial_reason, "no two operations");
    expect_check(report, "speedup<=9", false, "n/a: a device");
    weir_report_destroy(&report);

    // A device on which operations did run at once is not serial, whatever its limits
    // say.
    made.operations[1].start_ns = MS / 2;
    report = made_report(&made, NULL);
    overlap = overlap_of(report, "copy", "compute");
    EXPECT_TRUE(overlap.applies);
    EXPECT_NEAR(overlap.least, 0.5, 1e-9);
}

// Communication that kernels hide, and how much of it: a row of the report, and a condition.
WEIR_TEST(Report, CommunicationHasARow)
{
    made_begin(&made, 2, "run", "reduce");
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, 3 * MS);
    made_operation(&made, 1, WEIR_ENGINE_COMMUNICATION, 2 * MS, 6 * MS)->kind =
        WEIR_TRACE_COLLECTIVE;
    own_report report = made_report(&made, NULL);
    EXPECT_NEAR(overlap_of(report, "communication", "compute").least, 0.25, 1e-9);
    EXPECT_UINT_EQ(weir_report_get_summary(report)->compute_ns, 3 * MS);
    EXPECT_UINT_EQ(weir_report_get_summary(report)->non_compute_ns, 3 * MS);
    EXPECT_STR_EQ(weir_report_get_summary(report)->bound_engine, "communication");
    expect_check(report, "overlap communication/compute>=0.2", true, "");
    own_text text = weir_report_text(report);
    EXPECT_CONTAINS(text, "communication / compute");
}

// Bubbles.

// The only one.
static struct weir_report_bubble expect_bubble(const weir_report *report, weir_report_cause cause,
                                               const char *words)
{
    const struct weir_report_bubble *bubble = weir_report_get_bubble(report, false, 0);
    EXPECT_UINT_EQ(weir_report_bubble_count(report, false), 1);
    if (!bubble)
        return (struct weir_report_bubble){.file = ""};
    EXPECT_INT_EQ(bubble->cause, cause);
    EXPECT_CONTAINS(bubble->sentence, words);
    return *bubble;
}

static void begin_bubble(void)
{
    made_begin(&made, 2, "first", "second");
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, MS);
}

WEIR_TEST(Bubbles, OfLateSubmission)
{
    begin_bubble();
    struct weir_trace_operation *late =
        made_operation(&made, 1, WEIR_ENGINE_KERNELS, 3 * MS, 4 * MS);
    late->submit_ns = 2900 * US;
    late->submit_end_ns = 2950 * US;
    made.spans[made.span_count++] =
        (struct weir_trace_span){WEIR_TRACE_SYNC, 99,       "weir_queue_sync",
                                 WEIR_NO_NUMBER,  500 * US, 2800 * US};
    own_report report = made_report(&made, NULL);
    const struct weir_report_bubble bubble =
        expect_bubble(report, WEIR_REPORT_CAUSE_SUBMIT,
                      "'scale' on queue 'second' was submitted 1.90 ms after");
    EXPECT_UINT_EQ(bubble.begin_ns, MS);
    EXPECT_UINT_EQ(bubble.end_ns, 3 * MS);
    EXPECT_CONTAINS(bubble.sentence, "its thread was in weir_queue_sync");
    EXPECT_STR_EQ(bubble.file, "made.c");
    EXPECT_INT_EQ(bubble.line, 2);
    EXPECT_UINT_EQ(weir_report_get_summary(report)->longest_bubble_ns, 2 * MS);
    EXPECT_INT_EQ(weir_report_get_summary(report)->verdict, WEIR_REPORT_MIXED);
}

WEIR_TEST(Bubbles, OfAWait)
{
    begin_bubble();
    made_queue(&made, "host");
    made_operation(&made, 2, WEIR_ENGINE_HOST, MS / 2, 2800 * US);
    early(1, WEIR_ENGINE_KERNELS, 3 * MS, 4 * MS);
    made_wait(&made, 0);
    made_wait(&made, 2);
    own_report report = made_report(&made, NULL);
    const struct weir_report_bubble bubble =
        expect_bubble(report, WEIR_REPORT_CAUSE_WAIT,
                      "'scale' on queue 'second' waited for 'host call' on queue 'host'");
    EXPECT_STR_EQ(bubble.file, "wait.c");
    EXPECT_INT_EQ(bubble.line, 2);
    // The host's share of the path: the call, from where the first kernel ended.
    EXPECT_NEAR(weir_report_get_summary(report)->host_share, 2.8 / 4, 0.2);
}

WEIR_TEST(Bubbles, OfItsOwnQueue)
{
    begin_bubble();
    early(1, WEIR_ENGINE_HOST, 0, 2500 * US);
    early(1, WEIR_ENGINE_KERNELS, 3 * MS, 4 * MS);
    own_report report = made_report(&made, NULL);
    expect_bubble(report, WEIR_REPORT_CAUSE_QUEUE,
                  "came after 'host call' on queue 'second' in its queue");
}

WEIR_TEST(Bubbles, OfLatency)
{
    begin_bubble();
    early(1, WEIR_ENGINE_KERNELS, 3 * MS, 4 * MS);
    own_report report = made_report(&made, NULL);
    expect_bubble(report, WEIR_REPORT_CAUSE_LATENCY, "was free to run 2.00 ms before it began");
    EXPECT_NEAR(weir_report_get_summary(report)->latency_share, 0.5, 0.3);
}

WEIR_TEST(Bubbles, TheLongestAreKeptInOrder)
{
    made_begin(&made, 1, "q");
    for (uint64_t i = 0, at = 0; i < 9; i++) {
        made_operation(&made, 0, WEIR_ENGINE_KERNELS, at, at + 10);
        at += 10 + (i * 5 % 9 + 1) * 100;
    }
    own_report report = made_report(&made, WEIR_PARAMS(weir_report, .bubble_limit = 3));
    ASSERT_UINT_EQ(weir_report_bubble_count(report, false), 3);
    EXPECT_UINT_EQ(weir_report_get_summary(report)->bubbles, 8);
    for (size_t i = 0; i < 3; i++) {
        const struct weir_report_bubble *bubble = weir_report_get_bubble(report, false, i);
        const uint64_t length = bubble->end_ns - bubble->begin_ns;
        EXPECT_UINT_EQ(length, i == 0 ? 900 : i == 1 ? 800 : 700);
    }
    EXPECT_NULL(weir_report_get_bubble(report, false, 3));
}

// The path.

WEIR_TEST(Path, GoesThroughWhatHeldUpTheEnd)
{
    made_begin(&made, 2, "up", "run");
    early(0, WEIR_ENGINE_TO_DEVICE, 0, 5 * MS);
    // Ends early, and delays nothing.
    early(1, WEIR_ENGINE_KERNELS, 0, MS)->name = "early";
    early(1, WEIR_ENGINE_KERNELS, 5 * MS, 8 * MS)->name = "late";
    made_wait(&made, 0);
    own_report report = made_report(&made, NULL);
    ASSERT_UINT_EQ(weir_report_row_count(report, WEIR_REPORT_PATH), 2);
    const struct weir_report_row *copy = weir_report_get_row(report, WEIR_REPORT_PATH, 0);
    const struct weir_report_row *kernel = weir_report_get_row(report, WEIR_REPORT_PATH, 1);
    EXPECT_STR_EQ(copy->name, "Memcpy HtoD (Pinned -> Device)");
    EXPECT_NEAR(copy->utilisation, 5.0 / 8, 1e-9);
    EXPECT_STR_EQ(kernel->name, "late");
    EXPECT_UINT_EQ(kernel->busy.most_ns, 3 * MS);
}

WEIR_TEST(Path, GoesThroughAnEngineWhoseTimesOverlapALittle)
{
    made_begin(&made, 3, "a", "b", "c");
    made.devices[0].concurrent_kernels = 1;
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, 5 * MS);
    made_operation(&made, 1, WEIR_ENGINE_KERNELS, 2 * MS, 2 * MS + US)->name = "short";
    early(2, WEIR_ENGINE_KERNELS, 4990 * US, 8 * MS);
    own_report report = made_report(&made, NULL);
    EXPECT_NEAR(weir_report_get_summary(report)->device_share, 1.0, 1e-9);
    EXPECT_UINT_EQ(weir_report_find_row(report, WEIR_REPORT_PATH, "scale")->count, 2);
}

WEIR_TEST(Path, OfAHostThatIsLateIsTheHosts)
{
    made_begin(&made, 1, "q");
    for (uint64_t i = 0; i < 10; i++) {
        struct weir_trace_operation *operation =
            made_operation(&made, 0, WEIR_ENGINE_KERNELS, i * MS, i * MS + 100 * US);
        operation->submit_ns = operation->submit_end_ns = i * MS;
    }
    own_report report = made_report(&made, NULL);
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    EXPECT_INT_EQ(summary->verdict, WEIR_REPORT_SUBMIT_BOUND);
    // Nine stretches of 900 us in 9.1 ms.
    EXPECT_NEAR(summary->host_share, 8.1 / 9.1, 1e-6);
    EXPECT_NEAR(weir_report_find_row(report, WEIR_REPORT_PATH, WEIR_REPORT_SUBMITTING)->utilisation,
                8.1 / 9.1, 1e-6);
}

// Windows, regions, graphs, operations without times.

WEIR_TEST(Report, AWindowCutsWhatReachesOut)
{
    const struct weir_report_params window = {.struct_size = sizeof window,
                                              .from_ns = 1500 * US,
                                              .to_ns = 3500 * US};
    const char *path = weir_test_path("trace.json");
    make_chunks(MS);
    weir_report *report = made_report(&made, &window);
    EXPECT_UINT_EQ(weir_report_get_summary(report)->span_ns, 2 * MS);
    EXPECT_UINT_EQ(weir_report_get_summary(report)->compute_ns, 2 * MS);
    weir_report_destroy(&report);

    EXPECT_INT_EQ(weir_report_read(path,
                                   WEIR_PARAMS(weir_report, .from_ns = 90 * MS, .to_ns = 91 * MS),
                                   &report),
                  WEIR_ERROR_INVALID);
    EXPECT_NULL(report);
    EXPECT_CONTAINS(weir_last_error_text(), "no operation ran in the window");
    EXPECT_INT_EQ(weir_report_read(path, WEIR_PARAMS(weir_report, .from_ns = 2, .to_ns = 1),
                                   &report),
                  WEIR_ERROR_INVALID);
}

WEIR_TEST(Report, RegionsOfAllNumbersAreOne)
{
    made_begin(&made, 1, "q");
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, 10)->region = "frame 1/blur";
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 10, 30)->region = "frame 22/blur";
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 30, 40)->region = "frame 22";
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 40, 50)->region = "pass2";
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 50, 60)->region = "7";
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 60, 70);
    own_report report = made_report(&made, NULL);
    EXPECT_UINT_EQ(weir_report_row_count(report, WEIR_REPORT_REGIONS), 4);
    EXPECT_UINT_EQ(weir_report_find_row(report, WEIR_REPORT_REGIONS, "frame/blur")->busy.most_ns,
                   30);
    EXPECT_NOT_NULL(weir_report_find_row(report, WEIR_REPORT_REGIONS, "frame"));
    EXPECT_NOT_NULL(weir_report_find_row(report, WEIR_REPORT_REGIONS, "pass2"));
    EXPECT_NOT_NULL(weir_report_find_row(report, WEIR_REPORT_REGIONS, "7"));
}

WEIR_TEST(Report, WhatHasNoEngineOrNoTimesCountsNotAtAll)
{
    made_begin(&made, 1, "q");
    struct weir_trace_operation *graph = made_operation(&made, 0, WEIR_ENGINE_NONE, 0, 100);
    graph->kind = WEIR_TRACE_GRAPH;
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, 50);
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 50, 100);
    made_operation(&made, 0, WEIR_ENGINE_KERNELS, 0, 0)->timed = false;
    own_report report = made_report(&made, NULL);
    const struct weir_report_summary *summary = weir_report_get_summary(report);
    EXPECT_UINT_EQ(summary->operations, 2);
    EXPECT_UINT_EQ(summary->untimed, 1);
    EXPECT_NEAR(summary->speedup_most, 1.0, 1e-9);
}

WEIR_TEST(Report, OfNothingSaysSo)
{
    made_begin(&made, 0);
    weir_report *report = made_report(&made, NULL);
    EXPECT_INT_EQ(weir_report_get_summary(report)->verdict, WEIR_REPORT_NOTHING_RAN);
    char *text = weir_report_text(report);
    EXPECT_CONTAINS(text, "no operation of a device took any time");
    weir_report_free_text(&text);
    EXPECT_NULL(text);
    weir_report_destroy(&report);
    weir_report_destroy(&report);
    weir_report_destroy(NULL);
    EXPECT_UINT_EQ(weir_report_get_summary(NULL)->operations, 0);
    EXPECT_UINT_EQ(weir_report_row_count(NULL, WEIR_REPORT_NAMES), 0);
    EXPECT_NULL(weir_report_text(NULL));
}

WEIR_TEST(Report, FilesThatAreNoTracesAreErrors)
{
    weir_report *report = NULL;
    EXPECT_FAILURE(weir_report_read("/nothing/here", NULL, &report), WEIR_ERROR_IO,
                   "/nothing/here: ");
    EXPECT_INT_EQ(weir_report_read(NULL, NULL, &report), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_report_read("x", NULL, NULL), WEIR_ERROR_INVALID);
}

// Conditions.

static void expect_no_condition(const weir_report *report, const char *condition, const char *part)
{
    struct weir_report_finding check;
    weir_test_note("%s", condition);
    EXPECT_FAILURE(weir_report_check(report, condition, &check), WEIR_ERROR_INVALID, part);
    EXPECT_FALSE(check.holds);
    weir_test_note(NULL);
}

WEIR_TEST(Check, ConditionsHoldOrNot)
{
    make_chunks(MS);
    made.meta.dropped = 3;
    for (size_t i = 0; i < made.operation_count; i++)
        made.operations[i].region = i % 2 ? "frame 1/blur" : "";
    own_report report = made_report(&made, NULL);
    expect_check(report, "overlap copy/compute>=0.66", true, "");
    expect_check(report, "overlap copy/compute >= 66%", true, "");
    expect_check(report, "overlap copy/compute>=0.67", false, "");
    expect_check(report, "overlap compute/copy<1", false, "");
    expect_check(report, "overlap compute/copy<=1", true, "");
    expect_check(report, "overlap region:frame/blur/compute>0", true, "");
    expect_check(report, "overlap name:Memcpy HtoD (Pinned -> Device)/compute>=0.75", true, "");
    expect_check(report, "bubbles<=0", true, "");
    expect_check(report, "bubbles<1ns", true, "");
    expect_check(report, "span<=6ms", true, "");
    expect_check(report, "span<6ms", false, "");
    expect_check(report, "span>=6000us", true, "");
    expect_check(report, "span<0.01s", true, "");
    expect_check(report, "idle<=0", true, "");
    expect_check(report, "speedup>=2", true, "");
    expect_check(report, "bound<=1.5", true, "");
    expect_check(report, "bound<1.5", false, "");
    expect_check(report, "busy to_device>=0.6", true, "");
    expect_check(report, "busy all>=100%", true, "");
    expect_check(report, "host<=0", true, "");
    expect_check(report, "dropped<=2", false, "");
}

WEIR_TEST(Check, WhatCannotBeReadIsRefused)
{
    make_chunks(MS);
    own_report report = made_report(&made, NULL);
    expect_no_condition(report, "", "there are overlap");
    expect_no_condition(report, "bubles<=1ms", "did you mean 'bubbles'?");
    expect_no_condition(report, "bubbles", "has none of <=");
    expect_no_condition(report, "bubbles<=1", "write it like bubbles<=1ms");
    expect_no_condition(report, "bubbles<=ms", "write it like");
    expect_no_condition(report, "bubbles x<=1ms", "write it like");
    expect_no_condition(report, "overlap>=1", "write it like overlap copy/compute>=0.6");
    expect_no_condition(report, "overlap copy>=1", "A/B");
    expect_no_condition(report, "overlap copy/comput>=1", "did you mean 'compute'?");
    expect_no_condition(report, "overlap queue:upp/compute>=1", "did you mean 'up'?");
    expect_no_condition(report, "speedup>=2x", "write it like");
    expect_no_condition(report, "speedup>=-2", "write it like");
    expect_no_condition(report, "speedup>=nan", "write it like");
    expect_no_condition(report, "idle<=10ms", "write it like idle<=10%");
    expect_no_condition(report, NULL, "needs a report");
}

// The two forms.

WEIR_TEST(Forms, OfSeveralDevicesRowsHaveTheirNumber)
{
    make_chunks(MS);
    made.devices[1] = made.devices[0];
    made.devices[1].index = 1;
    made.devices[1].name = "another";
    made.device_count = 2;
    made.queues[1].device = 1;
    own_report report = made_report(&made, NULL);
    own_text text = weir_report_text(report);
    EXPECT_CONTAINS(text, "a device and another: 12 operations");
    EXPECT_CONTAINS(text, "\ndevices\n");
    EXPECT_CONTAINS(text, "1: kernels");
    EXPECT_CONTAINS(text, "0: up");
    EXPECT_CONTAINS(text, "engine to_device of device 0");
}

// A terminal gets the text; the JSON is exact.
WEIR_TEST(Forms, LabelsAreEscapedInTheText)
{
    json_error_t error;
    const char *label = "u\x1b]0;p\x07\n\xe2\x80\xae";
    make_chunks(MS);
    made.queues[0].label = label;
    made.meta.program = "pro\ngram";
    made.devices[0].name = "\x1b[2J";
    own_report report = made_report(&made, NULL);
    own_text text = weir_report_text(report);
    EXPECT_CONTAINS(text, "u\\x1b]0;p\\x07\\n\\u202e");
    EXPECT_CONTAINS(text, "pro\\ngram");
    EXPECT_CONTAINS(text, ", \\x1b[2J: 12 operations");
    EXPECT_NULL(strchr(text, '\x1b'));
    EXPECT_NOT_CONTAINS(text, "\xe2\x80\xae");
    own_text json = weir_report_json(report);
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    ASSERT_NOT_NULL(root);
    const json_t *queue = json_array_get(json_object_get(root, "queues"), 0);
    EXPECT_STR_EQ(json_string_value(json_object_get(queue, "name")), label);
    json_decref(root);
}

WEIR_TEST(Forms, TheJsonHasTheSameFigures)
{
    json_error_t error;
    make_chunks(MS);
    own_report report = made_report(&made, NULL);
    own_text text = weir_report_json(report);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ASSERT_NOT_NULL(root);
    EXPECT_INT_EQ(json_integer_value(json_object_get(root, "span_ns")), 6 * MS);
    EXPECT_NEAR(json_real_value(json_object_get(root, "bound_distance")), 1.5, 1e-6);
    EXPECT_STR_EQ(json_string_value(json_object_get(root, "verdict")), "device-bound");
    const json_t *overlap = json_array_get(json_object_get(root, "overlaps"), 0);
    EXPECT_STR_EQ(json_string_value(json_object_get(overlap, "first")), "copy");
    EXPECT_NEAR(json_real_value(json_object_get(overlap, "least")), 4.0 / 6, 1e-6);
    const json_t *queue = json_array_get(json_object_get(root, "queues"), 0);
    EXPECT_INT_EQ(json_integer_value(json_object_get(json_object_get(queue, "busy"), "most_ns")),
                  4 * MS);
    EXPECT_UINT_EQ(json_array_size(json_object_get(root, "path")),
                   weir_report_row_count(report, WEIR_REPORT_PATH));
    json_decref(root);
}
