// The arithmetic of the pipeline's statistics, against plain counting.
#include "patterns/statistics.h"

#include <stdlib.h>

#include "tests/support/test.h"

static struct weir__histogram histogram;

static void clear_histogram(void)
{
    static const struct weir__histogram empty;
    histogram = empty;
}

// By nearest rank; small values are exact.
WEIR_TEST(Histogram, PercentilesAreNearestRanks)
{
    clear_histogram();
    EXPECT_UINT_EQ(weir__histogram_percentile(&histogram, 50), 0);
    for (uint64_t value = 1; value <= 100; value++)
        weir__histogram_add(&histogram, value);
    for (unsigned percent = 1; percent <= 100; percent++)
        EXPECT_UINT_EQ(weir__histogram_percentile(&histogram, percent), percent);
    weir__histogram_add(&histogram, 101);
    EXPECT_UINT_EQ(weir__histogram_percentile(&histogram, 50), 51);
    EXPECT_UINT_EQ(weir__histogram_percentile(&histogram, 0), 1);
}

WEIR_TEST(Histogram, EveryMagnitudeIsWithinOnePercent)
{
    for (unsigned shift = 0; shift < 64; shift++) {
        for (uint64_t step = 0; step < 100; step++) {
            uint64_t value = (UINT64_C(1) << shift) + ((UINT64_C(1) << shift) / 100) * step;
            weir_test_note("value %llu", (unsigned long long)value);
            clear_histogram();
            // The extremes prevent the result from being clipped to the value.
            weir__histogram_add(&histogram, 0);
            weir__histogram_add(&histogram, value);
            weir__histogram_add(&histogram, UINT64_MAX);
            uint64_t found = weir__histogram_percentile(&histogram, 50);
            uint64_t error = found > value ? found - value : value - found;
            ASSERT_UINT_LE(error, value / 100);
        }
    }
}

// Frames as the pipeline delivers them: a frame starts after the delivery of the
// previous frame of its slot, stages of a frame run in any order. The union in
// slots × stages pieces must then be exact.
WEIR_TEST(Union, IsExactForAnyPipeline)
{
    enum {
        FRAMES = 200,
        STAGES = 4,
        SLOTS = 3,
        LENGTH = 40000
    };
    static unsigned char busy[LENGTH];
    struct weir__interval pieces[SLOTS * STAGES + 1];

    for (unsigned seed = 1; seed <= 200; seed++) {
        struct weir__union set = {.pieces = pieces, .capacity = SLOTS * STAGES};
        uint64_t stage_end[STAGES] = {0};
        uint64_t delivered[FRAMES];
        uint64_t expected = 0;

        weir_test_note("seed %u", seed);
        srand(seed);
        for (unsigned i = 0; i < LENGTH; i++)
            busy[i] = 0;
        for (unsigned frame = 0; frame < FRAMES; frame++) {
            uint64_t start = frame < SLOTS ? 0 : delivered[frame - SLOTS];
            uint64_t end = frame > 0 ? delivered[frame - 1] : 0;
            for (unsigned stage = 0; stage < STAGES; stage++) {
                uint64_t begin = start > stage_end[stage] ? start : stage_end[stage];
                begin += (unsigned)rand() % 20;
                stage_end[stage] = begin + (unsigned)rand() % 20;
                ASSERT_UINT_LT(stage_end[stage], LENGTH);
                for (uint64_t i = begin; i < stage_end[stage]; i++)
                    busy[i] = 1;
                weir__union_add(&set, begin, stage_end[stage]);
                end = end > stage_end[stage] ? end : stage_end[stage];
            }
            delivered[frame] = end;
        }
        for (unsigned i = 0; i < LENGTH; i++)
            expected += busy[i];
        ASSERT_UINT_EQ(weir__union_length(&set), expected);
    }
}
