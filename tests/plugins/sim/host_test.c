// What the host and the queues of a modelled GPU do: uploads and downloads of memory that is not pinned,
// priorities, and the legacy queue, whose operations overlap with nothing.

#include "tests/plugins/sim/job.h"

// What an upload of so many bytes and their download take, with so many threads that copy; NULL: as many as there are.
static void time_staged(const char *threads, size_t size, const char *more, uint64_t *out_up,
                        uint64_t *out_down)
{
    struct job job;
    OWN_MEMORY char *memory = calloc(1, size);
    ASSERT_TRUE(memory != NULL);
    if (threads)
        ASSERT_INT_EQ(setenv("WEIR_COPY_THREADS", threads, 1), 0);
    ASSERT_TRUE(job_start_plain(&job, more, "fixed"));
    const uint64_t from = job_now(job.queues[0]);
    EXPECT_OK(weir_upload(job.queues[0], job.memory, 0, memory, size));
    const uint64_t up = job_now(job.queues[0]);
    EXPECT_OK(weir_download(job.queues[0], memory, job.memory, 0, size));
    *out_up = up - from;
    *out_down = job_now(job.queues[0]) - up;
    job_finish(&job);
    unsetenv("WEIR_COPY_THREADS");
}

// A staged transfer of one piece takes what the host copies, and the device's copy after it or before it.
WEIR_TEST(Host, UploadsAndDownloads)
{
    enum {
        SIZE = 100000
    };
    uint64_t up = 0, down = 0;
    time_staged(NULL, SIZE, "staging_gb_per_s = 0.5\n", &up, &down);
    EXPECT_UINT_EQ(up, 2 * SIZE + SIZE);
    EXPECT_UINT_EQ(down, SIZE + 2 * SIZE);
}

// Of 4 MiB, in pieces of half a MiB, which the device copies in as many nanoseconds.
static void time_large(const char *threads, const char *more, uint64_t *out_up, uint64_t *out_down)
{
    time_staged(threads, CHUNK, more, out_up, out_down);
}

// Two threads copy two pieces at once, as fast as all may; one copies them in turn, here of a MiB.
WEIR_TEST(Host, ThreadsOfLargeUploadsAndDownloads)
{
    static const char one[] = "staging_gb_per_s = 0.5\n";
    static const char both[] = "staging_gb_per_s = 0.5\nstaging_all_gb_per_s = 0.5\n";
    const uint64_t piece = CHUNK / 8;
    uint64_t up = 0, down = 0;
    time_large("0", one, &up, &down);
    EXPECT_UINT_EQ(up, 8 * 2 * piece + 2 * piece);
    EXPECT_UINT_EQ(down, 2 * piece + 8 * 2 * piece);
    time_large("2", one, &up, &down);
    EXPECT_UINT_EQ(up, 2 * piece + 8 * piece);
    EXPECT_UINT_EQ(down, 8 * piece + 2 * piece);
    time_large("2", both, &up, &down);
    EXPECT_UINT_EQ(up, 4 * 4 * piece + 2 * piece);
    EXPECT_UINT_EQ(down, 2 * piece + 4 * 4 * piece);
    time_large("2", "staging_all_gb_per_s = 0.5\n", &up, &down);
    EXPECT_UINT_EQ(up, 4 * 4 * piece + 2 * piece);
}

// Each thread has to wake before it copies its first piece.
WEIR_TEST(Host, ThreadsOfLargeUploadsWake)
{
    const uint64_t piece = CHUNK / 8;
    uint64_t up = 0, down = 0;
    char more[128];
    snprintf(more, sizeof more, "staging_gb_per_s = 0.5\nwake_ns = %llu\n",
             (unsigned long long)(3 * piece));
    time_large("2", more, &up, &down);
    EXPECT_UINT_EQ(up, 3 * piece + 8 * piece + 2 * piece);
    EXPECT_UINT_EQ(down, piece + 3 * piece + 8 * piece + piece);
    time_large("0", more, &up, &down); // the calling thread is awake
    EXPECT_UINT_EQ(up, 8 * 2 * piece + 2 * piece);
}

// Accesses of the program's own are its own time, and a host that takes no time does not copy in any.
JOB_TEST(Host, NoTimeForCopies, "staging_gb_per_s = 0.001\n", "none")
{
    const uint64_t from = job_now(job->queues[0]);
    EXPECT_OK(weir_upload(job->queues[0], job->memory, 0, "", 1));
    EXPECT_UINT_EQ(job_now(job->queues[0]) - from, 1);
}

JOB_TEST(Host, NoTimeForAccesses, "staging_gb_per_s = 0.001\n", "fixed")
{
    void *pointer;
    const uint64_t from = job_now(job->queues[0]);
    EXPECT_OK(weir_host_begin(job->host, 0, CHUNK, WEIR_ACCESS_WRITE, &pointer));
    EXPECT_OK(weir_host_end(job->host, 0, CHUNK, WEIR_ACCESS_WRITE));
    EXPECT_UINT_EQ(job_now(job->queues[0]), from);
}

// While a kernel fills the GPU others wait; of these the one of the higher priority goes first.
JOB_TEST(Host, Priorities, "greatest_priority = -4\n", "none")
{
    const struct weir_limits *limits = weir_device_limits(job->rig.device);
    EXPECT_INT_EQ(limits->priority_lowest, 0);
    EXPECT_INT_EQ(limits->priority_highest, 4);
    own_queues queues = {job_queue(job->rig.device, 0), job_queue(job->rig.device, 0),
                         job_queue(job->rig.device, 1), job_queue(job->rig.device, 4)};
    struct weir_event ends[4];
    for (int i = 0; i < 4; i++) {
        EXPECT_OK(job_spin(job, queues[i], 0, BLOCKS));
        EXPECT_OK(weir_queue_record(queues[i], &ends[i]));
    }
    EXPECT_TRUE(job_time(ends[0]) < job_time(ends[3]));
    EXPECT_TRUE(job_time(ends[3]) < job_time(ends[2]));
    EXPECT_TRUE(job_time(ends[2]) < job_time(ends[1]));
    weir_queue *queue;
    EXPECT_INT_EQ(weir_queue_create(job->rig.device, WEIR_PARAMS(weir_queue, .priority = 5),
                                    &queue),
                  WEIR_ERROR_INVALID);
}

// When a download on queue 1 ends after the beginning of an upload on queue 0, with an upload on
// `between` submitted between them; a byte takes a nanosecond.
static uint64_t end_with(struct job *job, weir_queue *between)
{
    const struct weir_event from = test_record(job->queues[0]);
    EXPECT_OK(weir_queue_copy(job->queues[0], job->memory, 0, job->host, 0, CHUNK));
    EXPECT_OK(weir_queue_copy(between, job->memory, CHUNK, job->host, CHUNK, CHUNK));
    EXPECT_OK(weir_queue_copy(job->queues[1], job->host, 2 * CHUNK, job->memory, 2 * CHUNK, CHUNK));
    const struct weir_event end = test_record(job->queues[1]);
    EXPECT_OK(weir_queue_sync(between, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(job->queues[0], WEIR_FOREVER));
    const uint64_t end_ns = job_time(end);
    return end_ns - job_time(from);
}

JOB_TEST(Legacy, OverlapsWithNothing, "", "none")
{
    weir_queue *legacy = NULL;
    EXPECT_UINT_EQ(end_with(job, job->queues[2]), CHUNK);
    ASSERT_OK(weir_legacy_queue(job->rig.device, &legacy));
    EXPECT_UINT_EQ(end_with(job, legacy), 3 * (uint64_t)CHUNK);
}

// A wait of the host for it is one for all queues.
JOB_TEST(Legacy, ASyncWaitsForAll, "", "none")
{
    weir_queue *legacy = NULL;
    ASSERT_OK(weir_legacy_queue(job->rig.device, &legacy));
    const uint64_t from_ns = job_now(job->queues[3]);
    job_submit(job, 0, 0);
    job_submit(job, 1, 0);
    EXPECT_OK(weir_queue_sync(legacy, WEIR_FOREVER));
    EXPECT_UINT_EQ(job_now(job->queues[3]) - from_ns, 2 * (uint64_t)CHUNK);
}

// What each call costs the host, and what a graph adds.

enum {
    SPIN_NS = 1000 + 64 * 10 + 3 * 100, // of one block
};

// Kernels on queue 0, and one on queue 1 after these if it forks.
static weir_graph *capture_kernels(const struct job *job, int count, bool forks)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(job->queues[0]));
    for (int i = 0; i < count; i++)
        EXPECT_OK(job_spin(job, job->queues[0], 0, 1));
    if (forks) {
        EXPECT_OK(weir_queue_after(job->queues[1], job->queues[0]));
        EXPECT_OK(job_spin(job, job->queues[1], 0, 1));
        EXPECT_OK(weir_queue_after(job->queues[0], job->queues[1]));
    }
    EXPECT_OK(weir_capture_end(job->queues[0], NULL, &graph));
    return graph;
}

// What the host has taken since the last call: a record on a queue without work, and the wait for the one before.
static uint64_t host_ns(const struct job *job)
{
    static uint64_t last_ns;
    const uint64_t before_ns = last_ns;
    last_ns = job_now(job->queues[3]);
    return last_ns - before_ns - 7 - 50;
}

JOB_TEST(Costs, OfEachCall,
         "submit_kernel_ns = 100\nsubmit_copy_ns = 200\nsubmit_mark_ns = 7\n"
         "submit_graph_ns = 300\nsubmit_branch_ns = 40\nwait_ns = 50\n",
         "fixed")
{
    weir_queue *queue = job->queues[2];
    own_graph one = capture_kernels(job, 2, false);
    own_graph two = capture_kernels(job, 2, true);
    ASSERT_TRUE(one && two);
    (void)host_ns(job);
    EXPECT_OK(job_spin(job, queue, 0, 1));
    EXPECT_UINT_EQ(host_ns(job), 100);
    EXPECT_OK(weir_queue_copy(queue, job->memory, 0, job->host, 0, 10));
    EXPECT_UINT_EQ(host_ns(job), 200);
    EXPECT_OK(weir_queue_fill(queue, job->memory, 0, 10, "x", 1));
    EXPECT_UINT_EQ(host_ns(job), 200);
    EXPECT_OK(weir_queue_host_call(queue, rig_count_call, &job->rig.calls));
    EXPECT_UINT_EQ(host_ns(job), 7);
    EXPECT_OK(weir_queue_after(job->queues[1], queue));
    EXPECT_UINT_EQ(host_ns(job), 2 * 7);
    EXPECT_OK(weir_queue_graph(queue, one));
    EXPECT_UINT_EQ(host_ns(job), 300);
    EXPECT_OK(weir_queue_graph(queue, two));
    EXPECT_UINT_EQ(host_ns(job), 300 + 40);
}

// From a record to one after the graph.
static uint64_t length_of(const struct job *job, weir_graph *graph)
{
    EXPECT_OK(weir_queue_copy(job->queues[2], job->memory, 0, job->host, 0, 1000));
    const struct weir_event from = test_record(job->queues[2]);
    EXPECT_OK(weir_queue_graph(job->queues[2], graph));
    const struct weir_event to = test_record(job->queues[2]);
    const uint64_t from_ns = job_time(from);
    return job_time(to) - from_ns;
}

// A graph of several nodes begins later, in place of a signal, and without gaps; one of several branches ends later.
JOB_TEST(Costs, OfGraphs,
         "multiprocessors = 16\ngraph_ns = 4000\nsignal_ns = 250\nkernel_gap_ns = 30\nhost_call_ns "
         "= 60\n",
         "none")
{
    own_graph one = capture_kernels(job, 1, false);
    own_graph row = capture_kernels(job, 2, false);
    own_graph fork = capture_kernels(job, 1, true);
    ASSERT_TRUE(one && row && fork);
    EXPECT_UINT_EQ(length_of(job, one), 250 + SPIN_NS);
    EXPECT_UINT_EQ(length_of(job, row), 4000 + 2 * SPIN_NS);
    EXPECT_UINT_EQ(length_of(job, fork), 4000 + 2 * SPIN_NS + 4000);
    const uint64_t from_ns = job_now(job->queues[1]);
    EXPECT_OK(weir_queue_host_call(job->queues[1], rig_count_call, &job->rig.calls));
    EXPECT_UINT_EQ(job_now(job->queues[1]) - from_ns, 60);
}

// A kernel of two times as many blocks as the GPU holds yields a place after half of what a block takes, and ends
// later by its part of the better one's time.
JOB_TEST(Costs, OfPlacesThatAreYielded,
         "multiprocessors = 16\nthreads_per_multiprocessor = 64\ngreatest_priority = -4\n", "none")
{
    const uint64_t long_ns = 1000 + 32 * 64 * 10 + 3 * 100, wait_ns = 1 + long_ns / 4;
    own_queue better = job_queue(job->rig.device, 4);
    const struct weir_event from = test_record(job->queues[0]);
    EXPECT_OK(job_spin(job, job->queues[0], 0, 32));
    const struct weir_event end = test_record(job->queues[0]);
    EXPECT_OK(job_spin(job, better, 0, 1));
    const struct weir_event better_end = test_record(better);
    const uint64_t from_ns = job_time(from);
    EXPECT_UINT_EQ(job_time(better_end) - from_ns, wait_ns + SPIN_NS);
    EXPECT_UINT_EQ(job_time(end) - from_ns, long_ns + (SPIN_NS + 15) / 16);
}
