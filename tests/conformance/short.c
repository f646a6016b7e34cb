// Shorter forms of other calls: launches of a count, whole buffers, the time between two events.
#include "kernels/conformance/conformance.h"
#include "tests/conformance/bench.h"

#define N 1000u
#define BYTES ((size_t)4 * N)

// A count that is no multiple of a block, less than one, and 0.
CONFORM(Short, LaunchOfACount)
{
    static const uint32_t counts[] = {0, 1, 77, N};
    const bool runs = conform_kernels_run(f);
    uint32_t out[N];

    own_bench x = make_bench(f, "iota", BYTES);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const uint32_t count = counts[i];
        const uint32_t none = 9;
        ASSERT_OK(weir_queue_fill(x.queue, x.a, 0, BYTES, &none, sizeof none));
        ASSERT_OK(
            weir_queue_launch_count(x.queue, x.kernel, count, weir_whole_out(x.a), 5u, count));
        ASSERT_OK(weir_download(x.queue, out, x.a, 0, BYTES));
        for (uint32_t j = 0; runs && j < N; j++)
            ASSERT_UINT_EQ(out[j], j < count ? 5 + j : 9);
    }
    const struct weir_argument arguments[] = {weir_whole_out(x.a), weir__argument_u32(1),
                                              weir__argument_u32(N)};
    ASSERT_OK(weir_queue_launch_count_array(x.queue, x.kernel, N, arguments, 3));
    ASSERT_OK(weir_download(x.queue, out, x.a, 0, BYTES));
    if (runs)
        EXPECT_UINT_EQ(out[N - 1], N);
    EXPECT_INVALID(weir_queue_launch_count(x.queue, x.kernel, SIZE_MAX, weir_whole_out(x.a), 5u, N),
                   "a grid has at most");
    EXPECT_INVALID(weir_queue_launch_count(x.queue, NULL, 1, weir_whole_out(x.a), 5u, N), "kernel");
    EXPECT_INVALID(weir_queue_launch_count(NULL, x.kernel, 1, weir_whole_out(x.a), 5u, N), "queue");
}

CONFORM(Short, LaunchOfACountOfARequiredBlock)
{
    own_bench x = make_bench(f, "required_block", BYTES);
    EXPECT_INVALID(weir_queue_launch_count(x.queue, x.kernel, 64, weir_whole_out(x.a)),
                   "requires blocks of more than one dimension");
}

CONFORM(Short, TimeBetweenTwoEvents)
{
    if (f->limits->timing_history == 0)
        CONFORM_SKIP("limits.timing_history is 0");
    weir_queue *queue = conform_timed_queue(f, "timed");
    struct weir_event begin, end;
    uint64_t times[2];
    int64_t elapsed;

    ASSERT_OK(weir_queue_record(queue, &begin));
    ASSERT_OK(weir_queue_record(queue, &end));
    ASSERT_OK(weir_event_sync(end, HANG_GUARD_NS));
    ASSERT_OK(weir_event_time_ns(begin, &times[0]));
    ASSERT_OK(weir_event_time_ns(end, &times[1]));
    EXPECT_OK(weir_event_elapsed_ns(begin, end, &elapsed));
    EXPECT_INT_EQ(elapsed, (int64_t)(times[1] - times[0]));
    EXPECT_OK(weir_event_elapsed_ns(end, begin, &elapsed));
    EXPECT_INT_EQ(elapsed, -(int64_t)(times[1] - times[0]));
    weir_queue_destroy(&queue);
    EXPECT_REFUSED(weir_event_elapsed_ns(begin, end, &elapsed), WEIR_ERROR_EXPIRED, "gone");
}

CONFORM(Short, TimeOfAnIncompleteEvent)
{
    if (f->limits->timing_history == 0)
        CONFORM_SKIP("limits.timing_history is 0");
    own_gate gate = gate_create();
    own_queue queue = conform_timed_queue(f, "gated");
    struct weir_event event;
    int64_t elapsed;

    ASSERT_OK(weir_queue_host_call(queue, gate_function, gate));
    ASSERT_OK(weir_queue_record(queue, &event));
    EXPECT_INT_EQ(weir_event_elapsed_ns(event, event, &elapsed), WEIR_NOT_READY);
    gate_open(gate);
    ASSERT_OK(weir_event_sync(event, HANG_GUARD_NS));
    EXPECT_OK(weir_event_elapsed_ns(event, event, &elapsed));
    EXPECT_INT_EQ(elapsed, 0);
}

static weir_queue *open_timed(weir_device *device)
{
    weir_queue *queue = NULL;
    EXPECT_OK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .timing = true), &queue));
    return queue;
}

// The same device opened twice has two timelines.
CONFORM(Short, TimesOfTwoDevices)
{
    weir_device *other;
    struct weir_event events[2];
    weir_queue *queues[2];
    int64_t elapsed;
    if (f->limits->timing_history == 0)
        CONFORM_SKIP("limits.timing_history is 0");
    ASSERT_OK(weir_device_open(f->runtime, WEIR_PARAMS(weir_device, .select = "0"), &other));
    queues[0] = open_timed(f->device);
    queues[1] = open_timed(other);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_queue_record(queues[i], &events[i]));
        ASSERT_OK(weir_event_sync(events[i], HANG_GUARD_NS));
    }
    EXPECT_INVALID(weir_event_elapsed_ns(events[0], events[1], &elapsed), "of two devices");
    EXPECT_INT_EQ(elapsed, 0);
    weir_queue_destroy(&queues[0]);
    weir_queue_destroy(&queues[1]);
    EXPECT_OK(weir_device_close(&other));
}
