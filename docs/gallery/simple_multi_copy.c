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

static void slot_create(struct slot *slot, weir_device *device)
{
    WEIR_CHECK(weir_queue_create(device, NULL, &slot->queue));
    WEIR_CHECK(weir_buffer_pair(device, BYTES, &slot->in, &slot->sent));
    WEIR_CHECK(weir_buffer_pair(device, BYTES, &slot->out, &slot->received));
}

static void slot_destroy(struct slot *s)
{
    weir_buffer_destroy(&s->in), weir_buffer_destroy(&s->out), weir_queue_destroy(&s->queue);
    weir_buffer_destroy(&s->sent), weir_buffer_destroy(&s->received);
}

static void submit(struct slot *slot, int frame, weir_kernel *add)
{
    const struct weir_extent n = {COUNT, 1, 1};
    weir_queue *q = slot->queue;
    weir_buffer *in = slot->in, *out = slot->out;
    int *sent;
    WEIR_CHECK(weir_host_whole(slot->sent, WEIR_ACCESS_WRITE, &sent));
    for (int i = 0; i < COUNT; i++)
        sent[i] = frame * i;
    WEIR_CHECK(weir_host_whole_end(slot->sent, WEIR_ACCESS_WRITE));
    WEIR_CHECK(weir_queue_copy(q, in, 0, slot->sent, 0, BYTES));
    WEIR_CHECK(weir_queue_launch_global(q, add, n, weir_whole_in(in), weir_whole_out(out), frame));
    WEIR_CHECK(weir_queue_copy(q, slot->received, 0, out, 0, BYTES));
}

static unsigned finish(struct slot *slot, int frame)
{
    unsigned wrong = 0;
    const int *received;
    WEIR_CHECK(weir_queue_sync(slot->queue, WEIR_FOREVER));
    WEIR_CHECK(weir_host_whole(slot->received, WEIR_ACCESS_READ, &received));
    for (int i = 0; i < COUNT; i++)
        wrong += received[i] != frame * i + frame;
    WEIR_CHECK(weir_host_whole_end(slot->received, WEIR_ACCESS_READ));
    return wrong;
}

int main(void)
{
    weir_device *device;
    weir_kernel *add;
    struct slot slots[SLOTS];
    unsigned wrong = 0;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_kernel_load(device, &simple_multi_copy_kernels, "add", &add));
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
    weir_kernel_destroy(&add), WEIR_CHECK(weir_device_close(&device));
    return wrong != 0;
}
