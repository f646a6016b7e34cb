// The loader on a real chain. A consumer copies every batch that it gets to a log in
// pinned memory, through its own queue; at the end the log has the contents of the
// batches at the time when the consumer's work ran.
#include "patterns/loader.h"

#include "tests/patterns/rig.h"

enum {
    WORDS = 1000, // of a full batch
    BATCHES_MAX = 600,
    STEP = 1 << 20 // between the words of two batches
};

struct fixture {
    weir_loader *loader;
    weir_queue *queue;
    weir_buffer *log;
    struct gate gate;
    // The source: so many batches, the last of `last_words`.
    uint64_t batches;
    size_t last_words;
    bool jitter;
    uint64_t fails[2]; // batches from 1 that fail, the first with a detail
    uint64_t too_big;  // batch from 1
    _Atomic unsigned source_calls;
    unsigned calls_after_end;
    weir_status called_back[2]; // the loader's answer to a call from its own source
};

static struct fixture fixture;

// Wrapped by the linker.
static _Atomic unsigned failing_copies;
static _Atomic unsigned failing_queries;
static struct gate *copy_gate; // each copy of the loader comes after it

WRAP(weir_status, queue_copy_at, weir_queue *queue, weir_buffer *dst, size_t dst_offset,
     weir_buffer *src, size_t src_offset, size_t size, const char *file, int line)
{
    if (failing_copies > 0 && strcmp(weir_queue_label(queue), "batches") == 0) {
        failing_copies--;
        return rig_error(WEIR_ERROR_IO, "the copy failed");
    }
    if (copy_gate && strcmp(weir_queue_label(queue), "batches") == 0)
        WEIR_IGNORE(weir_queue_host_call(queue, gate_pass, copy_gate));
    return __real_weir_queue_copy_at(queue, dst, dst_offset, src, src_offset, size, file, line);
}

WRAP(weir_status, event_query_at, struct weir_event event, const char *file, int line)
{
    if (failing_queries == 0)
        return __real_weir_event_query_at(event, file, line);
    failing_queries--;
    return rig_error(WEIR_ERROR_IO, "the copy failed later");
}

static uint32_t first_word(uint64_t index)
{
    return (uint32_t)index * STEP;
}

static size_t words_of(uint64_t index)
{
    return index + 1 == fixture.batches ? fixture.last_words : WORDS;
}

static weir_status source(void *user, uint64_t index, void *memory, size_t capacity,
                          size_t *out_size)
{
    fixture.source_calls++;
    if (fixture.jitter)
        rig_dawdle((void *)(uintptr_t)index);
    fixture.calls_after_end += index > fixture.batches;
    if (index >= fixture.batches)
        return WEIR_OK;
    if (index + 1 == fixture.fails[0])
        return rig_error(WEIR_ERROR_IO, "no such file");
    if (index + 1 == fixture.fails[1])
        return WEIR_ERROR_IO;
    *out_size = words_of(index) * 4;
    if (index + 1 == fixture.too_big)
        *out_size = capacity + 1;
    for (size_t i = 0; i < words_of(index); i++)
        ((uint32_t *)memory)[i] = first_word(index) + (uint32_t)i;
    return WEIR_OK;
}

static void open_rig(uint64_t batches)
{
    memset(&fixture, 0, sizeof fixture);
    fixture.batches = batches;
    fixture.last_words = WORDS;
    fixture.jitter = true;
    ASSERT_OK(rig_open(NULL));
    fixture.queue = test_queue(rig.device, "consumer");
    fixture.log = test_buffer(rig.device, "log", (batches + 1) * WORDS * 4, WEIR_PLACE_HOST);
}

static struct weir_loader_params params_for(uint32_t slots)
{
    return (struct weir_loader_params){
        .struct_size = sizeof(struct weir_loader_params),
        .device = rig.device,
        .label = "batches",
        .batch_bytes = WORDS * 4,
        .slot_count = slots,
        .source = source,
    };
}

static void make_loader(uint32_t slots)
{
    const struct weir_loader_params params = params_for(slots);
    ASSERT_OK(weir_loader_create(&params, &fixture.loader));
}

static void open_loader(uint64_t batches, uint32_t slots)
{
    open_rig(batches);
    make_loader(slots);
}

static void close_loader(void)
{
    ASSERT_OK(weir_loader_destroy(&fixture.loader));
    EXPECT_NULL(fixture.loader);
    EXPECT_UINT_EQ(fixture.calls_after_end, 0);
    weir_buffer_destroy(&fixture.log);
    weir_queue_destroy(&fixture.queue);
    rig_close();
}

// A test of a loader that is open, and one with what it needs.
#define LOADER_TEST(name, batches, slots) \
    WEIR_TEST_BETWEEN(Loader, name, open_loader(batches, slots), close_loader())
#define SOURCE_TEST(name, batches) \
    WEIR_TEST_BETWEEN(Loader, name, open_rig(batches), close_loader())

static weir_status next(struct weir_batch *out_batch)
{
    return weir_loader_next(fixture.loader, fixture.queue, out_batch);
}

static weir_status release(struct weir_batch *batch)
{
    return weir_loader_release(fixture.loader, batch, fixture.queue);
}

static weir_status log_batch(weir_queue *queue, const struct weir_batch *batch)
{
    return weir_queue_copy(queue, fixture.log, batch->index * WORDS * 4, batch->buffer, 0,
                           batch->size);
}

static void sync(void)
{
    ASSERT_OK(weir_queue_sync(fixture.queue, WEIR_FOREVER));
}

// That the log has these batches.
static void expect_logged(uint64_t first, uint64_t end)
{
    for (uint64_t index = first; index < end; index++) {
        weir_test_note("batch %u", (unsigned)index);
        EXPECT_UINT_EQ(rig_wrong_words(fixture.log, index * WORDS, words_of(index),
                                       first_word(index)),
                       0);
    }
    weir_test_note(NULL);
}

// That there is no next batch, for this reason.
static void expect_no_batch(weir_status status, const char *message)
{
    struct weir_batch batch;
    EXPECT_INT_EQ(next(&batch), status);
    EXPECT_CONTAINS(weir_last_error()->message, message);
    EXPECT_NULL(batch.buffer);
}

// Takes the next batch, logs and releases it; nothing waits.
static void take(uint64_t index)
{
    struct weir_batch batch;
    ASSERT_OK(next(&batch));
    EXPECT_UINT_EQ(batch.index, index);
    ASSERT_OK(log_batch(fixture.queue, &batch));
    ASSERT_OK(release(&batch));
}

// Takes all remaining batches, logs each late, and checks them.
static void take_all(uint64_t from)
{
    struct weir_batch batch;

    for (uint64_t index = from; index < fixture.batches; index++) {
        weir_test_note("batch %u", (unsigned)index);
        ASSERT_OK(next(&batch));
        ASSERT_NOT_NULL(batch.buffer);
        EXPECT_UINT_EQ(batch.index, index);
        EXPECT_UINT_EQ(batch.size, words_of(index) * 4);
        ASSERT_OK(weir_queue_host_call(fixture.queue, rig_dawdle, (void *)(uintptr_t)(index + 1)));
        ASSERT_OK(log_batch(fixture.queue, &batch));
        ASSERT_OK(release(&batch));
        EXPECT_NULL(batch.buffer);
    }
    for (unsigned i = 0; i < 3; i++) {
        ASSERT_OK(next(&batch));
        EXPECT_NULL(batch.buffer);
        EXPECT_UINT_EQ(batch.size, 0);
    }
    sync();
    expect_logged(from, fixture.batches);
}

// --- data and order ---

// Six batches on four slots are six batches, and so on; the last one is smaller.
WEIR_TEST(Loader, EveryBatchComesOnce)
{
    static const uint64_t batches[] = {0, 1, 2, 3, 6, 8, 25};

    // 0: the library chooses.
    for (uint32_t slots = 0; slots <= 5; slots += slots ? 1 : 2) {
        for (unsigned i = 0; i < sizeof batches / sizeof *batches; i++) {
            open_rig(batches[i]);
            fixture.last_words = 7;
            make_loader(slots);
            take_all(0);
            struct weir_loader_statistics figures;
            weir_loader_get_statistics(fixture.loader, &figures);
            EXPECT_UINT_EQ(figures.delivered, batches[i]);
            EXPECT_UINT_EQ(figures.bytes, batches[i] ? (batches[i] - 1) * WORDS * 4 + 7 * 4 : 0);
            EXPECT_UINT_EQ(figures.failed, 0);
            EXPECT_UINT_EQ(figures.held_max, batches[i] > 0);
            close_loader();
        }
    }
}

static void await_source_calls(unsigned count)
{
    while (fixture.source_calls < count)
        rig_sleep_ns(1000000);
    rig_sleep_ns(10000000);
}

// The copies of two batches are held, so there is no pinned memory for a third.
SOURCE_TEST(PinnedMemoryIsNotOverwrittenTooEarly, 6)
{
    copy_gate = &fixture.gate;
    make_loader(2);
    take(0), take(1);
    await_source_calls(2);
    EXPECT_UINT_EQ(fixture.source_calls, 2);
    // Nor has the consumer's work run: it waits for the copies.
    EXPECT_INT_EQ(weir_queue_sync(fixture.queue, 0), WEIR_TIMEOUT);
    gate_open(&fixture.gate);
    take_all(2);
    expect_logged(0, 2);
    ASSERT_OK(weir_loader_destroy(&fixture.loader));
    copy_gate = NULL;
}

// Batches are released long before the consumer's work on them has run.
WEIR_TEST(Loader, ABatchInUseIsNotOverwritten)
{
    for (uint32_t slots = 2; slots <= 4; slots++) {
        open_loader(3 * slots, slots);
        ASSERT_OK(weir_queue_host_call(fixture.queue, gate_pass, &fixture.gate));
        for (uint32_t i = 0; i < slots; i++)
            take(i);
        // The source reads ahead by one batch more than there are slots.
        await_source_calls(slots + 1);
        EXPECT_UINT_EQ(fixture.source_calls, slots + 1);
        gate_open(&fixture.gate);
        take_all(slots);
        expect_logged(0, slots);
        close_loader();
    }
}

// The consumer's queue waits for the copy: nothing else orders the two.
LOADER_TEST(AConsumerWithoutAQueueWaitsForTheEvent, 12, 3)
{
    struct weir_batch batch;
    struct weir_event used;

    for (uint64_t index = 0; index < 12; index++) {
        ASSERT_OK(weir_loader_next(fixture.loader, NULL, &batch));
        EXPECT_UINT_EQ(batch.index, index);
        ASSERT_OK(weir_queue_wait(fixture.queue, batch.ready));
        ASSERT_OK(log_batch(fixture.queue, &batch));
        ASSERT_OK(weir_queue_record(fixture.queue, &used));
        ASSERT_OK(weir_loader_release_after(fixture.loader, &batch, used));
    }
    sync();
    expect_logged(0, 12);
}

// --- holding ---

LOADER_TEST(OneBatchHeldForLongBlocksNoOther, 20, 3)
{
    struct weir_batch held;

    ASSERT_OK(next(&held));
    take_all(1);
    ASSERT_OK(log_batch(fixture.queue, &held));
    ASSERT_OK(release(&held));
    sync();
    expect_logged(0, 1);
}

LOADER_TEST(HoldingAllSlotsIsRefused, 4, 2)
{
    struct weir_batch batches[2], more;

    for (unsigned i = 0; i < 2; i++)
        ASSERT_OK(next(&batches[i]));
    expect_no_batch(WEIR_ERROR_INVALID, "all 2 slots are held");
    ASSERT_OK(weir_loader_release(fixture.loader, &batches[1], NULL));
    ASSERT_OK(next(&more));
    EXPECT_UINT_EQ(more.index, 2);
    ASSERT_OK(weir_loader_release(fixture.loader, &more, NULL));
    ASSERT_OK(next(&more));
    EXPECT_UINT_EQ(more.index, 3);
    // The end is reported all the same.
    expect_no_batch(WEIR_OK, "");
}

static void expect_not_released(struct weir_batch batch)
{
    EXPECT_FAILURE(weir_loader_release(fixture.loader, &batch, NULL), WEIR_ERROR_INVALID,
                   "not held");
}

LOADER_TEST(OnlyHeldBatchesAreReleased, 4, 2)
{
    struct weir_batch batch, copy, made_up;
    const struct weir_event zero = {0, 0};

    ASSERT_OK(next(&batch));
    copy = made_up = batch;
    EXPECT_INT_EQ(weir_loader_release_after(fixture.loader, &batch, zero), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_loader_release(fixture.loader, NULL, NULL), WEIR_ERROR_INVALID);
    made_up.slot = 9;
    expect_not_released(made_up);
    expect_not_released((struct weir_batch){.index = 0});
    ASSERT_OK(weir_loader_release(fixture.loader, &batch, NULL));
    expect_not_released(copy);
    // Nor if another batch is held in its slot.
    do {
        ASSERT_OK(next(&batch));
        ASSERT_NOT_NULL(batch.buffer);
        if (batch.slot != copy.slot)
            ASSERT_OK(weir_loader_release(fixture.loader, &batch, NULL));
    } while (batch.slot != copy.slot || !batch.buffer);
    expect_not_released(copy);
    ASSERT_OK(weir_loader_release(fixture.loader, &batch, NULL));
}

// --- errors ---

WEIR_TEST(Loader, ErrorsOfTheSourceComeInOrder)
{
    static const struct {
        weir_status status;
        const char *message;
    } expected[7] = {[2] = {WEIR_ERROR_IO, "no such file"},
                     [3] = {WEIR_ERROR_IO, "the source returned"},
                     [5] = {WEIR_ERROR_INVALID, "batch 5 has 4001 bytes"}};
    for (uint32_t slots = 2; slots <= 4; slots++) {
        open_rig(7);
        fixture.fails[0] = 3;
        fixture.fails[1] = 4;
        fixture.too_big = 6;
        make_loader(slots);
        for (uint64_t index = 0; index < 7; index++) {
            if (expected[index].message)
                expect_no_batch(expected[index].status, expected[index].message);
            else
                take(index);
        }
        sync();
        for (uint64_t index = 0; index < 7; index++)
            if (!expected[index].message)
                expect_logged(index, index + 1);
        expect_no_batch(WEIR_OK, "");
        struct weir_loader_statistics figures;
        weir_loader_get_statistics(fixture.loader, &figures);
        EXPECT_UINT_EQ(figures.delivered, 4);
        EXPECT_UINT_EQ(figures.failed, 3);
        close_loader();
    }
}

// The consumer's queue fails in the middle of its work on a batch. The loader does not,
// and once the queue is recovered no batch is missing.
WEIR_TEST(Loader, AConsumersFailureIsItsOwn)
{
    struct weir_batch batch;

    for (uint32_t slots = 2; slots <= 3; slots++) {
        open_loader(9, slots);
        for (uint64_t index = 0; index < 9; index++) {
            const bool fails = index == 2 || index == 5;
            weir_status status = next(&batch);
            if (status != WEIR_OK) {
                EXPECT_INT_EQ(status, WEIR_ERROR_IO);
                EXPECT_NULL(batch.buffer);
                ASSERT_OK(weir_queue_recover(fixture.queue));
                ASSERT_OK(next(&batch));
            }
            ASSERT_UINT_EQ(batch.index, index);
            ASSERT_OK(fails ? weir_queue_host_call(fixture.queue, rig_fail_late, NULL)
                            : log_batch(fixture.queue, &batch));
            if (index == 5) {
                // Releasing after the work of a queue that is known to have failed.
                EXPECT_INT_EQ(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_ERROR_IO);
                EXPECT_INT_EQ(release(&batch), WEIR_ERROR_IO);
                EXPECT_NOT_NULL(batch.buffer);
                ASSERT_OK(weir_queue_recover(fixture.queue));
            }
            ASSERT_OK(release(&batch));
            if (index == 2) {
                EXPECT_INT_EQ(weir_queue_sync(fixture.queue, WEIR_FOREVER), WEIR_ERROR_IO);
                if (slots == 3)
                    ASSERT_OK(weir_queue_recover(fixture.queue));
            }
        }
        sync();
        expect_logged(0, 2);
        expect_logged(3, 5);
        expect_logged(6, 9);
        close_loader();
    }
}

// A copy that is refused once is repeated; if it is refused twice, the error takes the
// batch's place.
SOURCE_TEST(AFailedCopyIsOneBatchsError, 6)
{
    failing_copies = 1;
    make_loader(2);
    take(0);
    sync();
    expect_logged(0, 1);
    EXPECT_UINT_EQ(failing_copies, 0);
    ASSERT_OK(weir_loader_destroy(&fixture.loader));

    // As many as there are slots, and none of these is lost.
    failing_copies = 4;
    make_loader(2);
    for (unsigned i = 0; i < 2; i++)
        expect_no_batch(WEIR_ERROR_IO, "the copy failed");
    take_all(2);
}

LOADER_TEST(ACopyThatFailsLaterIsOneBatchsError, 6, 2)
{
    failing_queries = 2;
    for (unsigned i = 0; i < 2; i++)
        expect_no_batch(WEIR_ERROR_IO, "the copy failed later");
    take_all(2);
}

// --- ends ---

WEIR_TEST(Loader, MayEndAtAnyTime)
{
    struct weir_batch batch;

    for (unsigned round = 0; round < 30; round++) {
        open_rig(10);
        fixture.jitter = round % 2;
        make_loader(2 + round % 3);
        for (unsigned taken = 0; taken < round % 5; taken++) {
            ASSERT_OK(next(&batch));
            ASSERT_OK(log_batch(fixture.queue, &batch));
            // In some rounds the last one taken is still held.
            if (round % 4 || taken + 1 < round % 5)
                ASSERT_OK(release(&batch));
        }
        if (round % 7 == 0)
            rig_sleep_ns(2000000);
        close_loader();
    }
    EXPECT_OK(weir_loader_destroy(NULL));
    EXPECT_OK(weir_loader_destroy(&fixture.loader));
}

static weir_status calling_source(void *user, uint64_t index, void *memory, size_t capacity,
                                  size_t *out_size)
{
    struct weir_batch batch;
    *out_size = 0;
    gate_pass(&fixture.gate);
    fixture.called_back[0] = weir_loader_next(fixture.loader, NULL, &batch);
    fixture.called_back[1] = weir_loader_destroy(&fixture.loader);
    return WEIR_OK;
}

SOURCE_TEST(TheSourceMayNotWaitForItself, 1)
{
    struct weir_batch batch;

    struct weir_loader_params params = params_for(2);
    params.source = calling_source;
    ASSERT_OK(weir_loader_create(&params, &fixture.loader));
    gate_open(&fixture.gate);
    ASSERT_OK(weir_loader_next(fixture.loader, NULL, &batch));
    EXPECT_INT_EQ(fixture.called_back[0], WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(fixture.called_back[1], WEIR_ERROR_INVALID);
}

static void refused(struct weir_loader_params params, const char *part)
{
    EXPECT_INT_EQ(weir_loader_create(&params, &fixture.loader), WEIR_ERROR_INVALID);
    EXPECT_NULL(fixture.loader);
    EXPECT_CONTAINS(weir_last_error()->message, part);
}

SOURCE_TEST(BadParamsAreRefused, 1)
{
    struct weir_batch batch;
    struct weir_loader_params params;
#define REFUSED(field, value, part) \
    (params = params_for(2), params.field = (value), refused(params, part))
    EXPECT_INT_EQ(weir_loader_create(NULL, &fixture.loader), WEIR_ERROR_INVALID);
    REFUSED(struct_size, 4, "struct_size is 4");
    REFUSED(device, NULL, "params->device is NULL");
    EXPECT_STR_EQ(weir_last_error()->remedy, "set it");
    REFUSED(source, NULL, "params->source is NULL");
    REFUSED(batch_bytes, 0, "batch_bytes is 0");
    REFUSED(slot_count, 1, "slot_count is 1");
    REFUSED(slot_count, 257, "slot_count is 257");
    REFUSED(priority, 1000, "priority 1000");
#undef REFUSED
    params = params_for(2);
    params.batch_bytes = SIZE_MAX;
    EXPECT_INT_LT(weir_loader_create(&params, &fixture.loader), 0);
    EXPECT_NULL(fixture.loader);
    EXPECT_INT_EQ(weir_loader_next(NULL, NULL, &batch), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_loader_release(NULL, &batch, NULL), WEIR_ERROR_INVALID);
    EXPECT_FAILURE(weir_loader_release_after(NULL, &batch, (struct weir_event){0}),
                   WEIR_ERROR_INVALID, "create it first");
    struct weir_loader_statistics figures = {.delivered = 1};
    weir_loader_get_statistics(NULL, &figures);
    EXPECT_UINT_EQ(figures.delivered, 0);
}

// --- threads and allocations ---

struct consumer {
    pthread_t thread;
    weir_queue *queue;
    unsigned taken;
    weir_status status;
};

static void *consume(void *argument)
{
    struct consumer *consumer = argument;
    struct weir_batch batch;

    for (;;) {
        consumer->status = weir_loader_next(fixture.loader, consumer->queue, &batch);
        if (consumer->status != WEIR_OK || !batch.buffer)
            break;
        WEIR_IGNORE(
            weir_queue_host_call(consumer->queue, rig_dawdle, (void *)(uintptr_t)batch.index));
        consumer->status = log_batch(consumer->queue, &batch);
        if (consumer->status == WEIR_OK)
            consumer->status = weir_loader_release(fixture.loader, &batch, consumer->queue);
        if (consumer->status != WEIR_OK)
            break;
        consumer->taken++;
    }
    return NULL;
}

enum {
    CONSUMERS = 3,
    SHARED = 150
};

LOADER_TEST(SeveralThreadsShareTheBatches, SHARED, CONSUMERS + 1)
{
    struct consumer consumers[CONSUMERS] = {0};
    unsigned taken = 0;

    for (unsigned i = 0; i < CONSUMERS; i++) {
        consumers[i].queue = test_queue(rig.device, "one of several");
        pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]);
    }
    for (unsigned i = 0; i < CONSUMERS; i++) {
        pthread_join(consumers[i].thread, NULL);
        EXPECT_INT_EQ(consumers[i].status, WEIR_OK);
        taken += consumers[i].taken;
        ASSERT_OK(weir_queue_sync(consumers[i].queue, WEIR_FOREVER));
        weir_queue_destroy(&consumers[i].queue);
    }
    EXPECT_UINT_EQ(taken, SHARED);
    expect_logged(0, SHARED);
}

// A queue's lists grow until they are large enough for the most work that was in
// flight, which depends on the machine's load. So there must be some interval of the
// loop without allocations: with an allocation per batch there would be none.
SOURCE_TEST(TheLoopAllocatesNothing, BATCHES_MAX)
{
    enum {
        STRETCH = BATCHES_MAX / 4
    };
    struct rig_flat before = {.allocations = 0}, now = before;
    int flat = 0;

    fixture.jitter = false;
    make_loader(3);
    for (uint64_t index = 0; index < BATCHES_MAX; index++) {
        take(index);
        if ((index + 1) % STRETCH)
            continue;
        sync();
        now = rig_flat_begin();
        flat += now.allocations == before.allocations &&
                now.counters.allocations == before.counters.allocations &&
                now.counters.driver_objects == before.counters.driver_objects;
        before = now;
    }
    EXPECT_INT_GT(flat, 0);
    EXPECT_UINT_GT(now.allocations, 0);
}
