// How many copy channels turns of `weir calibrate` tell of.
#include "cli/calibrate/votes.h"
#include "tests/support/test.h"

#define COUNT(...)                                                                                 \
    cal_votes_count((const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

WEIR_TEST(Votes, AgreeOnANumber)
{
    EXPECT_INT_EQ(COUNT(4), 4);
    EXPECT_INT_EQ(COUNT(0, 0, 0), 0);
    EXPECT_INT_EQ(COUNT(1, 1, 0, 1), 1);
    EXPECT_INT_EQ(COUNT(12, 12, 3), 12);
}

// As an H200 did when a turn followed another one at once: every other one looked like half the channels.
WEIR_TEST(Votes, AlternateWithHalfTheNumber)
{
    EXPECT_INT_EQ(COUNT(4, 2, 4, 2), 4);
    EXPECT_INT_EQ(COUNT(2, 4, 2, 4, 2), 4);
    EXPECT_INT_EQ(COUNT(4, 2, 4, 2, 4, 2, 4, 2, 4, 2, 4), 4);
    EXPECT_INT_EQ(COUNT(2, 4, 2, 4, 2, 4, 2, 4, 2, 4, 2), 4);
}

// Most turns are for the half, or the others are for no multiple of it.
WEIR_TEST(Votes, AreForTheHalf)
{
    EXPECT_INT_EQ(COUNT(2, 4, 2), 2);
    EXPECT_INT_EQ(COUNT(2, 2, 4, 2, 2), 2);
    EXPECT_INT_EQ(COUNT(2, 3, 2, 2), 2);
}

WEIR_TEST(Votes, HaveNothingInCommon)
{
    EXPECT_INT_EQ(COUNT(CAL_NO_VOTE), CAL_NO_VOTE);
    EXPECT_INT_EQ(COUNT(0, 1, 2, 3), CAL_NO_VOTE);
    EXPECT_INT_EQ(COUNT(4, 4, 3, 3), CAL_NO_VOTE);
    EXPECT_INT_EQ(COUNT(4, 1, 4, 0, CAL_NO_VOTE), CAL_NO_VOTE);
    EXPECT_INT_EQ(cal_votes_count(NULL, 0), CAL_NO_VOTE);
}
