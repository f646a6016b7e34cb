// What the plugin finds, and what it must not find, through the public API on null: what the corpus
// and the fuzzer of tests/races do not have. And <weir/check.h>: findings as data, with the plugin and without it.
#include <malloc.h>
#include <pthread.h>

#include "tests/plugins/check/rig.h"
#include "tests/support/gate.h"

// What WEIR_EXPECT_NO_RACES() reports.
static char failed[4096];

#undef WEIR_CHECK_FAILED
#define WEIR_CHECK_FAILED(text) ((void)snprintf(failed, sizeof failed, "%s", (text)))

static void expect_nothing(const struct rig *rig)
{
    for (size_t i = 0; i < weir_check_count(rig->runtime); i++)
        weir_test_fail(__FILE__, __LINE__, "%s", rig_finding(rig, i).message);
}

// One finding of that kind with these lines; 0: no line.
static void expect_one(const struct rig *rig, weir_check_kind kind, int first, int second)
{
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    const struct weir_check_finding found = rig_finding(rig, 0);
    EXPECT_STR_EQ(weir_check_kind_name(found.kind), weir_check_kind_name(kind));
    EXPECT_INT_EQ(found.first.line, first);
    EXPECT_INT_EQ(found.second.line, second);
}

// Order.

RIG_TEST(CheckEngine, OneMissingWaitIsOneFinding, "")
{
    int first;
    int second;
    for (int i = 0; i < 10; i++) {
        first = __LINE__ + 1;
        EXPECT_OK(weir_queue_fill(rig->one, rig->a, 0, SIZE, "\7", 1));
        second = __LINE__ + 1;
        EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
        EXPECT_OK(weir_queue_copy(rig->two, rig->host, 0, rig->a, 0, SIZE)); // has the same wait
        rig_follow(rig->one, rig->two);
    }
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, first, second);
    EXPECT_UINT_EQ(rig_finding(rig, 0).count, 10);
    EXPECT_STR_EQ(rig_finding(rig, 0).buffer, "a");
    EXPECT_STR_EQ(rig_finding(rig, 0).first.queue, "one");
    EXPECT_STR_EQ(rig_finding(rig, 0).second.queue, "two");
    EXPECT_UINT_EQ(rig_finding(rig, 0).size, SIZE);
}

RIG_TEST(CheckEngine, ADestroyedQueueHasFinished, "")
{
    for (int i = 0; i < 20; i++) {
        weir_queue *queue = test_queue(rig->device, "short");
        rig_fill(queue, rig->a, 0, SIZE);
        weir_queue_destroy(&queue);
        EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
        EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
    }
    expect_nothing(rig);
    own_queue next = test_queue(rig->device, "next"); // which has not
    rig_fill(next, rig->a, 0, SIZE);
    EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
}

// Branches that use the same bytes are told once for all launches, and again after an update.
RIG_TEST(CheckEngine, AGraphIsExaminedOnce, "")
{
    own_graph graph = NULL;
    ASSERT_OK(weir_capture_begin(rig->one));
    rig_follow(rig->two, rig->one);
    const int first = __LINE__ + 1;
    ASSERT_OK(weir_queue_fill(rig->one, rig->a, 0, SIZE, "\7", 1));
    const int second = __LINE__ + 1;
    ASSERT_OK(weir_queue_fill(rig->two, rig->a, SIZE - 1, 1, "\7", 1));
    rig_follow(rig->one, rig->two);
    ASSERT_OK(weir_capture_end(rig->one, NULL, &graph));
    for (int i = 0; i < 10; i++)
        ASSERT_OK(weir_queue_graph(rig->one, graph));
    expect_one(rig, WEIR_CHECK_WRITE_AFTER_WRITE, first, second);
    EXPECT_UINT_EQ(rig_finding(rig, 0).count, 1);
    EXPECT_UINT_EQ(rig_finding(rig, 0).offset, SIZE - 1);
    EXPECT_UINT_EQ(rig_finding(rig, 0).size, 1);
    ASSERT_OK(weir_graph_set_fill(graph, 1, rig->b, 0, SIZE, "\7", 1));
    ASSERT_OK(weir_queue_graph(rig->one, graph));
    EXPECT_UINT_EQ(rig_finding(rig, 0).count, 1);
    ASSERT_OK(weir_graph_set_fill(graph, 1, rig->a, 0, 1, "\7", 1));
    ASSERT_OK(weir_queue_graph(rig->one, graph));
    EXPECT_UINT_EQ(rig_finding(rig, 0).count, 2);
}

// Host calls.

struct call {
    struct gate begin; // holds it
    struct gate end;   // is opened by it
    weir_buffer *buffer;
};

static weir_status use_in_call(void *user)
{
    struct call *call = user;
    EXPECT_OK(gate_pass(&call->begin));
    rig_use(call->buffer, WEIR_ACCESS_READ_WRITE);
    gate_open(&call->end);
    return WEIR_OK;
}

// A queue that does not wait for the call.
RIG_TEST(CheckEngine, AHostCallBesideAnotherQueue, "")
{
    struct call call = {.buffer = rig->host};
    ASSERT_OK(weir_queue_host_call(rig->one, use_in_call, &call));
    const int first = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig->two, rig->host, 0, SIZE, "\7", 1));
    gate_open(&call.begin);
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(rig_finding(rig, 0).kind, WEIR_CHECK_HOST_WRITE);
    EXPECT_INT_EQ(rig_finding(rig, 0).first.line, first);
    EXPECT_UINT_EQ(rig_finding(rig, 0).second.queue_id, 0);
    // A sync is not allowed in the function.
    EXPECT_NOT_CONTAINS(rig_finding(rig, 0).remedy, "sync");
    EXPECT_CONTAINS(rig_finding(rig, 0).remedy, "wait on 'one' before the host call");
}

// What comes after the call without a wait for it.
RIG_TEST(CheckEngine, AnotherQueueAfterAHostCall, "threads = strict")
{
    struct call call = {.begin.is_open = 1, .buffer = rig->host};
    ASSERT_OK(weir_queue_host_call(rig->one, use_in_call, &call));
    EXPECT_OK(gate_pass(&call.end));
    const int second = __LINE__ + 1;
    EXPECT_OK(weir_queue_fill(rig->two, rig->host, 0, SIZE, "\7", 1));
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(rig_finding(rig, 0).second.line, second);
    EXPECT_CONTAINS(rig_finding(rig, 0).remedy, "record on 'one' after the host call");
    EXPECT_CONTAINS(rig_finding(rig, 0).remedy, "wait on 'two' before");
}

// Unwritten bytes.

RIG_TEST(CheckEngine, UnwrittenIsToldOnce, "")
{
    int line = 0;
    own_buffer blank = test_buffer(rig->device, "blank", SIZE, WEIR_PLACE_DEVICE);
    rig_fill(rig->one, blank, 0, 100);
    rig_fill(rig->one, blank, 120, 136);
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, blank, 0, 100));
    for (int i = 0; i < 3; i++) {
        line = __LINE__ + 1;
        ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, blank, 0, SIZE));
    }
    expect_one(rig, WEIR_CHECK_UNWRITTEN, 0, line);
    EXPECT_UINT_EQ(rig_finding(rig, 0).count, 1);
    EXPECT_UINT_EQ(rig_finding(rig, 0).offset, 100);
    EXPECT_UINT_EQ(rig_finding(rig, 0).size, 20);
}

// More gaps between bytes that were written than are kept count as none.
RIG_TEST(CheckEngine, ManyGapsOfOneBuffer, "")
{
    enum {
        GAPS = 5000
    };
    own_buffer blank = test_buffer(rig->device, "blank", (size_t)2 * GAPS, WEIR_PLACE_DEVICE);
    own_buffer other = test_buffer(rig->device, "other", (size_t)2 * GAPS, WEIR_PLACE_DEVICE);
    for (size_t i = 0; i < GAPS; i++)
        rig_fill(rig->one, blank, 2 * i, 1);
    EXPECT_OK(weir_queue_copy(rig->one, other, 0, blank, 0, (size_t)2 * GAPS));
    expect_nothing(rig);
}

// The host reads pinned memory of which a queue has written so many bytes.
static void read_blank(struct rig *rig, size_t written)
{
    own_buffer blank = test_buffer(rig->device, "blank", SIZE, WEIR_PLACE_HOST);
    if (written)
        rig_fill(rig->one, blank, 0, written);
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    rig_use(blank, WEIR_ACCESS_READ);
}

// What the host maps to read and write, and what others may have written. Padding among bytes that
// the host reads is none of its business.
RIG_TEST(CheckEngine, WhatMayBeWritten, "")
{
    static unsigned char memory[SIZE];
    own_buffer wrapped = NULL;
    own_buffer blank = test_buffer(rig->device, "blank", SIZE, WEIR_PLACE_HOST);
    rig_use(blank, WEIR_ACCESS_READ_WRITE);
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, blank, 0, SIZE));
    ASSERT_OK(weir_buffer_wrap(rig->device, WEIR_PARAMS(weir_wrap, .pointer = memory, .size = SIZE),
                               &wrapped));
    ASSERT_OK(weir_queue_copy(rig->one, rig->a, 0, wrapped, 0, SIZE));
    expect_nothing(rig);
    read_blank(rig, SIZE - 1);
    expect_nothing(rig);
    read_blank(rig, 0);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(rig_finding(rig, 0).kind, WEIR_CHECK_UNWRITTEN);
}

// report = fail

RIG_TEST(CheckEngine, AFindingRefusesTheOperation, "report = fail")
{
    void *bytes;
    rig_fill(rig->one, rig->host, 0, SIZE);
    const int line = __LINE__ + 1;
    EXPECT_FAILURE(weir_queue_copy(rig->two, rig->a, 0, rig->host, 0, SIZE), WEIR_ERROR_INVALID,
                   "read-after-write: the copy on 'two' at ");
    EXPECT_CONTAINS(weir_last_error()->remedy, "record on 'one' after ");
    EXPECT_INT_EQ(weir_last_error()->line, line);
    EXPECT_FAILURE(weir_queue_sync(rig->two, WEIR_FOREVER), WEIR_ERROR_INVALID,
                   "read-after-write: the copy on 'two' at ");
    rig_fill(rig->one, rig->host, 0, SIZE); // the copy is not there
    EXPECT_INT_EQ(weir_host_begin(rig->host, 0, SIZE, WEIR_ACCESS_READ, &bytes),
                  WEIR_ERROR_INVALID);
    EXPECT_NULL(bytes);
    rig_fill(rig->one, rig->host, 0, SIZE); // the access did not begin
    EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
    rig_use(rig->host, WEIR_ACCESS_READ);
    EXPECT_OK(weir_queue_recover(rig->two));
}

// The sentence is that of the first conflict of the two lines, and so is the kind.
RIG_TEST(CheckEngine, ARefusalNamesTheKindOfItsSentence, "report = fail")
{
    for (int i = 0; i < 2; i++) {
        weir_buffer *dst = i == 0 ? rig->b : rig->a;
        weir_buffer *src = i == 0 ? rig->a : rig->b;
        EXPECT_OK(weir_queue_fill(rig->one, rig->a, 0, SIZE, "\7", 1));
        EXPECT_FAILURE(weir_queue_copy(rig->two, dst, 0, src, 0, SIZE), WEIR_ERROR_INVALID,
                       "read-after-write: the copy on 'two' at ");
        EXPECT_OK(weir_queue_sync(rig->one, WEIR_FOREVER));
        EXPECT_OK(weir_queue_recover(rig->two));
    }
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_UINT_EQ(rig_finding(rig, 0).count, 2);
}

// threads. What orders them: tests/races/fuzz and tests/locks.

static void *copy_in_thread(void *user)
{
    const struct rig *rig = user;
    EXPECT_OK(weir_queue_copy(rig->two, rig->a, 0, rig->host, 0, SIZE));
    return NULL;
}

// This thread writes what another one then copies.
static void write_and_copy(struct rig *rig)
{
    pthread_t thread;
    rig_use(rig->host, WEIR_ACCESS_WRITE);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, copy_in_thread, rig), 0);
    pthread_join(thread, NULL);
    EXPECT_OK(weir_queue_sync(rig->two, WEIR_FOREVER));
}

RIG_TEST(CheckThreads, OneNeedsNoAnnotation, "threads = one")
{
    write_and_copy(rig);
    expect_nothing(rig);
}

RIG_TEST(CheckThreads, StrictNeedsOne, "threads = strict")
{
    write_and_copy(rig);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_INT_EQ(rig_finding(rig, 0).kind, WEIR_CHECK_READ_AFTER_WRITE);
    EXPECT_STR_EQ(rig_finding(rig, 0).first.operation, "host access");
}

struct lesson {
    struct call call;
    weir_runtime *runtime;
};

static weir_status acquire_in_call(void *user)
{
    struct lesson *lesson = user;
    EXPECT_OK(gate_pass(&lesson->call.begin));
    weir_check_acquire(lesson->runtime, lesson);
    gate_open(&lesson->call.end);
    return WEIR_OK;
}

static void *use_and_release(void *user)
{
    struct lesson *lesson = user;
    weir_check_acquire(lesson->runtime, &lesson->call);
    rig_use(lesson->call.buffer, WEIR_ACCESS_WRITE);
    weir_check_release(lesson->runtime, lesson);
    gate_open(&lesson->call.begin);
    return NULL;
}

// What a call acquires is known at a point after it, too, that was recorded before it ran. What the queue has waited
// for since is not.
RIG_TEST(CheckThreads, ACallAcquiresForWhatCameAfterIt, "threads = strict")
{
    struct lesson lesson = {.call.buffer = rig->host, .runtime = rig->runtime};
    pthread_t thread;
    ASSERT_OK(weir_queue_host_call(rig->one, acquire_in_call, &lesson));
    const struct weir_event event = test_record(rig->one);
    rig_fill(rig->three, rig->a, 0, SIZE);
    rig_follow(rig->one, rig->three);
    weir_check_release(rig->runtime, &lesson.call);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, use_and_release, &lesson), 0);
    pthread_join(thread, NULL);
    EXPECT_OK(gate_pass(&lesson.call.end));
    ASSERT_OK(weir_queue_wait(rig->two, event));
    rig_fill(rig->two, rig->host, 0, SIZE);
    expect_nothing(rig);
    rig_fill(rig->two, rig->a, 0, SIZE);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_STR_EQ(rig_finding(rig, 0).first.queue, "three");
}

// Regions.

RIG_TEST(CheckEngine, RegionsAreTold, "")
{
    weir_region_push(rig->runtime, "job", WEIR_NO_NUMBER);
    weir_region_push(rig->runtime, "frame", 17);
    rig_fill(rig->one, rig->a, 0, SIZE);
    weir_region_pop(rig->runtime);
    EXPECT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, 0, SIZE));
    weir_region_pop(rig->runtime);
    ASSERT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_STR_EQ(rig_finding(rig, 0).first.region, "frame");
    EXPECT_UINT_EQ(rig_finding(rig, 0).first.region_number, 17);
    EXPECT_STR_EQ(rig_finding(rig, 0).second.region, "job");
    EXPECT_UINT_EQ(rig_finding(rig, 0).second.region_number, WEIR_NO_NUMBER);
}

// Size.

// Frames that no host ever waits for.
RIG_TEST(CheckEngine, MemoryIsBounded, "")
{
    enum {
        FRAMES = 50000
    };
    size_t before = 0;
    for (int i = 0; i < FRAMES; i++) {
        if (i == 2000)
            before = mallinfo2().uordblks;
        rig_fill(rig->one, rig->a, 0, SIZE);
        rig_follow(rig->two, rig->one);
        ASSERT_OK(weir_queue_copy(rig->two, rig->b, 0, rig->a, (size_t)i % SIZE, 1));
        rig_follow(rig->one, rig->two);
    }
    EXPECT_UINT_LT(mallinfo2().uordblks, before + 65536);
    expect_nothing(rig);
}

// One buffer of many pieces, each in use.
RIG_TEST(CheckEngine, ManyRangesOfOneBuffer, "")
{
    enum {
        PIECES = 20000,
        QUEUES = 4
    };
    own_queues queues = {NULL};
    own_buffer arena = test_buffer(rig->device, "arena", (size_t)16 * PIECES, WEIR_PLACE_DEVICE);
    for (int i = 0; i < QUEUES; i++)
        queues[i] = test_queue(rig->device, "queue");
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < PIECES; i++)
            rig_fill(queues[i % QUEUES], arena, 16 * (i * 7 % PIECES), 16);
    expect_nothing(rig);
    EXPECT_OK(weir_queue_copy(queues[0], arena, 0, arena, 16 * 7, 16));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
}

// Notes.

// The first bytes of the buffer.
static struct weir_note_range range(weir_buffer *buffer, size_t size, weir_access access)
{
    return (struct weir_note_range){.buffer = buffer, .size = size, .access = access};
}

static void note(weir_queue *queue, const char *name, struct weir_note_range range, int line)
{
    EXPECT_OK(
        weir_queue_note_at(queue,
                           WEIR_PARAMS(weir_note, .name = name, .ranges = &range, .range_count = 1),
                           NULL, "noted.c", line));
}

RIG_TEST(CheckEngine, NotesAreUsesThatGoByTheirNames, "")
{
    note(rig->one, "multiply", range(rig->a, 64, WEIR_ACCESS_WRITE), 3);
    note(rig->two, "add", range(rig->a, 8, WEIR_ACCESS_READ), 4);
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, 3, 4);
    EXPECT_STR_EQ(rig_finding(rig, 0).first.operation, "note");
    EXPECT_STR_EQ(rig_finding(rig, 0).first.kernel, "multiply");
    EXPECT_CONTAINS(rig_finding(rig, 0).message, "'add' on 'two' at noted.c:4 reads bytes 0 to 7");
    EXPECT_NOT_CONTAINS(rig_finding(rig, 0).message, "may");
    EXPECT_FALSE(rig_finding(rig, 0).first.assumed);
    EXPECT_UINT_EQ(rig_finding(rig, 0).size, 8);
}

RIG_TEST(CheckEngine, NotesThatAreOrderedAreFine, "")
{
    note(rig->one, "multiply", range(rig->a, 64, WEIR_ACCESS_WRITE), 3);
    rig_follow(rig->two, rig->one);
    note(rig->two, "add", range(rig->a, 64, WEIR_ACCESS_WRITE), 4);
    expect_nothing(rig);
}

// The columns of a picture, and its layers.
RIG_TEST(CheckEngine, RowsOfNotesMeetToTheByte, "")
{
    struct weir_note_range left = range(rig->a, 8, WEIR_ACCESS_WRITE);
    left.rows = 4, left.pitch = 16, left.slices = 2, left.slice_pitch = 64;
    struct weir_note_range right = left;
    right.offset = 8;
    note(rig->one, "left", left, 3);
    note(rig->two, "right", right, 4);
    expect_nothing(rig);
    right.offset = 7;
    note(rig->two, "right", right, 5);
    expect_one(rig, WEIR_CHECK_WRITE_AFTER_WRITE, 3, 5);
    EXPECT_UINT_EQ(rig_finding(rig, 0).offset, 7);
}

RIG_TEST(CheckEngine, AnAssumedRangeMayBeUsed, "")
{
    struct weir_note_range guess = range(rig->a, SIZE, WEIR_ACCESS_READ_WRITE);
    guess.assumed = true;
    note(rig->one, "first", guess, 3);
    note(rig->two, "second", guess, 4);
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, 3, 4);
    EXPECT_TRUE(rig_finding(rig, 0).first.assumed);
    EXPECT_TRUE(rig_finding(rig, 0).second.assumed);
    EXPECT_CONTAINS(rig_finding(rig, 0).message, "may read and write");
    EXPECT_CONTAINS(rig_finding(rig, 0).message, "'first' and 'second' use is assumed");
    EXPECT_INT_EQ((int)rig_finding(rig, 0).second.access, (int)WEIR_ACCESS_READ_WRITE);
}

// A guess may be too wide: only what nothing of was written is told.
RIG_TEST(CheckEngine, AnAssumedReadOfPartlyWrittenBytesIsFine, "")
{
    own_buffer fresh = test_buffer(rig->device, "fresh", SIZE, WEIR_PLACE_DEVICE);
    own_buffer partly = test_buffer(rig->device, "partly", SIZE, WEIR_PLACE_DEVICE);
    struct weir_note_range guess = range(partly, SIZE, WEIR_ACCESS_READ);
    guess.assumed = true;
    rig_fill(rig->one, partly, 64, 1);
    note(rig->one, "kernel", guess, 3);
    expect_nothing(rig);
    guess.buffer = fresh;
    note(rig->one, "kernel", guess, 4);
    expect_one(rig, WEIR_CHECK_UNWRITTEN, 0, 4);
}

RIG_TEST(CheckEngine, NotesOfGraphsAreExaminedAtEachLaunch, "")
{
    own_graph graph = NULL;
    ASSERT_OK(weir_capture_begin(rig->one));
    note(rig->one, "captured", range(rig->a, 64, WEIR_ACCESS_WRITE), 3);
    ASSERT_OK(weir_capture_end(rig->one, NULL, &graph));
    EXPECT_OK(weir_queue_graph(rig->one, graph));
    note(rig->two, "reader", range(rig->a, 8, WEIR_ACCESS_READ), 4);
    expect_one(rig, WEIR_CHECK_READ_AFTER_WRITE, 3, 4);
}

// <weir/check.h>.

// Two fills that nothing orders. Returns the line of the second one, the first is before it.
static int race(struct rig *rig)
{
    EXPECT_OK(weir_queue_fill(rig->one, rig->b, 0, 64, "\7", 1));
    EXPECT_OK(weir_queue_fill(rig->two, rig->b, 8, 8, "\7", 1));
    return __LINE__ - 1;
}

RIG_TEST(CheckApi, FindingsAreData, "")
{
    struct weir_check_finding found;
    failed[0] = '\0';
    EXPECT_TRUE(weir_check_is_on(rig->runtime));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
    WEIR_EXPECT_NO_RACES(rig->runtime);
    EXPECT_STR_EQ(failed, "");
    EXPECT_FAILURE(weir_check_get(rig->runtime, 0, &found), WEIR_ERROR_NOT_FOUND,
                   "there is no finding 0, only 0");
    EXPECT_STR_EQ(found.message, "");
    EXPECT_STR_EQ(found.second.file, "");

    const int line = race(rig);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
    EXPECT_UINT_EQ(weir_check_error_count(rig->runtime), 1);
    ASSERT_OK(weir_check_get(rig->runtime, 0, &found));
    EXPECT_INT_EQ(found.kind, WEIR_CHECK_WRITE_AFTER_WRITE);
    EXPECT_STR_EQ(weir_check_kind_name(found.kind), "write-after-write");
    EXPECT_INT_EQ(found.count, 1);
    EXPECT_STR_EQ(found.buffer, "b");
    EXPECT_UINT_EQ(found.offset, 8);
    EXPECT_UINT_EQ(found.size, 8);
    EXPECT_STR_EQ(found.first.queue, "one");
    EXPECT_STR_EQ(found.first.operation, "fill");
    EXPECT_INT_EQ(found.first.line, line - 1);
    EXPECT_STR_EQ(found.second.queue, "two");
    EXPECT_INT_EQ(found.second.line, line);
    EXPECT_STR_EQ(found.second.file, __FILE__);
    EXPECT_INT_EQ(found.second.access, WEIR_ACCESS_WRITE);
    EXPECT_CONTAINS(found.remedy, "record on 'one' after ");
    EXPECT_TRUE(found.suppression == NULL);
    WEIR_EXPECT_NO_RACES(rig->runtime);
    EXPECT_CONTAINS(failed,
                    ": 1 finding of the plugin check\nwrite-after-write: the fill on 'two'");
    EXPECT_CONTAINS(failed, "\n    to do: record on 'one' after ");
    EXPECT_TRUE(weir_check_describe(rig->runtime, __FILE__, __LINE__, NULL, 0));
}

WEIR_TEST_WITH(CheckApi, WithoutThePlugin, struct rig, rig,
               (rig_open_with(rig, "", ""), rig->runtime), rig_close(rig))
{
    struct weir_check_finding found;
    char text[64];
    race(rig);
    EXPECT_FALSE(weir_check_is_on(rig->runtime));
    EXPECT_FALSE(weir_check_is_on(NULL));
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 0);
    EXPECT_UINT_EQ(weir_check_error_count(rig->runtime), 0);
    EXPECT_FAILURE(weir_check_get(rig->runtime, 0, &found), WEIR_ERROR_NOT_FOUND,
                   "the plugin check is not in the runtime's chain");
    EXPECT_INT_EQ(weir_check_get(rig->runtime, 0, NULL), WEIR_ERROR_INVALID);
    weir_check_release(rig->runtime, rig);
    weir_check_acquire(rig->runtime, rig);
    WEIR_EXPECT_NO_RACES(rig->runtime);
    EXPECT_CONTAINS(failed, "nothing was checked: the plugin check is not in the runtime's chain");
    EXPECT_TRUE(weir_check_describe(rig->runtime, "a.c", 3, text, sizeof text));
    EXPECT_CONTAINS(text, "a.c:3: nothing was checked");
    EXPECT_STR_EQ(weir_check_kind_name((weir_check_kind)77), "unknown");
}

// What a newer program's structure has more is zero, and an older program's is not written beyond its end.
RIG_TEST(CheckApi, StructuresOfOtherSizes, "")
{
    struct {
        struct weir_check_finding finding;
        uint64_t more;
    } other;
    const size_t smaller = offsetof(struct weir_check_finding, message);
    race(rig);
    memset(&other, 0x5a, sizeof other);
    EXPECT_OK(weir_check_get_sized(rig->runtime, 0, &other.finding, sizeof other));
    EXPECT_INT_EQ(other.more, 0);
    memset(&other, 0x5a, sizeof other);
    EXPECT_OK(weir_check_get_sized(rig->runtime, 0, &other.finding, smaller));
    EXPECT_STR_EQ(other.finding.first.queue, "one");
    EXPECT_INT_EQ(((const unsigned char *)&other)[smaller], 0x5a);
}

// Twice in a chain: both find it, and the outermost one answers.
WEIR_TEST_WITH(CheckApi, TwiceInAChain, struct rig, rig,
               (rig_open_with(rig, "check, check", ""), rig->runtime), rig_close(rig))
{
    race(rig);
    EXPECT_UINT_EQ(weir_check_count(rig->runtime), 1);
}
