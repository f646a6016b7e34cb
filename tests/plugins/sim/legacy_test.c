// The legacy queue in virtual time: its operations overlap with nothing.
#include <weir/migration.h>

#include "tests/plugins/sim/job.h"

// When a download on queue 1 ends after the beginning of an upload on queue 0, with an upload on
// `between` submitted between them; a byte takes a nanosecond.
static uint64_t end_with(struct job *job, weir_queue *between)
{
    struct weir_event from, end;
    EXPECT_OK(weir_queue_record(job->queues[0], &from));
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, CHUNK));
    EXPECT_OK(weir_queue_copy(between, job->memory, CHUNK, job->host, CHUNK, CHUNK));
    EXPECT_OK(weir_queue_copy(job->queues[1], job->host, 2 * CHUNK, job->memory, 2 * CHUNK, CHUNK));
    EXPECT_OK(weir_queue_record(job->queues[1], &end));
    EXPECT_OK(weir_queue_sync(between, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(job->queues[0], WEIR_FOREVER));
    const uint64_t end_ns = job_time(end);
    return end_ns - job_time(from);
}

WEIR_TEST(Legacy, OverlapsWithNothing)
{
    struct job job;
    weir_queue *legacy = NULL;
    ASSERT_TRUE(job_start_plain(&job, "", "none"));
    EXPECT_UINT_EQ(end_with(&job, job.queues[2]), CHUNK);
    ASSERT_OK(weir_legacy_queue(job.rig.device, &legacy));
    EXPECT_UINT_EQ(end_with(&job, legacy), 3 * (uint64_t)CHUNK);
    job_finish(&job);
}

// A wait of the host for it is one for all queues.
WEIR_TEST(Legacy, ASyncWaitsForAll)
{
    struct job job;
    struct weir_event after;
    weir_queue *legacy = NULL;
    ASSERT_TRUE(job_start_plain(&job, "", "none"));
    ASSERT_OK(weir_legacy_queue(job.rig.device, &legacy));
    EXPECT_OK(weir_queue_record(job.queues[3], &after));
    const uint64_t from_ns = job_time(after);
    job_submit(&job, 0, 0);
    job_submit(&job, 1, 0);
    EXPECT_OK(weir_queue_sync(legacy, WEIR_FOREVER));
    EXPECT_OK(weir_queue_record(job.queues[3], &after));
    EXPECT_UINT_EQ(job_time(after) - from_ns, 2 * (uint64_t)CHUNK);
    job_finish(&job);
}
