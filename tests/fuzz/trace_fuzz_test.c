// The fuzzer's check over a fixed sequence of damaged traces: each round takes a
// generated one and changes it in one to four places.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/trace_fuzz.h"
#include "tests/report/made.h"
#include "tests/support/test.h"

enum {
    ROUNDS = 12000,
    SEEDS = 12,
    GROWTH = 4096
};

static const char *const pieces[] = {
    "\n",
    "},\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "-",
    "9",
    "0",
    "e99",
    "null",
    "true",
    "1e308",
    "-1",
    ".5",
    "\xff",
    "\x01",
    "\\u0",
    "\"ph\":",
    "\"ts\":",
    "\"tid\":",
    "\"pid\":",
    "\"weir\": {}",
    "9223372036854775807",
    "99999999999999999999",
    "[[1,2,3,\"\",4]]",
    "\"weir.sequence\":",
    "\"weir.waits\":[[10,1,0,\"\",1]],",
};

static void change(struct damaged *text, uint32_t *state)
{
    uint8_t copy[256];
    const size_t at = damage_below(state, text->size);
    const size_t left = text->size - at;
    const size_t length = damage_below(state, left < sizeof copy ? left : sizeof copy);
    const char *piece = pieces[damage_below(state, sizeof pieces / sizeof *pieces)];
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
    case 3: // a digit of a number becomes another
        for (size_t i = at; i < text->size; i++)
            if (text->bytes[i] >= '0' && text->bytes[i] <= '9') {
                text->bytes[i] = (uint8_t)('0' + damage_below(state, 10));
                break;
            }
        break;
    case 4:
        memcpy(copy, text->bytes + at, length);
        damage_insert(text, damage_below(state, text->size), copy, length);
        break;
    default: // cut off
        if (damage_below(state, 4) == 0)
            text->size = at;
    }
}

struct seed {
    uint8_t *bytes;
    size_t size;
};

static void make_seeds(struct seed seeds[SEEDS])
{
    char path[512];
    snprintf(path, sizeof path, "%s/seed.json", weir_test_temp_dir());
    for (uint32_t i = 0; i < SEEDS; i++) {
        struct made made;
        void *data = NULL;
        char message[512];
        made_random(&made, i * 31 + 7, 1000);
        // Short ones, so that changes have an effect.
        made.operation_count = made.operation_count < 8 ? made.operation_count : 8;
        made_write(&made, path);
        if (!weir_file_read(path, (size_t)1 << 20, &data, &seeds[i].size, message, sizeof message))
            WEIR_FAIL("%s", message);
        seeds[i].bytes = data;
    }
}

WEIR_TEST(TraceFuzz, DamagedTracesKeepTheRules)
{
    struct seed seeds[SEEDS] = {{0}};
    uint32_t state = 20261121;
    make_seeds(seeds);
    for (size_t round = 0; round < ROUNDS && !weir_test_has_failed(); round++) {
        const struct seed *seed = &seeds[round % SEEDS];
        struct damaged text = {.bytes = malloc(seed->size + GROWTH),
                               .size = seed->size,
                               .room = seed->size + GROWTH};
        ASSERT_NOT_NULL(text.bytes);
        memcpy(text.bytes, seed->bytes, seed->size);
        for (size_t i = damage_below(&state, 4) + 1; i > 0; i--)
            change(&text, &state);
        const char *broken = damage_check(trace_fuzz_check, text.bytes, text.size);
        if (broken)
            weir_test_fail(__FILE__, __LINE__, "round %zu: %s in:\n%.*s", round, broken,
                           (int)text.size, (const char *)text.bytes);
        free(text.bytes);
    }
    EXPECT_SIZE_GT(trace_fuzz_accepted(), ROUNDS / 20);
    EXPECT_SIZE_LT(trace_fuzz_accepted(), ROUNDS);
    for (size_t i = 0; i < SEEDS; i++)
        free(seeds[i].bytes);
}

WEIR_TEST(TraceFuzz, SeedsAreRead)
{
    struct seed seeds[SEEDS] = {{0}};
    make_seeds(seeds);
    for (size_t i = 0; i < SEEDS; i++) {
        const size_t before = trace_fuzz_accepted();
        EXPECT_NULL(damage_check(trace_fuzz_check, seeds[i].bytes, seeds[i].size));
        EXPECT_SIZE_EQ(trace_fuzz_accepted(), before + 1);
        free(seeds[i].bytes);
    }
}

// Values that are no text of a trace, at every place of one.
WEIR_TEST(TraceFuzz, BytesOfAnyKindKeepTheRules)
{
    static const char huge[] =
        "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (\","
        "\"ts\":1e300,\"dur\":1e300,\"args\":{\"device\":4294967295,\"stream\":1e18}}]}";
    static const char *const texts[] = {
        "{\"traceEvents\": []}",
        "[]",
        "[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":2,\"args\":{\"stream\":1}}]",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        huge,
        "{\n\"weir\": {\"format\":1},\n\"traceEvents\": [\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t size = 0; size <= strlen(texts[i]); size++)
            EXPECT_NULL(damage_check(trace_fuzz_check, (const uint8_t *)texts[i], size));
}
