// Augmentation: the kernel's bits are the host's, batches do not matter, and what it makes of an image
// whose pixels tell where they come from.
#include "pipelines/train/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

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

struct rig {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    bool computes; // null's kernels do nothing
};

static bool rig_open(struct rig *rig)
{
    *rig = (struct rig){0};
    if (weir_open(NULL, &rig->runtime) < 0 ||
        weir_device_open(rig->runtime, NULL, &rig->device) < 0 ||
        weir_queue_create(rig->device, NULL, &rig->queue) < 0)
        return false;
    rig->computes = strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
    return true;
}

static void rig_close(struct rig *rig)
{
    weir_queue_destroy(&rig->queue);
    EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
}

// On the device, images from `first` on of `images`, which has all.
static bool run(const struct rig *rig, const struct weir_train_augment_params *params,
                const unsigned char *images, float *out, uint32_t count, uint64_t first)
{
    const size_t in_bytes = weir_train_augment_in_bytes(params, count);
    const size_t out_bytes = weir_train_augment_out_bytes(params, count);
    weir_train_augment *augment = NULL;
    weir_buffer *in = NULL, *result = NULL;
    const bool done =
        weir_train_augment_create(rig->device, params, &augment) == WEIR_OK &&
        weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = in_bytes), &in) ==
            WEIR_OK &&
        weir_buffer_create(rig->device, WEIR_PARAMS(weir_buffer, .size = out_bytes), &result) ==
            WEIR_OK &&
        weir_upload(rig->queue, in, 0, images, in_bytes) == WEIR_OK &&
        weir_train_augment_submit(augment, rig->queue, in, result, count, first) == WEIR_OK &&
        weir_download(rig->queue, out, result, 0, out_bytes) == WEIR_OK;
    weir_buffer_destroy(&in);
    weir_buffer_destroy(&result);
    weir_train_augment_destroy(&augment);
    return done;
}

static unsigned char *make_images(const struct weir_train_augment_params *params, uint32_t count)
{
    const size_t size = weir_train_augment_in_bytes(params, count);
    unsigned char *images = malloc(size);
    uint32_t state = 1;
    for (size_t i = 0; images && i < size; i++)
        images[i] = (unsigned char)((state = state * 1664525U + 1013904223U) >> 24);
    return images;
}

WEIR_TEST(Augment, HasTheHostsBits)
{
    struct rig rig;
    ASSERT_TRUE(rig_open(&rig));
    if (rig.computes) {
        unsigned char *images = make_images(&usual, COUNT);
        const size_t bytes = weir_train_augment_out_bytes(&usual, COUNT);
        float *device = malloc(bytes), *host = malloc(bytes);
        const uint64_t first = (UINT64_C(5) << 32) + 3; // past 32 bits
        EXPECT_TRUE(run(&rig, &usual, images, device, COUNT, first));
        weir_train_augment_on_host(&usual, images, host, COUNT, first);
        EXPECT_INT_EQ(memcmp(device, host, bytes), 0);
        free(images), free(device), free(host);
    }
    rig_close(&rig);
}

WEIR_TEST(Augment, DoesNotDependOnBatches)
{
    unsigned char *images = make_images(&usual, COUNT);
    const size_t bytes = weir_train_augment_out_bytes(&usual, COUNT);
    char *whole = malloc(bytes), *parts = malloc(bytes);
    weir_train_augment_on_host(&usual, images, (float *)(void *)whole, COUNT, 100);
    for (uint32_t at = 0; at < COUNT; at += 5) {
        const uint32_t count = COUNT - at < 5 ? COUNT - at : 5;
        weir_train_augment_on_host(&usual, images + weir_train_augment_in_bytes(&usual, at),
                                   (float *)(void *)(parts +
                                                     weir_train_augment_out_bytes(&usual, at)),
                                   count, 100 + at);
    }
    EXPECT_INT_EQ(memcmp(whole, parts, bytes), 0);
    free(images), free(whole), free(parts);
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

static void expect_refused(struct rig *rig, struct weir_train_augment_params params,
                           const char *what)
{
    weir_train_augment *augment = NULL;
    EXPECT_INT_EQ(weir_train_augment_create(rig->device, &params, &augment), WEIR_ERROR_INVALID);
    EXPECT_TRUE(augment == NULL);
    EXPECT_CONTAINS(weir_last_error()->message, what);
}

WEIR_TEST(Augment, RefusesWhatIsWrong)
{
    struct rig rig;
    ASSERT_TRUE(rig_open(&rig));
    struct weir_train_augment_params params = usual;
    params.channels = 5;
    expect_refused(&rig, params, "images of 5 channels; 1 to 4 are possible");
    params = usual, params.channels = 0;
    expect_refused(&rig, params, "images of 0 channels");
    params = usual, params.width = 16385;
    expect_refused(&rig, params, "a side has at most 16384");
    params = usual, params.out_width = 20;
    expect_refused(&rig, params, "20 x 11 pixels cannot be cut out of images of 19 x 13");
    params = usual, params.out_height = 0;
    expect_refused(&rig, params, "16 x 0 pixels cannot be cut out");
    params = usual, params.contrast = 1.5F;
    expect_refused(&rig, params, "the contrast is 1.5; it is from 0 to 1");
    params = usual, params.brightness = -1;
    expect_refused(&rig, params, "the brightness is -1");
    params = usual, params.deviation[1] = 0;
    expect_refused(&rig, params, "channel 1 has the mean 0.5 and the deviation 0");
    params = usual, params.mean[2] = NAN;
    expect_refused(&rig, params, "channel 2 has the mean nan");
    weir_train_augment_destroy(NULL);
    rig_close(&rig);
}
