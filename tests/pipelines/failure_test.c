// Bad input: it gets a message with the object and the limit, and no object is
// leaked (closing the rig fails the test if the device still has an object).
#include <math.h>

#include "tests/pipelines/rig.h"
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

SMALL_TEST(ArrCocFailure, SizesThatDoNotFit)
{
    const struct weir_arr_coc_sizes odd = {1000, 32, 64}, large = {4096, 1, 64};
    struct weir_arr_coc_params params = rig_params(rig, &odd, 100);
    expect_refused(&params, "side 1000 is no multiple of grid 32");
    params = rig_params(rig, &large, 100);
    expect_refused(&params, "a patch of 4096 pixels a side is too large; 2896 is the limit");
    params = rig_params(rig, &small, 100);
    params.pipeline.slot_count = WEIR_PIPELINE_SLOTS_MAX + 1;
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

WEIR_TEST(ArrCocFailure, WeightsThatAreWrong)
{
    struct weir_io_tensor tensors[WEIR_ARR_COC_TENSORS];
    OWN_MEMORY float *values = make_values();
    OWN_MEMORY float *bad = make_values();

    bad[2] = NAN;
    for (int wrong = 0; wrong < WEIR_ARR_COC_TENSORS; wrong++) {
        describe(tensors, values);
        const char *name = tensors[wrong].name;
        tensors[wrong].data = bad;
        expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS, name, "index 2 is NaN");
        // The bias with length D determines D; the matrices do not fit to it.
        describe(tensors, values);
        tensors[wrong].shape[0] -= 1;
        const bool decides = strcmp(name, "participatory.2.bias") == 0;
        expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS,
                               decides ? "participatory.2.weight" : name, "[");
        describe(tensors, values);
        memmove(tensors + wrong, tensors + wrong + 1,
                (size_t)(WEIR_ARR_COC_TENSORS - 1 - wrong) * sizeof *tensors);
        expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS - 1, name, "no tensor");
    }
    describe(tensors, values);
    tensors[3].shape[0] = 0;
    expect_weights_refused(tensors, WEIR_ARR_COC_TENSORS, "participatory.2.bias is empty",
                           "at least one");
}

// Frames.

enum {
    FRAMES = 5,
    BAD = 2
};

// Runs five frames of which the third is bad, and expects the others to be
// unaffected.
static void expect_only_bad_fails(const struct rig *rig, const struct weir_arr_coc_sizes *sizes,
                                  uint64_t max_pixels, const struct rig_image *bad_image,
                                  weir_status load_status, const char *wanted)
{
    struct weir_arr_coc_params params = rig_params(rig, sizes, max_pixels);
    own_image image = rig_image_make(40, 50);
    struct rig_frame frames[FRAMES];
    own_arr_coc arr_coc = NULL;

    for (int i = 0; i < FRAMES; i++)
        rig_frame_init(&frames[i], i == BAD ? bad_image : &image, 0);
    frames[BAD].load_status = load_status;
    params.pipeline.slot_count = 2;
    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    EXPECT_TRUE(rig_run(arr_coc, frames, FRAMES));
    for (int i = 0; i < FRAMES; i++) {
        EXPECT_INT_EQ(frames[i].deliveries, 1);
        EXPECT_TRUE((frames[i].status < 0) == (i == BAD));
    }
    EXPECT_STR_EQ(frames[BAD].stage, "prepare");
    EXPECT_CONTAINS(frames[BAD].message, wanted);
}

SMALL_TEST(ArrCocFailure, ImagesThatCannotBeTaken)
{
    // The longest row is longer than the kernels' 32-bit coordinates hold; tests of agreement run the longest image
    // that is accepted.
    static const struct {
        struct rig_image image;
        weir_status status;
        struct weir_arr_coc_sizes sizes;
        uint64_t max_pixels;
        const char *wanted;
    } rows[] = {
        {{1, 1, NULL}, WEIR_ERROR_IO, {64, 4, 256}, 2000, "'prepare' returned WEIR_ERROR_IO"},
        {{67, 30, NULL}, WEIR_OK, {64, 4, 256}, 2000, "30x67 pixels; the slots hold 2000"},
        {{INT_MAX, INT_MAX, NULL}, WEIR_OK, {64, 4, 256}, 2000, "the slots hold 2000"},
        {{0, 0, NULL}, WEIR_OK, {64, 4, 256}, 2000, "0x0 pixels; it must have at least one"},
        {{0, 5, NULL}, WEIR_OK, {64, 4, 256}, 2000, "an image of 5x0 pixels"},
        {{1, 2097152, NULL}, WEIR_OK, {1024, 32, 256}, 2097152, "no image side may exceed 2097151"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_only_bad_fails(rig, &rows[i].sizes, rows[i].max_pixels, &rows[i].image,
                              rows[i].status, rows[i].wanted);
}

SMALL_TEST(ArrCocFailure, TextureOfNoFrame)
{
    const struct weir_arr_coc_params params = rig_params(rig, &small, 64);
    own_image image = rig_image_make(8, 8);
    struct rig_frame frame;
    own_arr_coc arr_coc = NULL;
    OWN_MEMORY float *texture = rig_alloc((size_t)13 * 64 * 64, sizeof *texture);

    ASSERT_OK(weir_arr_coc_create(&params, &arr_coc));
    EXPECT_FAILURE(weir_arr_coc_download_texture(arr_coc, texture), WEIR_ERROR_INVALID,
                   "there is no frame");
    rig_frame_init(&frame, &image, 0);
    EXPECT_TRUE(rig_run(arr_coc, &frame, 1));
    EXPECT_OK(weir_arr_coc_download_texture(arr_coc, texture));
    frame.load_status = WEIR_ERROR_IO;
    EXPECT_TRUE(rig_run(arr_coc, &frame, 1));
    EXPECT_FAILURE(weir_arr_coc_download_texture(arr_coc, texture), WEIR_ERROR_INVALID,
                   "the last one failed");
}

// Settings.

WEIR_TEST(ArrCocSettings, SetParams)
{
    const struct weir_section *const sections[] = {weir_arr_coc_section(), weir_pipeline_section()};
    const struct weir_open_params open = {
        .struct_size = sizeof open,
        .config_text = "[arr_coc]\nside = 256\ngrid = 16\nbudget = 512\nmax_pixels = 5000\n"
                       "[pipeline]\nslots = 2\n",
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
    EXPECT_UINT_EQ(params.pipeline.slot_count, 2);
}
