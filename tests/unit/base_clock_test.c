// Clocks: pauses between looks, and the relation of two clocks.
#include "base/clock.h"
#include "base/clock_map.h"
#include "tests/support/test.h"

// The relation of two clocks.

#define SECOND UINT64_C(1000000000)

static void expect_near(uint64_t value, uint64_t wanted, uint64_t slack)
{
    EXPECT_UINT_LE(wanted, value + slack);
    EXPECT_UINT_LE(value, wanted + slack);
}

// Clock a is 50 millionths fast, and read with an error of up to 3 us.
WEIR_TEST(ClockMap, FollowsDrift)
{
    struct weir_clock_map map = {.count = 0};
    const uint64_t start = 3 * SECOND;
    for (uint64_t i = 0; i < 400; i++) {
        const uint64_t b = start + i * SECOND / 4;
        const uint64_t a = b + (b - start) / 20000 + 1000000 + (i % 3) * 1500;
        weir_clock_map_add(&map, a, b);
    }
    const uint64_t b = start + 95 * SECOND + 123456789;
    const uint64_t a = b + (b - start) / 20000 + 1001500;
    expect_near(weir_clock_map_a(&map, b), a, 3000);
    expect_near(weir_clock_map_b(&map, a), b, 3000);
    // One second beyond the last pair.
    const uint64_t later = start + 101 * SECOND;
    expect_near(weir_clock_map_a(&map, later), later + (later - start) / 20000 + 1001500, 15000);
    const double drift = weir_clock_map_drift_ppm(&map);
    EXPECT_TRUE(drift > 49.8 && drift < 50.2);
}

WEIR_TEST(ClockMap, GoesThereAndBack)
{
    struct weir_clock_map map = {.count = 0};
    for (uint64_t i = 1; i < 100; i++)
        weir_clock_map_add(&map, i * SECOND + i * i * 100, 5 * SECOND + i * SECOND);
    for (uint64_t i = 0; i < 120 * SECOND; i += SECOND / 3 + 7)
        expect_near(weir_clock_map_a(&map, weir_clock_map_b(&map, i)), i, 4);
}

// Readings close to each other replace the newest, so that their error is not
// mistaken for drift.
WEIR_TEST(ClockMap, ShortDistancesTellNoDrift)
{
    struct weir_clock_map map = {.count = 0};
    weir_clock_map_add(&map, SECOND, SECOND);
    weir_clock_map_add(&map, SECOND + 10000, SECOND + 13000);
    expect_near(weir_clock_map_b(&map, 2 * SECOND), 2 * SECOND, 3000);
    for (uint64_t i = 1; i < 50; i++)
        weir_clock_map_add(&map, SECOND + 20000 * i, SECOND + 20000 * i + i % 2);
    EXPECT_UINT_LE(map.count, 2);
}

WEIR_TEST(ClockMap, IgnoresWhatRunsBackwards)
{
    struct weir_clock_map map = {.count = 0};
    weir_clock_map_add(&map, 2 * SECOND, 2 * SECOND);
    weir_clock_map_add(&map, SECOND, 3 * SECOND);
    weir_clock_map_add(&map, 3 * SECOND, SECOND);
    EXPECT_UINT_EQ(map.count, 1);
}
