// A thread that is cancelled while a call of its waits leaves the queue to the others.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/weir.h>

#include "base/clock.h"
#include "tests/support/test.h"

enum {
    DEADLINE_S = 60, // of a test; a signal ends the process then
};

#define NEVER_NS UINT64_C(20000000000)

struct world {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    struct weir_event event;
    weir_status (*wait)(struct world *world);
    atomic_bool open;    // the queue's host call returns
    atomic_bool waiting; // the thread is about to wait
    atomic_int status;   // of its wait
};

static weir_status hold(void *user)
{
    struct world *world = user;
    while (!atomic_load(&world->open))
        weir_clock_sleep_ns(1000000);
    return WEIR_OK;
}

static bool begin(struct world *world)
{
    atomic_store(&world->status, WEIR_NOT_READY);
    return weir_open(NULL, &world->runtime) == WEIR_OK &&
           weir_device_open(world->runtime, NULL, &world->device) == WEIR_OK &&
           weir_queue_create(world->device, NULL, &world->queue) == WEIR_OK &&
           weir_buffer_create(world->device, WEIR_PARAMS(weir_buffer, .size = 64),
                              &world->buffer) == WEIR_OK &&
           weir_queue_host_call(world->queue, hold, world) == WEIR_OK &&
           weir_queue_record(world->queue, &world->event) == WEIR_OK;
}

static void end(struct world *world)
{
    weir_buffer_destroy(&world->buffer);
    weir_queue_destroy(&world->queue);
    EXPECT_OK(weir_device_close(&world->device));
    EXPECT_OK(weir_close(&world->runtime));
}

static void *wait_and_end(void *user)
{
    struct world *world = user;
    atomic_store(&world->waiting, true);
    atomic_store(&world->status, world->wait(world));
    pthread_testcancel();
    return NULL;
}

static void expect_survived(weir_status (*wait)(struct world *world))
{
    struct world world = {.wait = wait};
    pthread_t thread;
    void *result = NULL;
    alarm(DEADLINE_S);
    ASSERT_TRUE(begin(&world));
    ASSERT_INT_EQ(pthread_create(&thread, NULL, wait_and_end, &world), 0);
    while (!atomic_load(&world.waiting))
        weir_clock_sleep_ns(1000000);
    weir_clock_sleep_ns(50000000); // it waits by now
    pthread_cancel(thread);
    weir_clock_sleep_ns(50000000);
    atomic_store(&world.open, true);
    EXPECT_OK(weir_event_sync(world.event, NEVER_NS));
    EXPECT_OK(weir_queue_sync(world.queue, NEVER_NS));
    EXPECT_INT_EQ(pthread_join(thread, &result), 0);
    EXPECT_INT_EQ(atomic_load(&world.status), WEIR_OK);
    EXPECT_PTR_EQ(result, PTHREAD_CANCELED);
    end(&world);
    alarm(0);
}

static weir_status sync_event(struct world *world)
{
    return weir_event_sync(world->event, NEVER_NS);
}

static weir_status sync_any(struct world *world)
{
    size_t index;
    return weir_event_sync_any(&world->event, 1, NEVER_NS, &index);
}

static weir_status sync_queue(struct world *world)
{
    return weir_queue_sync(world->queue, NEVER_NS);
}

static weir_status upload(struct world *world)
{
    static const char bytes[64];
    return weir_upload(world->queue, world->buffer, 0, bytes, sizeof bytes);
}

static weir_status query(struct world *world)
{
    weir_status status;
    while ((status = weir_event_query(world->event)) == WEIR_NOT_READY) {
    }
    return status;
}

WEIR_TEST(Cancel, InAQuery)
{
    expect_survived(query);
}

WEIR_TEST(Cancel, InASyncOfAnEvent)
{
    expect_survived(sync_event);
}

WEIR_TEST(Cancel, InASyncOfOneOfSeveralEvents)
{
    expect_survived(sync_any);
}

WEIR_TEST(Cancel, InASyncOfAQueue)
{
    expect_survived(sync_queue);
}

WEIR_TEST(Cancel, InAnUpload)
{
    expect_survived(upload);
}
