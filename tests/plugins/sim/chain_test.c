// The plugin in chains with the backend that the environment names: what the plugin `trace` and events tell is the
// time of the modelled GPU, and the work is done as ever. (The milliseconds that were measured: tests/cli/sim_run_test.sh.)

#include "tests/plugins/sim/job.h"

static const char *const chain = "trace, sim";

static void run_job(struct job *job, bool breadth_first)
{
    for (int i = 0; i < 3 * CHUNKS; i++)
        job_submit(job, breadth_first ? i % CHUNKS : i / 3, breadth_first ? i / CHUNKS : i % 3);
    for (int i = 0; i < CHUNKS; i++)
        EXPECT_OK(weir_queue_sync(job->queues[i], WEIR_FOREVER));
}

// When two jobs end.
static uint64_t end_of_job(const char *more)
{
    own_job job = {0};
    if (!job_start(&job, "", job_section("h200", "12345", more), "sim"))
        return 0;
    run_job(&job, false);
    run_job(&job, true);
    const uint64_t end_ns = job_now(job.queues[0]);
    return end_ns;
}

// That whole traces are the same: tests/cli/sim_run_test.sh.
WEIR_TEST(Chain, JitterVariesWithItsSeedAndStaysNearTheModel)
{
    const uint64_t model_ns = end_of_job(""), one_ns = end_of_job("jitter = 20\n");
    EXPECT_UINT_EQ(end_of_job("jitter = 0\nseed = 2\n"), model_ns);
    EXPECT_UINT_EQ(end_of_job("jitter = 20\nseed = 1\n"), one_ns);
    EXPECT_TRUE(one_ns != model_ns);
    EXPECT_TRUE(end_of_job("jitter = 20\nseed = 2\n") != one_ns);
    EXPECT_TRUE(one_ns < 2 * model_ns && 2 * one_ns > model_ns);
}

// The bytes are those of a run without sim.
static void run_for_bytes(const char *plugins, const char *section, uint32_t *words)
{
    own_job job = {0};
    void *memory = NULL;
    ASSERT_TRUE(job_start(&job, job_trace(), section, plugins));
    own_buffer out = test_buffer(job.rig.device, "", CHUNK, WEIR_PLACE_HOST);
    EXPECT_OK(weir_upload(job.queues[0], job.memory, 0, words, CHUNK));
    job_submit(&job, 0, 1);
    EXPECT_OK(weir_queue_copy(job.queues[0], out, 0, job.memory, 0, CHUNK));
    EXPECT_OK(weir_download(job.queues[0], words, job.memory, 0, CHUNK));
    ASSERT_OK(weir_host_begin(out, 0, CHUNK, WEIR_ACCESS_READ, &memory));
    EXPECT_INT_EQ(memcmp(memory, words, CHUNK), 0);
    EXPECT_OK(weir_host_end(out, 0, CHUNK, WEIR_ACCESS_READ));
}

WEIR_TEST(Chain, ResultsAreTheSame)
{
    OWN_MEMORY uint32_t *words = malloc(2 * CHUNK);
    ASSERT_TRUE(words != NULL);
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = words[WORDS + i] = i * 2654435761u;
    run_for_bytes("trace", "", words);
    run_for_bytes(chain, job_section("c1060", "5", ""), words + WORDS);
    EXPECT_INT_EQ(memcmp(words, words + WORDS, CHUNK), 0);
}

// What the program sees.

JOB_TEST(Chain, TimesOfEvents, "", "none")
{
    const struct weir_event begin = test_record(job->queues[0]);
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 4096));
    const struct weir_event copied = test_record(job->queues[0]);
    job_submit(job, 0, 1);
    const struct weir_event ran = test_record(job->queues[0]);
    const uint64_t from = job_time(begin);
    EXPECT_UINT_EQ(job_time(copied) - from, 4096);
    EXPECT_UINT_EQ(job_time(ran) - from, 4096 + 1000 + BLOCKS * 64 * 10 + 3 * 100);
}

// A program that asks until it is told waits, too.
JOB_TEST(Chain, Queries, "", "none")
{
    const uint64_t from = job_now(job->queues[0]);
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 5000));
    const struct weir_event done = test_record(job->queues[0]);
    EXPECT_INT_EQ(weir_event_query(done), WEIR_NOT_READY);
    while (weir_event_query(done) == WEIR_NOT_READY) {
    }
    EXPECT_UINT_EQ(job_time(done) - from, 5000);
}

// A graph of two branches: an upload and a download at once, then a copy on the device.
static weir_graph *capture(struct job *job)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(job->queues[0]));
    EXPECT_OK(weir_queue_after(job->queues[1], job->queues[0]));
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 3000));
    EXPECT_OK(weir_queue_copy(job->queues[1], job->host, CHUNK, job->memory, CHUNK, 4000));
    EXPECT_OK(weir_queue_after(job->queues[0], job->queues[1]));
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, CHUNK, job->memory, 0, 500));
    EXPECT_OK(weir_capture_end(job->queues[0], NULL, &graph));
    return graph;
}

JOB_TEST(Chain, Graphs, "", "none")
{
    own_graph graph = capture(job);
    ASSERT_TRUE(graph != NULL);
    const uint64_t from = job_now(job->queues[2]);
    EXPECT_OK(weir_queue_graph(job->queues[2], graph));
    EXPECT_OK(weir_queue_graph(job->queues[2], graph));
    EXPECT_UINT_EQ(job_now(job->queues[2]) - from, 9000);
}

// Many records of one queue, in flight at once and over: the last thousand have times.
JOB_TEST(Chain, ManyRecords, "", "none")
{
    enum {
        MANY = 5000
    };
    struct weir_event events[2] = {{0}};
    uint64_t time_ns;
    for (int i = 0; i < MANY; i++) {
        EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 10));
        EXPECT_OK(weir_queue_record(job->queues[0], &events[i > 0]));
    }
    EXPECT_OK(weir_event_sync(events[1], WEIR_FOREVER));
    EXPECT_OK(weir_queue_record(job->queues[0], &events[1]));
    EXPECT_OK(weir_event_sync(events[1], WEIR_FOREVER));
    EXPECT_OK(weir_event_time_ns(events[1], &time_ns));
    EXPECT_INT_EQ(weir_event_time_ns(events[0], &time_ns), WEIR_ERROR_EXPIRED);
}

// What a queue has when it ends is done, whichever queue gets its number.
JOB_TEST(Chain, QueuesThatEnd, "", "none")
{
    const uint64_t from = job_now(job->queues[0]);
    for (int i = 0; i < 100; i++) {
        own_queue queue = test_queue(job->rig.device, "");
        EXPECT_OK(weir_queue_copy(queue, job->memory, 0, job->host, 0, 100));
    }
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 100));
    EXPECT_UINT_EQ(job_now(job->queues[0]) - from, 101 * 100);
}

// Kernels of which each completes late, and others, when the runtime is closed. What is freed twice, or not, the
// sanitizers tell.
WEIR_TEST(Chain, ClosesWithWorkInFlight)
{
    own_job job = {0};
    ASSERT_TRUE(job_start(&job, "", job_section("c2050", "5000", ""), "sim"));
    for (int i = 0; i < 3 * CHUNKS; i++)
        job_submit(&job, i % CHUNKS, i / CHUNKS);
}

// Limits are those of the model.
JOB_TEST(Chain, Limits, "multiprocessors = 14\n", "fixed")
{
    const struct weir_limits *limits = weir_device_limits(job->rig.device);
    EXPECT_UINT_EQ(limits->unified_memory, 0);
    EXPECT_UINT_EQ(limits->copy_engines_to_device, 1);
    EXPECT_UINT_EQ(limits->copy_engines_to_host, 1);
    EXPECT_UINT_EQ(limits->concurrent_kernels, 16);
    EXPECT_UINT_EQ(limits->compute_units, 14);
    EXPECT_UINT_EQ(limits->kind, WEIR_DEVICE_GPU);
    EXPECT_UINT_LE(limits->max_grid.y, 65535); // a GPU's, not the backend's
    EXPECT_UINT_LE(limits->max_grid.z, 65535);
    EXPECT_UINT_LE(limits->max_block_items, 1024);
    EXPECT_UINT_EQ(limits->native, 0);
}

// A kernel without a cost fails its queue, with the kernel's name.
WEIR_TEST_WITH(Chain, KernelWithoutACost, struct rig, rig,
               rig_start(rig, "", "[sim]\ngpu = h200\n", "sim"), rig_finish(rig))
{
    EXPECT_FAILURE(weir_queue_launch(rig->up, rig->kernel, weir_dim(1, 1, 1), weir_dim(64, 1, 1),
                                     weir_out(rig->memory, 0, 256), 7u, (uint64_t)3),
                   WEIR_ERROR_UNSUPPORTED, "the kernel 'spin' has no cost on the GPU",
                   "weir sim learn");
}
