// The plugin's memory with operations of all kinds but host calls, which the library keeps while they hold a
// queue: what is in use while a thousand are in flight is the same after five times as many of them.
#define _GNU_SOURCE // mallinfo2

#include <malloc.h>
#include <stdio.h>

#include "tests/plugins/sim/job.h"

enum {
    BYTES = 4096,
    NODES = 5,
    IN_FLIGHT = 1000,
    GRAPH_EVERY = 8, // rounds of a queue
    QUEUES_MOST = 64,
    WARM = 30000, // the launches of graphs come at other places of the thousand each time
    MANY = 5 * WARM,
    SLACK = 8192, // bytes: what does not grow with the operations, such as the C library's
};

struct mixed {
    struct job job;
    weir_graph *graph;
    weir_queue *queues[QUEUES_MOST];
    uint32_t queue_count;
    struct weir_event last; // of the queue before
};

static void up(struct mixed *m, weir_queue *queue)
{
    ASSERT_OK(weir_queue_copy(queue, m->job.memory, 0, m->job.host, 0, BYTES));
}

static void down(struct mixed *m, weir_queue *queue)
{
    ASSERT_OK(weir_queue_copy(queue, m->job.host, BYTES, m->job.memory, BYTES, BYTES));
}

static void work(struct mixed *m, weir_queue *queue)
{
    ASSERT_OK(weir_queue_launch(queue, m->job.rig.kernel, weir_dim(4, 1, 1), weir_dim(64, 1, 1),
                                weir_out(m->job.memory, 0, BYTES), 7u, (uint64_t)3));
}

// An upload and a fill at once, then two kernels and a download.
static void capture(struct mixed *m)
{
    struct weir_event fork, join;
    weir_queue *queue = m->queues[0], *other = NULL;
    ASSERT_OK(weir_queue_create(m->job.rig.device, NULL, &other));
    ASSERT_OK(weir_capture_begin(queue));
    ASSERT_OK(weir_queue_record(queue, &fork));
    ASSERT_OK(weir_queue_wait(other, fork));
    up(m, queue);
    ASSERT_OK(weir_queue_fill(other, m->job.memory, BYTES, BYTES, "x", 1));
    ASSERT_OK(weir_queue_record(other, &join));
    work(m, queue);
    ASSERT_OK(weir_queue_wait(queue, join));
    work(m, queue);
    down(m, queue);
    ASSERT_OK(weir_capture_end(queue, NULL, &m->graph));
    weir_queue_destroy(&other);
}

static bool mixed_open(struct mixed *m, uint32_t queue_count)
{
    *m = (struct mixed){.queue_count = queue_count};
    if (!job_start(&m->job, "", job_section("h200", "2000", ""), "sim"))
        return false;
    for (uint32_t i = 0; i < queue_count; i++)
        EXPECT_OK(weir_queue_create(m->job.rig.device, NULL, &m->queues[i]));
    capture(m);
    return m->graph != NULL;
}

static void mixed_close(struct mixed *m)
{
    weir_graph_destroy(&m->graph);
    for (uint32_t i = 0; i < m->queue_count; i++)
        weir_queue_destroy(&m->queues[i]);
    job_finish(&m->job);
}

// One round of a queue; how many operations that are.
static uint64_t submit(struct mixed *m, uint64_t round)
{
    weir_queue *queue = m->queues[round % m->queue_count];
    const uint64_t turn = round / m->queue_count;
    if (m->queue_count > 1 && m->last.queue)
        EXPECT_OK(weir_queue_wait(queue, m->last));
    up(m, queue);
    work(m, queue);
    EXPECT_OK(weir_queue_fill(queue, m->job.memory, BYTES, BYTES, "y", 1));
    down(m, queue);
    if (turn % GRAPH_EVERY == GRAPH_EVERY - 1)
        EXPECT_OK(weir_queue_graph(queue, m->graph));
    EXPECT_OK(weir_queue_record(queue, &m->last));
    return 5 + (m->queue_count > 1) + (turn % GRAPH_EVERY == GRAPH_EVERY - 1 ? NODES : 0);
}

// Of all modules of the process.
static void note_most(size_t *most)
{
    const size_t bytes = mallinfo2().uordblks;
    if (bytes > *most)
        *most = bytes;
}

// Submits at least that many operations, and waits after each thousand. Returns the most bytes that were in use
// before one of these waits.
static size_t most_bytes(struct mixed *mixed, uint64_t operations)
{
    uint64_t done = 0, in_flight = 0;
    size_t most = 0;
    for (uint64_t round = 0; done < operations; round++) {
        const uint64_t count = submit(mixed, round);
        done += count;
        in_flight += count;
        if (in_flight < IN_FLIGHT)
            continue;
        note_most(&most);
        EXPECT_OK(weir_event_sync(mixed->last, WEIR_FOREVER)); // which comes after all others
        in_flight = 0;
    }
    EXPECT_OK(weir_event_sync(mixed->last, WEIR_FOREVER));
    return most;
}

static void compare(uint32_t queues)
{
    static struct mixed mixed;
    ASSERT_TRUE(mixed_open(&mixed, queues));
    const size_t few = most_bytes(&mixed, WARM);
    const size_t many = most_bytes(&mixed, MANY);
    mixed_close(&mixed);
    printf("%u queues: at most %zu bytes, then %zu\n", (unsigned)queues, few, many);
    EXPECT_UINT_GT(few, 0);
    EXPECT_UINT_LT(many, few + SLACK);
}

WEIR_TEST(MixedMemory, IsThatOfWhatIsInFlight)
{
    compare(1);
    compare(8);
    compare(QUEUES_MOST);
}
