// The fuzzer's check over a fixed sequence of damaged configurations: each round
// takes a seed text and changes it in one to four places.
#include <string.h>

#include "tests/fuzz/config_fuzz.h"
#include "tests/fuzz/damage.h"
#include "tests/support/test.h"

enum {
    ROUNDS = 30000,
    SIZE_LIMIT = 2000
};

static const char *const seeds[] = {
    "[weir]\nbackend = cuda, opencl ; in this order\nplugins = check, trace\n\n[made]\nslots = "
    "12\n",
    "; all of them\n[made]\nslots = -4\ntiming = 1\norder = depth_first\ntitle = a b = \"c\" %s\n"
    "names = x, y,x\n[empty]\n# end",
    "\xef\xbb\xbf[empty]\r\n\r\n[weir] ; K\xc3\xb6ln \xf0\x9f\x8c\x8a\r\ndevice =\r\nmodule_path = "
    "/a:/b\r\n   ; indented\r\n",
    "[made]\ntitle =\torder ; =\norder=auto\nnames =\n",
    "",
};

static const char *const pieces[] = {
    "\n",       "\r\n",
    "[",        "]",
    "[made]\n", "[weir]",
    "=",        " = ",
    ";",        " ;",
    "#",        " ",
    "\t",       ",",
    ":",        "\xef\xbb\xbf",
    "\xc3",     "\xff",
    "\x7f",     "0",
    "-",        "9",
    "slots = ", "99999999999999999999",
    "order",    "%n%s",
    "\\",       "timing",
    "\x01",     "breadth_first",
    "weir",     "names = a,b,c,d,e\n",
};

static void change(struct damaged *text, uint32_t *state)
{
    uint8_t copy[256];
    size_t at = damage_below(state, text->size);
    size_t left = text->size - at;
    size_t length = damage_below(state, left < sizeof copy ? left : sizeof copy);
    const char *piece = pieces[damage_below(state, sizeof pieces / sizeof pieces[0])];

    switch (damage_below(state, 6)) {
    case 0:
        damage_erase(text, at, left > 0);
        break;
    case 1:
        damage_erase(text, at, length);
        break;
    case 2:
        damage_insert(text, at, piece, strlen(piece));
        break;
    case 3:
        if (left > 0)
            text->bytes[at] = (uint8_t)damage_below(state, 256);
        break;
    case 4: // a part of the text moves to another place, once more
        memcpy(copy, text->bytes + at, length);
        damage_insert(text, damage_below(state, text->size), copy, length);
        break;
    default: // one byte many times: over-long lines, names and numbers
        memset(copy, left > 0 ? text->bytes[at] : 'x', sizeof copy);
        damage_insert(text, at, copy, damage_below(state, sizeof copy));
    }
}

WEIR_TEST(ConfigFuzz, DamagedTextsKeepTheRules)
{
    uint32_t state = 20240607;
    for (size_t round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[round % (sizeof seeds / sizeof seeds[0])];
        uint8_t bytes[SIZE_LIMIT];
        struct damaged text = {.bytes = bytes, .room = sizeof bytes};
        damage_insert(&text, 0, seed, strlen(seed));
        for (size_t i = damage_below(&state, 4) + 1; i > 0; i--)
            change(&text, &state);
        const char *broken = damage_check(config_fuzz_check, text.bytes, text.size);
        if (broken)
            WEIR_FAIL("round %zu: %s in:\n%.*s", round, broken, (int)text.size,
                      (const char *)text.bytes);
    }
    // Neither all inputs are refused, which would check little, nor all
    // accepted.
    EXPECT_SIZE_GT(config_fuzz_accepted(), ROUNDS / 20);
    EXPECT_SIZE_LT(config_fuzz_accepted(), ROUNDS * 19 / 20);
}

WEIR_TEST(ConfigFuzz, SeedsAreAccepted)
{
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        size_t before = config_fuzz_accepted();
        EXPECT_NULL(config_fuzz_check((const uint8_t *)seeds[i], strlen(seeds[i])));
        EXPECT_SIZE_EQ(config_fuzz_accepted(), before + 1);
    }
}

WEIR_TEST(ConfigFuzz, EveryPrefixOfASeedKeepsTheRules)
{
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        const uint8_t *seed = (const uint8_t *)seeds[i];
        for (size_t size = 0; size <= strlen(seeds[i]); size++)
            EXPECT_NULL(damage_check(config_fuzz_check, seed, size));
    }
}
