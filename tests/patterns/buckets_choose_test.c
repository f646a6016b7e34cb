// What WEIR_BUCKETS_AUTO chooses, from figures that are given here.
#include "patterns/buckets_parts.h"
#include "tests/support/test.h"

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

WEIR_TEST(BucketsChoose, ReadsTheCurveBetweenItsPoints)
{
    const struct weir__buckets_curve curve = {.latency_ns = 1000,
                                              .count = 3,
                                              .bytes = {1000, 3000, 5000},
                                              .ns_per_byte = {4, 2, 1}};
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 0) == 1000);
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 500) == 1000 + 500 * 4);
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 1000) == 1000 + 1000 * 4);
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 2000) == 1000 + 2000 * 3);
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 3000) == 1000 + 3000 * 2);
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 4000) == 1000 + 4000 * 1.5);
    EXPECT_TRUE(weir__buckets_reduce_ns(&curve, 9000) == 1000 + 9000);
}

// Without computation beside it, and where each bucket costs more than it hides.
WEIR_TEST(BucketsChoose, TakesOneBucketWhereNothingIsHidden)
{
    const struct weir__buckets_curve fast = line(1e4, 4e-3), slow = line(1e8, 4e-3);
    EXPECT_UINT_EQ(choose(&fast, 1), 1);
    EXPECT_UINT_EQ(size_of(0), LAYERS * 8 * MIB);
    EXPECT_UINT_EQ(choose(&slow, 0), 1);
}

// Without a latency nothing speaks for large buckets at the end.
WEIR_TEST(BucketsChoose, EndsWithOneParameterWhereBucketsAreFree)
{
    const struct weir__buckets_curve link = line(0, 4e-3);
    const uint32_t count = choose(&link, 20e6);
    ASSERT_TRUE(count > 1);
    EXPECT_UINT_EQ(size_of(count - 1), 8 * MIB);
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
