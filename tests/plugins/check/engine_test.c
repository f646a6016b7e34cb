// What the plugin finds, and what it must not find, through the public API on null: what the corpus
// of tests/races does not have.
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <weir/check.h>
#include <weir/weir.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    SIZE = 256
};

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *one;
    weir_queue *two;
    weir_buffer *a; // written
    weir_buffer *b;
    weir_buffer *host;
};

static const unsigned char seven = 7;

static void fill(weir_queue *queue, weir_buffer *buffer, size_t offset, size_t size)
{
    EXPECT_OK(weir_queue_fill(queue, buffer, offset, size, &seven, 1));
}

static void follow(weir_queue *queue, weir_queue *other)
{
    struct weir_event event;
    EXPECT_OK(weir_queue_record(other, &event));
    EXPECT_OK(weir_queue_wait(queue, event));
}

// `section` is the text of [check].
static void rig_open(struct rig *rig, const char *section)
{
    char text[256];
    snprintf(text, sizeof text, "[weir]\nbackend = null\nplugins = check\n[check]\n%s\n", section);
    ASSERT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text),
                        &rig->runtime));
    ASSERT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    rig->one = test_queue(rig->device, "one");
    rig->two = test_queue(rig->device, "two");
    rig->a = test_buffer(rig->device, "a", SIZE, WEIR_PLACE_DEVICE);
    rig->b = test_buffer(rig->device, "b", SIZE, WEIR_PLACE_DEVICE);
    rig->host = test_buffer(rig->device, "host", SIZE, WEIR_PLACE_HOST);
    fill(rig->one, rig->a, 0, SIZE);
    fill(rig->one, rig->b, 0, SIZE);
    fill(rig->one, rig->host, 0, SIZE);
    ASSERT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
}

static void rig_close(struct rig *rig)
{
    weir_buffer_destroy(&rig->a);
    weir_buffer_destroy(&rig->b);
    weir_buffer_destroy(&rig->host);
    weir_queue_destroy(&rig->one);
    weir_queue_destroy(&rig->two);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

#define ENGINE_TEST(suite, name, section)                                                \
    WEIR_TEST_WITH(suite, name, struct rig, rig, (rig_open(rig, section), rig->runtime), \
                   rig_close(rig))

static struct weir_check_finding finding(const struct rig *rig, size_t index)
{
    struct weir_check_finding found = {0};
    EXPECT_OK(weir_check_get(rig->runtime, index, &found));
    return found;
}

static void expect_nothing(const struct rig *rig)
{
    for (size_t i = 0; i < weir_check_count(rig->runtime); i++)
        weir_test_fail(__FILE__, __LINE__, "%s", finding(rig, i).message);
}

// One finding of that kind with these lines; 0: no line.
static void expect_one(const struct rig *rig, weir_check_kind kind, int first, int second)
{
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    const struct weir_check_finding found = finding(rig, 0);
    EXPECT_STR_EQ(weir_check_kind_name(found.kind), weir_check_kind_name(kind));
    EXPECT_INT_EQ(found.first.line, first);
    EXPECT_INT_EQ(found.second.line, second);
}

// Order.

ENGINE_TEST(CheckEngine, OneMissingWaitIsOneFinding, "")
{
    int first;
    int second;
    for (int i = 0; i < 10; i++) {
        first = __LINE__ + 1;
        EXPECT_OK(weir_queue_fill(rig->one, rig->a, 0, SIZE, &seven, 1));
        second = __LINE__ + 1;
        EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
        EXPECT_OK(weir_queue_copy(rig->two, rig->host, 0, rig->a, 0, SIZE)); // has the same wait
        follow(rig->one, rig->two);
    }
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, first, second);
    EXPECT_UINT_EQ(finding(rig, 0).count, 10);
    EXPECT_STR_EQ(finding(rig, 0).buffer, "a");
    EXPECT_STR_EQ(finding(rig, 0).first.queue, "one");
    EXPECT_STR_EQ(finding(rig, 0).second.queue, "two");
    EXPECT_UINT_EQ(finding(rig, 0).size, SIZE);
}

ENGINE_TEST(CheckEngine, ADestroyedQueueHasFinished, "")
{
    for (int i = 0; i < 20; i++) {
        weir_queue *queue = test_queue(rig->device, "short");
        fill(queue, rig->a, 0, SIZE);
        weir_queue_destroy(&queue);
        EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
        EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
    }
    expect_nothing(rig);
}

// The second launch waits for the first, and what waits for it comes after both.
ENGINE_TEST(CheckEngine, LaunchesOfOneGraphAreInOrder, "")
{
    own_graph graph = NULL;
    ASSERT_OK(weir_capture_begin(rig->one));
    fill(rig->one, rig->a, 0, SIZE);
    ASSERT_OK(weir_queue_copy(rig->one, rig->b, 0, rig->a, 0, SIZE));
    ASSERT_OK(weir_capture_end(rig->one, NULL, &graph));
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weir_queue_graph(i % 2 ? rig->one : rig->two, graph));
    follow(rig->two, rig->one);
    fill(rig->two, rig->a, 0, SIZE);
    expect_nothing(rig);
}

// Branches that use the same bytes are told once for all launches, and again after an update.
ENGINE_TEST(CheckEngine, AGraphIsExaminedOnce, "")
{
    own_graph graph = NULL;
    ASSERT_OK(weir_capture_begin(rig->one));
    follow(rig->two, rig->one);
    const int first = __LINE__ + 1;
    ASSERT_OK(weir_queue_fill(rig->one, rig->a, 0, SIZE, &seven, 1));
    const int second = __LINE__ + 1;
    ASSERT_OK(weir_queue_fill(rig->two, rig->a, SIZE - 1, 1, &seven, 1));
    follow(rig->one, rig->two);
    ASSERT_OK(weir_capture_end(rig->one, NULL, &graph));
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weir_queue_graph(rig->one, graph));
    expect_one(rig, WEIR_CHECK_WRITE_AFTER_WRITE, first, second);
    EXPECT_UINT_EQ(finding(rig, 0).count, 1);
    EXPECT_UINT_EQ(finding(rig, 0).offset, SIZE - 1);
    EXPECT_UINT_EQ(finding(rig, 0).size, 1);
    ASSERT_OK(weir_graph_set_fill(graph, 1, rig->b, 0, SIZE, &seven, 1));
    ASSERT_OK(weir_queue_graph(rig->one, graph));
    EXPECT_UINT_EQ(finding(rig, 0).count, 1);
    ASSERT_OK(weir_graph_set_fill(graph, 1, rig->a, 0, 1, &seven, 1));
    ASSERT_OK(weir_queue_graph(rig->one, graph));
    EXPECT_UINT_EQ(finding(rig, 0).count, 2);
}

// Host calls.

struct call {
    sem_t begin;
    sem_t end;
    weir_buffer *buffer;
};

static weir_status use_in_call(void *user)
{
    struct call *call = user;
    void *bytes;
    while (sem_wait(&call->begin) != 0)
        continue;
    EXPECT_OK(weir_host_begin(call->buffer, 0, SIZE, WEIR_ACCESS_READ_WRITE, &bytes));
    EXPECT_OK(weir_host_end(call->buffer, 0, SIZE, WEIR_ACCESS_READ_WRITE));
    sem_post(&call->end);
    return WEIR_OK;
}

// `begun`: 1 if it may begin. Semaphores need no end.
static void make_call(struct call *call, const struct rig *rig, unsigned begun)
{
    sem_init(&call->begin, 0, begun);
    sem_init(&call->end, 0, 0);
    call->buffer = rig->host;
}

// Work that was submitted before the function ran comes after it, in its queue and in another one
// that waits.
ENGINE_TEST(CheckEngine, AHostCallRunsLate, "")
{
    struct call call;
    make_call(&call, rig, 0);
    ASSERT_OK(weir_queue_host_call(rig->one, use_in_call, &call));
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, rig->host, 0, SIZE));
    follow(rig->two, rig->one);
    fill(rig->two, rig->host, 0, SIZE);
    sem_post(&call.begin);
    EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
    expect_nothing(rig);
}

// A queue that does not wait for the call.
ENGINE_TEST(CheckEngine, AHostCallBesideAnotherQueue, "")
{
    struct call call;
    make_call(&call, rig, 0);
    ASSERT_OK(weir_queue_host_call(rig->one, use_in_call, &call));
    const int first = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig->two, rig->host, 0, SIZE, &seven, 1));
    sem_post(&call.begin);
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(finding(rig, 0).kind, WEIR_CHECK_HOST_WRITE);
    EXPECT_INT_EQ(finding(rig, 0).first.line, first);
    // A sync is not allowed in the function.
    EXPECT_NOT_CONTAINS(finding(rig, 0).remedy, "sync");
    EXPECT_CONTAINS(finding(rig, 0).remedy, "wait on 'one' before the host call");
}

// What comes after the call without a wait for it.
ENGINE_TEST(CheckEngine, AnotherQueueAfterAHostCall, "threads = strict")
{
    struct call call;
    make_call(&call, rig, 1);
    ASSERT_OK(weir_queue_host_call(rig->one, use_in_call, &call));
    while (sem_wait(&call.end) != 0)
        continue;
    const int second = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig->two, rig->host, 0, SIZE, &seven, 1));
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(finding(rig, 0).second.line, second);
    EXPECT_CONTAINS(finding(rig, 0).remedy, "record on 'one' after the host call");
    EXPECT_CONTAINS(finding(rig, 0).remedy, "wait on 'two' before");
}

// Pools.

static weir_pool *make_pool(struct rig *rig)
{
    weir_pool *pool = NULL;
    EXPECT_OK(weir_pool_create(rig->device, WEIR_PARAMS(weir_pool, .label = "pool"), &pool));
    return pool;
}

// The pool knows that the free is complete, and the program need not.
ENGINE_TEST(CheckEngine, APoolMayKnowMore, "")
{
    struct weir_pool_statistics statistics;
    own_pool pool = make_pool(rig);
    for (int i = 0; i < 10; i++) {
        weir_queue *queue = i % 2 ? rig->one : rig->two;
        weir_buffer *buffer;
        ASSERT_OK(weir_pool_allocate(pool, queue, SIZE, &buffer));
        fill(queue, buffer, 0, SIZE);
        ASSERT_OK(weir_queue_copy(queue, i % 2 ? rig->a : rig->b, 0, buffer, 0, SIZE));
        ASSERT_OK(weir_pool_free(queue, &buffer));
    }
    weir_pool_read_statistics(pool, &statistics);
    EXPECT_UINT_GT(statistics.reused, 0);
    expect_nothing(rig);
}

ENGINE_TEST(CheckEngine, AnAllocationIsAnOperationOfItsQueue, "")
{
    weir_buffer *buffer;
    own_pool pool = make_pool(rig);
    const int first = __LINE__ + 1;
    ASSERT_OK(weir_pool_allocate(pool, rig->one, SIZE, &buffer));
    const int second = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig->two, buffer, 0, SIZE, &seven, 1));
    expect_one(rig, WEIR_CHECK_WRITE_AFTER_WRITE, first, second);
    EXPECT_STR_EQ(finding(rig, 0).first.operation, "pool allocation");
    ASSERT_OK(weir_pool_free(rig->two, &buffer));
}

// Unwritten bytes.

ENGINE_TEST(CheckEngine, UnwrittenIsToldOnce, "")
{
    int line = 0;
    own_buffer blank = test_buffer(rig->device, "blank", SIZE, WEIR_PLACE_DEVICE);
    fill(rig->one, blank, 0, 100);
    fill(rig->one, blank, 120, 136);
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, blank, 0, 100));
    for (int i = 0; i < 3; i++) {
        line = __LINE__ + 1;
        ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, blank, 0, SIZE));
    }
    expect_one(rig, WEIR_CHECK_UNWRITTEN, 0, line);
    EXPECT_UINT_EQ(finding(rig, 0).count, 1);
    EXPECT_UINT_EQ(finding(rig, 0).offset, 100);
    EXPECT_UINT_EQ(finding(rig, 0).size, 20);
}

// More gaps between bytes that were written than are kept count as none.
ENGINE_TEST(CheckEngine, ManyGapsOfOneBuffer, "")
{
    enum {
        GAPS = 5000
    };
    own_buffer blank = test_buffer(rig->device, "blank", (size_t)2 * GAPS, WEIR_PLACE_DEVICE);
    own_buffer other = test_buffer(rig->device, "other", (size_t)2 * GAPS, WEIR_PLACE_DEVICE);
    for (size_t i = 0; i < GAPS; i++)
        fill(rig->one, blank, 2 * i, 1);
    EXPECT_OK(weir_queue_copy(rig->one, other, 0, blank, 0, (size_t)2 * GAPS));
    expect_nothing(rig);
}

// The host reads pinned memory of which a queue has written so many bytes.
static void read_blank(struct rig *rig, size_t written)
{
    void *bytes;
    weir_buffer *blank = test_buffer(rig->device, "blank", SIZE, WEIR_PLACE_HOST);
    if (written)
        fill(rig->one, blank, 0, written);
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    EXPECT_OK(weir_host_begin(blank, 0, SIZE, WEIR_ACCESS_READ, &bytes));
    EXPECT_OK(weir_host_end(blank, 0, SIZE, WEIR_ACCESS_READ));
    weir_buffer_destroy(&blank);
}

// What the host maps to read and write, and what others may have written. Padding among bytes that
// the host reads is none of its business.
ENGINE_TEST(CheckEngine, WhatMayBeWritten, "")
{
    void *bytes;
    static unsigned char memory[SIZE];
    own_buffer wrapped = NULL;
    own_buffer blank = test_buffer(rig->device, "blank", SIZE, WEIR_PLACE_HOST);
    ASSERT_OK(weir_host_begin(blank, 0, SIZE, WEIR_ACCESS_READ_WRITE, &bytes));
    ASSERT_OK(weir_host_end(blank, 0, SIZE, WEIR_ACCESS_READ_WRITE));
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, blank, 0, SIZE));
    ASSERT_OK(weir_buffer_wrap(rig->device, WEIR_PARAMS(weir_wrap, .pointer = memory, .size = SIZE),
                               &wrapped));
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, wrapped, 0, SIZE));
    expect_nothing(rig);
    read_blank(rig, SIZE - 1);
    expect_nothing(rig);
    read_blank(rig, 0);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(finding(rig, 0).kind, WEIR_CHECK_UNWRITTEN);
}

// report = fail

ENGINE_TEST(CheckEngine, AFindingRefusesTheOperation, "report = fail")
{
    void *bytes;
    fill(rig->one, rig->host, 0, SIZE);
    const int line = __LINE__ + 1;
    EXPECT_FAILURE(weir_queue_copy(rig->two, rig->a, 0, rig->host, 0, SIZE), WEIR_ERROR_INVALID,
                   "read-after-write: the copy on 'two' at ");
    EXPECT_CONTAINS(weir_last_error()->remedy, "record on 'one' after ");
    EXPECT_INT_EQ(weir_last_error()->line, line);
    EXPECT_FAILURE(weir_queue_sync(rig->two, WEIR_FOREVER), WEIR_ERROR_INVALID,
                   "read-after-write: the copy on 'two' at ");
    fill(rig->one, rig->host, 0, SIZE); // the copy is not there
    EXPECT_INT_EQ(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_READ, &bytes),
                  WEIR_ERROR_INVALID);
    EXPECT_NULL(bytes);
    fill(rig->one, rig->host, 0, SIZE); // the access did not begin
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    EXPECT_OK(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_READ, &bytes));
    EXPECT_OK(weir_host_end(rig->host, 0, SIZE, WEIR_ACCESS_READ));
    EXPECT_OK(weir_queue_recover(rig->two));
}

// threads = strict

struct other_thread {
    struct rig *rig;
    bool annotated;
    bool reads; // on the host
};

static void *use_in_thread(void *user)
{
    const struct other_thread *other = user;
    const struct rig *rig = other->rig;
    void *bytes;
    if (other->annotated)
        weir_check_acquire(rig->runtime, rig);
    if (!other->reads) {
        EXPECT_OK(weir_queue_copy(rig->two, rig->a, 0, rig->host, 0, SIZE));
        return NULL;
    }
    EXPECT_OK(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_READ, &bytes));
    EXPECT_OK(weir_host_end(rig->host, 0, SIZE, WEIR_ACCESS_READ));
    return NULL;
}

static void run_thread(struct other_thread other)
{
    pthread_t thread;
    if (other.annotated)
        weir_check_release(other.rig->runtime, other.rig);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, use_in_thread, &other), 0);
    pthread_join(thread, NULL);
}

static void write_on_host(const struct rig *rig)
{
    void *bytes;
    EXPECT_OK(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_WRITE, &bytes));
    memset(bytes, 1, SIZE);
    EXPECT_OK(weir_host_end(rig->host, 0, SIZE, WEIR_ACCESS_WRITE));
}

ENGINE_TEST(CheckThreads, OneNeedsNoAnnotation, "threads = one")
{
    write_on_host(rig);
    run_thread((struct other_thread){.rig = rig});
    EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
    run_thread((struct other_thread){.rig = rig, .reads = true});
    expect_nothing(rig);
}

// The other thread submits a copy of what this one has written.
WEIR_TEST(CheckThreads, StrictAfterAWriteOfTheHost)
{
    for (int annotated = 0; annotated < 2; annotated++) {
        struct rig rig;
        rig_open(&rig, "threads = strict");
        write_on_host(&rig);
        weir_check_release(rig.runtime, &rig);
        run_thread((struct other_thread){.rig = &rig, .annotated = annotated});
        ASSERT_UINT_EQ(weir_check_count(rig.runtime), annotated ? 0 : 1);
        if (!annotated) {
            EXPECT_INT_EQ(finding(&rig, 0).kind, WEIR_CHECK_READ_AFTER_WRITE);
            EXPECT_STR_EQ(finding(&rig, 0).first.operation, "host access");
        }
        EXPECT_OK(weir_queue_sync(rig.two, WEIR_FOREVER));
        rig_close(&rig);
    }
}

// This thread has waited for the queue, and the other one reads.
WEIR_TEST(CheckThreads, StrictAfterASync)
{
    for (int annotated = 0; annotated < 2; annotated++) {
        struct rig rig;
        rig_open(&rig, "threads = strict");
        fill(rig.one, rig.host, 0, SIZE);
        EXPECT_OK(weir_queue_sync(rig.one, WEIR_FOREVER));
        run_thread((struct other_thread){.rig = &rig, .annotated = annotated, .reads = true});
        ASSERT_UINT_EQ(weir_check_count(rig.runtime), annotated ? 0 : 1);
        if (!annotated)
            EXPECT_INT_EQ(finding(&rig, 0).kind, WEIR_CHECK_HOST_READ);
        rig_close(&rig);
    }
}

struct late_waiter {
    struct rig *rig;
    struct weir_event event;
    sem_t begin;
    sem_t acquired;
};

static weir_status acquire_in_call(void *user)
{
    struct late_waiter *late = user;
    while (sem_wait(&late->begin) != 0)
        continue;
    weir_check_acquire(late->rig->runtime, late->rig);
    sem_post(&late->acquired);
    return WEIR_OK;
}

static void *copy_after_event(void *user)
{
    struct late_waiter *late = user;
    EXPECT_OK(weir_queue_wait(late->rig->two, late->event));
    EXPECT_OK(weir_queue_copy(late->rig->two, late->rig->a, 0, late->rig->host, 0, SIZE));
    return NULL;
}

// What a host call learns is known to what follows it in its queue, and not to what came before.
ENGINE_TEST(CheckThreads, StrictBeforeAHostCallThatLearns, "threads = strict")
{
    struct late_waiter late = {.rig = rig};
    pthread_t thread;
    sem_init(&late.begin, 0, 0);
    sem_init(&late.acquired, 0, 0);
    EXPECT_OK(weir_queue_record(rig->one, &late.event));
    EXPECT_OK(weir_queue_host_call(rig->one, acquire_in_call, &late));
    write_on_host(rig);
    weir_check_release(rig->runtime, rig);
    sem_post(&late.begin);
    while (sem_wait(&late.acquired) != 0)
        continue;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, copy_after_event, &late), 0);
    pthread_join(thread, NULL);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(finding(rig, 0).kind, WEIR_CHECK_READ_AFTER_WRITE);
    EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
}

// One thread alone is in order with itself.
ENGINE_TEST(CheckThreads, StrictWithOneThread, "threads = strict")
{
    void *bytes;
    for (int i = 0; i < 10; i++) {
        write_on_host(rig);
        EXPECT_OK(weir_queue_copy(rig->one, rig->a, 0, rig->host, 0, SIZE));
        follow(rig->two, rig->one);
        EXPECT_OK(weir_queue_copy(rig->two, rig->host, 0, rig->a, 0, SIZE));
        EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
        EXPECT_OK(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_READ, &bytes));
        EXPECT_OK(weir_host_end(rig->host, 0, SIZE, WEIR_ACCESS_READ));
    }
    expect_nothing(rig);
    fill(rig->one, rig->host, 0, SIZE);
    const int line = __LINE__ + 1;
    EXPECT_OK(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_READ, &bytes));
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(finding(rig, 0).kind, WEIR_CHECK_HOST_READ);
    EXPECT_INT_EQ(finding(rig, 0).second.line, line);
}

// Regions.

ENGINE_TEST(CheckEngine, RegionsAreTold, "")
{
    weir_region_push(rig->runtime, "job", WEIR_NO_NUMBER);
    weir_region_push(rig->runtime, "frame", 17);
    fill(rig->one, rig->a, 0, SIZE);
    weir_region_pop(rig->runtime);
    EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
    weir_region_pop(rig->runtime);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_STR_EQ(finding(rig, 0).first.region, "frame");
    EXPECT_UINT_EQ(finding(rig, 0).first.region_number, 17);
    EXPECT_STR_EQ(finding(rig, 0).second.region, "job");
    EXPECT_UINT_EQ(finding(rig, 0).second.region_number, WEIR_NO_NUMBER);
}

// Size.

// Frames that no host ever waits for.
ENGINE_TEST(CheckEngine, MemoryIsBounded, "")
{
    enum {
        FRAMES = 50000
    };
    size_t before = 0;
    for (int i = 0; i < FRAMES; i++) {
        if (i == 2000)
            before = mallinfo2().uordblks;
        fill(rig->one, rig->a, 0, SIZE);
        follow(rig->two, rig->one);
        ASSERT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, (size_t)i % SIZE, 1));
        follow(rig->one, rig->two);
    }
    EXPECT_UINT_LT(mallinfo2().uordblks, before + 65536);
    expect_nothing(rig);
}

// One buffer of many pieces, each in use.
ENGINE_TEST(CheckEngine, ManyRangesOfOneBuffer, "")
{
    enum {
        PIECES = 20000,
        QUEUES = 4
    };
    weir_queue *queues[QUEUES];
    own_buffer arena = test_buffer(rig->device, "arena", (size_t)16 * PIECES, WEIR_PLACE_DEVICE);
    for (int i = 0; i < QUEUES; i++)
        queues[i] = test_queue(rig->device, "queue");
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < PIECES; i++)
            fill(queues[i % QUEUES], arena, 16 * (i * 7 % PIECES), 16);
    expect_nothing(rig);
    EXPECT_OK(weir_queue_copy(queues[0], arena, 0, arena, 16 * 7, 16));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&queues[i]);
}

// Notes.

static void note(weir_queue *queue, const char *name, struct weir_note_range range, int line)
{
    EXPECT_OK(
        weir_queue_note_at(queue,
                           WEIR_PARAMS(weir_note, .name = name, .ranges = &range, .range_count = 1),
                           NULL, "noted.c", line));
}

ENGINE_TEST(CheckEngine, NotesAreUsesThatGoByTheirNames, "")
{
    note(rig->one, "multiply",
         (struct weir_note_range){.buffer = rig->a, .size = 64, .access = WEIR_ACCESS_WRITE}, 3);
    note(rig->two, "add",
         (struct weir_note_range){.buffer = rig->a, .size = 8, .access = WEIR_ACCESS_READ}, 4);
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, 3, 4);
    EXPECT_STR_EQ(finding(rig, 0).first.operation, "note");
    EXPECT_STR_EQ(finding(rig, 0).first.kernel, "multiply");
    EXPECT_CONTAINS(finding(rig, 0).message, "'add' on 'two' at noted.c:4 reads bytes 0 to 7");
    EXPECT_NOT_CONTAINS(finding(rig, 0).message, "may");
    EXPECT_FALSE(finding(rig, 0).first.assumed);
    EXPECT_UINT_EQ(finding(rig, 0).size, 8);
}

ENGINE_TEST(CheckEngine, NotesThatAreOrderedAreFine, "")
{
    const struct weir_note_range range = {.buffer = rig->a,
                                          .size = 64,
                                          .access = WEIR_ACCESS_WRITE};
    note(rig->one, "multiply", range, 3);
    follow(rig->two, rig->one);
    note(rig->two, "add", range, 4);
    expect_nothing(rig);
}

// The columns of a picture, and its layers.
ENGINE_TEST(CheckEngine, RowsOfNotesMeetToTheByte, "")
{
    struct weir_note_range left = {.buffer = rig->a,
                                   .size = 8,
                                   .access = WEIR_ACCESS_WRITE,
                                   .rows = 4,
                                   .pitch = 16,
                                   .slices = 2,
                                   .slice_pitch = 64};
    struct weir_note_range right = left;
    right.offset = 8;
    note(rig->one, "left", left, 3);
    note(rig->two, "right", right, 4);
    expect_nothing(rig);
    right.offset = 7;
    note(rig->two, "right", right, 5);
    expect_one(rig, WEIR_CHECK_WRITE_AFTER_WRITE, 3, 5);
    EXPECT_UINT_EQ(finding(rig, 0).offset, 7);
}

ENGINE_TEST(CheckEngine, AnAssumedRangeMayBeUsed, "")
{
    const struct weir_note_range guess = {.buffer = rig->a,
                                          .size = SIZE,
                                          .access = WEIR_ACCESS_READ_WRITE,
                                          .assumed = true};
    note(rig->one, "first", guess, 3);
    note(rig->two, "second", guess, 4);
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, 3, 4);
    EXPECT_TRUE(finding(rig, 0).first.assumed);
    EXPECT_TRUE(finding(rig, 0).second.assumed);
    EXPECT_CONTAINS(finding(rig, 0).message, "may read and write");
    EXPECT_CONTAINS(finding(rig, 0).message, "'first' and 'second' use is assumed");
    EXPECT_INT_EQ((int)finding(rig, 0).second.access, (int)WEIR_ACCESS_READ_WRITE);
}

// A guess may be too wide: only what nothing of was written is told.
ENGINE_TEST(CheckEngine, AnAssumedReadOfPartlyWrittenBytesIsFine, "")
{
    own_buffer fresh = test_buffer(rig->device, "fresh", SIZE, WEIR_PLACE_DEVICE);
    own_buffer partly = test_buffer(rig->device, "partly", SIZE, WEIR_PLACE_DEVICE);
    struct weir_note_range guess = {.buffer = partly,
                                    .size = SIZE,
                                    .access = WEIR_ACCESS_READ,
                                    .assumed = true};
    fill(rig->one, partly, 64, 1);
    note(rig->one, "kernel", guess, 3);
    expect_nothing(rig);
    guess.buffer = fresh;
    note(rig->one, "kernel", guess, 4);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(finding(rig, 0).kind, WEIR_CHECK_UNWRITTEN);
    EXPECT_INT_EQ(finding(rig, 0).second.line, 4);
}

ENGINE_TEST(CheckEngine, NotesOfGraphsAreExaminedAtEachLaunch, "")
{
    own_graph graph = NULL;
    ASSERT_OK(weir_capture_begin(rig->one));
    note(rig->one, "captured",
         (struct weir_note_range){.buffer = rig->a, .size = 64, .access = WEIR_ACCESS_WRITE}, 3);
    ASSERT_OK(weir_capture_end(rig->one, NULL, &graph));
    EXPECT_OK(weir_queue_graph(rig->one, graph));
    note(rig->two, "reader",
         (struct weir_note_range){.buffer = rig->a, .size = 8, .access = WEIR_ACCESS_READ}, 4);
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, 3, 4);
}
