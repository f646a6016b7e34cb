#include <stdio.h>
#include <weir/weir.h>

enum {
    FRAMES = 8,
    SLOTS = 2,
    BYTES = 1 << 20
};

static weir_queue *queue(weir_device *device, const char *label)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = label};
    weir_queue *queue;
    WEIR_CHECK(weir_queue_create(device, &params, &queue));
    return queue;
}

static weir_buffer *buffer(weir_device *device, const char *label, size_t size,
                           weir_placement placement)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = label,
                                              .size = size,
                                              .placement = placement};
    weir_buffer *buffer;
    WEIR_CHECK(weir_buffer_create(device, &params, &buffer));
    return buffer;
}

// Copies frames to the device on one queue and works on them on another, in two slots.
static void work(weir_queue *up, weir_queue *run, weir_buffer *frames, weir_buffer *slots,
                 weir_buffer *results)
{
    struct weir_event uploaded, done[SLOTS];

    for (size_t i = 0; i < FRAMES; i++) {
        const size_t slot = i % SLOTS;
        WEIR_CHECK(weir_queue_copy(up, slots, slot * BYTES, frames, i * BYTES, BYTES));
        WEIR_CHECK(weir_queue_record(up, &uploaded));
        WEIR_CHECK(weir_queue_wait(run, uploaded));
        WEIR_CHECK(weir_queue_copy(run, results, i * BYTES, slots, slot * BYTES, BYTES));
        WEIR_CHECK(weir_queue_record(run, &done[slot]));
    }
    WEIR_CHECK(weir_queue_sync(run, WEIR_FOREVER));
}

static size_t count_wrong(weir_queue *queue, weir_buffer *results)
{
    static unsigned char bytes[FRAMES * BYTES];
    size_t wrong = 0;

    WEIR_CHECK(weir_download(queue, bytes, results, 0, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        wrong += bytes[i] != i / BYTES;
    return wrong;
}

int main(void)
{
    weir_runtime *runtime;
    weir_device *device;
    void *pointer;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    weir_queue *up = queue(device, "up"), *run = queue(device, "run");
    weir_buffer *frames = buffer(device, "frames", FRAMES * BYTES, WEIR_PLACE_HOST);
    weir_buffer *slots = buffer(device, "slots", SLOTS * BYTES, WEIR_PLACE_DEVICE);
    weir_buffer *results = buffer(device, "results", FRAMES * BYTES, WEIR_PLACE_DEVICE);

    WEIR_CHECK(weir_host_begin(frames, 0, FRAMES * BYTES, WEIR_ACCESS_WRITE, &pointer));
    for (size_t i = 0; i < FRAMES * BYTES; i++)
        ((unsigned char *)pointer)[i] = (unsigned char)(i / BYTES);
    WEIR_CHECK(weir_host_end(frames, 0, FRAMES * BYTES, WEIR_ACCESS_WRITE));
    work(up, run, frames, slots, results);
    printf("%zu wrong bytes\n", count_wrong(run, results));

    weir_buffer_destroy(&frames), weir_buffer_destroy(&slots), weir_buffer_destroy(&results);
    weir_queue_destroy(&up), weir_queue_destroy(&run);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return 0;
}
