// The operations that `chunks` submits, recorded by a stand-in for Weir: everything that
// must be ordered is ordered, nothing else is, and bad params are refused.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "patterns/chunks.h"
#include "tests/patterns/order_log.h"
#include "tests/support/test.h"

enum {
    ELEMENTS = 1000,
    IN_BYTES = 12,
    OUT_BYTES = 8
};

static struct weir_chunks_params params;
static weir_chunks *chunks;
static unsigned failing_kernel; // from 1
static unsigned kernels;

static weir_status kernel(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    struct order_range none = {NULL, 0, 0};
    (void)user;
    if (++kernels == failing_kernel)
        return WEIR_ERROR_IO;
    return order_kernel(queue,
                        params.in_bytes ? (struct order_range){params.in.buffer, chunk->in_offset,
                                                               chunk->in_size}
                                        : none,
                        params.out_bytes ? (struct order_range){params.out.buffer,
                                                                chunk->out_offset, chunk->out_size}
                                         : none);
}

static void begin(void)
{
    kernels = failing_kernel = 0;
    params = (struct weir_chunks_params){
        .struct_size = sizeof params,
        .device = order_begin(),
        .label = "job",
        .element_count = ELEMENTS,
        .in_bytes = IN_BYTES,
        .out_bytes = OUT_BYTES,
        .kernel = kernel,
    };
    params.src.buffer = order_buffer(1 << 20, WEIR_PLACE_HOST);
    params.in.buffer = order_buffer(1 << 20, WEIR_PLACE_DEVICE);
    params.out.buffer = order_buffer(1 << 20, WEIR_PLACE_DEVICE);
    params.dst.buffer = order_buffer(1 << 20, WEIR_PLACE_HOST);
    params.src.offset = 4;
    params.in.offset = 128;
    params.out.offset = 256;
    params.dst.offset = 12;
}

static void end(void)
{
    weir_chunks_destroy(&chunks);
    EXPECT_NULL(chunks);
    EXPECT_UINT_EQ(order_queue_count(), 0);
}

static struct weir_event run(void)
{
    struct weir_event done;
    EXPECT_INT_EQ(weir_chunks_run(chunks, NULL, 0, &done), WEIR_OK);
    return done;
}

// --- order ---

// Layouts of a job: separate buffers, in place on the device, on the host, on both,
// upload only, download only.
enum {
    SHAPES = 6
};

static void shape(unsigned kind)
{
    if (kind == 1 || kind == 3) {
        params.out = params.in;
        params.out_bytes = params.in_bytes;
    }
    if (kind == 2 || kind == 3) {
        params.dst = params.src;
        params.out_bytes = params.in_bytes;
    }
    if (kind == 4)
        params.out_bytes = 0;
    if (kind == 5)
        params.in_bytes = 0;
}

static void check_runs(void)
{
    char race[200];
    struct weir_event done;

    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    for (unsigned i = 0; i < 3; i++) {
        done = run();
        EXPECT_TRUE(order_is_behind_all(done));
        EXPECT_UINT_EQ(order_late_flushes(), 0);
    }
    EXPECT_FALSE(order_has_race(race, sizeof race));
    EXPECT_STR_EQ(race, "none");
    EXPECT_UINT_EQ(order_host_waits(), 0);
    end();
}

WEIR_TEST(ChunksRules, EveryRunIsOrdered)
{
    char note[100];

    for (unsigned kind = 0; kind < SHAPES; kind++) {
        for (int order = WEIR_CHUNKS_ORDER_AUTO; order <= WEIR_CHUNKS_INTERLEAVED; order++) {
            for (uint32_t queues = 0; queues <= 4; queues++) {
                snprintf(note, sizeof note, "shape %u, order %d, %u queues", kind, order, queues);
                weir_test_note("%s", note);
                begin();
                shape(kind);
                params.order = (weir_chunks_order)order;
                params.queue_count = queues;
                params.chunk_count = 7;
                check_runs();
            }
        }
    }
    weir_test_note(NULL);
}

// The checker must be able to find a race: each of the waits is removed in turn.
WEIR_TEST(ChunksRules, EveryWaitIsNeeded)
{
    static const struct {
        unsigned shape;
        const char *waiter;
        const char *producer;
    } waits[] = {
        {0, "job/compute", "job/upload"},  {0, "job/download", "job/compute"},
        {0, "job/upload", "job/compute"},  {0, "job/compute", "job/download"},
        {1, "job/upload", "job/download"}, {2, "job/upload", "job/download"},
        {4, "job/upload", "job/compute"},  {5, "job/compute", "job/download"},
    };
    char race[200];

    for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
        weir_test_note("shape %u, '%s' does not wait for '%s'", waits[i].shape, waits[i].waiter,
                       waits[i].producer);
        begin();
        shape(waits[i].shape);
        order_ignore_wait(waits[i].waiter, waits[i].producer);
        ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
        run();
        run();
        EXPECT_TRUE(order_has_race(race, sizeof race));
        end();
    }
    weir_test_note(NULL);
    begin();
    params.queue_count = 2;
    params.chunk_count = 4;
    order_ignore_wait("job/1", "job/0");
    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    EXPECT_FALSE(order_is_behind_all(run()));
    end();
}

// Other work on `src` before the run, and on `dst` after it.
WEIR_TEST(ChunksRules, ARunWaitsForTheGivenEvents)
{
    char race[200];

    for (uint32_t queues = 0; queues <= 3; queues++) {
        for (unsigned told = 0; told <= 2; told++) {
            weir_queue *other[2];
            struct weir_event after[2];
            begin();
            params.queue_count = queues;
            params.chunk_count = 5;
            ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
            for (unsigned i = 0; i < 2; i++) {
                struct order_range range = {i == 0 ? params.src.buffer : params.dst.buffer, 0,
                                            1 << 20};
                struct order_range none = {NULL, 0, 0};
                WEIR_IGNORE(weir_queue_create(params.device,
                                              &(struct weir_queue_params){.label = "other"},
                                              &other[i]));
                order_kernel(other[i], i == 0 ? none : range, i == 0 ? range : none);
                WEIR_IGNORE(weir_queue_record(other[i], &after[i]));
            }
            struct weir_event done;
            EXPECT_INT_EQ(weir_chunks_run(chunks, after, told, &done), WEIR_OK);
            EXPECT_TRUE(order_has_race(race, sizeof race) == (told < 2));
            weir_queue_destroy(&other[0]);
            weir_queue_destroy(&other[1]);
            end();
        }
    }
}

WEIR_TEST(ChunksRules, OrdersAreAsNamed)
{
    static const struct {
        weir_chunks_order order;
        const char *text;
    } orders[] = {
        {WEIR_CHUNKS_DEPTH_FIRST, "ukdukdukdukd"},
        {WEIR_CHUNKS_BREADTH_FIRST, "uuuukkkkdddd"},
        {WEIR_CHUNKS_INTERLEAVED, "ukudkudkudkd"},
        {WEIR_CHUNKS_ORDER_AUTO, "ukudkudkudkd"},
    };

    for (unsigned i = 0; i < sizeof orders / sizeof *orders; i++) {
        begin();
        params.order = orders[i].order;
        params.chunk_count = 4;
        ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
        run();
        EXPECT_STR_EQ(order_text(), orders[i].text);
        end();
    }
}

// --- overlap ---

// Four chunks, all parts of one unit: the published figures of one and of two copy
// engines that take work in order of submission.
WEIR_TEST(ChunksRules, OrdersOverlapAsPublished)
{
    static const struct {
        weir_chunks_order order;
        unsigned one_engine;
    } orders[] = {
        {WEIR_CHUNKS_DEPTH_FIRST, 12},
        {WEIR_CHUNKS_BREADTH_FIRST, 8},
        {WEIR_CHUNKS_INTERLEAVED, 8},
    };

    for (unsigned i = 0; i < 2 * sizeof orders / sizeof *orders; i++) {
        begin();
        params.order = orders[i / 2].order;
        params.layout = i % 2 ? WEIR_CHUNKS_BY_CHUNK : WEIR_CHUNKS_BY_ENGINE;
        params.chunk_count = 4;
        ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
        run();
        EXPECT_UINT_EQ(order_makespan(2), 6);
        EXPECT_UINT_EQ(order_makespan(1), orders[i / 2].one_engine);
        end();
    }
}

// Two runs leave no engine idle between them, unless the second reads what the first
// writes last.
WEIR_TEST(ChunksRules, RunsOverlap)
{
    begin();
    params.chunk_count = 16;
    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    run();
    EXPECT_UINT_EQ(order_makespan(2), 18);
    run();
    EXPECT_UINT_EQ(order_makespan(2), 34);
    end();
}

// --- sizes ---

static void check_cover(size_t expected_chunks)
{
    struct weir_chunks_plan plan;
    struct weir_chunk chunk;
    size_t at = 0, least = SIZE_MAX, most = 0;
    size_t alignment = order_limits()->argument_alignment_bytes;

    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    weir_chunks_get_plan(chunks, &plan);
    ASSERT_SIZE_EQ(plan.chunk_count, expected_chunks);
    for (uint32_t i = 0; i < plan.chunk_count; i++) {
        ASSERT_INT_EQ(weir_chunks_get_chunk(chunks, i, &chunk), WEIR_OK);
        EXPECT_UINT_EQ(chunk.index, i);
        EXPECT_SIZE_EQ(chunk.first, at);
        EXPECT_SIZE_GT(chunk.count, 0);
        EXPECT_SIZE_EQ(chunk.in_offset, params.in.offset + at * params.in_bytes);
        EXPECT_SIZE_EQ(chunk.in_size, chunk.count * params.in_bytes);
        EXPECT_SIZE_EQ(chunk.out_offset, params.out.offset + at * params.out_bytes);
        EXPECT_SIZE_EQ(chunk.out_size, chunk.count * params.out_bytes);
        EXPECT_SIZE_EQ(chunk.in_offset % alignment, 0);
        EXPECT_SIZE_EQ(chunk.out_offset % alignment, 0);
        if (params.granularity > 0)
            EXPECT_SIZE_EQ(at % params.granularity, 0);
        if (i + 1 < plan.chunk_count) {
            least = chunk.count < least ? chunk.count : least;
            most = chunk.count > most ? chunk.count : most;
        }
        at += chunk.count;
    }
    EXPECT_SIZE_EQ(at, params.element_count);
    if (plan.chunk_count > 1) {
        EXPECT_SIZE_LE(most - least, plan.unit);
        EXPECT_SIZE_LE(chunk.count, most);
    }
    EXPECT_INT_EQ(weir_chunks_get_chunk(chunks, plan.chunk_count, &chunk), WEIR_ERROR_INVALID);
    end();
}

static size_t at_most(size_t chunk_count, size_t unit)
{
    size_t units = (params.element_count + unit - 1) / unit;
    return chunk_count < units ? chunk_count : units;
}

WEIR_TEST(ChunksRules, ChunksCoverEverythingOnce)
{
    static const size_t counts[] = {0, 1, 31, 32, 33, 999, 1000, 1024, 4096};

    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint32_t asked = 1; asked <= 40; asked += 3) {
            weir_test_note("%zu elements in %u chunks", counts[i], asked);
            begin();
            params.element_count = counts[i];
            params.chunk_count = asked;
            // 32 elements of 12 bytes are 3 times 128 bytes, of 8 bytes twice.
            check_cover(at_most(asked, 32));
            begin();
            params.element_count = counts[i];
            params.chunk_count = asked;
            params.granularity = 24;
            check_cover(at_most(asked, 96));
            begin();
            params.element_count = counts[i];
            params.chunk_count = asked;
            params.in_bytes = 1;
            params.out_bytes = 100;
            check_cover(at_most(asked, 128));
        }
    }
    weir_test_note(NULL);
}

WEIR_TEST(ChunksRules, NoElementsOnlyOrder)
{
    for (uint32_t queues = 0; queues <= 2; queues++) {
        begin();
        params.element_count = 0;
        params.queue_count = queues;
        ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
        weir_queue *other;
        struct weir_event after, done;
        WEIR_IGNORE(weir_queue_create(params.device, &(struct weir_queue_params){.label = "other"},
                                      &other));
        order_kernel(other, (struct order_range){NULL, 0, 0}, (struct order_range){NULL, 0, 0});
        WEIR_IGNORE(weir_queue_record(other, &after));
        EXPECT_INT_EQ(weir_chunks_run(chunks, &after, 1, &done), WEIR_OK);
        EXPECT_TRUE(order_is_behind_all(done));
        EXPECT_STR_EQ(order_text(), "k");
        EXPECT_UINT_EQ(kernels, 0);
        weir_queue_destroy(&other);
        end();
    }
}

// --- growing ---

enum {
    LARGE = 1 << 30 // bytes
};

// A job whose buffers are as large as it needs.
static void begin_large(size_t elements, size_t in_bytes, size_t out_bytes)
{
    begin();
    params.element_count = elements;
    params.in_bytes = in_bytes;
    params.out_bytes = out_bytes;
    params.src.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_HOST);
    params.in.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_DEVICE);
    params.out.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_DEVICE);
    params.dst.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_HOST);
}

// In the order of growing each chunk is at most a twentieth larger than the one before, and
// a unit, and at most a quarter smaller; only the last two may be. All elements are in one.
static void check_growing(bool reversed)
{
    struct weir_chunks_plan plan;
    struct weir_chunk chunk, before = {.count = 0};
    size_t at = 0;

    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    weir_chunks_get_plan(chunks, &plan);
    ASSERT_UINT_GT(plan.chunk_count, 2);
    EXPECT_TRUE(plan.chunk_count <= 256);
    const uint32_t first = reversed ? 2 : 0;
    for (uint32_t i = 0; i < plan.chunk_count; i++) {
        ASSERT_INT_EQ(weir_chunks_get_chunk(chunks, i, &chunk), WEIR_OK);
        EXPECT_SIZE_EQ(chunk.first, at);
        at += chunk.count;
        EXPECT_SIZE_LE(chunk.count, plan.most_count);
        const size_t small = reversed ? chunk.count : before.count;
        const size_t large = reversed ? before.count : chunk.count;
        if (i > first && i < first + plan.chunk_count - 3) {
            EXPECT_SIZE_LE(small - small / 4, large + 2 * plan.unit);
            EXPECT_SIZE_LE(large, small + small / 20 + 2 * plan.unit);
        }
        before = chunk;
    }
    EXPECT_SIZE_EQ(at, params.element_count);
    end();
}

WEIR_TEST(ChunksRules, ChunksGrow)
{
    static const size_t odd[] = {0, 1, 127, 128, 4097};

    for (size_t bytes = 32 << 20; bytes <= (size_t)1 << 36; bytes *= 2) {
        for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
            weir_test_note("%zu bytes and %zu", bytes, odd[i]);
            begin_large(bytes + odd[i], 1, 1);
            check_growing(false);
            begin_large(bytes / 8 + odd[i], 4, 8);
            check_growing(false);
            begin_large(bytes / 8 + odd[i], 0, 8);
            check_growing(false);
            begin_large(bytes / 8 + odd[i], 8, 4);
            check_growing(true);
            begin_large(bytes / 8 + odd[i], 8, 0);
            check_growing(true);
        }
    }
    weir_test_note(NULL);
}

// Chunks of at least a unit, however much that is.
WEIR_TEST(ChunksRules, UnitsThatAreLargerThanAChunk)
{
    static const struct {
        size_t granularity, chunks;
    } units[] = {{1 << 22, 64}, {1 << 26, 16}, {LARGE, 1}, {(size_t)1 << 62, 1}};
    struct weir_chunks_plan plan;
    struct weir_chunk chunk = {.count = 0};

    for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
        for (unsigned way = 0; way < 2; way++) {
            begin_large(LARGE, 1 + way, 1);
            params.granularity = units[i].granularity;
            ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
            weir_chunks_get_plan(chunks, &plan);
            if (i > 0)
                EXPECT_SIZE_EQ(plan.chunk_count, units[i].chunks);
            for (uint32_t k = 0; k < plan.chunk_count; k++) {
                EXPECT_INT_EQ(weir_chunks_get_chunk(chunks, k, &chunk), WEIR_OK);
                EXPECT_SIZE_EQ(chunk.first % units[i].granularity, 0);
            }
            EXPECT_SIZE_EQ(chunk.first + chunk.count, LARGE);
            end();
        }
}

// Chunks of growing sizes are in order from run to run, too.
WEIR_TEST(ChunksRules, GrowingRunsAreOrdered)
{
    for (unsigned kind = 0; kind < SHAPES; kind++) {
        weir_test_note("shape %u", kind);
        begin_large((size_t)256 << 20, 1, 1);
        shape(kind);
        check_runs();
        EXPECT_STR_EQ(order_region(), "39 chunks of at most 8.00 MiB");
    }
    weir_test_note(NULL);
}

// --- the number of chunks and queues ---

static struct weir_chunks_plan plan_of(size_t bytes)
{
    struct weir_chunks_plan plan;
    memset(&plan, 0, sizeof plan);
    params.element_count = bytes;
    params.in_bytes = params.out_bytes = 1;
    params.src.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_HOST);
    params.in.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_DEVICE);
    params.out.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_DEVICE);
    params.dst.buffer = order_buffer(SIZE_MAX, WEIR_PLACE_HOST);
    if (weir_chunks_create(&params, &chunks) == WEIR_OK)
        weir_chunks_get_plan(chunks, &plan);
    weir_chunks_destroy(&chunks);
    return plan;
}

WEIR_TEST(ChunksRules, ChoosesByTheDevice)
{
    // Two copy engines; the chunks grow to a 64th of the job.
    begin();
    struct weir_chunks_plan plan = plan_of((size_t)1 << 30);
    EXPECT_INT_EQ(plan.layout, WEIR_CHUNKS_BY_ENGINE);
    EXPECT_INT_EQ(plan.order, WEIR_CHUNKS_INTERLEAVED);
    EXPECT_UINT_EQ(plan.queue_count, 3);
    EXPECT_UINT_EQ(plan.chunk_count, 83);
    EXPECT_SIZE_EQ(plan.first_count, (size_t)4 << 20);
    EXPECT_SIZE_EQ(plan.most_count, (size_t)16 << 20);
    begin();
    plan = plan_of((size_t)16 << 20);
    EXPECT_UINT_EQ(plan.chunk_count, 8);
    EXPECT_SIZE_EQ(plan.first_count, (size_t)2 << 20);
    EXPECT_SIZE_EQ(plan.most_count, (size_t)2 << 20);
    begin();
    EXPECT_UINT_EQ(plan_of(1000).chunk_count, 1);
    begin();
    EXPECT_UINT_EQ(plan_of((size_t)1 << 44).chunk_count, 256);
    begin();
    params.layout = WEIR_CHUNKS_BY_CHUNK;
    plan = plan_of((size_t)1 << 44);
    EXPECT_UINT_EQ(plan.chunk_count, 256);
    EXPECT_SIZE_EQ(plan.first_count, plan.most_count);

    // One engine, and none reported: the same.
    begin();
    order_limits()->copy_engines_to_host = 0;
    EXPECT_INT_EQ(plan_of((size_t)1 << 30).layout, WEIR_CHUNKS_BY_ENGINE);
    begin();
    order_limits()->copy_engines_to_host = order_limits()->copy_engines_to_device = 0;
    EXPECT_INT_EQ(plan_of((size_t)1 << 30).layout, WEIR_CHUNKS_BY_ENGINE);

    // A device that is the host itself.
    begin();
    order_limits()->copy_engines_to_host = order_limits()->copy_engines_to_device = 0;
    order_limits()->unified_memory = 1;
    plan = plan_of((size_t)64 << 20);
    EXPECT_INT_EQ(plan.layout, WEIR_CHUNKS_BY_CHUNK);
    EXPECT_INT_EQ(plan.order, WEIR_CHUNKS_DEPTH_FIRST);
    EXPECT_UINT_EQ(plan.queue_count, 2);
    EXPECT_UINT_EQ(plan.chunk_count, 64);
    EXPECT_UINT_EQ(plan_of(1000).queue_count, 1);
}

WEIR_TEST(ChunksRules, WhatIsAskedForIsDone)
{
    begin();
    params.queue_count = 5;
    EXPECT_UINT_EQ(plan_of((size_t)1 << 30).queue_count, 5);
    begin();
    params.queue_count = 5;
    params.chunk_count = 3;
    EXPECT_UINT_EQ(plan_of((size_t)1 << 30).queue_count, 3);
    begin();
    params.layout = WEIR_CHUNKS_BY_CHUNK;
    EXPECT_UINT_EQ(plan_of((size_t)1 << 30).queue_count, 8);
    begin();
    params.layout = WEIR_CHUNKS_BY_ENGINE;
    order_limits()->unified_memory = 1;
    order_limits()->copy_engines_to_host = order_limits()->copy_engines_to_device = 0;
    EXPECT_INT_EQ(plan_of((size_t)1 << 30).layout, WEIR_CHUNKS_BY_ENGINE);
}

// --- failures ---

WEIR_TEST(ChunksRules, AFailedSubmissionBreaksTheJob)
{
    struct weir_event done;

    // Every submission of the second run fails once in turn.
    for (unsigned nth = 1; nth < 200; nth++) {
        weir_test_note("submission %u", nth);
        begin();
        params.chunk_count = 4;
        ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
        run();
        order_break(nth);
        if (weir_chunks_run(chunks, NULL, 0, &done) == WEIR_OK) {
            EXPECT_UINT_GT(nth, 30);
            end();
            break;
        }
        EXPECT_UINT_EQ(done.sequence, 0);
        EXPECT_STR_EQ(weir_last_error()->message, "the queue broke");
        weir_error_set(NULL);
        unsigned before = kernels;
        EXPECT_INT_EQ(weir_chunks_run(chunks, NULL, 0, &done), WEIR_ERROR_IO);
        EXPECT_STR_EQ(weir_last_error()->message, "the queue broke");
        EXPECT_UINT_EQ(kernels, before);
        ASSERT_INT_EQ(weir_chunks_recover(chunks), WEIR_OK);
        EXPECT_UINT_EQ(order_host_waits(), 3);
        // The host has waited, so earlier events do not matter.
        unsigned length = (unsigned)strlen(order_text());
        run();
        EXPECT_STR_EQ(order_text() + length, "ukudkudkudkd");
        end();
    }
    weir_test_note(NULL);
}

WEIR_TEST(ChunksRules, AFailedKernelBreaksTheJob)
{
    struct weir_event done;

    begin();
    params.chunk_count = 4;
    failing_kernel = 3;
    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    EXPECT_INT_EQ(weir_chunks_run(chunks, NULL, 0, &done), WEIR_ERROR_IO);
    EXPECT_CONTAINS(weir_last_error()->message, "kernel callback returned WEIR_ERROR_IO");
    EXPECT_STR_EQ(weir_last_error()->object, "job");
    EXPECT_INT_EQ(weir_chunks_run(chunks, NULL, 0, &done), WEIR_ERROR_IO);
    EXPECT_UINT_EQ(kernels, 3);
    ASSERT_INT_EQ(weir_chunks_recover(chunks), WEIR_OK);
    run();
    end();
}

WEIR_TEST(ChunksRules, AZeroedEventRunsNothing)
{
    struct weir_event zero = {0, 0};
    struct weir_event done;

    begin();
    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    EXPECT_INT_EQ(weir_chunks_run(chunks, &zero, 1, &done), WEIR_ERROR_INVALID);
    EXPECT_STR_EQ(order_text(), "");
    EXPECT_INT_EQ(weir_chunks_run(NULL, NULL, 0, &done), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error()->remedy, "create it first");
    EXPECT_INT_EQ(weir_chunks_recover(NULL), WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error()->remedy, "create it first");
    run();
    end();
    weir_chunks_destroy(NULL);
    weir_chunks_destroy(&chunks);
}

WEIR_TEST(ChunksRules, AQueueThatCannotBeMadeLeavesNothing)
{
    for (unsigned nth = 1; nth <= 3; nth++) {
        begin();
        order_refuse_queue(nth);
        EXPECT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_ERROR_IO);
        EXPECT_STR_EQ(weir_last_error()->message, "no more queues");
        end();
    }
}

// --- bad params ---

static void refused(const char *part)
{
    EXPECT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_ERROR_INVALID);
    EXPECT_NULL(chunks);
    EXPECT_CONTAINS(weir_last_error()->message, part);
    EXPECT_UINT_EQ(order_queue_count(), 0);
    begin();
}

WEIR_TEST(ChunksRules, BadParamsAreRefused)
{
    begin();
    EXPECT_INT_EQ(weir_chunks_create(NULL, &chunks), WEIR_ERROR_INVALID);
    params.struct_size = 7;
    refused("struct_size is 7");
    params.device = NULL;
    refused("params->device is NULL");
    EXPECT_STR_EQ(weir_last_error()->remedy, "set it");
    params.kernel = NULL;
    refused("params->kernel is NULL");
    params.in_bytes = params.out_bytes = 0;
    refused("in_bytes and out_bytes are both 0");
    params.order = (weir_chunks_order)4;
    refused("order 4 in layout");
    params.layout = (weir_chunks_layout)-1;
    refused("layout -1");
    params.chunk_count = 5000;
    refused("5000 chunks");
    params.queue_count = 65;
    refused("65 queues");
    params.layout = WEIR_CHUNKS_BY_ENGINE;
    params.queue_count = 2;
    refused("2 queues by engine");
    params.granularity = SIZE_MAX - 1;
    refused("granularity");
}

WEIR_TEST(ChunksRules, BadPlacesAreRefused)
{
    begin();
    params.dst.buffer = NULL;
    refused("params->dst has no buffer");
    params.in.buffer = params.src.buffer;
    refused("params->in is a HOST buffer");
    params.src.buffer = params.out.buffer;
    refused("params->src is a DEVICE buffer");
    params.out.offset = 64;
    refused("multiple of the device's argument alignment, 128");
    params.src.offset = (1 << 20) - ELEMENTS * IN_BYTES + 1;
    refused("params->src of 1048576 bytes");
    params.src.offset = SIZE_MAX;
    refused("params->src");
    params.element_count = SIZE_MAX / 4;
    refused("params->src");
    params.out = params.in;
    refused("params->in and params->out overlap");
    params.out = params.in;
    params.out_bytes = IN_BYTES;
    params.out.offset += 128;
    refused("params->in and params->out overlap");
    params.dst = params.src;
    params.dst.offset += ELEMENTS * IN_BYTES - 1;
    refused("params->src and params->dst overlap");

    // Just apart.
    params.dst = params.src;
    params.dst.offset += ELEMENTS * IN_BYTES;
    ASSERT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_OK);
    end();
}
