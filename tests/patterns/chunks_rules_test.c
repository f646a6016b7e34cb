// The operations that `chunks` submits, on the null backend in a chain with `check`: everything that must be ordered
// is ordered, sizes follow from the device's limits, and bad params are refused. A kernel is a note of its ranges. The
// linker puts functions of this file before the library's (BUILD).

#include <weir/check.h>

#include "patterns/chunks.h"
#include "tests/patterns/rig.h"

enum {
    ELEMENTS = 1000,
    IN_BYTES = 12,
    OUT_BYTES = 8,
    BYTES = 1 << 20, // of a buffer
};

static struct weir_chunks_params params;
static weir_chunks *chunks;
static struct weir_event done; // the end of the last run
static weir_buffer *buffers[4];
static unsigned failing_kernel; // from 1
static unsigned kernels;

// What the library is asked, and what it answers instead.
static struct {
    struct weir_limits limits;
    bool large;            // buffers have any size
    unsigned failing_call; // copies, records, waits and kernels, from 1; 0: none
    unsigned failing_queue;
    unsigned flushes, syncs;
    char text
        [64]; // u and d for a copy up and down, k for a kernel, in the order of their submission
} asked;

// Whether a submission may go on.
static bool passes(char kind)
{
    const size_t used = strlen(asked.text);
    if (asked.failing_call > 0 && --asked.failing_call == 0)
        return false;
    if (kind && used + 1 < sizeof asked.text)
        asked.text[used] = kind;
    return true;
}

WRAP(const struct weir_limits *, device_limits, const weir_device *device)
{
    return &asked.limits;
}

WRAP(size_t, buffer_size, const weir_buffer *buffer)
{
    return asked.large ? SIZE_MAX : __real_weir_buffer_size(buffer);
}

WRAP(weir_status, queue_create_at, weir_device *device, const struct weir_queue_params *queue,
     weir_queue **out_queue, const char *file, int line)
{
    *out_queue = NULL;
    if (asked.failing_queue > 0 && --asked.failing_queue == 0)
        return rig_error(WEIR_ERROR_IO, "no more queues");
    return __real_weir_queue_create_at(device, queue, out_queue, file, line);
}

WRAP(weir_status, queue_copy_at, weir_queue *queue, weir_buffer *dst, size_t dst_offset,
     weir_buffer *src, size_t src_offset, size_t size, const char *file, int line)
{
    if (!passes(weir_buffer_placement(dst) == WEIR_PLACE_HOST ? 'd' : 'u'))
        return rig_error(WEIR_ERROR_IO, "a call broke");
    return __real_weir_queue_copy_at(queue, dst, dst_offset, src, src_offset, size, file, line);
}

WRAP(weir_status, queue_record_at, weir_queue *queue, struct weir_event *out_event,
     const char *file, int line)
{
    *out_event = (struct weir_event){0, 0};
    return passes(0) ? __real_weir_queue_record_at(queue, out_event, file, line)
                     : rig_error(WEIR_ERROR_IO, "a call broke");
}

WRAP(weir_status, queue_wait_at, weir_queue *queue, struct weir_event event, const char *file,
     int line)
{
    return passes(0) ? __real_weir_queue_wait_at(queue, event, file, line)
                     : rig_error(WEIR_ERROR_IO, "a call broke");
}

WRAP(weir_status, queue_flush_at, weir_queue *queue, const char *file, int line)
{
    asked.flushes++;
    return __real_weir_queue_flush_at(queue, file, line);
}

WRAP(weir_status, queue_sync_at, weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    asked.syncs++;
    return __real_weir_queue_sync_at(queue, timeout_ns, file, line);
}

// Work that reads and writes these ranges, none of which may be empty.
static weir_status use(weir_queue *queue, weir_buffer *in, size_t in_offset, size_t in_size,
                       weir_buffer *out, size_t out_offset, size_t out_size)
{
    struct weir_note_range ranges[2];
    size_t count = 0;
    if (in_size > 0)
        ranges[count++] = (struct weir_note_range){.buffer = in,
                                                   .offset = in_offset,
                                                   .size = in_size,
                                                   .access = WEIR_ACCESS_READ};
    if (out_size > 0)
        ranges[count++] = (struct weir_note_range){.buffer = out,
                                                   .offset = out_offset,
                                                   .size = out_size,
                                                   .access = WEIR_ACCESS_WRITE};
    if (!passes('k'))
        return rig_error(WEIR_ERROR_IO, "a call broke");
    return weir_queue_note(
        queue, WEIR_PARAMS(weir_note, .name = "use", .ranges = ranges, .range_count = count), NULL);
}

static weir_status kernel(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    if (++kernels == failing_kernel)
        return WEIR_ERROR_IO;
    return use(queue, params.in.buffer, chunk->in_offset, chunk->in_size, params.out.buffer,
               chunk->out_offset, chunk->out_size);
}

// The params of a job on the buffers of the test.
static void begin(void)
{
    kernels = failing_kernel = 0;
    memset(&asked, 0, sizeof asked);
    asked.limits = (struct weir_limits){
        .argument_alignment_bytes = 128,
        .concurrent_kernels = 128,
        .copy_engines_to_device = 1,
        .copy_engines_to_host = 1,
    };
    params = (struct weir_chunks_params){
        .struct_size = sizeof params,
        .device = rig.device,
        .label = "job",
        .element_count = ELEMENTS,
        .in_bytes = IN_BYTES,
        .out_bytes = OUT_BYTES,
        .kernel = kernel,
    };
    params.src = (struct weir_chunks_place){buffers[0], 4};
    params.in = (struct weir_chunks_place){buffers[1], 128};
    params.out = (struct weir_chunks_place){buffers[2], 256};
    params.dst = (struct weir_chunks_place){buffers[3], 12};
}

static void open_job(void)
{
    ASSERT_OK(rig_open(NULL));
    begin();
    own_queue filler = test_queue(rig.device, "filler");
    for (int i = 0; i < 4; i++) {
        buffers[i] =
            test_buffer(rig.device, "data", BYTES, i % 3 ? WEIR_PLACE_DEVICE : WEIR_PLACE_HOST);
        EXPECT_OK(weir_queue_fill(filler, buffers[i], 0, BYTES, "", 1));
    }
    EXPECT_OK(weir_queue_sync(filler, WEIR_FOREVER));
    begin();
}

static void close_job(void)
{
    weir_chunks_destroy(&chunks);
    EXPECT_NULL(chunks);
    for (int i = 0; i < 4; i++)
        weir_buffer_destroy(&buffers[i]);
    rig_close();
}

#define RULE(name) WEIR_TEST_BETWEEN(ChunksRules, name, open_job(), close_job())

// Creates the job; returns its plan.
static struct weir_chunks_plan create(void)
{
    struct weir_chunks_plan plan = {.chunk_count = 0};
    EXPECT_OK(weir_chunks_create(&params, &chunks));
    if (chunks)
        weir_chunks_get_plan(chunks, &plan);
    return plan;
}

static void run(void)
{
    EXPECT_OK(weir_chunks_run(chunks, NULL, 0, &done));
}

static size_t findings(void)
{
    return weir_check_error_count(rig.runtime);
}

// --- order ---

// Layouts of a job: separate buffers, in place on the device, on the host, on both,
// upload only, download only, no elements.
enum {
    EMPTY = 6,
    SHAPES
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
    if (kind == EMPTY)
        params.element_count = 0;
}

// Work on all of the buffers after the end of the last run.
static void use_all_afterwards(void)
{
    own_queue queue = test_queue(rig.device, "after");
    EXPECT_OK(weir_queue_wait(queue, done));
    EXPECT_OK(use(queue, params.src.buffer, 0, BYTES, params.in.buffer, 0, BYTES));
    EXPECT_OK(use(queue, params.dst.buffer, 0, BYTES, params.out.buffer, 0, BYTES));
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
}

static void check_runs(void)
{
    (void)create();
    for (unsigned i = 0; i < 3; i++)
        run();
    EXPECT_UINT_EQ(asked.syncs, 0);
    EXPECT_UINT_GE(asked.flushes, 3);
    use_all_afterwards();
    EXPECT_UINT_EQ(findings(), 0);
    weir_chunks_destroy(&chunks);
}

RULE(EveryRunIsOrdered)
{
    for (unsigned kind = 0; kind < SHAPES; kind++) {
        for (int order = WEIR_CHUNKS_ORDER_AUTO; order <= WEIR_CHUNKS_INTERLEAVED; order++) {
            for (uint32_t queues = 0; queues <= 4; queues++) {
                weir_test_note("shape %u, order %d, %u queues", kind, order, queues);
                begin();
                shape(kind);
                params.order = (weir_chunks_order)order;
                params.queue_count = queues;
                params.chunk_count = 7;
                check_runs();
            }
        }
        // Chunks of growing sizes.
        weir_test_note("shape %u, growing", kind);
        begin();
        asked.limits.argument_alignment_bytes = 1;
        params.element_count = BYTES / IN_BYTES - 128;
        shape(kind);
        check_runs();
    }
}

// Other work on `src` before the run, and on `dst`: it is in order with what the run is told of.
WEIR_TEST(ChunksRules, ARunWaitsForTheGivenEvents)
{
    for (uint32_t queues = 0; queues <= 3; queues++) {
        for (unsigned told = 0; told <= 2; told++) {
            weir_queue *other[2];
            struct weir_event after[2];
            open_job(); // a pair of lines is found once in a runtime
            params.queue_count = queues;
            params.chunk_count = 5;
            ASSERT_OK(weir_chunks_create(&params, &chunks));
            for (unsigned i = 0; i < 2; i++) {
                const size_t in_size = i == 0 ? 0 : BYTES;
                other[i] = test_queue(rig.device, "other");
                EXPECT_OK(use(other[i], params.dst.buffer, 0, in_size, params.src.buffer, 0,
                              BYTES - in_size));
                EXPECT_OK(weir_queue_record(other[i], &after[i]));
            }
            EXPECT_OK(weir_chunks_run(chunks, after, told, &done));
            EXPECT_TRUE((findings() > 0) == (told < 2));
            weir_queue_destroy(&other[0]);
            weir_queue_destroy(&other[1]);
            close_job();
        }
    }
}

RULE(OrdersAreAsNamed)
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
        ASSERT_OK(weir_chunks_create(&params, &chunks));
        run();
        EXPECT_STR_EQ(asked.text, orders[i].text);
        weir_chunks_destroy(&chunks);
    }
}

// --- sizes ---

static void check_cover(size_t expected_chunks)
{
    struct weir_chunk chunk;
    size_t at = 0, least = SIZE_MAX, most = 0;
    size_t alignment = asked.limits.argument_alignment_bytes;

    const struct weir_chunks_plan plan = create();
    ASSERT_UINT_EQ(plan.chunk_count, expected_chunks);
    for (uint32_t i = 0; i < plan.chunk_count; i++) {
        ASSERT_OK(weir_chunks_get_chunk(chunks, i, &chunk));
        EXPECT_UINT_EQ(chunk.index, i);
        EXPECT_UINT_EQ(chunk.first, at);
        EXPECT_UINT_GT(chunk.count, 0);
        EXPECT_UINT_EQ(chunk.in_offset, params.in.offset + at * params.in_bytes);
        EXPECT_UINT_EQ(chunk.in_size, chunk.count * params.in_bytes);
        EXPECT_UINT_EQ(chunk.out_offset, params.out.offset + at * params.out_bytes);
        EXPECT_UINT_EQ(chunk.out_size, chunk.count * params.out_bytes);
        EXPECT_UINT_EQ(chunk.in_offset % alignment, 0);
        EXPECT_UINT_EQ(chunk.out_offset % alignment, 0);
        if (params.granularity > 0)
            EXPECT_UINT_EQ(at % params.granularity, 0);
        if (i + 1 < plan.chunk_count) {
            least = chunk.count < least ? chunk.count : least;
            most = chunk.count > most ? chunk.count : most;
        }
        at += chunk.count;
    }
    EXPECT_UINT_EQ(at, params.element_count);
    if (plan.chunk_count > 1) {
        EXPECT_UINT_LE(most - least, plan.unit);
        EXPECT_UINT_LE(chunk.count, most);
    }
    EXPECT_INT_EQ(weir_chunks_get_chunk(chunks, plan.chunk_count, &chunk), WEIR_ERROR_INVALID);
    weir_chunks_destroy(&chunks);
}

static size_t at_most(size_t chunk_count, size_t unit)
{
    size_t units = (params.element_count + unit - 1) / unit;
    return chunk_count < units ? chunk_count : units;
}

RULE(ChunksCoverEverythingOnce)
{
    static const size_t counts[] = {0, 1, 31, 32, 33, 999, 1000, 1024, 4096};

    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint32_t wanted = 1; wanted <= 40; wanted += 3) {
            weir_test_note("%zu elements in %u chunks", counts[i], wanted);
            begin();
            params.element_count = counts[i];
            params.chunk_count = wanted;
            // 32 elements of 12 bytes are 3 times 128 bytes, of 8 bytes twice.
            check_cover(at_most(wanted, 32));
            begin();
            params.element_count = counts[i];
            params.chunk_count = wanted;
            params.granularity = 24;
            check_cover(at_most(wanted, 96));
            begin();
            params.element_count = counts[i];
            params.chunk_count = wanted;
            params.in_bytes = 1;
            params.out_bytes = 100;
            check_cover(at_most(wanted, 128));
        }
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
    asked.large = true;
}

// In the order of growing each chunk is at most a twentieth larger than the one before, and
// a unit, and at most a quarter smaller; only the last two may be. All elements are in one.
static void check_growing(bool reversed)
{
    struct weir_chunk chunk, before = {.count = 0};
    size_t at = 0;

    const struct weir_chunks_plan plan = create();
    ASSERT_UINT_GT(plan.chunk_count, 2);
    EXPECT_TRUE(plan.chunk_count <= 256);
    const uint32_t first = reversed ? 2 : 0;
    for (uint32_t i = 0; i < plan.chunk_count; i++) {
        ASSERT_OK(weir_chunks_get_chunk(chunks, i, &chunk));
        EXPECT_UINT_EQ(chunk.first, at);
        at += chunk.count;
        EXPECT_UINT_LE(chunk.count, plan.most_count);
        const size_t small = reversed ? chunk.count : before.count;
        const size_t large = reversed ? before.count : chunk.count;
        if (i > first && i < first + plan.chunk_count - 3) {
            EXPECT_UINT_LE(small - small / 4, large + 2 * plan.unit);
            EXPECT_UINT_LE(large, small + small / 20 + 2 * plan.unit);
        }
        before = chunk;
    }
    EXPECT_UINT_EQ(at, params.element_count);
    weir_chunks_destroy(&chunks);
}

RULE(ChunksGrow)
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
}

// Chunks of at least a unit, however much that is.
RULE(UnitsThatAreLargerThanAChunk)
{
    static const struct {
        size_t granularity, chunks;
    } units[] = {{1 << 22, 64}, {1 << 26, 16}, {LARGE, 1}, {(size_t)1 << 62, 1}};
    struct weir_chunk chunk = {.count = 0};

    for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
        for (unsigned way = 0; way < 2; way++) {
            begin_large(LARGE, 1 + way, 1);
            params.granularity = units[i].granularity;
            const struct weir_chunks_plan plan = create();
            if (i > 0)
                EXPECT_UINT_EQ(plan.chunk_count, units[i].chunks);
            for (uint32_t k = 0; k < plan.chunk_count; k++) {
                EXPECT_OK(weir_chunks_get_chunk(chunks, k, &chunk));
                EXPECT_UINT_EQ(chunk.first % units[i].granularity, 0);
            }
            EXPECT_UINT_EQ(chunk.first + chunk.count, LARGE);
            weir_chunks_destroy(&chunks);
        }
}

// --- the number of chunks and queues ---

#define MIB ((size_t)1 << 20)
#define TIB ((size_t)1 << 40)

enum {
    ENGINE = WEIR_CHUNKS_BY_ENGINE,
    CHUNK = WEIR_CHUNKS_BY_CHUNK,
    DEPTH = WEIR_CHUNKS_DEPTH_FIRST,
    INTER = WEIR_CHUNKS_INTERLEAVED
};

// Jobs of so many bytes on devices, and their plans. 0 in a plan: any.
static const struct plan_row {
    size_t bytes;
    unsigned engines, unified;       // of the device: each way, memory
    unsigned layout, queues, chunks; // asked for
    unsigned wanted[4];              // order, layout, queues, chunks
    size_t first, most;
} plan_rows[] = {
    // Two copy engines; the chunks grow to a 64th of the job.
    {1024 * MIB, 1, 0, 0, 0, 0, {INTER, ENGINE, 3, 83}, 4 * MIB, 16 * MIB},
    {16 * MIB, 1, 0, 0, 0, 0, {0, 0, 0, 8}, 2 * MIB, 2 * MIB},
    {1000, 1, 0, 0, 0, 0, {0, 0, 0, 1}, 0, 0},
    {TIB, 1, 0, 0, 0, 0, {0, 0, 0, 256}, 0, 0},
    {TIB, 1, 0, CHUNK, 0, 0, {0, 0, 0, 256}, TIB / 256, TIB / 256},
    // No engine is reported; and a device that is the host itself.
    {1024 * MIB, 0, 0, 0, 0, 0, {0, ENGINE, 0, 0}, 0, 0},
    {64 * MIB, 0, 1, 0, 0, 0, {DEPTH, CHUNK, 2, 64}, 0, 0},
    {1000, 0, 1, 0, 0, 0, {0, 0, 1, 0}, 0, 0},
    // What is asked for is done.
    {1024 * MIB, 1, 0, 0, 5, 0, {0, 0, 5, 0}, 0, 0},
    {1024 * MIB, 1, 0, 0, 5, 3, {0, 0, 3, 0}, 0, 0},
    {1024 * MIB, 1, 0, CHUNK, 0, 0, {0, 0, 8, 0}, 0, 0},
    {1024 * MIB, 0, 1, ENGINE, 0, 0, {0, ENGINE, 0, 0}, 0, 0},
};

static void expect_if_wanted(size_t found, size_t wanted)
{
    EXPECT_TRUE(wanted == 0 || found == wanted);
}

RULE(PlansByTheDevice)
{
    for (size_t i = 0; i < sizeof plan_rows / sizeof *plan_rows; i++) {
        const struct plan_row *row = &plan_rows[i];
        weir_test_note("row %zu", i);
        begin_large(row->bytes, 1, 1);
        asked.limits.copy_engines_to_host = asked.limits.copy_engines_to_device = row->engines;
        asked.limits.unified_memory = row->unified;
        params.layout = (weir_chunks_layout)row->layout;
        params.queue_count = row->queues;
        params.chunk_count = row->chunks;
        const struct weir_chunks_plan plan = create();
        weir_chunks_destroy(&chunks);
        const size_t found[] = {plan.order, plan.layout, plan.queue_count, plan.chunk_count};
        for (unsigned k = 0; k < 4; k++)
            expect_if_wanted(found[k], row->wanted[k]);
        expect_if_wanted(plan.first_count, row->first);
        expect_if_wanted(plan.most_count, row->most);
    }
}

// --- failures ---

RULE(AFailedSubmissionBreaksTheJob)
{
    // Every submission of the second run fails once in turn.
    for (unsigned nth = 1; nth < 200; nth++) {
        weir_test_note("submission %u", nth);
        begin();
        params.chunk_count = 4;
        ASSERT_OK(weir_chunks_create(&params, &chunks));
        run();
        asked.failing_call = nth;
        if (weir_chunks_run(chunks, NULL, 0, &done) == WEIR_OK) {
            EXPECT_UINT_GT(nth, 30);
            break;
        }
        EXPECT_UINT_EQ(done.sequence, 0);
        EXPECT_STR_EQ(weir_last_error()->message, "a call broke");
        weir_error_set(NULL);
        const unsigned before = kernels;
        EXPECT_FAILURE(weir_chunks_run(chunks, NULL, 0, &done), WEIR_ERROR_IO, "a call broke");
        EXPECT_UINT_EQ(kernels, before);
        ASSERT_OK(weir_chunks_recover(chunks));
        EXPECT_UINT_EQ(asked.syncs, 3);
        // The host has waited, so earlier events do not matter.
        memset(asked.text, 0, sizeof asked.text);
        run();
        EXPECT_STR_EQ(asked.text, "ukudkudkudkd");
        weir_chunks_destroy(&chunks);
    }
}

RULE(AFailedKernelBreaksTheJob)
{
    params.chunk_count = 4;
    failing_kernel = 3;
    ASSERT_OK(weir_chunks_create(&params, &chunks));
    EXPECT_FAILURE(weir_chunks_run(chunks, NULL, 0, &done), WEIR_ERROR_IO,
                   "kernel callback returned WEIR_ERROR_IO");
    EXPECT_STR_EQ(weir_last_error()->object, "job");
    EXPECT_INT_EQ(weir_chunks_run(chunks, NULL, 0, &done), WEIR_ERROR_IO);
    EXPECT_UINT_EQ(kernels, 3);
    ASSERT_OK(weir_chunks_recover(chunks));
    run();
}

RULE(AZeroedEventRunsNothing)
{
    struct weir_event zero = {0, 0};
    ASSERT_OK(weir_chunks_create(&params, &chunks));
    EXPECT_INT_EQ(weir_chunks_run(chunks, &zero, 1, &done), WEIR_ERROR_INVALID);
    EXPECT_STR_EQ(asked.text, "");
    EXPECT_FAILURE(weir_chunks_run(NULL, NULL, 0, &done), WEIR_ERROR_INVALID, "create it first");
    EXPECT_FAILURE(weir_chunks_recover(NULL), WEIR_ERROR_INVALID, "create it first");
    run();
    weir_chunks_destroy(&chunks);
    weir_chunks_destroy(NULL);
    weir_chunks_destroy(&chunks);
}

RULE(AQueueThatCannotBeMadeLeavesNothing)
{
    for (unsigned nth = 1; nth <= 3; nth++) {
        begin();
        asked.failing_queue = nth;
        EXPECT_FAILURE(weir_chunks_create(&params, &chunks), WEIR_ERROR_IO, "no more queues");
        EXPECT_NULL(chunks);
    }
}

// --- bad params ---

static void refused(const char *part)
{
    EXPECT_INT_EQ(weir_chunks_create(&params, &chunks), WEIR_ERROR_INVALID);
    EXPECT_NULL(chunks);
    EXPECT_CONTAINS(weir_last_error()->message, part);
    begin();
}
// After that assignment.
#define REFUSED(assignment, part) ((void)(assignment), refused(part))

RULE(BadParamsAreRefused)
{
    begin();
    EXPECT_INT_EQ(weir_chunks_create(NULL, &chunks), WEIR_ERROR_INVALID);
    REFUSED(params.struct_size = 7, "struct_size is 7");
    REFUSED(params.device = NULL, "params->device is NULL");
    EXPECT_STR_EQ(weir_last_error()->remedy, "set it");
    REFUSED(params.kernel = NULL, "params->kernel is NULL");
    REFUSED(params.in_bytes = params.out_bytes = 0, "in_bytes and out_bytes are both 0");
    REFUSED(params.order = (weir_chunks_order)4, "order 4 in layout");
    REFUSED(params.layout = (weir_chunks_layout)-1, "layout -1");
    REFUSED(params.chunk_count = 5000, "5000 chunks");
    REFUSED(params.queue_count = 65, "65 queues");
    params.layout = WEIR_CHUNKS_BY_ENGINE;
    REFUSED(params.queue_count = 2, "2 queues by engine");
    REFUSED(params.granularity = SIZE_MAX - 1, "granularity");
}

RULE(BadPlacesAreRefused)
{
    begin();
    REFUSED(params.dst.buffer = NULL, "params->dst has no buffer");
    REFUSED(params.in.buffer = params.src.buffer, "params->in is no DEVICE buffer");
    REFUSED(params.src.buffer = params.out.buffer, "params->src is no HOST buffer");
    REFUSED(params.out.offset = 64, "multiple of the device's argument alignment, 128");
    REFUSED(params.src.offset = (1 << 20) - ELEMENTS * IN_BYTES + 1,
            "params->src of 1048576 bytes");
    REFUSED(params.src.offset = SIZE_MAX, "params->src");
    REFUSED(params.element_count = SIZE_MAX / 4, "params->src");
    REFUSED(params.out = params.in, "params->in and params->out overlap");
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
    ASSERT_OK(weir_chunks_create(&params, &chunks));
}
