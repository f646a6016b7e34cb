// Files that are no image, half an image, a damaged one or one too large. Under the
// address sanitizer this also tests that no error path leaks.
#include "io/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>
#include <zlib.h>

#include "tests/support/test.h"
#include "tests/unit/io_made_files.h"

enum {
    SIDE = 16,
    PIXELS = SIDE * SIDE,
    ROOM = PIXELS * 3
};

static struct weir_io_error error;
static unsigned char image[ROOM];

static bool read_image(const char *path)
{
    struct weir_io_image_info info;
    error.message[0] = '\0';
    bool ok = weir_io_image_read(path, 0, image, ROOM, &info, &error);
    EXPECT_TRUE(ok || (info.width == 0 && info.height == 0 && info.kind[0] == '\0'));
    EXPECT_TRUE(ok || error.message[0] != '\0');
    return ok;
}

// The image that was made last.
static unsigned char *bytes;
static size_t size;

// Makes a small noisy image of a kind, numbered from 0. False: it could not be made.
static bool make_image(const char *path, int kind)
{
    static unsigned char pixels[SIDE * SIDE * 4];
    uint32_t state = 7;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)((state = state * 1664525u + 1013904223u) >> 24);
    struct made_png png =
        made_png(SIDE, SIDE, kind == 0 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_RGB_ALPHA, 8, pixels,
                 (size_t)SIDE * (kind == 0 ? 3 : 4));
    png.interlaced = kind == 1;
    struct made_jpeg jpeg = {SIDE, SIDE, kind == 2 ? 1 : 3, 80, kind == 4, pixels};
    bool made = kind < 2 ? made_png_write(path, &png) : made_jpeg_write(path, &jpeg);
    free(bytes);
    bytes = made ? made_file_read(path, &size) : NULL;
    return bytes;
}

WEIR_TEST(IoImageDamage, NotAnImage)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "a.png");
    struct weir_io_image_info info;
    EXPECT_FALSE(read_image(path));
    EXPECT_CONTAINS(error.message, "a.png: there is no such file");
    EXPECT_FALSE(weir_io_image_probe(path, &info, &error));
    EXPECT_FALSE(read_image(folder));
    EXPECT_CONTAINS(error.message, "is a directory");
    ASSERT_INT_EQ(mkfifo(made_path(folder, "pipe"), 0666), 0);
    EXPECT_FALSE(read_image(made_path(folder, "pipe")));
    EXPECT_CONTAINS(error.message, "is a pipe or a device");

    static const struct {
        const char *bytes;
        size_t size;
        const char *part;
    } rows[] = {
        {"", 0, "is empty"},
        {"Hello, this is text.", 20, "is neither a PNG nor a JPEG"},
        {"B", 1, "is neither a PNG nor a JPEG"},
        {"GIF89a..........", 16, "looks like a GIF"},
        {"BM..............", 16, "looks like a BMP"},
        {"II*\0............", 16, "looks like a TIFF"},
        {"RIFF....WEBP....", 16, "WebP"},
        {"\x89PNG", 4, "is a truncated PNG"},
        {"\x89", 1, "is a truncated PNG"},
        {"\x89PNG\n\n\x1a\n", 8, "is neither a PNG nor a JPEG"},
        {"\x89PNG\r\n\x1a\n", 8, "is a truncated PNG"},
        {"\xff\xd8", 2, "is a truncated JPEG"},
        {"\xff\xd8\xff", 3, "is a truncated JPEG"},
        {"\xff\xd8\xff\xd9", 4, "is a damaged JPEG"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("row %zu", i);
        ASSERT_TRUE(made_file_write(path, rows[i].bytes, rows[i].size));
        EXPECT_FALSE(read_image(path));
        EXPECT_CONTAINS(error.message, rows[i].part);
        EXPECT_FALSE(weir_io_image_probe(path, &info, &error));
        EXPECT_CONTAINS(error.message, rows[i].part);
    }
}

WEIR_TEST(IoImageDamage, EveryTruncationIsRefused)
{
    const char *folder = weir_test_temp_dir();
    const char *good = made_path(folder, "good");
    const char *cut = made_path(folder, "cut");
    struct weir_io_image_info info;
    for (int kind = 0; kind < 5; kind++) {
        int probed = 0; // whose header is whole
        ASSERT_TRUE(make_image(good, kind));
        for (size_t length = 0; length < size;
             length += length < 64 || length + 16 > size ? 1 : 9) {
            weir_test_note("kind %d, %zu of %zu bytes", kind, length, size);
            EXPECT_TRUE(made_file_write(cut, bytes, length));
            EXPECT_FALSE(read_image(cut));
            if (length >= 3)
                EXPECT_CONTAINS(error.message, "is a truncated");
            probed += weir_io_image_probe(cut, &info, &error);
        }
        EXPECT_INT_GT(probed, 16);
    }
}

WEIR_TEST(IoImageDamage, EveryFlippedBitOfAPngIsNoticed)
{
    const char *path = made_path(weir_test_temp_dir(), "a.png");
    for (int kind = 0; kind < 2; kind++) {
        ASSERT_TRUE(make_image(path, kind));
        for (size_t i = 0; i < size; i += 3) {
            unsigned char old = bytes[i];
            bytes[i] ^= (unsigned char)(1 << i % 8);
            weir_test_note("byte %zu of %zu", i, size);
            EXPECT_TRUE(made_file_write(path, bytes, size));
            EXPECT_FALSE(read_image(path));
            bytes[i] = old;
        }
    }
}

// JPEG has no checksums, so a flipped bit may be accepted; it must not cause
// errors.
WEIR_TEST(IoImageDamage, AFlippedBitOfAJpegDoesNoHarm)
{
    const char *path = made_path(weir_test_temp_dir(), "a.jpg");
    int refused = 0;
    for (int kind = 2; kind < 5; kind++) {
        ASSERT_TRUE(make_image(path, kind));
        for (size_t i = 0; i < size * 8; i += 43) {
            unsigned char old = bytes[i / 8];
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
            EXPECT_TRUE(made_file_write(path, bytes, size));
            refused += !read_image(path);
            bytes[i / 8] = old;
        }
    }
    EXPECT_INT_GT(refused, 8);
}

WEIR_TEST(IoImageDamage, BytesAfterTheImageAreIgnored)
{
    const char *path = made_path(weir_test_temp_dir(), "a");
    for (int kind = 0; kind < 5; kind++) {
        ASSERT_TRUE(make_image(path, kind));
        FILE *stream = fopen(path, "ab");
        ASSERT_NOT_NULL(stream);
        EXPECT_INT_GE(fputs("trailing", stream), 0);
        ASSERT_INT_EQ(fclose(stream), 0);
        EXPECT_TRUE(read_image(path));
    }
}

// By the libraries, of a cut JPEG and of a PNG with a wrong bit.
WEIR_TEST(IoImageDamage, NothingIsPrinted)
{
    const char *folder = weir_test_temp_dir();
    const char *path = made_path(folder, "image");
    const char *log = made_path(folder, "log");
    (void)fflush(stderr);
    const int kept = dup(2);
    ASSERT_NOT_NULL(freopen(log, "wb", stderr));
    for (int kind = 0; kind < 4; kind += 3) {
        ASSERT_TRUE(make_image(path, kind));
        if (kind == 0)
            bytes[40] ^= 1;
        EXPECT_TRUE(made_file_write(path, bytes, kind ? size / 2 : size));
        EXPECT_FALSE(read_image(path));
    }
    (void)fflush(stderr);
    EXPECT_INT_EQ(dup2(kept, 2), 2);
    close(kept);
    unsigned char *printed = made_file_read(log, &size);
    EXPECT_UINT_EQ(size, 0);
    free(printed);
}

// Writes a good PNG whose header is then given this size, with a right checksum.
static bool make_png_of_size(const char *path, uint32_t width, uint32_t height)
{
    if (!make_image(path, 0))
        return false;
    for (int i = 0; i < 4; i++) {
        bytes[16 + i] = (unsigned char)(width >> (24 - 8 * i));
        bytes[20 + i] = (unsigned char)(height >> (24 - 8 * i));
    }
    uint32_t sum = (uint32_t)crc32(0, bytes + 12, 17);
    for (int i = 0; i < 4; i++)
        bytes[29 + i] = (unsigned char)(sum >> (24 - 8 * i));
    return made_file_write(path, bytes, size);
}

// The same for a JPEG, whose frame header is searched.
static bool make_jpeg_of_size(const char *path, uint32_t width, uint32_t height)
{
    if (!make_image(path, 3))
        return false;
    size_t at = 2;
    while (at + 9 < size && bytes[at + 1] != 0xc0)
        at += 2 + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
    bytes[at + 5] = (unsigned char)(height >> 8);
    bytes[at + 6] = (unsigned char)(height & 255);
    bytes[at + 7] = (unsigned char)(width >> 8);
    bytes[at + 8] = (unsigned char)(width & 255);
    return made_file_write(path, bytes, size);
}

WEIR_TEST(IoImageDamage, ImpossibleSizes)
{
    const char *path = made_path(weir_test_temp_dir(), "a");
    struct weir_io_image_info info;
    static const uint32_t sizes[][2] = {{0, 16}, {16, 0}, {0x80000000u, 16}, {16, 0xffffffffu}};
    for (size_t i = 0; i < 4; i++) {
        ASSERT_TRUE(make_png_of_size(path, sizes[i][0], sizes[i][1]));
        EXPECT_FALSE(weir_io_image_probe(path, &info, &error));
        EXPECT_CONTAINS(error.message, "is a damaged PNG: ");
    }
    ASSERT_TRUE(make_png_of_size(path, 0, 16));
    EXPECT_FALSE(read_image(path));
    EXPECT_CONTAINS(error.message, "Image width is zero");
    ASSERT_TRUE(make_jpeg_of_size(path, 0, 16));
    EXPECT_FALSE(read_image(path));
    EXPECT_CONTAINS(error.message, "is a damaged JPEG: ");
}

WEIR_TEST(IoImageDamage, TheCapIsCheckedBeforeMemoryIsTaken)
{
    const char *path = made_path(weir_test_temp_dir(), "a");
    struct weir_io_image_info info;
    ASSERT_TRUE(make_png_of_size(path, 0x7fffffff, 0x7fffffff));
    ASSERT_TRUE(weir_io_image_probe(path, &info, &error));
    EXPECT_UINT_EQ(weir_io_image_bytes(&info), (uint64_t)0x7fffffff * 0x7fffffff * 3);
    EXPECT_FALSE(weir_io_image_read(path, 100000000, image, ROOM, &info, &error));
    EXPECT_CONTAINS(error.message, "2147483647 x 2147483647 = 4611686014132420609 pixels");
    EXPECT_CONTAINS(error.message, "cap of 100000000");
    EXPECT_CONTAINS(error.message, "max_pixels");
    EXPECT_FALSE(read_image(path));
    EXPECT_CONTAINS(error.message, "its buffer has 768");

    ASSERT_TRUE(make_jpeg_of_size(path, 65000, 65000));
    EXPECT_FALSE(weir_io_image_read(path, 1000000, image, ROOM, &info, &error));
    EXPECT_CONTAINS(error.message, "65000 x 65000 = 4225000000 pixels, above the cap of 1000000");
    EXPECT_FALSE(read_image(path));
    EXPECT_CONTAINS(error.message, "its buffer has 768");
}

WEIR_TEST(IoImageDamage, TheCapItselfIsAllowed)
{
    const char *path = made_path(weir_test_temp_dir(), "a");
    for (int kind = 0; kind < 5; kind++) {
        ASSERT_TRUE(make_image(path, kind));
        struct weir_io_image_info info;
        EXPECT_TRUE(weir_io_image_read(path, PIXELS, image, ROOM, &info, &error));
        EXPECT_TRUE(weir_io_image_check_pixels(path, &info, PIXELS, &error));
        EXPECT_FALSE(weir_io_image_check_pixels(path, &info, PIXELS - 1, &error));
        EXPECT_FALSE(weir_io_image_read(path, PIXELS - 1, image, ROOM, &info, &error));
        EXPECT_CONTAINS(error.message, "16 x 16 = 256 pixels, above the cap of 255");
        EXPECT_FALSE(weir_io_image_read(path, 0, image, ROOM - 1, &info, &error));
        EXPECT_CONTAINS(error.message, "take 768 bytes, but its buffer has 767");
    }
}

WEIR_TEST(IoImageDamage, JpegColoursThatHaveNoMeaningHere)
{
    const char *path = made_path(weir_test_temp_dir(), "a.jpg");
    static const unsigned char pixels[8 * 8 * 4];
    struct made_jpeg jpeg = {8, 8, 4, 90, false, pixels};
    struct weir_io_image_info info;
    ASSERT_TRUE(made_jpeg_write(path, &jpeg));
    EXPECT_FALSE(weir_io_image_probe(path, &info, &error));
    EXPECT_CONTAINS(error.message, "is a CMYK JPEG");
    EXPECT_CONTAINS(error.message, "convert it to RGB");
    jpeg.channels = 2;
    ASSERT_TRUE(made_jpeg_write(path, &jpeg));
    EXPECT_FALSE(weir_io_image_probe(path, &info, &error));
    EXPECT_CONTAINS(error.message, "2 channels of unknown meaning");
}

static bool read_scans(uint32_t width, uint32_t height, int steps)
{
    const char *path = made_path(weir_test_temp_dir(), "scans.jpg");
    struct weir_io_image_info info;
    const size_t room = (size_t)width * height * 3;
    unsigned char *pixels = calloc(room, 1);
    struct made_jpeg jpeg = {width, height, 1, 90, true, pixels};
    const bool ok = pixels && made_jpeg_write_scans(path, &jpeg, steps) &&
                    weir_io_image_read(path, 0, pixels, room, &info, &error);
    free(pixels);
    return ok;
}

// Each scan goes over the whole image, however small its file is.
WEIR_TEST(IoImageDamage, ManyScansAreOfSmallImages)
{
    error.message[0] = '\0';
    EXPECT_TRUE(read_scans(SIDE, SIDE, 7));
    EXPECT_FALSE(read_scans(SIDE, SIDE, 8));
    EXPECT_CONTAINS(error.message, "scans.jpg");
    EXPECT_CONTAINS(error.message, "500 scans");
    error.message[0] = '\0';
    EXPECT_FALSE(read_scans(4096, 4160, 1));
    EXPECT_CONTAINS(error.message, "63 scans");
}
