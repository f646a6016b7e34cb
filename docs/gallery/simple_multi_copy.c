// Sixteen frames through four slots: up, work and down at once.
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/simple_multi_copy_kernels.h"

enum {
    COUNT = 1 << 16,
    FRAMES = 16,
    SLOTS = 4,
    BYTES = COUNT * sizeof(int)
};

struct slot {
    weir_queue *queue;
    weir_buffer *in, *out; // on the device
    weir_buffer *sent, *received;
};

static weir_buffer *buffer(weir_device *device, weir_placement placement)
{
    weir_buffer *made;
    WEIR_CHECK(weir_buffer_create(device,
                                  WEIR_PARAMS(weir_buffer, .size = BYTES, .placement = placement),
                                  &made));
    return made;
}

static void slot_create(struct slot *slot, weir_device *device)
{
    WEIR_CHECK(weir_queue_create(device, NULL, &slot->queue));
    slot->in = buffer(device, WEIR_PLACE_DEVICE);
    slot->out = buffer(device, WEIR_PLACE_DEVICE);
    slot->sent = buffer(device, WEIR_PLACE_HOST);
    slot->received = buffer(device, WEIR_PLACE_HOST);
}

static void slot_destroy(struct slot *slot)
{
    weir_queue_destroy(&slot->queue);
    weir_buffer_destroy(&slot->in), weir_buffer_destroy(&slot->out);
    weir_buffer_destroy(&slot->sent), weir_buffer_destroy(&slot->received);
}

static void submit(struct slot *slot, int frame, weir_kernel *add)
{
    void *sent;
    WEIR_CHECK(weir_host_begin(slot->sent, 0, BYTES, WEIR_ACCESS_WRITE, &sent));
    for (int i = 0; i < COUNT; i++)
        ((int *)sent)[i] = frame * i;
    WEIR_CHECK(weir_host_end(slot->sent, 0, BYTES, WEIR_ACCESS_WRITE));
    WEIR_CHECK(weir_queue_copy(slot->queue, slot->in, 0, slot->sent, 0, BYTES));
    WEIR_CHECK(weir_queue_launch_count(slot->queue, add, COUNT, weir_whole_in(slot->in),
                                       weir_whole_out(slot->out), frame));
    WEIR_CHECK(weir_queue_copy(slot->queue, slot->received, 0, slot->out, 0, BYTES));
}

static unsigned finish(struct slot *slot, int frame)
{
    unsigned wrong = 0;
    void *received;
    WEIR_CHECK(weir_queue_sync(slot->queue, WEIR_FOREVER));
    WEIR_CHECK(weir_host_begin(slot->received, 0, BYTES, WEIR_ACCESS_READ, &received));
    for (int i = 0; i < COUNT; i++)
        wrong += ((const int *)received)[i] != frame * i + frame;
    WEIR_CHECK(weir_host_end(slot->received, 0, BYTES, WEIR_ACCESS_READ));
    return wrong;
}

int main(void)
{
    weir_runtime *runtime;
    weir_device *device;
    weir_program *program;
    weir_kernel *add;
    struct slot slots[SLOTS];
    unsigned wrong = 0;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_program_create(device,
                                   WEIR_PARAMS(weir_program, .bundle = &simple_multi_copy_kernels),
                                   &program));
    WEIR_CHECK(weir_kernel_create(program, "add", &add));
    for (int i = 0; i < SLOTS; i++)
        slot_create(&slots[i], device);

    for (int frame = 0; frame < FRAMES + SLOTS; frame++) {
        if (frame >= SLOTS)
            wrong += finish(&slots[frame % SLOTS], frame - SLOTS);
        if (frame < FRAMES)
            submit(&slots[frame % SLOTS], frame, add);
    }
    printf("%d frames, %u wrong\n", FRAMES, wrong);

    for (int i = 0; i < SLOTS; i++)
        slot_destroy(&slots[i]);
    weir_kernel_destroy(&add), weir_program_destroy(&program);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return wrong != 0;
}
