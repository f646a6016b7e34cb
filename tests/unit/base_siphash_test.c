// The authors' test vectors (vectors.h of their reference): the key is 00 01 .. 0f, the text of
// n bytes 00 01 .. n-1.
#include "base/siphash.h"

#include "tests/support/test.h"

WEIR_TEST(BaseSiphash, HasTheAuthorsValues)
{
    static const struct {
        size_t size;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
        {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
        {15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
    };
    const struct weir_siphash_key key = {
        {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    unsigned char text[64];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        EXPECT_TRUE(weir_siphash(&key, text, vectors[i].size) == vectors[i].hash);
}

WEIR_TEST(BaseSiphash, KeysDiffer)
{
    struct weir_siphash_key one;
    struct weir_siphash_key two;
    ASSERT_TRUE(weir_siphash_random_key(&one));
    ASSERT_TRUE(weir_siphash_random_key(&two));
    EXPECT_TRUE(one.words[0] != two.words[0] || one.words[1] != two.words[1]);
    EXPECT_TRUE(weir_siphash(&one, "text", 4) != weir_siphash(&two, "text", 4));
}
