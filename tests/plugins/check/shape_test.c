// Sets of bytes, compared with what a bitmap says.
#include <stdlib.h>
#include <string.h>

#include "plugins/check/shape.h"
#include "tests/support/test.h"

enum {
    BYTES = 256
};

static void mark(const struct check_shape *shape, bool bytes[BYTES])
{
    memset(bytes, 0, BYTES * sizeof *bytes);
    for (uint64_t i = 0; i < check_shape_run_count(shape); i++) {
        const struct check_span run = check_shape_run(shape, i);
        for (uint64_t at = run.begin; at < run.end; at++)
            bytes[at] = true;
    }
}

// The bytes as the definition has them, without what the shape makes of adjacent rows.
static void mark_box(uint64_t begin, const uint64_t box[5], bool bytes[BYTES])
{
    memset(bytes, 0, BYTES * sizeof *bytes);
    for (uint64_t slice = 0; slice < box[3]; slice++)
        for (uint64_t row = 0; row < box[1]; row++)
            for (uint64_t at = 0; at < box[0]; at++)
                bytes[begin + slice * box[4] + row * box[2] + at] = true;
}

static uint64_t up_to(unsigned *seed, uint64_t most)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 8) % (most + 1);
}

// A random box that fits.
static struct check_shape random_shape(unsigned *seed, bool bytes[BYTES])
{
    uint64_t box[5];
    uint64_t begin;
    uint64_t size;
    do {
        box[0] = 1 + up_to(seed, 9);
        box[1] = 1 + up_to(seed, 5);
        box[2] = box[0] + up_to(seed, 12);
        box[3] = 1 + up_to(seed, 3);
        box[4] = (box[1] - 1) * box[2] + box[0] + up_to(seed, 20);
        begin = up_to(seed, 100);
        size = (box[3] - 1) * box[4] + (box[1] - 1) * box[2] + box[0];
    } while (begin + size > BYTES);
    mark_box(begin, box, bytes);
    return check_shape_box(begin, box[0], box[1], box[2], box[3], box[4]);
}

static uint64_t first_common(const bool a[BYTES], const bool b[BYTES])
{
    uint64_t at = 0;
    while (at < BYTES && !(a[at] && b[at]))
        at++;
    return at;
}

static bool contains(const bool outer[BYTES], const bool inner[BYTES])
{
    for (int i = 0; i < BYTES; i++)
        if (inner[i] && !outer[i])
            return false;
    return true;
}

static void compare(const struct check_shape *a, const bool in_a[BYTES],
                    const struct check_shape *b, const bool in_b[BYTES])
{
    const uint64_t first = first_common(in_a, in_b);
    const struct check_span common = check_shapes_common(a, b);
    ASSERT_INT_EQ(check_shapes_meet(a, b), first < BYTES);
    ASSERT_INT_EQ(common.begin < common.end, first < BYTES);
    for (uint64_t at = common.begin; at < common.end; at++)
        ASSERT_TRUE(in_a[at] && in_b[at]);
    if (check_shape_covers(a, b))
        ASSERT_TRUE(contains(in_a, in_b));
    else
        ASSERT_FALSE(check_shape_is_range(a) && contains(in_a, in_b));
}

WEIR_TEST(CheckShape, RandomBoxes)
{
    unsigned seed = 1;
    bool in_a[BYTES];
    bool in_b[BYTES];
    bool runs[BYTES];
    for (int i = 0; i < 200000; i++) {
        const struct check_shape a = random_shape(&seed, in_a);
        const struct check_shape b = random_shape(&seed, in_b);
        mark(&a, runs);
        ASSERT_TRUE(memcmp(runs, in_a, sizeof runs) == 0);
        compare(&a, in_a, &b, in_b);
    }
}

// Planes of one pitch are compared without looking at their rows.
WEIR_TEST(CheckShape, PlanesOfOnePitch)
{
    bool in_a[BYTES];
    bool in_b[BYTES];
    for (uint64_t begin = 0; begin < 80; begin++)
        for (uint64_t width = 1; width < 12; width++)
            for (uint64_t rows = 2; rows < 6; rows++) {
                const struct check_shape a = check_shape_box(40, 5, 4, 12, 1, 0);
                const struct check_shape b = check_shape_box(begin, width, rows, 12, 1, 0);
                mark(&a, in_a);
                mark(&b, in_b);
                compare(&a, in_a, &b, in_b);
            }
}

WEIR_TEST(CheckShape, AdjacentRowsAreOne)
{
    const struct check_shape rows = check_shape_box(8, 16, 4, 16, 1, 0);
    const struct check_shape slices = check_shape_box(8, 16, 4, 16, 3, 64);
    const struct check_shape columns = check_shape_box(8, 4, 4, 16, 3, 64);
    EXPECT_TRUE(check_shape_is_range(&rows));
    EXPECT_UINT_EQ(rows.end, 8 + 64);
    EXPECT_TRUE(check_shape_is_range(&slices));
    EXPECT_UINT_EQ(slices.end, 8 + 192);
    EXPECT_UINT_EQ(columns.slices, 1);
    EXPECT_UINT_EQ(columns.rows, 12);
}

WEIR_TEST(CheckShape, TouchingIsNotMeeting)
{
    const struct check_shape a = check_shape_range(0, 16);
    const struct check_shape b = check_shape_range(16, 16);
    const struct check_shape c = check_shape_range(15, 1);
    EXPECT_FALSE(check_shapes_meet(&a, &b));
    EXPECT_TRUE(check_shapes_meet(&a, &c));
    EXPECT_FALSE(check_shapes_meet(&b, &c));
}
