// The legacy queue: the order that programs ported from the default stream rely on.
// Nothing here waits explicitly, except to check results.

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

static weir_queue *legacy_queue(struct fixture *f)
{
    weir_queue *queue;
    EXPECT_OK(weir_legacy_queue(f->device, &queue));
    return queue;
}

static void copy(weir_queue *queue, weir_buffer *dst, weir_buffer *src)
{
    EXPECT_OK(weir_queue_copy(queue, dst, 0, src, 0, SIZE));
}

// A record on it is CUDA's event in the default stream, and cuCtxRecordEvent().
CONFORM(Legacy, WaitsForEveryQueue)
{
    enum {
        QUEUES = 4
    };
    weir_queue *legacy = legacy_queue(f);
    struct gate *gates[QUEUES];
    own_queues queues = {NULL};
    own_buffers sources = {NULL};
    own_buffers results = {NULL};

    for (int i = 0; i < QUEUES; i++) {
        queues[i] = conform_queue(f, "q");
        sources[i] = conform_device_buffer(f, SIZE);
        results[i] = conform_host_buffer(f, SIZE);
        conform_fill(queues[i], sources[i], 1);
        EXPECT_SYNC(queues[i]);
        gates[i] = gate_on(queues[i]);
        conform_fill(queues[i], sources[i], (unsigned char)(10 + i));
    }
    for (int i = 0; i < QUEUES; i++)
        copy(legacy, results[i], sources[i]);
    const struct weir_event end = test_record(legacy);
    for (int i = 0; i < QUEUES; i++) { // the last alone keeps it from being complete
        EXPECT_INT_EQ(weir_event_query(end), WEIR_NOT_READY);
        gate_open(gates[i]);
    }
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    for (int i = 0; i < QUEUES; i++) {
        EXPECT_TRUE(conform_is_filled(results[i], (unsigned char)(10 + i)));
        gate_destroy(&gates[i]);
    }
}

// Also a queue that is created after the operation.
CONFORM(Legacy, EveryQueueWaitsForIt)
{
    enum {
        QUEUES = 4
    };
    weir_queue *legacy = legacy_queue(f);
    own_queues queues = {NULL};
    own_buffer source = conform_device_buffer(f, SIZE);
    own_buffers results = {NULL};
    struct weir_event ends[QUEUES];

    conform_fill(legacy, source, 1);
    for (int i = 0; i < QUEUES - 1; i++)
        queues[i] = conform_queue(f, "q");
    for (int i = 0; i < QUEUES; i++)
        results[i] = conform_host_buffer(f, SIZE);
    ASSERT_SYNC(legacy);
    own_gate gate = gate_on(legacy);
    conform_fill(legacy, source, 2);
    queues[QUEUES - 1] = conform_queue(f, "late");
    for (int i = 0; i < QUEUES; i++) {
        copy(queues[i], results[i], source);
        ends[i] = test_record(queues[i]);
    }
    ASSERT_TRUE(gate_await(gate, 1));
    for (int i = 0; i < QUEUES; i++)
        EXPECT_INT_EQ(weir_event_query(ends[i]), WEIR_NOT_READY);
    gate_open(gate);
    for (int i = 0; i < QUEUES; i++) {
        EXPECT_OK(weir_event_sync(ends[i], HANG_GUARD_NS));
        EXPECT_TRUE(conform_is_filled(results[i], 2));
    }
}

// A long kernel runs on one queue; without the order the legacy queue's copy would end
// before it.
CONFORM(Legacy, WaitsForSlowKernels)
{
    CONFORM_NEEDS_KERNELS(f);
    enum {
        ROUNDS = 4
    };
    weir_queue *legacy = legacy_queue(f);
    own_kernel spin = conform_kernel(f, "spin");
    own_kernel iota = conform_kernel(f, "iota");
    own_buffer scratch = conform_device_buffer(f, SIZE);
    own_buffer source = conform_device_buffer(f, SIZE);
    own_buffer result = conform_host_buffer(f, SIZE);

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        ASSERT_OK(weir_queue_launch(f->queue, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                    weir_out(scratch, 0, SIZE), round, UINT64_C(3000000)));
        ASSERT_OK(weir_queue_launch(f->queue, iota, weir_dim(32, 1, 1), weir_dim(32, 1, 1),
                                    weir_out(source, 0, SIZE), 1000 * round, (uint32_t)SIZE / 4));
        copy(legacy, result, source);
        // And back: this must not reach the copy.
        ASSERT_OK(weir_queue_launch(f->queue, iota, weir_dim(32, 1, 1), weir_dim(32, 1, 1),
                                    weir_out(source, 0, SIZE), 0u, (uint32_t)SIZE / 4));
        ASSERT_SYNC(legacy);
        for (uint32_t i = 0; i < SIZE / 4; i++)
            ASSERT_UINT_EQ(((uint32_t *)(void *)conform_bytes(result))[i], 1000 * round + i);
    }
}

// A queue that was destroyed while its work was running is waited for too.
CONFORM(Legacy, WaitsForAQueueThatIsBeingDestroyed)
{
    weir_queue *legacy = legacy_queue(f);
    weir_queue *queue = conform_queue(f, "q");
    own_buffer source = conform_device_buffer(f, SIZE);
    own_buffer result = conform_host_buffer(f, SIZE);

    own_gate gate = gate_on(queue);
    conform_fill(queue, source, 3);
    weir_queue_destroy(&queue);
    copy(legacy, result, source);
    const struct weir_event end = test_record(legacy);
    EXPECT_INT_EQ(weir_event_query(end), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    EXPECT_TRUE(conform_is_filled(result, 3));
}

CONFORM(Legacy, IsOneAndTheDevicesOwn)
{
    weir_queue *legacy = legacy_queue(f);
    weir_queue *same = legacy_queue(f);
    weir_queue *none = NULL;

    EXPECT_TRUE(legacy == same);
    EXPECT_TRUE(weir_queue_device(legacy) == f->device);
    EXPECT_STR_EQ(weir_queue_label(legacy), "legacy queue");
    EXPECT_INVALID(weir_legacy_queue(NULL, &none), "device is NULL");
    EXPECT_INVALID(weir_legacy_queue(f->device, NULL), "out_queue is NULL");
    weir_error_set(NULL);
    weir_queue_destroy(&same);
    EXPECT_NULL(same);
    EXPECT_FAILURE(weir_last_error()->status, WEIR_ERROR_INVALID, "came from weir_legacy_queue()");
    EXPECT_SYNC(legacy);
    EXPECT_TRUE(legacy == legacy_queue(f));
}

// Two other queues stay independent of each other as long as it is not used.
CONFORM(Legacy, OrdersNothingWhileItIsNotUsed)
{
    weir_queue *legacy = legacy_queue(f);
    own_queue held = conform_queue(f, "held");
    own_queue other = conform_queue(f, "other");

    ASSERT_SYNC(legacy);
    own_gate gate = gate_on(held);
    ASSERT_SYNC(other);
    gate_open(gate);
    ASSERT_SYNC(held);
}

// A failure of work that it waited for fails it, and no other queue. One that is over when it comes to the queue does not.
CONFORM(Legacy, FailsWithWhatItWaitsFor)
{
    weir_queue *legacy = legacy_queue(f);
    own_queue broken = conform_queue(f, "broken");
    own_queue healthy = conform_queue(f, "healthy");
    own_buffer buffer = conform_device_buffer(f, SIZE);

    ASSERT_OK(weir_queue_host_call(broken, fail_plainly, NULL));
    EXPECT_REFUSED(weir_queue_sync(legacy, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL,
                   "of queue 'broken', a host call, failed");
    conform_fill(healthy, buffer, 1);
    EXPECT_SYNC(healthy);
    EXPECT_INT_EQ(weir_queue_sync(legacy, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    conform_fill(healthy, buffer, 2);
    EXPECT_SYNC(healthy);
    EXPECT_OK(weir_queue_recover(broken));
    EXPECT_OK(weir_queue_recover(legacy));
    EXPECT_SYNC(legacy);
    EXPECT_SYNC(broken);
    own_gate gate = gate_on(broken);
    ASSERT_OK(weir_queue_host_call(broken, fail_plainly, NULL));
    const struct weir_event end = test_record(broken);
    gate_open(gate);
    EXPECT_INT_EQ(weir_event_sync(end, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_queue_recover(broken));
    EXPECT_SYNC(legacy);
}

// Its own failure does not fail other queues, except one that waits for one of its
// events.
CONFORM(Legacy, FailsOnlyQueuesThatWaitForItsEvents)
{
    weir_queue *legacy = legacy_queue(f);
    own_queue other = conform_queue(f, "other");
    own_queue after = conform_queue(f, "after");
    atomic_int count = 0;

    own_gate gate = gate_on(legacy);
    ASSERT_OK(weir_queue_host_call(legacy, fail_plainly, NULL));
    const struct weir_event end = test_record(legacy);
    ASSERT_OK(weir_queue_host_call(other, count_up, &count));
    ASSERT_OK(weir_queue_wait(after, end));
    gate_open(gate);
    EXPECT_SYNC(other);
    EXPECT_INT_EQ(atomic_load(&count), 1);
    EXPECT_INT_EQ(weir_queue_sync(after, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_INT_EQ(weir_event_sync(end, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_queue_recover(legacy));
    EXPECT_OK(weir_queue_recover(after));
    EXPECT_SYNC(legacy);
    EXPECT_SYNC(after);
    EXPECT_SYNC(other);
}

// A queue that failed while the legacy queue kept running is ordered after it again once
// it has recovered.
CONFORM(Legacy, KeepsItsOrderAfterARecovery)
{
    weir_queue *legacy = legacy_queue(f);
    own_buffer source = conform_device_buffer(f, SIZE);
    own_buffer result = conform_host_buffer(f, SIZE);

    conform_fail(f->queue);
    EXPECT_INT_EQ(weir_queue_sync(legacy, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_queue_recover(legacy));
    own_gate gate = gate_on(legacy);
    conform_fill(legacy, source, 7);
    EXPECT_OK(weir_queue_flush(f->queue));
    EXPECT_OK(weir_queue_recover(f->queue));
    copy(f->queue, result, source);
    const struct weir_event end = test_record(f->queue);
    EXPECT_INT_EQ(weir_event_query(end), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(end, HANG_GUARD_NS));
    EXPECT_TRUE(conform_is_filled(result, 7));
}

struct from_host {
    weir_queue *legacy;
    weir_queue *other;
    weir_buffer *source;
    weir_buffer *result;
    weir_status status;
};

// The legacy queue's operation waits for the very host call that submits it, and may.
static weir_status submit_to_legacy(void *user)
{
    struct from_host *work = user;
    const unsigned char value = 6;
    work->status = weir_queue_fill(work->legacy, work->source, 0, SIZE, &value, 1);
    if (work->status == WEIR_OK)
        work->status = weir_queue_copy(work->other, work->result, 0, work->source, 0, SIZE);
    return work->status;
}

CONFORM(Legacy, InAHostCall)
{
    own_queue other = conform_queue(f, "other");
    own_buffer source = conform_device_buffer(f, SIZE);
    own_buffer result = conform_host_buffer(f, SIZE);
    struct from_host work = {legacy_queue(f), other, source, result, WEIR_OK};
    ASSERT_OK(weir_queue_host_call(f->queue, submit_to_legacy, &work));
    EXPECT_SYNC(f->queue);
    EXPECT_SYNC(other);
    EXPECT_INT_EQ(work.status, WEIR_OK);
    EXPECT_TRUE(conform_is_filled(result, 6));
}

// Memory that one queue has freed is allocated on another although the free is not
// complete.
static void expect_block_goes(struct fixture *f, weir_queue *from, weir_queue *to)
{
    own_buffers results = {conform_host_buffer(f, SIZE), conform_host_buffer(f, SIZE)};
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, from, SIZE);
    struct weir_pool_statistics statistics;

    own_gate gate = gate_on(from);
    conform_fill(from, buffer, 1);
    copy(from, results[0], buffer);
    ASSERT_OK(weir_pool_free(from, &buffer));
    buffer = conform_take(pool, to, SIZE);
    weir_pool_read_statistics(pool, &statistics);
    EXPECT_UINT_EQ(statistics.reused, 1);
    conform_fill(to, buffer, 2);
    copy(to, results[1], buffer);
    gate_open(gate);
    EXPECT_SYNC(to);
    EXPECT_TRUE(conform_is_filled(results[0], 1));
    EXPECT_TRUE(conform_is_filled(results[1], 2));
    ASSERT_OK(weir_pool_free(to, &buffer));
}

// The legacy queue comes after all other queues, and all others come after it.
CONFORM(Legacy, SharesPoolsWithAnyQueue)
{
    expect_block_goes(f, f->queue, legacy_queue(f));
    expect_block_goes(f, legacy_queue(f), f->queue);
}

enum {
    THREADS = 4,
    ROUNDS = 60
};

struct worker {
    struct fixture *f;
    weir_queue *legacy;
    weir_buffer *slot;
    weir_buffer *results; // ROUNDS bytes per round
    unsigned number;
};

// The legacy queue copies the data that the thread's queue filled in, and the thread's
// queue overwrites it at once: both directions must be ordered.
static void *fill_copy_spoil(void *user)
{
    struct worker *worker = user;
    weir_queue *own;
    EXPECT_OK(weir_thread_queue(worker->f->device, &own));
    if (!own)
        return NULL;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned char value = (unsigned char)(worker->number * ROUNDS + round + 1);
        const unsigned char spoiled = 0;
        EXPECT_OK(weir_queue_fill(own, worker->slot, 0, SIZE, &value, 1));
        EXPECT_OK(
            weir_queue_copy(worker->legacy, worker->results, round * SIZE, worker->slot, 0, SIZE));
        EXPECT_OK(weir_queue_fill(own, worker->slot, 0, SIZE, &spoiled, 1));
        if (round % 16 == 5)
            EXPECT_OK(weir_queue_host_call(own, sleep_a_little, NULL));
    }
    EXPECT_OK(weir_queue_sync(own, HANG_GUARD_NS));
    return NULL;
}

CONFORM(Legacy, FromManyThreads)
{
    struct worker workers[THREADS];
    weir_queue *legacy = legacy_queue(f);

    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (struct worker){
            .f = f,
            .legacy = legacy,
            .slot = conform_device_buffer(f, SIZE),
            .results = conform_host_buffer(f, ROUNDS * SIZE),
            .number = i,
        };
    conform_run_threads(fill_copy_spoil, workers, sizeof *workers, THREADS);
    EXPECT_SYNC(legacy);
    for (unsigned i = 0; i < THREADS; i++) {
        const unsigned char *bytes = conform_bytes(workers[i].results);
        int wrong = 0;
        for (size_t at = 0; at < ROUNDS * SIZE; at++)
            wrong += bytes[at] != (unsigned char)(i * ROUNDS + at / SIZE + 1);
        EXPECT_INT_EQ(wrong, 0);
        weir_buffer_destroy(&workers[i].slot);
        weir_buffer_destroy(&workers[i].results);
    }
}

// Queues come and go, fail and recover, while others submit to the legacy queue: nothing
// hangs, and no failure reaches a queue that did not fail.
static void *come_and_go(void *user)
{
    struct worker *worker = user;
    for (unsigned round = 0; round < ROUNDS; round++) {
        own_queue queue = conform_queue(worker->f, "a thread's");
        conform_fill(queue, worker->slot, 1);
        if (worker->number % 2 && round % 8 == 0) {
            conform_fail(queue);
            EXPECT_OK(weir_queue_recover(queue));
        }
        // The legacy queue may have failed with one of those queues and be recovered by
        // another thread. Then nothing orders the next fill after this one.
        const bool refused =
            weir_queue_copy(worker->legacy, worker->results, 0, worker->slot, 0, SIZE) < 0;
        if (refused)
            EXPECT_OK(weir_queue_recover(worker->legacy));
        if (refused || round % 3 == 0)
            EXPECT_OK(weir_queue_sync(queue, HANG_GUARD_NS));
    }
    return NULL;
}

CONFORM(Legacy, WhileQueuesComeGoAndFail)
{
    struct worker workers[THREADS];
    weir_queue *legacy = legacy_queue(f);
    own_buffer results = conform_host_buffer(f, SIZE);

    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (struct worker){
            .f = f,
            .legacy = legacy,
            .slot = conform_device_buffer(f, SIZE),
            .results = results,
            .number = i,
        };
    conform_run_threads(come_and_go, workers, sizeof *workers, THREADS);
    WEIR_IGNORE(weir_queue_sync(legacy, HANG_GUARD_NS));
    EXPECT_OK(weir_queue_recover(legacy));
    EXPECT_SYNC(legacy);
    EXPECT_TRUE(conform_is_filled(results, 1));
    for (unsigned i = 0; i < THREADS; i++)
        weir_buffer_destroy(&workers[i].slot);
}

// Times on the queues that are the device's or a thread's, and the event of a whole device: a
// record on the legacy queue.

// The fixture's device again, with times on its default queues.
static weir_device *open_with_times(struct fixture *f)
{
    weir_device *device;
    EXPECT_OK(weir_device_open(f->runtime,
                               WEIR_PARAMS(weir_device, .select = "0", .default_timing = true),
                               &device));
    return device;
}

static void fill_and_record(weir_queue *queue, weir_buffer *buffer, struct weir_event *out_event)
{
    const uint32_t value = 1;
    EXPECT_OK(weir_queue_fill(queue, buffer, 0, SIZE, &value, sizeof value));
    EXPECT_OK(weir_queue_record(queue, out_event));
}

// Work goes from the legacy queue to a thread's queue and to one of the program's, and back, with no wait
// written: the times tell the order.
static void expect_times_in_order(struct fixture *f, weir_queue *const queues[3],
                                  weir_buffer *buffer)
{
    enum {
        TURNS = 4,
        COUNT = TURNS * 4
    };
    struct weir_event events[COUNT];
    int64_t elapsed;
    for (int i = 0; i < COUNT; i++) // the legacy queue before and after each of the others
        fill_and_record(queues[i % 2 ? 1 + i / 2 % 2 : 0], buffer, &events[i]);
    ASSERT_OK(weir_event_sync_all(events, COUNT, HANG_GUARD_NS));
    for (int i = 1; i < COUNT; i++) {
        ASSERT_OK(weir_event_elapsed_ns(events[i - 1], events[i], &elapsed));
        EXPECT_TRUE(elapsed + f->limits->timing_resolution_ns >= 0);
    }
    ASSERT_OK(weir_event_elapsed_ns(events[0], events[COUNT - 1], &elapsed));
    EXPECT_TRUE(elapsed > 0);
}

CONFORM(Legacy, TimesTellItsOrder)
{
    CONFORM_NEEDS_TIMES(f);
    own_device device = open_with_times(f);
    ASSERT_NOT_NULL(device);
    struct fixture timed = {.device = device};
    weir_queue *queues[3] = {legacy_queue(&timed)};
    own_queue of_program = queues[2] = conform_timed_queue(&timed, "of the program");
    own_buffer buffer = conform_device_buffer(&timed, SIZE);
    ASSERT_OK(weir_thread_queue(device, &queues[1]));
    expect_times_in_order(f, queues, buffer);
}

// As CUDA's programs measure a kernel: an event on either side of it, in stream 0.
CONFORM(Legacy, TimesALongKernel)
{
    CONFORM_NEEDS_TIMES(f);
    CONFORM_NEEDS_KERNELS(f);
    own_device device = open_with_times(f);
    ASSERT_NOT_NULL(device);
    struct fixture timed = {.device = device};
    weir_queue *legacy = legacy_queue(&timed);
    own_kernel spin = conform_kernel(&timed, "spin");
    own_program program = timed.program;
    own_buffer buffer = conform_device_buffer(&timed, SIZE);
    struct weir_event events[3];
    int64_t empty, kernel;

    ASSERT_OK(weir_queue_record(legacy, &events[0]));
    ASSERT_OK(weir_queue_record(legacy, &events[1]));
    ASSERT_OK(weir_queue_launch(legacy, spin, weir_dim(1, 1, 1), weir_dim(1, 1, 1),
                                weir_out(buffer, 0, SIZE), 1u, UINT64_C(30000000)));
    ASSERT_OK(weir_queue_record(legacy, &events[2]));
    ASSERT_OK(weir_event_sync(events[2], HANG_GUARD_NS));
    EXPECT_OK(weir_event_elapsed_ns(events[0], events[1], &empty));
    EXPECT_OK(weir_event_elapsed_ns(events[1], events[2], &kernel));
    EXPECT_TRUE(kernel > empty);
}

static void expect_untimed(weir_queue *queue, const char *name, const char *remedy)
{
    uint64_t time = 1;
    int64_t elapsed;

    const struct weir_event event = test_record(queue);
    ASSERT_OK(weir_event_sync(event, HANG_GUARD_NS));
    EXPECT_INVALID(weir_event_time_ns(event, &time), name);
    EXPECT_UINT_EQ(time, 0);
    EXPECT_CONTAINS(weir_last_error()->message, "was created without timing");
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
    EXPECT_INVALID(weir_event_elapsed_ns(event, event, &elapsed), name);
    EXPECT_CONTAINS(weir_last_error()->remedy, remedy);
}

// Times cost on most drivers, so that a program has to ask for them.
CONFORM(Legacy, TimesAreAskedForAtTheDevice)
{
    weir_queue *legacy = legacy_queue(f), *mine;
    ASSERT_OK(weir_thread_queue(f->device, &mine));
    expect_untimed(legacy, "queue 'legacy queue'", "open the device with .default_timing = true");
    expect_untimed(mine, "queue 'thread queue'", "open the device with .default_timing = true");
    expect_untimed(f->queue, "queue 'q'", "created with .timing = true");
}
