// Collectives by an engine of the device: the tests' NCCL, which lies as the real one does. What it does
// right is in conformance_test.c.
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/comm/nccl.h"

static void open_with(struct comm_rig *rig, const char *comm, uint32_t count)
{
    char text[256];
    snprintf(text, sizeof text, "[comm]\n%s\n", comm);
    comm_rig_open(rig, text, count, WEIR_PLACE_DEVICE);
}

#define WITH_TEST(suite, name, comm, count) \
    COMM_RIG_TEST_BY(suite, name, open_with(rig, comm, count), nccl_close(rig))

// A collective that has ended fails its queue some time after, when the ranks have compared their calls.
static void await_queue_failure(weir_queue *queue)
{
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    while (weir_queue_sync(queue, GUARD_NS) == WEIR_OK &&
           weir_clock_pause(start_ns, GUARD_NS, &pause_ns))
        continue;
}

WITH_TEST(CommNccl, TheEngineIsNamed, "", 2)
{
    EXPECT_STR_EQ(weir_comm_engine(rig->comms[0]), "NCCL 2.28.9");
    EXPECT_STR_EQ(weir_comm_engine(NULL), "");
    EXPECT_UINT_EQ(weir_device_limits(rig->device)->collectives, 2);
}

WEIR_TEST(CommNccl, OffIsThroughTheHost)
{
    static const int32_t one[] = {1};
    static const int32_t two[] = {2};
    struct comm_rig rig;
    setenv("WEIR_CUDA_NCCL", "off", 1);
    open_with(&rig, "", 2);
    EXPECT_STR_EQ(weir_comm_engine(rig.comms[0]), "local");
    EXPECT_UINT_EQ(weir_device_limits(rig.device)->collectives, 1);
    comm_rig_write_all(&rig, rig.src, 0, one, 1);
    COMM_RIG_REDUCE_ALL(&rig, 1);
    comm_rig_expect(&rig, 1, rig.dst[1], 0, two, 1);
    comm_rig_close(&rig);
    setenv("WEIR_CUDA_NCCL", NCCL_LIBRARY, 1);
}

// The library that the program has loaded.
WEIR_TEST(CommNccl, TheLoadedOneWins)
{
    struct comm_rig rig;
    (void)nccl();
    setenv("WEIR_CUDA_NCCL", "auto", 1);
    open_with(&rig, "", 2);
    EXPECT_STR_EQ(weir_comm_engine(rig.comms[1]), "NCCL 2.28.9");
    nccl_close(&rig);
    setenv("WEIR_CUDA_NCCL", NCCL_LIBRARY, 1);
}

// No rank gets a communicator, and each says why.
static void expect_no_library(const char *library, const char *why)
{
    struct comm_rig rig;
    const char *const words[] = {"rank 0 has no usable NCCL", why, "libnccl2"};
    setenv("WEIR_CUDA_NCCL", library, 1);
    comm_rig_open(&rig, "", 0, WEIR_PLACE_DEVICE);
    EXPECT_INT_EQ(weir_comm_create_all(rig.devices, 2, NULL, rig.comms), WEIR_ERROR_MODULE);
    comm_rig_expect_words(words, 3);
    comm_rig_close(&rig);
    setenv("WEIR_CUDA_NCCL", NCCL_LIBRARY, 1);
}

WEIR_TEST(CommNccl, NoUsableLibrary)
{
    expect_no_library("nowhere/libnccl.so.2", "cannot open shared object file");
    expect_no_library("tests/support/libcuda/libcuda.so.1", "lacks nccl");
    setenv("WEIR_TEST_NCCL_VERSION", "21704", 1);
    expect_no_library(NCCL_LIBRARY, "NCCL 2.17.4 is older than 2.18");
    unsetenv("WEIR_TEST_NCCL_VERSION");
    nccl()->fail("ncclGetUniqueId", 1, 2);
    expect_no_library(NCCL_LIBRARY, "ncclGetUniqueId fails: the fake was told to fail");
    nccl()->fail(NULL, 0, 0);
}

WITH_TEST(CommNccl, TheCreationHangs, "", 0)
{
    nccl()->hold("ncclCommInitRank");
    EXPECT_FAILURE(weir_comm_create_all(rig->devices, 1,
                                        WEIR_PARAMS(weir_comm, .timeout_ns = SECOND / 2),
                                        rig->comms),
                   WEIR_ERROR_COMM, "ncclCommInitRank has not returned in 500 ms on rank 0");
    nccl()->hold(NULL);
}

// The same call again and again, on one thread: from the second time on it is submitted at once.
WITH_TEST(CommNccl, ManyInARow, "", 4)
{
    int32_t numbers[100];
    for (int i = 0; i < 100; i++)
        numbers[i] = i;
    comm_rig_write_all(rig, rig->dst, 0, numbers, 100);
    for (int step = 0; step < 8; step++)
        for (uint32_t rank = 0; rank < 4; rank++)
            EXPECT_OK(weir_queue_all_reduce(rig->queues[rank], rig->comms[rank], rig->dst[rank], 0,
                                            rig->dst[rank], 0, 100, WEIR_I32, WEIR_SUM));
    for (int i = 0; i < 100; i++)
        numbers[i] = i << 16;
    comm_rig_expect_all(rig, rig->dst, 0, numbers, 100);
}

static void *duplicate_second(void *user)
{
    struct comm_rig *rig = user;
    EXPECT_OK(weir_comm_duplicate(rig->comms[1], "copy", &rig->copies[1]));
    return NULL;
}

// Each waits for the other.
static void duplicate_both(struct comm_rig *rig)
{
    pthread_t thread;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, duplicate_second, rig), 0);
    EXPECT_OK(weir_comm_duplicate(rig->comms[0], "copy", &rig->copies[0]));
    pthread_join(thread, NULL);
}

static void open_lazy(struct comm_rig *rig)
{
    nccl()->blocking(false);
    nccl_open(rig, 2, 20 * SECOND);
}

static void close_lazy(struct comm_rig *rig)
{
    nccl()->blocking(true);
    nccl_close(rig);
}

// With NCCL_COMM_BLOCKING=0 NCCL's calls return before they have done all.
COMM_RIG_TEST_BY(CommNccl, CallsThatAreInProgress, open_lazy(rig), close_lazy(rig))
{
    const int32_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t fours[] = {4, 4, 4, 4, 4, 4, 4, 4};
    duplicate_both(rig);
    comm_rig_write_all(rig, rig->dst, 0, ones, 8);
    for (int step = 0; step < 2; step++)
        for (uint32_t rank = 0; rank < 2; rank++)
            EXPECT_OK(weir_queue_all_reduce(rig->queues[rank],
                                            step ? rig->copies[rank] : rig->comms[rank],
                                            rig->dst[rank], 0, rig->dst[rank], 0, 8, WEIR_I32,
                                            WEIR_SUM));
    for (uint32_t rank = 0; rank < 2; rank++)
        EXPECT_OK(weir_queue_all_to_all(rig->queues[rank], rig->comms[rank], rig->dst[rank], 0,
                                        rig->dst[rank], 0, 4, WEIR_I32));
    comm_rig_expect_all(rig, rig->dst, 0, fours, 8);
}

// And one whose creation fails afterwards.
COMM_RIG_TEST_BY(CommNccl, ACreationThatIsInProgressFails, comm_rig_open_ranks(rig, "", 2),
                 nccl_close(rig))
{
    nccl()->blocking(false);
    nccl()->async_error(2); // ncclSystemError
    EXPECT_INT_EQ(weir_comm_create_all(rig->devices, 2, WEIR_PARAMS(weir_comm, .label = "grads"),
                                       rig->comms),
                  WEIR_ERROR_COMM);
    nccl()->async_error(0);
    nccl()->blocking(true);
}

// NCCL completes both. The beats tell, also where rank 0 asks about its own meanwhile, and so knows that it is complete
// before it hears of the other one.
WEIR_TEST(CommNccl, CountsThatDiffer)
{
    for (int late = 0; late < 2; late++) {
        own_nccl rig = {0};
        nccl_open(&rig, 2, 20 * SECOND);
        EXPECT_OK(COMM_RIG_REDUCE(&rig, 0, 8));
        weir_clock_sleep_ns(late ? SECOND / 5 : 0);
        EXPECT_OK(COMM_RIG_REDUCE(&rig, 1, 7));
        for (uint32_t rank = 0; rank < 2; rank++) {
            COMM_RIG_AWAIT_FAILURE(rig.comms[rank], "all-reduce 1 of 'grads'",
                                   "nccl_test.c:", "with 8 i32", "with 7 i32");
            EXPECT_INT_EQ(COMM_RIG_REDUCE(&rig, rank, 8), WEIR_ERROR_COMM);
            await_queue_failure(rig.queues[rank]);
            COMM_RIG_EXPECT_CAUSE(rig.queues[rank], "all-reduce 1 of 'grads'", "with 8 i32");
            EXPECT_OK(weir_queue_recover(rig.queues[rank]));
        }
    }
}

// Of several ranks the one that differs is named on all of them.
static void expect_the_odd_one(const char *section, uint32_t odd, uint32_t before)
{
    own_nccl rig = {0};
    char named[64];
    open_with(&rig, section, 3);
    for (uint32_t i = 0; i < before; i++)
        COMM_RIG_REDUCE_ALL(&rig, 8);
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_OK(COMM_RIG_REDUCE(&rig, (odd + i) % 3, i == 0 ? 7 : 8));
    snprintf(named, sizeof named, ": rank %u has called all-reduce %u (", (unsigned)odd,
             (unsigned)(before + 1));
    for (uint32_t rank = 0; rank < 3; rank++) {
        COMM_RIG_AWAIT_FAILURE(rig.comms[rank], named, "with 7 i32", "with 8 i32");
        await_queue_failure(rig.queues[rank]);
        EXPECT_INT_LT(weir_queue_recover(rig.queues[rank]), 1);
    }
}

WEIR_TEST(CommNccl, TheOneOfSeveralThatDiffers)
{
    for (uint32_t odd = 0; odd < 3; odd++) {
        expect_the_odd_one("", odd, 0);
        expect_the_odd_one("", odd, 3);
        expect_the_odd_one("check = 1", odd, 2);
    }
}

// One that leaves a call out has, from then on, a number less than the others. It is named; that it is the one at fault
// only if the third rank has told its calls in time.
WEIR_TEST(CommNccl, TheOneOfSeveralThatLeavesOneOut)
{
    for (uint32_t odd = 0; odd < 3; odd++) {
        own_nccl rig = {0};
        char named[64];
        comm_rig_open(&rig, "", 3, WEIR_PLACE_DEVICE);
        for (uint32_t rank = 0; rank < 3; rank++)
            for (uint32_t i = 0; i < 40; i++)
                if (rank != odd || i != 2)
                    WEIR_IGNORE(COMM_RIG_REDUCE(&rig, rank, 1 + i));
        snprintf(named, sizeof named, "rank %u ", (unsigned)odd);
        for (uint32_t rank = 0; rank < 3; rank++)
            COMM_RIG_AWAIT_FAILURE(rig.comms[rank], named);
    }
}

// With check nothing of it reaches the engine.
WITH_TEST(CommNccl, CheckComparesBefore, "check = 1", 2)
{
    const long before = nccl()->calls("ncclAllReduce");
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    EXPECT_OK(weir_queue_all_reduce(rig->queues[1], rig->comms[1], rig->dst[1], 0, rig->src[1], 0,
                                    8, WEIR_I32, WEIR_PRODUCT));
    for (uint32_t rank = 0; rank < 2; rank++)
        COMM_RIG_EXPECT_CAUSE(rig->queues[rank], "all-reduce 1 of 'grads'", "product", "sum");
    EXPECT_INT_EQ((int)(nccl()->calls("ncclAllReduce") - before), 0);
}

static void expect_new_one_works(struct comm_rig *rig)
{
    static const int32_t ones[] = {1, 1};
    static const int32_t twos[] = {2, 2};
    for (uint32_t rank = 0; rank < 2; rank++) {
        WEIR_IGNORE(weir_queue_recover(rig->queues[rank]));
        weir_comm_destroy(&rig->comms[rank]);
    }
    nccl_create(rig, 2, 20 * SECOND);
    comm_rig_write_all(rig, rig->src, 0, ones, 2);
    COMM_RIG_REDUCE_ALL(rig, 2);
    comm_rig_expect_all(rig, rig->dst, 0, twos, 2);
}

// A rank that never calls. After the abort the engine's event is complete, without an error.
NCCL_TEST(CommNccl, ARankThatIsLate, 2, SECOND / 2)
{
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "all-reduce 1 of 'grads'", "nccl_test.c:",
                          "rank 1 has submitted nothing before its first collective in 500 ms");
    COMM_RIG_AWAIT_FAILURE(rig->comms[1], "rank 0 has aborted 'grads'",
                           "rank 1 has submitted nothing");
    EXPECT_INT_EQ(COMM_RIG_REDUCE(rig, 1, 8), WEIR_ERROR_COMM);
    expect_new_one_works(rig);
}

// Work before the collective may take longer than the timeout.
NCCL_TEST(CommNccl, WorkBeforeItHasTime, 2, SECOND / 2)
{
    static const int32_t two[] = {2};
    static const int32_t one[] = {1};
    struct gate gate = {0};
    for (uint32_t rank = 0; rank < 2; rank++) {
        comm_rig_write(rig, rank, rig->src[rank], 0, one, 1);
        EXPECT_OK(weir_queue_host_call(rig->queues[rank], gate_pass, &gate));
        EXPECT_OK(COMM_RIG_REDUCE(rig, rank, 1));
    }
    weir_clock_sleep_ns(SECOND);
    gate_open(&gate);
    comm_rig_expect(rig, 0, rig->dst[0], 0, two, 1);
}

NCCL_TEST(CommNccl, AnAbort, 2, 20 * SECOND)
{
    COMM_RIG_REDUCE_ALL(rig, 8);
    comm_rig_sync(rig, GUARD_NS);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8)); // in flight when it returns, as one has been before it
    EXPECT_OK(weir_comm_abort(rig->comms[1], "the loss is no number"));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "all-reduce 2 of 'grads'", "the loss is no number");
    COMM_RIG_AWAIT_FAILURE(rig->comms[1], "the loss is no number");
    expect_new_one_works(rig);
}

// A rank whose process has stopped sends no beats. Which of the two it is here is found out.
NCCL_TEST(CommNccl, ARankThatHasStopped, 2, SECOND)
{
    char named[128];
    char own[128];
    char host[64] = "";
    COMM_RIG_REDUCE_ALL(rig, 8);
    comm_rig_sync(rig, GUARD_NS);
    // One in each rank's beat: both ranks have heard of the call.
    const long asked = nccl()->calls("ncclCommGetAsyncError");
    while (nccl()->calls("ncclCommGetAsyncError") < asked + 8)
        weir_clock_sleep_ns(SECOND / 1000);
    nccl()->hold_one("ncclCommGetAsyncError");
    nccl()->await_held();
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    while (weir_comm_error(rig->comms[0]) == WEIR_OK && weir_comm_error(rig->comms[1]) == WEIR_OK &&
           weir_clock_pause(start_ns, GUARD_NS, &pause_ns))
        continue;
    const uint32_t stopped = weir_comm_error(rig->comms[0]) == WEIR_OK ? 0 : 1;
    EXPECT_INT_EQ(weir_comm_error(rig->comms[1 - stopped]), WEIR_ERROR_COMM);
    (void)gethostname(host, sizeof host - 1);
    snprintf(named, sizeof named, "communicator 'grads': rank %u has not answered in 1.00 s",
             (unsigned)stopped);
    snprintf(own, sizeof own, "; it is process %ld of '%s'", (long)getpid(), host);
    EXPECT_ERROR(named, "at the earliest after all-reduce 1 (tests/comm/nccl_test.c:",
                 "): it is stopped, or cut off", own);
    EXPECT_ERROR("continue that process, or end it");
    nccl()->hold(NULL);
}

// Nothing waits for ncclCommAbort.
NCCL_TEST(CommNccl, AnAbortThatHangs, 2, SECOND / 2)
{
    nccl()->hold("ncclCommAbort");
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "rank 1 has submitted nothing");
    nccl()->await_held();
    expect_new_one_works(rig);
    nccl()->hold(NULL);
}

// A device that closes meanwhile does not wait for it for ever either.
WEIR_TEST(CommNccl, ADestroyThatHangs)
{
    struct comm_rig rig;
    nccl_open(&rig, 1, SECOND);
    nccl()->hold("ncclCommDestroy");
    weir_comm_destroy(&rig.comms[0]);
    nccl()->await_held();
    comm_rig_close(&rig);
    nccl()->hold(NULL);
    nccl_await_ends();
}

NCCL_TEST(CommNccl, AnErrorOfTheEngine, 2, 20 * SECOND)
{
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    nccl()->async_error(6);
    COMM_RIG_AWAIT_FAILURE(rig->comms[1], "'grads'", "NCCL 2.28.9", "the fake's error");
    nccl()->async_error(0);
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "'grads'", "NCCL 2.28.9");
}

NCCL_TEST(CommNccl, ACallThatFails, 2, 20 * SECOND)
{
    nccl()->fail("ncclAllReduce", 1, 5);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "NCCL 2.28.9", "ncclAllReduce", "the fake's error",
                          "NCCL_DEBUG");
    nccl()->fail(NULL, 0, 0);
    COMM_RIG_AWAIT_FAILURE(rig->comms[1], "all-reduce 1 of 'grads'", "rank 0 cannot take part",
                           "NCCL 2.28.9");
}

// What it has submitted ends well; what comes after does not.
NCCL_TEST(CommNccl, ARankThatLeaves, 2, 20 * SECOND)
{
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, 8));
    EXPECT_OK(weir_queue_sync(rig->queues[1], GUARD_NS));
    weir_comm_destroy(&rig->comms[1]);
    EXPECT_OK(weir_queue_sync(rig->queues[0], GUARD_NS));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "all-reduce 2 of 'grads'",
                          "rank 1 has destroyed the communicator after all-reduce 1",
                          "nccl_test.c:");
}

// A failure that comes through a wait, when the collective has run already.
NCCL_TEST(CommNccl, AFailureThroughAWait, 2, 20 * SECOND)
{
    struct gate gate = {.status = WEIR_ERROR_SYSTEM};
    comm_rig_open_others(rig);
    weir_queue *loader = rig->others[0];
    EXPECT_OK(weir_queue_host_call(loader, gate_pass, &gate));
    EXPECT_OK(weir_queue_after(rig->queues[0], loader));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, 8));
    gate_open(&gate);
    COMM_RIG_AWAIT_FAILURE(rig->comms[1], "all-reduce 1 of 'grads'", "rank 0 cannot take part",
                           "a host call, failed");
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "a host call, failed");
}

// A queue goes before its communicator.
NCCL_TEST(CommNccl, AQueueThatGoes, 2, 20 * SECOND)
{
    COMM_RIG_REDUCE_ALL(rig, 8);
    for (uint32_t rank = 0; rank < 2; rank++) {
        EXPECT_OK(weir_queue_sync(rig->queues[rank], GUARD_NS));
        weir_queue_destroy(&rig->queues[rank]);
        ASSERT_OK(weir_queue_create(rig->devices[rank], NULL, &rig->queues[rank]));
    }
    COMM_RIG_REDUCE_ALL(rig, 8);
    comm_rig_sync(rig, GUARD_NS);
}

WEIR_CHILD_TEST(CommNcclExit, AProcessThatExitsWithout)
{
    struct comm_rig rig;
    open_with(&rig, "", 2);
    EXPECT_OK(COMM_RIG_REDUCE(&rig, 0, 8)); // rank 1 does not come
    while (nccl()->calls("ncclAllReduce") == 0)
        weir_clock_sleep_ns(SECOND / 1000);
}

static void *release_soon(void *user)
{
    weir_clock_sleep_ns(SECOND / 5);
    nccl()->hold(NULL);
    return NULL;
}

// One that is made waits for many ends, so that those do not grow in number, and not for ever.
COMM_RIG_TEST_BY(CommNccl, ACreationWaitsForManyEnds, comm_rig_open_ranks(rig, "", 2),
                 nccl_close(rig))
{
    pthread_t thread;
    nccl()->hold("ncclCommDestroy");
    for (int i = 0; i < 5; i++) {
        nccl_create(rig, 2, 20 * SECOND);
        weir_comm_destroy(&rig->comms[0]), weir_comm_destroy(&rig->comms[1]);
    }
    EXPECT_INT_EQ((int)nccl()->live(), 10);
    ASSERT_INT_EQ(pthread_create(&thread, NULL, release_soon, NULL), 0);
    nccl_create(rig, 2, 20 * SECOND);
    EXPECT_TRUE(nccl()->live() < 10 + 2);
    pthread_join(thread, NULL);
}
