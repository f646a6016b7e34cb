// Threads' default queues: each thread has its own, which is destroyed with the thread
// or with its device.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)
#define THREADS 4

struct worker {
    struct fixture *f;
    weir_buffer *slot;
    unsigned number;
    weir_queue *seen; // the thread's queue
    struct weir_event event;
    struct gate *gate;
};

static void *look_twice(void *user)
{
    struct worker *worker = user;
    weir_queue *again;
    EXPECT_OK(weir_thread_queue(worker->f->device, &worker->seen));
    EXPECT_OK(weir_thread_queue(worker->f->device, &again));
    EXPECT_PTR_EQ(again, worker->seen);
    EXPECT_OK(weir_queue_host_call(worker->seen, gate_function, worker->gate));
    EXPECT_OK(weir_queue_record(worker->seen, &worker->event));
    return NULL;
}

// Each thread has its own queue, and a held one does not hold others. A thread may end
// before its queue's work is done.
CONFORM(ThreadQueue, EachThreadHasItsOwn)
{
    own_gate gate = gate_create();
    struct worker worker = {.f = f, .gate = gate};
    weir_queue *mine;
    weir_queue *again;

    ASSERT_OK(weir_thread_queue(f->device, &mine));
    EXPECT_STR_EQ(weir_queue_label(mine), "thread queue");
    EXPECT_TRUE(weir_queue_device(mine) == f->device);
    conform_run_threads(look_twice, &worker, sizeof worker, 1);
    EXPECT_FALSE(worker.seen == mine);
    EXPECT_SYNC(mine);
    EXPECT_INT_EQ(weir_event_query(worker.event), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(worker.event, HANG_GUARD_NS));
    EXPECT_OK(weir_thread_queue(f->device, &again));
    EXPECT_TRUE(again == mine);
}

struct in_host_call {
    weir_device *device;
    weir_queue *queue;
    weir_status status;
    char message[256];
};

static weir_status ask_in_host_call(void *user)
{
    struct in_host_call *asked = user;
    asked->status = weir_thread_queue(asked->device, &asked->queue);
    snprintf(asked->message, sizeof asked->message, "%.255s", weir_last_error()->message);
    return WEIR_OK;
}

CONFORM(ThreadQueue, Refusals)
{
    weir_queue *queue = NULL;
    struct in_host_call asked = {.device = f->device};

    EXPECT_INVALID(weir_thread_queue(NULL, &queue), "device is NULL");
    EXPECT_INVALID(weir_thread_queue(f->device, NULL), "out_queue is NULL");
    ASSERT_OK(weir_thread_queue(f->device, &queue));
    ASSERT_OK(weir_queue_host_call(queue, ask_in_host_call, &asked));
    ASSERT_SYNC(queue);
    EXPECT_INT_EQ(asked.status, WEIR_ERROR_INVALID);
    EXPECT_NULL(asked.queue);
    EXPECT_CONTAINS(asked.message, "has no queue of its own");

    weir_queue *mine = queue;
    weir_error_set(NULL);
    weir_queue_destroy(&mine);
    EXPECT_NULL(mine);
    EXPECT_FAILURE(weir_last_error()->status, WEIR_ERROR_INVALID, "came from weir_thread_queue()");
    EXPECT_SYNC(queue);
}

// A device is closed while a thread that had one of its queues continues; the next
// device has another queue for the thread.
CONFORM(ThreadQueue, EndsWithItsDevice)
{
    for (int round = 0; round < 3; round++) {
        weir_device *device = NULL;
        weir_queue *queue;
        weir_queue *legacy;
        atomic_int count = 0;
        ASSERT_OK(weir_device_open(f->runtime, NULL, &device));
        ASSERT_OK(weir_thread_queue(device, &queue));
        ASSERT_OK(weir_legacy_queue(device, &legacy));
        ASSERT_OK(weir_queue_host_call(queue, sleep_a_little, NULL));
        ASSERT_OK(weir_queue_host_call(queue, count_up, &count));
        ASSERT_OK(weir_queue_host_call(legacy, count_up, &count));
        ASSERT_OK(weir_device_close(&device)); // waits for both
        EXPECT_INT_EQ(atomic_load(&count), 2);
    }
}

struct parked {
    weir_device *device;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting;
    bool go;
};

static void *use_and_stay(void *user)
{
    struct parked *parked = user;
    weir_queue *queue = NULL;
    EXPECT_OK(weir_thread_queue(parked->device, &queue));
    if (queue)
        EXPECT_SYNC(queue);
    pthread_mutex_lock(&parked->lock);
    parked->waiting++;
    pthread_cond_broadcast(&parked->changed);
    while (!parked->go)
        pthread_cond_wait(&parked->changed, &parked->lock);
    pthread_mutex_unlock(&parked->lock);
    return NULL;
}

// Closes a device when threads are done with it: they exit afterwards, or meanwhile.
static void close_under_threads(struct fixture *f, bool meanwhile)
{
    struct parked parked = {.go = meanwhile};
    pthread_t threads[THREADS];

    pthread_mutex_init(&parked.lock, NULL);
    pthread_cond_init(&parked.changed, NULL);
    ASSERT_OK(weir_device_open(f->runtime, NULL, &parked.device));
    for (int i = 0; i < THREADS; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, use_and_stay, &parked), 0);
    pthread_mutex_lock(&parked.lock);
    while (parked.waiting < THREADS)
        pthread_cond_wait(&parked.changed, &parked.lock);
    pthread_mutex_unlock(&parked.lock);
    EXPECT_OK(weir_device_close(&parked.device));
    pthread_mutex_lock(&parked.lock);
    parked.go = true;
    pthread_cond_broadcast(&parked.changed);
    pthread_mutex_unlock(&parked.lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&parked.lock);
    pthread_cond_destroy(&parked.changed);
}

CONFORM(ThreadQueue, ItsThreadMayOutliveTheDevice)
{
    close_under_threads(f, false);
}

CONFORM(ThreadQueue, ItsThreadMayExitWhileTheDeviceCloses)
{
    for (int round = 0; round < 20; round++)
        close_under_threads(f, true);
}

static void *work_and_exit(void *user)
{
    struct worker *worker = user;
    const unsigned char value = (unsigned char)(worker->number + 1);
    weir_queue *queue;
    EXPECT_OK(weir_thread_queue(worker->f->device, &queue));
    if (!queue)
        return NULL;
    EXPECT_OK(weir_queue_fill(queue, worker->slot, 0, SIZE, &value, 1));
    EXPECT_OK(weir_queue_record(queue, &worker->event));
    return NULL;
}

// Threads start and end; their work is done in any case, and their queues are
// destroyed.
CONFORM(ThreadQueue, GoesWithItsThread)
{
    struct worker workers[THREADS];

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < THREADS; i++)
            workers[i] = (struct worker){
                .f = f,
                .slot = conform_host_buffer(f, SIZE),
                .number = i,
            };
        conform_run_threads(work_and_exit, workers, sizeof *workers, THREADS);
        for (unsigned i = 0; i < THREADS; i++) {
            EXPECT_OK(weir_event_sync(workers[i].event, HANG_GUARD_NS));
            EXPECT_TRUE(conform_is_filled(workers[i].slot, (unsigned char)(i + 1)));
            weir_buffer_destroy(&workers[i].slot);
        }
    }
}
