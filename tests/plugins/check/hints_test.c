// Waits that no use of memory needs, and waits because of different bytes of one buffer, are told;
// beside each the like of it that must not be.
#include <weir/interop.h>

#include "tests/plugins/check/hints_rig.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)

WEIR_TEST(CheckHints, WaitThatNothingNeeds)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.b, rig.host);
    rig_close(&rig);
    EXPECT_CONTAINS(told,
                    "needless-wait: the wait on 'two' at waits:10 names the record on 'one' at ");
    EXPECT_CONTAINS(told, ", and no use of memory needs that; remove the wait of waits:10");
}

WEIR_TEST(CheckHints, WaitThatAUseNeeds)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.b, rig.a);
    expect_silence(&rig);
}

// One of two rounds is enough.
WEIR_TEST(CheckHints, LineThatIsNeededOnce)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        fill(rig.one, rig.a, 0, SIZE);
        wait_for(rig.two, rig.one, 10);
        copy(rig.two, rig.b, i == 0 ? rig.a : rig.host);
        wait_for(rig.one, rig.two, 11);
    }
    expect_silence(&rig);
}

WEIR_TEST(CheckHints, LineThatIsNeverNeeded)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        fill(rig.one, rig.a, 0, SIZE);
        wait_for(rig.two, rig.one, 10);
        copy(rig.two, rig.b, rig.host);
    }
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
}

// A wait that a later one contains.
WEIR_TEST(CheckHints, WaitBeforeALaterOne)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.one, rig.host, 0, SIZE);
    wait_for(rig.two, rig.one, 11);
    copy(rig.two, rig.b, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "waits:10");
    EXPECT_NOT_CONTAINS(told, "waits:11");
}

// The queue in between uses nothing that it waits for.
WEIR_TEST(CheckHints, WaitsThroughAThirdQueue)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    wait_for(rig.three, rig.two, 11);
    copy(rig.three, rig.b, rig.a);
    expect_silence(&rig);
}

WEIR_TEST(CheckHints, WaitsThroughAThirdQueueForNothing)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.host, 0, SIZE);
    wait_for(rig.three, rig.two, 11);
    copy(rig.three, rig.b, rig.host);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
    EXPECT_NOT_CONTAINS(told, "waits:11");
}

// The same, and the queue in between has ended when the use comes: then the host knew.
WEIR_TEST(CheckHints, WaitsThroughAQueueThatIsDestroyed)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    wait_for(rig.three, rig.two, 11);
    weir_queue_destroy(&rig.two);
    copy(rig.three, rig.b, rig.a);
    rig.two = make_queue(&rig, "two");
    wait_for(rig.three, rig.one, 12);
    wait_for(rig.two, rig.three, 13);
    fill(rig.two, rig.b, 0, SIZE);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'three' at waits:11");
    EXPECT_NOT_CONTAINS(told, "waits:10");
    EXPECT_NOT_CONTAINS(told, "waits:13");
}

// A queue reads what another has read, and a third one writes it: the one wait orders the reads only,
// and the write is after both.
WEIR_TEST(CheckHints, WaitThatOrdersReads)
{
    struct rig rig;
    rig_open(&rig);
    copy(rig.one, rig.b, rig.a);
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.host, rig.a);
    wait_for(rig.three, rig.two, 11);
    fill(rig.three, rig.a, 0, SIZE);
    expect_silence(&rig);
}

// The host.

WEIR_TEST(CheckHints, WaitThroughWhichTheHostKnows)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    sync(rig.two);
    expect_silence(&rig);
}

WEIR_TEST(CheckHints, WaitForWhatTheHostKnew)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    sync(rig.one);
    sync(rig.two);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
}

// The host may not know it another time.
WEIR_TEST(CheckHints, WaitForWhatTheHostHappensToKnow)
{
    struct rig rig;
    struct weir_event event;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    EXPECT_OK(weir_queue_record(rig.one, &event));
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER - 1));
    EXPECT_OK(weir_event_query(event));
    copy(rig.three, rig.host, rig.a);
    copy(rig.two, rig.b, rig.a);
    expect_silence(&rig);
}

// It has waited for it, here and another time.
WEIR_TEST(CheckHints, WaitForWhatTheHostHasWaitedFor)
{
    struct rig rig;
    struct weir_event event;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    EXPECT_OK(weir_queue_record(rig.one, &event));
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
    copy(rig.two, rig.b, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
    EXPECT_NOT_CONTAINS(told, "needless-sync");
}

static weir_status nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

WEIR_TEST(CheckHints, WaitBeforeAHostCall)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_queue_host_call(rig.two, nothing, NULL));
    expect_silence(&rig);
}

static weir_status look(void *user)
{
    void *pointer;
    const weir_status status = weir_host_begin(user, 0, SIZE, WEIR_ACCESS_WRITE, &pointer);
    return status < 0 ? status : weir_host_end(user, 0, SIZE, WEIR_ACCESS_WRITE);
}

WEIR_TEST(CheckHints, WaitForAHostCall)
{
    struct rig rig;
    rig_open(&rig);
    EXPECT_OK(weir_queue_host_call(rig.one, look, rig.host));
    wait_for(rig.two, rig.one, 10);
    copy(rig.two, rig.b, rig.host);
    expect_silence(&rig);
}

// What is not known.

WEIR_TEST(CheckHints, WaitAndAFinding)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.one, rig.a, 0, SIZE);
    copy(rig.two, rig.b, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "read-after-write");
    EXPECT_NOT_CONTAINS(told, "needless-wait");
}

WEIR_TEST(CheckHints, WaitAndANativeQueue)
{
    struct rig rig;
    struct weir_native_queue native = {.struct_size = sizeof native};
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    (void)weir_queue_get_native(rig.two, &native);
    expect_silence(&rig);
}

// False sharing.

WEIR_TEST(CheckHints, WaitForOtherBytes)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE / 2);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.a, SIZE / 2, SIZE / 2);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "false-sharing: the fill on 'two' at ");
    EXPECT_CONTAINS(told, " waits for the fill on 'one' at ");
    EXPECT_CONTAINS(told, ", and they use different bytes of buffer 'a'; remove the wait between ");
    EXPECT_NOT_CONTAINS(told, "needless-wait");
}

WEIR_TEST(CheckHints, WaitForOneByte)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE / 2 + 1);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.a, SIZE / 2, SIZE / 2);
    expect_silence(&rig);
}

// Other bytes of one buffer, and the same of another.
WEIR_TEST(CheckHints, WaitForOtherBytesAndMore)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE / 2);
    fill(rig.one, rig.b, 0, SIZE);
    wait_for(rig.two, rig.one, 10);
    fill(rig.two, rig.a, SIZE / 2, SIZE / 2);
    fill(rig.two, rig.b, 0, SIZE);
    expect_silence(&rig);
}

// Both read.
WEIR_TEST(CheckHints, WaitForReadsOfOtherBytes)
{
    struct rig rig;
    rig_open(&rig);
    EXPECT_OK(weir_queue_copy(rig.one, rig.b, 0, rig.a, 0, SIZE / 2));
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_queue_copy(rig.two, rig.host, 0, rig.a, SIZE / 2, SIZE / 2));
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-wait: the wait on 'two' at waits:10");
    EXPECT_NOT_CONTAINS(told, "false-sharing");
}
