// Syncs that no use of memory needs are told; beside each the like of it that must not be.
#include <pthread.h>

#include "tests/plugins/check/hints_rig.h"
#include "tests/support/test.h"

#define EXPECT_OK(call) EXPECT_INT_EQ(call, WEIR_OK)
#define ASSERT_OK(call) ASSERT_INT_EQ(call, WEIR_OK)

// Work on one queue, a sync after each round.
WEIR_TEST(CheckHintSyncs, SyncOfEachRound)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        fill(rig.one, rig.a, 0, SIZE);
        copy(rig.one, rig.host, rig.a);
        sync_at(rig.one, 10);
    }
    sync_at(rig.one, 11);
    copy(rig.one, rig.host, rig.a);
    sync_at(rig.one, 12);
    use(rig.host, WEIR_ACCESS_READ);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-sync: the host at syncs:10 waits for 'one', and no use of "
                          "memory needs that; remove the sync of syncs:10, unless ");
    EXPECT_CONTAINS(told, "needless-sync: the host at syncs:11");
    EXPECT_NOT_CONTAINS(told, "syncs:12");
}

WEIR_TEST(CheckHintSyncs, SyncOfEachRoundAndARead)
{
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        copy(rig.one, rig.host, rig.a);
        sync_at(rig.one, 10);
        if (i == 1)
            use(rig.host, WEIR_ACCESS_READ);
    }
    copy(rig.one, rig.host, rig.a);
    sync_at(rig.one, 11);
    copy(rig.one, rig.host, rig.a);
    rig_close(&rig);
    EXPECT_NOT_CONTAINS(told, "syncs:10");
    EXPECT_CONTAINS(told, "syncs:11");
}

// The host reads what queues read, what it knew before, and other bytes than they write.
WEIR_TEST(CheckHintSyncs, SyncForNoneOfTheBytes)
{
    struct rig rig;
    rig_open(&rig);
    use(rig.host, WEIR_ACCESS_READ);
    copy(rig.one, rig.a, rig.host);
    fill(rig.two, rig.b, 0, SIZE);
    sync_at(rig.one, 10);
    sync_at(rig.two, 11);
    use(rig.host, WEIR_ACCESS_READ);
    copy(rig.one, rig.a, rig.host);
    fill(rig.two, rig.b, 0, SIZE);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "syncs:10");
    EXPECT_CONTAINS(told, "syncs:11");
}

// Which of two syncs it is that the host needs is left open, so one of them stays.
WEIR_TEST(CheckHintSyncs, SyncBeforeALaterOne)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.host, 0, SIZE);
    sync_at(rig.one, 10);
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 11);
    use(rig.host, WEIR_ACCESS_READ);
    fill(rig.one, rig.a, 0, SIZE);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "syncs:10");
    EXPECT_NOT_CONTAINS(told, "syncs:11");
}

WEIR_TEST(CheckHintSyncs, SyncBeforeAWriteOfTheSource)
{
    struct rig rig;
    rig_open(&rig);
    copy(rig.one, rig.a, rig.host);
    sync_at(rig.one, 10);
    use(rig.host, WEIR_ACCESS_WRITE);
    expect_silence(&rig);
}

// A download waits itself, for its own queue.
WEIR_TEST(CheckHintSyncs, SyncBeforeADownload)
{
    char bytes[SIZE];
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 10);
    EXPECT_OK(weir_download(rig.one, bytes, rig.a, 0, SIZE));
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 11);
    EXPECT_OK(weir_download(rig.two, bytes, rig.a, 0, SIZE));
    rig_close(&rig);
    EXPECT_CONTAINS(told, "syncs:10");
    EXPECT_NOT_CONTAINS(told, "syncs:11");
}

// Of an event that a wait of another queue includes.
WEIR_TEST(CheckHintSyncs, SyncThroughAnotherQueue)
{
    struct weir_event done;
    struct rig rig;
    rig_open(&rig);
    copy(rig.one, rig.host, rig.a);
    wait_for(rig.two, rig.one, 10);
    EXPECT_OK(weir_queue_record(rig.two, &done));
    EXPECT_OK(weir_event_sync_at(done, WEIR_FOREVER, "syncs", 11));
    use(rig.host, WEIR_ACCESS_READ);
    expect_silence(&rig);
}

WEIR_TEST(CheckHintSyncs, SyncOfAnEvent)
{
    struct weir_event done;
    struct rig rig;
    rig_open(&rig);
    copy(rig.one, rig.host, rig.a);
    EXPECT_OK(weir_queue_record(rig.one, &done));
    EXPECT_OK(weir_event_sync_at(done, WEIR_FOREVER, "syncs", 10));
    copy(rig.one, rig.host, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "needless-sync: the host at syncs:10 waits for the record on 'one' at ");
}

// Two queues use the same bytes, one before the sync and one after it.
WEIR_TEST(CheckHintSyncs, SyncBetweenTwoQueues)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 10);
    copy(rig.two, rig.b, rig.a);
    expect_silence(&rig);
}

// Nothing is known of what another run's query, or a wait with a limit, says.
WEIR_TEST(CheckHintSyncs, SyncAndAQuery)
{
    struct weir_event events[2];
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 2; i++) {
        fill(rig.one, rig.a, 0, SIZE);
        EXPECT_OK(weir_queue_record(rig.one, &events[i]));
        sync_at(rig.one, 10 + i);
        EXPECT_OK(i == 0 ? weir_event_query(events[i])
                         : weir_event_sync(events[i], WEIR_FOREVER - 1));
    }
    EXPECT_OK(weir_queue_record(rig.one, &events[0]));
    sync_at(rig.one, 12);
    EXPECT_OK(weir_event_error(events[0]));
    fill(rig.one, rig.a, 0, SIZE);
    expect_silence(&rig);
}

WEIR_TEST(CheckHintSyncs, SyncBeforeTheEndOfABuffer)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.b, 0, SIZE);
    sync_at(rig.one, 10);
    weir_buffer_destroy(&rig.b);
    expect_silence(&rig);
}

WEIR_TEST(CheckHintSyncs, SyncBeforeTheEndOfAQueue)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.two, rig.b, 0, SIZE);
    sync_at(rig.two, 10);
    weir_queue_destroy(&rig.two);
    rig.two = make_queue(&rig, "two");
    fill(rig.two, rig.b, 0, SIZE);
    sync_at(rig.two, 11);
    fill(rig.two, rig.b, 0, SIZE);
    rig_close(&rig);
    EXPECT_NOT_CONTAINS(told, "syncs:10");
    EXPECT_CONTAINS(told, "syncs:11");
}

static weir_status nothing(void *user)
{
    (void)user;
    return WEIR_OK;
}

// What the function uses is the program's, before the sync and after it.
WEIR_TEST(CheckHintSyncs, SyncOfAHostCall)
{
    struct rig rig;
    rig_open(&rig);
    EXPECT_OK(weir_queue_host_call(rig.one, nothing, NULL));
    sync_at(rig.one, 10);
    fill(rig.two, rig.b, 0, SIZE);
    sync_at(rig.two, 11);
    EXPECT_OK(weir_queue_host_call(rig.one, nothing, NULL));
    expect_silence(&rig);
}

static weir_status failing(void *user)
{
    (void)user;
    return WEIR_ERROR_HOST_CALL;
}

WEIR_TEST(CheckHintSyncs, SyncThatFails)
{
    struct weir_event done;
    struct rig rig;
    rig_open(&rig);
    weir_queue *queue = make_queue(&rig, "failing");
    EXPECT_OK(weir_queue_host_call(queue, failing, NULL));
    EXPECT_OK(weir_queue_record(rig.one, &done));
    sync_at(rig.one, 10);
    EXPECT_INT_EQ(weir_queue_sync_at(queue, WEIR_FOREVER, "syncs", 11), WEIR_ERROR_HOST_CALL);
    EXPECT_OK(weir_queue_recover(queue));
    weir_queue_destroy(&queue);
    rig_close(&rig);
    EXPECT_NOT_CONTAINS(told, "syncs:11");
}

// Another thread may do so elsewhere another time.
static void *sync_in_thread(void *user)
{
    sync(user);
    return NULL;
}

WEIR_TEST(CheckHintSyncs, SyncsOfTwoThreads)
{
    struct rig rig;
    pthread_t thread;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 10);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, sync_in_thread, rig.two), 0);
    pthread_join(thread, NULL);
    expect_silence(&rig);
}

WEIR_TEST(CheckHintSyncs, SyncAndMemoryOfTheProgram)
{
    static _Alignas(4096) char memory[4096];
    const struct weir_wrap_params params = {.struct_size = sizeof params,
                                            .pointer = memory,
                                            .size = sizeof memory};
    weir_buffer *wrapped;
    struct rig rig;
    rig_open(&rig);
    ASSERT_OK(weir_buffer_wrap(rig.device, &params, &wrapped));
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 10);
    weir_buffer_destroy(&wrapped);
    expect_silence(&rig);
}

WEIR_TEST(CheckHintSyncs, SyncAndAFinding)
{
    struct rig rig;
    rig_open(&rig);
    fill(rig.one, rig.a, 0, SIZE);
    sync_at(rig.one, 10);
    fill(rig.one, rig.a, 0, SIZE);
    copy(rig.two, rig.b, rig.a);
    rig_close(&rig);
    EXPECT_CONTAINS(told, "read-after-write");
    EXPECT_NOT_CONTAINS(told, "needless-sync");
}

// So many uses that those which the host knows of are dropped.
WEIR_TEST(CheckHintSyncs, SyncBeforeManyUses)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = 8192};
    struct rig rig;
    weir_buffer *large;
    rig_open(&rig);
    ASSERT_OK(weir_buffer_create(rig.device, &params, &large));
    fill(rig.one, large, 8190, 1);
    sync_at(rig.one, 10);
    for (size_t i = 0; i < 2000; i++)
        fill(rig.one, large, 2 * i, 1);
    sync_at(rig.one, 11);
    fill(rig.two, large, 8190, 1);
    weir_buffer_destroy(&large);
    expect_silence(&rig);
}
