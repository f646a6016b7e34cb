// Pools: freed memory is reused in the order of queues, and never earlier.

#include "tests/conformance/suite.h"

#define SIZE ((size_t)10000)

static struct weir_pool_statistics read_statistics(const weir_pool *pool)
{
    struct weir_pool_statistics statistics;
    weir_pool_read_statistics(pool, &statistics);
    return statistics;
}

// Free and allocate again before any of the work has run: the second user's bytes do not
// reach the first user's copy.
CONFORM(Pool, ReusesAtOnceOnItsOwnQueue)
{
    for (int host = 0; host < 2; host++) {
        own_pool pool = conform_pool(f, host ? WEIR_PLACE_HOST : WEIR_PLACE_DEVICE, 0);
        own_buffers results = {NULL};
        own_gate gate = gate_on(f->queue);
        for (unsigned i = 0; i < 4; i++) {
            weir_buffer *buffer = conform_take(pool, f->queue, SIZE);
            results[i] = conform_host_buffer(f, SIZE);
            ASSERT_UINT_EQ(weir_buffer_size(buffer), SIZE);
            ASSERT_INT_EQ(weir_buffer_placement(buffer),
                          host ? WEIR_PLACE_HOST : WEIR_PLACE_DEVICE);
            conform_fill(f->queue, buffer, (unsigned char)(i + 1));
            ASSERT_OK(weir_queue_copy(f->queue, results[i], 0, buffer, 0, SIZE));
            ASSERT_OK(weir_pool_free(f->queue, &buffer));
            EXPECT_NULL(buffer);
        }
        EXPECT_UINT_EQ(read_statistics(pool).reused, 3);
        EXPECT_UINT_EQ(read_statistics(pool).blocked, 0);
        gate_open(gate);
        ASSERT_SYNC(f->queue);
        for (unsigned i = 0; i < 4; i++)
            EXPECT_TRUE(conform_is_filled(results[i], (unsigned char)(i + 1)));
    }
}

// The first queue has freed, and is held: the second must get other memory, or the first one's copy would
// read its bytes. It gets the same after a wait; one for an event before the free does not cover it.
CONFORM(Pool, HandsOutNothingThatAnotherQueueStillUses)
{
    own_queue first = conform_queue(f, "first");
    own_queue second = conform_queue(f, "second");
    own_buffer result = conform_host_buffer(f, SIZE);
    own_buffer after_it = conform_host_buffer(f, SIZE);
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, first, SIZE);

    conform_fill(first, buffer, 1);
    own_gate gate = gate_on(first);
    ASSERT_OK(weir_queue_copy(first, result, 0, buffer, 0, SIZE));
    const struct weir_event before = test_record(first);
    ASSERT_OK(weir_pool_free(first, &buffer));

    weir_buffer *others[3] = {conform_take(pool, second, SIZE)};
    EXPECT_UINT_EQ(read_statistics(pool).reused, 0);
    EXPECT_UINT_EQ(read_statistics(pool).blocked, 1);
    conform_fill(second, others[0], 2);
    ASSERT_SYNC(second); // it waits for nothing
    ASSERT_OK(weir_queue_wait(second, before));
    others[1] = conform_take(pool, second, SIZE);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 0);
    follow(second, first);
    others[2] = conform_take(pool, second, SIZE);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 1);
    conform_fill(second, others[2], 3);
    ASSERT_OK(weir_queue_copy(second, after_it, 0, others[2], 0, SIZE));
    gate_open(gate);
    ASSERT_SYNC(second);
    EXPECT_TRUE(conform_is_filled(result, 1));
    EXPECT_TRUE(conform_is_filled(after_it, 3));
    for (int i = 0; i < 3; i++)
        ASSERT_OK(weir_pool_free(second, &others[i]));
}

// A free that is known to be complete, or that was on a destroyed queue, restricts no
// queue.
CONFORM(Pool, ReusesWhatIsKnownToBeComplete)
{
    own_queue first = conform_queue(f, "first");
    weir_queue *second = conform_queue(f, "second");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);

    weir_buffer *buffer = conform_take(pool, first, SIZE);
    conform_fill(first, buffer, 1);
    ASSERT_OK(weir_pool_free(first, &buffer));
    ASSERT_SYNC(first);
    buffer = conform_take(pool, second, SIZE);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 1);
    conform_fill(second, buffer, 2);
    ASSERT_OK(weir_pool_free(second, &buffer));
    ASSERT_SYNC(second);
    weir_queue_destroy(&second);
    buffer = conform_take(pool, first, SIZE);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 2);
    ASSERT_OK(weir_pool_free(first, &buffer));
}

// A class wastes at most an eighth, and the waste cannot be accessed. Sizes of one class share blocks, also when the
// first was the smaller one.
CONFORM(Pool, SizesAreWhatWasAskedFor)
{
    static const size_t sizes[] = {8193, 9216, 9000, 8200};
    own_pool shared = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);

    for (size_t i = 0; i < 4; i++) {
        weir_buffer *buffer = conform_take(shared, f->queue, sizes[i]);
        EXPECT_UINT_EQ(weir_buffer_size(buffer), sizes[i]);
        conform_write(f->queue, buffer, (unsigned)i);
        EXPECT_TRUE(conform_holds(f->queue, buffer, 0, sizes[i], (unsigned)i, 0));
        ASSERT_OK(weir_pool_free(f->queue, &buffer));
    }
    EXPECT_UINT_EQ(read_statistics(shared).reused, 3);
    EXPECT_UINT_EQ(read_statistics(shared).high_bytes, 9216);
    // Memory that is used again has the place of its latest allocation.
    for (int line = 1001; line <= 1002; line++) {
        char place[32];
        weir_buffer *buffer = NULL;
        snprintf(place, sizeof place, "user.c:%d", line);
        ASSERT_OK(weir_pool_allocate_at(shared, f->queue, SIZE, &buffer, "user.c", line));
        EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 0, SIZE + 1, "x", 1), place);
        ASSERT_OK(weir_pool_free(f->queue, &buffer));
    }
    EXPECT_UINT_EQ(read_statistics(shared).reused, 4);

    for (size_t size = 1; size < 3000000; size = size * 21 / 20 + 1) {
        weir_buffer *buffer = conform_take(pool, f->queue, size);
        const uint64_t bytes = read_statistics(pool).in_use_bytes;
        weir_test_note("%zu bytes", size);
        ASSERT_UINT_EQ(weir_buffer_size(buffer), size);
        ASSERT_UINT_GE(bytes, size);
        ASSERT_UINT_LE(bytes, size <= 256 ? 256 : size + size / 8);
        EXPECT_INVALID(weir_queue_fill(f->queue, buffer, 0, size + 1, "x", 1), "do not lie");
        ASSERT_OK(weir_queue_fill(f->queue, buffer, size - 1, 1, "x", 1));
        ASSERT_OK(weir_pool_free(f->queue, &buffer));
        ASSERT_UINT_EQ(read_statistics(pool).in_use_bytes, 0);
    }
    EXPECT_SYNC(f->queue);
}

CONFORM(Pool, InKernels)
{
    CONFORM_NEEDS_KERNELS(f);
    enum {
        ITEMS = 1000
    };
    own_kernel kernel = conform_kernel(f, "iota");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    uint32_t words[ITEMS];

    for (uint32_t round = 0; round < 4; round++) {
        weir_buffer *buffer = conform_take(pool, f->queue, sizeof words);
        ASSERT_OK(weir_queue_launch(f->queue, kernel, weir_dim(32, 1, 1), weir_dim(32, 1, 1),
                                    weir_out(buffer, 0, sizeof words), round * 100,
                                    (uint32_t)ITEMS));
        ASSERT_OK(weir_download(f->queue, words, buffer, 0, sizeof words));
        ASSERT_OK(weir_pool_free(f->queue, &buffer));
        for (uint32_t i = 0; i < ITEMS; i++)
            ASSERT_UINT_EQ(words[i], round * 100 + i);
    }
    EXPECT_UINT_EQ(read_statistics(pool).reused, 3);
}

CONFORM(Pool, Refusals)
{
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    own_buffer plain = conform_device_buffer(f, SIZE);
    weir_buffer *buffer = NULL;
    weir_pool *none = NULL;
    const struct weir_pool_params unset = {.label = "x"};

    EXPECT_INVALID(weir_pool_create(NULL, NULL, &none), "device");
    EXPECT_INVALID(weir_pool_create(f->device,
                                    WEIR_PARAMS(weir_pool, .placement = (weir_placement)7), &none),
                   "placement");
    EXPECT_INVALID(weir_pool_create(f->device, &unset, &none), "struct_size");
    EXPECT_INVALID(weir_pool_allocate(pool, f->queue, 0, &buffer), "0 bytes");
    EXPECT_INVALID(weir_pool_allocate(NULL, f->queue, 1, &buffer), "NULL");
    EXPECT_INVALID(weir_pool_allocate(pool, NULL, 1, &buffer), "NULL");
    EXPECT_INVALID(weir_pool_allocate(pool, f->queue, 1, NULL), "NULL");
    if (f->limits->max_buffer_bytes < SIZE_MAX)
        EXPECT_INVALID(weir_pool_allocate(pool, f->queue, (size_t)f->limits->max_buffer_bytes + 1,
                                          &buffer),
                       "the device's limit is");
    EXPECT_NULL(buffer);
    EXPECT_INVALID(weir_pool_free(f->queue, NULL), "NULL");
    EXPECT_INVALID(weir_pool_free(f->queue, &buffer), "was it freed before");
    EXPECT_INVALID(weir_pool_free(f->queue, &plain), "came out of no pool");
    EXPECT_NOT_NULL(plain);
    EXPECT_REFUSED(weir_pool_trim(NULL, 0), WEIR_ERROR_INVALID, "NULL");
    EXPECT_SYNC(f->queue);
    weir_pool_destroy(&none);
    weir_pool_destroy(NULL);
}

CONFORM(Pool, OfAnotherDevice)
{
    own_device device = NULL;
    own_queue foreign = NULL;
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, f->queue, SIZE);
    weir_buffer *none = NULL;

    ASSERT_OK(weir_device_open(f->runtime, NULL, &device));
    ASSERT_OK(weir_queue_create(device, NULL, &foreign));
    EXPECT_INVALID(weir_pool_allocate(pool, foreign, SIZE, &none), "belongs to another device");
    EXPECT_NULL(none);
    EXPECT_INVALID(weir_pool_free(foreign, &buffer), "belongs to another device");
    EXPECT_NOT_NULL(buffer);
    EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 10240);
    EXPECT_OK(weir_pool_free(f->queue, &buffer));
}

// A second pointer to a freed buffer: every use is refused with a message, until the
// memory is allocated again.
CONFORM(Pool, RefusesUsesAfterAFree)
{
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, f->queue, SIZE);
    weir_buffer *again = buffer;

    ASSERT_OK(weir_pool_free(f->queue, &buffer));
    EXPECT_INVALID(weir_pool_free(f->queue, &again), "freed to its pool already");
    EXPECT_CONTAINS(weir_last_error()->message, "pools.c");
    EXPECT_NOT_NULL(again);
    EXPECT_INVALID(weir_queue_fill(f->queue, again, 0, 16, "x", 1), "dst: the buffer was freed");
    EXPECT_UINT_EQ(weir_buffer_size(again), 0);
    weir_buffer *stale = again;
    weir_buffer_destroy(&stale); // only reports the mistake
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 10240);
    EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 0);
    EXPECT_SYNC(f->queue);
}

CONFORM(Pool, TheLimitsErrorNamesTheUsesOfTheMemory)
{
    own_queue held = conform_queue(f, "held");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 4096);
    weir_buffer *buffer = conform_take(pool, held, 3000);
    weir_buffer *other = NULL;

    EXPECT_REFUSED(weir_pool_allocate(pool, f->queue, 2000, &other), WEIR_ERROR_OUT_OF_MEMORY,
                   "2000 bytes were asked for, a block of 2048; 3072 bytes of the pool are in use, "
                   "0 are kept and not idle, and the limit is 4096");
    EXPECT_NULL(other);
    own_gate gate = gate_on(held);
    ASSERT_OK(weir_pool_free(held, &buffer));
    EXPECT_REFUSED(weir_pool_allocate(pool, f->queue, 2000, &other), WEIR_ERROR_OUT_OF_MEMORY,
                   "0 bytes of the pool are in use, 3072 are kept and not idle");
    gate_open(gate);
    ASSERT_SYNC(held);
    // Idle memory of another size is returned to make room.
    other = conform_take(pool, f->queue, 2000);
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 0);
    EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 2048);
    EXPECT_UINT_EQ(read_statistics(pool).high_bytes, 3072);
    EXPECT_SYNC(f->queue);
    ASSERT_OK(weir_pool_free(f->queue, &other));
}

// Buffers outlive their pool, whose end waits for no work on them, and are still freed to it.
CONFORM(Pool, DestroyedWhileBuffersAreOut)
{
    weir_pool *pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, f->queue, SIZE);
    weir_buffer *other = conform_take(pool, f->queue, SIZE);
    weir_buffer *kept = conform_take(pool, f->queue, SIZE);
    weir_device *device = f->device;

    own_gate gate = gate_on(f->queue);
    conform_fill(f->queue, kept, 4);
    ASSERT_OK(weir_pool_free(f->queue, &kept));
    EXPECT_INVALID(weir_device_close(&device), "still exist");
    weir_pool_destroy(&pool);
    gate_open(gate);
    conform_write(f->queue, buffer, 5);
    EXPECT_TRUE(conform_holds(f->queue, buffer, 0, SIZE, 5, 0));
    ASSERT_SYNC(f->queue);
    weir_queue *last = f->queue;
    weir_queue_destroy(&last);
    f->queue = conform_queue(f, "q2");
    EXPECT_INVALID(weir_device_close(&device), "still exist");
    ASSERT_OK(weir_pool_free(f->queue, &buffer));
    weir_buffer_destroy(&other);
    EXPECT_SYNC(f->queue);
}

// weir_buffer_destroy() removes a buffer from its pool.
CONFORM(Pool, BuffersCanBeDestroyed)
{
    own_buffer result = conform_host_buffer(f, SIZE);
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, f->queue, SIZE);

    conform_fill(f->queue, buffer, 9);
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_copy(f->queue, result, 0, buffer, 0, SIZE));
    weir_buffer_destroy(&buffer);
    EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 0);
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 0);
    buffer = conform_take(pool, f->queue, SIZE);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 0);
    conform_fill(f->queue, buffer, 8);
    gate_open(gate);
    ASSERT_SYNC(f->queue);
    EXPECT_TRUE(conform_is_filled(result, 9));
    ASSERT_OK(weir_pool_free(f->queue, &buffer));
}

// Only idle memory is returned, and the rest stays usable.
CONFORM(Pool, TrimsWhatIsIdle)
{
    own_queue held = conform_queue(f, "held");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffers[4];

    for (int i = 0; i < 4; i++)
        buffers[i] = conform_take(pool, i < 3 ? f->queue : held, 1024);
    conform_write(f->queue, buffers[0], 3);
    own_gate gate = gate_on(held);
    for (int i = 1; i < 4; i++)
        ASSERT_OK(weir_pool_free(i < 3 ? f->queue : held, &buffers[i]));
    ASSERT_SYNC(f->queue);
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 3072);
    EXPECT_OK(weir_pool_trim(pool, 2048));
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 2048);
    EXPECT_OK(weir_pool_trim(pool, 2048));
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 2048);
    EXPECT_OK(weir_pool_trim(pool, 0));
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 1024); // the gate holds it
    EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 1024);
    EXPECT_TRUE(conform_holds(f->queue, buffers[0], 0, 1024, 3, 0));
    gate_open(gate);
    ASSERT_SYNC(held);
    EXPECT_OK(weir_pool_trim(pool, 0));
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 0);
    EXPECT_UINT_EQ(read_statistics(pool).high_bytes, 4096);
    ASSERT_OK(weir_pool_free(f->queue, &buffers[0]));
}

// On a failed queue allocation is refused, but freeing works.
CONFORM(Pool, OnAQueueThatHasFailed)
{
    own_queue other = conform_queue(f, "other");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    weir_buffer *buffer = conform_take(pool, f->queue, SIZE);
    weir_buffer *none;

    conform_fail(f->queue);
    EXPECT_REFUSED(weir_pool_allocate(pool, f->queue, SIZE, &none), WEIR_ERROR_HOST_CALL,
                   "a host call, failed");
    EXPECT_NULL(none);
    EXPECT_OK(weir_pool_free(f->queue, &buffer));
    EXPECT_NULL(buffer);
    EXPECT_UINT_EQ(read_statistics(pool).in_use_bytes, 0);
    EXPECT_UINT_EQ(read_statistics(pool).kept_bytes, 10240);
    EXPECT_UINT_EQ(read_statistics(pool).allocations, 1);

    ASSERT_OK(weir_queue_recover(f->queue));
    buffer = conform_take(pool, f->queue, SIZE);
    EXPECT_UINT_EQ(read_statistics(pool).reused, 1);
    conform_write(f->queue, buffer, 4);
    EXPECT_TRUE(conform_holds(f->queue, buffer, 0, SIZE, 4, 0));
    ASSERT_OK(weir_pool_free(f->queue, &buffer));
}

// Once warm, nothing is allocated and no native object made. The time of that depends on
// the machine's load, since queues keep the memory for the most work that was in flight.
// So there must be some interval without allocations: with an allocation per round there
// would be none.
CONFORM(Pool, IsFlatOnceWarm)
{
    enum {
        ROUNDS = 300,
        STRETCH = 50,
        QUEUES = 3
    };
    own_queues queues = {NULL};
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    struct weir_counters before = {0};
    struct weir_counters after;
    int flat = 0;

    for (int i = 0; i < QUEUES; i++)
        queues[i] = conform_queue(f, "q");
    for (int round = 0; round < ROUNDS; round++) {
        if (round % STRETCH == 0) {
            weir_counters_read(&after);
            flat += after.allocations == before.allocations &&
                    after.driver_objects == before.driver_objects;
            before = after;
        }
        for (int i = 0; i < QUEUES; i++) {
            weir_buffer *small = conform_take(pool, queues[i], 100);
            weir_buffer *large = conform_take(pool, queues[i], SIZE);
            ASSERT_OK(weir_pool_free(queues[i], &small));
            ASSERT_OK(weir_pool_free(queues[i], &large));
        }
    }
    EXPECT_INT_GT(flat, 0);
    const struct weir_pool_statistics statistics = read_statistics(pool);
    EXPECT_UINT_EQ(statistics.allocations, 2 * QUEUES * ROUNDS);
    EXPECT_UINT_GE(statistics.reused, 2 * QUEUES * (ROUNDS - 1));
    EXPECT_UINT_LE(statistics.high_bytes, QUEUES * (256 + 10240));
    EXPECT_UINT_EQ(statistics.in_use_bytes, 0);
    EXPECT_UINT_EQ(statistics.kept_bytes, statistics.high_bytes);
    for (int i = 0; i < QUEUES; i++)
        EXPECT_SYNC(queues[i]);
}

// A ring of two queues that pass buffers on by events: it too stops allocating, and
// neither queue sees the other's bytes.
CONFORM(Pool, HandsBuffersFromQueueToQueue)
{
    enum {
        ROUNDS = 200,
        RESULTS = 8
    };
    own_queue producer = conform_queue(f, "producer");
    own_queue consumer = conform_queue(f, "consumer");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    own_buffers results = {NULL};
    struct weir_event done[RESULTS] = {{0, 0}};

    for (int i = 0; i < RESULTS; i++)
        results[i] = conform_host_buffer(f, SIZE);
    for (int round = 0; round < ROUNDS; round++) {
        const int slot = round % RESULTS;
        if (round >= RESULTS) {
            ASSERT_OK(weir_event_sync(done[slot], HANG_GUARD_NS));
            ASSERT_TRUE(conform_is_filled(results[slot], (unsigned char)(round - RESULTS)));
        }
        weir_buffer *buffer = conform_take(pool, producer, SIZE);
        conform_fill(producer, buffer, (unsigned char)round);
        follow(consumer, producer);
        ASSERT_OK(weir_queue_copy(consumer, results[slot], 0, buffer, 0, SIZE));
        ASSERT_OK(weir_pool_free(consumer, &buffer));
        ASSERT_OK(weir_queue_record(consumer, &done[slot]));
    }
    EXPECT_SYNC(consumer);
    EXPECT_UINT_LE(read_statistics(pool).high_bytes, (RESULTS + 1) * 10240);
}

struct worker {
    struct fixture *f;
    weir_pool *pool;
    weir_queue *queue;
    weir_queue *shared;
    unsigned number;
};

static void use_one(struct worker *worker, weir_queue *queue, unsigned round)
{
    unsigned char bytes[512];
    unsigned char back[512];
    weir_buffer *buffer = NULL;
    const size_t size = 300 + 37 * (round % 6);

    memset(bytes, (int)(worker->number * 50 + round % 50), sizeof bytes);
    EXPECT_OK(weir_pool_allocate(worker->pool, queue, size, &buffer));
    if (!buffer)
        return;
    EXPECT_OK(weir_upload(queue, buffer, 0, bytes, size));
    EXPECT_OK(weir_download(queue, back, buffer, 0, size));
    EXPECT_MEM_EQ(back, bytes, size);
    EXPECT_OK(weir_pool_free(queue, &buffer));
}

static void *use_pool(void *user)
{
    struct worker *worker = user;
    for (unsigned round = 0; round < 60; round++) {
        use_one(worker, worker->queue, round);
        use_one(worker, worker->shared, round);
        if (round % 20 == 19)
            EXPECT_OK(weir_pool_trim(worker->pool, 1024));
    }
    return NULL;
}

CONFORM(Pool, FromManyThreads)
{
    enum {
        THREADS = 4
    };
    struct worker workers[THREADS];
    own_queue shared = conform_queue(f, "shared");
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);

    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .f = f,
            .pool = pool,
            .queue = conform_queue(f, "own"),
            .shared = shared,
            .number = i,
        };
    }
    conform_run_threads(use_pool, workers, sizeof *workers, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        EXPECT_SYNC(workers[i].queue);
        weir_queue_destroy(&workers[i].queue);
    }
    const struct weir_pool_statistics statistics = read_statistics(pool);
    EXPECT_UINT_EQ(statistics.in_use_bytes, 0);
    EXPECT_UINT_EQ(statistics.allocations, THREADS * 120);
    EXPECT_SYNC(shared);
}
