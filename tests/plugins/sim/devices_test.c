// Several threads of the host, each of which has a time of its own, while what a device gets comes one after the
// other, and what a thread does after another one comes after it in virtual time too; the same in each run.
#include <pthread.h>
#include <semaphore.h>

#include "base/clock.h"
#include "tests/plugins/sim/job.h"

enum {
    SUBMIT = 1000, // nanoseconds of a submit
    WAIT = 200,    // and of a wait
    WAKE = 3000,   // until another thread goes on
    COPIES = 8,    // in a row
    ROWS = 20,
    RUNS = 5,
};

// A device with a queue whose copies take a nanosecond a byte.
struct side {
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_buffer *memory;
    weir_buffer *host;
    size_t size; // of the copies in a row
    struct weir_event last;
};

struct two {
    struct job job;
    struct side sides[2];
    struct weir_event begin;
    sem_t turn;
    atomic_bool told;
};

static bool open_side(struct side *side)
{
    side->queue = job_queue(side->device, 0);
    side->other = job_queue(side->device, 0);
    side->memory = test_buffer(side->device, "", CHUNK, WEIR_PLACE_DEVICE);
    side->host = test_buffer(side->device, "", CHUNK, WEIR_PLACE_HOST);
    return side->queue && side->other && side->memory && side->host;
}

static void start(struct two *two)
{
    *two = (struct two){.told = false};
    ASSERT_TRUE(job_start_plain(&two->job,
                                "submit_copy_ns = 1000\nsubmit_mark_ns = 0\nwait_ns = 200\n"
                                "wake_ns = 3000\npeer_gb_per_s = 1\npull_latency_ns = 30\n",
                                "fixed"));
    two->sides[0].device = two->job.rig.device;
    ASSERT_OK(weir_device_open(two->job.rig.runtime, WEIR_PARAMS(weir_device, .select = "1"),
                               &two->sides[1].device));
    for (int i = 0; i < 2; i++)
        ASSERT_TRUE(open_side(&two->sides[i]));
    sem_init(&two->turn, 0, 0);
    ASSERT_OK(
        weir_queue_copy(two->sides[0].queue, two->sides[0].memory, 0, two->sides[0].host, 0, 5000));
    ASSERT_OK(weir_queue_record(two->sides[0].queue, &two->begin));
    ASSERT_OK(weir_event_sync(two->begin, WEIR_FOREVER));
}

static void finish(struct two *two)
{
    for (int i = 0; i < 2; i++) {
        weir_queue_destroy(&two->sides[i].queue);
        weir_queue_destroy(&two->sides[i].other);
        weir_buffer_destroy(&two->sides[i].memory);
        weir_buffer_destroy(&two->sides[i].host);
    }
    EXPECT_OK(weir_device_close(&two->sides[1].device));
    job_finish(&two->job);
    sem_destroy(&two->turn);
}

#define HOSTS_TEST(suite, name) \
    WEIR_TEST_WITH(suite, name, struct two, two, (start(two), true), finish(two))

static void copy(const struct side *side, weir_queue *queue, size_t size)
{
    EXPECT_OK(weir_queue_copy(queue, side->memory, 0, side->host, 0, size));
}

static void copy_and_wait(struct side *side, weir_queue *queue)
{
    copy(side, queue, 100);
    EXPECT_OK(weir_queue_record(queue, &side->last));
    EXPECT_OK(weir_event_sync(side->last, WEIR_FOREVER));
}

static uint64_t since(const struct two *two, struct weir_event event)
{
    return job_time(event) - job_time(two->begin);
}

// Rows of copies, and a wait after each.
static void *work(void *argument)
{
    struct side *side = argument;
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COPIES; i++)
            copy(side, side->queue, side->size);
        EXPECT_OK(weir_queue_record(side->queue, &side->last));
        EXPECT_OK(weir_event_sync(side->last, WEIR_FOREVER));
    }
    return NULL;
}

static void work_both(struct side *first, struct side *second, size_t second_size)
{
    pthread_t threads[2];
    first->size = 100;
    second->size = second_size;
    ASSERT_INT_EQ(pthread_create(&threads[0], NULL, work, first), 0);
    ASSERT_INT_EQ(pthread_create(&threads[1], NULL, work, second), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

// Submits to two devices do not wait for each other, and of two waits the one that ends first is the first to return.
WEIR_TEST(Hosts, AThreadForEachDevice)
{
    const uint64_t rows[] = {COPIES * SUBMIT + 100 + WAIT, SUBMIT + COPIES * 5000 + WAIT};
    struct two two;
    for (int i = 0; i < RUNS; i++) {
        start(&two);
        work_both(&two.sides[0], &two.sides[1], 5000);
        for (int side = 0; side < 2; side++)
            EXPECT_UINT_EQ(since(&two, two.sides[side].last), WAKE + ROWS * rows[side]);
        finish(&two);
    }
}

// Those to one device do.
HOSTS_TEST(Hosts, TwoThreadsForOneDevice)
{
    struct side second = two->sides[0];
    second.queue = second.other;
    work_both(&two->sides[0], &second, 100);
    const uint64_t first_ns = since(two, two->sides[0].last);
    const uint64_t second_ns = since(two, second.last);
    const uint64_t last_ns = first_ns > second_ns ? first_ns : second_ns;
    EXPECT_TRUE(last_ns >= WAKE + 2 * ROWS * COPIES * SUBMIT);
}

// A thread that never sleeps gets an event from another one.
static void *wait_for_told(void *argument)
{
    struct two *two = argument;
    struct side *side = &two->sides[1];
    while (!atomic_load(&two->told)) {
    }
    EXPECT_OK(weir_queue_wait(side->queue, two->sides[0].last));
    copy_and_wait(side, side->other);
    return NULL;
}

HOSTS_TEST(Hosts, AnEventIsHandedOver)
{
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, wait_for_told, two), 0);
    for (int i = 0; i < COPIES; i++)
        copy(&two->sides[0], two->sides[0].queue, 100);
    EXPECT_OK(weir_queue_record(two->sides[0].queue, &two->sides[0].last));
    atomic_store(&two->told, true);
    pthread_join(thread, NULL);
    EXPECT_UINT_EQ(since(two, two->sides[0].last), WAIT + COPIES * SUBMIT + 100);
    EXPECT_UINT_EQ(since(two, two->sides[1].last), WAIT + COPIES * SUBMIT + SUBMIT + 100);
}

// A thread sleeps until another one has waited for an event.
static void *sleep_until_turn(void *argument)
{
    struct two *two = argument;
    sem_wait(&two->turn);
    copy_and_wait(&two->sides[1], two->sides[1].queue);
    return NULL;
}

WEIR_TEST(Hosts, AThreadIsWoken)
{
    pthread_t thread;
    struct two two;
    for (int i = 0; i < RUNS; i++) {
        start(&two);
        ASSERT_INT_EQ(pthread_create(&thread, NULL, sleep_until_turn, &two), 0);
        copy(&two.sides[0], two.sides[0].queue, 5000);
        EXPECT_OK(weir_queue_record(two.sides[0].queue, &two.sides[0].last));
        EXPECT_OK(weir_event_sync(two.sides[0].last, WEIR_FOREVER));
        sem_post(&two.turn);
        pthread_join(thread, NULL);
        EXPECT_UINT_EQ(since(&two, two.sides[1].last),
                       WAIT + SUBMIT + 5000 + WAIT + WAKE + SUBMIT + 100);
        finish(&two);
    }
}

// What one thread has submitted meanwhile does not put off another one that has not called yet.
HOSTS_TEST(Hosts, AThreadBeginsLate)
{
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, sleep_until_turn, two), 0);
    for (int i = 0; i < 100; i++)
        copy(&two->sides[0], two->sides[0].queue, 100);
    sem_post(&two->turn);
    pthread_join(thread, NULL);
    EXPECT_UINT_EQ(since(two, two->sides[1].last), WAIT + WAKE + SUBMIT + 100);
}

// A thread that has yet to make its first call comes before a wait that ends later.
static void *run_until_late(void *argument)
{
    struct two *two = argument;
    const uint64_t until_ns = weir_clock_now_ns() + UINT64_C(50000000);
    while (weir_clock_now_ns() < until_ns) {
    }
    copy_and_wait(&two->sides[1], two->sides[1].queue);
    return NULL;
}

HOSTS_TEST(Hosts, AThreadRunsBeforeItsFirstCall)
{
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, run_until_late, two), 0);
    copy_and_wait(&two->sides[0], two->sides[0].queue);
    pthread_join(thread, NULL);
    EXPECT_UINT_EQ(since(two, two->sides[1].last), WAIT + WAKE + SUBMIT + 100);
}

// How long a copy takes to or from the other device, on a queue of this one.
static uint64_t copy_between(struct two *two, const struct side *to, const struct side *from)
{
    weir_queue *queue = two->sides[0].queue;
    const uint64_t from_ns = job_now(queue);
    EXPECT_OK(weir_queue_copy(queue, to->memory, 0, from->memory, 0, 100));
    return job_now(queue) - from_ns - WAIT - SUBMIT;
}

HOSTS_TEST(Hosts, APullHasItsLatency)
{
    EXPECT_UINT_EQ(copy_between(two, &two->sides[1], &two->sides[0]), 100);
    EXPECT_UINT_EQ(copy_between(two, &two->sides[0], &two->sides[1]), 130);
}

// Two events of one queue, which are asked for in turn: each is complete in the end.
HOSTS_TEST(Hosts, EventsThatAreAskedForInTurn)
{
    struct side *side = &two->sides[0];
    struct weir_event events[2];
    bool complete = false;
    for (int i = 0; i < 2; i++) {
        copy(side, side->queue, 50000);
        EXPECT_OK(weir_queue_record(side->queue, &events[i]));
    }
    for (int i = 0; i < 1000 && !complete; i++)
        complete = weir_event_query(events[i % 2]) == WEIR_OK;
    EXPECT_TRUE(complete);
    EXPECT_OK(weir_queue_sync(side->queue, WEIR_FOREVER));
}
