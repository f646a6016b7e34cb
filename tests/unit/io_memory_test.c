// Every allocation fails once in turn, the libraries' own included: each reader and
// writer must then return false with a message, without leaks.
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "io/image.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "tests/support/memory.h"
#include "tests/support/test.h"
#include "tests/unit/io_made_files.h"

enum {
    SIDE = 16,
    MOST_ALLOCATIONS = 2000
};

static const char *folder;
static const char *path;
static unsigned char pixels[SIDE * SIDE * 4];
static struct weir_io_error error;

// The data that the running action has read, or nothing if it writes.
static unsigned char result[SIDE * SIDE * 3];

static bool read_image(void)
{
    struct weir_io_image_info info;
    return weir_io_image_read(path, 0, result, sizeof result, &info, &error);
}

static bool write_image(void)
{
    return weir_io_png_write_rgb8(path, SIDE, SIDE, pixels, &error);
}

static const uint64_t shape[2] = {3, 4};

static bool read_npy(void)
{
    struct weir_io_npy array;
    bool ok = weir_io_npy_read(path, WEIR_IO_F32, &array, &error);
    if (ok)
        memcpy(result, array.data, 48);
    weir_io_npy_finish(&array);
    return ok;
}

static bool write_npy(void)
{
    return weir_io_npy_write(path, WEIR_IO_F32, 2, shape, pixels, &error);
}

static bool read_safetensors(void)
{
    weir_io_safetensors *file = NULL;
    const float *values = NULL;
    bool ok = weir_io_safetensors_open(path, &file, &error);
    if (ok && weir_io_safetensors_find(file, "a", 2, shape, &values, &error))
        memcpy(result, values, 48);
    weir_io_safetensors_destroy(&file);
    return ok;
}

static bool write_safetensors(void)
{
    const struct weir_io_tensor tensors[2] = {
        {.name = "a", .rank = 2, .shape = {3, 4}, .data = pixels},
        {.name = "b", .rank = 1, .shape = {5}, .data = pixels},
    };
    return weir_io_safetensors_write(path, tensors, 2, &error);
}

static void start_in_new_folder(void)
{
    folder = weir_test_temp_dir();
    path = made_path(folder, "file");
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(i * 7 + i / 64);
}

// Compares the file with that of an undisturbed run.
static void expect_file(const unsigned char *want, size_t want_size)
{
    size_t size = 0;
    unsigned char *bytes = made_file_read(path, &size);
    EXPECT_NOT_NULL(bytes);
    EXPECT_UINT_EQ(size, want_size);
    if (bytes && size == want_size)
        EXPECT_MEM_EQ(bytes, want, size);
    free(bytes);
}

// Runs `action` with its first, second, ... allocation failing, until it needs no more.
// Some can be done without (the sync of a folder, a margin in a library): the outcome
// must then be that of an undisturbed run.
static void fail_each(bool (*action)(void), bool writes)
{
    unsigned char want[sizeof result];
    memset(result, 0, sizeof result);
    EXPECT_TRUE(action());
    memcpy(want, result, sizeof want);
    size_t file_size = 0;
    unsigned char *file = made_file_read(path, &file_size);
    int failures = 0;
    bool used_up = false;

    for (long nth = 0; nth < MOST_ALLOCATIONS && !used_up; nth++) {
        weir_test_note("allocation %ld", nth);
        if (writes)
            remove(path);
        memset(result, 0, sizeof result);
        error.message[0] = '\0';
        weir_test_fail_allocation(nth);
        bool ok = action();
        used_up = !weir_test_allocation_failed();
        weir_test_fail_allocation(-1);
        failures += !ok;
        if (ok) {
            EXPECT_MEM_EQ(result, want, sizeof want);
            expect_file(file, file_size);
        } else {
            EXPECT_CONTAINS(error.message, "file: ");
        }
        EXPECT_INT_EQ(made_folder_count(folder), ok || !writes);
    }
    free(file);
    EXPECT_TRUE(used_up);
    EXPECT_INT_GE(failures, 1);
}

WEIR_TEST(IoMemory, ReadersOfImages)
{
    for (int kind = 0; kind < 4; kind++) {
        start_in_new_folder();
        struct made_png png =
            made_png(SIDE, SIDE, PNG_COLOR_TYPE_RGB_ALPHA, 8, pixels, (size_t)SIDE * 4);
        png.interlaced = kind == 1;
        struct made_jpeg jpeg = {SIDE, SIDE, 3, 90, kind == 3, pixels};
        ASSERT_TRUE(kind < 2 ? made_png_write(path, &png) : made_jpeg_write(path, &jpeg));
        fail_each(read_image, false);
    }
}

WEIR_TEST(IoMemory, ReadersOfArrays)
{
    start_in_new_folder();
    ASSERT_TRUE(write_npy());
    fail_each(read_npy, false);
    ASSERT_TRUE(write_safetensors());
    fail_each(read_safetensors, false);
}

WEIR_TEST(IoMemory, Writers)
{
    bool (*const writers[])(void) = {write_image, write_npy, write_safetensors};
    for (size_t i = 0; i < 3; i++) {
        start_in_new_folder();
        fail_each(writers[i], true);
    }
}
