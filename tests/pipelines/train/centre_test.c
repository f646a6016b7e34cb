// The device's numbers are those that weir_train_data_fill() makes on the host: (v - 128) / 64, or whole
// numbers from -4 to 3.
#include "pipelines/train/augment.h"

#include <string.h>

#include "tests/support/own.h"
#include "tests/support/test.h"

enum {
    COUNT = 256 + 7 // no multiple of a block
};

static void convert(bool whole, float *numbers)
{
    unsigned char bytes[COUNT];
    own_runtime runtime = NULL;
    own_device device = NULL;
    own_queue queue = NULL;
    weir_buffer *images = NULL, *result = NULL;
    weir_train_centre *centre = NULL;
    for (int i = 0; i < COUNT; i++)
        bytes[i] = (unsigned char)i;
    ASSERT_OK(weir_open(NULL, &runtime));
    ASSERT_OK(weir_device_open(runtime, NULL, &device));
    ASSERT_OK(weir_queue_create(device, NULL, &queue));
    ASSERT_OK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = COUNT), &images));
    ASSERT_OK(weir_train_centre_create(device, COUNT, whole, &centre));
    EXPECT_OK(weir_upload(queue, images, 0, bytes, COUNT));
    EXPECT_OK(weir_train_centre_submit(centre, queue, images, &result));
    EXPECT_OK(weir_download(queue, numbers, result, 0, COUNT * sizeof *numbers));
    weir_train_centre_destroy(&centre);
    weir_buffer_destroy(&images);
}

WEIR_TEST(Centre, MakesNumbersAboutZero)
{
    float numbers[COUNT];
    convert(false, numbers);
    for (int i = 0; i < COUNT; i++)
        EXPECT_TRUE(numbers[i] == (float)(i % 256 - 128) / 64.0F);
}

WEIR_TEST(Centre, MakesWholeNumbers)
{
    float numbers[COUNT];
    convert(true, numbers);
    for (int i = 0; i < COUNT; i++)
        EXPECT_TRUE(numbers[i] == (float)(i % 256 / 32 - 4));
}

WEIR_TEST(Centre, DestroysNothing)
{
    weir_train_centre *centre = NULL;
    weir_train_centre_destroy(&centre);
    weir_train_centre_destroy(NULL);
}
