// Patterns in virtual time: their threads do not change it, what `auto` chooses is what the model
// can use, and statistics are the model's.

#include "patterns/chunks.h"
#include "patterns/pipeline.h"
#include "tests/plugins/sim/job.h"

enum {
    FRAMES = 8,
    BYTES = 4096, // a nanosecond each
};

// A frame's upload, copy on the device and download take one unit each.
struct line {
    struct job job;
    weir_pipeline *pipeline;
    uint64_t begin_ns;
    uint64_t end_ns;
    int delivered;
};

static weir_status up(void *user, void *slot, void *frame, weir_queue *queue)
{
    const struct line *line = user;
    return weir_queue_copy(queue, line->job.memory, 0, line->job.host, 0, BYTES);
}

static weir_status across(void *user, void *slot, void *frame, weir_queue *queue)
{
    const struct line *line = user;
    return weir_queue_copy(queue, line->job.memory, CHUNK, line->job.memory, 0, BYTES);
}

static weir_status down(void *user, void *slot, void *frame, weir_queue *queue)
{
    const struct line *line = user;
    return weir_queue_copy(queue, line->job.host, CHUNK, line->job.memory, CHUNK, BYTES);
}

static void deliver(void *user, void *frame, void *slot, const struct weir_pipeline_result *result)
{
    struct line *line = user;
    EXPECT_INT_EQ(result->status, WEIR_OK);
    ASSERT_TRUE(result->spans != NULL && result->stage_count == 3);
    if (line->delivered++ == 0)
        line->begin_ns = result->spans[0].begin_ns;
    line->end_ns = result->spans[2].end_ns;
}

static bool start_line(struct line *line, uint32_t slots)
{
    static const struct weir_pipeline_stage stages[] = {
        {.name = "up", .submit = up},
        {.name = "across", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = across},
        {.name = "down", .depends_on = WEIR_PIPELINE_AFTER(1), .submit = down},
    };
    *line = (struct line){.delivered = 0};
    if (!job_start_plain(&line->job, "", "none"))
        return false;
    EXPECT_OK(weir_pipeline_create(WEIR_PARAMS(weir_pipeline, .device = line->job.rig.device,
                                               .label = "line", .stages = stages, .stage_count = 3,
                                               .stage_size = sizeof stages[0], .slot_count = slots,
                                               .deliver = deliver, .user = line, .timing = true),
                                   &line->pipeline));
    return line->pipeline != NULL;
}

static void run_frames(struct line *line, struct weir_pipeline_statistics *statistics)
{
    for (int i = 0; i < FRAMES; i++)
        EXPECT_OK(weir_pipeline_submit(line->pipeline, line));
    EXPECT_OK(weir_pipeline_drain(line->pipeline, WEIR_FOREVER));
    EXPECT_INT_EQ(line->delivered, FRAMES);
    weir_pipeline_get_statistics(line->pipeline, statistics);
    EXPECT_OK(weir_pipeline_destroy(&line->pipeline));
    job_finish(&line->job);
}

static void expect_line(uint32_t slots, uint64_t units)
{
    struct line line;
    struct weir_pipeline_statistics statistics;
    ASSERT_TRUE(start_line(&line, slots));
    run_frames(&line, &statistics);
    EXPECT_UINT_EQ(line.end_ns - line.begin_ns, units * BYTES);
    EXPECT_UINT_EQ(statistics.succeeded, FRAMES);
    EXPECT_UINT_EQ(statistics.covered_ns, units * BYTES);
    EXPECT_UINT_EQ(statistics.overlap_ns, (3 * FRAMES - units) * BYTES);
    for (int i = 0; i < 3; i++) {
        EXPECT_UINT_EQ(statistics.stages[i].busy_ns, (uint64_t)FRAMES * BYTES);
        EXPECT_UINT_EQ(statistics.stages[i].wait_ns, (units - 2 - FRAMES) * BYTES);
    }
}

// A thread starts frames, another one waits for them; a frame's slot is free when it was delivered.
WEIR_TEST(Patterns, PipelineWithSlots)
{
    for (int i = 0; i < 5; i++) {
        expect_line(1, 3 * FRAMES);
        expect_line(2, 3 * FRAMES / 2 + 1);
        expect_line(3, FRAMES + 2);
        expect_line(4, FRAMES + 2);
    }
}

// Four chunks, whose upload, copy on the device and download take one unit each.

static weir_status copy_chunk(void *user, weir_queue *queue, const struct weir_chunk *chunk)
{
    const struct job *job = user;
    return weir_queue_copy(queue, job->memory, 2 * CHUNK + chunk->in_offset, job->memory,
                           chunk->in_offset, chunk->in_size);
}

static weir_chunks *create_chunks(struct job *job, weir_chunks_order order)
{
    weir_chunks *chunks = NULL;
    EXPECT_OK(weir_chunks_create(WEIR_PARAMS(weir_chunks, .device = job->rig.device, .label = "job",
                                             .element_count = CHUNK, .in_bytes = 1, .out_bytes = 1,
                                             .src = {job->host, 0}, .in = {job->memory, 0},
                                             .out = {job->memory, 0}, .dst = {job->host, CHUNK},
                                             .kernel = copy_chunk, .user = job, .order = order),
                                 &chunks));
    return chunks;
}

static void expect_chunks(const char *changes, weir_chunks_order order, uint64_t units)
{
    own_job job = {0};
    struct weir_chunks_plan plan;
    struct weir_event begin;
    struct weir_event done;
    char host[128];
    snprintf(host, sizeof host, "none\nchanges = %s", changes);
    ASSERT_TRUE(job_start_plain(&job, "", host));
    OWN(weir_chunks_destroy) weir_chunks *chunks = create_chunks(&job, order);
    ASSERT_TRUE(chunks != NULL);
    weir_chunks_get_plan(chunks, &plan);
    EXPECT_INT_EQ(plan.layout, WEIR_CHUNKS_BY_ENGINE);
    EXPECT_UINT_EQ(plan.chunk_count, 4);
    EXPECT_OK(weir_queue_record(job.queues[0], &begin));
    EXPECT_OK(weir_chunks_run(chunks, &begin, 1, &done));
    EXPECT_OK(weir_queue_wait(job.queues[0], done));
    EXPECT_OK(weir_queue_record(job.queues[0], &done));
    const uint64_t from = job_time(begin);
    EXPECT_UINT_EQ(job_time(done) - from, units * CHUNK / 4);
}

// What `auto` chooses is the best on each kind of GPU; the other orders are not.
WEIR_TEST(Patterns, ChunksInTheOrderThatFits)
{
    const char *fermi = "copy_engines=1, queues=engine";
    expect_chunks("copy_engines=2", WEIR_CHUNKS_ORDER_AUTO, 6);
    expect_chunks("copy_engines=1", WEIR_CHUNKS_ORDER_AUTO, 8);
    expect_chunks(fermi, WEIR_CHUNKS_ORDER_AUTO, 8);
    expect_chunks(fermi, WEIR_CHUNKS_BREADTH_FIRST, 8);
    expect_chunks(fermi, WEIR_CHUNKS_DEPTH_FIRST, 12);
}
