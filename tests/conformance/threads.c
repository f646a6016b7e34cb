// Several threads on one queue, on many queues, and on objects that come and go.
#include <pthread.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)
#define THREADS 4

struct worker {
    struct fixture *f;
    weir_queue *queue;
    weir_buffer *buffer;
    unsigned number;
    _Atomic(uint64_t) *shared_queue;
    _Atomic(uint64_t) *shared_sequence;
    atomic_bool *stop;
};

// Each thread fills its own part; the part's own operations stay in order.
static void *fill_part(void *user)
{
    struct worker *worker = user;
    const size_t part = SIZE / THREADS;

    for (unsigned i = 0; i < 500 && !weir_test_has_failed(); i++) {
        const unsigned char value = (unsigned char)(worker->number * 16 + i % 16);
        EXPECT_OK(
            weir_queue_fill(worker->queue, worker->buffer, worker->number * part, part, &value, 1));
        const struct weir_event event = test_record(worker->queue);
        if (i % 50 == 0)
            EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    }
    return NULL;
}

CONFORM(Threads, ShareAQueue)
{
    own_buffer buffer = conform_host_buffer(f, SIZE);
    struct worker workers[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (struct worker){.queue = f->queue, .buffer = buffer, .number = i};
    conform_run_threads(fill_part, workers, sizeof *workers, THREADS);
    ASSERT_SYNC(f->queue);
    for (size_t i = 0; i < SIZE; i++)
        ASSERT_INT_EQ(conform_bytes(buffer)[i], i / (SIZE / THREADS) * 16 + 499 % 16);
}

static void *come_and_go(void *user)
{
    struct worker *worker = user;
    struct fixture *f = worker->f;
    unsigned char bytes[64];
    unsigned char back[64];

    memset(bytes, (int)worker->number, sizeof bytes);
    for (int i = 0; i < 60; i++) {
        weir_queue *queue = conform_queue(f, "a thread's");
        weir_buffer *buffer = conform_device_buffer(f, sizeof bytes);
        weir_buffer *other = conform_device_buffer(f, sizeof bytes);
        memset(back, 0xff, sizeof back);
        EXPECT_OK(weir_upload(queue, buffer, 0, bytes, sizeof bytes));
        EXPECT_OK(weir_queue_copy(queue, other, 0, buffer, 0, sizeof bytes));
        const struct weir_event event = test_record(queue);
        if (i % 2) { // destroyed in use
            EXPECT_OK(weir_queue_wait(worker->queue, event));
        } else {
            EXPECT_OK(weir_download(queue, back, other, 0, sizeof back));
            EXPECT_MEM_EQ(back, bytes, sizeof bytes);
        }
        weir_buffer_destroy(&buffer);
        weir_buffer_destroy(&other);
        weir_queue_destroy(&queue);
        EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    }
    return NULL;
}

// Creates, transfers, waits and destroys in use from four threads at once.
CONFORM(Threads, ComeAndGo)
{
    struct worker workers[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (struct worker){.f = f, .queue = f->queue, .number = i + 1};
    conform_run_threads(come_and_go, workers, sizeof *workers, THREADS);
    EXPECT_SYNC(f->queue);
}

// One thread creates and destroys queues, the others query their events, before
// and after.
static void *make_events(void *user)
{
    struct worker *worker = user;
    for (int i = 0; i < 300; i++) {
        own_queue queue = conform_queue(worker->f, "to go");
        const struct weir_event event = test_record(queue);
        atomic_store(worker->shared_sequence, event.sequence);
        atomic_store(worker->shared_queue, event.queue);
    }
    atomic_store(worker->stop, true);
    return NULL;
}

static void *ask_for_events(void *user)
{
    struct worker *worker = user;
    while (!atomic_load(worker->stop) && !weir_test_has_failed()) {
        const struct weir_event event = {atomic_load(worker->shared_queue),
                                         atomic_load(worker->shared_sequence)};
        if (event.queue)
            EXPECT_INT_GE(weir_event_query(event), 0);
    }
    return NULL;
}

static void *work_on_events(void *user)
{
    struct worker *worker = user;
    return worker->number == 0 ? make_events(user) : ask_for_events(user);
}

CONFORM(Threads, AskForEventsOfQueuesThatGo)
{
    struct worker workers[THREADS];
    _Atomic(uint64_t) queue = 0;
    _Atomic(uint64_t) sequence = 0;
    atomic_bool stop = false;

    for (unsigned i = 0; i < THREADS; i++)
        workers[i] = (struct worker){.f = f,
                                     .number = i,
                                     .shared_queue = &queue,
                                     .shared_sequence = &sequence,
                                     .stop = &stop};
    conform_run_threads(work_on_events, workers, sizeof *workers, THREADS);
}

// Host calls of one queue run while another thread recovers its failure.
static void *fail_and_recover(void *user)
{
    struct worker *worker = user;
    for (int i = 0; i < 100; i++) {
        WEIR_IGNORE(weir_queue_host_call(worker->queue, fail_plainly, NULL));
        weir_status status = weir_queue_sync(worker->queue, HANG_GUARD_NS);
        EXPECT_TRUE(status == WEIR_OK || status == WEIR_ERROR_HOST_CALL);
        EXPECT_OK(weir_queue_recover(worker->queue));
    }
    return NULL;
}

CONFORM(Threads, FailAndRecoverTogether)
{
    struct worker workers[2];

    for (unsigned i = 0; i < 2; i++)
        workers[i] = (struct worker){.queue = f->queue};
    conform_run_threads(fail_and_recover, workers, sizeof *workers, 2);
    EXPECT_OK(weir_queue_recover(f->queue));
    EXPECT_SYNC(f->queue);
}

CONFORM(Threads, ErrorsAreTheThreadsOwn)
{
    EXPECT_INVALID(weir_queue_fill(f->queue, NULL, 0, 1, "", 1), "no buffer");
    struct worker worker = {.f = f, .queue = f->queue, .number = 1};
    conform_run_threads(come_and_go, &worker, sizeof worker, 1);
    EXPECT_CONTAINS(weir_last_error()->message, "no buffer");
    EXPECT_SYNC(f->queue);
}

// Threads' default queues: each thread has its own, which is destroyed with the thread
// or with its device.

struct owner {
    struct fixture *f;
    weir_buffer *slot;
    unsigned number;
    weir_queue *seen; // the thread's queue
    struct weir_event event;
    struct gate *gate;
};

static void *look_twice(void *user)
{
    struct owner *owner = user;
    weir_queue *again;
    EXPECT_OK(weir_thread_queue(owner->f->device, &owner->seen));
    EXPECT_OK(weir_thread_queue(owner->f->device, &again));
    EXPECT_PTR_EQ(again, owner->seen);
    EXPECT_OK(weir_queue_host_call(owner->seen, gate_pass, owner->gate));
    EXPECT_OK(weir_queue_record(owner->seen, &owner->event));
    return NULL;
}

// Each thread has its own queue, and a held one does not hold others. A thread may end
// before its queue's work is done.
CONFORM(ThreadQueue, EachThreadHasItsOwn)
{
    own_gate gate = gate_create();
    struct owner owner = {.f = f, .gate = gate};
    weir_queue *mine;
    weir_queue *again;

    ASSERT_OK(weir_thread_queue(f->device, &mine));
    EXPECT_STR_EQ(weir_queue_label(mine), "thread queue");
    EXPECT_TRUE(weir_queue_device(mine) == f->device);
    conform_run_threads(look_twice, &owner, sizeof owner, 1);
    EXPECT_FALSE(owner.seen == mine);
    EXPECT_SYNC(mine);
    EXPECT_INT_EQ(weir_event_query(owner.event), WEIR_NOT_READY);
    gate_open(gate);
    EXPECT_OK(weir_event_sync(owner.event, HANG_GUARD_NS));
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
    pthread_barrier_t used;
    pthread_barrier_t closed;
    bool meanwhile; // the threads exit while the device closes
};

static void *use_and_stay(void *user)
{
    struct parked *parked = user;
    weir_queue *queue = NULL;
    EXPECT_OK(weir_thread_queue(parked->device, &queue));
    if (queue)
        EXPECT_SYNC(queue);
    pthread_barrier_wait(&parked->used);
    if (!parked->meanwhile)
        pthread_barrier_wait(&parked->closed);
    return NULL;
}

// Closes a device when threads are done with it: they exit afterwards, or meanwhile.
static void close_under_threads(struct fixture *f, bool meanwhile)
{
    struct parked parked = {.meanwhile = meanwhile};
    pthread_t threads[THREADS];

    ASSERT_INT_EQ(pthread_barrier_init(&parked.used, NULL, THREADS + 1), 0);
    ASSERT_INT_EQ(pthread_barrier_init(&parked.closed, NULL, THREADS + 1), 0);
    ASSERT_OK(weir_device_open(f->runtime, NULL, &parked.device));
    for (int i = 0; i < THREADS; i++)
        ASSERT_INT_EQ(pthread_create(&threads[i], NULL, use_and_stay, &parked), 0);
    pthread_barrier_wait(&parked.used);
    EXPECT_OK(weir_device_close(&parked.device));
    if (!meanwhile)
        pthread_barrier_wait(&parked.closed);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&parked.used);
    pthread_barrier_destroy(&parked.closed);
}

CONFORM(ThreadQueue, ItsThreadMayExitAfterTheDeviceOrWhileItCloses)
{
    close_under_threads(f, false);
    for (int round = 0; round < 20; round++)
        close_under_threads(f, true);
}

static void *work_and_exit(void *user)
{
    struct owner *owner = user;
    const unsigned char value = (unsigned char)(owner->number + 1);
    weir_queue *queue;
    EXPECT_OK(weir_thread_queue(owner->f->device, &queue));
    if (!queue)
        return NULL;
    EXPECT_OK(weir_queue_fill(queue, owner->slot, 0, SIZE, &value, 1));
    EXPECT_OK(weir_queue_record(queue, &owner->event));
    return NULL;
}

// Threads start and end; their work is done in any case, and their queues are
// destroyed.
CONFORM(ThreadQueue, GoesWithItsThread)
{
    struct owner workers[THREADS];

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < THREADS; i++)
            workers[i] = (struct owner){
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
