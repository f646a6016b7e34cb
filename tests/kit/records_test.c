// The ring of records, on a driver that is an array of events: each completes, fails or refuses
// to answer when the test says so. Both kinds are tested: events that are reused, and events that are
// created with each record.
#include <weir/kit/records.h>

#include <stdatomic.h>
#include <string.h>

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
