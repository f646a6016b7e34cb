// Cuts the same window out of a series of pictures: upload, crop, download, with
// three frames in flight. Prints the windows' first pixels.
#include <stdio.h>
#include <stdlib.h>

#include "patterns/pipeline.h"

enum {
    WIDTH = 640,
    HEIGHT = 480,
    CUT = 64,
    FRAMES = 10
};

struct slot {
    weir_buffer *pinned, *picture, *window, *result;
};

static weir_status buffer(weir_device *device, size_t size, weir_placement placement,
                          weir_buffer **out_buffer)
{
    const struct weir_buffer_params params = {
        .struct_size = sizeof params,
        .size = size,
        .placement = placement,
    };
    return weir_buffer_create(device, &params, out_buffer);
}

static void slot_destroy(void *user, void *data)
{
    struct slot *slot = data;
    (void)user;
    weir_buffer_destroy(&slot->pinned);
    weir_buffer_destroy(&slot->picture);
    weir_buffer_destroy(&slot->window);
    weir_buffer_destroy(&slot->result);
    free(slot);
}

static weir_status slot_create(void *user, weir_device *device, uint32_t index, void **out_slot)
{
    struct slot *slot = calloc(1, sizeof *slot);
    weir_status status;
    (void)index;
    if (!slot)
        return WEIR_ERROR_OUT_OF_MEMORY;
    if ((status = buffer(device, WIDTH * HEIGHT, WEIR_PLACE_HOST, &slot->pinned)) ||
        (status = buffer(device, WIDTH * HEIGHT, WEIR_PLACE_DEVICE, &slot->picture)) ||
        (status = buffer(device, CUT * CUT, WEIR_PLACE_DEVICE, &slot->window)) ||
        (status = buffer(device, CUT * CUT, WEIR_PLACE_HOST, &slot->result))) {
        slot_destroy(user, slot);
        return status;
    }
    *out_slot = slot;
    return WEIR_OK;
}

// The host's part: here a frame is a number, and its picture a gradient.
static weir_status prepare(void *user, void *data, void *frame)
{
    struct slot *slot = data;
    void *pointer;
    (void)user;
    weir_status status =
        weir_host_begin(slot->pinned, 0, WIDTH * HEIGHT, WEIR_ACCESS_WRITE, &pointer);
    if (status != WEIR_OK)
        return status;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        ((unsigned char *)pointer)[i] = (unsigned char)(*(int *)frame * 20 + i % WIDTH / 4);
    return weir_host_end(slot->pinned, 0, WIDTH * HEIGHT, WEIR_ACCESS_WRITE);
}

static weir_status upload(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user, (void)frame;
    return weir_queue_copy(queue, slot->picture, 0, slot->pinned, 0, WIDTH * HEIGHT);
}

static weir_status crop(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    const struct weir_plane from = {slot->picture, 100 * WIDTH + 200, WIDTH};
    const struct weir_plane to = {slot->window, 0, CUT};
    (void)user, (void)frame;
    return weir_queue_copy_2d(queue, to, from, CUT, CUT);
}

static weir_status download(void *user, void *data, void *frame, weir_queue *queue)
{
    struct slot *slot = data;
    (void)user, (void)frame;
    return weir_queue_copy(queue, slot->result, 0, slot->window, 0, CUT * CUT);
}

static void deliver(void *user, void *frame, void *data, const struct weir_pipeline_result *result)
{
    struct slot *slot = data;
    void *pointer;
    if (result->status == WEIR_OK &&
        weir_host_begin(slot->result, 0, CUT * CUT, WEIR_ACCESS_READ, &pointer) == WEIR_OK) {
        unsigned char first = *(unsigned char *)pointer;
        WEIR_CHECK(weir_host_end(slot->result, 0, CUT * CUT, WEIR_ACCESS_READ));
        printf("frame %d: %d after %.3f ms\n", *(int *)frame, first,
               (double)result->latency_ns / 1e6);
        *(int *)user += first == *(int *)frame * 20 + 50;
    } else {
        printf("frame %d: %s\n", *(int *)frame,
               result->error ? result->error->message : weir_status_text(result->status));
    }
}

// Counts in `*out_right` the frames with the expected result.
static weir_status run(weir_device *device, int *out_right)
{
    int right = 0;
    static const struct weir_pipeline_stage stages[] = {
        {.name = "upload", .submit = upload},
        {.name = "crop", .depends_on = WEIR_PIPELINE_AFTER(0), .submit = crop},
        {.name = "download", .depends_on = WEIR_PIPELINE_AFTER(1), .submit = download},
    };
    const struct weir_pipeline_params params = {
        .struct_size = sizeof params,
        .device = device,
        .label = "crop",
        .stages = stages,
        .stage_count = 3,
        .stage_size = sizeof(struct weir_pipeline_stage),
        .slot_count = 3,
        .slot_create = slot_create,
        .slot_destroy = slot_destroy,
        .prepare = prepare,
        .deliver = deliver,
        .user = &right,
    };
    static int frames[FRAMES];
    weir_pipeline *pipeline;

    weir_status status = weir_pipeline_create(&params, &pipeline);
    for (int i = 0; i < FRAMES && status == WEIR_OK; i++) {
        frames[i] = i;
        status = weir_pipeline_submit(pipeline, &frames[i]);
    }
    if (status == WEIR_OK)
        status = weir_pipeline_drain(pipeline, WEIR_FOREVER);
    WEIR_CHECK(weir_pipeline_destroy(&pipeline));
    *out_right = right;
    return status;
}

int main(void)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    int right = 0;

    if (weir_open(NULL, &runtime) != WEIR_OK ||
        weir_device_open(runtime, NULL, &device) != WEIR_OK || run(device, &right) != WEIR_OK)
        fprintf(stderr, "%s\n", weir_last_error_text());
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return right == FRAMES ? 0 : 1;
}
