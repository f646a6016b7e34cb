// Times of operations, as a backend returns them to a plugin that requests them. Run once
// for each backend; the environment names it.

#include "base/clock.h"
#include "core/runtime/runtime.h"
#include "tests/plugins/rig.h"

enum {
    MOST = 16384,
    // The tolerance between the clock of records and that of operations, if they are two:
    // a pair is as accurate as the latency of an empty stream, and a stream of the tests'
    // libcuda is a thread.
    SLACK_NS = 300000
};

struct timed {
    struct rig rig;
    weir_buffer *host[2];
    weir_buffer *memory[2];
    const struct weir_link *first;
    uint64_t slack_ns;
};

static struct weir_operation_time times[MOST];

static bool start(struct timed *timed, const char *plugins)
{
    struct rig *rig = &timed->rig;
    if (!rig_begin(rig, plugins, ""))
        return false;
    timed->host[0] = rig->frame;
    timed->memory[0] = rig->memory;
    timed->host[1] = test_buffer(rig->device, "frame", RIG_BYTES, WEIR_PLACE_HOST);
    timed->memory[1] = test_buffer(rig->device, "memory", RIG_BYTES, WEIR_PLACE_DEVICE);
    timed->first = weir__chain_first(&rig->runtime->chain);
    timed->slack_ns = weir_device_limits(rig->device)->timing_resolution_ns;
    if (strcmp(weir_runtime_backend(rig->runtime), "cuda") == 0)
        timed->slack_ns += SLACK_NS;
    return true;
}

static void finish(struct timed *timed)
{
    weir_buffer_destroy(&timed->host[1]);
    weir_buffer_destroy(&timed->memory[1]);
    rig_finish(&timed->rig);
}

#define TIMES_TEST(suite, name, plugins) \
    WEIR_TEST_WITH(suite, name, struct timed, timed, start(timed, plugins), finish(timed))

static size_t fetch(struct timed *timed, weir_queue *queue, struct weir_operation_time *into,
                    size_t capacity)
{
    size_t count = 0;
    EXPECT_OK(
        timed->first->ops->queue_times(timed->first, queue, into, sizeof *into, capacity, &count));
    EXPECT_UINT_LE(count, capacity);
    return count;
}

// Fetches until `wanted` times have arrived; drivers may report times a moment after the
// end.
static size_t fetch_all(struct timed *timed, weir_queue *queue, size_t wanted)
{
    const uint64_t patience = weir_clock_now_ns() + UINT64_C(10000000000);
    size_t count = 0;
    while (count < wanted && weir_clock_now_ns() < patience) {
        count += fetch(timed, queue, times + count, MOST - count);
        if (count < wanted)
            weir_clock_sleep_ns(1000000);
    }
    return count + fetch(timed, queue, times + count, MOST - count);
}

// One operation of each sort, those that are several commands included; the first
// operation of the queue. Returns how many of them have times; these are consecutive.
static size_t submit_each(struct timed *timed, weir_queue *queue)
{
    static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct weir_plane to = {timed->memory[0], 0, 64};
    const struct weir_plane from = {timed->host[0], 0, 128};
    EXPECT_OK(weir_queue_fill(queue, timed->memory[0], 0, RIG_BYTES, pattern, 4));
    EXPECT_OK(weir_queue_fill(queue, timed->memory[0], 16, 4096, pattern, 16));
    EXPECT_OK(weir_queue_fill(queue, timed->host[0], 0, 4096, pattern, 8));
    EXPECT_OK(weir_queue_copy(queue, timed->memory[0], 0, timed->host[0], 0, RIG_BYTES));
    EXPECT_OK(weir_queue_copy(queue, timed->memory[1], 0, timed->memory[0], 0, RIG_BYTES));
    EXPECT_OK(weir_queue_copy(queue, timed->host[1], 0, timed->host[0], 0, RIG_BYTES));
    EXPECT_OK(weir_queue_copy_2d(queue, to, from, 32, 100));
    EXPECT_OK(weir_queue_copy_3d(queue, (struct weir_volume){timed->memory[0], 0, 64, 640},
                                 (struct weir_volume){timed->host[0], 0, 32, 640}, 32, 10, 5));
    EXPECT_OK(weir_queue_fill_2d(queue, to, 32, 100, pattern, 16));
    EXPECT_OK(weir_queue_fill_2d(queue, to, 32, 100, pattern, 2));
    EXPECT_OK(weir_queue_launch(queue, timed->rig.kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(timed->memory[1], 0, 64), 7u, UINT64_C(1000)));
    EXPECT_OK(weir_queue_copy(queue, timed->host[1], 0, timed->memory[1], 0, RIG_BYTES));
    return 12;
}

static void expect_in_order(const struct timed *timed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weir_test_note("operation %zu of %zu", i + 1, count);
        EXPECT_UINT_LE(times[i].start_ns, times[i].end_ns);
        if (i > 0)
            EXPECT_UINT_LE(times[i - 1].end_ns, times[i].start_ns + timed->slack_ns);
    }
    weir_test_note(NULL);
}

// Starts are exact if the driver reports them; the environment says what to expect.
TIMES_TEST(Times, EveryOperationHasOne, "times")
{
    const char *starts = getenv("WEIR_TEST_STARTS");
    const bool earliest = starts && strcmp(starts, "earliest") == 0;
    const size_t wanted = submit_each(timed, timed->rig.up);
    EXPECT_OK(weir_queue_sync(timed->rig.up, WEIR_FOREVER));
    ASSERT_UINT_EQ(fetch_all(timed, timed->rig.up, wanted), wanted);
    for (size_t i = 0; i < wanted; i++) {
        EXPECT_UINT_EQ(times[i].sequence, i + 1);
        EXPECT_TRUE(times[i].start_is_earliest == earliest);
    }
    expect_in_order(timed, wanted);
    EXPECT_UINT_EQ(fetch(timed, timed->rig.up, times, MOST), 0);
    EXPECT_UINT_EQ(fetch(timed, timed->rig.down, times, MOST), 0);
}

TIMES_TEST(Times, OnTheTimelineOfRecords, "times")
{
    uint64_t before_ns;
    uint64_t after_ns;
    own_queue queue = NULL;
    ASSERT_OK(
        weir_queue_create(timed->rig.device, WEIR_PARAMS(weir_queue, .timing = true), &queue));
    const struct weir_event before = test_record(queue);
    EXPECT_OK(weir_queue_copy(queue, timed->memory[0], 0, timed->host[0], 0, RIG_BYTES));
    const struct weir_event after = test_record(queue);
    EXPECT_OK(weir_event_sync(after, WEIR_FOREVER));
    EXPECT_OK(weir_event_time_ns(before, &before_ns));
    EXPECT_OK(weir_event_time_ns(after, &after_ns));
    ASSERT_UINT_EQ(fetch_all(timed, queue, 1), 1);
    EXPECT_UINT_LE(before_ns, times[0].start_ns + timed->slack_ns);
    EXPECT_UINT_LE(times[0].end_ns, after_ns + timed->slack_ns);
}

// What a native call submits is not known; the operations after it have their times all the same.
TIMES_TEST(Times, GoOnAfterNativeCalls, "times")
{
    const uint64_t patience = weir_clock_now_ns() + UINT64_C(10000000000);
    size_t copies = 0;
    for (int i = 0; i < 3 && weir_device_limits(timed->rig.device)->native; i++) {
        EXPECT_OK(weir_queue_native_array(timed->rig.up, own_native_nothing, NULL, NULL, 0));
        EXPECT_OK(weir_queue_copy(timed->rig.up, timed->memory[0], 0, timed->host[0], 0, 64));
    }
    EXPECT_OK(weir_queue_sync(timed->rig.up, WEIR_FOREVER));
    while (copies < 3 && weir_device_limits(timed->rig.device)->native &&
           weir_clock_now_ns() < patience) {
        const size_t count = fetch(timed, timed->rig.up, times, MOST);
        for (size_t i = 0; i < count; i++)
            copies += times[i].sequence % 2 == 0; // a native call comes before each
        weir_clock_sleep_ns(1000000);
    }
    EXPECT_UINT_EQ(copies, weir_device_limits(timed->rig.device)->native ? 3 : 0);
}

// Times that are not fetched are dropped, oldest first, and memory use is bounded.
TIMES_TEST(Times, AreBounded, "times")
{
    struct weir_counters before;
    struct weir_counters after;
    for (size_t i = 0; i < 12000; i++) {
        EXPECT_OK(weir_queue_copy(timed->rig.up, timed->memory[0], 0, timed->host[0], 0, 64));
        if (i % 500 == 499)
            EXPECT_OK(weir_queue_sync(timed->rig.up, WEIR_FOREVER));
        if (i == 9999)
            weir_counters_read(&before);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    const size_t count = fetch_all(timed, timed->rig.up, 1024);
    ASSERT_UINT_GE(count, 1024);
    EXPECT_UINT_LT(count, 10000);
    // Every 500 operations there is a record of the sync.
    EXPECT_UINT_EQ(times[count - 1].sequence, 12000 + 23);
    expect_in_order(timed, count);
}

TIMES_TEST(Times, AreNotKeptUnlessWanted, "")
{
    submit_each(timed, timed->rig.up);
    EXPECT_OK(weir_queue_sync(timed->rig.up, WEIR_FOREVER));
    EXPECT_UINT_EQ(fetch(timed, timed->rig.up, times, MOST), 0);
}

// A busy device may be queried again.
static weir_status read_clocks(struct timed *timed, uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    weir_status status = WEIR_NOT_READY;
    for (size_t i = 0; i < 1000 && status == WEIR_NOT_READY; i++)
        status = timed->first->ops->device_clock(timed->first, timed->rig.device, out_host_ns,
                                                 out_device_ns);
    return status;
}

TIMES_TEST(Times, TheClocksArePaired, "times")
{
    uint64_t last_host = 0;
    uint64_t last_device = 0;
    for (size_t i = 0; i < 20; i++) {
        uint64_t host = 0;
        uint64_t device = 0;
        const uint64_t before = weir_clock_now_ns();
        ASSERT_OK(read_clocks(timed, &host, &device));
        EXPECT_UINT_LE(before, host);
        EXPECT_UINT_LE(host, weir_clock_now_ns());
        EXPECT_UINT_LT(last_host, host);
        EXPECT_UINT_LT(last_device, device);
        last_host = host;
        last_device = device;
    }
    // An operation lies between two of them.
    EXPECT_OK(weir_queue_copy(timed->rig.up, timed->memory[0], 0, timed->host[0], 0, RIG_BYTES));
    EXPECT_OK(weir_queue_sync(timed->rig.up, WEIR_FOREVER));
    uint64_t host;
    uint64_t device;
    ASSERT_OK(read_clocks(timed, &host, &device));
    ASSERT_UINT_EQ(fetch_all(timed, timed->rig.up, 1), 1);
    EXPECT_UINT_LE(last_device, times[0].start_ns + timed->slack_ns);
    EXPECT_UINT_LE(times[0].end_ns, device + timed->slack_ns);
}

// A driver's tool that loses records delays nothing. Only tested with a tool that loses
// some.
TIMES_TEST(TimesLost, HoldNothingUp, "times")
{
    if (!getenv("WEIR_TEST_CUPTI_LOSE"))
        WEIR_SKIP("nothing is lost here");
    for (size_t i = 0; i < 1000; i++)
        EXPECT_OK(weir_queue_copy(timed->rig.up, timed->memory[0], 0, timed->host[0], 0, 64));
    EXPECT_OK(weir_queue_sync(timed->rig.up, WEIR_FOREVER));
    const size_t count = fetch_all(timed, timed->rig.up, 850);
    EXPECT_UINT_GE(count, 850);
    EXPECT_UINT_LT(count, 1000);
    expect_in_order(timed, count);
}
