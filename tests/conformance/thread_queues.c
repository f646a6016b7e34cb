// Threads' queues: each thread has its own, which goes with it or with its device.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)
#define THREADS 4

struct worker {
    struct fixture *f;
    weir_buffer *slot;
    unsigned number;
    int errors;
    weir_queue *seen; // the thread's queue
    struct weir_event event;
    struct gate *gate;
};

#define COUNT_ERROR(worker, call) ((worker)->errors += (call) == WEIR_OK ? 0 : 1)

static void run_workers(struct worker *workers, int count, void *(*run)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++)
        EXPECT_INT_EQ(workers[i].errors, 0);
}

static weir_status sleep_a_little(void *unused)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    (void)unused;
    nanosleep(&pause, NULL);
    return WEIR_OK;
}

static bool holds(weir_buffer *buffer, unsigned char value)
{
    const unsigned char *bytes = conform_bytes(buffer);
    bool same = true;
    for (size_t i = 0; i < SIZE; i++)
        same = same && bytes[i] == value;
    return same;
}

static void *look_twice(void *user)
{
    struct worker *worker = user;
    weir_queue *again;
    COUNT_ERROR(worker, weir_thread_queue(worker->f->device, &worker->seen));
    COUNT_ERROR(worker, weir_thread_queue(worker->f->device, &again));
    worker->errors += again != worker->seen;
    COUNT_ERROR(worker, weir_queue_host_call(worker->seen, gate_function, worker->gate));
    COUNT_ERROR(worker, weir_queue_record(worker->seen, &worker->event));
    return NULL;
}

// Each thread has its own, and one that is held holds no other. Its thread may be gone
// before its work is done.
CONFORM(ThreadQueue, EachThreadHasItsOwn)
{
    struct gate *gate = gate_create();
    struct worker worker = {.f = f, .gate = gate};
    weir_queue *mine;
    weir_queue *again;

    ASSERT_OK(weir_thread_queue(f->device, &mine));
    EXPECT_STR_EQ(weir_queue_label(mine), "thread queue");
    EXPECT_TRUE(weir_queue_device(mine) == f->device);
    run_workers(&worker, 1, look_twice);
    EXPECT_FALSE(worker.seen == mine);
    EXPECT_SYNC(mine);
    EXPECT_INT_EQ(weir_event_query(worker.event), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(worker.event, HANG_GUARD_NS));
    EXPECT_OK(weir_thread_queue(f->device, &again));
    EXPECT_TRUE(again == mine);
    gate_destroy(&gate);
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
    EXPECT_INT_EQ(weir_last_error()->status, WEIR_ERROR_INVALID);
    EXPECT_CONTAINS(weir_last_error()->message, "came from weir_thread_queue()");
    EXPECT_SYNC(queue);
}

// A device closes, and a thread that had a queue of it lives on; the next device has
// another queue for it.
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
    struct fixture *f;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting;
    bool go;
    int errors;
};

static void *use_and_stay(void *user)
{
    struct parked *parked = user;
    weir_queue *queue = NULL;
    const bool fine = weir_thread_queue(parked->f->device, &queue) == WEIR_OK &&
                      weir_queue_sync(queue, HANG_GUARD_NS) == WEIR_OK;
    pthread_mutex_lock(&parked->lock);
    parked->errors += !fine;
    parked->waiting++;
    pthread_cond_broadcast(&parked->changed);
    while (!parked->go)
        pthread_cond_wait(&parked->changed, &parked->lock);
    pthread_mutex_unlock(&parked->lock);
    return NULL;
}

// Threads that outlive the device exit when it is long gone.
CONFORM(ThreadQueue, ItsThreadMayOutliveTheDevice)
{
    struct fixture inner = *f;
    struct parked parked = {.f = &inner};
    pthread_t threads[THREADS];

    pthread_mutex_init(&parked.lock, NULL);
    pthread_cond_init(&parked.changed, NULL);
    ASSERT_OK(weir_device_open(f->runtime, NULL, &inner.device));
    for (int i = 0; i < THREADS; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, use_and_stay, &parked), 0);
    pthread_mutex_lock(&parked.lock);
    while (parked.waiting < THREADS)
        pthread_cond_wait(&parked.changed, &parked.lock);
    pthread_mutex_unlock(&parked.lock);
    EXPECT_OK(weir_device_close(&inner.device));
    pthread_mutex_lock(&parked.lock);
    parked.go = true;
    pthread_cond_broadcast(&parked.changed);
    pthread_mutex_unlock(&parked.lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    EXPECT_INT_EQ(parked.errors, 0);
    pthread_mutex_destroy(&parked.lock);
    pthread_cond_destroy(&parked.changed);
}

// The device closes as soon as the threads are done with it, and they exit meanwhile.
CONFORM(ThreadQueue, ItsThreadMayExitWhileTheDeviceCloses)
{
    for (int round = 0; round < 20; round++) {
        struct fixture inner = *f;
        struct parked parked = {.f = &inner, .go = true};
        pthread_t threads[THREADS];

        pthread_mutex_init(&parked.lock, NULL);
        pthread_cond_init(&parked.changed, NULL);
        ASSERT_OK(weir_device_open(f->runtime, NULL, &inner.device));
        for (int i = 0; i < THREADS; i++)
            ASSERT_INT_EQ(pthread_create(&threads[i], NULL, use_and_stay, &parked), 0);
        pthread_mutex_lock(&parked.lock);
        while (parked.waiting < THREADS)
            pthread_cond_wait(&parked.changed, &parked.lock);
        pthread_mutex_unlock(&parked.lock);
        EXPECT_OK(weir_device_close(&inner.device));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        EXPECT_INT_EQ(parked.errors, 0);
        pthread_mutex_destroy(&parked.lock);
        pthread_cond_destroy(&parked.changed);
    }
}

static void *work_and_exit(void *user)
{
    struct worker *worker = user;
    const unsigned char value = (unsigned char)(worker->number + 1);
    weir_queue *queue;
    COUNT_ERROR(worker, weir_thread_queue(worker->f->device, &queue));
    if (!queue)
        return NULL;
    COUNT_ERROR(worker, weir_queue_fill(queue, worker->slot, 0, SIZE, &value, 1));
    COUNT_ERROR(worker, weir_queue_record(queue, &worker->event));
    return NULL;
}

// Threads come and go; their work is done all the same, and their queues are gone.
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
        run_workers(workers, THREADS, work_and_exit);
        for (unsigned i = 0; i < THREADS; i++) {
            EXPECT_OK(weir_event_sync(workers[i].event, HANG_GUARD_NS));
            EXPECT_TRUE(holds(workers[i].slot, (unsigned char)(i + 1)));
            weir_buffer_destroy(&workers[i].slot);
        }
    }
}
