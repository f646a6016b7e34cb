// `chunks` on a real chain. Kernels here are copies, which every backend can do, after
// a slow host call: it holds its queue, so that even the null backend, which does
// everything at submit, runs them late.

#include "patterns/chunks.h"
#include "tests/patterns/rig.h"

enum {
    WORDS = 10007,
    MARGIN = 64, // words around the job in its buffers
    GUARD = 0x5ddddddd,
    CHUNKS = 6
};

// A job that takes every second word: elements are two words in, one out.
struct job {
    weir_buffer *src, *in, *out, *dst;
    weir_chunks *chunks;
    struct gate gate;
    uint32_t gated; // chunk from 1 whose kernel waits at the gate
    bool jitter;
};

static struct job job;
static struct weir_event done; // the end of the last run

static weir_status begin_kernel(weir_queue *queue, const struct weir_chunk *chunk)
{
    if (job.gated == chunk->index + 1)
        return weir_queue_host_call(queue, gate_pass, &job.gate);
    if (job.jitter)
        return weir_queue_host_call(queue, rig_dawdle, (void *)(uintptr_t)(chunk->index + 1));
    return WEIR_OK;
}

static weir_status take_half(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct weir_plane from = {job.in, chunk->in_offset, 8};
    const struct weir_plane to = {job.out, chunk->out_offset, 4};
    weir_status status = begin_kernel(queue, chunk);
    return status == WEIR_OK ? weir_queue_copy_2d(queue, to, from, 4, chunk->count) : status;
}

static struct weir_chunks_params job_params(size_t count)
{
    size_t margin = MARGIN * 4;
    size_t alignment = weir_device_limits(rig.device)->argument_alignment_bytes;
    return (struct weir_chunks_params){
        .struct_size = sizeof(struct weir_chunks_params),
        .device = rig.device,
        .label = "half",
        .element_count = count,
        .in_bytes = 8,
        .out_bytes = 4,
        .src = {job.src, margin + 4},
        .in = {job.in, alignment},
        .out = {job.out, alignment},
        .dst = {job.dst, margin},
        .kernel = take_half,
        .chunk_count = CHUNKS,
    };
}

// With this many queues; 0: one for each engine.
static struct weir_chunks_params params_on(uint32_t queues)
{
    struct weir_chunks_params params = job_params(WORDS);
    params.queue_count = queues;
    params.layout = queues == 0 ? WEIR_CHUNKS_BY_ENGINE : WEIR_CHUNKS_BY_CHUNK;
    return params;
}

static void open_job(void)
{
    memset(&job, 0, sizeof job);
    job.jitter = true;
    ASSERT_OK(rig_open(NULL));
    size_t extra = 2 * MARGIN * 4 + weir_device_limits(rig.device)->argument_alignment_bytes;
    job.src = test_buffer(rig.device, "src", WORDS * 8 + extra, WEIR_PLACE_HOST);
    job.in = test_buffer(rig.device, "in", WORDS * 8 + extra, WEIR_PLACE_DEVICE);
    job.out = test_buffer(rig.device, "out", WORDS * 4 + extra, WEIR_PLACE_DEVICE);
    job.dst = test_buffer(rig.device, "dst", WORDS * 4 + extra, WEIR_PLACE_HOST);
}

static void close_job(void)
{
    weir_chunks_destroy(&job.chunks);
    weir_buffer_destroy(&job.src);
    weir_buffer_destroy(&job.in);
    weir_buffer_destroy(&job.out);
    weir_buffer_destroy(&job.dst);
    rig_close();
}

#define JOB_TEST(suite, name) WEIR_TEST_BETWEEN(suite, name, open_job(), close_job())

static void write_src(size_t count, uint32_t first)
{
    if (count > 0)
        rig_write_words(job.src, MARGIN + 1, 2 * count, first);
}

static void guard_dst(void)
{
    uint32_t *words;
    ASSERT_OK(weir_host_whole(job.dst, WEIR_ACCESS_WRITE, &words));
    for (size_t i = 0; i < weir_buffer_size(job.dst) / 4; i++)
        words[i] = GUARD;
    ASSERT_OK(weir_host_whole_end(job.dst, WEIR_ACCESS_WRITE));
}

// The number of words of `dst` that differ from the job's result, or that changed
// outside the job's ranges.
static size_t wrong_words(size_t count, uint32_t first)
{
    const size_t all = weir_buffer_size(job.dst) / 4;
    size_t wrong = 0;
    uint32_t *words;
    if (weir_host_whole(job.dst, WEIR_ACCESS_READ, &words) != WEIR_OK)
        return all + 1;
    for (size_t i = 0; i < all; i++) {
        const bool inside = i >= MARGIN && i - MARGIN < count;
        wrong += words[i] != (inside ? first + 2 * (uint32_t)(i - MARGIN) : GUARD);
    }
    WEIR_IGNORE(weir_host_whole_end(job.dst, WEIR_ACCESS_READ));
    return wrong;
}

// Runs it, and waits.
static void run_and_wait(void)
{
    ASSERT_OK(weir_chunks_run(job.chunks, NULL, 0, &done));
    ASSERT_OK(weir_event_sync(done, WEIR_FOREVER));
}

// --- data ---

JOB_TEST(Chunks, EveryByteArrivesOnce)
{
    static const size_t counts[] = {0, 1, 32, 33, 5000, WORDS};

    for (int order = WEIR_CHUNKS_ORDER_AUTO; order <= WEIR_CHUNKS_INTERLEAVED; order++) {
        for (uint32_t queues = 0; queues <= 4; queues++) {
            for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
                weir_test_note("order %d, %u queues, %zu elements", order, queues, counts[i]);
                struct weir_chunks_params params = job_params(counts[i]);
                params.order = (weir_chunks_order)order;
                params.queue_count = queues;
                if (queues == 0)
                    params.layout = WEIR_CHUNKS_BY_ENGINE;
                write_src(counts[i], i * 100000);
                guard_dst();
                ASSERT_OK(weir_chunks_create(&params, &job.chunks));
                run_and_wait();
                ASSERT_UINT_EQ(wrong_words(counts[i], i * 100000), 0);
                weir_chunks_destroy(&job.chunks);
            }
        }
    }
}

// The last run's work continues after the job was destroyed.
JOB_TEST(Chunks, DestroyDoesNotWait)
{
    job.gated = 2;
    struct weir_chunks_params params = job_params(WORDS);
    write_src(WORDS, 5);
    guard_dst();
    ASSERT_OK(weir_chunks_create(&params, &job.chunks));
    ASSERT_OK(weir_chunks_run(job.chunks, NULL, 0, &done));
    EXPECT_TRUE(gate_await(&job.gate, 1));
    weir_chunks_destroy(&job.chunks);
    EXPECT_INT_EQ(weir_event_query(done), WEIR_NOT_READY);
    gate_open(&job.gate);
    ASSERT_OK(weir_event_sync(done, WEIR_FOREVER));
    EXPECT_UINT_EQ(wrong_words(WORDS, 5), 0);
}

// --- failures ---

JOB_TEST(Chunks, AFailureReachesTheEventAndIsRecoveredFrom)
{
    struct weir_event second;

    job.gate.status = WEIR_ERROR_IO;
    for (uint32_t queues = 0; queues <= 3; queues++) {
        weir_test_note("%u queues", queues);
        const struct weir_chunks_params params = params_on(queues);
        write_src(WORDS, 3);
        ASSERT_OK(weir_chunks_create(&params, &job.chunks));
        // It fails after the whole run was submitted.
        job.gated = 2;
        ASSERT_OK(weir_chunks_run(job.chunks, NULL, 0, &done));
        gate_open(&job.gate);
        job.gated = 0;
        // Submitted after it, or refused: the same cause in both cases.
        weir_status status = weir_chunks_run(job.chunks, NULL, 0, &second);
        if (status == WEIR_OK)
            status = weir_event_sync(second, WEIR_FOREVER);
        EXPECT_INT_EQ(status, WEIR_ERROR_IO);
        EXPECT_INT_EQ(weir_event_sync(done, WEIR_FOREVER), WEIR_ERROR_IO);
        EXPECT_CONTAINS(weir_last_error()->file, "chunks_test.c");
        EXPECT_INT_EQ(weir_chunks_run(job.chunks, NULL, 0, &second), WEIR_ERROR_IO);

        ASSERT_OK(weir_chunks_recover(job.chunks));
        guard_dst();
        run_and_wait();
        EXPECT_UINT_EQ(wrong_words(WORDS, 3), 0);
        weir_chunks_destroy(&job.chunks);
        gate_shut(&job.gate);
    }
}

// --- allocations ---

JOB_TEST(Chunks, RunsAllocateNothing)
{
    struct rig_flat warm;

    job.jitter = false;
    for (uint32_t queues = 0; queues <= 3; queues += 3) {
        const struct weir_chunks_params params = params_on(queues);
        ASSERT_OK(weir_chunks_create(&params, &job.chunks));
        for (unsigned run = 0; run < 500; run++) {
            if (run == 50)
                warm = rig_flat_begin();
            ASSERT_OK(weir_chunks_run(job.chunks, NULL, 0, &done));
            if (run % 2)
                ASSERT_OK(weir_event_sync(done, WEIR_FOREVER));
        }
        rig_flat_expect(&warm);
        weir_chunks_destroy(&job.chunks);
    }
}
