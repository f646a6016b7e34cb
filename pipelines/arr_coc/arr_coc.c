// Creation and destruction of the pipeline, and the host's side of a frame:
// loading it into pinned memory and delivering its results. The device's side
// is in stages.c.
//
// If device and host share one memory, kernels read and write the pinned
// buffers directly and nothing is copied.
#include "pipelines/arr_coc/arr_coc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "kernels/arr_coc/arr_coc.h"
#include "pipelines/arr_coc/normal.h"
#include "pipelines/arr_coc/parts.h"

// The section [arr_coc], and the query that is used in place of a real one.

static const struct weir_key keys[] = {
    {.name = "side",
     .type = WEIR_KEY_INTEGER,
     .fallback = "1024",
     .minimum = 32,
     .maximum = 4096,
     .help = "Working size in pixels; images are resized to side x side. A multiple of grid."},
    {.name = "grid",
     .type = WEIR_KEY_INTEGER,
     .fallback = "32",
     .minimum = 1,
     .maximum = 256,
     .help = "Patches per side."},
    {.name = "budget",
     .type = WEIR_KEY_INTEGER,
     .fallback = "4096",
     .minimum = 64,
     .maximum = 1048576,
     .help = "Tokens that an image may cost."},
    {.name = "max_pixels",
     .type = WEIR_KEY_INTEGER,
     .fallback = "67108864",
     .minimum = 1,
     .maximum = 1073741824,
     .help = "Larger images are refused; the largest image that is run sizes the slots."},
};

static const struct weir_section section = {
    .struct_size = sizeof section,
    .name = "arr_coc",
    .keys = keys,
    .key_count = sizeof keys / sizeof *keys,
    .key_size = sizeof keys[0],
};

const struct weir_section *weir_arr_coc_section(void)
{
    return &section;
}

weir_status weir_arr_coc_params_from_settings(const weir_runtime *runtime,
                                              struct weir_arr_coc_params *params)
{
    const struct weir_setting *values[sizeof keys / sizeof *keys];
    struct weir_pipeline_params pipeline = {.struct_size = sizeof pipeline};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!(values[i] = weir_runtime_setting(runtime, section.name, keys[i].name)))
            return weir__pattern_fail(NULL, WEIR_ERROR_NOT_FOUND,
                                      "put weir_arr_coc_section() into weir_open_params.sections",
                                      "the section [arr_coc] was not declared to weir_open()");
    TRY(weir_pipeline_params_from_settings(runtime, NULL, &pipeline));
    params->sizes.side = (uint32_t)values[0]->integer;
    params->sizes.grid = (uint32_t)values[1]->integer;
    params->sizes.budget = (uint32_t)values[2]->integer;
    params->max_pixels = (uint64_t)values[3]->integer;
    params->slot_count = pipeline.slot_count;
    params->full = pipeline.full;
    params->backlog = pipeline.backlog;
    params->timing = pipeline.timing;
    params->graphs = pipeline.graphs;
    return WEIR_OK;
}

void weir_arr_coc_seeded_query(uint64_t seed, float *query, size_t query_size)
{
    weir_arr_coc_fill_normal(query, query_size, 1.0, weir_random_stream(seed, 0));
}

#define SIDE_MIN 8 // of a patch that is taken, and so at least 64 tokens

const char *const arr_coc_kernel_names[ARR_COC_KERNEL_COUNT] = {
    [ARR_COC_TEXTURE_POSITION] = "texture_position",
    [ARR_COC_POSITION_MEANS] = "position_means",
    [ARR_COC_TEXTURE_IMAGE] = "texture_image",
    [ARR_COC_PATCH_SCORES] = "patch_scores",
    [ARR_COC_RELEVANCE] = "relevance",
    [ARR_COC_ALLOCATE_TOKENS] = "allocate_tokens",
    [ARR_COC_COMPRESS_TOKENS] = "compress_tokens",
};

// Sizes.

static struct arr_coc_part take(size_t *used, size_t alignment, size_t size)
{
    struct arr_coc_part part = {*used, size};
    *used = (*used + size + alignment - 1) / alignment * alignment;
    return part;
}

// Fills the layout for these sizes and this alignment of parts.
static void arr_coc_lay_out(const struct weir_arr_coc_sizes *sizes, size_t alignment,
                            struct arr_coc_layout *out)
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

static weir_status check_sizes(const struct weir_arr_coc_sizes *sizes, uint64_t max_pixels)
{
    if (sizes->side < 32 || sizes->side > 4096)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL,
                                    "side is %" PRIu32 "; it must be 32 … 4096", sizes->side);
    if (sizes->grid < 1 || sizes->grid > 256)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL, "grid is %" PRIu32 "; it must be 1 … 256",
                                    sizes->grid);
    if (sizes->side % sizes->grid)
        return weir__pattern_refuse(ARR_COC_LABEL, "choose a grid that divides the side",
                                    "side %" PRIu32 " is no multiple of grid %" PRIu32, sizes->side,
                                    sizes->grid);
    if (sizes->side / sizes->grid > 2896)
        return weir__pattern_refuse(ARR_COC_LABEL, "choose a larger grid",
                                    "a patch of %" PRIu32
                                    " pixels a side is too large; 2896 is the limit",
                                    sizes->side / sizes->grid);
    if (sizes->budget < 64 || sizes->budget > 1048576)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL,
                                    "budget is %" PRIu32 "; it must be 64 … 1048576",
                                    sizes->budget);
    if (max_pixels < 1 || max_pixels > UINT64_C(1) << 30)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL,
                                    "max_pixels is %" PRIu64 "; it must be 1 … 1073741824",
                                    max_pixels);
    return WEIR_OK;
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

void arr_coc_destroy_slot(struct arr_coc_slot *slot)
{
    if (slot->rgb != slot->rgb_host)
        weir_buffer_destroy(&slot->rgb);
    weir_buffer_destroy(&slot->rgb_host);
    weir_buffer_destroy(&slot->texture);
    if (slot->results != slot->results_host)
        weir_buffer_destroy(&slot->results);
    weir_buffer_destroy(&slot->results_host);
    free(slot);
}

static void destroy_slot(void *user, void *slot)
{
    (void)user;
    arr_coc_destroy_slot(slot);
}

static weir_status create_slot_buffers(weir_arr_coc *a, struct arr_coc_slot *slot)
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

weir_status arr_coc_create_slot(weir_arr_coc *a, struct arr_coc_slot **out_slot)
{
    struct arr_coc_slot *slot = calloc(1, sizeof *slot);
    if (!slot)
        return weir__pattern_no_memory(ARR_COC_LABEL, "the ARR-COC pipeline");
    const weir_status status = create_slot_buffers(a, slot);
    if (status < 0) {
        arr_coc_destroy_slot(slot);
        return status;
    }
    *out_slot = slot;
    return WEIR_OK;
}

static weir_status create_slot(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct arr_coc_slot *slot;
    (void)device;
    weir_status status = arr_coc_create_slot(user, &slot);
    if (status < 0)
        return status;
    status = arr_coc_submit_position(user, slot, index == 0);
    if (status < 0) {
        arr_coc_destroy_slot(slot);
        return status;
    }
    *out_slot = slot;
    return WEIR_OK;
}

static weir_status create_kernels(weir_arr_coc *a, const struct weir_arr_coc_params *given)
{
    TRY(weir_program_create(a->device,
                            WEIR_PARAMS(weir_program, .label = ARR_COC_LABEL,
                                        .bundle = &arr_coc_kernels),
                            &a->program));
    if (given->built)
        given->built(given->user);
    for (int i = 0; i < ARR_COC_KERNEL_COUNT; i++)
        TRY(weir_kernel_create(a->program, arr_coc_kernel_names[i], &a->kernels[i]));
    return WEIR_OK;
}

static weir_status upload_weights(weir_arr_coc *a, const struct weir_arr_coc_params *params)
{
    const size_t size = ARR_COC_PACK_FLOATS * sizeof(float);
    float *pack = malloc(size);
    if (!pack)
        return weir__pattern_no_memory(ARR_COC_LABEL, "the ARR-COC pipeline");
    arr_coc_pack(weir_arr_coc_weights_tensors(params->weights), params->query, params->query_size,
                 pack);
    const weir_status status = weir_upload(a->setup, a->weights, 0, pack, size);
    free(pack);
    return status;
}

// Everything that the stages' submits depend on, besides the slot.
static uint64_t size_of_frame(void *user, void *slot_pointer, void *frame)
{
    const struct arr_coc_slot *slot = slot_pointer;
    (void)user;
    (void)frame;
    return (uint64_t)slot->width << 32 | slot->height;
}

// Frames.

static weir_status check_image(const weir_arr_coc *a, const struct arr_coc_slot *slot)
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
    struct arr_coc_slot *slot = slot_pointer;
    struct weir_arr_coc_frame *frame = frame_pointer;
    void *rgb;

    weir_status status = weir_host_begin(slot->rgb_host, 0, a->rgb_size, WEIR_ACCESS_WRITE, &rgb);
    if (status < 0)
        return status;
    status = frame->load(frame->user, rgb, a->rgb_size, &slot->width, &slot->height);
    WEIR_IGNORE(weir_host_end(slot->rgb_host, 0, a->rgb_size, WEIR_ACCESS_WRITE));
    return status == WEIR_OK ? check_image(a, slot) : status;
}

static void fill_output(const weir_arr_coc *a, const struct arr_coc_slot *slot, const char *results,
                        struct weir_arr_coc_output *out)
{
    const struct arr_coc_layout *layout = &a->layout;
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
    struct arr_coc_slot *slot = slot_pointer;
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
    static const struct weir_pipeline_stage stages[WEIR_ARR_COC_STAGES_MAX] = {
        {.name = "upload", .submit = arr_coc_submit_upload},
        {.name = "texture", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = arr_coc_submit_texture},
        {.name = "relevance",
         .depends_on = WEIR_PIPELINE_AFTER(1),
         .submit = arr_coc_submit_relevance},
        {.name = "allocation",
         .depends_on = WEIR_PIPELINE_AFTER(2),
         .submit = arr_coc_submit_allocation},
        {.name = "download",
         .depends_on = WEIR_PIPELINE_AFTER(3),
         .submit = arr_coc_submit_download},
    };
    // Without copies, the three in the middle.
    static const struct weir_pipeline_stage direct[] = {
        {.name = "texture", .submit = arr_coc_submit_texture},
        {.name = "relevance",
         .depends_on = WEIR_PIPELINE_AFTER(0),
         .submit = arr_coc_submit_relevance},
        {.name = "allocation",
         .depends_on = WEIR_PIPELINE_AFTER(1),
         .submit = arr_coc_submit_allocation},
    };
    const struct weir_pipeline_params pipeline = {
        .struct_size = sizeof pipeline,
        .device = params->device,
        .label = ARR_COC_LABEL,
        .stages = a->direct ? direct : stages,
        .stage_count = a->direct ? sizeof direct / sizeof *direct : sizeof stages / sizeof *stages,
        .stage_size = sizeof(struct weir_pipeline_stage),
        .slot_count = params->slot_count,
        .slot_create = create_slot,
        .slot_destroy = destroy_slot,
        .full = params->full,
        .backlog = params->backlog,
        .prepare = prepare,
        .deliver = deliver,
        .user = a,
        .timing = params->timing,
        .graphs = params->graphs,
        .repeat = size_of_frame,
        .group = params->group,
        .prepare_threads = params->prepare_threads,
    };
    return weir_pipeline_create(&pipeline, &a->pipeline);
}

// What all slots share: the queue of the first work, kernels, buffers.
static weir_status create_shared(weir_arr_coc *a, const struct weir_arr_coc_params *params)
{
    const size_t weights_size = ARR_COC_PACK_FLOATS * sizeof(float);
    const size_t position_size = (size_t)4 * a->sizes.grid * a->sizes.grid * sizeof(float);

    TRY(weir_queue_create(a->device, WEIR_PARAMS(weir_queue, .label = "arr-coc/setup"), &a->setup));
    TRY(create_kernels(a, params));
    TRY(create_buffer(a, "weights", weights_size, WEIR_PLACE_DEVICE, &a->weights));
    return create_buffer(a, "position", position_size, WEIR_PLACE_DEVICE, &a->position);
}

static weir_status check_params(const struct weir_arr_coc_params *params)
{
    if (!params->device || !params->weights || !params->query)
        return weir__pattern_refuse(ARR_COC_LABEL, NULL,
                                    "a device, weights and a query are needed");
    size_t wanted = weir_arr_coc_weights_query_size(params->weights);
    if (params->query_size != wanted)
        return weir__pattern_refuse(ARR_COC_LABEL, "use the query that belongs to these weights",
                                    "the query has %zu numbers, the weights need %zu",
                                    params->query_size, wanted);
    for (size_t i = 0; i < wanted; i++)
        if (!isfinite(params->query[i]))
            return weir__pattern_refuse(ARR_COC_LABEL, "use a query of numbers",
                                        "number %zu of the query is %f", i,
                                        (double)params->query[i]);
    return WEIR_OK;
}

static weir_status abandon(weir_arr_coc *a)
{
    struct weir_error error = *weir_last_error();
    weir_arr_coc_destroy(&a);
    return weir_error_set(&error);
}

weir_status arr_coc_begin(const struct weir_arr_coc_params *params, weir_arr_coc **out_arr_coc)
{
    weir_arr_coc *a = calloc(1, sizeof *a);
    if (!a)
        return weir__pattern_no_memory(ARR_COC_LABEL, "the ARR-COC pipeline");
    const struct weir_limits *limits = weir_device_limits(params->device);
    const struct weir_arr_coc_sizes *sizes = &params->sizes;
    a->device = params->device;
    a->sizes.side = sizes->side ? sizes->side : 1024;
    a->sizes.grid = sizes->grid ? sizes->grid : 32;
    a->sizes.budget = sizes->budget ? sizes->budget : 4096;
    a->rgb_size = (size_t)(3 * params->max_pixels);
    a->direct = limits->unified_memory && limits->host_in_kernels;
    a->deliver = params->deliver;
    a->user = params->user;

    weir_status status = check_sizes(&a->sizes, params->max_pixels);
    if (status == WEIR_OK) {
        size_t alignment = (size_t)limits->argument_alignment_bytes;
        arr_coc_lay_out(&a->sizes, alignment > 16 ? alignment : 16, &a->layout);
        status = create_shared(a, params);
    }
    if (status < 0)
        return abandon(a);
    *out_arr_coc = a;
    return WEIR_OK;
}

weir_status weir_arr_coc_create(const struct weir_arr_coc_params *params,
                                weir_arr_coc **out_arr_coc)
{
    struct weir_arr_coc_params known = {.struct_size = sizeof known};
    weir_arr_coc *a;

    *out_arr_coc = NULL;
    weir_status status = weir__pattern_params("weir_arr_coc_create", "weir_arr_coc_params", params,
                                              &known, sizeof known);
    if (status < 0 || (status = check_params(&known)) < 0 ||
        (status = arr_coc_begin(&known, &a)) < 0)
        return status;
    if ((status = upload_weights(a, &known)) < 0 || (status = create_pipeline(a, &known)) < 0 ||
        (status = weir_queue_sync(a->setup, WEIR_FOREVER)) < 0)
        return abandon(a);
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

const struct weir_arr_coc_sizes *weir_arr_coc_get_sizes(const weir_arr_coc *arr_coc)
{
    return &arr_coc->sizes;
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
