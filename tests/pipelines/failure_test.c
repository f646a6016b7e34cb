// Bad input: it gets a message with the object and the limit, and no object is
// leaked (closing the rig fails the test if the device still has an object). Runs
// on any backend, also on one that computes nothing.
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "tests/pipelines/rig.h"
#include "tests/support/made_images.h"
#include "tests/unit/io_made_files.h"

static const struct weir_arr_coc_sizes small = {64, 4, 256};

static void expect_refused(const struct weir_arr_coc_params *params, const char *part)
{
    own_arr_coc arr_coc = NULL;
    EXPECT_INT_EQ(weir_arr_coc_create(params, &arr_coc), WEIR_ERROR_INVALID);
    EXPECT_NULL(arr_coc);
    EXPECT_CONTAINS(weir_last_error()->message, part);
}

// Creation.

SMALL_TEST(ArrCocFailure, Sizes)
{
    static const struct {
        struct weir_arr_coc_sizes sizes;
        uint64_t max_pixels;
        const char *part;
    } rows[] = {
        {{31, 1, 64}, 1, "side is 31; it must be 32 … 4096"},
        {{4097, 1, 64}, 1, "side is 4097; it must be 32 … 4096"},
        {{UINT32_MAX, 1, 64}, 1, "it must be 32 … 4096"},
        {{1024, 257, 64}, 1, "grid is 257; it must be 1 … 256"},
        {{1000, 32, 64}, 1, "side 1000 is no multiple of grid 32"},
        {{4096, 1, 64}, 1, "a patch of 4096 pixels a side is too large; 2896 is the limit"},
        {{64, 4, 63}, 1, "budget is 63; it must be 64 … 1048576"},
        {{64, 4, 1048577}, 1, "budget is 1048577"},
        {{64, 4, 256}, 0, "max_pixels is 0; it must be 1 … 1073741824"},
        {{64, 4, 256}, 1073741825, "max_pixels is 1073741825"},
        {{64, 4, 256}, UINT64_MAX, "it must be 1 … 1073741824"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        weir_test_note("row %zu", i);
        const struct weir_arr_coc_params params =
            rig_params(rig, &rows[i].sizes, rows[i].max_pixels);
        expect_refused(&params, rows[i].part);
    }
}

SMALL_TEST(ArrCocFailure, Params)
{
    const struct weir_arr_coc_params good = rig_params(rig, &small, 100);
    struct weir_arr_coc_params params = good;
    params.device = NULL;
    expect_refused(&params, "a device, weights and a query are needed");
    params = good;
    params.query_size = rig->query_size + 1;
    expect_refused(&params, "the query has 8 numbers, the weights need 7");
    params = good;
    rig->query[5] = NAN;
    expect_refused(&params, "number 5 of the query is nan");
    rig->query[5] = 0;
    params.slot_count = WEIR_PIPELINE_SLOTS_MAX + 1;
    expect_refused(&params, "slot_count is 257, but must be 0 to 256");
}

// Weights.

enum {
    D = 3 // numbers of a query
};

static void describe(struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS], const float *values)
{
    weir_arr_coc_weights_describe(D, tensors);
    for (int i = 0; i < WEIR_ARR_COC_TENSORS; i++) {
        tensors[i].dtype = WEIR_IO_F32;
        tensors[i].data = values;
    }
}

// Writes the tensors and expects them to be refused with a message that contains
// all of `parts`.
static void expect_weights_refused(const struct weir_io_tensor *tensors, size_t count,
                                   const char *part, const char *second_part)
{
    const char *path = made_path(weir_test_temp_dir(), "weights.safetensors");
    weir_arr_coc_weights *weights = NULL;
    struct weir_io_error error = {""};

    ASSERT_TRUE(weir_io_safetensors_write(path, tensors, count, &error));
    EXPECT_FALSE(weir_arr_coc_weights_load(path, &weights, &error));
    EXPECT_NULL(weights);
    // A long path is shortened at its beginning.
    EXPECT_CONTAINS(error.message, "/weights.safetensors: ");
    EXPECT_CONTAINS(error.message, part);
    EXPECT_CONTAINS(error.message, second_part);
    weir_arr_coc_weights_destroy(&weights);
}

static float *make_values(void)
{
    float *values = rig_alloc(128 * 128, sizeof *values);
    for (int i = 0; i < 128 * 128; i++)
        values[i] = 0.01f * (float)(i % 17 - 8);
    return values;
}

WEIR_TEST(ArrCocFailure, WeightsMissingTensor)
{
    struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS], others[WEIR_ARR_COC_TENSORS];
    OWN_MEMORY float *values = make_values();

    describe(tensors, values);
    for (int missing = 0; missing < WEIR_ARR_COC_TENSORS; missing++) {
        memcpy(others, tensors, sizeof others);
        memmove(others + missing, others + missing + 1,
                (size_t)(WEIR_ARR_COC_TENSORS - 1 - missing) * sizeof *others);
        expect_weights_refused(others, WEIR_ARR_COC_TENSORS - 1, tensors[missing].name,
                               "no tensor");
    }
}

WEIR_TEST(ArrCocFailure, WeightsWrongShape)
{
    struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS];
    OWN_MEMORY float *values = make_values();

    for (int wrong = 0; wrong < WEIR_ARR_COC_TENSORS; wrong++) {
        describe(tensors, values);
        // The bias with length D determines D; the matrices do not fit to it.
        bool decides = strcmp(tensors[wrong].name, "participatory.2.bias") == 0;
        tensors[wrong].shape[0] -= 1;
        expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS,
                               decides ? "participatory.2.weight" : tensors[wrong].name, "[");
    }
    describe(tensors, values);
    tensors[3].shape[0] = 0;
    expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS, "participatory.2.bias is empty",
                           "at least one");
}

WEIR_TEST(ArrCocFailure, WeightsWithNaN)
{
    struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS];
    OWN_MEMORY float *values = make_values();
    OWN_MEMORY float *bad = make_values();

    bad[2] = NAN;
    for (int wrong = 0; wrong < WEIR_ARR_COC_TENSORS; wrong++) {
        describe(tensors, values);
        tensors[wrong].data = bad;
        expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS, tensors[wrong].name,
                               "index 2 is NaN");
    }
}

WEIR_TEST(ArrCocFailure, WeightsTruncated)
{
    const char *path = made_path(weir_test_temp_dir(), "truncated.safetensors");
    struct weir_io_error error = {""};
    weir_arr_coc_weights *weights;
    size_t size;

    OWN_MEMORY unsigned char *bytes = made_file_read(weir_test_runfile(RIG_SMALL_WEIGHTS), &size);
    ASSERT_NOT_NULL(bytes);
    for (size_t cut = 1; cut < size; cut = cut * 3 + 1) {
        ASSERT_TRUE(made_file_write(path, bytes, size - cut));
        EXPECT_FALSE(weir_arr_coc_weights_load(path, &weights, &error));
        EXPECT_CONTAINS(error.message, "/truncated.safetensors: ");
    }
    EXPECT_FALSE(weir_arr_coc_weights_load("does/not/exist", &weights, &error));
    EXPECT_CONTAINS(error.message, "does/not/exist");
}

// Frames.

enum {
    FRAMES = 5,
    BAD = 2
};

// Runs five frames of which the third is bad, and expects the others to be
// unaffected.
static void expect_only_bad_fails(const struct rig *rig, uint32_t slots,
                                  const struct weir_arr_coc_sizes *sizes, uint64_t max_pixels,
                                  const struct rig_image *bad_image, weir_status load_status,
                                  const char *load_message, const char *wanted)
{
    struct weir_arr_coc_params params = rig_params(rig, sizes, max_pixels);
    struct rig_image image = rig_image_make(40, 50);
    struct rig_frame frames[FRAMES];
    weir_arr_coc *arr_coc;

    made_image_noise(40, 50, 1, image.rgb);
    const bool computes = rig_computes(rig);
    for (int i = 0; i < FRAMES; i++)
        rig_frame_init(&frames[i], &image, computes ? sizes->grid : 0);
    if (bad_image)
        frames[BAD].image = bad_image;
    frames[BAD].load_status = load_status;
    frames[BAD].load_message = load_message;
    params.slot_count = slots;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    EXPECT_TRUE(rig_run(arr_coc, frames, FRAMES));
    struct weir_pipeline_statistics figures;
    weir_pipeline_get_statistics(weir_arr_coc_pipeline(arr_coc), &figures);
    EXPECT_UINT_EQ(figures.succeeded, FRAMES - 1);
    EXPECT_UINT_EQ(figures.failed, 1);
    EXPECT_UINT_EQ(figures.recoveries, 0);
    weir_arr_coc_destroy(&arr_coc);

    for (int i = 0; i < FRAMES; i++) {
        EXPECT_INT_EQ(frames[i].deliveries, 1);
        if (i != BAD && computes)
            EXPECT_TRUE(rig_same_bits(&frames[i], &frames[0]));
        else if (i != BAD)
            EXPECT_INT_EQ(frames[i].status, WEIR_OK);
    }
    EXPECT_INT_LT(frames[BAD].status, 0);
    EXPECT_STR_EQ(frames[BAD].stage, "prepare");
    EXPECT_CONTAINS(frames[BAD].message, wanted);
    for (int i = 0; i < FRAMES; i++)
        rig_frame_finish(&frames[i]);
    rig_image_finish(&image);
}

SMALL_TEST(ArrCocFailure, LoadFails)
{
    for (uint32_t slots = 1; slots <= 3; slots++) {
        expect_only_bad_fails(rig, slots, &small, 2000, NULL, WEIR_ERROR_IO,
                              "photo.png: the file is cut off", "photo.png: the file is cut off");
        expect_only_bad_fails(rig, slots, &small, 2000, NULL, WEIR_ERROR_IO, NULL,
                              "the callback of 'prepare' returned WEIR_ERROR_IO");
        expect_only_bad_fails(rig, slots, &small, 2000, NULL, WEIR_NOT_READY, NULL,
                              "the callback of 'prepare' returned WEIR_NOT_READY");
    }
}

SMALL_TEST(ArrCocFailure, ImageTooLarge)
{
    const struct rig_image large = {.height = 67, .width = 30}, empty = {0};
    const struct rig_image flat = {.height = 0, .width = 5};
    const struct rig_image huge = {.height = INT_MAX, .width = INT_MAX};

    expect_only_bad_fails(rig, 2, &small, 2000, &large, WEIR_OK, NULL,
                          "an image of 30x67 pixels; the slots hold 2000");
    expect_only_bad_fails(rig, 2, &small, 2000, &huge, WEIR_OK, NULL, "the slots hold 2000");
    expect_only_bad_fails(rig, 2, &small, 2000, &empty, WEIR_OK, NULL,
                          "an image of 0x0 pixels; it must have at least one");
    expect_only_bad_fails(rig, 2, &small, 2000, &flat, WEIR_OK, NULL, "an image of 5x0 pixels");
}

SMALL_TEST(ArrCocFailure, ImageTooLong)
{
    // What the kernels' 32-bit coordinates can hold; tests of agreement run the
    // longest image that is accepted.
    const struct weir_arr_coc_sizes sizes = {1024, 32, 256};
    struct rig_image row = rig_image_make(1, 2097152);

    expect_only_bad_fails(rig, 1, &sizes, 2097152, &row, WEIR_OK, NULL,
                          "an image of 2097152x1 pixels; with side 1024 no image side may exceed "
                          "2097151");
    rig_image_finish(&row);
}

SMALL_TEST(ArrCocFailure, TextureOfNoFrame)
{
    struct rig_image image = rig_image_make(8, 8);
    struct rig_frame frame;
    own_arr_coc arr_coc = NULL;
    OWN_MEMORY float *texture = rig_alloc((size_t)13 * 64 * 64, sizeof *texture);

    const struct weir_arr_coc_params params = rig_params(rig, &small, 64);
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    EXPECT_FAILURE(weir_arr_coc_download_texture(arr_coc, texture), WEIR_ERROR_INVALID,
                   "there is no frame");
    rig_frame_init(&frame, &image, 0);
    EXPECT_TRUE(rig_run(arr_coc, &frame, 1));
    EXPECT_OK(weir_arr_coc_download_texture(arr_coc, texture));
    frame.load_status = WEIR_ERROR_IO;
    EXPECT_TRUE(rig_run(arr_coc, &frame, 1));
    EXPECT_INT_EQ(weir_arr_coc_download_texture(arr_coc, texture), WEIR_ERROR_INVALID);
    rig_image_finish(&image);
}

// Ending early: that of pipelines is in tests/patterns/pipeline_test.c.

enum {
    MANY = 24
};

SMALL_TEST(ArrCocEnding, DestroyWithFramesInFlight)
{
    struct weir_arr_coc_params params = rig_params(rig, &small, 2000);
    own_image image = rig_image_make(40, 50);
    params.backlog = MANY;
    for (params.slot_count = 1; params.slot_count <= 4; params.slot_count++) {
        struct rig_frame frames[MANY];
        weir_arr_coc *arr_coc;
        ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
        for (int i = 0; i < MANY; i++) {
            rig_frame_init(&frames[i], &image, 0);
            EXPECT_OK(weir_pipeline_submit(weir_arr_coc_pipeline(arr_coc), &frames[i].frame));
        }
        weir_arr_coc_destroy(&arr_coc);
        EXPECT_NULL(arr_coc);
        for (int i = 0; i < MANY; i++) {
            EXPECT_INT_EQ(frames[i].deliveries, 1);
            EXPECT_TRUE(frames[i].status == WEIR_OK || frames[i].status == WEIR_CANCELLED);
        }
    }
}

static void destroy_in_delivery(void *user, struct weir_arr_coc_frame *frame,
                                const struct weir_arr_coc_output *output,
                                const struct weir_pipeline_result *result)
{
    weir_arr_coc *const *arr_coc = user;
    weir_arr_coc *same = *arr_coc;
    weir_arr_coc_destroy(&same);
    EXPECT_PTR_EQ(same, *arr_coc);
    EXPECT_TRUE((output != NULL) == (result->status == WEIR_OK));
    ((struct rig_frame *)(void *)frame)->deliveries += result->status == WEIR_OK;
}

SMALL_TEST(ArrCocEnding, DestroyInACallbackDoesNothing)
{
    struct weir_arr_coc_params params = rig_params(rig, &small, 2000);
    own_image image = rig_image_make(40, 50);
    struct rig_frame frames[3];
    own_arr_coc arr_coc = NULL;
    params.deliver = destroy_in_delivery;
    params.user = &arr_coc;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    for (int i = 0; i < 3; i++)
        rig_frame_init(&frames[i], &image, 0);
    EXPECT_TRUE(rig_run(arr_coc, frames, 3));
    for (int i = 0; i < 3; i++)
        EXPECT_INT_EQ(frames[i].deliveries, 1);
}

// Settings.

WEIR_TEST(ArrCocSettings, SetParams)
{
    const struct weir_section *const sections[] = {weir_arr_coc_section(), weir_pipeline_section()};
    const struct weir_open_params open = {
        .struct_size = sizeof open,
        .config_text = "[arr_coc]\nside = 256\ngrid = 16\nbudget = 512\nmax_pixels = 5000\n"
                       "[pipeline]\nslots = 2\nfull = drop-oldest\nbacklog = 9\ntiming = 1\n"
                       "graphs = 1\n",
        .sections = sections,
        .section_count = 2,
    };
    struct weir_arr_coc_params params = {0};
    own_runtime runtime = NULL;

    ASSERT_OK(weir_open(&open, &runtime));
    EXPECT_OK(weir_arr_coc_params_from_settings(runtime, &params));
    EXPECT_UINT_EQ(params.sizes.side, 256);
    EXPECT_UINT_EQ(params.sizes.grid, 16);
    EXPECT_UINT_EQ(params.sizes.budget, 512);
    EXPECT_UINT_EQ(params.max_pixels, 5000);
    EXPECT_UINT_EQ(params.slot_count, 2);
    EXPECT_INT_EQ(params.full, WEIR_PIPELINE_DROP_OLDEST);
    EXPECT_UINT_EQ(params.backlog, 9);
    EXPECT_TRUE(params.timing);
    EXPECT_TRUE(params.graphs);
}

WEIR_TEST(ArrCocSettings, MustBeDeclared)
{
    const struct weir_open_params open = {
        .struct_size = sizeof open,
        .config_path = "",
        .sections = (const struct weir_section *const[]){weir_arr_coc_section()},
        .section_count = 1,
    };
    struct weir_arr_coc_params params = {0};
    own_runtime runtime = NULL;

    ASSERT_OK(weir_open(NULL, &runtime));
    EXPECT_FAILURE(weir_arr_coc_params_from_settings(runtime, &params), WEIR_ERROR_NOT_FOUND,
                   "[arr_coc]");
    EXPECT_OK(weir_close(&runtime));
    ASSERT_OK(weir_open(&open, &runtime));
    EXPECT_FAILURE(weir_arr_coc_params_from_settings(runtime, &params), WEIR_ERROR_NOT_FOUND,
                   "[pipeline]");
}

SMALL_TEST(ArrCocSettings, DefaultSizes)
{
    const struct weir_arr_coc_sizes zero = {0};
    own_arr_coc arr_coc = NULL;

    struct weir_arr_coc_params params = rig_params(rig, &zero, 10);
    params.slot_count = 1;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    EXPECT_UINT_EQ(weir_arr_coc_get_sizes(arr_coc)->side, 1024);
    EXPECT_UINT_EQ(weir_arr_coc_get_sizes(arr_coc)->grid, 32);
    EXPECT_UINT_EQ(weir_arr_coc_get_sizes(arr_coc)->budget, 4096);
}
