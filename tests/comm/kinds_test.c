// Collectives through the front end: the order of a communicator's calls, its parts, and its end. What they compute is
// in conformance_test.c.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/comm/rig.h"

// Rank r has the numbers 10 r, 10 r + 1, …
static void write_sources(struct comm_rig *rig)
{
    for (uint32_t rank = 0; rank < rig->count; rank++) {
        int32_t numbers[12];
        for (int i = 0; i < 12; i++)
            numbers[i] = (int32_t)rank * 10 + i;
        comm_rig_write(rig, rank, rig->src[rank], 0, numbers, 12);
        comm_rig_write(rig, rank, rig->dst[rank], 0, numbers, 12);
    }
}

#define HOST_TEST(suite, name)                                                     \
    COMM_RIG_TEST_BY(suite, name, comm_rig_open_fake(rig, "", 2, WEIR_PLACE_HOST), \
                     comm_rig_close(rig))

HOST_TEST(Collectives, NothingToDo)
{
    for (uint32_t r = 0; r < 2; r++) {
        EXPECT_OK(weir_queue_exchange(rig->queues[r], rig->comms[r], NULL, 0));
        EXPECT_OK(weir_queue_exchange(rig->queues[r], rig->comms[r],
                                      (const struct weir_exchange[]){
                                          {rig->src[r], 0, 0, WEIR_I32, !r, false},
                                          {rig->dst[r], 0, 0, WEIR_I32, !r, true},
                                      },
                                      2));
        EXPECT_OK(COMM_RIG_REDUCE(rig, r, 0));
    }
    comm_rig_sync(rig, WEIR_FOREVER);
}

// A barrier holds later work of its queue until all ranks are there.
COMM_FAKE_TEST(Collectives, Barrier, "", 2)
{
    struct gate gate = {0};
    EXPECT_OK(weir_queue_barrier(rig->queues[0], rig->comms[0]));
    const struct weir_event event = test_record(rig->queues[0]);
    EXPECT_OK(weir_queue_host_call(rig->queues[1], gate_pass, &gate));
    EXPECT_OK(weir_queue_barrier(rig->queues[1], rig->comms[1]));
    EXPECT_INT_EQ(weir_event_query(event), WEIR_NOT_READY);
    gate_open(&gate);
    EXPECT_OK(weir_event_sync(event, WEIR_FOREVER));
}

// What the transport was called with on rank 0, in order.
static struct {
    pthread_mutex_t lock;
    char text[512];
    size_t used;
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_call(void *user, weir_log_level level, const char *source, const char *message)
{
    if (strcmp(source, "fake") != 0)
        return;
    pthread_mutex_lock(&calls.lock);
    const int length = (int)strcspn(message, ","); // without the line
    weir_text_append(calls.text, sizeof calls.text, &calls.used, "%.*s; ", length, message);
    pthread_mutex_unlock(&calls.lock);
}

// The first collective's queue is held: the second one, of another queue, waits for it all the same.
COMM_FAKE_TEST(Collectives, OneCommunicatorHasOneOrder, "", 2)
{
    struct gate gate = {0};
    write_sources(rig);
    comm_rig_open_others(rig);
    weir_queue *other = rig->others[0];
    weir_log_set(keep_call, NULL, WEIR_LOG_DEBUG);
    EXPECT_OK(weir_queue_host_call(rig->queues[0], gate_pass, &gate));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 2));
    EXPECT_OK(weir_queue_barrier(other, rig->comms[0]));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, 2));
    EXPECT_OK(weir_queue_barrier(rig->queues[1], rig->comms[1]));
    EXPECT_OK(weir_queue_send(rig->queues[1], rig->comms[1], rig->src[1], 0, 1, WEIR_I32, 0));
    EXPECT_OK(weir_queue_recv(other, rig->comms[0], rig->dst[0], 64, 1, WEIR_I32, 1));
    gate_open(&gate);
    EXPECT_OK(weir_queue_sync(other, WEIR_FOREVER));
    EXPECT_OK(weir_queue_sync(rig->queues[1], WEIR_FOREVER));
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(calls.text, "all-reduce 1; barrier 2; recv 2; ");
}

// The collective comes after what is before it in its queue, and before what is after it.
COMM_FAKE_TEST(Collectives, KeepsTheOrderOfItsQueue, "", 2)
{
    static const int32_t one = 1;
    write_sources(rig);
    for (uint32_t r = 0; r < 2; r++) {
        EXPECT_OK(weir_queue_fill(rig->queues[r], rig->src[r], 0, 8, &one, sizeof one));
        EXPECT_OK(COMM_RIG_REDUCE(rig, r, 2));
        EXPECT_OK(weir_queue_copy(rig->queues[r], rig->dst[r], 8, rig->dst[r], 0, 8));
    }
    comm_rig_expect_all(rig, rig->dst, 0, (const int32_t[]){2, 2, 2, 2}, 4);
}

static void *split_rank(void *user)
{
    struct comm_rig *rig = user;
    weir_comm *part;
    EXPECT_OK(weir_comm_split(rig->comms[1], 7, -1, "part", &part));
    EXPECT_UINT_EQ(weir_comm_rank(part), 0);
    EXPECT_UINT_EQ(weir_comm_count(part), 2);
    weir_comm_destroy(&part);
    EXPECT_OK(weir_comm_split(rig->comms[1], WEIR_NO_COLOR, 0, "none", &part));
    EXPECT_TRUE(part == NULL);
    return NULL;
}

COMM_FAKE_TEST(Collectives, Splits, "", 2)
{
    pthread_t thread;
    own_comm part = NULL;
    ASSERT_INT_EQ(pthread_create(&thread, NULL, split_rank, rig), 0);
    EXPECT_OK(weir_comm_split(rig->comms[0], 7, 0, "part", &part));
    EXPECT_UINT_EQ(weir_comm_rank(part), 1); // by the keys
    EXPECT_UINT_EQ(weir_comm_count(part), 2);
    EXPECT_STR_EQ(weir_comm_label(part), "part");
    EXPECT_TRUE(weir_comm_device(part) == rig->device);
    weir_comm_destroy(&part);
    EXPECT_OK(weir_comm_split(rig->comms[0], 0, 0, "alone", &part));
    EXPECT_UINT_EQ(weir_comm_count(part), 1);
    pthread_join(thread, NULL);
    weir_comm_destroy(&rig->comms[0]); // the part lives on
    EXPECT_OK(weir_queue_all_reduce(rig->queues[0], part, rig->dst[0], 0, rig->src[0], 0, 2,
                                    WEIR_I32, WEIR_SUM));
    EXPECT_OK(weir_queue_sync(rig->queues[0], WEIR_FOREVER));
}

// The communicator lives until the work that uses it is done.
COMM_FAKE_TEST(Collectives, DestroyedUnderWay, "", 2)
{
    struct gate gate = {0};
    write_sources(rig);
    for (uint32_t r = 0; r < 2; r++) {
        EXPECT_OK(weir_queue_host_call(rig->queues[r], gate_pass, &gate));
        EXPECT_OK(COMM_RIG_REDUCE(rig, r, 2));
        weir_comm_destroy(&rig->comms[r]);
        EXPECT_TRUE(rig->comms[r] == NULL);
    }
    gate_open(&gate);
    comm_rig_expect_all(rig, rig->dst, 0, (const int32_t[]){10, 12}, 2);
}

// A forked child of a rank destroys nothing, and the rank goes on, with a collective under way that waits for another one.
COMM_FAKE_TEST(Collectives, AChildDestroysNothing, "", 2)
{
    int status = -1;
    write_sources(rig);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 2));
    const pid_t child = fork();
    if (child == 0) {
        const bool reads =
            weir_comm_rank(rig->comms[1]) == 1 && weir_comm_count(rig->comms[1]) == 2;
        weir_comm_destroy(&rig->comms[0]), weir_comm_destroy(&rig->comms[1]);
        _exit(reads ? 0 : 1);
    }
    EXPECT_INT_EQ(waitpid(child, &status, 0), child);
    EXPECT_INT_EQ(status, 0);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, 2));
    comm_rig_expect_all(rig, rig->dst, 0, (const int32_t[]){10, 12}, 2);
}

// Wrapped memory may begin at any address, and transports need aligned elements.
HOST_TEST(Collectives, MisalignedMemoryOfTheHost)
{
    static _Alignas(8) char memory[64];
    own_buffer wrapped = NULL;
    ASSERT_OK(weir_buffer_wrap(rig->device,
                               WEIR_PARAMS(weir_wrap, .pointer = memory + 1, .size = 32),
                               &wrapped));
    write_sources(rig);
    EXPECT_OK(weir_queue_all_reduce(rig->queues[0], rig->comms[0], wrapped, 0, rig->src[0], 0, 2,
                                    WEIR_I32, WEIR_SUM));
    EXPECT_OK(COMM_RIG_REDUCE(rig, 1, 2));
    comm_rig_expect(rig, 0, wrapped, 0, (const int32_t[]){10, 12}, 2);
    EXPECT_OK(weir_queue_sync(rig->queues[1], WEIR_FOREVER));
}
