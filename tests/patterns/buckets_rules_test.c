// What gradient buckets refuse, and what the ranks learn of each other's failures.
#include <pthread.h>

#include "tests/patterns/buckets_rig.h"

static struct buckets_rig rig;

// --- creation ---

// With params that are wrong on all ranks, of which there is one.
static void expect_refused(const char *const *words, size_t count)
{
    EXPECT_INT_EQ(weir_buckets_create_all(&rig.params, rig.comm.comms, 1, rig.buckets),
                  WEIR_ERROR_INVALID);
    EXPECT_NULL(rig.buckets[0]);
    comm_rig_expect_words(words, count);
    buckets_rig_close(&rig);
}
#define EXPECT_REFUSED(...)                                     \
    expect_refused((const char *const[]){__VA_ARGS__},          \
                   sizeof((const char *const[]){__VA_ARGS__}) / \
                       sizeof(*(const char *const[]){__VA_ARGS__}))

// After that change.
#define REFUSED(change, ...) \
    (buckets_rig_open(&rig, 1), (void)(change), EXPECT_REFUSED(__VA_ARGS__))

WEIR_TEST(BucketsRules, RefuseParams)
{
    weir_buckets *buckets = (weir_buckets *)&rig;
    EXPECT_INT_EQ(weir_buckets_create(NULL, &buckets), WEIR_ERROR_INVALID);
    EXPECT_NULL(buckets);
    EXPECT_ERROR("weir_buckets_create", "params is NULL");
    buckets_rig_open(&rig, 1);
    EXPECT_FAILURE(weir_buckets_create(&rig.params, &buckets), WEIR_ERROR_INVALID,
                   "params->comm is NULL");
    EXPECT_FAILURE(weir_buckets_create_all(&rig.params, NULL, 1, &buckets), WEIR_ERROR_INVALID,
                   "there are no communicators");
    rig.params.parameter_count = 0;
    EXPECT_REFUSED("grads", "there are no parameters");
    REFUSED(rig.params.parameter_size = 0, "parameter_size is 0",
            "sizeof(struct weir_bucket_parameter)");
    REFUSED(rig.params.element = (weir_datatype)99, "element is 99");
    REFUSED(rig.params.reduction = (weir_reduction)6, "reduction is 6");
    REFUSED(rig.params.wire = WEIR_F16, "f32 gradients cannot be sent as f16",
            "only f32 is sent as bf16");
    REFUSED((rig.params.element = WEIR_F64, rig.params.wire = WEIR_BF16),
            "f64 gradients cannot be sent as bf16");
    REFUSED(rig.parameters[1].name = NULL, "parameter 1 has no name");
    REFUSED(rig.parameters[4].count = 0, "parameter 4 has no elements");
    REFUSED(rig.parameters[3].count = SIZE_MAX / 4 - 4, "parameter 3, 'body.weight'",
            "more bytes than a size_t can count");
}

// An array of a newer header's, which sets a field that this library does not know.
WEIR_TEST(BucketsRules, RefuseUnknownFields)
{
    struct {
        struct weir_bucket_parameter known;
        uint64_t unknown;
    } newer[2] = {{.unknown = 0}, {.unknown = 1}};
    buckets_rig_open(&rig, 1);
    for (int i = 0; i < 2; i++) {
        newer[i].known = rig.parameters[i];
        newer[i].known.struct_size = sizeof newer[i];
    }
    rig.params.parameters = &newer[0].known;
    rig.params.parameter_size = sizeof newer[0];
    rig.params.parameter_count = 2;
    EXPECT_REFUSED("weir_bucket_parameter");
}

typedef void change_function(struct weir_buckets_params *params,
                             struct weir_bucket_parameter *parameters);

// Creates the buckets of a rank, from changed parameters on rank 1.
static weir_status create_changed(uint32_t rank, change_function *change)
{
    struct weir_bucket_parameter parameters[BUCKETS_RIG_PARAMETERS];
    struct weir_buckets_params params = rig.params;
    for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
        parameters[i] = rig.parameters[i];
    params.comm = rig.comm.comms[rank];
    params.parameters = parameters;
    if (rank == 1)
        change(&params, parameters);
    return weir_buckets_create(&params, &rig.buckets[rank]);
}

static void nameless(struct weir_buckets_params *params, struct weir_bucket_parameter *parameters)
{
    parameters[2].name = NULL;
}

// A rank that cannot create its buckets says so to those that can.
static void *create_alone(void *user)
{
    const uint32_t rank = (uint32_t)(uintptr_t)user;
    EXPECT_INT_EQ(create_changed(rank, nameless), rank == 1 ? WEIR_ERROR_INVALID : WEIR_ERROR_COMM);
    if (rank == 0)
        EXPECT_ERROR("rank 1", "buckets 'grads'", "parameter 2 has no name");
    return NULL;
}

static void on_two_threads(void *(*function)(void *))
{
    pthread_t other;
    buckets_rig_open(&rig, 2);
    ASSERT_INT_EQ(pthread_create(&other, NULL, function, (void *)(uintptr_t)1), 0);
    function(NULL);
    pthread_join(other, NULL);
    buckets_rig_close(&rig);
}

WEIR_TEST(BucketsRules, TellTheOtherRanksWhyThereAreNone)
{
    on_two_threads(create_alone);
}

// How rank 1 differs, and what both ranks say of it.
static struct {
    change_function *change;
    const char *says;
} differs;

static void *create_another(void *user)
{
    const uint32_t rank = (uint32_t)(uintptr_t)user;
    EXPECT_INT_EQ(create_changed(rank, differs.change), WEIR_ERROR_INVALID);
    EXPECT_NULL(rig.buckets[rank]);
    EXPECT_ERROR("grads", "rank 1 has", differs.says);
    return NULL;
}

static void fewer(struct weir_buckets_params *params, struct weir_bucket_parameter *parameters)
{
    params->parameter_count = 5;
}

static void other_name(struct weir_buckets_params *params, struct weir_bucket_parameter *parameters)
{
    parameters[4].name = "stem.weights";
}

static void not_optional(struct weir_buckets_params *params,
                         struct weir_bucket_parameter *parameters)
{
    parameters[2].optional = false;
}

static void other_cap(struct weir_buckets_params *params, struct weir_bucket_parameter *parameters)
{
    params->cap_bytes = WEIR_BUCKETS_AUTO;
}

WEIR_TEST(BucketsRules, CompareTheModelsOfAllRanks)
{
    static const char others[] = "parameters of other names, counts or another order than rank 0";
    static const struct {
        change_function *change;
        const char *says;
    } rows[] = {
        {fewer, "5 parameters of"},
        {other_name, others},
        {not_optional, others},
        {other_cap, "another element, reduction, wire, cap_bytes or first_bytes than rank 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        differs.change = rows[i].change;
        differs.says = rows[i].says;
        on_two_threads(create_another);
    }
}

// --- calls ---

BUCKETS_TEST(BucketsRules, RefuseCallsOutsideAPass, 1)
{
    buckets_rig_create(&rig);
    weir_queue *queue = rig.comm.queues[0];
    EXPECT_INT_EQ(weir_buckets_ready(rig.buckets[0], 0, queue), WEIR_ERROR_INVALID);
    EXPECT_ERROR("weir_buckets_ready", "no pass has begun", "weir_buckets_begin()");
    EXPECT_INT_EQ(weir_buckets_skip(rig.buckets[0], 2, queue), WEIR_ERROR_INVALID);
    EXPECT_INT_EQ(weir_buckets_finish(rig.buckets[0], queue), WEIR_ERROR_INVALID);
    EXPECT_ERROR("weir_buckets_finish", "no pass has begun");
    EXPECT_OK(weir_buckets_begin(rig.buckets[0], true));
    EXPECT_FAILURE(weir_buckets_begin(rig.buckets[0], true), WEIR_ERROR_INVALID,
                   "a pass has begun already");
}

// None of them changes anything: the step is completed afterwards.
BUCKETS_TEST(BucketsRules, RefuseArguments, 1)
{
    buckets_rig_create(&rig);
    weir_queue *queue = rig.comm.queues[0];
    EXPECT_OK(weir_buckets_begin(rig.buckets[0], true));
    EXPECT_FAILURE(weir_buckets_ready(rig.buckets[0], 6, queue), WEIR_ERROR_INVALID,
                   "there is no parameter 6, there are 6");
    EXPECT_FAILURE(weir_buckets_ready(rig.buckets[0], 0, NULL), WEIR_ERROR_INVALID,
                   "queue is NULL");
    EXPECT_CONTAINS(weir_last_error()->remedy, "create it first");
    EXPECT_FAILURE(weir_buckets_skip(rig.buckets[0], 3, queue), WEIR_ERROR_INVALID,
                   "'body.weight' is not optional");
    EXPECT_INT_EQ(weir_buckets_finish(rig.buckets[0], NULL), WEIR_ERROR_INVALID);
    EXPECT_FAILURE(weir_buckets_wait(rig.buckets[0], 0, queue), WEIR_ERROR_INVALID,
                   "bucket 0 of this step is not submitted yet");
    EXPECT_FAILURE(weir_buckets_wait(rig.buckets[0], 3, queue), WEIR_ERROR_INVALID,
                   "there is no bucket 3, there are 3");
    for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
        buckets_rig_mark(&rig, 0, i, 1);
    EXPECT_FAILURE(weir_buckets_ready(rig.buckets[0], 5, queue), WEIR_ERROR_INVALID,
                   "'stem.weight' is marked already in this pass");
    EXPECT_OK(weir_buckets_finish(rig.buckets[0], queue));
    buckets_rig_expect_all(&rig, 1);
}

WEIR_TEST(BucketsRules, RefuseIndexes)
{
    struct weir_bucket_view view;
    struct weir_bucket bucket;
    buckets_rig_open(&rig, 1);
    buckets_rig_create(&rig);
    EXPECT_INT_EQ(weir_buckets_get_view(rig.buckets[0], 6, &view), WEIR_ERROR_INVALID);
    EXPECT_NULL(view.buffer);
    EXPECT_INT_EQ(weir_buckets_get_bucket(rig.buckets[0], 3, &bucket), WEIR_ERROR_INVALID);
    EXPECT_UINT_EQ(bucket.count, 0);
    buckets_rig_close(&rig);
    weir_buckets_destroy(NULL);
    weir_buckets_destroy(&rig.buckets[0]);
}

BUCKETS_TEST(BucketsRules, RefuseAQueueOfAnotherDevice, 1)
{
    weir_device *other = NULL;
    buckets_rig_create(&rig);
    ASSERT_OK(weir_device_open(rig.comm.runtime, NULL, &other));
    weir_queue *queue = test_queue(other, NULL);
    EXPECT_OK(weir_buckets_begin(rig.buckets[0], true));
    EXPECT_FAILURE(weir_buckets_ready(rig.buckets[0], 0, queue), WEIR_ERROR_INVALID,
                   "queue '(no label)' belongs to another device");
    weir_queue_destroy(&queue);
    EXPECT_OK(weir_device_close(&other));
}

// --- failures in the middle of a step ---

// Both ranks begin; rank 1 marks the parameters before `end` only.
static void begin_step(uint32_t end)
{
    for (uint32_t rank = 0; rank < 2; rank++) {
        EXPECT_OK(weir_buckets_begin(rig.buckets[rank], true));
        for (uint32_t i = 0; i < (rank == 0 ? BUCKETS_RIG_PARAMETERS : end); i++)
            buckets_rig_mark(&rig, rank, i, 1);
    }
}

// Rank 0 learns why when it finishes or, at the latest, waits; and no new step begins on any rank.
static void expect_rank_0_told(const char *const *words, size_t count)
{
    weir_status status = weir_buckets_finish(rig.buckets[0], rig.comm.queues[0]);
    EXPECT_TRUE(status == WEIR_OK || status == WEIR_ERROR_COMM);
    if (status == WEIR_OK)
        EXPECT_INT_LT(weir_queue_sync(rig.comm.queues[0], WEIR_FOREVER), 0);
    comm_rig_expect_words(words, count);
    EXPECT_INT_EQ(weir_buckets_begin(rig.buckets[0], true), WEIR_ERROR_COMM);
    comm_rig_expect_words(words, count);
    EXPECT_INT_LT(weir_buckets_begin(rig.buckets[1], true), 0);
}
#define EXPECT_RANK_0_TOLD(...)                                     \
    expect_rank_0_told((const char *const[]){__VA_ARGS__},          \
                       sizeof((const char *const[]){__VA_ARGS__}) / \
                           sizeof(*(const char *const[]){__VA_ARGS__}))

BUCKETS_TEST(BucketsRules, NameAParameterThatIsNeverMarked, 2)
{
    buckets_rig_create(&rig);
    begin_step(5);
    EXPECT_INT_EQ(weir_buckets_finish(rig.buckets[1], rig.comm.queues[1]), WEIR_ERROR_INVALID);
    EXPECT_ERROR("grads", "1 of 6 parameters was never marked: 'stem.weight'", "make it optional");
    EXPECT_RANK_0_TOLD("rank 1 has aborted", "buckets 'grads'", "'stem.weight'");
}

// In a pass that does not reduce, too; and the optional one is not among them.
BUCKETS_TEST(BucketsRules, NameTheFirstOfSeveral, 1)
{
    buckets_rig_create(&rig);
    EXPECT_OK(weir_buckets_begin(rig.buckets[0], false));
    EXPECT_OK(weir_buckets_ready(rig.buckets[0], 3, rig.comm.queues[0]));
    EXPECT_INT_EQ(weir_buckets_finish(rig.buckets[0], rig.comm.queues[0]), WEIR_ERROR_INVALID);
    EXPECT_ERROR("4 of 6 parameters were never marked: 'head.bias', 'head.weight', "
                 "'stem.bias' and 1 more");
}

static weir_status fail(void *user)
{
    return WEIR_ERROR_IO;
}

// The gradients of rank 1 fail while they are computed. Its own calls may learn of it before the
// others do, or at the end.
BUCKETS_TEST(BucketsRules, TellTheOtherRanksOfAFailedQueue, 2)
{
    buckets_rig_create(&rig);
    begin_step(3);
    EXPECT_OK(weir_queue_host_call(rig.comm.queues[1], fail, NULL));
    weir_status status = WEIR_OK;
    for (uint32_t i = 3; i < BUCKETS_RIG_PARAMETERS && status == WEIR_OK; i++)
        status = weir_buckets_ready(rig.buckets[1], i, rig.comm.queues[1]);
    if (status == WEIR_OK)
        status = weir_buckets_finish(rig.buckets[1], rig.comm.queues[1]);
    EXPECT_TRUE(status == WEIR_OK || status == WEIR_ERROR_HOST_CALL || status == WEIR_ERROR_IO);
    EXPECT_INT_LT(weir_queue_sync(rig.comm.queues[1], WEIR_FOREVER), 0);
    EXPECT_RANK_0_TOLD("rank 1", "host call");
}

// A failed queue is found when something is submitted to it: zeros, or a mark.
WEIR_TEST(BucketsRules, TellTheOtherRanksOfAQueueThatRefuses)
{
    for (uint32_t end = 2; end > 0; end--) {
        buckets_rig_open(&rig, 2);
        buckets_rig_create(&rig);
        begin_step(end);
        weir_queue *queue = rig.comm.queues[1];
        EXPECT_OK(weir_queue_host_call(queue, fail, NULL));
        EXPECT_INT_LT(weir_queue_sync(queue, WEIR_FOREVER), 0);
        EXPECT_INT_LT(end == 2 ? weir_buckets_skip(rig.buckets[1], 2, queue)
                               : weir_buckets_ready(rig.buckets[1], 1, queue),
                      0);
        EXPECT_INT_EQ(weir_buckets_finish(rig.buckets[1], queue), WEIR_ERROR_INVALID);
        EXPECT_RANK_0_TOLD("rank 1 has aborted", "buckets 'grads'", "host call");
        buckets_rig_close(&rig);
    }
}

// The failure of the queue that is to wait.
BUCKETS_TEST(BucketsRules, TellTheOtherRanksOfAQueueThatCannotWait, 2)
{
    own_queue other = test_queue(weir_comm_device(rig.comm.comms[1]), NULL);
    rig.params.timing = true;
    buckets_rig_create(&rig);
    begin_step(6);
    EXPECT_OK(weir_queue_host_call(other, fail, NULL));
    EXPECT_INT_LT(weir_queue_sync(other, WEIR_FOREVER), 0);
    EXPECT_INT_LT(weir_buckets_finish(rig.buckets[1], other), 0);
    EXPECT_INT_LT(weir_comm_error(rig.comm.comms[1]), 0);
}
