// Times of operations, as a backend returns them to a plugin that requests them. Run once
// for each backend; the environment names it.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/runtime/runtime.h"
#include "kernels/conformance/conformance.h"
#include "tests/support/libcuda/image.h"
#include "tests/support/test.h"

enum {
    BYTES = 1 << 20,
    MOST = 16384,
    // The tolerance between the clock of records and that of operations, if they are two:
    // a pair is as accurate as the latency of an empty stream, and a stream of the tests'
    // libcuda is a thread.
    SLACK_NS = 300000
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_program *program;
    weir_kernel *kernel;
    weir_buffer *host[2];
    weir_buffer *memory[2];
    const struct weir_link *first;
    uint64_t slack_ns;
};

static struct weir_operation_time times[MOST];

static bool make_buffers(struct rig *rig)
{
    struct weir_buffer_params params = {.struct_size = sizeof params,
                                        .label = "buffer",
                                        .size = BYTES};
    for (size_t i = 0; i < 2; i++) {
        params.placement = WEIR_PLACE_HOST;
        if (weir_buffer_create(rig->device, &params, &rig->host[i]) < 0)
            return false;
        params.placement = WEIR_PLACE_DEVICE;
        if (weir_buffer_create(rig->device, &params, &rig->memory[i]) < 0)
            return false;
    }
    return true;
}

// If there was no CUDA toolkit to build images, the tests' libcuda accepts an image that
// only names kernels.
static bool make_kernel(struct rig *rig)
{
    struct weir_bundle bundle = conformance_kernels;
    const struct weir_program_params params = {.struct_size = sizeof params, .bundle = &bundle};
    weir_status status = weir_program_create(rig->device, &params, &rig->program);
    if (status < 0 && strcmp(weir_runtime_backend(rig->runtime), "cuda") == 0) {
        bundle.images = weir_test_image();
        bundle.image_count = 1;
        status = weir_program_create(rig->device, &params, &rig->program);
    }
    return status == WEIR_OK && weir_kernel_create(rig->program, "spin", &rig->kernel) == WEIR_OK;
}

static bool start(struct rig *rig, const char *plugins)
{
    const char *section = getenv("WEIR_TEST_SECTION");
    struct weir_queue_params queue = {.struct_size = sizeof queue, .label = "queue"};
    *rig = (struct rig){NULL};
    bool fine = weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini",
                                      .config_text = section ? section : "", .plugins = plugins),
                          &rig->runtime) == WEIR_OK &&
                weir_device_open(rig->runtime, NULL, &rig->device) == WEIR_OK;
    queue.timing = fine && weir_device_limits(rig->device)->timing_history > 0;
    fine = fine && weir_queue_create(rig->device, &queue, &rig->queue) == WEIR_OK &&
           weir_queue_create(rig->device, &queue, &rig->other) == WEIR_OK && make_buffers(rig) &&
           make_kernel(rig);
    if (!fine) {
        weir_test_fail(__FILE__, __LINE__, "%s", weir_last_error_text());
        return false;
    }
    rig->first = weir__chain_first(&rig->runtime->chain);
    rig->slack_ns = weir_device_limits(rig->device)->timing_resolution_ns;
    if (strcmp(weir_runtime_backend(rig->runtime), "cuda") == 0)
        rig->slack_ns += SLACK_NS;
    return true;
}

static void finish(struct rig *rig)
{
    weir_kernel_destroy(&rig->kernel);
    weir_program_destroy(&rig->program);
    for (size_t i = 0; i < 2; i++) {
        weir_buffer_destroy(&rig->host[i]);
        weir_buffer_destroy(&rig->memory[i]);
    }
    weir_queue_destroy(&rig->other);
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

#define TIMES_TEST(suite, name, plugins) \
    WEIR_TEST_WITH(suite, name, struct rig, rig, start(rig, plugins), finish(rig))

static size_t fetch(struct rig *rig, weir_queue *queue, struct weir_operation_time *into,
                    size_t capacity)
{
    size_t count = 0;
    EXPECT_OK(
        rig->first->ops->queue_times(rig->first, queue, into, sizeof *into, capacity, &count));
    EXPECT_UINT_LE(count, capacity);
    return count;
}

// Fetches until `wanted` times have arrived; drivers may report times a moment after the
// end.
static size_t fetch_all(struct rig *rig, weir_queue *queue, size_t wanted)
{
    const uint64_t patience = weir_clock_now_ns() + UINT64_C(10000000000);
    size_t count = 0;
    while (count < wanted && weir_clock_now_ns() < patience) {
        count += fetch(rig, queue, times + count, MOST - count);
        if (count < wanted)
            weir_clock_sleep_ns(1000000);
    }
    return count + fetch(rig, queue, times + count, MOST - count);
}

// One operation of each sort, those that are several commands included; the first
// operation of the queue. Returns how many of them have times; these are consecutive.
static size_t submit_each(struct rig *rig, weir_queue *queue)
{
    static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct weir_plane to = {rig->memory[0], 0, 64};
    const struct weir_plane from = {rig->host[0], 0, 128};
    EXPECT_OK(weir_queue_fill(queue, rig->memory[0], 0, BYTES, pattern, 4));
    EXPECT_OK(weir_queue_fill(queue, rig->memory[0], 16, 4096, pattern, 16));
    EXPECT_OK(weir_queue_fill(queue, rig->host[0], 0, 4096, pattern, 8));
    EXPECT_OK(weir_queue_copy(queue, rig->memory[0], 0, rig->host[0], 0, BYTES));
    EXPECT_OK(weir_queue_copy(queue, rig->memory[1], 0, rig->memory[0], 0, BYTES));
    EXPECT_OK(weir_queue_copy(queue, rig->host[1], 0, rig->host[0], 0, BYTES));
    EXPECT_OK(weir_queue_copy_2d(queue, to, from, 32, 100));
    EXPECT_OK(weir_queue_copy_3d(queue, (struct weir_volume){rig->memory[0], 0, 64, 640},
                                 (struct weir_volume){rig->host[0], 0, 32, 640}, 32, 10, 5));
    EXPECT_OK(weir_queue_fill_2d(queue, to, 32, 100, pattern, 16));
    EXPECT_OK(weir_queue_fill_2d(queue, to, 32, 100, pattern, 2));
    EXPECT_OK(weir_queue_launch(queue, rig->kernel, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(rig->memory[1], 0, 64), 7u, UINT64_C(1000)));
    EXPECT_OK(weir_queue_copy(queue, rig->host[1], 0, rig->memory[1], 0, BYTES));
    return 12;
}

static void expect_in_order(const struct rig *rig, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        weir_test_note("operation %zu of %zu", i + 1, count);
        EXPECT_UINT_LE(times[i].start_ns, times[i].end_ns);
        if (i > 0)
            EXPECT_UINT_LE(times[i - 1].end_ns, times[i].start_ns + rig->slack_ns);
    }
    weir_test_note(NULL);
}

TIMES_TEST(Times, EveryOperationHasOne, "times")
{
    const size_t wanted = submit_each(rig, rig->queue);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    ASSERT_UINT_EQ(fetch_all(rig, rig->queue, wanted), wanted);
    for (size_t i = 0; i < wanted; i++)
        EXPECT_UINT_EQ(times[i].sequence, i + 1);
    expect_in_order(rig, wanted);
    EXPECT_UINT_EQ(fetch(rig, rig->queue, times, MOST), 0);
    EXPECT_UINT_EQ(fetch(rig, rig->other, times, MOST), 0);
}

TIMES_TEST(Times, OnTheTimelineOfRecords, "times")
{
    struct weir_event before;
    struct weir_event after;
    uint64_t before_ns;
    uint64_t after_ns;
    EXPECT_OK(weir_queue_record(rig->queue, &before));
    EXPECT_OK(weir_queue_copy(rig->queue, rig->memory[0], 0, rig->host[0], 0, BYTES));
    EXPECT_OK(weir_queue_record(rig->queue, &after));
    EXPECT_OK(weir_event_sync(after, WEIR_FOREVER));
    EXPECT_OK(weir_event_time_ns(before, &before_ns));
    EXPECT_OK(weir_event_time_ns(after, &after_ns));
    ASSERT_UINT_EQ(fetch_all(rig, rig->queue, 1), 1);
    EXPECT_UINT_LE(before_ns, times[0].start_ns + rig->slack_ns);
    EXPECT_UINT_LE(times[0].end_ns, after_ns + rig->slack_ns);
}

static weir_status submit_nothing(const struct weir_native_queue *native, void *user)
{
    return WEIR_OK;
}

// What a native call submits is not known; the operations after it have their times all the same.
TIMES_TEST(Times, GoOnAfterNativeCalls, "times")
{
    const uint64_t patience = weir_clock_now_ns() + UINT64_C(10000000000);
    size_t copies = 0;
    for (int i = 0; i < 3 && weir_device_limits(rig->device)->native; i++) {
        EXPECT_OK(weir_queue_native_array(rig->queue, submit_nothing, NULL, NULL, 0));
        EXPECT_OK(weir_queue_copy(rig->queue, rig->memory[0], 0, rig->host[0], 0, 64));
    }
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    while (copies < 3 && weir_device_limits(rig->device)->native &&
           weir_clock_now_ns() < patience) {
        const size_t count = fetch(rig, rig->queue, times, MOST);
        for (size_t i = 0; i < count; i++)
            copies += times[i].sequence % 2 == 0; // a native call comes before each
        weir_clock_sleep_ns(1000000);
    }
    EXPECT_UINT_EQ(copies, weir_device_limits(rig->device)->native ? 3 : 0);
}

TIMES_TEST(Times, AreFetchedOnce, "times")
{
    struct weir_operation_time time = {0};
    const size_t wanted = submit_each(rig, rig->queue);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    for (size_t i = 0; i < wanted; i++) {
        size_t tries = 0;
        while (fetch(rig, rig->queue, &time, 1) == 0 && tries++ < 5000)
            weir_clock_sleep_ns(1000000);
        EXPECT_UINT_EQ(time.sequence, i + 1);
    }
    EXPECT_UINT_EQ(fetch(rig, rig->queue, &time, 1), 0);
}

// Times that are not fetched are dropped, oldest first, and memory use is bounded.
TIMES_TEST(Times, AreBounded, "times")
{
    struct weir_counters before;
    struct weir_counters after;
    for (size_t i = 0; i < 12000; i++) {
        EXPECT_OK(weir_queue_copy(rig->queue, rig->memory[0], 0, rig->host[0], 0, 64));
        if (i % 500 == 499)
            EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
        if (i == 9999)
            weir_counters_read(&before);
    }
    weir_counters_read(&after);
    EXPECT_UINT_EQ(after.allocations, before.allocations);
    const size_t count = fetch_all(rig, rig->queue, 1024);
    ASSERT_UINT_GE(count, 1024);
    EXPECT_UINT_LT(count, 10000);
    // Every 500 operations there is a record of the sync.
    EXPECT_UINT_EQ(times[count - 1].sequence, 12000 + 23);
    expect_in_order(rig, count);
}

TIMES_TEST(Times, AreNotKeptUnlessWanted, "")
{
    submit_each(rig, rig->queue);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    EXPECT_UINT_EQ(fetch(rig, rig->queue, times, MOST), 0);
}

// A busy device may be queried again.
static weir_status read_clocks(struct rig *rig, uint64_t *out_host_ns, uint64_t *out_device_ns)
{
    weir_status status = WEIR_NOT_READY;
    for (size_t i = 0; i < 1000 && status == WEIR_NOT_READY; i++)
        status = rig->first->ops->device_clock(rig->first, rig->device, out_host_ns, out_device_ns);
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
        ASSERT_OK(read_clocks(rig, &host, &device));
        EXPECT_UINT_LE(before, host);
        EXPECT_UINT_LE(host, weir_clock_now_ns());
        EXPECT_UINT_LT(last_host, host);
        EXPECT_UINT_LT(last_device, device);
        last_host = host;
        last_device = device;
    }
    // An operation lies between two of them.
    EXPECT_OK(weir_queue_copy(rig->queue, rig->memory[0], 0, rig->host[0], 0, BYTES));
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    uint64_t host;
    uint64_t device;
    ASSERT_OK(read_clocks(rig, &host, &device));
    ASSERT_UINT_EQ(fetch_all(rig, rig->queue, 1), 1);
    EXPECT_UINT_LE(last_device, times[0].start_ns + rig->slack_ns);
    EXPECT_UINT_LE(times[0].end_ns, device + rig->slack_ns);
}

// Starts are exact if the driver reports them; the environment says what to expect.
TIMES_TEST(Times, SayWhatTheirStartsAre, "times")
{
    const char *starts = getenv("WEIR_TEST_STARTS");
    const size_t wanted = submit_each(rig, rig->queue);
    EXPECT_OK(weir_queue_sync(rig->queue, WEIR_FOREVER));
    ASSERT_UINT_EQ(fetch_all(rig, rig->queue, wanted), wanted);
    for (size_t i = 0; i < wanted; i++)
        EXPECT_TRUE(times[i].start_is_earliest == (starts && strcmp(starts, "earliest") == 0));
}

// Two queues submit at once, while a third thread fetches.
struct load {
    struct rig *rig;
    weir_queue *queue;
    weir_buffer *target;
    size_t count;
    size_t fetched;
    bool in_order;
};

static void *submit_many(void *user)
{
    struct load *load = user;
    for (size_t i = 0; i < load->count; i++) {
        EXPECT_OK(weir_queue_copy(load->queue, load->target, 0, load->rig->host[0], 0, 256));
        if (i % 100 == 99)
            EXPECT_OK(weir_queue_sync(load->queue, WEIR_FOREVER));
    }
    return NULL;
}

static void *fetch_many(void *user)
{
    struct load *load = user;
    const uint64_t patience = weir_clock_now_ns() + UINT64_C(20000000000);
    uint64_t last = 0;
    struct weir_operation_time some[64];
    load->in_order = true;
    while (load->fetched < load->count && weir_clock_now_ns() < patience) {
        const size_t count = fetch(load->rig, load->queue, some, 64);
        for (size_t i = 0; i < count; i++) {
            load->in_order = load->in_order && some[i].sequence > last;
            last = some[i].sequence;
        }
        load->fetched += count;
        if (count == 0)
            weir_clock_sleep_ns(200000);
    }
    return NULL;
}

TIMES_TEST(Times, AreFetchedWhileOthersSubmit, "times")
{
    pthread_t threads[4];
    struct load loads[2] = {{rig, rig->queue, rig->memory[0], 3000, 0, false},
                            {rig, rig->other, rig->memory[1], 3000, 0, false}};
    for (size_t i = 0; i < 2; i++) {
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, submit_many, &loads[i]), 0);
        ASSERT_INT_EQ(pthread_create(&threads[2 + i], NULL, fetch_many, &loads[i]), 0);
    }
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 2; i++) {
        EXPECT_UINT_EQ(loads[i].fetched, 3000);
        EXPECT_TRUE(loads[i].in_order);
    }
}

// A driver's tool that loses records delays nothing. Only tested with a tool that loses
// some.
WEIR_TEST(TimesLost, HoldNothingUp)
{
    struct rig rig;
    if (!getenv("WEIR_TEST_CUPTI_LOSE"))
        WEIR_SKIP("nothing is lost here");
    ASSERT_TRUE(start(&rig, "times"));
    for (size_t i = 0; i < 1000; i++)
        EXPECT_OK(weir_queue_copy(rig.queue, rig.memory[0], 0, rig.host[0], 0, 64));
    EXPECT_OK(weir_queue_sync(rig.queue, WEIR_FOREVER));
    const size_t count = fetch_all(&rig, rig.queue, 850);
    EXPECT_UINT_GE(count, 850);
    EXPECT_UINT_LT(count, 1000);
    expect_in_order(&rig, count);
    finish(&rig);
}
