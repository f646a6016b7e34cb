// WEIR_BUCKETS_AUTO: how much it reduces to measure, and what it chooses. The plugin fault lists the collectives, and
// makes them slow.

#include "patterns/buckets_parts.h"
#include "tests/patterns/buckets_rig.h"
#include "tests/support/memory.h"

enum {
    RANKS = 2,
    PARAMETERS = 3,
    DELAY_MS = 60, // longer than what is slow
    GATHERS = 4,   // of each rank: its plan, the time of each of two sizes, the figures
};

static unsigned lines_with(const char *path, const char *word)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, word) != NULL;
    if (file)
        fclose(file);
    return count;
}

// Gradients of 1 MiB each, so that there are two sizes to measure, and the latency.
static void create_slow(const struct comm_rig *rig, struct weir_buckets_plan plans[RANKS])
{
    weir_buckets *buckets[RANKS];
    struct weir_bucket_parameter parameters[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++)
        parameters[i] = (struct weir_bucket_parameter){.struct_size = sizeof *parameters,
                                                       .name = "weight",
                                                       .count = (size_t)1 << 18};
    ASSERT_OK(
        weir_buckets_create_all(WEIR_PARAMS(weir_buckets, .label = "grads", .element = WEIR_F32,
                                            .parameters = parameters, .parameter_count = PARAMETERS,
                                            .parameter_size = sizeof *parameters,
                                            .cap_bytes = WEIR_BUCKETS_AUTO),
                                rig->comms, RANKS, buckets));
    for (int i = 0; i < RANKS; i++) {
        weir_buckets_get_plan(buckets[i], &plans[i]);
        weir_buckets_destroy(&buckets[i]);
    }
}

// The latency and one size, each twice on each rank; what takes longer is left out.
WEIR_TEST(BucketsMeasure, SlowReductionsAreTimedOnce)
{
    struct weir_buckets_plan plans[RANKS];
    struct comm_rig rig;
    char path[512], text[1024];
    snprintf(path, sizeof path, "%s/collectives", getenv("TEST_TMPDIR"));
    snprintf(text, sizeof text,
             "[weir]\nplugins = fault\n[fault]\nkinds = collective\nqueue = grads/comm\nlist = %s\n"
             "fault = slow\none_in = 1\ndelay_ms = %d\n",
             path, DELAY_MS);
    comm_rig_open(&rig, text, RANKS, WEIR_PLACE_HOST);
    create_slow(&rig, plans);
    comm_rig_close(&rig);
    EXPECT_UINT_EQ(lines_with(path, "buckets_measure.c"), RANKS * (GATHERS + 2 * 2));
    EXPECT_MEM_EQ(&plans[1], &plans[0], sizeof plans[0]);
    EXPECT_TRUE(plans[0].latency_ns >= DELAY_MS * 1e6);
    EXPECT_TRUE(plans[0].bucket_count >= 1 && plans[0].bucket_count <= PARAMETERS);
}

// Every allocation that creating buckets takes fails once in turn: nothing is made, nothing is leaked, and
// the communicator is aborted, so that other ranks do not wait.

enum {
    MOST_ALLOCATIONS = 400,
};

static struct buckets_rig made_rig;

// An allocation of the queue's worker or of the transport fails the communicator.
static bool is_told(weir_status status)
{
    return status == WEIR_ERROR_OUT_OF_MEMORY || status == WEIR_ERROR_COMM;
}

static void create_with(size_t cap_bytes)
{
    bool all_done = false;
    for (long i = 0; i < MOST_ALLOCATIONS && !all_done; i++) {
        buckets_rig_open(&made_rig, 1);
        made_rig.params.cap_bytes = cap_bytes;
        weir_test_fail_allocation(i);
        const weir_status status =
            weir_buckets_create_all(&made_rig.params, made_rig.comm.comms, 1, made_rig.buckets);
        all_done = !weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        EXPECT_INT_EQ(made_rig.buckets[0] != NULL, status == WEIR_OK);
        EXPECT_TRUE(status == WEIR_OK || is_told(status));
        EXPECT_INT_EQ(weir_comm_error(made_rig.comm.comms[0]) < 0, status != WEIR_OK);
        buckets_rig_close(&made_rig);
    }
    EXPECT_TRUE(all_done);
}

WEIR_TEST(BucketsMemory, Create)
{
    create_with(4096);
}

WEIR_TEST(BucketsMemory, CreateWithAMeasuredCap)
{
    create_with(WEIR_BUCKETS_AUTO);
}

// What is chosen, from figures that are given here.

#define MIB ((size_t)1 << 20)

enum {
    LAYERS = 96,
};

// Layers of 8 MiB each, of bf16.
static struct weir__buckets_parameter parameters[LAYERS];
static struct weir__buckets_bucket made[LAYERS];
static weir_buckets model;

static void open_model(void)
{
    model = (weir_buckets){.element_size = 2, .wire_size = 2, .parameters = parameters};
    model.buckets = made;
    model.params.parameter_count = LAYERS;
    model.plan.bytes = LAYERS * 8 * MIB;
    model.plan.first_bytes = model.plan.cap_bytes = WEIR_BUCKETS_AUTO;
    for (size_t i = 0; i < LAYERS; i++)
        parameters[i] = (struct weir__buckets_parameter){.count = 4 * MIB,
                                                         .offset = i * 8 * MIB,
                                                         .size = 8 * MIB};
}

static uint32_t choose(const struct weir__buckets_curve *curve, double backward_ns)
{
    open_model();
    weir__buckets_choose(&model, curve, backward_ns);
    weir__buckets_cut(&model);
    return model.plan.bucket_count;
}

static size_t size_of(uint32_t bucket)
{
    return made[bucket].range.size;
}

// A link of one bandwidth.
static struct weir__buckets_curve line(double latency_ns, double ns_per_byte)
{
    return (struct weir__buckets_curve){.latency_ns = latency_ns,
                                        .count = 1,
                                        .bytes = {256 * MIB},
                                        .ns_per_byte = {ns_per_byte}};
}

// Without computation beside it, and where each bucket costs more than it hides.
WEIR_TEST(BucketsChoose, TakesOneBucketWhereNothingIsHidden)
{
    const struct weir__buckets_curve fast = line(1e4, 4e-3), slow = line(1e8, 4e-3);
    EXPECT_UINT_EQ(choose(&fast, 1), 1);
    EXPECT_UINT_EQ(size_of(0), LAYERS * 8 * MIB);
    EXPECT_UINT_EQ(choose(&slow, 0), 1);
}

// NCCL on two H200s: large buckets, as far as there is computation beside them, and smaller ones then.
WEIR_TEST(BucketsChoose, TapersTowardsTheEnd)
{
    static const double backward_ns[] = {0, 5.2e6, 10e6, 20e6};
    const struct weir__buckets_curve nccl = {.latency_ns = 12e3,
                                             .count = 5,
                                             .bytes = {MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB},
                                             .ns_per_byte = {6e-3, 4.6e-3, 3.7e-3, 3.5e-3,
                                                             3.28e-3}};
    for (size_t i = 0; i < sizeof backward_ns / sizeof *backward_ns; i++) {
        const uint32_t count = choose(&nccl, backward_ns[i]);
        EXPECT_TRUE(size_of(0) >= 48 * MIB && size_of(0) <= 256 * MIB);
        EXPECT_TRUE(size_of(count - 1) <= size_of(0) / 3);
        for (uint32_t k = 1; k < count; k++)
            EXPECT_TRUE(size_of(k) <= size_of(k - 1));
        EXPECT_TRUE(model.plan.last_bytes < model.plan.cap_bytes);
    }
}

// A program's own first bucket stays.
WEIR_TEST(BucketsChoose, KeepsAFirstBucketThatWasAskedFor)
{
    const struct weir__buckets_curve link = line(1e4, 4e-3);
    open_model();
    model.plan.first_bytes = 8 * MIB;
    weir__buckets_choose(&model, &link, 20e6);
    weir__buckets_cut(&model);
    EXPECT_UINT_EQ(size_of(0), 8 * MIB);
    EXPECT_TRUE(size_of(1) > 8 * MIB);
}
