// The fuzzer's check over a fixed sequence of damaged configurations: each round
// takes a seed text and changes it in one to four places. The bytes lie in a block
// of exactly their size, so that reading past them is seen.
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/config_fuzz.h"
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

struct text {
    uint8_t bytes[SIZE_LIMIT];
    size_t size;
};

// xorshift32: the sequence is the same everywhere.
static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static size_t below(uint32_t *state, size_t limit)
{
    return limit == 0 ? 0 : next_random(state) % limit;
}

static void insert(struct text *text, size_t at, const void *bytes, size_t size)
{
    if (size > SIZE_LIMIT - text->size)
        return;
    memmove(text->bytes + at + size, text->bytes + at, text->size - at);
    memcpy(text->bytes + at, bytes, size);
    text->size += size;
}

static void erase(struct text *text, size_t at, size_t size)
{
    memmove(text->bytes + at, text->bytes + at + size, text->size - at - size);
    text->size -= size;
}

static void change(struct text *text, uint32_t *state)
{
    uint8_t copy[256];
    size_t at = below(state, text->size);
    size_t left = text->size - at;
    size_t length = below(state, left < sizeof copy ? left : sizeof copy);
    const char *piece = pieces[below(state, sizeof pieces / sizeof pieces[0])];

    switch (below(state, 6)) {
    case 0:
        erase(text, at, left > 0);
        break;
    case 1:
        erase(text, at, length);
        break;
    case 2:
        insert(text, at, piece, strlen(piece));
        break;
    case 3:
        if (left > 0)
            text->bytes[at] = (uint8_t)next_random(state);
        break;
    case 4: // a part of the text moves to another place, once more
        memcpy(copy, text->bytes + at, length);
        insert(text, below(state, text->size), copy, length);
        break;
    default: // one byte many times: over-long lines, names and numbers
        memset(copy, left > 0 ? text->bytes[at] : 'x', sizeof copy);
        insert(text, at, copy, below(state, sizeof copy));
    }
}

static const char *check_exactly(const struct text *text)
{
    uint8_t *block = malloc(text->size ? text->size : 1);
    if (!block)
        return "there is no memory for the text";
    memcpy(block, text->bytes, text->size);
    const char *broken = config_fuzz_check(block, text->size);
    free(block);
    return broken;
}

WEIR_TEST(ConfigFuzz, DamagedTextsKeepTheRules)
{
    uint32_t state = 20240607;
    for (size_t round = 0; round < ROUNDS; round++) {
        const char *seed = seeds[round % (sizeof seeds / sizeof seeds[0])];
        struct text text = {.size = 0};
        insert(&text, 0, seed, strlen(seed));
        for (size_t i = below(&state, 4) + 1; i > 0; i--)
            change(&text, &state);
        const char *broken = check_exactly(&text);
        if (broken)
            WEIR_FAIL("round %zu: %s in:\n%.*s", round, broken, (int)text.size,
                      (const char *)text.bytes);
    }
    // Neither all refused, which would check little, nor all accepted.
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
        struct text text = {.size = 0};
        for (; text.size <= strlen(seeds[i]); text.size++) {
            memcpy(text.bytes, seeds[i], text.size);
            EXPECT_NULL(check_exactly(&text));
        }
    }
}
