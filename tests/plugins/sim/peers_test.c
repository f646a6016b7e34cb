// Two devices: each has engines of its own, and copies between them are the model's.
#include "tests/plugins/sim/job.h"

struct pair {
    struct job job; // of the first device
    weir_device *device;
    weir_queue *queue;
    weir_buffer *memory;
    weir_buffer *host;
    struct weir_event begin;
};

static bool start_pair(struct pair *pair, const char *more, const char *host)
{
    const struct weir_device_params other = {.struct_size = sizeof other, .select = "1"};
    const struct weir_queue_params queue = {.struct_size = sizeof queue, .timing = true};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = CHUNK};
    if (!job_start_plain(&pair->job, more, host))
        return false;
    bool fine = weir_device_open(pair->job.rig.runtime, &other, &pair->device) == WEIR_OK &&
                weir_queue_create(pair->device, &queue, &pair->queue) == WEIR_OK &&
                weir_buffer_create(pair->device, &buffer, &pair->memory) == WEIR_OK;
    buffer.placement = WEIR_PLACE_HOST;
    fine = fine && weir_buffer_create(pair->device, &buffer, &pair->host) == WEIR_OK &&
           weir_device_can_peer(pair->job.rig.device, pair->device);
    EXPECT_TRUE(fine);
    EXPECT_OK(weir_queue_record(pair->job.queues[0], &pair->begin));
    return fine;
}

static void finish_pair(struct pair *pair)
{
    weir_queue_destroy(&pair->queue);
    weir_buffer_destroy(&pair->memory);
    weir_buffer_destroy(&pair->host);
    EXPECT_OK(weir_device_close(&pair->device));
    job_finish(&pair->job);
}

// Nanoseconds from the begin until what the queue has is done.
static uint64_t time_until(struct pair *pair, weir_queue *queue)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(queue, &event));
    return job_time(event) - job_time(pair->begin);
}

static void copy_to_peer_beside_download(struct pair *pair)
{
    struct job *job = &pair->job;
    EXPECT_OK(weir_queue_copy(job->queues[0], pair->memory, 0, job->memory, 0, 4000));
    EXPECT_OK(weir_queue_copy(job->queues[1], job->host, 0, job->memory, 0, 1000));
}

// With an engine for peers a download goes on beside it; without, after it.
WEIR_TEST(Peers, CopiesBetweenDevices)
{
    static const char link[] = "peer_gb_per_s = 2\ncopy_latency_ns = 300\n";
    char more[128];
    struct pair pair;
    snprintf(more, sizeof more, "%scopy_engines = 3\n", link);
    ASSERT_TRUE(start_pair(&pair, more, "none"));
    copy_to_peer_beside_download(&pair);
    EXPECT_UINT_EQ(time_until(&pair, pair.job.queues[0]), 2300);
    finish_pair(&pair);

    ASSERT_TRUE(start_pair(&pair, link, "none"));
    copy_to_peer_beside_download(&pair);
    EXPECT_UINT_EQ(time_until(&pair, pair.job.queues[1]), 3600);
    finish_pair(&pair);
}

WEIR_TEST(Peers, EnginesOfTheirOwn)
{
    struct pair pair;
    struct weir_event sent;
    ASSERT_TRUE(start_pair(&pair, "peer_gb_per_s = 1\ncopy_engines = 3\n", "none"));
    struct job *job = &pair.job;
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 5000));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.memory, 0, pair.host, 0, 3000));
    EXPECT_UINT_EQ(time_until(&pair, pair.queue), 3000);
    // Waits for the other device: 5000, 1000 to the peer, 2000 down.
    EXPECT_OK(weir_queue_copy(job->queues[0], pair.memory, 0, job->memory, 0, 1000));
    EXPECT_OK(weir_queue_record(job->queues[0], &sent));
    EXPECT_OK(weir_queue_wait(pair.queue, sent));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.host, 0, pair.memory, 0, 2000));
    EXPECT_UINT_EQ(time_until(&pair, pair.queue), 8000);
    finish_pair(&pair);
}

// A copy from another device, in a queue of the one that gets it, needs the engine of the other one, and
// takes longer.
WEIR_TEST(Peers, PullsNeedTheEngineOfTheSource)
{
    struct pair pair;
    ASSERT_TRUE(start_pair(&pair,
                           "peer_gb_per_s = 1\ncopy_engines = 3\ncopy_latency_ns = 100\n"
                           "pull_latency_ns = 700\n",
                           "none"));
    struct job *job = &pair.job;
    EXPECT_OK(weir_queue_copy(job->queues[0], pair.memory, 0, job->memory, 0, 4000));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.memory, 4000, job->memory, 4000, 2000));
    EXPECT_OK(weir_queue_copy(job->queues[1], job->memory, 8000, pair.memory, 8000, 1000));
    EXPECT_UINT_EQ(time_until(&pair, job->queues[1]), 1700);
    EXPECT_UINT_EQ(time_until(&pair, job->queues[0]), 4100);
    EXPECT_UINT_EQ(time_until(&pair, pair.queue), 4100 + 2700);
    finish_pair(&pair);

    // Without a line they are as others.
    ASSERT_TRUE(start_pair(&pair,
                           "copy_engines = 3\ncopy_latency_ns = 100\nsubmit_copy_ns = 60\n"
                           "peer_gb_per_s = 1\n",
                           "fixed"));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.memory, 0, job->memory, 0, 2000));
    EXPECT_UINT_EQ(time_until(&pair, pair.queue), 60 + 2100);
    finish_pair(&pair);
}

// What comes after a copy from another device, and before it, waits for a signal of that one.
WEIR_TEST(Peers, PullsAreSignalled)
{
    struct pair pair;
    struct weir_event up;
    ASSERT_TRUE(
        start_pair(&pair, "peer_gb_per_s = 1\ncopy_engines = 3\nsignal_ns = 500\n", "none"));
    struct job *job = &pair.job;
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 1000));
    EXPECT_OK(weir_queue_record(job->queues[0], &up));
    EXPECT_OK(weir_queue_wait(pair.queue, up));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.memory, 0, job->memory, 0, 1000));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.host, 0, pair.memory, 0, 1000));
    EXPECT_UINT_EQ(time_until(&pair, pair.queue), 3000 + 2 * 500);
    finish_pair(&pair);
}

// They go in the order of their submission: one that waits holds up those after it, of other queues too.
WEIR_TEST(Peers, PullsHoldUpThoseAfterThem)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .timing = true};
    struct pair pair;
    struct weir_event up;
    weir_queue *other = NULL;
    ASSERT_TRUE(start_pair(&pair, "peer_gb_per_s = 1\ncopy_engines = 3\n", "none"));
    struct job *job = &pair.job;
    EXPECT_OK(weir_queue_create(pair.device, &params, &other));
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, 5000));
    EXPECT_OK(weir_queue_record(job->queues[0], &up));
    EXPECT_OK(weir_queue_wait(pair.queue, up));
    EXPECT_OK(weir_queue_copy(pair.queue, pair.memory, 0, job->memory, 0, 1000));
    EXPECT_OK(weir_queue_copy(other, pair.memory, 8000, job->memory, 8000, 1000));
    EXPECT_OK(weir_queue_copy(job->queues[1], pair.memory, 16000, job->memory, 16000, 2000));
    EXPECT_UINT_EQ(time_until(&pair, job->queues[1]), 2000);
    EXPECT_UINT_EQ(time_until(&pair, pair.queue), 6000);
    EXPECT_UINT_EQ(time_until(&pair, other), 7000);
    weir_queue_destroy(&other);
    finish_pair(&pair);
}
