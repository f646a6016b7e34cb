// Augmentation: the kernel's bits are the host's, batches do not matter, and what it makes of an image
// whose pixels tell where they come from; and images as numbers about 0.
#include "pipelines/train/feed.h"

#include <math.h>

#include "kernels/augment/augment.h"
#include "tests/pipelines/train/rig.h"

enum {
    COUNT = 37
};

static const struct weir_train_augment_params usual = {
    .width = 19,
    .height = 13,
    .channels = 3,
    .out_width = 16,
    .out_height = 11,
    .seed = 7,
    .contrast = 0.3F,
    .brightness = 0.1F,
    .mean = {0.4F, 0.5F, 0.6F},
    .deviation = {0.2F, 0.25F, 0.3F},
};

// On the device, images from `first` on of `images`, which has all.
static void run(const struct test_device *rig, const struct weir_train_augment_params *params,
                const unsigned char *images, float *out, uint32_t count, uint64_t first)
{
    const size_t in_bytes = weir_train_augment_in_bytes(params, count);
    const size_t out_bytes = weir_train_augment_out_bytes(params, count);
    own_buffer in = rig_buffer(rig, in_bytes);
    own_buffer result = rig_buffer(rig, out_bytes);
    own_kernel kernel = NULL;
    ASSERT_OK(weir_kernel_load(rig->device, &augment_kernels, "augment", &kernel));
    ASSERT_OK(weir_upload(rig->queue, in, 0, images, in_bytes));
    ASSERT_OK(weir_train_augment_submit(kernel, rig->queue, params, in, result, count, first));
    ASSERT_OK(weir_download(rig->queue, out, result, 0, out_bytes));
}

DEVICE_TEST(Augment, HasTheHostsBits, rig)
{
    const size_t size = weir_train_augment_in_bytes(&usual, COUNT);
    const size_t bytes = weir_train_augment_out_bytes(&usual, COUNT);
    OWN_MEMORY unsigned char *images = rig_alloc(size, 1);
    OWN_MEMORY float *device = rig_alloc(bytes, 1);
    OWN_MEMORY float *host = rig_alloc(bytes, 1);
    const uint64_t first = (UINT64_C(5) << 32) + 3; // past 32 bits
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++)
        images[i] = (unsigned char)((state = state * 1664525U + 1013904223U) >> 24);
    run(rig, &usual, images, device, COUNT, first);
    weir_train_augment_on_host(&usual, images, host, COUNT, first);
    EXPECT_INT_EQ(memcmp(device, host, bytes), 0);
}

// Pixel (x, y) has the light 16 y + x, so each result tells its place.
WEIR_TEST(Augment, CutsAndMirrors)
{
    const struct weir_train_augment_params params = {.width = 16,
                                                     .height = 8,
                                                     .channels = 1,
                                                     .out_width = 12,
                                                     .out_height = 5,
                                                     .seed = 3,
                                                     .mean = {0},
                                                     .deviation = {1 / 255.0F}};
    enum {
        IMAGES = 400,
        PLANE = 12 * 5
    };
    static unsigned char images[IMAGES][8][16];
    static float out[IMAGES][5][12];
    uint32_t mirrored = 0, seen[4][5] = {{0}}, places = 0;
    for (int i = 0; i < IMAGES; i++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 16; x++)
                images[i][y][x] = (unsigned char)(16 * y + x);
    weir_train_augment_on_host(&params, &images[0][0][0], &out[0][0][0], IMAGES, 0);
    for (int i = 0; i < IMAGES; i++) {
        const bool back = out[i][0][1] < out[i][0][0];
        const long corner = lround((double)out[i][0][back ? 11 : 0]);
        const long top = corner / 16, left = corner % 16;
        ASSERT_TRUE(top >= 0 && top <= 3 && left <= 4);
        mirrored += back;
        seen[top][left]++;
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 12; x++)
                ASSERT_INT_EQ(lround((double)out[i][y][x]),
                              16 * (top + y) + left + (back ? 11 - x : x));
    }
    for (int i = 0; i < 20; i++)
        places += seen[i / 5][i % 5] > 0;
    EXPECT_INT_EQ(places, 20);
    EXPECT_TRUE(mirrored > IMAGES / 3 && mirrored < 2 * IMAGES / 3);
}

WEIR_TEST(Augment, ChangesColoursInTheirBounds)
{
    enum {
        IMAGES = 1000
    };
    const struct weir_train_augment_params params = {.width = 1,
                                                     .height = 1,
                                                     .channels = 2,
                                                     .out_width = 1,
                                                     .out_height = 1,
                                                     .seed = 9,
                                                     .contrast = 0.25F,
                                                     .brightness = 0.125F,
                                                     .mean = {0.5F, 0},
                                                     .deviation = {0.5F, 2}};
    static unsigned char images[IMAGES][2];
    static float out[IMAGES][2];
    memset(images, 255, sizeof images);
    weir_train_augment_on_host(&params, &images[0][0], &out[0][0], IMAGES, 0);
    float low = INFINITY, high = -INFINITY;
    for (int i = 0; i < IMAGES; i++) {
        const float light = fmaf(out[i][0], 0.5F, 0.5F);
        low = fminf(low, light);
        high = fmaxf(high, light);
        EXPECT_TRUE(fabsf(out[i][1] * 2 - light) < 1e-5F); // one gain for all channels
    }
    EXPECT_TRUE(low >= 0.62F && low < 0.67F);
    EXPECT_TRUE(high <= 1.38F && high > 1.33F);
}

#define EXPECT_REFUSED(field, value, part)                                           \
    do {                                                                             \
        struct weir_train_augment_params params = usual;                             \
        params.field = (value);                                                      \
        EXPECT_FAILURE(weir_train_augment_check(&params), WEIR_ERROR_INVALID, part); \
    } while (0)

WEIR_TEST(Augment, RefusesWhatIsWrong)
{
    EXPECT_REFUSED(channels, 5, "images of 5 channels; 1 to 4 are possible");
    EXPECT_REFUSED(channels, 0, "images of 0 channels");
    EXPECT_REFUSED(width, 16385, "a side has at most 16384");
    EXPECT_REFUSED(out_width, 20, "20 x 11 pixels cannot be cut out of images of 19 x 13");
    EXPECT_REFUSED(out_height, 0, "16 x 0 pixels cannot be cut out");
}

// Images as numbers about 0: (v - 128) / 64, or whole numbers from -4 to 3.

static void expect_numbers(struct test_device *rig, bool whole)
{
    enum {
        BYTES = 256 + 7 // no multiple of a block
    };
    unsigned char bytes[BYTES];
    float numbers[BYTES];
    own_buffer images = rig_buffer(rig, BYTES);
    own_buffer result = rig_buffer(rig, sizeof numbers);
    own_kernel centre = NULL;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)i;
    ASSERT_OK(weir_kernel_load(rig->device, &augment_kernels, "centre", &centre));
    EXPECT_OK(weir_upload(rig->queue, images, 0, bytes, BYTES));
    EXPECT_OK(weir_queue_launch_count(rig->queue, centre, BYTES, weir_whole_in(images),
                                      weir_whole_out(result), (uint64_t)BYTES, (uint32_t)whole));
    EXPECT_OK(weir_download(rig->queue, numbers, result, 0, sizeof numbers));
    for (int i = 0; i < BYTES; i++)
        EXPECT_TRUE(numbers[i] ==
                    (whole ? (float)(i % 256 / 32 - 4) : (float)(i % 256 - 128) / 64.0F));
}

DEVICE_TEST(Augment, MakesNumbersAboutZero, rig)
{
    expect_numbers(rig, false);
    expect_numbers(rig, true);
}
