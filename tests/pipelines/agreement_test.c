// The pipeline against the float64 reference, stage by stage, on every device of
// the chain: docs/arr-coc.md, "Agreement". One test for each row of the table. What pixels images of other kinds have is
// in tests/unit/io_image_test.c.
//
// Only photographs have to meet the bound of stage 2 through all stages: see there.

#include <math.h>

#include "tests/pipelines/rig.h"
#include "tests/support/arr_coc_reference.h"
#include "tests/support/made_images.h"

// The differences from the float64 reference, stage by stage.

// The reference's result for one image.
struct expected {
    struct arr_coc_reference_dims dims;
    double *texture;
    double *scores;
    double *relevance;
    double balance[3];
};

// Largest absolute differences; infinite where a value is not a number.
struct distances {
    double texture;
    // Stage 2, of all stages together.
    double relevance;
    double scores;
    double balance;
    // Stage 2 only, on the backend's own texture.
    double own_relevance;
    double own_scores;
    double own_balance;
    double tokens;
};

static void expected_init(struct expected *expected, const struct rig *rig,
                          const struct weir_arr_coc_sizes *sizes, const struct rig_image *image)
{
    const size_t pixels = (size_t)sizes->side * sizes->side;
    const size_t patches = (size_t)sizes->grid * sizes->grid;

    *expected = (struct expected){
        .dims = {(int)sizes->side, (int)sizes->grid, (int)sizes->budget, (int)rig->query_size},
        .texture = rig_alloc(pixels * WEIR_ARR_COC_CHANNELS, sizeof(double)),
        .scores = rig_alloc(3 * patches, sizeof(double)),
        .relevance = rig_alloc(patches, sizeof(double)),
    };
    arr_coc_reference_texture(&expected->dims, image->rgb, image->height, image->width,
                              expected->texture);
    arr_coc_reference_relevance(&expected->dims, &rig->weights->tensors, expected->texture,
                                rig->query, expected->scores, expected->balance,
                                expected->relevance);
}

static void expected_finish(struct expected *expected)
{
    free(expected->texture);
    free(expected->scores);
    free(expected->relevance);
    *expected = (struct expected){0};
}

static double farthest(const double *wanted, const float *found, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++) {
        double distance = fabs((double)found[i] - wanted[i]);
        if (isnan(distance))
            return INFINITY;
        most = fmax(most, distance);
    }
    return most;
}

static void measure_relevance(const struct expected *expected, const struct rig *rig,
                              const struct rig_frame *frame, const float *texture,
                              struct distances *out)
{
    const size_t patches = (size_t)expected->dims.grid * (size_t)expected->dims.grid;
    const size_t pixels = (size_t)expected->dims.size * (size_t)expected->dims.size;
    OWN_MEMORY double *promoted = rig_alloc(pixels * WEIR_ARR_COC_CHANNELS, sizeof *promoted);
    OWN_MEMORY double *scores = rig_alloc(3 * patches, sizeof *scores);
    OWN_MEMORY double *relevance = rig_alloc(patches, sizeof *relevance);
    double balance[3];

    for (size_t i = 0; i < pixels * WEIR_ARR_COC_CHANNELS; i++)
        promoted[i] = (double)texture[i];
    arr_coc_reference_relevance(&expected->dims, &rig->weights->tensors, promoted, rig->query,
                                scores, balance, relevance);
    out->own_relevance = farthest(relevance, frame->output.relevance, patches);
    out->own_scores = farthest(scores, frame->output.scores, 3 * patches);
    out->own_balance = farthest(balance, frame->output.balance, 3);
    out->relevance = farthest(expected->relevance, frame->output.relevance, patches);
    out->scores = farthest(expected->scores, frame->output.scores, 3 * patches);
    out->balance = farthest(expected->balance, frame->output.balance, 3);
}

static bool same_patches(const struct expected *expected, const struct rig_frame *frame)
{
    const size_t patches = (size_t)expected->dims.grid * (size_t)expected->dims.grid;
    OWN_MEMORY int32_t *wanted = rig_alloc(3 * patches, sizeof *wanted);
    uint32_t count;
    int64_t tokens;
    EXPECT_TRUE(weir_arr_coc_expect_patches(frame->output.relevance, (uint32_t)patches,
                                            expected->dims.budget, wanted, &count, &tokens));
    EXPECT_UINT_EQ(frame->output.patch_count, count);
    EXPECT_INT_EQ(frame->output.token_count, tokens);
    EXPECT_INT_LE(tokens, expected->dims.budget);
    const bool same = frame->output.patch_count == count;
    if (same)
        EXPECT_MEM_EQ(frame->output.patches, wanted, count * 3 * sizeof *wanted);
    return same;
}

// Measures one frame that succeeded and its texture, and checks stage 3: patches,
// sides, order and counts are exactly those that follow from the frame's own
// relevance. Returns whether they are.
static bool measure(const struct expected *expected, const struct rig *rig,
                    const struct rig_frame *frame, const float *texture, struct distances *out)
{
    const size_t pixels = (size_t)expected->dims.size * (size_t)expected->dims.size;
    *out = (struct distances){0};
    out->texture = farthest(expected->texture, texture, pixels * WEIR_ARR_COC_CHANNELS);
    measure_relevance(expected, rig, frame, texture, out);
    if (!same_patches(expected, frame))
        return false;

    size_t count = (size_t)frame->output.token_count * WEIR_ARR_COC_CHANNELS;
    OWN_MEMORY double *tokens = rig_alloc(count, sizeof *tokens);
    arr_coc_reference_compress(&expected->dims, expected->texture, frame->output.patches,
                               (int)frame->output.patch_count, tokens);
    out->tokens = farthest(tokens, frame->output.tokens, count);
    return true;
}

// The tests.

static const double texture_bound = 2e-5;
static const double relevance_bound = 1e-4;
static const double token_bound = 5e-5;

struct row {
    const char *name;
    enum made_kind kind; // without a photo
    int height;
    int width;
    made_colour colour;
    const char *photo;
    struct weir_arr_coc_sizes sizes; // zeros: the default
    const char *weights;             // NULL: RIG_WEIGHTS
};

static const struct weir_arr_coc_sizes default_sizes = {1024, 32, 4096};
// The reference takes a tenth of the time.
#define SMALL_SIZES  \
    {                \
        256, 16, 512 \
    }

#define IMAGES "tests/data/images/"

static const struct row rows[] = {
    {"Chelsea", .photo = IMAGES "chelsea.png"},
    {"Coffee", .photo = IMAGES "coffee.png"},
    // Synthetic images.
    {"Black", MADE_FLAT, .height = 64, .width = 64, .colour = 0x000000, .sizes = SMALL_SIZES},
    {"White", MADE_FLAT, .height = 64, .width = 64, .colour = 0xffffff},
    {"FlatColour", MADE_FLAT, .height = 700, .width = 301, .colour = 0x3c9a5f},
    {"Noise", MADE_NOISE, .height = 600, .width = 801},
    {"NoiseLarger", MADE_NOISE, .height = 1500, .width = 2100},
    {"Gradient", MADE_GRADIENT, .height = 480, .width = 640, .sizes = SMALL_SIZES},
    {"GrayRamp", MADE_GRAY_RAMP, .height = 200, .width = 1000},
    {"Checker", MADE_CHECKER, .height = 512, .width = 512, .colour = 0xe02010,
     .sizes = SMALL_SIZES},
    {"Halves", MADE_HALVES, .height = 100, .width = 100, .colour = 0x102030, .sizes = SMALL_SIZES},
    {"Dot", MADE_DOT, .height = 333, .width = 333, .colour = 0xfefefe},
    {"OnePixel", MADE_FLAT, .height = 1, .width = 1, .colour = 0xc08040, .sizes = SMALL_SIZES},
    {"OneRow", MADE_NOISE, .height = 1, .width = 5000, .sizes = SMALL_SIZES},
    {"OneColumn", MADE_GRADIENT, .height = 5000, .width = 1},
    // The longest side that the kernels' 32-bit coordinates allow.
    {"LongestRow", MADE_NOISE, .height = 1, .width = 2097151},
    {"LongestColumn", MADE_NOISE, .height = 2097151, .width = 1},
    {"SameSize", MADE_NOISE, .height = 1024, .width = 1024},
    // Other sizes of the pipeline.
    {"Side256Grid16", .photo = IMAGES "coffee.png", .sizes = SMALL_SIZES},
    {"OnePatch", .photo = IMAGES "coffee.png", .sizes = {64, 1, 64}},
    {"OneLargePatch", .photo = IMAGES "chelsea.png", .sizes = {1024, 1, 400}},
    {"LeastBudget", .photo = IMAGES "coffee.png", .sizes = {256, 16, 64}},
    {"BudgetForNothingElse", MADE_NOISE, .height = 90, .width = 90, .sizes = {256, 16, 127}},
    {"EverythingIsTaken", .photo = IMAGES "coffee.png", .sizes = {256, 8, 65536}},
    {"PatchOf25Pixels", .photo = IMAGES "coffee.png", .sizes = {1000, 40, 4096}},
    {"PatchOf33Pixels", MADE_NOISE, .height = 120, .width = 50, .sizes = {99, 3, 700}},
    {"PatchOfOnePixel", MADE_NOISE, .height = 70, .width = 70, .sizes = {32, 32, 4096}},
    {"PatchOfTwoPixels", MADE_NOISE, .height = 70, .width = 70, .sizes = {256, 128, 65536}},
    {"LeastSide", MADE_NOISE, .height = 70, .width = 70, .sizes = {32, 4, 1000}},
    {"SideOf33", MADE_NOISE, .height = 33, .width = 33, .sizes = {33, 3, 500}},
    {"Side2048", .photo = IMAGES "chelsea.png", .sizes = {2048, 64, 8192}},
    {"QueryOf7", .photo = IMAGES "coffee.png", .sizes = SMALL_SIZES, .weights = RIG_SMALL_WEIGHTS},
};

static void make_image(const struct row *row, struct rig_image *out)
{
    *out = rig_image_make(row->height, row->width);
    made_image(row->kind, row->height, row->width, row->colour, 0x30d0f0, out->rgb);
}

// The result of one device for an image.
struct outcome {
    struct rig_frame frame;
    float *texture;
    size_t texture_size;
};

static void outcome_finish(struct outcome *outcome)
{
    rig_frame_finish(&outcome->frame);
    free(outcome->texture);
    outcome->texture = NULL;
}

static bool same_bits(const struct outcome *a, const struct outcome *b)
{
    return a->frame.size == b->frame.size &&
           memcmp(a->frame.bytes, b->frame.bytes, a->frame.size) == 0 &&
           memcmp(a->texture, b->texture, a->texture_size) == 0;
}

// The caller finishes `*out` in any case.
static bool run_image(const struct rig *rig, const struct weir_arr_coc_sizes *sizes,
                      const struct rig_image *image, struct outcome *out)
{
    const uint64_t pixels = (uint64_t)image->height * (uint64_t)image->width;
    const struct weir_arr_coc_params params = rig_params(rig, sizes, pixels);
    const size_t floats = (size_t)sizes->side * sizes->side * WEIR_ARR_COC_CHANNELS;
    own_arr_coc arr_coc = NULL;

    *out = (struct outcome){.texture = rig_alloc(floats, sizeof(float)),
                            .texture_size = floats * sizeof(float)};
    rig_frame_init(&out->frame, image, sizes->grid);
    if (!IS_OK(weir_arr_coc_create(&params, &arr_coc)))
        return false;
    return rig_run(arr_coc, &out->frame, 1) &&
           weir_test_check_ok(__FILE__, __LINE__, out->frame.message, out->frame.status) &&
           IS_OK(weir_arr_coc_download_texture(arr_coc, out->texture));
}

static void judge(const char *name, const struct rig *rig, const struct expected *expected,
                  const struct outcome *outcome, bool through_all)
{
    struct distances far;

    ASSERT_TRUE(measure(expected, rig, &outcome->frame, outcome->texture, &far));
    printf("%-20s texture %.1e  stage 2 alone: relevance %.1e scores %.1e balance %.1e  "
           "from the image: relevance %.1e scores %.1e balance %.1e  tokens %.1e\n",
           name, far.texture, far.own_relevance, far.own_scores, far.own_balance, far.relevance,
           far.scores, far.balance, far.tokens);
    EXPECT_DOUBLE_LE(far.texture, texture_bound);
    EXPECT_DOUBLE_LE(far.own_relevance, relevance_bound);
    EXPECT_DOUBLE_LE(far.own_scores, relevance_bound);
    EXPECT_DOUBLE_LE(far.own_balance, relevance_bound);
    EXPECT_DOUBLE_LE(far.tokens, token_bound);
    if (!through_all)
        return;
    EXPECT_DOUBLE_LE(far.relevance, relevance_bound);
    EXPECT_DOUBLE_LE(far.scores, relevance_bound);
    EXPECT_DOUBLE_LE(far.balance, relevance_bound);
}

// A device with the same bits as the first one gets the same result.
static void compare_on_all_devices(const struct row *row, const struct rig_image *image)
{
    const struct weir_arr_coc_sizes *sizes = row->sizes.side > 0 ? &row->sizes : &default_sizes;
    const char *weights = row->weights ? row->weights : RIG_WEIGHTS;
    const size_t devices = rig_device_count();
    struct expected expected = {0};
    struct outcome first = {0}, outcome;
    struct rig rig;
    bool ok = true;

    ASSERT_UINT_GT(devices, 0);
    for (size_t i = 0; ok && i < devices && rig_open(&rig, i, weights); i++) {
        weir_test_note("%s on %s", row->name, weir_device_get_info(rig.device)->name);
        if (i == 0)
            expected_init(&expected, &rig, sizes, image);
        ok = run_image(&rig, sizes, image, &outcome);
        if (ok && (i == 0 || !same_bits(&first, &outcome)))
            judge(row->name, &rig, &expected, &outcome, row->photo != NULL);
        if (i == 0)
            first = outcome;
        else
            outcome_finish(&outcome);
        rig_close(&rig);
    }
    outcome_finish(&first);
    expected_finish(&expected);
}

static void run_row(void)
{
    const struct row *row = weir_test_data();
    own_image image = {0};

    if (!row->photo)
        make_image(row, &image);
    else if (!rig_image_read(weir_test_runfile(row->photo), &image))
        return;
    compare_on_all_devices(row, &image);
}

static struct weir_test tests[sizeof rows / sizeof *rows];

__attribute__((constructor)) static void add_rows(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tests[i] = (struct weir_test){.suite = "Agreement",
                                      .name = rows[i].name,
                                      .file = __FILE__,
                                      .line = __LINE__,
                                      .run = run_row,
                                      .data = (void *)&rows[i]};
        weir_test_add(&tests[i]);
    }
}
