// The ring of records, on a driver that is an array of events: each completes, fails or refuses
// to answer when the test says so. Both kinds are tested: events that are reused, and events that are
// created with each record.
#include <weir/kit/records.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "tests/support/host.h"
#include "tests/support/test.h"

enum {
    EVENTS = 4096
};

struct event {
    _Atomic int state; // enum weir_kit_state
    int code;
    uint64_t time_ns;
    bool alive;
};

static struct {
    struct event events[EVENTS];
    struct event *last; // recorded
    size_t created;
    size_t destroyed;
    atomic_uint asked;
    int time_code;
    enum weir_kit_question question;
    int reported;
    uint64_t reported_sequence;
} driver;

static struct event *new_event(void)
{
    struct event *event = &driver.events[driver.created++ % EVENTS];
    *event = (struct event){.state = WEIR_KIT_PENDING, .alive = true};
    return event;
}

static weir_status record_event(void *queue, void **native)
{
    if (!*native)
        *native = new_event();
    driver.last = *native;
    driver.last->state = WEIR_KIT_PENDING;
    return WEIR_OK;
}

static void destroy(void *queue, void *native)
{
    struct event *event = native;
    EXPECT_TRUE(event->alive);
    event->alive = false;
    driver.destroyed++;
}

static enum weir_kit_state query(void *queue, void *native, int *out_code)
{
    struct event *event = native;
    EXPECT_TRUE(event->alive);
    driver.asked++;
    *out_code = event->code;
    return (enum weir_kit_state)event->state;
}

// The device works while the host waits.
static enum weir_kit_state wait_for(void *queue, void *native, int *out_code)
{
    struct event *event = native;
    if (event->state == WEIR_KIT_PENDING)
        event->state = WEIR_KIT_COMPLETE;
    return query(queue, native, out_code);
}

static int time_of(void *queue, void *native, uint64_t *out_time_ns)
{
    *out_time_ns = ((struct event *)native)->time_ns;
    return driver.time_code;
}

static weir_status report(void *queue, enum weir_kit_question question, int code, uint64_t sequence)
{
    driver.question = question;
    driver.reported = code;
    driver.reported_sequence = sequence;
    return WEIR_ERROR_DEVICE;
}

static const struct weir_kit_record_ops reused = {
    .reused = true,
    .record = record_event,
    .destroy = destroy,
    .query = query,
    .wait = wait_for,
    .time = time_of,
    .report = report,
};

static const struct weir_kit_record_ops of_one_use = {
    .record = record_event,
    .destroy = destroy,
    .query = query,
    .wait = wait_for,
    .time = time_of,
    .report = report,
};

static weir_kit_records *make(const struct weir_kit_record_ops *ops, uint32_t history)
{
    const struct weir_kit_records_params params = {
        .host = &test_host,
        .ops = ops,
        .queue = &driver,
        .timing_history = history,
    };
    weir_kit_records *records = NULL;
    test_host_reset();
    memset(&driver, 0, sizeof driver);
    EXPECT_OK(weir_kit_records_create(&params, &records));
    return records;
}

static void end(weir_kit_records *records)
{
    weir_kit_records_destroy(&records);
    EXPECT_NULL(records);
    EXPECT_UINT_EQ(driver.created, driver.destroyed);
    EXPECT_INT_EQ(test_host_blocks(), 0);
}

static struct event *record(weir_kit_records *records, uint64_t sequence)
{
    EXPECT_OK(weir_kit_records_add(records, sequence));
    return driver.last;
}

// A test that runs with events of each kind, and a history of times.
static void run_with(const struct weir_kit_record_ops *ops, uint32_t history,
                     void (*run)(weir_kit_records *records))
{
    weir_kit_records *records = make(ops, history);
    run(records);
    end(records);
}

#define TEST_OF_EACH_KIND(name, history)                   \
    static void of_each_##name(weir_kit_records *records); \
    WEIR_TEST(KitRecords, name)                            \
    {                                                      \
        run_with(&reused, history, of_each_##name);        \
        run_with(&of_one_use, history, of_each_##name);    \
    }                                                      \
    static void of_each_##name(weir_kit_records *records)

// A queue that is given few records does not create an event for each.
WEIR_TEST(KitRecords, ANewQueueLooksSoonForEventsToUseAgain)
{
    weir_kit_records *records = make(&reused, 0);
    for (uint64_t i = 1; i <= 50; i++)
        record(records, i)->state = WEIR_KIT_COMPLETE;
    EXPECT_UINT_LE(driver.created, 8);
    EXPECT_UINT_LE(driver.asked, 8);
    for (uint64_t i = 51; i <= 20000; i++)
        record(records, i)->state = WEIR_KIT_COMPLETE;
    EXPECT_UINT_LE(driver.created, 2048 / 8);
    EXPECT_UINT_LE(driver.asked, 20000 / 100);
    end(records);
}

// A few at a time, with few questions.
WEIR_TEST(KitRecords, EventsOfOneUseAreGivenBackTogether)
{
    weir_kit_records *records = make(&of_one_use, 0);
    test_host_state()->left = 0;
    for (uint64_t i = 1; i <= 10000; i++) {
        record(records, i)->state = WEIR_KIT_COMPLETE;
        EXPECT_UINT_LE(driver.created - driver.destroyed, 32);
    }
    EXPECT_UINT_LT(driver.asked, 1000);
    test_host_state()->left = -1;
    for (uint64_t i = 10001; i <= 12000; i++) // a burst is over soon
        record(records, i);
    for (size_t i = 0; i < EVENTS; i++)
        driver.events[i].state = WEIR_KIT_COMPLETE;
    for (uint64_t i = 12001; i <= 20000; i++)
        record(records, i)->state = WEIR_KIT_COMPLETE;
    EXPECT_UINT_LE(driver.created - driver.destroyed, 32);
    end(records);
}

TEST_OF_EACH_KIND(AHeldEventIsKept, 0)
{
    struct event *first = record(records, 2);
    EXPECT_TRUE(weir_kit_records_hold(records, 1) == first); // the next one there is
    EXPECT_NULL(weir_kit_records_hold(records, 3));
    for (uint64_t i = 3; i < 100; i++)
        record(records, i)->state = WEIR_KIT_COMPLETE;
    first->state = WEIR_KIT_COMPLETE;
    EXPECT_OK(weir_kit_records_query(records, 99));
    for (uint64_t i = 100; i < 200; i++)
        record(records, i)->state = WEIR_KIT_COMPLETE;
    EXPECT_TRUE(first->alive && first->state == WEIR_KIT_COMPLETE);
    weir_kit_records_release(records, 1);
    EXPECT_NULL(weir_kit_records_hold(records, 2));
}

TEST_OF_EACH_KIND(AFailureIsReportedUntilItIsSettled, 0)
{
    struct event *events[2];
    for (uint64_t i = 0; i < 2; i++)
        events[i] = record(records, i + 1);
    events[0]->state = WEIR_KIT_COMPLETE;
    events[1]->state = WEIR_KIT_FAILED;
    events[1]->code = -7;
    EXPECT_OK(weir_kit_records_query(records, 1));
    EXPECT_INT_EQ(weir_kit_records_query(records, 2), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(driver.question, WEIR_KIT_WORKED);
    EXPECT_INT_EQ(driver.reported, -7);
    EXPECT_UINT_EQ(driver.reported_sequence, 2);
    EXPECT_INT_EQ(weir_kit_records_query(records, 2), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(weir_kit_records_wait(records, 2, WEIR_FOREVER), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_kit_records_query(records, 1));
    EXPECT_INT_EQ(weir_kit_records_settle(records), WEIR_ERROR_DEVICE);
    EXPECT_OK(weir_kit_records_settle(records));
    EXPECT_OK(weir_kit_records_query(records, 2));
}

TEST_OF_EACH_KIND(ARefusedQuestionIsReported, 0)
{
    struct event *event = record(records, 1);
    event->state = WEIR_KIT_UNKNOWN;
    event->code = 5;
    EXPECT_INT_EQ(weir_kit_records_query(records, 1), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(driver.question, WEIR_KIT_ASKED);
    EXPECT_INT_EQ(driver.reported, 5);
    EXPECT_INT_EQ(weir_kit_records_wait(records, 1, 1000), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(driver.question, WEIR_KIT_ASKED);
    EXPECT_INT_EQ(weir_kit_records_wait(records, 1, WEIR_FOREVER), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(driver.question, WEIR_KIT_WAITED);
    EXPECT_INT_EQ(weir_kit_records_settle(records), WEIR_ERROR_DEVICE);
    EXPECT_UINT_EQ(weir_kit_records_completed(records), 0); // it may still run
    event->state = WEIR_KIT_COMPLETE;
    EXPECT_OK(weir_kit_records_query(records, 1));
}

TEST_OF_EACH_KIND(ATimeThatTheDriverDoesNotTellIsReportedWhenItIsAskedFor, 8)
{
    uint64_t time_ns;
    record(records, 1)->state = WEIR_KIT_COMPLETE;
    driver.time_code = 33;
    EXPECT_INT_EQ(weir_kit_records_time(records, 1, &time_ns), WEIR_ERROR_DEVICE);
    EXPECT_INT_EQ(driver.question, WEIR_KIT_TIMED);
    EXPECT_INT_EQ(driver.reported, 33);
    driver.time_code = 0;
    struct event *event = record(records, 2);
    event->time_ns = 70;
    event->state = WEIR_KIT_COMPLETE;
    EXPECT_OK(weir_kit_records_time(records, 2, &time_ns));
    EXPECT_UINT_EQ(time_ns, 70);
}

TEST_OF_EACH_KIND(WithoutMemoryARecordIsRefused, 0)
{
    struct test_host_state *host = test_host_state();
    host->left = 0;
    for (uint64_t i = 1; i <= 256; i++)
        record(records, i);
    EXPECT_INT_EQ(weir_kit_records_add(records, 257), WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_UINT_EQ(driver.created, 256);
    EXPECT_INT_EQ(weir_kit_records_query(records, 256), WEIR_NOT_READY);
    host->left = -1;
    record(records, 257);
    EXPECT_UINT_EQ(weir_kit_records_last(records), 257);
}

// Threads.

static struct {
    weir_kit_records *records;
    struct weir_thread thread;
    atomic_bool begun;
    weir_status status;
} late;

static void ask_late(void *argument)
{
    late.begun = true;
    late.status = weir_kit_records_query(late.records, 1);
}

// Another thread asks while this one has the lock.
static enum weir_kit_state query_meanwhile(void *queue, void *native, int *out_code)
{
    if (!late.begun) {
        EXPECT_INT_EQ(weir_thread_start(&late.thread, ask_late, NULL), 0);
        while (!late.begun)
            sched_yield();
        weir_clock_sleep_ns(20000000);
    }
    return query(queue, native, out_code);
}

// And not taken for a later one, which has not ended or has failed.
WEIR_TEST(KitRecords, ARecordThatLeavesTheRingMeanwhileIsComplete)
{
    struct weir_kit_record_ops ops = reused;
    ops.query = query_meanwhile;
    memset(&late, 0, sizeof late);
    late.records = make(&ops, 0);
    for (uint64_t i = 1; i <= 7; i++)
        record(late.records, i)->state = WEIR_KIT_COMPLETE;
    record(late.records, 8);
    record(late.records, 9);
    ASSERT_TRUE(late.begun);
    weir_thread_join(&late.thread);
    EXPECT_OK(late.status);
    end(late.records);
}

// One thread submits, the device works at its own pace, and others ask.
enum {
    RECORDS = 20000,
    READERS = 3,
    BACKLOG = 600
};

struct busy_event {
    _Atomic uint64_t sequence; // 0: destroyed
};

static struct busy_event busy_events[RECORDS];

static struct {
    weir_kit_records *records;
    size_t created;
    uint64_t next;             // is recorded next
    _Atomic uint64_t recorded; // and added
    _Atomic uint64_t done;     // by the device
} busy;

static weir_status busy_record(void *queue, void **native)
{
    struct busy_event *event = *native;
    if (!event)
        *native = event = &busy_events[busy.created++];
    EXPECT_TRUE(event->sequence <= busy.done);
    event->sequence = busy.next;
    return WEIR_OK;
}

static void busy_destroy(void *queue, void *native)
{
    ((struct busy_event *)native)->sequence = 0;
}

static enum weir_kit_state busy_query(void *queue, void *native, int *out_code)
{
    const uint64_t sequence = ((struct busy_event *)native)->sequence;
    EXPECT_TRUE(sequence > 0);
    return sequence <= busy.done ? WEIR_KIT_COMPLETE : WEIR_KIT_PENDING;
}

static enum weir_kit_state busy_wait(void *queue, void *native, int *out_code)
{
    while (busy_query(queue, native, out_code) == WEIR_KIT_PENDING)
        sched_yield();
    return WEIR_KIT_COMPLETE;
}

static int busy_time(void *queue, void *native, uint64_t *out_time_ns)
{
    *out_time_ns = 10 * ((struct busy_event *)native)->sequence;
    return 0;
}

static struct weir_kit_record_ops busy_ops = {.record = busy_record,
                                              .destroy = busy_destroy,
                                              .query = busy_query,
                                              .wait = busy_wait,
                                              .time = busy_time,
                                              .report = report};
static void busy_device(void *argument)
{
    for (; busy.done < RECORDS; sched_yield()) // so that the ring is now full and now empty
        for (const uint64_t end = busy.recorded; busy.done < end;)
            busy.done++;
}

static void busy_reader(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument + 1;
    uint64_t time_ns;
    while (busy.recorded < RECORDS) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t last = busy.recorded;
        const uint64_t back = (random >> 33) % (random >> 63 ? BACKLOG : 4);
        const uint64_t sequence = back < last ? last - back : 1;
        if (last == 0)
            continue;
        const bool is_done = busy.done >= sequence;
        const weir_status status = weir_kit_records_query(busy.records, sequence);
        EXPECT_TRUE(status == WEIR_OK || (!is_done && status == WEIR_NOT_READY));
        const struct busy_event *event = weir_kit_records_hold(busy.records, sequence);
        if (event) {
            const uint64_t held = event->sequence;
            sched_yield();
            EXPECT_UINT_EQ(held, sequence);
            EXPECT_UINT_EQ(event->sequence, sequence);
            weir_kit_records_release(busy.records, sequence);
        }
        EXPECT_OK(weir_kit_records_wait(busy.records, sequence, WEIR_FOREVER));
        EXPECT_TRUE(busy.done >= sequence);
        EXPECT_OK(weir_kit_records_time(busy.records, sequence, &time_ns));
        EXPECT_UINT_EQ(time_ns, 10 * sequence);
    }
}

static void keep_busy(bool reused_events)
{
    struct weir_thread threads[READERS + 1];
    memset(busy_events, 0, sizeof busy_events);
    memset(&busy, 0, sizeof busy);
    busy_ops.reused = reused_events;
    busy.records = make(&busy_ops, RECORDS);
    for (uintptr_t i = 0; i <= READERS; i++)
        ASSERT_INT_EQ(weir_thread_start(&threads[i], i < READERS ? busy_reader : busy_device,
                                        (void *)i),
                      0);
    for (busy.next = 1; busy.next <= RECORDS; busy.next++) {
        while (busy.recorded - busy.done >= BACKLOG)
            sched_yield();
        EXPECT_OK(weir_kit_records_add(busy.records, busy.next));
        busy.recorded = busy.next;
    }
    for (size_t i = 0; i <= READERS; i++)
        weir_thread_join(&threads[i]);
    weir_kit_records_destroy(&busy.records);
    EXPECT_INT_EQ(test_host_blocks(), 0);
}

WEIR_TEST(KitRecords, ThreadsAskWhileOneSubmits)
{
    keep_busy(true);
    keep_busy(false);
}
