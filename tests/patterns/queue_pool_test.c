// The pool of queues on a real chain.
#include "patterns/queue_pool.h"

#include "tests/patterns/rig.h"

static weir_queue_pool *pool;
static struct weir_queue_pool_statistics figures;
static struct gate gate;

// Wrapped by the linker.
static unsigned queues_made;
static unsigned refused_queue;
static const struct weir_limits *made_up_limits; // in place of the device's
static int32_t made_priorities[8];               // of the queues that were made
static uint64_t sync_timeouts_ns[8];             // of the syncs so far
static _Atomic size_t sync_count;

WRAP(const struct weir_limits *, device_limits, const weir_device *device)
{
    return made_up_limits ? made_up_limits : __real_weir_device_limits(device);
}

WRAP(weir_status, queue_create_at, weir_device *device, const struct weir_queue_params *params,
     weir_queue **out_queue, const char *file, int line)
{
    struct weir_queue_params real = *params;
    *out_queue = NULL;
    made_priorities[queues_made % 8] = params->priority;
    // The device has no such priorities.
    if (made_up_limits)
        real.priority = 0;
    if (++queues_made == refused_queue)
        return rig_error(WEIR_ERROR_OUT_OF_MEMORY, "no more queues");
    return __real_weir_queue_create_at(device, &real, out_queue, file, line);
}

WRAP(weir_status, queue_sync_at, weir_queue *queue, uint64_t timeout_ns, const char *file, int line)
{
    const size_t number = sync_count++;
    if (number < sizeof sync_timeouts_ns / sizeof *sync_timeouts_ns)
        sync_timeouts_ns[number] = timeout_ns;
    return __real_weir_queue_sync_at(queue, timeout_ns, file, line);
}

static struct weir_queue_pool_params params_for(uint32_t normal, uint32_t high, uint32_t low)
{
    return (struct weir_queue_pool_params){
        .struct_size = sizeof(struct weir_queue_pool_params),
        .device = rig.device,
        .label = "pool",
        .queue_counts =
            {[WEIR_QUEUE_NORMAL] = normal, [WEIR_QUEUE_HIGH] = high, [WEIR_QUEUE_LOW] = low},
    };
}

static void open_pool(uint32_t normal, uint32_t high, uint32_t low)
{
    queues_made = refused_queue = 0;
    gate_shut(&gate);
    ASSERT_OK(rig_open(NULL));
    const struct weir_queue_pool_params params = params_for(normal, high, low);
    ASSERT_OK(weir_queue_pool_create(&params, &pool));
}

static void close_pool(void)
{
    weir_queue_pool_destroy(&pool);
    EXPECT_NULL(pool);
    rig_close();
}

// With so many queues of each class.
#define POOL_TEST(suite, name, ...) \
    WEIR_TEST_BETWEEN(suite, name, open_pool(__VA_ARGS__), close_pool())

POOL_TEST(QueuePool, GivesQueuesInTurn, 3, 2, 0)
{
    weir_queue *first[3], *queue;

    for (unsigned i = 0; i < 3; i++) {
        char label[32];
        ASSERT_OK(weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &first[i]));
        snprintf(label, sizeof label, "pool/normal/%u", i);
        EXPECT_STR_EQ(weir_queue_label(first[i]), label);
    }
    for (unsigned i = 0; i < 7; i++) {
        ASSERT_OK(weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &queue));
        EXPECT_PTR_EQ(queue, first[i % 3]);
    }
    // Each class has its own round-robin order.
    ASSERT_OK(weir_queue_pool_get(pool, WEIR_QUEUE_HIGH, &queue));
    EXPECT_STR_EQ(weir_queue_label(queue), "pool/high/0");
    weir_queue_pool_get_statistics(pool, &figures);
    EXPECT_UINT_EQ(figures.queue_count, 5);
    EXPECT_UINT_EQ(queues_made, 5);
    EXPECT_UINT_EQ(figures.classes[WEIR_QUEUE_NORMAL].gets, 10);
    EXPECT_UINT_EQ(figures.classes[WEIR_QUEUE_NORMAL].queue_count, 3);
    EXPECT_UINT_EQ(figures.classes[WEIR_QUEUE_HIGH].gets, 1);
    EXPECT_UINT_EQ(figures.classes[WEIR_QUEUE_LOW].queue_count, 0);
}

// Devices count upwards, downwards, or not at all.
WEIR_TEST(QueuePool, ClassesAreTheDevicesPriorities)
{
    static const struct weir_limits made_up[] = {
        {.priority_lowest = 0, .priority_highest = -5},
        {.priority_lowest = -1, .priority_highest = 1},
        {.priority_lowest = 0, .priority_highest = 0},
    };

    for (unsigned i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        const int32_t right[] = {0, made_up[i].priority_highest, made_up[i].priority_lowest};
        made_up_limits = &made_up[i];
        open_pool(1, 1, 1);
        weir_queue_pool_get_statistics(pool, &figures);
        for (int kind = 0; kind < WEIR_QUEUE_CLASSES; kind++) {
            EXPECT_INT_EQ(figures.classes[kind].priority, right[kind]);
            EXPECT_INT_EQ(made_priorities[kind], right[kind]);
        }
        close_pool();
        made_up_limits = NULL;
    }
    // The device's own are accepted.
    open_pool(1, 1, 1);
    close_pool();
    EXPECT_STR_EQ(weir_queue_class_name(WEIR_QUEUE_LOW), "low");
    EXPECT_STR_EQ(weir_queue_class_name((weir_queue_class)-1), "unknown class");
}

POOL_TEST(QueuePool, LeavesNoneWhenOneCannotBeMade, 0, 0, 0)
{
    weir_queue_pool_destroy(&pool);
    const struct weir_queue_pool_params params = params_for(3, 2, 1);
    for (unsigned nth = 1; nth <= 6; nth++) {
        queues_made = 0;
        refused_queue = nth;
        EXPECT_INT_EQ(weir_queue_pool_create(&params, &pool), WEIR_ERROR_OUT_OF_MEMORY);
        EXPECT_STR_EQ(weir_last_error()->message, "no more queues");
        EXPECT_NULL(pool);
    }
}

POOL_TEST(QueuePool, SaysWhenQueuesShareChannels, 0, 0, 0)
{
    const struct weir_limits *limits = weir_device_limits(rig.device);
    uint32_t at_once =
        limits->concurrent_kernels + limits->copy_engines_to_device + limits->copy_engines_to_host;
    weir_queue_pool_get_statistics(pool, &figures);
    EXPECT_UINT_EQ(figures.channel_count, at_once < 8 ? at_once : 8);
    // By default a pool does not have more queues than that.
    EXPECT_UINT_EQ(figures.classes[WEIR_QUEUE_NORMAL].queue_count, figures.channel_count);
    weir_queue_pool_destroy(&pool);

    struct weir_queue_pool_params params = params_for(2, 2, 0);
    for (params.channel_count = 4; params.channel_count >= 3; params.channel_count--) {
        ASSERT_OK(weir_queue_pool_create(&params, &pool));
        weir_queue_pool_get_statistics(pool, &figures);
        EXPECT_TRUE((figures.advice[0] == '\0') == (params.channel_count == 4));
        weir_queue_pool_destroy(&pool);
    }
    EXPECT_CONTAINS(figures.advice, "pool 'pool' holds 4 queues");
    EXPECT_CONTAINS(figures.advice, "keeps only 3 apart");
    EXPECT_CONTAINS(figures.advice, weir_device_get_info(rig.device)->name);
}

// --- threads ---

struct taker {
    pthread_t thread;
    unsigned counts[5];
    unsigned failed;
};

static void *take_many(void *argument)
{
    struct taker *taker = argument;
    weir_queue *queue;

    for (unsigned i = 0; i < 1000; i++) {
        unsigned long index = 5;
        if (weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &queue) == WEIR_OK)
            index = strtoul(weir_queue_label(queue) + strlen("pool/normal/"), NULL, 10);
        if (index < 5)
            taker->counts[index]++;
        else
            taker->failed++;
    }
    return NULL;
}

WEIR_TEST(QueuePool, ThreadsShareTheTurns)
{
    enum {
        THREADS = 4
    };

    for (unsigned round = 0; round < 20; round++) {
        struct taker takers[THREADS] = {0};
        unsigned counts[5] = {0};
        open_pool(5, 0, 0);
        for (unsigned t = 0; t < THREADS; t++)
            ASSERT_INT_EQ(pthread_create(&takers[t].thread, NULL, take_many, &takers[t]), 0);
        for (unsigned t = 0; t < THREADS; t++) {
            pthread_join(takers[t].thread, NULL);
            EXPECT_UINT_EQ(takers[t].failed, 0);
            for (unsigned i = 0; i < 5; i++)
                counts[i] += takers[t].counts[i];
        }
        for (unsigned i = 0; i < 5; i++)
            EXPECT_UINT_EQ(counts[i], THREADS * 1000 / 5);
        EXPECT_UINT_EQ(queues_made, 5);
        close_pool();
    }
}

// --- work ---

// A failure is returned after all others have finished, and takes precedence over a timeout; of two the first
// queue's.
POOL_TEST(QueuePool, SyncAllWaitsForEveryQueue, 1, 1, 1)
{
    weir_queue *queues[WEIR_QUEUE_CLASSES];

    ASSERT_OK(weir_queue_pool_sync_all(pool, WEIR_FOREVER));
    for (int kind = 0; kind < WEIR_QUEUE_CLASSES; kind++)
        ASSERT_OK(weir_queue_pool_get(pool, (weir_queue_class)kind, &queues[kind]));
    ASSERT_OK(weir_queue_host_call(queues[0], gate_pass, &gate));
    EXPECT_INT_EQ(weir_queue_pool_sync_all(pool, 0), WEIR_TIMEOUT);
    EXPECT_INT_EQ(weir_queue_pool_sync_all(pool, WEIR_MS(5)), WEIR_TIMEOUT);
    ASSERT_OK(weir_queue_host_call(queues[2], rig_fail, NULL));
    EXPECT_INT_EQ(weir_queue_sync(queues[2], WEIR_FOREVER), WEIR_ERROR_IO);
    ASSERT_OK(weir_queue_host_call(queues[1], rig_fail_late, NULL));
    EXPECT_INT_EQ(weir_queue_pool_sync_all(pool, WEIR_MS(5)), WEIR_ERROR_IO);
    EXPECT_INT_EQ(weir_queue_sync(queues[0], 0), WEIR_TIMEOUT); // another's failure is not its own
    gate_open(&gate);
    EXPECT_FAILURE(weir_queue_pool_sync_all(pool, WEIR_FOREVER), WEIR_ERROR_IO, "pool/high/0");
    EXPECT_CONTAINS(weir_last_error()->file, "queue_pool_test.c");
    EXPECT_OK(weir_queue_sync(queues[0], 0));
    ASSERT_OK(weir_queue_recover(queues[1]));
    ASSERT_OK(weir_queue_recover(queues[2]));
    ASSERT_OK(weir_queue_pool_sync_all(pool, WEIR_FOREVER));
}

// The timeout is for all of them together: the first uses it up.
POOL_TEST(QueuePool, SyncAllKeepsItsTimeout, 4, 0, 0)
{
    weir_queue *queue;

    for (unsigned i = 0; i < 4; i++) {
        ASSERT_OK(weir_queue_pool_get(pool, WEIR_QUEUE_NORMAL, &queue));
        ASSERT_OK(weir_queue_host_call(queue, gate_pass, &gate));
    }
    sync_count = 0;
    EXPECT_INT_EQ(weir_queue_pool_sync_all(pool, WEIR_MS(20)), WEIR_TIMEOUT);
    ASSERT_UINT_EQ(sync_count, 4);
    EXPECT_UINT_LE(sync_timeouts_ns[0], WEIR_MS(20));
    for (unsigned i = 1; i < 4; i++)
        EXPECT_UINT_EQ(sync_timeouts_ns[i], 0);
    gate_open(&gate);
    ASSERT_OK(weir_queue_pool_sync_all(pool, WEIR_FOREVER));
}

static void expect_refused(struct weir_queue_pool_params params, const char *part,
                           const char *remedy)
{
    rig_expect_refused(weir_queue_pool_create(&params, &pool), part, remedy);
    EXPECT_NULL(pool);
}

POOL_TEST(QueuePool, BadArgumentsAreRefused, 1, 0, 0)
{
    weir_queue *queue;

    EXPECT_FAILURE(weir_queue_pool_get(pool, WEIR_QUEUE_HIGH, &queue), WEIR_ERROR_INVALID,
                   "class 1 (high)");
    EXPECT_INT_EQ(weir_queue_pool_get(pool, (weir_queue_class)3, &queue), WEIR_ERROR_INVALID);
    EXPECT_FAILURE(weir_queue_pool_get(NULL, WEIR_QUEUE_NORMAL, &queue), WEIR_ERROR_INVALID,
                   "create it first");
    EXPECT_FAILURE(weir_queue_pool_sync_all(NULL, 0), WEIR_ERROR_INVALID, "create it first");
    weir_queue_pool_destroy(&pool);
    weir_queue_pool_destroy(&pool);
    weir_queue_pool_destroy(NULL);

    EXPECT_INT_EQ(weir_queue_pool_create(NULL, &pool), WEIR_ERROR_INVALID);
    struct weir_queue_pool_params params = params_for(1, 1, 1);
    params.struct_size = 3;
    expect_refused(params, "struct_size is 3", "");
    params = params_for(1, 1, 1);
    params.device = NULL;
    expect_refused(params, "params->device is NULL", "set it");
    expect_refused(params_for(1, 257, 1), "257 queues of class high", "");
}
