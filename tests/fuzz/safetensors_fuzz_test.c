// The fuzzer's check over a fixed sequence of damaged files. Damage to a header mostly
// keeps the length before it correct: otherwise almost all would be refused at the first
// check.
#include <string.h>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/safetensors_fuzz.h"
#include "tests/support/test.h"

enum {
    ROUNDS = 20000,
    LIMIT = 1024
};

static const char *const headers[] = {
    "{}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[16,24]}}   ",
    "{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
    "\"y\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[1,1]},"
    "\"z\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[1,9]}}",
};
static const size_t bodies[] = {0, 24, 24, 9};

// Pieces of the format, so that the damaged text is often still JSON.
static const char *const words[] = {
    "0",
    "1",
    "4",
    "24",
    "-1",
    "9223372036854775807",
    "18446744073709551616",
    "1e9",
    "[]",
    "{}",
    "[0,",
    ",",
    "\"F32\"",
    "\"F64\"",
    "\"a\":",
    "\"dtype\"",
    "\\u0000",
    "\"",
    "}",
    "]",
    "[[[[[[[[",
    "__metadata__",
    "\xff",
    "null",
};

static void change(struct damaged *header, uint32_t *state)
{
    uint8_t copy[16];
    const size_t at = damage_below(state, header->size);
    const size_t left = header->size - at;
    const char *word = words[damage_below(state, sizeof words / sizeof *words)];
    if (header->size == 0)
        return;
    switch (damage_below(state, 6)) {
    case 0:
        header->bytes[at] ^= (uint8_t)(1u << damage_below(state, 8));
        break;
    case 1:
        header->bytes[at] = (uint8_t)damage_below(state, 256);
        break;
    case 2:
        damage_erase(header, at, 1 + damage_below(state, left));
        break;
    case 3:
        damage_insert(header, at, word, strlen(word));
        break;
    case 4:
        damage_erase(header, at, 1);
        damage_insert(header, at, word, strlen(word));
        break;
    default: { // a part of it once more, at another place
        const size_t count = left < sizeof copy ? left : sizeof copy;
        memcpy(copy, header->bytes + at, count);
        damage_insert(header, damage_below(state, header->size), copy, count);
    }
    }
}

// Joins the length, header and body in `bytes` and returns the number of bytes.
static size_t join(uint8_t *bytes, const struct damaged *header, size_t body)
{
    memset(bytes, 0, 8 + header->size + body);
    bytes[0] = (uint8_t)(header->size & 255);
    bytes[1] = (uint8_t)(header->size >> 8);
    memcpy(bytes + 8, header->bytes, header->size);
    return 8 + header->size + body;
}

WEIR_TEST(SafetensorsFuzz, DamagedFilesKeepTheRules)
{
    uint32_t state = 20240607;
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t which = damage_below(&state, sizeof headers / sizeof *headers);
        uint8_t header_bytes[LIMIT];
        uint8_t bytes[LIMIT + 64];
        struct damaged header = {.bytes = header_bytes, .room = sizeof header_bytes};
        damage_insert(&header, 0, headers[which], strlen(headers[which]));
        for (size_t i = damage_below(&state, 4); i > 0; i--)
            change(&header, &state);

        size_t size = join(bytes, &header, bodies[which] + damage_below(&state, 8) / 7);
        if (damage_below(&state, 8) == 0)
            bytes[damage_below(&state, 8)] = (uint8_t)damage_below(&state, 256);
        if (damage_below(&state, 8) == 0)
            size = damage_below(&state, size);
        const char *broken = damage_check(safetensors_fuzz_check, bytes, size);
        if (broken)
            WEIR_FAIL("round %zu: %s, after its length:\n%.*s", round, broken,
                      size > 8 ? (int)(size - 8) : 0, (const char *)bytes + 8);
    }
    // Both outcomes must be common, or the damage tests little.
    EXPECT_SIZE_GT(safetensors_fuzz_accepted(), ROUNDS / 20);
    EXPECT_SIZE_LT(safetensors_fuzz_accepted(), ROUNDS / 2);
}
