// A frame starts with the pipeline's own struct, so that the pointer that the
// pipeline returns is also that of the test's frame.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/image.h"
#include "tests/pipelines/rig.h"
#include "tests/support/made_images.h"

void *rig_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "no memory for %zu x %zu bytes\n", count, size);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static bool open_device(struct rig *rig, size_t index)
{
    char select[24];
    snprintf(select, sizeof select, "%zu", index);
    return IS_OK(
        weir_device_open(rig->runtime, WEIR_PARAMS(weir_device, .select = select), &rig->device));
}

static bool open_weights(struct rig *rig, const char *weights)
{
    struct weir_io_error error;
    if (!weir_arr_coc_weights_load(weir_test_runfile(weights), &rig->weights, &error)) {
        weir_test_fail(__FILE__, __LINE__, "%s", error.message);
        return false;
    }
    rig->query_size = weir_arr_coc_weights_query_size(rig->weights);
    rig->query = rig_alloc(rig->query_size, sizeof *rig->query);
    weir_arr_coc_seeded_query(1, rig->query, rig->query_size);
    return true;
}

bool rig_open(struct rig *rig, size_t index, const char *weights)
{
    *rig = (struct rig){0};
    if (IS_OK(weir_open(NULL, &rig->runtime)) && open_device(rig, index) &&
        open_weights(rig, weights))
        return true;
    rig_close(rig);
    return false;
}

void rig_close(struct rig *rig)
{
    free(rig->query);
    rig->query = NULL;
    weir_arr_coc_weights_destroy(&rig->weights);
    if (rig->device)
        EXPECT_OK(weir_device_close(&rig->device));
    if (rig->runtime)
        EXPECT_OK(weir_close(&rig->runtime));
}

bool rig_computes(const struct rig *rig)
{
    return strcmp(weir_runtime_backend(rig->runtime), "null") != 0;
}

size_t rig_device_count(void)
{
    weir_runtime *runtime;
    if (!IS_OK(weir_open(NULL, &runtime)))
        return 0;
    size_t count = weir_device_count(runtime);
    WEIR_IGNORE(weir_close(&runtime));
    return count;
}

// Images.

struct rig_image rig_image_make(int height, int width)
{
    size_t size = (size_t)height * (size_t)width * 3;
    return (struct rig_image){.height = height, .width = width, .rgb = rig_alloc(size, 1)};
}

bool rig_image_read(const char *path, struct rig_image *out_image)
{
    struct weir_io_image_info info;
    struct weir_io_error error;

    *out_image = (struct rig_image){0};
    if (weir_io_image_probe(path, &info, &error)) {
        *out_image = rig_image_make((int)info.height, (int)info.width);
        if (weir_io_image_read(path, 0, out_image->rgb, weir_io_image_bytes(&info), &info, &error))
            return true;
        rig_image_finish(out_image);
    }
    weir_test_fail(__FILE__, __LINE__, "%s", error.message);
    return false;
}

void rig_image_finish(struct rig_image *image)
{
    free(image->rgb);
    image->rgb = NULL;
}

weir_status rig_image_load(const struct rig_image *image, unsigned char *rgb, uint32_t *out_width,
                           uint32_t *out_height)
{
    memcpy(rgb, image->rgb, (size_t)image->height * (size_t)image->width * 3);
    *out_width = (uint32_t)image->width;
    *out_height = (uint32_t)image->height;
    return WEIR_OK;
}

// Frames.

unsigned rig_frames_wanted(const char *variable)
{
    const char *text = getenv(variable);
    const unsigned long frames = text ? strtoul(text, NULL, 10) : RIG_FRAMES;
    return frames >= RIG_FRAMES && frames <= 100000000 ? (unsigned)frames : 0;
}

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct rig_frame *frame = user;
    const struct rig_image *image = frame->image;
    const size_t size = (size_t)image->height * (size_t)image->width * 3;

    if (frame->load_message) {
        struct weir_error error = {.status = frame->load_status};
        snprintf(error.message, sizeof error.message, "%s", frame->load_message);
        return weir_error_set(&error);
    }
    if (frame->load_status != WEIR_OK)
        return frame->load_status;
    // For an image that is too large the size is stored and the pixels are not
    // written.
    if (image->rgb && size <= capacity)
        memcpy(rgb, image->rgb, size);
    *out_width = (uint32_t)image->width;
    *out_height = (uint32_t)image->height;
    return WEIR_OK;
}

void rig_frame_init(struct rig_frame *frame, const struct rig_image *image, uint32_t grid)
{
    *frame = (struct rig_frame){.image = image, .grid = grid};
    frame->frame.load = load;
    frame->frame.user = frame;
}

void rig_frame_finish(struct rig_frame *frame)
{
    free(frame->bytes);
    *frame = (struct rig_frame){0};
}

// Appends what the frame's memory has room for.
static const void *keep(struct rig_frame *frame, const void *from, size_t size)
{
    unsigned char *to = frame->bytes + frame->size;
    memcpy(to, from, size);
    frame->size += size;
    return to;
}

static void keep_output(struct rig_frame *frame, const struct weir_arr_coc_output *output)
{
    const uint32_t counts[2] = {output->patch_count, output->token_count};
    const size_t map = (size_t)frame->grid * frame->grid * sizeof(float);
    const size_t patches = (size_t)output->patch_count * 3 * sizeof(int32_t);
    const size_t tokens = (size_t)output->token_count * WEIR_ARR_COC_CHANNELS * sizeof(float);
    const size_t balance = 3 * sizeof(float);

    frame->bytes = rig_alloc(sizeof counts + balance + 4 * map + patches + tokens, 1);
    keep(frame, counts, sizeof counts);
    frame->output = *output;
    frame->output.balance = keep(frame, output->balance, balance);
    frame->output.relevance = keep(frame, output->relevance, map);
    frame->output.scores = keep(frame, output->scores, 3 * map);
    frame->output.patches = keep(frame, output->patches, patches);
    frame->output.tokens = keep(frame, output->tokens, tokens);
}

static void deliver(void *user, struct weir_arr_coc_frame *delivered,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result)
{
    struct rig_frame *frame = (struct rig_frame *)delivered;

    frame->deliveries++;
    frame->status = result->status;
    snprintf(frame->stage, sizeof frame->stage, "%s", result->stage);
    snprintf(frame->message, sizeof frame->message, "%s",
             result->error ? result->error->message : "");
    // A frame may be run again.
    if (output && frame->grid > 0 && !frame->bytes)
        keep_output(frame, output);
}

struct weir_arr_coc_params rig_params(const struct rig *rig, const struct weir_arr_coc_sizes *sizes,
                                      uint64_t max_pixels)
{
    return (struct weir_arr_coc_params){
        .device = rig->device,
        .sizes = *sizes,
        .weights = rig->weights,
        .query = rig->query,
        .query_size = rig->query_size,
        .max_pixels = max_pixels,
        .deliver = deliver,
    };
}

bool rig_run(weir_arr_coc *arr_coc, struct rig_frame *frames, size_t count)
{
    weir_pipeline *pipeline = weir_arr_coc_pipeline(arr_coc);
    bool ok = true;

    for (size_t i = 0; i < count && ok; i++)
        ok = IS_OK(weir_pipeline_submit(pipeline, &frames[i].frame));
    return IS_OK(weir_pipeline_drain(pipeline, WEIR_FOREVER)) && ok;
}

// Comparing.

static bool succeeded(const struct rig_frame *frame)
{
    if (frame->status == WEIR_OK && frame->deliveries > 0 && frame->bytes)
        return true;
    weir_test_fail(__FILE__, __LINE__, "a frame was delivered %d times, as %s: %s",
                   frame->deliveries, weir_status_name(frame->status), frame->message);
    return false;
}

bool rig_same_bits(const struct rig_frame *a, const struct rig_frame *b)
{
    return succeeded(a) && succeeded(b) &&
           weir_test_check_uint(__FILE__, __LINE__, "size", "==", "size", a->size, b->size) &&
           weir_test_check_mem(__FILE__, __LINE__, "one", "the other", a->bytes, b->bytes, a->size);
}

bool test_images_make(struct rig_image images[TEST_IMAGES])
{
    static const struct {
        enum made_kind kind;
        int height, width;
        made_colour a, b;
    } made[TEST_IMAGES] = {
        [1] = {MADE_NOISE, 300, 201, 3, 0},
        [2] = {MADE_GRADIENT, 64, 640, 0, 0},
        [3] = {MADE_FLAT, 1, 1, 0x80c040, 0},
        [4] = {MADE_NOISE, 1, 5000, 4, 0},
        [5] = {MADE_CHECKER, 257, 255, 0xd02000, 0x0040f0},
    };
    for (int i = 0; i < TEST_IMAGES; i++)
        images[i] = (struct rig_image){0};
    if (!rig_image_read(weir_test_runfile("tests/data/images/coffee.png"), &images[0]))
        return false;
    for (int i = 1; i < TEST_IMAGES; i++) {
        images[i] = rig_image_make(made[i].height, made[i].width);
        made_image(made[i].kind, made[i].height, made[i].width, made[i].a, made[i].b,
                   images[i].rgb);
    }
    return true;
}

void test_images_finish(struct rig_image images[TEST_IMAGES])
{
    for (int i = 0; i < TEST_IMAGES; i++)
        rig_image_finish(&images[i]);
}

uint64_t test_images_max_pixels(const struct rig_image images[TEST_IMAGES])
{
    uint64_t most = 0;
    for (int i = 0; i < TEST_IMAGES; i++) {
        uint64_t pixels = (uint64_t)images[i].height * (uint64_t)images[i].width;
        most = pixels > most ? pixels : most;
    }
    return most;
}

bool rig_run_images(const struct rig_way *way, const struct weir_arr_coc_sizes *sizes,
                    const struct rig_image images[TEST_IMAGES], struct rig_frame *frames,
                    size_t count)
{
    struct rig rig;
    weir_arr_coc *arr_coc;
    bool ok = false;

    for (size_t i = 0; i < count; i++)
        rig_frame_init(&frames[i], &images[i % TEST_IMAGES], sizes->grid);
    if (!rig_open(&rig, way->device, RIG_WEIGHTS))
        return false;
    struct weir_arr_coc_params params = rig_params(&rig, sizes, test_images_max_pixels(images));
    params.slot_count = way->slots;
    params.timing = way->timing;
    params.graphs = way->graphs;
    if (IS_OK(weir_arr_coc_create(&params, &arr_coc))) {
        ok = rig_run(arr_coc, frames, count);
        weir_arr_coc_destroy(&arr_coc);
    }
    rig_close(&rig);
    return ok;
}
