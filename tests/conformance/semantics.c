// The rows of docs/memory-model.md on ordering, waits, timing and ranges: the
// rules where CUDA and OpenCL differ. Host calls, failures and lifetimes have
// separate files.

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

CONFORM(Semantics, WaitBeforeRecord)
{
    const struct weir_event zero = {0, 0};
    size_t index;
    uint64_t time;
    int fd;

    EXPECT_INVALID(weir_queue_wait(f->queue, zero), "never recorded");
    EXPECT_STR_EQ(weir_last_error()->object, weir_queue_label(f->queue));
    EXPECT_INVALID(weir_event_query(zero), "never recorded");
    EXPECT_INVALID(weir_event_error(zero), "never recorded");
    EXPECT_INVALID(weir_event_sync(zero, 0), "never recorded");
    EXPECT_INVALID(weir_event_sync_any(&zero, 1, 0, &index), "never recorded");
    EXPECT_INVALID(weir_event_sync_all(&zero, 1, 0), "never recorded");
    EXPECT_INVALID(weir_event_time_ns(zero, &time), "never recorded");
    EXPECT_INVALID(weir_event_fd(zero, &fd), "never recorded");
    // A refused argument does not fail the queue.
    EXPECT_SYNC(f->queue);
}

// An event keeps naming its own point while its queue records others.
CONFORM(Semantics, ReRecord)
{
    struct weir_event events[3];

    ASSERT_OK(weir_queue_record(f->queue, &events[0]));
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_record(f->queue, &events[1]));
    ASSERT_OK(weir_queue_record(f->queue, &events[2]));
    for (int i = 0; i < 3; i++) {
        EXPECT_UINT_EQ(events[i].queue, events[0].queue);
        EXPECT_UINT_GT(events[i].sequence, i ? events[i - 1].sequence : 0);
    }
    EXPECT_OK(weir_event_sync(events[0], HANG_GUARD_NS));
    EXPECT_INT_EQ(weir_event_query(events[1]), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(events[2], HANG_GUARD_NS));
    EXPECT_OK(weir_event_query(events[1]));
}

// Waits for own events, for events waited for before and for older events of a
// queue that was waited for: all are legal, and none may block or lose the
// order.
CONFORM(Semantics, ImpliedWaits)
{
    own_queue producer = conform_queue(f, "producer");
    own_queue consumer = conform_queue(f, "consumer");
    own_buffer source = conform_host_buffer(f, SIZE);
    own_buffer middle = conform_device_buffer(f, SIZE);
    own_buffer result = conform_host_buffer(f, SIZE);

    memset(conform_bytes(result), 0, SIZE);
    own_gate gate = gate_on(producer);
    const struct weir_event early = test_record(producer);
    ASSERT_OK(weir_queue_wait(producer, early));
    memset(conform_bytes(source), 0x5a, SIZE);
    ASSERT_OK(weir_queue_copy(producer, middle, 0, source, 0, SIZE));
    const struct weir_event late = test_record(producer);

    ASSERT_OK(weir_queue_wait(consumer, late));
    ASSERT_OK(weir_queue_wait(consumer, late));
    ASSERT_OK(weir_queue_wait(consumer, early));
    ASSERT_OK(weir_queue_copy(consumer, result, 0, middle, 0, SIZE));
    const struct weir_event own = test_record(consumer);
    ASSERT_OK(weir_queue_wait(consumer, own));
    EXPECT_INT_EQ(weir_event_query(own), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_SYNC(consumer);
    EXPECT_MEM_EQ(conform_bytes(result), conform_bytes(source), SIZE);
    // And a wait for a point that is known to be complete.
    EXPECT_OK(weir_queue_wait(consumer, late));
    EXPECT_SYNC(consumer);
}

// The producers are not flushed or synced explicitly; a chain of a hundred passes bytes along, from the tenth on with
// host calls in half of them.
CONFORM(Semantics, ProducerNotFlushed)
{
    enum {
        QUEUES = 100
    };
    weir_queue *queues[QUEUES];
    own_buffer buffer = conform_host_buffer(f, (QUEUES + 1) * SIZE);
    struct weir_event event;
    atomic_int count = 0;

    for (size_t i = 0; i < SIZE; i++)
        conform_bytes(buffer)[i] = conform_pattern(i, 1);
    for (size_t i = 0; i < QUEUES; i++) {
        queues[i] = conform_queue(f, "link");
        if (i > 0)
            ASSERT_OK(weir_queue_wait(queues[i], event));
        if (i >= 10 && i % 2)
            ASSERT_OK(weir_queue_host_call(queues[i], count_up, &count));
        ASSERT_OK(weir_queue_copy(queues[i], buffer, (i + 1) * SIZE, buffer, i * SIZE, SIZE));
        ASSERT_OK(weir_queue_record(queues[i], &event));
    }
    EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    EXPECT_MEM_EQ(conform_bytes(buffer) + QUEUES * SIZE, conform_bytes(buffer), SIZE);
    EXPECT_INT_EQ(atomic_load(&count), (QUEUES - 10) / 2);
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&queues[i]);
}

// The same for every other way to find out that an event is complete.
CONFORM(Semantics, ProducerNotFlushedPolled)
{
    own_buffer buffer = conform_host_buffer(f, SIZE);
    size_t index;

    conform_fill(f->queue, buffer, 7);
    struct weir_event event = test_record(f->queue);
    while (weir_event_query(event) == WEIR_NOT_READY) {
    }
    EXPECT_OK(weir_event_query(event));
    conform_fill(f->queue, buffer, 7);
    event = test_record(f->queue);
    EXPECT_OK(weir_event_sync_any(&event, 1, HANG_GUARD_NS, &index));
    conform_fill(f->queue, buffer, 7);
    ASSERT_OK(weir_queue_flush(f->queue));
    EXPECT_SYNC(f->queue);
    EXPECT_INT_EQ(conform_bytes(buffer)[SIZE - 1], 7);
}

CONFORM(Semantics, TimingUnsupported)
{
    weir_queue *queue;
    weir_device *device;

    if (f->limits->timing_history > 0)
        CONFORM_SKIP("this device can time");
    EXPECT_REFUSED(weir_queue_create(f->device,
                                     WEIR_PARAMS(weir_queue, .label = "timed", .timing = true),
                                     &queue),
                   WEIR_ERROR_UNSUPPORTED, "cannot time");
    EXPECT_NULL(queue);
    EXPECT_REFUSED(weir_device_open(f->runtime, WEIR_PARAMS(weir_device, .default_timing = true),
                                    &device),
                   WEIR_ERROR_UNSUPPORTED, "cannot time");
    EXPECT_NULL(device);
}

// Records of two queues that are ordered by a wait are in order of time, too, also one that comes
// right after the wait.
CONFORM(Semantics, TimingIsOneTimeline)
{
    CONFORM_NEEDS_TIMES(f);
    own_queues queues = {conform_timed_queue(f, "a"), conform_timed_queue(f, "b")};
    own_buffer buffer = conform_device_buffer(f, SIZE);
    struct weir_event events[12];
    uint64_t times[12];

    for (int i = 0; i < 12; i += 2) {
        weir_queue *queue = queues[i / 2 % 2];
        if (i > 0)
            ASSERT_OK(weir_queue_wait(queue, events[i - 1]));
        ASSERT_OK(weir_queue_record(queue, &events[i]));
        conform_fill(queue, buffer, 0);
        ASSERT_OK(weir_queue_record(queue, &events[i + 1]));
    }
    ASSERT_OK(weir_event_sync_all(events, 12, HANG_GUARD_NS));
    for (int i = 0; i < 12; i++) {
        ASSERT_OK(weir_event_time_ns(events[i], &times[i]));
        EXPECT_UINT_GT(times[i], 0);
        if (i > 0)
            EXPECT_UINT_GE(times[i] + f->limits->timing_resolution_ns, times[i - 1]);
    }
}

CONFORM(Semantics, TimingOfTwoEvents)
{
    CONFORM_NEEDS_TIMES(f);
    weir_queue *queue = conform_timed_queue(f, "gated");
    uint64_t times[2];
    int64_t elapsed;

    own_gate gate = gate_on(queue);
    const struct weir_event begin = test_record(queue);
    const struct weir_event end = test_record(queue);
    EXPECT_INT_EQ(weir_event_time_ns(begin, &times[0]), WEIR_NOT_READY);
    EXPECT_INT_EQ(weir_event_elapsed_ns(begin, end, &elapsed), WEIR_NOT_READY);
    gate_open(gate);
    ASSERT_OK(weir_event_sync(end, HANG_GUARD_NS));
    ASSERT_OK(weir_event_time_ns(begin, &times[0]));
    ASSERT_OK(weir_event_time_ns(end, &times[1]));
    EXPECT_OK(weir_event_elapsed_ns(begin, end, &elapsed));
    EXPECT_INT_EQ(elapsed, (int64_t)(times[1] - times[0]));
    EXPECT_OK(weir_event_elapsed_ns(end, begin, &elapsed));
    EXPECT_INT_EQ(elapsed, -(int64_t)(times[1] - times[0]));
    weir_queue_destroy(&queue);
    EXPECT_REFUSED(weir_event_time_ns(begin, &times[0]), WEIR_ERROR_EXPIRED, "gone");
    EXPECT_REFUSED(weir_event_elapsed_ns(begin, end, &elapsed), WEIR_ERROR_EXPIRED, "gone");
}

CONFORM(Semantics, TimingHistory)
{
    const uint32_t history = f->limits->timing_history;
    if (history == 0)
        CONFORM_SKIP("limits.timing_history is 0");
    own_queue queue = conform_timed_queue(f, "timed");
    OWN_MEMORY struct weir_event *events = calloc(history + 1, sizeof *events);
    uint64_t time;

    ASSERT_NOT_NULL(events);
    for (uint32_t i = 0; i <= history; i++)
        ASSERT_OK(weir_queue_record(queue, &events[i]));
    ASSERT_OK(weir_event_sync(events[history], HANG_GUARD_NS));
    EXPECT_REFUSED(weir_event_time_ns(events[0], &time), WEIR_ERROR_EXPIRED,
                   "a queue keeps its last");
    EXPECT_OK(weir_event_time_ns(events[1], &time));
    EXPECT_OK(weir_event_time_ns(events[history], &time));
}

// More than any driver's own queue accepts: with a gate, and without.
CONFORM(Semantics, EnqueueDepth)
{
    enum {
        DEPTH = 10000
    };
    own_gate gate = gate_create();
    own_buffer buffer = conform_device_buffer(f, 4 * DEPTH);
    OWN_MEMORY uint32_t *back = malloc(4 * DEPTH);

    ASSERT_NOT_NULL(back);
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            ASSERT_OK(weir_queue_host_call(f->queue, gate_pass, gate));
        for (uint32_t i = 0; i < DEPTH; i++) {
            const uint32_t value = 2 * i + (uint32_t)round;
            ASSERT_OK(weir_queue_fill(f->queue, buffer, (size_t)4 * i, 4, &value, 4));
        }
        gate_open(gate);
        ASSERT_OK(weir_download(f->queue, back, buffer, 0, 4 * DEPTH));
        for (uint32_t i = 0; i < DEPTH; i++)
            ASSERT_UINT_EQ(back[i], 2 * i + (uint32_t)round);
    }
}

// Ranges that only a wrapping sum would accept, and their neighbours.
static const struct {
    size_t offset;
    size_t size;
    bool fits;
} ranges[] = {
    {0, SIZE, true},
    {SIZE, 0, true},
    {0, 0, true},
    {SIZE - 16, 16, true},
    {0, SIZE + 16, false},
    {16, SIZE, false},
    {SIZE, 16, false},
    {SIZE + 16, 0, false},
    {SIZE_MAX, 0, false},
    {SIZE_MAX, 1, false},
    {SIZE_MAX - 15, 16, false},
    {SIZE_MAX - 15, SIZE, false},
    {16, SIZE_MAX - 15, false},
    {SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, false},
    {0, SIZE_MAX, false},
};

CONFORM(Semantics, OffsetArithmetic)
{
    own_buffer a = conform_host_buffer(f, SIZE);
    own_buffer b = conform_host_buffer(f, SIZE);
    unsigned char bytes[SIZE];
    const unsigned char value = 0;
    void *pointer;

    memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const size_t at = ranges[i].offset;
        const size_t n = ranges[i].size;
        const weir_status want = ranges[i].fits ? WEIR_OK : WEIR_ERROR_INVALID;
        const size_t other = n <= SIZE ? 0 : at;

        weir_test_note("offset %zu, size %zu", at, n);
        EXPECT_INT_EQ(weir_queue_copy(f->queue, a, at, b, other, n), want);
        EXPECT_INT_EQ(weir_queue_copy(f->queue, a, other, b, at, n), want);
        EXPECT_INT_EQ(weir_queue_fill(f->queue, a, at, n, &value, 1), want);
        EXPECT_INT_EQ(weir_upload(f->queue, a, at, bytes, n), want);
        EXPECT_INT_EQ(weir_download(f->queue, bytes, a, at, n), want);
        EXPECT_INT_EQ(weir_host_begin(a, at, n, WEIR_ACCESS_READ, &pointer), want);
        EXPECT_INT_EQ(pointer != NULL, ranges[i].fits);
        EXPECT_INT_EQ(weir_host_end(a, at, n, WEIR_ACCESS_READ), want);
    }
    weir_test_note(NULL);
    EXPECT_INVALID(weir_queue_copy(f->queue, a, 16, b, 0, SIZE), "4096 bytes at offset 16");
    EXPECT_STR_EQ(weir_last_error()->object, "buffer");
    EXPECT_SYNC(f->queue);
}
