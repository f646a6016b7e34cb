#include "base/clock.h"

#include "tests/support/test.h"

WEIR_TEST(BaseClock, PausesGrowUntilTheTimeout)
{
    const uint64_t timeout_ns = 20000000;
    const uint64_t start_ns = weir_clock_now_ns();
    uint64_t pause_ns = 0;
    uint64_t before_ns = 0;
    EXPECT_TRUE(weir_clock_pause(start_ns, UINT64_MAX, &pause_ns));
    EXPECT_UINT_EQ(pause_ns, 2000);
    while (weir_clock_pause(start_ns, timeout_ns, &pause_ns)) {
        EXPECT_UINT_GE(pause_ns, before_ns);
        EXPECT_UINT_LE(pause_ns, 1000000);
        before_ns = pause_ns;
    }
    EXPECT_UINT_GE(weir_clock_now_ns() - start_ns, timeout_ns);
}

WEIR_TEST(BaseClock, NoPauseAfterTheTimeout)
{
    uint64_t pause_ns = 0;
    EXPECT_FALSE(weir_clock_pause(weir_clock_now_ns(), 0, &pause_ns));
    EXPECT_UINT_EQ(pause_ns, 0);
}

WEIR_TEST(BaseClock, PausesStopGrowing)
{
    uint64_t pause_ns = 1000000;
    const uint64_t now_ns = weir_clock_now_ns();
    EXPECT_TRUE(weir_clock_pause(now_ns, UINT64_MAX, &pause_ns));
    EXPECT_UINT_EQ(pause_ns, 1000000);
}
