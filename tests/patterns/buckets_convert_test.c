// Gradients that travel as bf16: rounded to nearest even on the way, reduced, and widened.
#include "tests/patterns/buckets_rig.h"
#include "tests/support/numbers.h"

static struct buckets_rig rig;

// By the definition: the nearer neighbour, and of two the one whose last bit is 0.
static float nearest(float number)
{
    const float below = test_float_of(test_bits_of(number) & 0xFFFF0000u);
    const float above = test_float_of((test_bits_of(number) & 0xFFFF0000u) + 0x10000u);
    const double down = fabs((double)number - below), up = fabs((double)above - number);
    if (down != up)
        return down < up ? below : above;
    return test_bits_of(below) & 0x10000u ? above : below;
}

static void open_rig(uint32_t ranks)
{
    buckets_rig_open(&rig, ranks);
    rig.params.wire = WEIR_BF16;
    buckets_rig_create(&rig);
}

// One parameter of each rank, with the same numbers on all of them; reads what comes out on one.
static void reduce(const float *numbers, float *found, size_t count)
{
    struct weir_bucket_view view = {0};
    for (uint32_t rank = 0; rank < rig.comm.count; rank++) {
        EXPECT_OK(weir_buckets_begin(rig.buckets[rank], true));
        ASSERT_OK(weir_buckets_get_view(rig.buckets[rank], 3, &view));
        EXPECT_OK(weir_upload(rig.comm.queues[rank], view.buffer, view.offset, numbers, count * 4));
        for (uint32_t i = 0; i < BUCKETS_RIG_PARAMETERS; i++)
            EXPECT_OK(weir_buckets_ready(rig.buckets[rank], i, rig.comm.queues[rank]));
        EXPECT_OK(weir_buckets_finish(rig.buckets[rank], rig.comm.queues[rank]));
    }
    EXPECT_OK(weir_download(rig.comm.queues[0], found, view.buffer, view.offset, count * 4));
}

// One rank: what comes out is what was rounded.
WEIR_TEST(BucketsConvert, RoundToNearestEven)
{
    float numbers[700], found[700] = {0};
    size_t wrong = 0;
    open_rig(1);
    for (uint32_t i = 0; i < 700; i++)
        numbers[i] = test_float_of(0x3F800000u + i * 0x1357u +
                                   (i % 7 == 0 ? 0 : i * 0x01000000u % 0x20000000u));
    for (uint32_t i = 0; i < 16; i++) // ties, and their neighbours
        numbers[i] = test_float_of(0xC0000000u + (i / 4) * 0x10000u + 0x7FFFu + i % 4);
    reduce(numbers, found, 700);
    for (size_t i = 0; i < 700; i++)
        wrong += test_bits_of(found[i]) != test_bits_of(nearest(numbers[i]));
    EXPECT_UINT_EQ(wrong, 0);
    buckets_rig_close(&rig);
}

WEIR_TEST(BucketsConvert, KeepWhatIsNoNumber)
{
    const float numbers[] = {test_float_of(0x7F800001u),
                             test_float_of(0xFFFFFFFFu),
                             INFINITY,
                             -INFINITY,
                             -0.0f,
                             0.0f,
                             test_float_of(0x7F7FFFFFu),
                             test_float_of(1)};
    float found[8] = {0};
    open_rig(1);
    reduce(numbers, found, 8);
    EXPECT_TRUE(isnan(found[0]) && isnan(found[1]));
    EXPECT_TRUE(found[2] == INFINITY && found[3] == -INFINITY);
    EXPECT_TRUE(found[4] == 0 && signbit(found[4]) && found[5] == 0 && !signbit(found[5]));
    EXPECT_TRUE(found[6] == INFINITY && found[7] == 0);
    buckets_rig_close(&rig);
}

// Whole numbers up to 256 are exact in bf16, and so are their averages over four ranks here.
WEIR_TEST(BucketsConvert, AverageSteps)
{
    struct weir_buckets_statistics statistics;
    struct weir_buckets_plan plan;
    open_rig(4);
    for (int step = 1; step <= 3; step++) {
        buckets_rig_step(&rig, 4);
        for (uint32_t rank = 0; rank < 4; rank++)
            for (uint32_t i = 0; i < 3; i++)
                buckets_rig_expect(&rig, rank, i, 4);
    }
    weir_buckets_get_statistics(rig.buckets[0], &statistics);
    weir_buckets_get_plan(rig.buckets[0], &plan);
    EXPECT_UINT_EQ(statistics.reductions, 9);
    EXPECT_TRUE(statistics.reduced_bytes <= 3 * plan.bytes / 2);
    buckets_rig_close(&rig);
}
