// A frame starts with the pipeline's own struct, so that the pointer that the
// pipeline returns is also that of the test's frame.

#include "tests/pipelines/rig.h"
#include "io/image.h"

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
    rig->query_size = rig->weights->query_size;
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

// Frames.

static weir_status load(void *user, unsigned char *rgb, size_t capacity, uint32_t *out_width,
                        uint32_t *out_height)
{
    const struct rig_frame *frame = user;
    const struct rig_image *image = frame->image;
    const size_t size = (size_t)image->height * (size_t)image->width * 3;

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
        .pipeline.device = rig->device,
        .sizes = *sizes,
        .weights = rig->weights,
        .query = rig->query,
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
