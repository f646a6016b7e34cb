// The plugin's memory with operations of all kinds but host calls, which the library keeps while they hold a
// queue: what is in use while a thousand are in flight is the same after five times as many of them.
#define _GNU_SOURCE // mallinfo2

#include <malloc.h>

#include "tests/plugins/sim/job.h"

enum {
    BYTES = 4096,
    IN_FLIGHT = 1000,
    GRAPH_EVERY = 8, // rounds of a queue
    WARM = 30000,    // the launches of graphs come at other places of the thousand each time
    MANY = 5 * WARM,
    SLACK = 8192, // bytes: what does not grow with the operations, such as the C library's
};

static struct weir_event record(weir_queue *queue)
{
    struct weir_event event = {0};
    EXPECT_OK(weir_queue_record(queue, &event));
    return event;
}

static void fill(const struct job *job, weir_queue *queue)
{
    EXPECT_OK(weir_queue_fill(queue, job->memory, CHUNK, BYTES, "x", 1));
}

// Of few bytes, which the backend copies.
static void step(struct job *job, int turn, int part)
{
    weir_queue *queue = job->queues[turn];
    if (part == 0)
        EXPECT_OK(weir_queue_copy(queue, job->memory, 0, job->host, 0, BYTES));
    else if (part == 1)
        job_submit(job, turn, 1);
    else
        EXPECT_OK(weir_queue_copy(queue, job->host, BYTES, job->memory, BYTES, BYTES));
}

// An upload and a fill at once, then a kernel and a download.
static weir_graph *capture(struct job *job)
{
    weir_graph *graph = NULL;
    EXPECT_OK(weir_capture_begin(job->queues[0]));
    EXPECT_OK(weir_queue_wait(job->queues[1], record(job->queues[0])));
    step(job, 0, 0);
    fill(job, job->queues[1]);
    EXPECT_OK(weir_queue_wait(job->queues[0], record(job->queues[1])));
    step(job, 0, 1);
    step(job, 0, 2);
    EXPECT_OK(weir_capture_end(job->queues[0], NULL, &graph));
    return graph;
}

// The queues in turns, with the graph now and then; how many operations the round has.
static size_t submit(struct job *job, weir_graph *graph, int queues, int round,
                     struct weir_event *last)
{
    const int turn = round % queues;
    weir_queue *queue = job->queues[turn];
    const bool launches = round / queues % GRAPH_EVERY == 0;
    if (queues > 1 && last->queue)
        EXPECT_OK(weir_queue_wait(queue, *last));
    for (int part = 0; part < 3; part++)
        step(job, turn, part);
    fill(job, queue);
    if (launches)
        EXPECT_OK(weir_queue_graph(queue, graph));
    *last = record(queue);
    return 5 + (queues > 1) + (launches ? 4 : 0);
}

// Submits at least that many operations, and waits after each thousand. Returns the most bytes of all modules that
// were in use before one of these waits.
static size_t most_bytes(struct job *job, weir_graph *graph, int queues, size_t operations)
{
    struct weir_event last = {0};
    size_t done = 0, in_flight = 0, most = 0;
    for (int round = 0; done < operations; round++) {
        const size_t count = submit(job, graph, queues, round, &last);
        done += count;
        in_flight += count;
        if (in_flight < IN_FLIGHT)
            continue;
        const size_t bytes = mallinfo2().uordblks;
        most = bytes > most ? bytes : most;
        EXPECT_OK(weir_event_sync(last, WEIR_FOREVER)); // which comes after all others
        in_flight = 0;
    }
    EXPECT_OK(weir_event_sync(last, WEIR_FOREVER));
    return most;
}

WEIR_TEST(MixedMemory, IsThatOfWhatIsInFlight)
{
    for (int queues = 1; queues <= CHUNKS; queues += CHUNKS - 1) {
        own_job job = {0};
        ASSERT_TRUE(job_start(&job, "", job_section("h200", "2000", ""), "sim"));
        own_graph graph = capture(&job);
        ASSERT_TRUE(graph != NULL);
        const size_t few = most_bytes(&job, graph, queues, WARM);
        EXPECT_UINT_GT(few, 0);
        EXPECT_UINT_LT(most_bytes(&job, graph, queues, MANY), few + SLACK);
    }
}
