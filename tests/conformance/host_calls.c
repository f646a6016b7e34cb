// Host calls: in the order of their queue, on a library thread, and without
// delaying other queues.
#include <pthread.h>

#include "tests/conformance/suite.h"

#define SIZE ((size_t)4096)

struct reading {
    const unsigned char *bytes;
    size_t size;
    unsigned char seen_first;
    unsigned char seen_last;
};

static weir_status read_bytes(void *user)
{
    struct reading *reading = user;
    reading->seen_first = reading->bytes[0];
    reading->seen_last = reading->bytes[reading->size - 1];
    return WEIR_OK;
}

struct submitter {
    weir_queue *queue;
    weir_queue *other;
    weir_buffer *buffer;
    struct weir_event event;
    weir_status status;
};

static weir_status submit_more(void *user)
{
    struct submitter *submitter = user;
    const unsigned char value = 3;
    submitter->status = weir_queue_fill(submitter->queue, submitter->buffer, 0, SIZE, &value, 1);
    if (submitter->status == WEIR_OK)
        submitter->status = weir_queue_record(submitter->queue, &submitter->event);
    if (submitter->status == WEIR_OK)
        submitter->status = weir_queue_wait(submitter->other, submitter->event);
    return submitter->status;
}

// The function's own submission comes after the work that is already there: its
// fill with 3 overwrites the 2 that was submitted before the function ran.
CONFORM(HostCall, MaySubmit)
{
    own_queue other = conform_queue(f, "other");
    own_buffer buffer = conform_host_buffer(f, SIZE);
    struct submitter submitter = {.queue = f->queue, .other = other, .buffer = buffer, .status = 1};

    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_host_call(f->queue, submit_more, &submitter));
    conform_fill(f->queue, buffer, 2);
    const struct weir_event last = test_record(f->queue);
    gate_open(gate);
    ASSERT_OK(weir_event_sync(last, HANG_GUARD_NS));
    EXPECT_INT_EQ(submitter.status, WEIR_OK);
    EXPECT_SYNC(other);
    EXPECT_SYNC(f->queue);
    EXPECT_INT_EQ(conform_bytes(buffer)[0], 3);
    EXPECT_INT_EQ(conform_bytes(buffer)[SIZE - 1], 3);
}

struct waiter {
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_pool *pool;
    struct weir_event event;
    pthread_t thread;
};

#define REFUSED_INSIDE(call) EXPECT_REFUSED(call, WEIR_ERROR_INVALID, "host call")

static weir_status try_to_wait(void *user)
{
    struct waiter *waiter = user;
    unsigned char bytes[16] = {0};
    weir_device *device = waiter->device;
    weir_buffer *buffer = NULL;
    size_t index;

    REFUSED_INSIDE(weir_event_sync(waiter->event, WEIR_FOREVER));
    REFUSED_INSIDE(weir_event_sync_any(&waiter->event, 1, WEIR_FOREVER, &index));
    REFUSED_INSIDE(weir_event_sync_all(&waiter->event, 1, WEIR_FOREVER));
    REFUSED_INSIDE(weir_queue_sync(waiter->queue, WEIR_FOREVER));
    REFUSED_INSIDE(weir_queue_recover(waiter->queue));
    REFUSED_INSIDE(weir_upload(waiter->queue, waiter->buffer, 0, bytes, sizeof bytes));
    REFUSED_INSIDE(weir_download(waiter->queue, bytes, waiter->buffer, 0, sizeof bytes));
    REFUSED_INSIDE(weir_device_trim(waiter->device));
    REFUSED_INSIDE(weir_device_close(&device));
    REFUSED_INSIDE(weir_pool_trim(waiter->pool, 0));
    EXPECT_OK(weir_pool_allocate(waiter->pool, waiter->queue, SIZE, &buffer));
    EXPECT_OK(weir_pool_free(waiter->queue, &buffer));
    waiter->thread = pthread_self();
    return WEIR_NOT_READY; // no failure
}

// It runs on a thread of the library, and may allocate from pools.
CONFORM(HostCall, MayNotWait)
{
    own_pool pool = conform_pool(f, WEIR_PLACE_DEVICE, 0);
    own_queue other = conform_queue(f, "other");
    own_buffer buffer = conform_device_buffer(f, SIZE);
    struct waiter waiter = {.device = f->device,
                            .queue = other,
                            .buffer = buffer,
                            .pool = pool,
                            .thread = pthread_self()};

    ASSERT_OK(weir_queue_record(other, &waiter.event));
    ASSERT_OK(weir_queue_host_call(f->queue, try_to_wait, &waiter));
    ASSERT_SYNC(f->queue);
    EXPECT_FALSE(pthread_equal(waiter.thread, pthread_self()));
    EXPECT_SYNC(other);
}

struct upload {
    weir_queue *queue;
    weir_buffer *buffer;
    weir_status status;
};

static void *upload_behind_gate(void *user)
{
    struct upload *upload = user;
    const unsigned char bytes[64] = {1};
    upload->status = weir_upload(upload->queue, upload->buffer, 0, bytes, sizeof bytes);
    return NULL;
}

// While one queue's function blocks, with a blocking transfer after it, every kind of work of another queue runs:
// copies, host calls, blocking transfers.
CONFORM(HostCall, DelaysNoOtherQueue)
{
    atomic_int count = 0;
    own_queue slow = conform_queue(f, "slow");
    own_queue quick = conform_queue(f, "quick");
    own_buffer a = conform_device_buffer(f, SIZE);
    own_buffer b = conform_device_buffer(f, SIZE);
    struct upload upload = {.queue = slow, .buffer = a, .status = 1};
    pthread_t thread;

    own_gate gate = gate_on(slow);
    const struct weir_event end = test_record(slow);
    ASSERT_TRUE(gate_await(gate, 1));
    ASSERT_INT_EQ(pthread_create(&thread, NULL, upload_behind_gate, &upload), 0);
    for (int i = 0; i < 20; i++) {
        conform_write(quick, b, (unsigned)i);
        for (int k = 0; k < 5; k++)
            ASSERT_OK(weir_queue_host_call(quick, count_up, &count));
        EXPECT_TRUE(conform_holds(quick, b, 0, SIZE, (unsigned)i, 0));
    }
    EXPECT_SYNC(quick);
    EXPECT_INT_EQ(atomic_load(&count), 100);
    EXPECT_INT_EQ(weir_event_query(end), WEIR_NOT_READY);
    gate_open(gate);
    pthread_join(thread, NULL);
    EXPECT_INT_EQ(upload.status, WEIR_OK);
    EXPECT_SYNC(slow);
}

// Each of three queues is gated and waits for the one before; the gates open in
// the worst order.
CONFORM(HostCall, GatedChainOfThreeQueues)
{
    struct gate *gates[3];
    own_queues queues = {NULL};
    own_buffers buffers = {NULL};
    struct weir_event events[3];

    for (int i = 0; i < 4; i++)
        buffers[i] = conform_host_buffer(f, SIZE);
    memset(conform_bytes(buffers[0]), 0x77, SIZE);
    for (int i = 0; i < 3; i++) {
        queues[i] = conform_queue(f, "link");
        gates[i] = gate_on(queues[i]);
        if (i > 0)
            ASSERT_OK(weir_queue_wait(queues[i], events[i - 1]));
        ASSERT_OK(weir_queue_copy(queues[i], buffers[i + 1], 0, buffers[i], 0, SIZE));
        ASSERT_OK(weir_queue_record(queues[i], &events[i]));
    }
    for (int i = 2; i >= 0; i--) {
        for (int k = 0; k < 3; k++)
            EXPECT_INT_EQ(weir_event_query(events[k]), WEIR_NOT_READY);
        gate_open(gates[i]);
    }
    EXPECT_OK(weir_event_sync(events[2], HANG_GUARD_NS));
    EXPECT_OK(weir_event_query(events[0]));
    EXPECT_OK(weir_event_query(events[1]));
    EXPECT_MEM_EQ(conform_bytes(buffers[3]), conform_bytes(buffers[0]), SIZE);
    for (int i = 0; i < 3; i++)
        gate_destroy(&gates[i]);
}

// Queues change between held and free while work is submitted: nothing is lost or reordered. Earlier work is done when
// the function runs, later work has not begun.
CONFORM(HostCall, AlternatesWithOtherWork)
{
    enum {
        ROUNDS = 500
    };
    own_queues queues = {conform_queue(f, "a"), conform_queue(f, "b")};
    own_buffer buffer = conform_host_buffer(f, SIZE);
    own_buffer device = conform_device_buffer(f, SIZE);
    struct reading readings[ROUNDS];
    struct weir_event event;

    for (unsigned i = 0; i < ROUNDS; i++) {
        const unsigned char value = (unsigned char)i;
        weir_queue *queue = queues[i % 2];
        readings[i] = (struct reading){.bytes = conform_bytes(buffer), .size = SIZE};
        if (i > 0)
            ASSERT_OK(weir_queue_wait(queue, event));
        ASSERT_OK(weir_queue_fill(queue, i % 3 ? device : buffer, 0, SIZE, &value, 1));
        if (i % 3)
            ASSERT_OK(weir_queue_copy(queue, buffer, 0, device, 0, SIZE));
        ASSERT_OK(weir_queue_host_call(queue, read_bytes, &readings[i]));
        ASSERT_OK(weir_queue_record(queue, &event));
        if (i % 16 == 0)
            ASSERT_SYNC(queues[(i / 16) % 2]);
    }
    EXPECT_OK(weir_event_sync(event, HANG_GUARD_NS));
    for (unsigned i = 0; i < ROUNDS; i++) {
        ASSERT_INT_EQ(readings[i].seen_first, (unsigned char)i);
        ASSERT_INT_EQ(readings[i].seen_last, (unsigned char)i);
    }
}

CONFORM(HostCall, Arguments)
{
    EXPECT_INVALID(weir_queue_host_call(f->queue, NULL, NULL), "function");
    EXPECT_INVALID(weir_queue_host_call(NULL, gate_pass, NULL), "queue");
}

// A device is drained: also of what host calls submit, and of queues that are gone.

static weir_status open_later(void *gate)
{
    gate_open(gate);
    return WEIR_OK;
}

struct relay {
    weir_queue *next;
    struct relay *then;
    atomic_int runs;
};

static weir_status pass_on(void *user)
{
    struct relay *relay = user;
    atomic_fetch_add(&relay->runs, 1);
    return relay->then ? weir_queue_host_call(relay->next, pass_on, relay->then) : WEIR_OK;
}

// And for a queue that is destroyed.
CONFORM(DeviceSync, WaitsForWhatHostCallsSubmit)
{
    own_queue a = conform_queue(f, "a");
    own_queue b = conform_queue(f, "b");
    own_queue opener = conform_queue(f, "opener");
    weir_queue *gone = conform_queue(f, "gone");
    struct relay last = {.next = NULL};
    struct relay second = {.next = a, .then = &last};
    struct relay first = {.next = b, .then = &second};

    ASSERT_OK(weir_device_sync(f->device, HANG_GUARD_NS));
    own_gate gate = gate_on(b);
    ASSERT_OK(weir_queue_host_call(b, pass_on, &first));
    EXPECT_INT_EQ(weir_device_sync(f->device, 1000000), WEIR_TIMEOUT);
    EXPECT_INT_EQ(atomic_load(&first.runs), 0);
    ASSERT_OK(weir_queue_host_call(opener, open_later, gate));
    ASSERT_OK(weir_device_sync(f->device, HANG_GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&first.runs), 1);
    EXPECT_INT_EQ(atomic_load(&last.runs), 1);

    own_gate other = gate_on(gone);
    ASSERT_OK(weir_queue_host_call(gone, pass_on, &last));
    weir_queue_destroy(&gone);
    ASSERT_OK(weir_queue_host_call(opener, open_later, other));
    ASSERT_OK(weir_device_sync(f->device, HANG_GUARD_NS));
    EXPECT_INT_EQ(atomic_load(&last.runs), 2);
}

// The first failure, after the others were waited for.
static weir_status fail_with_text(void *unused)
{
    const struct weir_error own = {.status = WEIR_ERROR_IO, .message = "row 3 is torn"};
    return weir_error_set(&own);
}

static void count_always(void *count, weir_status status)
{
    atomic_fetch_add((atomic_int *)count, status < 0 ? 1 : 100);
}

CONFORM(DeviceSync, TellsTheFirstFailureAndWaitsForTheRest)
{
    own_queue bad = conform_queue(f, "bad");
    own_queue good = conform_queue(f, "good");
    struct relay last = {.next = NULL};
    atomic_int always = 0;
    const int line = __LINE__ + 1;
    ASSERT_OK(weir_queue_host_call(bad, fail_with_text, NULL));
    (void)!weir_queue_host_call_always(bad, count_always, &always);
    ASSERT_OK(weir_queue_host_call(good, pass_on, &last));
    EXPECT_REFUSED(weir_device_sync(f->device, HANG_GUARD_NS), WEIR_ERROR_IO, "row 3 is torn");
    EXPECT_INT_EQ(weir_last_error()->line, line);
    EXPECT_INT_EQ(atomic_load(&last.runs), 1);
    EXPECT_INT_EQ(atomic_load(&always), 1);
    EXPECT_OK(weir_queue_recover(bad));
    EXPECT_OK(weir_device_sync(f->device, HANG_GUARD_NS));
}

static void pass_gate_always(void *gate, weir_status status)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_HOST_CALL);
    EXPECT_OK(gate_pass(gate));
}

// A failed queue takes no record, and its calls that always run are waited for as long as the program says.
CONFORM(DeviceSync, WaitsForAFailedQueueUntilItsTime)
{
    own_gate gate = gate_create();
    own_queue bad = conform_queue(f, "bad");
    atomic_int always = 0;
    conform_fail(bad);
    ASSERT_OK(weir_queue_host_call_always(bad, pass_gate_always, gate));
    ASSERT_OK(weir_queue_host_call_always(bad, count_always, &always));
    EXPECT_INT_EQ(weir_device_sync(f->device, 1000000), WEIR_TIMEOUT);
    gate_open(gate);
    EXPECT_INT_EQ(weir_device_sync(f->device, HANG_GUARD_NS), WEIR_ERROR_HOST_CALL);
    EXPECT_INT_EQ(atomic_load(&always), 1);
    EXPECT_OK(weir_queue_recover(bad));
}

static weir_status sync_device(void *device)
{
    return weir_device_sync(device, HANG_GUARD_NS);
}

CONFORM(DeviceSync, Refusals)
{
    EXPECT_INVALID(weir_device_sync(NULL, 0), "device");
    ASSERT_OK(weir_queue_host_call(f->queue, sync_device, f->device));
    EXPECT_REFUSED(weir_device_sync(f->device, HANG_GUARD_NS), WEIR_ERROR_INVALID, "may not wait");
    ASSERT_OK(weir_queue_recover(f->queue));

    ASSERT_OK(weir_capture_begin(f->queue));
    EXPECT_INVALID(weir_device_sync(f->device, HANG_GUARD_NS), "captures a graph");
    WEIR_IGNORE(weir_capture_cancel(f->queue));
    EXPECT_OK(weir_device_sync(f->device, HANG_GUARD_NS));
}

// Queues of the library, which take records of each other.
CONFORM(DeviceSync, WithALegacyQueue)
{
    weir_queue *legacy = NULL;
    own_buffer buffer = conform_host_buffer(f, SIZE);
    ASSERT_OK(weir_legacy_queue(f->device, &legacy));
    for (unsigned char i = 1; i < 5; i++) {
        ASSERT_OK(weir_queue_fill(legacy, buffer, 0, SIZE, &i, 1));
        ASSERT_OK(weir_queue_fill(f->queue, buffer, 0, SIZE / 2, &i, 1));
        ASSERT_OK(weir_device_sync(f->device, HANG_GUARD_NS));
        EXPECT_TRUE(conform_is_filled(buffer, i));
    }
}

// Host calls that always run, and are told what became of the work before them.

#define SIZE ((size_t)4096)

// What one call was told.
struct told {
    atomic_int count;
    weir_status status;
    char message[768];
};

static void note(void *user, weir_status status)
{
    struct told *told = user;
    told->status = status;
    snprintf(told->message, sizeof told->message, "%s", weir_last_error()->message);
    atomic_fetch_add(&told->count, 1);
}

CONFORM(Always, AfterWorkThatSucceeds)
{
    struct told told = {.status = WEIR_ERROR_IO};
    own_buffer buffer = conform_host_buffer(f, SIZE);
    ASSERT_OK(weir_queue_fill(f->queue, buffer, 0, SIZE, "", 1));
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_host_call_always(f->queue, note, &told));
    EXPECT_INT_EQ(atomic_load(&told.count), 0); // in its place in the order
    gate_open(gate);
    EXPECT_SYNC(f->queue);
    EXPECT_INT_EQ(atomic_load(&told.count), 1);
    EXPECT_INT_EQ(told.status, WEIR_OK);
    EXPECT_STR_EQ(told.message, "");
}

// Before the failure is known, and after it: the queue takes both, and both run once.
CONFORM(Always, AfterAFailure)
{
    struct told before = {0}, after = {0};
    atomic_int count = 0;
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_host_call(f->queue, fail_plainly, NULL));
    ASSERT_OK(weir_queue_host_call_always(f->queue, note, &before));
    ASSERT_OK(weir_queue_host_call(f->queue, count_up, &count));
    gate_open(gate);
    const weir_status cause = weir_queue_sync(f->queue, HANG_GUARD_NS);
    EXPECT_INT_LT(cause, 0);
    EXPECT_INT_EQ(weir_queue_host_call(f->queue, count_up, &count), cause);
    ASSERT_OK(weir_queue_host_call_always(f->queue, note, &after));
    ASSERT_OK(weir_queue_recover(f->queue));
    EXPECT_INT_EQ(atomic_load(&count), 0);
    EXPECT_INT_EQ(atomic_load(&before.count), 1);
    EXPECT_INT_EQ(atomic_load(&after.count), 1);
    EXPECT_INT_EQ(before.status, cause);
    EXPECT_INT_EQ(after.status, cause);
    EXPECT_CONTAINS(before.message, "operation 2 of queue 'q', a host call, failed");
    EXPECT_CONTAINS(after.message, "operation 2 of queue 'q', a host call, failed");
    ASSERT_OK(weir_queue_host_call(f->queue, count_up, &count)); // and the queue works again
    EXPECT_SYNC(f->queue);
    EXPECT_INT_EQ(atomic_load(&count), 1);
}

// The failure of another queue, which comes through a wait.
CONFORM(Always, AfterAFailureOfAnotherQueue)
{
    struct told told = {0};
    own_queue failing = conform_queue(f, "failing");
    own_gate gate = gate_on(failing);
    ASSERT_OK(weir_queue_host_call(failing, fail_plainly, NULL));
    follow(f->queue, failing);
    ASSERT_OK(weir_queue_host_call_always(f->queue, note, &told));
    gate_open(gate);
    const weir_status cause = weir_queue_sync(f->queue, HANG_GUARD_NS);
    EXPECT_INT_LT(cause, 0);
    ASSERT_OK(weir_queue_recover(failing));
    ASSERT_OK(weir_queue_recover(f->queue)); // waits for the rest of its work
    EXPECT_INT_EQ(atomic_load(&told.count), 1);
    EXPECT_INT_EQ(told.status, cause);
    EXPECT_CONTAINS(told.message, "operation 2 of queue 'failing'");
}

// A destroyed queue runs its calls, also after a failure that nothing asked for.
CONFORM(Always, InAQueueThatIsDestroyed)
{
    struct told told = {0};
    own_gate gate = gate_on(f->queue);
    ASSERT_OK(weir_queue_host_call(f->queue, fail_plainly, NULL));
    ASSERT_OK(weir_queue_host_call_always(f->queue, note, &told));
    weir_queue_destroy(&f->queue);
    gate_open(gate);
    ASSERT_OK(weir_device_close(&f->device)); // waits for it
    EXPECT_INT_EQ(atomic_load(&told.count), 1);
    EXPECT_INT_LT(told.status, 0);
    ASSERT_OK(weir_device_open(f->runtime, NULL, &f->device));
}

CONFORM(Always, Refused)
{
    struct told told = {0};
    EXPECT_INVALID(weir_queue_host_call_always(NULL, note, &told),
                   "weir_queue_host_call_always: queue is NULL");
    EXPECT_INVALID(weir_queue_host_call_always(f->queue, NULL, &told), "function is NULL");
    ASSERT_OK(weir_capture_begin(f->queue));
    EXPECT_INVALID(weir_queue_host_call_always(f->queue, note, &told),
                   "a host call that always runs cannot");
    ASSERT_OK(weir_capture_cancel(f->queue));
    EXPECT_SYNC(f->queue);
    EXPECT_INT_EQ(atomic_load(&told.count), 0);
}
