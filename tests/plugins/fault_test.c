// Each fault at each operation of a run: what the calls, the events and the results say, and that
// the queues work again afterwards.
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "tests/plugins/rig.h"

enum {
    RIG_WORDS = 512,    // of each buffer that are used
    RIG_RESULTS = 1024, // where the kernel writes, a multiple of any alignment
};

// What creation is numbered, in the order of run_create().
enum rig_creation {
    RIG_DEVICE = 1,
    RIG_UP,
    RIG_DOWN,
    RIG_FRAME,
    RIG_MEMORY,
    RIG_PROGRAM,
    RIG_KERNEL,
    RIG_GRAPH,
};

// What operations are numbered, in the order of submit().
enum rig_operation {
    RIG_COPY_IN = 1,
    RIG_RECORD,
    RIG_WAIT,
    RIG_LAUNCH,
    RIG_FILL,
    RIG_CALL,
    RIG_LAUNCH_GRAPH,
    RIG_COPY_OUT,
    RIG_LAST,
    RIG_OPERATIONS = RIG_LAST,
};

struct run {
    struct rig rig;           // its kernel gets what nothing reads
    weir_graph *graph;        // fills bytes 8 to 12 with 9
    struct weir_event copied; // after COPY_IN
    struct weir_event last;
};

// The number of the operation that submit() reached last.
static int reached;

// Lines of [fault]. One text is kept.
static const char *section(const char *fault, int at, const char *more)
{
    static char text[512];
    snprintf(text, sizeof text, "fault = %s\nat = %d\n%s", fault, at, more);
    return text;
}

// Opens the runtime with lines of [fault].
static weir_status run_open(struct run *run, const char *lines)
{
    char text[2048];
    *run = (struct run){.graph = NULL};
    snprintf(text, sizeof text, "[fault]\n%s", lines);
    return rig_open("fault", text, &run->rig.runtime);
}

static weir_status create_graph(struct run *run)
{
    const uint32_t nine = 9;
    RIG_TRY(weir_capture_begin(run->rig.down));
    RIG_TRY(weir_queue_fill(run->rig.down, run->rig.memory, 8, 4, &nine, 4));
    return weir_capture_end(run->rig.down, WEIR_PARAMS(weir_graph, .label = "graph"), &run->graph);
}

// Creates everything else; stops at the first error and returns it.
static weir_status run_create(struct run *run)
{
    RIG_TRY(rig_create(&run->rig));
    RIG_TRY(rig_create_kernel(&run->rig));
    return create_graph(run);
}

// Both; false fails the test.
static bool run_start(struct run *run, const char *lines)
{
    if (run_open(run, lines) == WEIR_OK && run_create(run) == WEIR_OK)
        return true;
    weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
    return false;
}

static void run_finish(struct run *run)
{
    weir_graph_destroy(&run->graph);
    rig_finish(&run->rig);
}
#define own_run OWN(run_finish) struct run

#define FAULT_TEST(suite, name, lines) \
    WEIR_TEST_WITH(suite, name, struct run, run, run_start(run, lines), run_finish(run))

static void *begin(const struct run *run, weir_access access)
{
    void *pointer = NULL;
    EXPECT_OK(weir_host_begin(run->rig.frame, 0, RIG_WORDS * 4, access, &pointer));
    return pointer;
}

static void fill_frame(const struct run *run)
{
    uint32_t *words = begin(run, WEIR_ACCESS_WRITE);
    for (uint32_t i = 0; i < RIG_WORDS; i++)
        words[i] = 100 + i;
    EXPECT_OK(weir_host_end(run->rig.frame, 0, RIG_WORDS * 4, WEIR_ACCESS_WRITE));
}

// Also says how far it came.
#define STEP(number, call) \
    do {                   \
        reached = number;  \
        RIG_TRY(call);     \
    } while (0)

static weir_status submit(struct run *run)
{
    const uint32_t seven = 7;
    fill_frame(run);
    STEP(RIG_COPY_IN,
         weir_queue_copy(run->rig.up, run->rig.memory, 0, run->rig.frame, 0, RIG_WORDS * 4));
    STEP(RIG_RECORD, weir_queue_record(run->rig.up, &run->copied));
    STEP(RIG_WAIT, weir_queue_wait(run->rig.down, run->copied));
    STEP(RIG_LAUNCH,
         weir_queue_launch(run->rig.down, run->rig.kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                           weir_out(run->rig.memory, RIG_RESULTS, 64), 7u, UINT64_C(1000)));
    STEP(RIG_FILL, weir_queue_fill(run->rig.down, run->rig.memory, 4, 4, &seven, 4));
    STEP(RIG_CALL, weir_queue_host_call(run->rig.down, rig_count_call, &run->rig.calls));
    STEP(RIG_LAUNCH_GRAPH, weir_queue_graph(run->rig.down, run->graph));
    STEP(RIG_COPY_OUT, weir_queue_copy(run->rig.down, run->rig.frame, 0, run->rig.memory, 0, 64));
    STEP(RIG_LAST, weir_queue_record(run->rig.down, &run->last));
    return WEIR_OK;
}

// Of a run that ends well.
static void expect_results(const struct run *run)
{
    EXPECT_OK(weir_event_sync(run->last, GUARD_NS));
    const uint32_t *words = begin(run, WEIR_ACCESS_READ);
    EXPECT_UINT_EQ(words[0], 100);
    EXPECT_UINT_EQ(words[1], 7);
    EXPECT_UINT_EQ(words[2], 9);
    EXPECT_UINT_EQ(words[3], 103);
    EXPECT_INT_EQ(run->rig.calls, 1);
    EXPECT_OK(weir_host_end(run->rig.frame, 0, RIG_WORDS * 4, WEIR_ACCESS_READ));
}

// The last error names the plugin, the number and the way to repeat it.
static void expect_cause(int number)
{
    char part[32];
    snprintf(part, sizeof part, "(number %d, ", number);
    EXPECT_ERROR("the plugin fault injected ", part);
    snprintf(part, sizeof part, " --at %d PROGRAM`", number);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

static void expect_recovered(struct run *run)
{
    EXPECT_OK(weir_queue_recover(run->rig.up));
    EXPECT_OK(weir_queue_recover(run->rig.down));
    run->rig.calls = 0;
    EXPECT_OK(submit(run));
    expect_results(run);
}

static bool is_work(int operation)
{
    return operation != RIG_RECORD && operation != RIG_WAIT && operation != RIG_LAST;
}

FAULT_TEST(Fault, NothingWithoutANumber, "")
{
    EXPECT_OK(submit(run));
    expect_results(run);
    run_finish(run);
    EXPECT_STR_EQ(rig_logged(), "");
}

// Runs `test` with the fault at each operation, or at each that works. It is number `number` of these.
static void at_each(const char *fault, bool all, const char *more,
                    void (*test)(struct run *run, int at, int number))
{
    int number = 0;
    for (int at = 1; at <= RIG_OPERATIONS; at++) {
        own_run run = {0};
        if (!all && !is_work(at))
            continue;
        number++;
        weir_test_note("operation %d", at);
        ASSERT_TRUE(run_start(&run, section(fault, number, more)));
        test(&run, at, number);
    }
}

static void expect_refusal(struct run *run, int at, int number)
{
    EXPECT_INT_EQ(submit(run), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(reached, at);
    expect_cause(number);
    EXPECT_ERROR("a refusal", "fault_test.c:");
    if (at > RIG_RECORD)
        EXPECT_OK(weir_event_sync(run->copied, GUARD_NS));
    expect_recovered(run);
}

WEIR_TEST(Fault, RefusesEachOperation)
{
    at_each("refuse", true, "", expect_refusal);
}

// The work of a queue before its fault has run, that after it has not. Work of the queue that waits
// for a failed one may have run.
static void expect_part(const struct run *run, int at)
{
    if (at != RIG_COPY_IN)
        EXPECT_INT_EQ(run->rig.calls, at > RIG_CALL ? 1 : 0);
}

static void expect_failure(struct run *run, int at, int number)
{
    // The failure may be known before the last operation is submitted.
    if (submit(run) == WEIR_OK)
        EXPECT_INT_EQ(weir_event_sync(run->last, GUARD_NS), WEIR_ERROR_DEVICE);
    expect_cause(number);
    EXPECT_ERROR("a failure by a host call", "fault_test.c:");
    // Or before the record is.
    if (run->copied.sequence != 0)
        EXPECT_INT_EQ(weir_event_sync(run->copied, GUARD_NS),
                      at == RIG_COPY_IN ? WEIR_ERROR_DEVICE : WEIR_OK);
    expect_part(run, at);
    expect_recovered(run);
}

WEIR_TEST(Fault, FailsEachOperationLater)
{
    at_each("fail", false, "", expect_failure);
}

static void expect_delay(struct run *run, int at, int number)
{
    const uint64_t start = weir_clock_now_ns();
    EXPECT_OK(submit(run));
    // A busy machine may take as long to come here.
    EXPECT_TRUE(weir_event_query(run->last) == WEIR_NOT_READY ||
                weir_clock_now_ns() - start >= 50000000);
    EXPECT_OK(weir_event_sync(run->last, GUARD_NS));
    EXPECT_UINT_GE(weir_clock_now_ns() - start, 50000000);
    expect_results(run);
    EXPECT_CONTAINS(rig_logged(), "gets the fault 'slow'");
}

WEIR_TEST(Fault, SlowsEachOperation)
{
    at_each("slow", false, "delay_ms = 50", expect_delay);
}

FAULT_TEST(Fault, AnswersGarbageForAHostCall, section("garbage", 1, ""))
{
    if (submit(run) == WEIR_OK)
        EXPECT_INT_EQ((int)weir_event_sync(run->last, GUARD_NS), -4711);
    expect_cause(1);
    EXPECT_INT_EQ(run->rig.calls, 1);
    expect_recovered(run);
}

WEIR_TEST(Fault, NoMemoryForEachCreation)
{
    for (int at = RIG_DEVICE; at <= RIG_GRAPH; at++) {
        own_run run = {0};
        weir_test_note("creation %d", at);
        ASSERT_OK(run_open(&run, section("memory", at, "")));
        EXPECT_INT_EQ(run_create(&run), WEIR_ERROR_OUT_OF_MEMORY);
        expect_cause(at);
        EXPECT_CONTAINS(weir_last_error_text(), "a lack of memory");
    }
}

// What happens to objects of a lost device.
static void expect_lost(struct run *run, int at, int number)
{
    weir_device *again = NULL;
    weir_buffer *buffer;
    weir_queue *queue;
    struct weir_event event;
    EXPECT_INT_EQ(submit(run), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(reached, at);
    expect_cause(number);
    EXPECT_INT_EQ(weir_queue_recover(run->rig.down),
                  at > RIG_RECORD ? WEIR_ERROR_DEVICE_LOST : WEIR_OK);
    EXPECT_INT_EQ(weir_queue_record(run->rig.up, &event), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    EXPECT_INT_EQ(weir_queue_record(run->rig.down, &event), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    EXPECT_INT_EQ(weir_queue_recover(run->rig.down), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_flush(run->rig.up), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_buffer_create(run->rig.device, WEIR_PARAMS(weir_buffer, .size = 4), &buffer),
                  WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_queue_create(run->rig.device, NULL, &queue), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_EQ(weir_device_trim(run->rig.device), WEIR_ERROR_DEVICE_LOST);
    expect_cause(at);
    if (at > RIG_RECORD)
        EXPECT_INT_EQ(weir_event_sync(run->copied, GUARD_NS), WEIR_ERROR_DEVICE_LOST);
    EXPECT_FAILURE(weir_device_open(run->rig.runtime, NULL, &again), WEIR_ERROR_DEVICE_LOST,
                   "has lost the device before");
}

WEIR_TEST(Fault, LosesTheDeviceAtEachOperation)
{
    at_each("lose", true, "", expect_lost);
}

FAULT_TEST(Fault, CompleteEventsStayComplete, section("lose", RIG_OPERATIONS + 1, ""))
{
    EXPECT_OK(submit(run));
    EXPECT_OK(weir_event_sync(run->last, GUARD_NS));
    EXPECT_INT_EQ(submit(run), WEIR_ERROR_DEVICE_LOST);
    EXPECT_OK(weir_event_sync(run->last, GUARD_NS));
}

// A launch of a graph that never ran, and one on another queue after it.
FAULT_TEST(Fault, FailedGraphIsLaunchedAgain, section("fail", 1, "kinds = graph"))
{
    struct weir_event event;
    EXPECT_OK(weir_queue_graph(run->rig.down, run->graph));
    weir_status status = weir_queue_graph(run->rig.up, run->graph);
    if (status == WEIR_OK)
        status = weir_queue_record(run->rig.up, &event);
    if (status == WEIR_OK)
        status = weir_event_sync(event, GUARD_NS);
    EXPECT_INT_EQ(status, WEIR_ERROR_DEVICE);
    expect_cause(1);
    expect_recovered(run);
}

// Those that follow a failure, which the plugin frees once their queue has finished.
FAULT_TEST(Fault, CallsThatNeverRanAreFreed, "fault = fail\none_in = 1\nkinds = fill")
{
    enum {
        ROUNDS = 12,
        CALLS = 500
    };
    const uint32_t seven = 7;
    weir_queue *queue = run->rig.down;
    size_t before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 2)
            before = mallinfo2().uordblks;
        gate_shut(&run->rig.gate);
        ASSERT_OK(weir_queue_host_call(queue, gate_pass, &run->rig.gate));
        for (int i = 0; i < CALLS; i++)
            ASSERT_OK(weir_queue_fill(queue, run->rig.memory, 0, 4, &seven, 4));
        gate_open(&run->rig.gate);
        EXPECT_INT_EQ(weir_queue_sync(queue, GUARD_NS), WEIR_ERROR_DEVICE);
        EXPECT_OK(weir_queue_recover(queue)); // which finishes it
    }
    EXPECT_UINT_LT(mallinfo2().uordblks, before + 65536);
}

// The section of the plugin, the environment, and the list of what is chosen.

static void expect_number(const char *more, int first)
{
    own_run run = {0};
    weir_test_note("%s", more);
    ASSERT_TRUE(run_start(&run, section("refuse", 1, more)));
    EXPECT_INT_EQ(submit(&run), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(reached, first);
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

FAULT_TEST(Fault, ANumberThatIsNotReachedIsTold, section("refuse", 100, "kinds = fill"))
{
    EXPECT_OK(submit(run));
    expect_results(run);
    run_finish(run);
    EXPECT_STR_EQ(rig_logged(), "no fault: `at` is 100, and the chosen operations end with 1\n");
}

// The numbers of those of `count` records that are refused.
static void draw(const char *more, size_t count, bool *refused)
{
    own_run run = {0};
    ASSERT_TRUE(run_start(&run, more));
    for (size_t i = 0; i < count; i++) {
        struct weir_event event;
        refused[i] = weir_queue_record(run.rig.up, &event) < 0;
        if (refused[i])
            EXPECT_OK(weir_queue_recover(run.rig.up));
    }
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

static void expect_bad(const char *lines, const char *sentence)
{
    char text[256];
    snprintf(text, sizeof text, "[fault]\n%s", lines);
    rig_expect_refused("fault", text, WEIR_ERROR_CONFIG, sentence, "");
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
    rig_expect_refused("fault, fault", "", WEIR_ERROR_CONFIG,
                       "the plugin fault is twice in the chain", "list it once");
}

WEIR_TEST(Fault, TheEnvironmentReplacesKeys)
{
    struct run run;
    setenv("WEIR_FAULT_FAULT", "memory", 1);
    setenv("WEIR_FAULT_AT", "3", 1);
    setenv("WEIR_FAULT_KINDS", "", 1);
    ASSERT_OK(run_open(&run, "fault = slow\nkinds = copy\nat = 1"));
    EXPECT_FAILURE(run_create(&run), WEIR_ERROR_OUT_OF_MEMORY, "(number 3, new-queue)");
    run_finish(&run);
    setenv("WEIR_FAULT_AT", "three", 1);
    expect_bad("", "WEIR_FAULT_AT: 'at' of [fault] needs a decimal number");
    unsetenv("WEIR_FAULT_AT");
    setenv("WEIR_FAULT_FAULT", "explode", 1);
    expect_bad("", "WEIR_FAULT_FAULT: 'fault' of [fault] cannot be 'explode'");
    unsetenv("WEIR_FAULT_FAULT");
    unsetenv("WEIR_FAULT_KINDS");
}

// The list.

// What the file has after a run. The caller frees it.
static char *list_of(const char *text)
{
    struct run run;
    char lines[1024];
    char message[512] = "";
    void *data = NULL;
    size_t size = 0;
    const char *path = weir_test_path("list");
    snprintf(lines, sizeof lines, "%s\nlist = %s", text, path);
    EXPECT_OK(run_open(&run, lines));
    if (run_create(&run) == WEIR_OK)
        (void)submit(&run);
    run_finish(&run);
    EXPECT_TRUE(weir_file_read(path, 1 << 20, &data, &size, message, sizeof message));
    char *list = strndup(data ? data : "", size);
    free(data);
    unlink(path);
    return list;
}

WEIR_TEST(Fault, ListsWhatIsChosen)
{
    OWN_MEMORY char *creations = list_of("fault = memory");
    EXPECT_STR_EQ(creations, "1\tnew-device\t\t\t\t0\n2\tnew-queue\tup\tup\t\t0\n"
                             "3\tnew-queue\tdown\tdown\t\t0\n4\tnew-buffer\t\tframe\t\t0\n"
                             "5\tnew-buffer\t\tmemory\t\t0\n6\tnew-program\t\tprogram\t\t0\n"
                             "7\tnew-kernel\t\tspin\t\t0\n8\tnew-graph\t\tgraph\t\t0\n");
    OWN_MEMORY char *list = list_of("fault = fail");
    EXPECT_CONTAINS(list, "1\tcopy\tup\tmemory\t");
    EXPECT_CONTAINS(list, "2\tlaunch\tdown\tspin\t");
    EXPECT_CONTAINS(list, "3\tfill\tdown\tmemory\t");
    EXPECT_CONTAINS(list, "4\thost-call\tdown\t\t");
    EXPECT_CONTAINS(list, "5\tgraph\tdown\tgraph\t");
    EXPECT_CONTAINS(list, "6\tcopy\tdown\tframe\t");
    EXPECT_NOT_CONTAINS(list, "7\t");
    OWN_MEMORY char *one = list_of("fault = refuse\nat = 4");
    EXPECT_TRUE(strncmp(one, "4\tlaunch\tdown\tspin\t", 19) == 0);
    EXPECT_NOT_CONTAINS(one, "\n5\t");
}

WEIR_TEST(Fault, AListThatCannotBeWrittenIsTold)
{
    own_run run = {0};
    EXPECT_FAILURE(run_open(&run, "list = /nowhere/list"), WEIR_ERROR_IO,
                   "the list /nowhere/list cannot be written");
    ASSERT_TRUE(run_start(&run, "list = /dev/full"));
    EXPECT_OK(submit(&run));
    EXPECT_OK(weir_event_sync(run.last, GUARD_NS));
    EXPECT_CONTAINS(rig_logged(), "a line of the list cannot be written");
}

// Many faults.

struct many {
    struct run *run;
    weir_queue *queue;
    size_t offset;
    int rounds;
    int failures;
};

static weir_status fill_once(const struct many *many)
{
    const uint32_t one = 1;
    struct weir_event event;
    RIG_TRY(weir_queue_fill(many->queue, many->run->rig.memory, many->offset, 4, &one, 4));
    RIG_TRY(weir_queue_record(many->queue, &event));
    return weir_event_sync(event, GUARD_NS);
}

static void *submit_many(void *user)
{
    struct many *many = user;
    for (int i = 0; i < many->rounds; i++) {
        if (fill_once(many) == WEIR_OK)
            continue;
        many->failures++;
        EXPECT_CONTAINS(weir_last_error_text(), "the plugin fault injected ");
        EXPECT_OK(weir_queue_recover(many->queue));
    }
    return NULL;
}

static void run_two_threads(struct run *run, int rounds, int *out_failures)
{
    struct many sides[2] = {{run, run->rig.up, 0, rounds, 0}, {run, run->rig.down, 64, rounds, 0}};
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
        own_run run = {0};
        char text[128];
        int failures = 0;
        weir_test_note("%s", faults[i]);
        snprintf(text, sizeof text, "fault = %s\none_in = 5\nkinds = fill\ndelay_ms = 1",
                 faults[i]);
        ASSERT_TRUE(run_start(&run, text));
        run_two_threads(&run, 50, &failures);
        // The threads change which fills get these numbers.
        EXPECT_INT_EQ(failures, strcmp(faults[i], "slow") == 0 ? 0 : hits);
    }
}
