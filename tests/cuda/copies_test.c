// Copies and fills of the CUDA backend, between all kinds of memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/rig.h"

static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static struct weir_plane plane_of(weir_buffer *buffer, size_t offset, size_t pitch)
{
    return (struct weir_plane){buffer, offset, pitch};
}

struct place {
    const char *name;
    weir_placement placement;
    size_t wrapped; // 0: not; else the misalignment of the wrapped memory, plus one
};

static const struct place places[] = {
    {"DEVICE", WEIR_PLACE_DEVICE, 0},
    {"HOST", WEIR_PLACE_HOST, 0},
    {"wrapped", WEIR_PLACE_HOST, 1},
    {"wrapped, odd", WEIR_PLACE_HOST, 4},
};

static weir_buffer *make(struct rig *rig, const struct place *place, size_t size, void *memory)
{
    return place->wrapped ? rig_wrap(rig, (char *)memory + place->wrapped - 1, size)
                          : rig_buffer(rig, size, place->placement);
}

static void fill_and_check(struct rig *rig, const struct place *place, size_t unit, size_t count)
{
    static _Alignas(16) unsigned char memory[1024];
    unsigned char result[512];
    const unsigned char before = 0xee;
    weir_buffer *buffer = make(rig, place, sizeof result, memory);
    weir_test_note("%s: %zu patterns of %zu bytes", place->name, count, unit);
    EXPECT_OK(weir_queue_fill(rig->queue, buffer, 0, sizeof result, &before, 1));
    EXPECT_OK(weir_queue_fill(rig->queue, buffer, unit, unit * count, pattern, unit));
    EXPECT_OK(weir_download(rig->queue, result, buffer, 0, sizeof result));
    EXPECT_INT_EQ(result[unit - 1], 0xee);
    for (size_t i = 0; i < count; i++)
        EXPECT_MEM_EQ(result + unit * (i + 1), pattern, unit);
    EXPECT_INT_EQ(result[unit * (count + 1)], 0xee);
    weir_buffer_destroy(&buffer);
}

WEIR_TEST(CudaCopies, FillsExactly)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t unit = 1; unit <= 16; unit *= 2)
            for (size_t count = 1; count <= 29; count += count < 9 ? 1 : 10)
                fill_and_check(&rig, &places[p], unit, count);
    weir_test_note(NULL);
    rig_finish(&rig);
}

static void copy_rows(struct rig *rig, const struct place *to, const struct place *from)
{
    static _Alignas(16) unsigned char memory[2][1024];
    unsigned char source[256];
    unsigned char result[256];
    const unsigned char zero = 0;
    weir_buffer *dst = make(rig, to, sizeof result, memory[0]);
    weir_buffer *src = make(rig, from, sizeof source, memory[1]);
    weir_test_note("%s to %s", from->name, to->name);
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i + 1);
    EXPECT_OK(weir_upload(rig->queue, src, 0, source, sizeof source));
    EXPECT_OK(weir_queue_fill(rig->queue, dst, 0, sizeof result, &zero, 1));
    EXPECT_OK(weir_queue_copy_2d(rig->queue, plane_of(dst, 1, 10), plane_of(src, 2, 16), 3, 9));
    EXPECT_OK(weir_queue_copy(rig->queue, dst, 200, src, 100, 50));
    EXPECT_OK(weir_download(rig->queue, result, dst, 0, sizeof result));
    for (size_t i = 0; i < 200; i++) {
        const size_t row = i > 0 ? (i - 1) / 10 : 0;
        const size_t column = i > 0 ? (i - 1) % 10 : 10;
        EXPECT_INT_EQ(result[i], row < 9 && column < 3 ? source[2 + 16 * row + column] : 0);
    }
    EXPECT_MEM_EQ(result + 200, source + 100, 50);
    weir_buffer_destroy(&dst);
    weir_buffer_destroy(&src);
}

WEIR_TEST(CudaCopies, BetweenAllPlaces)
{
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    for (size_t to = 0; to < sizeof places / sizeof *places; to++)
        for (size_t from = 0; from < sizeof places / sizeof *places; from++)
            copy_rows(&rig, &places[to], &places[from]);
    weir_test_note(NULL);
    rig_finish(&rig);
}

// Rows that fill the staging memory more than once, and rows that are larger.
static void fill_large(struct rig *rig, weir_buffer *dst, size_t size)
{
    const size_t rows = size / 2016;
    const size_t row = (size_t)17 << 20;
    unsigned char *out = rig_bytes(dst);
    size_t wrong = 0;
    memset(out, 0, size);
    EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(dst, 0, 2016), 1008, rows, pattern, 16));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    for (size_t i = 0; i < rows * 2016; i++)
        wrong += out[i] != (i % 2016 < 1008 ? pattern[i % 16] : 0);
    EXPECT_SIZE_EQ(wrong, 0);
    memset(out, 0, size);
    EXPECT_OK(weir_queue_fill_2d(rig->queue, plane_of(dst, 0, row + 16), row, 2, pattern, 8));
    EXPECT_OK(weir_queue_sync(rig->queue, GUARD_NS));
    EXPECT_MEM_EQ(out + row - 8, pattern, 8);
    EXPECT_INT_EQ(out[row], 0);
    EXPECT_MEM_EQ(out + 2 * row + 8, pattern, 8);
    EXPECT_INT_EQ(out[2 * row + 16], 0);
}

// More than one piece of the staging memory.
WEIR_TEST(CudaCopies, LargeBetweenHostBuffers)
{
    const size_t size = ((size_t)40 << 20) + 12345;
    const size_t width = 1000;
    struct rig rig;
    ASSERT_TRUE(rig_start(&rig));
    weir_buffer *src = rig_buffer(&rig, size, WEIR_PLACE_HOST);
    weir_buffer *dst = rig_buffer(&rig, size, WEIR_PLACE_HOST);
    unsigned char *in = rig_bytes(src);
    unsigned char *out = rig_bytes(dst);
    for (size_t i = 0; i < size; i++)
        in[i] = (unsigned char)(i * 7 + (i >> 12));
    memset(out, 0, size);
    EXPECT_OK(weir_queue_copy(rig.queue, dst, 0, src, 0, size));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    EXPECT_MEM_EQ(out, in, size);
    memset(out, 0, size);
    const size_t rows = size / (2 * width);
    EXPECT_OK(weir_queue_copy_2d(rig.queue, plane_of(dst, 0, 2 * width),
                                 plane_of(src, 0, 2 * width), width, rows));
    EXPECT_OK(weir_queue_fill(rig.queue, src, 0, size / 16 * 16, pattern, 16));
    EXPECT_OK(weir_queue_sync(rig.queue, GUARD_NS));
    size_t wrong = 0;
    for (size_t i = 0; i < rows * 2 * width; i++)
        wrong += out[i] != (i % (2 * width) < width ? (unsigned char)(i * 7 + (i >> 12)) : 0);
    EXPECT_SIZE_EQ(wrong, 0);
    EXPECT_MEM_EQ(in + size / 16 * 16 - 16, pattern, 16);
    fill_large(&rig, dst, size);
    weir_buffer_destroy(&src);
    weir_buffer_destroy(&dst);
    rig_finish(&rig);
}
