// What a feed prepares ahead reads the run's models and host memory, so the feed's end waits for it.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "pipelines/train/feed.h"
#include "tests/pipelines/train/runs.h"
#include "tests/support/test.h"

#define CHANCE_NS UINT64_C(200000000) // for an end that does not wait

static struct runs runs;
static struct weir_train_run_params params;
static weir_queue *queue;
static train_feed *feed;
static sem_t gate;
static atomic_bool destroyed;
static bool destroyed_before; // what the gate held up has run

static void open_feed(void)
{
    static const struct weir_train_augment_params augment = {.width = 8,
                                                             .height = 8,
                                                             .channels = 1,
                                                             .out_width = 7,
                                                             .out_height = 7,
                                                             .deviation = {1, 1, 1, 1}};
    runs_open(&runs, 1);
    params = runs_params(&runs, WEIR_TRAIN_AUGMENT);
    params.steps = 3; // so that no thread of the loader waits for the third one
    ASSERT_OK(weir_queue_create(runs.device, NULL, &queue));
    const struct train_feed_params feed_params = {
        .run = &params,
        .order = {.seed = 3, .ranks = 1, .passes = 1, .batch = 8},
        .queue = queue,
        .augment = &augment,
    };
    ASSERT_INT_EQ(train_feed_create(&feed_params, 7 * 7, &feed), WEIR_OK);
}

static weir_status pass_gate(void *user)
{
    while (sem_wait(&gate) != 0)
        continue;
    destroyed_before = atomic_load(&destroyed);
    return WEIR_OK;
}

static void *destroy_feed(void *user)
{
    train_feed_destroy(&feed);
    atomic_store(&destroyed, true);
    return NULL;
}

// The third batch waits on the device for the first one's slot, which the gate holds.
WEIR_TEST(TrainFeed, EndsAfterWhatItPrepares)
{
    struct weir_train_batch batch;
    pthread_t thread;
    uint64_t pause_ns = 0;
    open_feed();
    ASSERT_INT_EQ(sem_init(&gate, 0, 0), 0);
    ASSERT_INT_EQ(train_feed_next(feed, &batch), WEIR_OK);
    ASSERT_OK(weir_queue_host_call(queue, pass_gate, NULL));
    ASSERT_INT_EQ(train_feed_release(feed), WEIR_OK);
    ASSERT_INT_EQ(train_feed_next(feed, &batch), WEIR_OK);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, destroy_feed, NULL), 0);
    const uint64_t start_ns = weir_clock_now_ns();
    while (!atomic_load(&destroyed) && weir_clock_pause(start_ns, CHANCE_NS, &pause_ns))
        continue;
    ASSERT_INT_EQ(sem_post(&gate), 0);
    pthread_join(thread, NULL);
    EXPECT_OK(weir_queue_sync(queue, WEIR_FOREVER));
    EXPECT_FALSE(destroyed_before);
    EXPECT_NULL(feed);
    weir_queue_destroy(&queue);
    runs_close(&runs);
    sem_destroy(&gate);
}
