#include <string.h>

#include "base/odd.h"
#include "tests/support/test.h"

// Letters; '?' is not known.
static bool same(const void *things, uint32_t a, uint32_t b)
{
    const char *letters = things;
    return letters[a] != '?' && letters[a] == letters[b];
}

static uint32_t odd_of(const char *letters, uint32_t *out_common)
{
    return weir_odd_one(letters, (uint32_t)strlen(letters), same, out_common);
}

WEIR_TEST(Odd, TheFirstThatDiffers)
{
    uint32_t common = 7;
    EXPECT_UINT_EQ(odd_of("aab", &common), 2);
    EXPECT_UINT_EQ(common, 0);
    EXPECT_UINT_EQ(odd_of("baa", &common), 0);
    EXPECT_UINT_EQ(common, 1);
    EXPECT_UINT_EQ(odd_of("abcaa", &common), 1);
    EXPECT_UINT_EQ(odd_of("bcaaa", &common), 0);
    EXPECT_UINT_EQ(common, 2);
}

WEIR_TEST(Odd, NoneOrNoHalf)
{
    uint32_t common = 0;
    EXPECT_UINT_EQ(odd_of("aaa", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("a", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("ab", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("abc", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("aabb", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("", &common), WEIR_ODD_NONE);
}

WEIR_TEST(Odd, SomeAreNotKnown)
{
    uint32_t common = 0;
    EXPECT_UINT_EQ(odd_of("a?b", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("?aab", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("?aaba", &common), 3);
    EXPECT_UINT_EQ(odd_of("?aa", &common), WEIR_ODD_NONE);
    EXPECT_UINT_EQ(odd_of("???", &common), WEIR_ODD_NONE);
}
