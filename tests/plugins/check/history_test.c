// Histories and gaps, compared with lists and bitmaps.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/history.h"
#include "tests/support/test.h"

enum {
    BYTES = 512
};

static uint64_t up_to(unsigned *seed, uint64_t most)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % (most + 1);
}

static struct check_shape shape_of(unsigned *seed)
{
    const uint64_t begin = up_to(seed, BYTES - 1);
    return check_shape_range(begin, 1 + up_to(seed, 40));
}

static bool is_in(const struct check_found *found, const struct check_use *use)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->uses[i] == use)
            return true;
    return false;
}

// Searches, and compares with all uses that there are. A short list is found as a whole.
static void search(const struct check_history *history, struct check_found *found,
                   struct check_use *const *kept, size_t count, struct check_span span)
{
    size_t expected = 0;
    check_history_find(history, span, found);
    for (size_t i = 0; i < count; i++) {
        const bool meets = kept[i]->shape.begin < span.end && kept[i]->shape.end > span.begin;
        expected += meets;
        ASSERT_TRUE(is_in(found, kept[i]) == meets || count <= CHECK_FEW);
        ASSERT_TRUE(is_in(found, kept[i]) || !meets);
    }
    ASSERT_SIZE_EQ(found->count, count <= CHECK_FEW ? count : expected);
}

WEIR_TEST(CheckHistory, FindsWhatMeetsASpan)
{
    enum {
        MOST = 200
    };
    struct check_use *kept[MOST];
    struct check_history history = {0};
    struct check_found found;
    struct check_uses uses;
    unsigned seed = 3;
    size_t count = 0;
    check_uses_init(&uses);
    ASSERT_TRUE(check_found_init(&found));
    for (int i = 0; i < 8000; i++) {
        // Now more come than go, now fewer: the list becomes a tree and a list again.
        const bool grows = up_to(&seed, 9) > (i / 400 % 2 ? 5u : 3u);
        if (count < MOST && (count == 0 || grows)) {
            const struct check_shape shape = shape_of(&seed);
            kept[count] = check_history_add(&uses, &history, &shape);
            ASSERT_TRUE(kept[count++] != NULL);
        } else {
            const size_t gone = up_to(&seed, count - 1);
            check_history_remove(&uses, &history, kept[gone]);
            kept[gone] = kept[--count];
        }
        ASSERT_SIZE_EQ(history.count, count);
        const uint64_t begin = up_to(&seed, BYTES);
        search(&history, &found, kept, count,
               (struct check_span){begin, begin + 1 + up_to(&seed, 60)});
    }
    check_history_clear(&uses, &history);
    EXPECT_SIZE_EQ(history.count, 0);
    check_found_finish(&found);
    check_uses_finish(&uses);
}

// Uses in ascending order are a list for a tree that does not balance.
WEIR_TEST(CheckHistory, AscendingUses)
{
    enum {
        COUNT = 100000
    };
    struct check_history history = {0};
    struct check_found found;
    struct check_uses uses;
    check_uses_init(&uses);
    ASSERT_TRUE(check_found_init(&found));
    for (uint64_t i = 0; i < COUNT; i++) {
        const struct check_shape shape = check_shape_range(16 * i, 16);
        struct check_use *use = check_history_add(&uses, &history, &shape);
        ASSERT_TRUE(use != NULL);
        use->serial = i;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        check_history_find(&history, (struct check_span){16 * i + 15, 16 * i + 16}, &found);
        ASSERT_SIZE_EQ(found.count, 1);
        ASSERT_UINT_EQ(found.uses[0]->serial, i);
    }
    check_history_clear(&uses, &history);
    check_found_finish(&found);
    check_uses_finish(&uses);
}

// Gaps.

static uint64_t first_gap(const bool written[BYTES], const struct check_shape *shape)
{
    for (uint64_t i = 0; i < check_shape_run_count(shape); i++) {
        const struct check_span run = check_shape_run(shape, i);
        for (uint64_t at = run.begin; at < run.end; at++)
            if (!written[at])
                return at;
    }
    return BYTES;
}

static void compare_gaps(const struct check_gaps *gaps, const bool written[BYTES],
                         const struct check_shape *shape)
{
    const uint64_t first = first_gap(written, shape);
    const struct check_span found = check_gaps_find(gaps, shape);
    ASSERT_INT_EQ(found.begin < found.end, first < BYTES);
    if (first < BYTES)
        ASSERT_UINT_EQ(found.begin, first);
    for (uint64_t at = found.begin; at < found.end; at++)
        ASSERT_FALSE(written[at]);
}

static struct check_shape random_plane(unsigned *seed)
{
    const uint64_t width = 1 + up_to(seed, 20);
    const uint64_t rows = 1 + up_to(seed, 3);
    const uint64_t pitch = width + up_to(seed, 20);
    return check_shape_box(up_to(seed, BYTES - rows * pitch), width, rows, pitch, 1, 0);
}

WEIR_TEST(CheckGaps, RandomWrites)
{
    struct check_gaps gaps = {0};
    unsigned seed = 5;
    for (int round = 0; round < 500; round++) {
        bool written[BYTES] = {false};
        check_gaps_reset(&gaps, BYTES);
        for (int i = 0; i < 60; i++) {
            struct check_shape shape = random_plane(&seed);
            compare_gaps(&gaps, written, &shape);
            check_gaps_fill(&gaps, &shape);
            for (uint64_t row = 0; row < check_shape_run_count(&shape); row++)
                memset(&written[check_shape_run(&shape, row).begin], true, shape.width);
            shape = check_shape_range(0, BYTES);
            compare_gaps(&gaps, written, &shape);
        }
    }
    check_gaps_forget(&gaps);
}

WEIR_TEST(CheckGaps, TooManyCountAsNone)
{
    struct check_gaps gaps = {0};
    const struct check_shape all = check_shape_range(0, 1 << 20);
    check_gaps_reset(&gaps, 1 << 20);
    for (uint64_t i = 0; i < CHECK_GAPS_MOST - 1; i++) {
        const struct check_shape byte = check_shape_range(2 * i + 1, 1);
        check_gaps_fill(&gaps, &byte);
    }
    EXPECT_SIZE_EQ(gaps.count, CHECK_GAPS_MOST);
    const struct check_shape last = check_shape_range(1 << 19, 1);
    check_gaps_fill(&gaps, &last);
    EXPECT_SIZE_EQ(gaps.count, 0);
    const struct check_span found = check_gaps_find(&gaps, &all);
    EXPECT_UINT_EQ(found.begin, found.end);
    check_gaps_forget(&gaps);
}
