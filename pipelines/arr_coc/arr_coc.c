// The ARR-COC pipeline: its creation, what each stage submits, and the host's side of a frame: loading an image
// into pinned memory and delivering the results. Grids and arguments of launches are those that
// kernels/arr_coc/README.md lists.
//
// If device and host share one memory, kernels read and write the pinned
// buffers directly and nothing is copied.
#include "pipelines/arr_coc/arr_coc.h"

#include <inttypes.h>

#include "base/random.h"
#include "kernels/arr_coc/arr_coc.h"
#include "patterns/shared.h"

// Names errors.
#define ARR_COC_LABEL "arr-coc"

// The kernels, in the order of the table.
enum kernel {
    ARR_COC_TEXTURE_POSITION,
    ARR_COC_POSITION_MEANS,
    ARR_COC_TEXTURE_IMAGE,
    ARR_COC_PATCH_SCORES,
    ARR_COC_RELEVANCE,
    ARR_COC_ALLOCATE_TOKENS,
    ARR_COC_COMPRESS_TOKENS,
    ARR_COC_KERNEL_COUNT
};

// One result inside the buffer that holds all results of a frame.
struct part {
    size_t offset;
    size_t size;
};

// All results of a frame are in one buffer, so that one copy downloads them.
struct layout {
    struct part counts; // 2 int32: patches, tokens
    struct part balance;
    struct part relevance;
    struct part scores;
    struct part patches;
    struct part tokens;
    size_t total;
    size_t plane;         // floats between two planes of the texture
    size_t texture_size;  // bytes
    uint32_t patch_limit; // the largest number of patches that the budget can buy
};

struct slot {
    weir_buffer *rgb_host;
    weir_buffer *rgb; // the same buffer where kernels can read host memory
    weir_buffer *texture;
    weir_buffer *results;
    weir_buffer *results_host; // the same buffer where kernels can write host memory
    uint32_t width;            // of the frame in the slot
    uint32_t height;
};

struct weir_arr_coc {
    weir_device *device;
    struct weir_arr_coc_sizes sizes;
    struct layout layout;
    size_t rgb_size; // bytes of the largest image
    bool direct;     // device and host share memory: nothing needs copying
    weir_program *program;
    weir_kernel *kernels[ARR_COC_KERNEL_COUNT];
    weir_buffer *weights;
    weir_buffer *position;
    weir_queue *setup; // until the pipeline is ready
    weir_pipeline *pipeline;
    struct slot *last; // the slot that was delivered last
    void (*deliver)(void *user, struct weir_arr_coc_frame *frame,
                    const struct weir_arr_coc_output *output,
                    const struct weir_pipeline_result *result);
    void *user;
};

// The section [arr_coc], and the query that is used in place of a real one.

// In the order of weir_arr_coc_params_from_settings().
static const struct weir_key keys[] = {
    WEIR_INTEGER_KEY(
        "side", "1024", 32, 4096,
        "Working size in pixels; images are resized to side x side. A multiple of grid."),
    WEIR_INTEGER_KEY("grid", "32", 1, 256, "Patches per side."),
    WEIR_INTEGER_KEY("budget", "4096", 64, 1048576, "Tokens that an image may cost."),
    WEIR_INTEGER_KEY("max_pixels", "67108864", 1, 1073741824,
                     "Larger images are refused; the largest image that is run sizes the slots."),
};

const struct weir_section *weir_arr_coc_section(void)
{
    static const struct weir_section section = {
        .struct_size = sizeof section,
        .name = "arr_coc",
        .keys = keys,
        .key_count = sizeof keys / sizeof *keys,
        .key_size = sizeof keys[0],
    };
    return &section;
}

weir_status weir_arr_coc_params_from_settings(const weir_runtime *runtime,
                                              struct weir_arr_coc_params *params)
{
    const struct weir_setting *values[sizeof keys / sizeof *keys];

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!(values[i] = weir_runtime_setting(runtime, "arr_coc", keys[i].name)))
            return weir__pattern_fail(NULL, WEIR_ERROR_NOT_FOUND,
                                      "put weir_arr_coc_section() into weir_open_params.sections",
                                      "the section [arr_coc] was not declared to weir_open()");
    params->sizes.side = (uint32_t)values[0]->integer;
    params->sizes.grid = (uint32_t)values[1]->integer;
    params->sizes.budget = (uint32_t)values[2]->integer;
    params->max_pixels = (uint64_t)values[3]->integer;
    return weir_pipeline_params_from_settings(runtime, NULL, &params->pipeline);
}

void weir_arr_coc_seeded_query(uint64_t seed, float *query, size_t query_size)
{
    weir_arr_coc_fill_normal(query, query_size, 1.0, weir_random_stream(seed, 0));
}

#define SIDE_MIN 8 // of a patch that is taken, and so at least 64 tokens

// Sizes.

static struct part take(size_t *used, size_t alignment, size_t size)
{
    struct part part = {*used, size};
    *used = (*used + size + alignment - 1) / alignment * alignment;
    return part;
}

// Fills the layout for these sizes and this alignment of parts.
static void lay_out(const struct weir_arr_coc_sizes *sizes, size_t alignment, struct layout *out)
{
    const size_t patches = (size_t)sizes->grid * sizes->grid;
    const size_t most = sizes->budget / (SIDE_MIN * SIDE_MIN);
    size_t used = 0;

    out->patch_limit = (uint32_t)(most < patches ? most : patches);
    out->counts = take(&used, alignment, 2 * sizeof(int32_t));
    out->balance = take(&used, alignment, 3 * sizeof(float));
    out->relevance = take(&used, alignment, patches * sizeof(float));
    out->scores = take(&used, alignment, 3 * patches * sizeof(float));
    out->patches = take(&used, alignment, 3 * (size_t)out->patch_limit * sizeof(int32_t));
    out->tokens =
        take(&used, alignment, (size_t)WEIR_ARR_COC_CHANNELS * sizes->budget * sizeof(float));
    out->total = used;
    // Planes a power of two apart would map to the same cache sets.
    out->plane = (size_t)sizes->side * sizes->side + 1056;
    out->texture_size = WEIR_ARR_COC_CHANNELS * out->plane * sizeof(float);
}

// What the ranges of the keys do not say.
static weir_status check_sizes(const struct weir_arr_coc_sizes *sizes)
{
    if (sizes->side % sizes->grid)
        return weir__pattern_refuse(ARR_COC_LABEL, "choose a grid that divides the side",
                                    "side %" PRIu32 " is no multiple of grid %" PRIu32, sizes->side,
                                    sizes->grid);
    if (sizes->side / sizes->grid > 2896)
        return weir__pattern_refuse(ARR_COC_LABEL, "choose a larger grid",
                                    "a patch of %" PRIu32
                                    " pixels a side is too large; 2896 is the limit",
                                    sizes->side / sizes->grid);
    return WEIR_OK;
}

// What the stages submit.

static uint32_t ceil_div(uint32_t value, uint32_t by)
{
    return (value + by - 1) / by;
}

static struct weir_argument in_part(weir_buffer *results, const struct part *part)
{
    return weir_in(results, part->offset, part->size);
}

static struct weir_argument out_part(weir_buffer *results, const struct part *part)
{
    return weir_out(results, part->offset, part->size);
}

static size_t rgb_size(const struct slot *slot)
{
    return (size_t)3 * slot->width * slot->height;
}

static weir_status submit_texture(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const weir_arr_coc *a = user;
    const struct slot *slot = slot_pointer;
    const uint32_t side = a->sizes.side;
    return weir_queue_launch(queue, a->kernels[ARR_COC_TEXTURE_IMAGE],
                             weir_dim(ceil_div(side, 32), ceil_div(side, 32), 1),
                             weir_dim(32, 8, 1), weir_in(slot->rgb, 0, rgb_size(slot)),
                             weir_whole_inout(slot->texture), slot->height, slot->width, side,
                             (uint32_t)a->layout.plane);
}

// Of a slot once; the first one's gives the means of all.
static weir_status submit_position(const weir_arr_coc *a, const struct slot *slot, bool first)
{
    const uint32_t side = a->sizes.side, grid = a->sizes.grid;
    TRY(weir_queue_launch(a->setup, a->kernels[ARR_COC_TEXTURE_POSITION],
                          weir_dim(ceil_div(side, 64), side, 1), weir_dim(64, 1, 1),
                          weir_whole_inout(slot->texture), side, (uint32_t)a->layout.plane));
    if (!first)
        return WEIR_OK;
    return weir_queue_launch(a->setup, a->kernels[ARR_COC_POSITION_MEANS],
                             weir_dim(grid * grid, 1, 1), weir_dim(64, 1, 1),
                             weir_whole_in(slot->texture), weir_whole_out(a->position), side, grid,
                             (uint32_t)a->layout.plane);
}

static weir_status submit_upload(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const struct slot *slot = slot_pointer;
    return weir_queue_copy(queue, slot->rgb, 0, slot->rgb_host, 0, rgb_size(slot));
}

static weir_status submit_relevance(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const weir_arr_coc *a = user;
    const struct slot *slot = slot_pointer;
    const struct layout *layout = &a->layout;
    const uint32_t grid = a->sizes.grid;
    TRY(weir_queue_launch(queue, a->kernels[ARR_COC_PATCH_SCORES], weir_dim(grid * grid, 1, 1),
                          weir_dim(32, 4, 1), weir_whole_in(slot->texture),
                          weir_whole_in(a->weights), weir_whole_in(a->position),
                          out_part(slot->results, &layout->scores), a->sizes.side, grid,
                          (uint32_t)layout->plane));
    return weir_queue_launch(queue, a->kernels[ARR_COC_RELEVANCE], weir_dim(1, 1, 1),
                             weir_dim(256, 1, 1), weir_whole_in(a->weights),
                             weir_inout(slot->results, layout->scores.offset, layout->scores.size),
                             out_part(slot->results, &layout->balance),
                             out_part(slot->results, &layout->relevance), grid * grid);
}

static weir_status submit_allocation(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const weir_arr_coc *a = user;
    const struct slot *slot = slot_pointer;
    const struct layout *layout = &a->layout;
    const uint32_t patches = a->sizes.grid * a->sizes.grid;
    TRY(weir_queue_launch(queue, a->kernels[ARR_COC_ALLOCATE_TOKENS],
                          weir_dim(ceil_div(patches, 64), 1, 1), weir_dim(256, 1, 1),
                          in_part(slot->results, &layout->relevance),
                          out_part(slot->results, &layout->patches),
                          out_part(slot->results, &layout->counts), patches, a->sizes.budget));
    return weir_queue_launch(queue, a->kernels[ARR_COC_COMPRESS_TOKENS],
                             weir_dim(layout->patch_limit, WEIR_ARR_COC_CHANNELS, 1),
                             weir_dim(256, 1, 1), weir_whole_in(slot->texture),
                             in_part(slot->results, &layout->patches),
                             in_part(slot->results, &layout->counts),
                             out_part(slot->results, &layout->tokens), a->sizes.side, a->sizes.grid,
                             (uint32_t)layout->plane);
}

static weir_status submit_download(void *user, void *slot_pointer, void *frame, weir_queue *queue)
{
    const weir_arr_coc *a = user;
    const struct slot *slot = slot_pointer;
    return weir_queue_copy(queue, slot->results_host, 0, slot->results, 0, a->layout.total);
}

// Creation.

static weir_status create_buffer(weir_arr_coc *a, const char *label, size_t size,
                                 weir_placement placement, weir_buffer **out_buffer)
{
    return weir_buffer_create(a->device,
                              WEIR_PARAMS(weir_buffer, .label = label, .size = size,
                                          .placement = placement),
                              out_buffer);
}

static void destroy_slot(void *user, void *slot_pointer)
{
    struct slot *slot = slot_pointer;
    if (slot->rgb != slot->rgb_host)
        weir_buffer_destroy(&slot->rgb);
    weir_buffer_destroy(&slot->rgb_host);
    weir_buffer_destroy(&slot->texture);
    if (slot->results != slot->results_host)
        weir_buffer_destroy(&slot->results);
    weir_buffer_destroy(&slot->results_host);
    free(slot);
}

static weir_status create_slot_buffers(weir_arr_coc *a, struct slot *slot)
{
    static const unsigned char zero = 0;

    TRY(create_buffer(a, "rgb (host)", a->rgb_size, WEIR_PLACE_HOST, &slot->rgb_host));
    TRY(create_buffer(a, "results (host)", a->layout.total, WEIR_PLACE_HOST, &slot->results_host));
    TRY(create_buffer(a, "texture", a->layout.texture_size, WEIR_PLACE_DEVICE, &slot->texture));
    if (a->direct) {
        slot->rgb = slot->rgb_host;
        slot->results = slot->results_host;
        return WEIR_OK;
    }
    TRY(create_buffer(a, "rgb", a->rgb_size, WEIR_PLACE_DEVICE, &slot->rgb));
    TRY(create_buffer(a, "results", a->layout.total, WEIR_PLACE_DEVICE, &slot->results));
    // One copy downloads all results, with what is between them.
    return weir_queue_fill(a->setup, slot->results, 0, a->layout.total, &zero, 1);
}

static weir_status create_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct slot *slot = calloc(1, sizeof *slot);
    if (!slot)
        return weir__pattern_no_memory(ARR_COC_LABEL, "the ARR-COC pipeline");
    weir_status status = create_slot_buffers(user, slot);
    if (status == WEIR_OK)
        status = submit_position(user, slot, index == 0);
    if (status == WEIR_OK)
        *out_slot = slot;
    else
        destroy_slot(user, slot);
    return status;
}

static weir_status create_kernels(weir_arr_coc *a)
{
    static const char *const names[ARR_COC_KERNEL_COUNT] = {
        [ARR_COC_TEXTURE_POSITION] = "texture_position",
        [ARR_COC_POSITION_MEANS] = "position_means",
        [ARR_COC_TEXTURE_IMAGE] = "texture_image",
        [ARR_COC_PATCH_SCORES] = "patch_scores",
        [ARR_COC_RELEVANCE] = "relevance",
        [ARR_COC_ALLOCATE_TOKENS] = "allocate_tokens",
        [ARR_COC_COMPRESS_TOKENS] = "compress_tokens",
    };
    TRY(weir_program_create(a->device,
                            WEIR_PARAMS(weir_program, .label = ARR_COC_LABEL,
                                        .bundle = &arr_coc_kernels),
                            &a->program));
    for (int i = 0; i < ARR_COC_KERNEL_COUNT; i++)
        TRY(weir_kernel_create(a->program, names[i], &a->kernels[i]));
    return WEIR_OK;
}

static weir_status upload_weights(weir_arr_coc *a, const struct weir_arr_coc_params *params)
{
    const size_t size = ARR_COC_PACK_FLOATS * sizeof(float);
    float *pack = malloc(size);
    if (!pack)
        return weir__pattern_no_memory(ARR_COC_LABEL, "the ARR-COC pipeline");
    arr_coc_pack(&params->weights->tensors, params->query, params->weights->query_size, pack);
    const weir_status status = weir_upload(a->setup, a->weights, 0, pack, size);
    free(pack);
    return status;
}

// Everything that the stages' submits depend on, besides the slot.
static uint64_t size_of_frame(void *user, void *slot_pointer, void *frame)
{
    const struct slot *slot = slot_pointer;
    return (uint64_t)slot->width << 32 | slot->height;
}

// Frames.

static weir_status check_image(const weir_arr_coc *a, const struct slot *slot)
{
    const uint64_t longest = slot->width > slot->height ? slot->width : slot->height;
    const uint64_t limit = (UINT64_C(1) << 31) / a->sizes.side - 1;

    if (slot->width == 0 || slot->height == 0)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL,
                                    "an image of %" PRIu32 "x%" PRIu32 " pixels; it must have at "
                                    "least one",
                                    slot->width, slot->height);
    if ((uint64_t)slot->width * slot->height > a->rgb_size / 3)
        return weir__pattern_refuse(ARR_COC_LABEL, "raise max_pixels",
                                    "an image of %" PRIu32 "x%" PRIu32
                                    " pixels; the slots hold %zu",
                                    slot->width, slot->height, a->rgb_size / 3);
    if (longest > limit)
        return weir__pattern_refuse(ARR_COC_LABEL, "cut the image, or choose a smaller side",
                                    "an image of %" PRIu32 "x%" PRIu32 " pixels; with side %" PRIu32
                                    " no image side may exceed %" PRIu64,
                                    slot->width, slot->height, a->sizes.side, limit);
    return WEIR_OK;
}

static weir_status prepare(void *user, void *slot_pointer, void *frame_pointer)
{
    weir_arr_coc *a = user;
    struct slot *slot = slot_pointer;
    struct weir_arr_coc_frame *frame = frame_pointer;
    void *rgb;

    TRY(weir_host_begin(slot->rgb_host, 0, a->rgb_size, WEIR_ACCESS_WRITE, &rgb));
    weir_status status = frame->load(frame->user, rgb, a->rgb_size, &slot->width, &slot->height);
    WEIR_IGNORE(weir_host_end(slot->rgb_host, 0, a->rgb_size, WEIR_ACCESS_WRITE));
    return status == WEIR_OK ? check_image(a, slot) : status;
}

static void fill_output(const weir_arr_coc *a, const struct slot *slot, const char *results,
                        struct weir_arr_coc_output *out)
{
    const struct layout *layout = &a->layout;
    const int32_t *counts = (const int32_t *)(const void *)(results + layout->counts.offset);

    *out = (struct weir_arr_coc_output){
        .width = slot->width,
        .height = slot->height,
        .patch_count = (uint32_t)counts[0],
        .token_count = (uint32_t)counts[1],
        .tokens = (const float *)(const void *)(results + layout->tokens.offset),
        .patches = (const int32_t *)(const void *)(results + layout->patches.offset),
        .relevance = (const float *)(const void *)(results + layout->relevance.offset),
        .scores = (const float *)(const void *)(results + layout->scores.offset),
        .balance = (const float *)(const void *)(results + layout->balance.offset),
    };
}

static void deliver(void *user, void *frame, void *slot_pointer,
                    const struct weir_pipeline_result *result)
{
    weir_arr_coc *a = user;
    struct slot *slot = slot_pointer;
    const size_t size = a->layout.total;
    struct weir_arr_coc_output output;
    void *results = NULL;

    const bool succeeded = slot && result->status == WEIR_OK;
    if (slot)
        a->last = succeeded ? slot : NULL;
    if (succeeded) {
        WEIR_IGNORE(weir_host_begin(slot->results_host, 0, size, WEIR_ACCESS_READ, &results));
        fill_output(a, slot, results, &output);
    }
    if (a->deliver)
        a->deliver(a->user, frame, results ? &output : NULL, result);
    if (results)
        WEIR_IGNORE(weir_host_end(slot->results_host, 0, size, WEIR_ACCESS_READ));
}

static weir_status create_pipeline(weir_arr_coc *a, const struct weir_arr_coc_params *params)
{
    // Copies have separate queues, so that the next frame is uploaded while
    // kernels work on this one.
    static const struct weir_pipeline_stage all[WEIR_ARR_COC_STAGES_MAX] = {
        {.name = "upload", .submit = submit_upload},
        {.name = "texture", .submit = submit_texture},
        {.name = "relevance", .submit = submit_relevance},
        {.name = "allocation", .submit = submit_allocation},
        {.name = "download", .submit = submit_download},
    };
    // Without copies, the three in the middle.
    const uint32_t first = a->direct ? 1 : 0, count = WEIR_ARR_COC_STAGES_MAX - 2 * first;
    struct weir_pipeline_stage stages[WEIR_ARR_COC_STAGES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        stages[i] = all[first + i];
        stages[i].depends_on = i > 0 ? WEIR_PIPELINE_AFTER(i - 1) : 0;
    }
    struct weir_pipeline_params pipeline = params->pipeline;
    pipeline.struct_size = sizeof pipeline;
    pipeline.label = ARR_COC_LABEL;
    pipeline.stages = stages;
    pipeline.stage_count = count;
    pipeline.stage_size = sizeof *stages;
    pipeline.slot_create = create_slot;
    pipeline.slot_destroy = destroy_slot;
    pipeline.prepare = prepare;
    pipeline.deliver = deliver;
    pipeline.user = a;
    pipeline.repeat = size_of_frame;
    return weir_pipeline_create(&pipeline, &a->pipeline);
}

static weir_status create(weir_arr_coc *a, const struct weir_arr_coc_params *params)
{
    const struct weir_limits *limits = weir_device_limits(a->device);
    const size_t alignment = (size_t)limits->argument_alignment_bytes;

    a->direct = limits->unified_memory && limits->host_in_kernels;
    TRY(check_sizes(&a->sizes));
    lay_out(&a->sizes, alignment > 16 ? alignment : 16, &a->layout);
    TRY(weir_queue_create(a->device, WEIR_PARAMS(weir_queue, .label = "arr-coc/setup"), &a->setup));
    TRY(create_kernels(a));
    TRY(create_buffer(a, "weights", ARR_COC_PACK_FLOATS * sizeof(float), WEIR_PLACE_DEVICE,
                      &a->weights));
    TRY(create_buffer(a, "position", (size_t)4 * a->sizes.grid * a->sizes.grid * sizeof(float),
                      WEIR_PLACE_DEVICE, &a->position));
    TRY(upload_weights(a, params));
    TRY(create_pipeline(a, params));
    return weir_queue_sync(a->setup, WEIR_FOREVER);
}

weir_status weir_arr_coc_create(const struct weir_arr_coc_params *params,
                                weir_arr_coc **out_arr_coc)
{
    *out_arr_coc = NULL;
    weir_arr_coc *a = calloc(1, sizeof *a);
    if (!a)
        return weir__pattern_no_memory(ARR_COC_LABEL, "the ARR-COC pipeline");
    a->device = params->pipeline.device;
    a->sizes = params->sizes;
    a->rgb_size = (size_t)(3 * params->max_pixels);
    a->deliver = params->deliver;
    a->user = params->user;
    if (create(a, params) < 0) {
        const struct weir_error error = *weir_last_error();
        weir_arr_coc_destroy(&a);
        return weir_error_set(&error);
    }
    weir_queue_destroy(&a->setup);
    *out_arr_coc = a;
    return WEIR_OK;
}

void weir_arr_coc_destroy(weir_arr_coc **arr_coc)
{
    if (!arr_coc || !*arr_coc)
        return;
    weir_arr_coc *a = *arr_coc;
    // Refused in a callback, which it would wait for.
    if (weir_pipeline_destroy(&a->pipeline) < 0)
        return;
    *arr_coc = NULL;
    weir_queue_destroy(&a->setup);
    weir_buffer_destroy(&a->position);
    weir_buffer_destroy(&a->weights);
    for (int i = 0; i < ARR_COC_KERNEL_COUNT; i++)
        weir_kernel_destroy(&a->kernels[i]);
    weir_program_destroy(&a->program);
    free(a);
}

weir_pipeline *weir_arr_coc_pipeline(const weir_arr_coc *arr_coc)
{
    return arr_coc->pipeline;
}

size_t weir_arr_coc_result_bytes(const weir_arr_coc *arr_coc)
{
    return arr_coc->layout.total;
}

weir_status weir_arr_coc_download_texture(weir_arr_coc *a, float *out_texture)
{
    const size_t pixels = (size_t)a->sizes.side * a->sizes.side;
    weir_queue *queue;

    if (!a->last)
        return weir__pattern_refuse(ARR_COC_LABEL, "run a frame first",
                                    "there is no frame, or the last one failed");
    weir_status status =
        weir_queue_create(a->device, WEIR_PARAMS(weir_queue, .label = "arr-coc/look"), &queue);
    for (size_t c = 0; c < WEIR_ARR_COC_CHANNELS && status == WEIR_OK; c++)
        status = weir_download(queue, out_texture + c * pixels, a->last->texture,
                               c * a->layout.plane * sizeof(float), pixels * sizeof(float));
    weir_queue_destroy(&queue);
    return status;
}
