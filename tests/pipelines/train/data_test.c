// Data sets: made ones against what they promise, and files in the format of MNIST, good and bad.
#include <string.h>

#include "base/file.h"
#include "pipelines/train/data.h"
#include "tests/support/own.h"

static const weir_train_data usual = {
    .shape = {9, 7, 3},
    .classes = 5,
    .count = 1000,
    .seed = 11,
    .noise = 20,
};

enum {
    NUMBERS = 9 * 7 * 3
};

#define own_data OWN(weir_train_data_destroy) weir_train_data *

static weir_train_data *make(weir_train_data params)
{
    weir_train_data *data = NULL;
    EXPECT_OK(weir_train_data_make(&params, &data));
    return data;
}

// The sums are those of a second implementation, in Python.
WEIR_TEST(TrainData, MadeSamplesAreTheSameOnEveryMachine)
{
    unsigned char bytes[NUMBERS];
    own_data data = make(usual);
    ASSERT_NOT_NULL(data);
    uint64_t sum = 0;
    uint32_t labels = 0;
    for (uint64_t i = 0; i < 8; i++) {
        labels = labels * 10 + weir_train_data_bytes(data, i, bytes);
        for (int k = 0; k < NUMBERS; k++)
            sum = sum * 31 + bytes[k];
    }
    EXPECT_UINT_EQ(labels, 13410430);
    EXPECT_UINT_EQ(sum, UINT64_C(10488441707791190449));
}

WEIR_TEST(TrainData, AnEpochHasEachSampleOnceInAnOrderOfItsOwn)
{
    static const uint64_t counts[] = {1, 2, 3, 4, 5, 64, 65, 1000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        weir_train_data params = usual;
        params.count = counts[c];
        own_data data = make(params);
        ASSERT_NOT_NULL(data);
        uint64_t other = 0;
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            unsigned char seen[1000] = {0};
            for (uint64_t i = 0; i < counts[c]; i++) {
                const uint64_t index = weir_train_data_shuffled(data, 1, epoch * counts[c] + i);
                ASSERT_UINT_LT(index, counts[c]);
                EXPECT_UINT_EQ(seen[index]++, 0);
                other += index != weir_train_data_shuffled(data, 1, i);
                other += index != weir_train_data_shuffled(data, 2, epoch * counts[c] + i);
            }
        }
        if (counts[c] >= 64)
            EXPECT_UINT_GT(other, 4 * counts[c]); // of 5 that could differ
    }
}

WEIR_TEST(TrainData, ALargeSetNeedsNoMemory)
{
    weir_train_data params = usual;
    params.count = UINT64_MAX;
    own_data data = make(params);
    ASSERT_NOT_NULL(data);
    unsigned char bytes[NUMBERS];
    const uint64_t index = weir_train_data_shuffled(data, 1, UINT64_MAX - 1);
    EXPECT_UINT_LT(weir_train_data_bytes(data, index, bytes), 5);
}

// Files.

static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2,  0,  0,
                                       0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255};
static const unsigned char colours[] = {0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0,
                                        0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 4, 0, 9};
static const unsigned char two_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};

static weir_status open_files(const void *image_bytes, size_t image_size, const void *label_bytes,
                              size_t label_size, weir_train_data **out_data)
{
    char message[512];
    const char *first = weir_test_path("images"), *second = weir_test_path("labels");
    EXPECT_TRUE(weir_file_write(first, image_bytes, image_size, message, sizeof message));
    EXPECT_TRUE(weir_file_write(second, label_bytes, label_size, message, sizeof message));
    return weir_train_data_open(first, second, out_data);
}

WEIR_TEST(TrainData, ReadsFiles)
{
    weir_train_data *data;
    unsigned char bytes[4];
    ASSERT_OK(open_files(images, sizeof images, labels, sizeof labels, &data));
    EXPECT_UINT_EQ(data->classes, 10);
    EXPECT_UINT_EQ(data->shape.height, 2);
    EXPECT_UINT_EQ(data->shape.channels, 1);
    EXPECT_UINT_EQ(weir_train_data_bytes(data, 2, bytes), 9);
    EXPECT_MEM_EQ(bytes, images + 24, 4);
    weir_train_data_destroy(&data);

    ASSERT_OK(open_files(colours, sizeof colours, two_labels, sizeof two_labels, &data));
    EXPECT_UINT_EQ(data->shape.channels, 3);
    EXPECT_UINT_EQ(weir_train_data_bytes(data, 1, bytes), 0);
    EXPECT_UINT_EQ(bytes[2], 6);
    weir_train_data_destroy(&data);
}

static void expect_bad(weir_status status, weir_train_data *const *data, const char *part)
{
    EXPECT_INT_EQ(status, WEIR_ERROR_IO);
    EXPECT_NULL(*data);
    EXPECT_CONTAINS(weir_last_error_text(), part);
}

// The file of images with one byte changed.
static void expect_bad_images(size_t at, unsigned char byte, const char *part)
{
    weir_train_data *data;
    unsigned char changed[sizeof images];
    memcpy(changed, images, sizeof images);
    changed[at] = byte;
    const weir_status status = open_files(changed, sizeof changed, labels, sizeof labels, &data);
    expect_bad(status, &data, part);
}

WEIR_TEST(TrainData, RefusesBadFiles)
{
    weir_train_data *data;
    static const unsigned char gzip[] = {0x1f, 0x8b, 8, 0};
    expect_bad(weir_train_data_open("/none/images", "/none/labels", &data), &data, "/none/images");
    expect_bad(open_files(images, 0, labels, sizeof labels, &data), &data,
               "images: is no IDX file: it has 0 bytes, and a header has 8");
    expect_bad(open_files(gzip, sizeof gzip, labels, sizeof labels, &data), &data, "is compressed");
    EXPECT_CONTAINS(weir_last_error_text(), "gunzip");
    expect_bad_images(0, 1, "images: is no IDX file: it does not begin with two zeros");
    expect_bad_images(2, 13, "has elements of the type 0x0d; only unsigned bytes (0x08) are read");
    expect_bad_images(3, 2, "has 2 dimensions; images have 3 or 4");
    expect_bad_images(7, 0, "has no elements: dimension 0 is 0");
    expect_bad_images(7, 4, "is truncated: its header promises 16 bytes or more, 12 follow");
    expect_bad_images(7, 2, "is too long: its header promises 8 bytes, 12 follow");
    expect_bad_images(4, 255, "is truncated");
    expect_bad(open_files(images, 12, labels, sizeof labels, &data), &data,
               "images: is truncated in its header of 16 bytes");
    expect_bad(open_files(images, sizeof images, images, sizeof images, &data), &data,
               "labels: has 3 dimensions; labels have 1");
    EXPECT_CONTAINS(weir_last_error_text(), "it may be the file of images");
    expect_bad(open_files(images, sizeof images, two_labels, sizeof two_labels, &data), &data,
               "images: has 3 images, and there are 2 labels");
    expect_bad(open_files(images, sizeof images, labels, 10, &data), &data, "labels: is truncated");
}
