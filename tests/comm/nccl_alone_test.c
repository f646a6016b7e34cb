// A kernel of NCCL's that its abort does not end. A device that was given up stays so for the process, so each
// of these tests is a child, forked before anything of Weir is used.
#include <dlfcn.h>
#include <pthread.h>

#include "base/clock.h"
#include "tests/comm/nccl.h"

#define TIMEOUT_NS (SECOND / 2)

static void open_two(struct comm_rig *rig)
{
    nccl_open(rig, 2, TIMEOUT_NS);
    nccl()->endless(true);
    cuda()->let_go(1);
}

static void close_all(struct comm_rig *rig)
{
    comm_rig_close(rig);
    nccl()->endless(false);
}

// The first cause is that of the collective, and recovery tells that there is none.
static void expect_lost(struct comm_rig *rig)
{
    int32_t numbers[8];
    COMM_RIG_EXPECT_CAUSE(rig->queues[0], "all-reduce 1 of 'grads', tests/comm/nccl_alone_test.c:",
                          "rank 1 has submitted nothing before its first collective in 500 ms");
    EXPECT_FAILURE(weir_queue_recover(rig->queues[0]), WEIR_ERROR_DEVICE_LOST,
                   "all-reduce 1 of 'grads', tests/comm/nccl_alone_test.c:",
                   "rank 0 has lost its device, since NCCL 2.28.9 has not ended it in ",
                   "after its abort; the first cause: all-reduce 1 of 'grads'",
                   "rank 1 has submitted nothing before its first collective in 500 ms",
                   "restart the process");
    EXPECT_INT_EQ(weir_queue_recover(rig->queues[0]), WEIR_ERROR_DEVICE_LOST);
    EXPECT_INT_LT(weir_download(rig->queues[0], numbers, rig->dst[0], 0, sizeof numbers), 0);
    EXPECT_INT_EQ(weir_device_trim(rig->devices[0]), WEIR_ERROR_DEVICE_LOST);
}

// The other rank's device has no such kernel.
static void expect_other_works(struct comm_rig *rig)
{
    static const int32_t numbers[] = {1, 2, 3};
    EXPECT_INT_EQ(weir_comm_error(rig->comms[1]), WEIR_ERROR_COMM);
    comm_rig_write(rig, 1, rig->src[1], 0, numbers, 3);
    comm_rig_expect(rig, 1, rig->src[1], 0, numbers, 3);
}

// A test of its own process, with a rig of two.
#define ENDLESS_TEST(name)                       \
    static void name##_of(struct comm_rig *rig); \
    WEIR_CHILD_TEST(CommNcclEndless, name)       \
    {                                            \
        struct comm_rig rig;                     \
        open_two(&rig);                          \
        name##_of(&rig);                         \
        close_all(&rig);                         \
    }                                            \
    static void name##_of(struct comm_rig *rig)

ENDLESS_TEST(AnAbortThatHangs)
{
    nccl()->hold("ncclCommAbort");
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    expect_lost(rig);
    expect_other_works(rig);
    nccl()->hold(NULL);
}

// Everything is destroyed and closed while the kernel runs.
ENDLESS_TEST(AClose)
{
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    while (nccl()->calls("ncclAllReduce") == 0)
        weir_clock_sleep_ns(SECOND / 1000);
}

// A device beside the rank's, on the same GPU, with memory of two kinds.
struct other {
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffers[2];
};

static void open_other(weir_runtime *runtime, struct other *other)
{
    static const weir_placement placements[] = {WEIR_PLACE_DEVICE, WEIR_PLACE_HOST};
    ASSERT_OK(weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = "0"), &other->device));
    ASSERT_OK(weir_queue_create(other->device, NULL, &other->queue));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(weir_buffer_create(other->device,
                                     WEIR_PARAMS(weir_buffer, .size = COMM_RIG_BYTES,
                                                 .placement = placements[i]),
                                     &other->buffers[i]));
        ASSERT_OK(weir_queue_fill(other->queue, other->buffers[i], 0, 64, "", 1));
    }
    ASSERT_OK(weir_queue_sync(other->queue, WEIR_FOREVER));
}

static void close_other(struct other *other)
{
    EXPECT_INT_LT(weir_queue_fill(other->queue, other->buffers[0], 0, 64, "", 1), 0);
    EXPECT_ERROR("rank 0 has lost its device", "restart the process");
    for (int i = 0; i < 2; i++)
        weir_buffer_destroy(&other->buffers[i]);
    EXPECT_INT_EQ(weir_device_trim(other->device), WEIR_ERROR_DEVICE_LOST);
    weir_queue_destroy(&other->queue);
    EXPECT_OK(weir_device_close(&other->device));
}

static void expect_no_other_opening(void)
{
    own_runtime runtime = NULL;
    own_device device = NULL;
    ASSERT_OK(weir_open(NULL, &runtime));
    EXPECT_FAILURE(weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = "0"), &device),
                   WEIR_ERROR_DEVICE_LOST,
                   "this process has lost the device before: all-reduce 1 of 'grads'",
                   "restart the process");
    ASSERT_OK(weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = "1"), &device));
}

// They share its context, in this runtime and in another one: freeing their memory would wait for the kernel.
ENDLESS_TEST(OthersOfTheSameGpu)
{
    weir_runtime *runtime;
    struct other others[2];
    ASSERT_OK(weir_open(NULL, &runtime));
    open_other(rig->runtime, &others[0]);
    open_other(runtime, &others[1]);
    EXPECT_OK(COMM_RIG_REDUCE(rig, 0, 8));
    expect_lost(rig);
    expect_other_works(rig);
    for (int i = 0; i < 2; i++)
        close_other(&others[i]);
    EXPECT_OK(weir_close(&runtime));
}

// A wait with a limit, and one for another queue that waits for the collective on the device, which cannot be opened
// again.
WEIR_CHILD_TEST(CommNcclEndless, WaitsOfOtherQueues)
{
    weir_queue *other;
    struct comm_rig rig;
    open_two(&rig);
    ASSERT_OK(weir_queue_create(rig.devices[0], NULL, &other));
    EXPECT_OK(COMM_RIG_REDUCE(&rig, 0, 8));
    const struct weir_event event = test_record(rig.queues[0]);
    EXPECT_OK(weir_queue_wait(other, event));
    EXPECT_OK(weir_queue_fill(other, rig.src[0], 0, 64, "", 1));
    EXPECT_INT_EQ(weir_event_sync(event, 1), WEIR_TIMEOUT);
    EXPECT_INT_EQ(weir_event_sync(event, 60 * SECOND), WEIR_ERROR_COMM);
    COMM_RIG_EXPECT_CAUSE(other, "rank");
    EXPECT_INT_EQ(weir_queue_recover(other), WEIR_ERROR_DEVICE_LOST);
    weir_queue_destroy(&other);
    comm_rig_close(&rig);
    expect_no_other_opening();
    nccl()->endless(false);
}

// Work of the program's before the collective may take as long as it likes: that is no kernel of NCCL's.
WEIR_CHILD_TEST(CommNcclEndless, WorkBeforeIt)
{
    own_comm_rig rig = {0};
    struct gate gate = {0};
    open_two(&rig);
    nccl()->endless(false);
    nccl_submit_gate(rig.queues[0], &gate);
    EXPECT_OK(COMM_RIG_REDUCE(&rig, 0, 8));
    EXPECT_OK(weir_comm_abort(rig.comms[1], "the loss is no number"));
    weir_clock_sleep_ns(TIMEOUT_NS + 2 * SECOND);
    gate_open(&gate);
    COMM_RIG_EXPECT_CAUSE(rig.queues[0], "the loss is no number");
    EXPECT_OK(weir_queue_recover(rig.queues[0]));
}

// `nccl = auto` where there is no usable NCCL: the log says which rank lacks it and what to install, and the
// collectives run through the host. A library that was loaded stays, so each is a process.

#define REMEDY                                                                                  \
    "; install NCCL 2.18 or newer (libnccl2), or name the libnccl.so.2 of a Python wheel with " \
    "`nccl` in [cuda]"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // ranks are created on threads
static char warning[1024];

static void keep_warning(void *user, weir_log_level level, const char *source, const char *message)
{
    pthread_mutex_lock(&lock);
    if (level == WEIR_LOG_WARNING && strstr(message, "collectives run through the host"))
        snprintf(warning, sizeof warning, "%s", message);
    pthread_mutex_unlock(&lock);
}

// Creates two ranks, whose collectives give the right result.
static void expect_host(void)
{
    static const int32_t one[] = {1};
    static const int32_t two[] = {2};
    own_comm_rig rig = {0};
    setenv("WEIR_CUDA_NCCL", "auto", 1);
    weir_log_set(keep_warning, NULL, WEIR_LOG_WARNING);
    comm_rig_open(&rig, "", 2, WEIR_PLACE_DEVICE);
    weir_log_set(NULL, NULL, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(weir_comm_engine(rig.comms[0]), "local");
    comm_rig_write_all(&rig, rig.src, 0, one, 1);
    COMM_RIG_REDUCE_ALL(&rig, 1);
    comm_rig_expect_all(&rig, rig.dst, 0, two, 1);
}

// A machine that has the real one cannot show this.
WEIR_CHILD_TEST(CommNcclAuto, None)
{
    void *real = dlopen("libnccl.so.2", RTLD_NOW);
    if (real) {
        dlclose(real);
        return;
    }
    expect_host();
    const char *begin = "collectives run through the host: rank 0 has no usable NCCL: ";
    EXPECT_TRUE(strncmp(warning, begin, strlen(begin)) == 0);
    EXPECT_TRUE(strstr(warning, "libnccl.so.2: cannot open shared object file") != NULL);
    EXPECT_TRUE(strstr(warning, REMEDY) != NULL);
}

// The one that the program has loaded.
WEIR_CHILD_TEST(CommNcclAuto, TooOld)
{
    setenv("WEIR_TEST_NCCL_VERSION", "21704", 1);
    void *old = dlopen(weir_test_runfile(NCCL_LIBRARY), RTLD_NOW);
    ASSERT_TRUE(old != NULL);
    expect_host();
    EXPECT_STR_EQ(warning, "collectives run through the host: rank 0 has no usable NCCL: NCCL "
                           "2.17.4 is older than 2.18" REMEDY);
    dlclose(old);
}
