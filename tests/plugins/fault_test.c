// Each fault at each operation of a run: what the calls, the events and the results say, and that
// the queues work again afterwards.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/plugins/fault_rig.h"

#define GUARD_NS (UINT64_C(60) * 1000000000u)

// The last error names the plugin, the number and the way to repeat it.
static void expect_cause(int number)
{
    char part[32];
    snprintf(part, sizeof part, "(number %d, ", number);
    EXPECT_CONTAINS(weir_last_error_text(), "the plugin fault injected ");
    EXPECT_CONTAINS(weir_last_error_text(), part);
    snprintf(part, sizeof part, " --at %d PROGRAM`", number);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

static void expect_recovered(struct rig *rig)
{
    EXPECT_OK(weir_queue_recover(rig->up));
    EXPECT_OK(weir_queue_recover(rig->down));
    rig->calls = 0;
    EXPECT_OK(rig_submit(rig));
    EXPECT_OK(weir_event_sync(rig->last, GUARD_NS));
    rig_expect_results(rig);
}

static bool is_work(int operation)
{
    return operation != RIG_RECORD && operation != RIG_WAIT && operation != RIG_LAST;
}

WEIR_TEST(Fault, NothingWithoutANumber)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig, ""));
    EXPECT_OK(rig_submit(&rig));
    EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
    rig_expect_results(&rig);
    rig_finish(&rig);
    EXPECT_STR_EQ(rig_log(), "");
}

WEIR_TEST(Fault, RefusesEachOperation)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("refuse", at, "")));
        EXPECT_INT_EQ(rig_submit(&rig), WEIR_ERROR_DEVICE);
        EXPECT_INT_EQ(rig_reached(), at);
        expect_cause(at);
        EXPECT_CONTAINS(weir_last_error_text(), "a refusal");
        EXPECT_CONTAINS(weir_last_error_text(), "fault_rig.c:");
        if (at > RIG_RECORD)
            EXPECT_OK(weir_event_sync(rig.copied, GUARD_NS));
        expect_recovered(&rig);
        rig_finish(&rig);
    }
}

// The work of a queue before its fault has run, that after it has not. Work of the queue that waits
// for a failed one may have run.
static void expect_part(const struct rig *rig, int at)
{
    if (at != RIG_COPY_IN)
        EXPECT_INT_EQ(rig->calls, at > RIG_CALL ? 1 : 0);
}

static int number_of_work(int operation)
{
    int number = 0;
    for (int i = 1; i <= operation; i++)
        number += is_work(i);
    return number;
}

WEIR_TEST(Fault, FailsEachOperationLater)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        if (!is_work(at))
            continue;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("fail", number_of_work(at), "")));
        // The failure may be known before the last operation is submitted.
        if (rig_submit(&rig) == WEIR_OK)
            EXPECT_INT_EQ(weir_event_sync(rig.last, GUARD_NS), WEIR_ERROR_DEVICE);
        expect_cause(number_of_work(at));
        EXPECT_CONTAINS(weir_last_error_text(), "a failure by a host call");
        EXPECT_CONTAINS(weir_last_error_text(), "fault_rig.c:");
        // Or before the record is.
        if (rig.copied.sequence != 0)
            EXPECT_INT_EQ(weir_event_sync(rig.copied, GUARD_NS),
                          at == RIG_COPY_IN ? WEIR_ERROR_DEVICE : WEIR_OK);
        expect_part(&rig, at);
        expect_recovered(&rig);
        rig_finish(&rig);
    }
}

WEIR_TEST(Fault, SlowsEachOperation)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        if (!is_work(at))
            continue;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("slow", number_of_work(at), "delay_ms = 50")));
        const uint64_t start = weir_clock_now_ns();
        EXPECT_OK(rig_submit(&rig));
        // A busy machine may take as long to come here.
        EXPECT_TRUE(weir_event_query(rig.last) == WEIR_NOT_READY ||
                    weir_clock_now_ns() - start >= 50000000);
        EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
        EXPECT_UINT_GE(weir_clock_now_ns() - start, 50000000);
        rig_expect_results(&rig);
        rig_finish(&rig);
        EXPECT_CONTAINS(rig_log(), "gets the fault 'slow'");
    }
}

FAULT_TEST(Fault, AnswersGarbageForAHostCall, rig_section("garbage", 1, ""))
{
    if (rig_submit(rig) == WEIR_OK)
        EXPECT_INT_EQ((int)weir_event_sync(rig->last, GUARD_NS), -4711);
    expect_cause(1);
    EXPECT_INT_EQ(rig->calls, 1);
    expect_recovered(rig);
}

WEIR_TEST(Fault, NoMemoryForEachCreation)
{
    for (int at = RIG_DEVICE; at <= RIG_GRAPH; at++) {
        struct rig rig;
        weir_test_note("creation %d", at);
        ASSERT_OK(rig_open(&rig, rig_section("memory", at, "")));
        EXPECT_INT_EQ(rig_create(&rig), WEIR_ERROR_OUT_OF_MEMORY);
        expect_cause(at);
        EXPECT_CONTAINS(weir_last_error_text(), "a lack of memory");
        rig_finish(&rig);
    }
}

// What happens to objects of a lost device.
static void expect_lost(struct rig *rig, int at)
{
    weir_buffer *buffer;
    weir_queue *queue;
    struct weir_event event;
    EXPECT_INT_EQ(weir_queue_recover(rig->down),
                  at > RIG_RECORD ? WEIR_ERROR_DEVICE_LOST : WEIR_OK);
    EXPECT_INT_EQ(weir_queue_record(rig->up, &event), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    EXPECT_INT_EQ(weir_queue_record(rig->down, &event), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    EXPECT_INT_EQ(weir_queue_recover(rig->down), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_flush(rig->up), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = 4), &buffer),
                  WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_create(rig->device, NULL, &queue), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_device_trim(rig->device), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    if (at > RIG_RECORD)
        EXPECT_INT_EQ(weir_event_sync(rig->copied, GUARD_NS), WEIR_ERROR_DEVICE_LOST);
}

WEIR_TEST(Fault, LosesTheDeviceAtEachOperation)
{
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        struct rig rig;
        weir_device *again = NULL;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(rig_start(&rig, rig_section("lose", at, "")));
        EXPECT_INT_EQ(rig_submit(&rig), WEIR_ERROR_DEVICE_LOST);
        EXPECT_INT_EQ(rig_reached(), at);
        expect_cause(at);
        expect_lost(&rig, at);
        EXPECT_FAILURE(weir_device_open(rig.runtime, NULL, &again), WEIR_ERROR_DEVICE_LOST,
                       "has lost the device before");
        rig_finish(&rig);
    }
}

FAULT_TEST(Fault, CompleteEventsStayComplete, rig_section("lose", RIG_OPERATIONS + 1, ""))
{
    EXPECT_OK(rig_submit(rig));
    EXPECT_OK(weir_event_sync(rig->last, GUARD_NS));
    EXPECT_INT_EQ(rig_submit(rig), WEIR_ERROR_DEVICE_LOST);
    EXPECT_OK(weir_event_sync(rig->last, GUARD_NS));
}

// A launch of a graph that never ran, and one on another queue after it.
FAULT_TEST(Fault, FailedGraphIsLaunchedAgain, rig_section("fail", 1, "kinds = graph"))
{
    struct weir_event event;
    EXPECT_OK(weir_queue_graph(rig->down, rig->graph));
    weir_status status = weir_queue_graph(rig->up, rig->graph);
    if (status == WEIR_OK)
        status = weir_queue_record(rig->up, &event);
    if (status == WEIR_OK)
        status = weir_event_sync(event, GUARD_NS);
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
    expect_cause(1);
    expect_recovered(rig);
}

// The section of the plugin, the environment, and the list of what is chosen.

static void expect_number(const char *more, int first)
{
    struct rig rig;
    weir_test_note("%s", more);
    ASSERT_TRUE(rig_start(&rig, rig_section("refuse", 1, more)));
    EXPECT_INT_EQ(rig_submit(&rig), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(rig_reached(), first);
    rig_finish(&rig);
}

WEIR_TEST(Fault, ChoosesByKindQueueAndLabel)
{
    expect_number("kinds = launch, graph", RIG_LAUNCH);
    expect_number("kinds = host-call", RIG_CALL);
    expect_number("kinds = graph", RIG_LAUNCH_GRAPH);
    expect_number("queue = down", RIG_WAIT);
    expect_number("queue = down\nkinds = copy", RIG_COPY_OUT);
    expect_number("label = spin", RIG_LAUNCH);
    expect_number("label = graph", RIG_LAUNCH_GRAPH);
    expect_number("label = memory", RIG_COPY_IN);
    expect_number("queue = down\nlabel = frame", RIG_COPY_OUT);
}

WEIR_TEST(Fault, ANumberThatIsNotReachedIsTold)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig, rig_section("refuse", 100, "kinds = fill")));
    EXPECT_OK(rig_submit(&rig));
    EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
    rig_expect_results(&rig);
    rig_finish(&rig);
    EXPECT_STR_EQ(rig_log(), "no fault: `at` is 100, and the chosen operations end with 1\n");
}

// The numbers of those of `count` records that are refused.
static void draw(const char *more, size_t count, bool *refused)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig, more));
    for (size_t i = 0; i < count; i++) {
        struct weir_event event;
        refused[i] = weir_queue_record(rig.up, &event) < 0;
        if (refused[i])
            EXPECT_OK(weir_queue_recover(rig.up));
    }
    rig_finish(&rig);
}

WEIR_TEST(Fault, OneInSoManyIsDrawnBySeed)
{
    enum {
        COUNT = 2000
    };
    static bool first[COUNT], again[COUNT], other[COUNT];
    size_t hits = 0;
    draw("one_in = 10\nseed = 7", COUNT, first);
    draw("one_in = 10\nseed = 7", COUNT, again);
    draw("one_in = 10\nseed = 8", COUNT, other);
    EXPECT_MEM_EQ(first, again, sizeof first);
    EXPECT_TRUE(memcmp(first, other, sizeof first) != 0);
    for (size_t i = 0; i < COUNT; i++)
        hits += first[i];
    EXPECT_UINT_GE(hits, 140);
    EXPECT_UINT_LE(hits, 260);
}

static void expect_bad(const char *text, const char *sentence)
{
    struct rig rig;
    weir_test_note("%s", text);
    EXPECT_FAILURE(rig_open(&rig, text), WEIR_ERROR_CONFIG, sentence);
}

WEIR_TEST(Fault, BadSettingsAreRefused)
{
    expect_bad("fault = explode", "explode");
    expect_bad("at = -1", "-1");
    expect_bad("at = 3\none_in = 3", "at and one_in are both set");
    expect_bad("kinds = lunch", "'lunch' is nothing to which 'refuse' can happen");
    expect_bad("fault = garbage\nkinds = copy", "it can to host-call");
    expect_bad("fault = memory\nkinds = new-buffer, copy", "'copy' is nothing to which 'memory'");
    expect_bad("delay_ms = 0", "delay_ms");
}

WEIR_TEST(Fault, TwiceInAChainIsRefused)
{
    weir_runtime *runtime = NULL;
    const char *section = getenv("WEIR_TEST_SECTION");
    EXPECT_FAILURE(weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini",
                                         .config_text = section ? section : "",
                                         .plugins = "fault, fault"),
                             &runtime),
                   WEIR_ERROR_CONFIG, "the plugin fault is twice in the chain; list it once");
}

WEIR_TEST(Fault, TheEnvironmentReplacesKeys)
{
    struct rig rig;
    setenv("WEIR_FAULT_FAULT", "memory", 1);
    setenv("WEIR_FAULT_AT", "3", 1);
    setenv("WEIR_FAULT_KINDS", "", 1);
    ASSERT_OK(rig_open(&rig, "fault = slow\nkinds = copy\nat = 1"));
    EXPECT_FAILURE(rig_create(&rig), WEIR_ERROR_OUT_OF_MEMORY, "(number 3, new-queue)");
    rig_finish(&rig);
    setenv("WEIR_FAULT_AT", "three", 1);
    expect_bad("", "WEIR_FAULT_AT: 'at' of [fault] needs a decimal number");
    unsetenv("WEIR_FAULT_AT");
    setenv("WEIR_FAULT_FAULT", "explode", 1);
    expect_bad("", "WEIR_FAULT_FAULT: 'fault' of [fault] cannot be 'explode'");
    unsetenv("WEIR_FAULT_FAULT");
    unsetenv("WEIR_FAULT_KINDS");
}

// The list.

static const char *list_path(void)
{
    static char path[512];
    const char *folder = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%s/weir_fault_list_%d", folder ? folder : "/tmp", (int)getpid());
    return path;
}

// What the file has after a run. The caller frees it.
static char *list_of(const char *text)
{
    struct rig rig;
    char lines[1024];
    char message[512] = "";
    void *data = NULL;
    size_t size = 0;
    snprintf(lines, sizeof lines, "%s\nlist = %s", text, list_path());
    unlink(list_path());
    EXPECT_OK(rig_open(&rig, lines));
    if (rig_create(&rig) == WEIR_OK)
        (void)rig_submit(&rig);
    rig_finish(&rig);
    EXPECT_TRUE(weir_file_read(list_path(), 1 << 20, &data, &size, message, sizeof message));
    char *list = strndup(data ? data : "", size);
    free(data);
    unlink(list_path());
    return list;
}

WEIR_TEST(Fault, ListsWhatIsChosen)
{
    char *list = list_of("fault = memory");
    EXPECT_STR_EQ(list, "1\tnew-device\t\t\t\t0\n2\tnew-queue\tup\tup\t\t0\n"
                        "3\tnew-queue\tdown\tdown\t\t0\n4\tnew-buffer\t\tframe\t\t0\n"
                        "5\tnew-buffer\t\tmemory\t\t0\n6\tnew-program\t\tprogram\t\t0\n"
                        "7\tnew-kernel\t\tspin\t\t0\n8\tnew-graph\t\tgraph\t\t0\n");
    free(list);
    list = list_of("fault = fail");
    EXPECT_CONTAINS(list, "1\tcopy\tup\tmemory\t");
    EXPECT_CONTAINS(list, "2\tlaunch\tdown\tspin\t");
    EXPECT_CONTAINS(list, "3\tfill\tdown\tmemory\t");
    EXPECT_CONTAINS(list, "4\thost-call\tdown\t\t");
    EXPECT_CONTAINS(list, "5\tgraph\tdown\tgraph\t");
    EXPECT_CONTAINS(list, "6\tcopy\tdown\tframe\t");
    EXPECT_NOT_CONTAINS(list, "7\t");
    free(list);
    list = list_of("fault = refuse\nat = 4");
    EXPECT_TRUE(strncmp(list, "4\tlaunch\tdown\tspin\t", 19) == 0);
    EXPECT_NOT_CONTAINS(list, "\n5\t");
    free(list);
}

WEIR_TEST(Fault, AListThatCannotBeWrittenIsTold)
{
    struct rig rig;
    EXPECT_FAILURE(rig_open(&rig, "list = /nowhere/list"), WEIR_ERROR_IO,
                   "the list /nowhere/list cannot be written");
    ASSERT_TRUE(rig_start(&rig, "list = /dev/full"));
    EXPECT_OK(rig_submit(&rig));
    EXPECT_OK(weir_event_sync(rig.last, GUARD_NS));
    EXPECT_CONTAINS(rig_log(), "a line of the list cannot be written");
    rig_finish(&rig);
}

// Many faults.

struct many {
    struct rig *rig;
    weir_queue *queue;
    size_t offset;
    int rounds;
    int failures;
};

static void *submit_many(void *user)
{
    struct many *many = user;
    const uint32_t one = 1;
    for (int i = 0; i < many->rounds; i++) {
        struct weir_event event;
        weir_status status =
            weir_queue_fill(many->queue, many->rig->memory, many->offset, 4, &one, 4);
        if (status == WEIR_OK)
            status = weir_queue_record(many->queue, &event);
        if (status == WEIR_OK)
            status = weir_event_sync(event, GUARD_NS);
        if (status == WEIR_OK)
            continue;
        many->failures++;
        EXPECT_CONTAINS(weir_last_error_text(), "the plugin fault injected ");
        EXPECT_OK(weir_queue_recover(many->queue));
    }
    return NULL;
}

static void run_two_threads(struct rig *rig, int rounds, int *out_failures)
{
    struct many sides[2] = {{rig, rig->up, 0, rounds, 0}, {rig, rig->down, 64, rounds, 0}};
    pthread_t other;
    ASSERT_INT_EQ(pthread_create(&other, NULL, submit_many, &sides[1]), 0);
    submit_many(&sides[0]);
    pthread_join(other, NULL);
    *out_failures = sides[0].failures + sides[1].failures;
}

WEIR_TEST(Fault, TwoThreadsMeetFaults)
{
    static const char *const faults[] = {"refuse", "fail", "slow"};
    bool drawn[100] = {false};
    int hits = 0;
    draw("one_in = 5", 100, drawn);
    for (size_t i = 0; i < 100; i++)
        hits += drawn[i];
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct rig rig;
        char text[128];
        int failures = 0;
        weir_test_note("%s", faults[i]);
        snprintf(text, sizeof text, "fault = %s\none_in = 5\nkinds = fill\ndelay_ms = 1",
                 faults[i]);
        ASSERT_TRUE(rig_start(&rig, text));
        run_two_threads(&rig, 50, &failures);
        // The threads change which fills get these numbers.
        EXPECT_INT_EQ(failures, strcmp(faults[i], "slow") == 0 ? 0 : hits);
        rig_finish(&rig);
    }
}
