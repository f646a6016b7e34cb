// The conversion rules of io/image.h, pixel by pixel. Damaged files are in
// io_image_damage_test.c.
#include "io/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "tests/support/test.h"
#include "tests/unit/io_made_files.h"

enum {
    ROOM = 256 * 256 * 3
};

static struct weir_io_error error;
static unsigned char image[ROOM + 16];

// Probes and reads `path` into `image`. Both must agree on kind and size, and nothing
// past the image may be written.
static void read_image(const char *path, const char *kind, uint32_t width, uint32_t height)
{
    struct weir_io_image_info probed;
    struct weir_io_image_info read = {0};
    memset(image, 0xa5, sizeof image);
    error.message[0] = '\0';
    bool ok = weir_io_image_probe(path, &probed, &error) &&
              weir_io_image_read(path, 0, image, ROOM, &read, &error);
    ASSERT_STR_EQ(ok ? "" : error.message, "");
    EXPECT_STR_EQ(probed.kind, kind);
    EXPECT_STR_EQ(read.kind, kind);
    EXPECT_UINT_EQ(probed.width, width);
    EXPECT_UINT_EQ(probed.height, height);
    EXPECT_UINT_EQ(read.width, width);
    EXPECT_UINT_EQ(read.height, height);
    size_t size = (size_t)weir_io_image_bytes(&read);
    ASSERT_UINT_EQ(size, (size_t)width * height * 3);
    for (size_t i = size; i < size + 16; i++)
        ASSERT_INT_EQ(image[i], 0xa5);
}

// Writes an image, and reads it back with read_image().
static void through_png(const struct made_png *png, const char *kind)
{
    static const char *folder;
    folder = folder ? folder : weir_test_temp_dir();
    const char *path = made_path(folder, "a.png");
    ASSERT_TRUE(made_png_write(path, png));
    read_image(path, kind, png->width, png->height);
}

static void through_jpeg(const struct made_jpeg *jpeg, const char *kind)
{
    static const char *folder;
    folder = folder ? folder : weir_test_temp_dir();
    const char *path = made_path(folder, "a.jpg");
    ASSERT_TRUE(made_jpeg_write(path, jpeg));
    read_image(path, kind, jpeg->width, jpeg->height);
}

static void expect_pixel(size_t index, int red, int green, int blue)
{
    const unsigned char want[3] = {(unsigned char)red, (unsigned char)green, (unsigned char)blue};
    weir_test_note("pixel %zu", index);
    ASSERT_MEM_EQ(image + index * 3, want, 3);
    weir_test_note(NULL);
}

static int over_white(int value, int alpha)
{
    return (int)floor((value * alpha + 255.0 * (255 - alpha)) / 255 + 0.5);
}

static unsigned over_white_16(unsigned value, unsigned alpha)
{
    return (unsigned)floor((value * (double)alpha + 65535.0 * (65535 - alpha)) / 65535 + 0.5);
}

static int to_8_bits(unsigned value)
{
    return (int)floor(value * 255.0 / 65535 + 0.5);
}

static void put_16(unsigned char *target, unsigned value)
{
    target[0] = (unsigned char)(value >> 8);
    target[1] = (unsigned char)(value & 255);
}

WEIR_TEST(IoImage, Rgb8ComesAsItStands)
{
    unsigned char pixels[7 * 5 * 3];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i * 37);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct made_png png = made_png(7, 5, PNG_COLOR_TYPE_RGB, 8, pixels, 21);
        png.interlaced = interlaced;
        through_png(&png, interlaced ? "png rgb8, interlaced" : "png rgb8");
        EXPECT_MEM_EQ(image, pixels, sizeof pixels);
    }
}

WEIR_TEST(IoImage, GammaIsIgnored)
{
    const unsigned char pixel[4] = {10, 100, 200, 100};
    struct made_png png = made_png(1, 1, PNG_COLOR_TYPE_RGB_ALPHA, 8, pixel, 4);
    png.gamma = 1.0;
    through_png(&png, "png rgb+alpha8");
    expect_pixel(0, over_white(10, 100), over_white(100, 100), over_white(200, 100));
}

// All 16-bit values, in 256 rows.
static const unsigned char *all_numbers(void)
{
    static unsigned char rows[65536 * 2];
    for (unsigned v = 0; v < 65536; v++)
        put_16(rows + (size_t)v * 2, v);
    return rows;
}

WEIR_TEST(IoImage, SixteenBitsAreRounded)
{
    struct made_png png = made_png(256, 256, PNG_COLOR_TYPE_GRAY, 16, all_numbers(), 512);
    through_png(&png, "png gray16");
    for (unsigned v = 0; v < 65536 && !weir_test_has_failed(); v++) {
        int want = to_8_bits(v);
        EXPECT_INT_EQ((v * 255 + 32767) / 65535, want);
        expect_pixel(v, want, want, want);
    }
}

// Every value with every alpha.
WEIR_TEST(IoImage, AlphaIsLaidOverWhite)
{
    struct made_png png = made_png(256, 256, PNG_COLOR_TYPE_GRAY_ALPHA, 8, all_numbers(), 512);
    through_png(&png, "png gray+alpha8");
    for (int v = 0; v < 65536 && !weir_test_has_failed(); v++) {
        int want = over_white(v >> 8, v & 255);
        expect_pixel((size_t)v, want, want, want);
    }
}

WEIR_TEST(IoImage, SixteenBitsAreReducedLast)
{
    enum {
        COUNT = 61 * 9
    };
    unsigned char rows[COUNT * 8];
    for (size_t i = 0; i < (size_t)COUNT * 4; i++)
        put_16(rows + i * 2, (unsigned)(i * 40503u) & 65535);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct made_png png = made_png(61, 9, PNG_COLOR_TYPE_RGB_ALPHA, 16, rows, (size_t)61 * 8);
        png.interlaced = interlaced;
        through_png(&png, interlaced ? "png rgb+alpha16, interlaced" : "png rgb+alpha16");
        for (unsigned i = 0; i < COUNT && !weir_test_has_failed(); i++) {
            int c[3];
            for (unsigned k = 0; k < 3; k++)
                c[k] = to_8_bits(
                    over_white_16(((i * 4 + k) * 40503u) & 65535, ((i * 4 + 3) * 40503u) & 65535));
            expect_pixel(i, c[0], c[1], c[2]);
        }
    }
}

WEIR_TEST(IoImage, FewBitsOfGrayAreScaled)
{
    const unsigned char rows[2] = {0x1b, 0xe4};
    static const struct {
        int bits;
        uint32_t width;
        const char *kind;
    } rows_of[] = {{1, 16, "png gray1"}, {2, 8, "png gray2"}, {4, 4, "png gray4"}};
    for (size_t i = 0; i < 3; i++) {
        struct made_png png =
            made_png(rows_of[i].width, 1, PNG_COLOR_TYPE_GRAY, rows_of[i].bits, rows, 2);
        through_png(&png, rows_of[i].kind);
        for (uint32_t x = 0; x < rows_of[i].width; x++) {
            int shift = 16 - rows_of[i].bits * ((int)x + 1);
            int most = (1 << rows_of[i].bits) - 1;
            int want = ((0x1be4 >> shift) & most) * 255 / most;
            expect_pixel(x, want, want, want);
        }
    }
}

WEIR_TEST(IoImage, PalettesAreExpanded)
{
    const unsigned char palette[12] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 8, 7};
    const unsigned char alpha[2] = {255, 51};
    const unsigned char rows[1] = {0x1b}; // 0, 1, 2, 3
    struct made_png png = {.width = 4,
                           .height = 1,
                           .colour_type = PNG_COLOR_TYPE_PALETTE,
                           .bit_depth = 2,
                           .palette = palette,
                           .palette_count = 4,
                           .rows = rows,
                           .row_bytes = 1};
    through_png(&png, "png palette2");
    EXPECT_MEM_EQ(image, palette, 12);

    png.palette_alpha = alpha;
    png.palette_alpha_count = 2;
    through_png(&png, "png palette2+transparent");
    expect_pixel(0, 255, 0, 0);
    expect_pixel(1, over_white(0, 51), 255, over_white(0, 51));
    expect_pixel(2, 0, 0, 255);
    expect_pixel(3, 9, 8, 7);
}

WEIR_TEST(IoImage, ATransparentColourBecomesWhite)
{
    const unsigned char gray[3] = {10, 20, 30};
    const uint16_t clear_gray[1] = {20};
    struct made_png png = {.width = 3,
                           .height = 1,
                           .colour_type = PNG_COLOR_TYPE_GRAY,
                           .bit_depth = 8,
                           .transparent = clear_gray,
                           .rows = gray,
                           .row_bytes = 3};
    through_png(&png, "png gray8+transparent");
    expect_pixel(0, 10, 10, 10);
    expect_pixel(1, 255, 255, 255);
    expect_pixel(2, 30, 30, 30);

    // At 16 bits the colour is compared before it is reduced: the second pixel
    // differs in its lowest bit and stays.
    const unsigned char deep[12] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7};
    const uint16_t clear_rgb[3] = {0x0102, 0x0304, 0x0506};
    struct made_png png16 = {.width = 2,
                             .height = 1,
                             .colour_type = PNG_COLOR_TYPE_RGB,
                             .bit_depth = 16,
                             .transparent = clear_rgb,
                             .rows = deep,
                             .row_bytes = 12};
    through_png(&png16, "png rgb16+transparent");
    expect_pixel(0, 255, 255, 255);
    expect_pixel(1, to_8_bits(0x0102), to_8_bits(0x0304), to_8_bits(0x0507));
}

static void fill_ramp(unsigned char *pixels, int channels)
{
    for (int i = 0; i < 32 * 24 * channels; i++)
        pixels[i] =
            (unsigned char)((i / channels % 32) * 4 + (i / channels / 32) * 5 + i % channels * 3);
}

WEIR_TEST(IoImage, JpegGrayHasEqualChannels)
{
    unsigned char pixels[32 * 24];
    fill_ramp(pixels, 1);
    struct made_jpeg jpeg = {32, 24, 1, 100, false, pixels};
    through_jpeg(&jpeg, "jpeg gray");
    for (size_t i = 0; i < sizeof pixels; i++) {
        ASSERT_NEAR(image[i * 3], pixels[i], 2);
        ASSERT_INT_EQ(image[i * 3 + 1], image[i * 3]);
        ASSERT_INT_EQ(image[i * 3 + 2], image[i * 3]);
    }
}

WEIR_TEST(IoImage, JpegColoursAndProgressive)
{
    unsigned char pixels[32 * 24 * 3];
    unsigned char baseline[32 * 24 * 3];
    fill_ramp(pixels, 3);
    struct made_jpeg jpeg = {32, 24, 3, 100, false, pixels};
    through_jpeg(&jpeg, "jpeg ycc");
    for (size_t i = 0; i < sizeof pixels; i++)
        ASSERT_NEAR(image[i], pixels[i], 4);
    memcpy(baseline, image, sizeof baseline);
    jpeg.progressive = true;
    through_jpeg(&jpeg, "jpeg ycc, progressive");
    EXPECT_MEM_EQ(image, baseline, sizeof baseline);
}

WEIR_TEST(IoImage, TheContentDecidesNotTheName)
{
    const char *folder = weir_test_temp_dir();
    const unsigned char pixel[3] = {1, 2, 3};
    struct made_jpeg jpeg = {1, 1, 3, 90, false, pixel};
    ASSERT_TRUE(made_jpeg_write(made_path(folder, "photo.png"), &jpeg));
    read_image(made_path(folder, "photo.png"), "jpeg ycc", 1, 1);
    ASSERT_TRUE(weir_io_png_write_rgb8(made_path(folder, "photo.jpg"), 1, 1, pixel, &error));
    read_image(made_path(folder, "photo.jpg"), "png rgb8", 1, 1);
}

WEIR_TEST(IoImage, WrittenPngsComeBackTheSameAndRepeat)
{
    const char *folder = weir_test_temp_dir();
    const char *paths[2] = {made_path(folder, "1.png"), made_path(folder, "2.png")};
    unsigned char pixels[33 * 17 * 3], *bytes[2];
    size_t sizes[2];
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i * i * 31 >> 3);
    for (int i = 0; i < 2; i++) {
        ASSERT_TRUE(weir_io_png_write_rgb8(paths[i], 33, 17, pixels, &error));
        read_image(paths[i], "png rgb8", 33, 17);
        EXPECT_MEM_EQ(image, pixels, sizeof pixels);
        ASSERT_NOT_NULL(bytes[i] = made_file_read(paths[i], &sizes[i]));
    }
    ASSERT_UINT_EQ(sizes[0], sizes[1]);
    EXPECT_MEM_EQ(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]), free(bytes[1]);
    EXPECT_INT_EQ(made_folder_count(folder), 2);
}

WEIR_TEST(IoImage, RefusesToWriteImpossibleSizesAndPlaces)
{
    const char *folder = weir_test_temp_dir();
    const unsigned char pixel[3] = {0};
    static const uint32_t sizes[][2] = {{0, 1}, {1, 0}, {0x80000000u, 1}, {1, 0x80000000u}};
    for (size_t i = 0; i < 4; i++) {
        EXPECT_FALSE(weir_io_png_write_rgb8(made_path(folder, "a.png"), sizes[i][0], sizes[i][1],
                                            pixel, &error));
        EXPECT_CONTAINS(error.message, "a.png: cannot be written as PNG: Invalid IHDR data");
    }
    EXPECT_FALSE(weir_io_png_write_rgb8(made_path(folder, "no/a.png"), 1, 1, pixel, &error));
    EXPECT_CONTAINS(error.message, "create the directory first");
    EXPECT_INT_EQ(made_folder_count(folder), 0);
}
