// Fails on purpose, in every way that a test can fail. report_test.sh runs it,
// and looks for each line below by the text in its trailing comment, and for
// the values.

#include "tests/support/test.h"

#include <stdio.h>

static int three(void)
{
    return 3;
}

WEIR_TEST(Failing, Int)
{
    EXPECT_INT_EQ(three(), -4); // at: int
    puts("Int went on");
}

WEIR_TEST(Failing, Assert)
{
    ASSERT_UINT_GE(1U, UINT64_MAX); // at: assert
    puts("Assert went on");
}

WEIR_TEST(Failing, Kinds)
{
    const char *text = "some text";
    EXPECT_TRUE(three() == 4);                  // at: true
    EXPECT_FALSE(three() == 3);                 // at: false
    EXPECT_DOUBLE_LT(2.5, 1.25);                // at: double
    EXPECT_NEAR(1.0, 1.5, 0.25);                // at: near
    EXPECT_NOT_NULL(NULL);                      // at: null
    EXPECT_STR_EQ(text, "other text");          // at: str
    EXPECT_CONTAINS(text, "absent");            // at: contains
    EXPECT_NOT_CONTAINS(text, "some");          // at: not_contains
    EXPECT_MEM_EQ("abcdef", "abXdeY", 6);       // at: mem
    EXPECT_UINT_NE(sizeof(char), sizeof(char)); // at: size
    EXPECT_PTR_NE(text, text);                  // at: ptr
}

WEIR_TEST(Failing, Hook)
{
    weir_test_note("row %d", 7);
    weir_test_fail(__FILE__, __LINE__, "the hook says %s", "so"); // at: hook
    WEIR_FAIL("and fails");                                       // at: fail
}

WEIR_TEST(Passing, Passes)
{
    EXPECT_INT_EQ(three(), 3);
}

WEIR_TEST(Passing, Skips)
{
    WEIR_SKIP("no %s here", "device"); // at: skip
    puts("Skips went on");
}
