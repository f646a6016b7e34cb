// A program that is ported from CUDA's default streams, in two steps. First it keeps its
// structure: the legacy queue takes the place of stream 0. Then it states what waits for
// what, and the two halves can overlap.
#include <stdio.h>
#include <weir/weir.h>

enum {
    BYTES = 1 << 16
};

static weir_buffer *buffer_of(weir_device *device, weir_placement placement)
{
    const struct weir_buffer_params params = {
        .struct_size = sizeof params,
        .size = BYTES,
        .placement = placement,
    };
    weir_buffer *buffer;
    WEIR_CHECK(weir_buffer_create(device, &params, &buffer));
    return buffer;
}

// Two streams work on one half each; a copy in stream 0 copies both to the host; a
// second round follows.
//
//     fill<<<..., left>>>(memory, 1);   fill<<<..., right>>>(memory + half, 2);
//     cudaMemcpyAsync(host, memory, bytes, cudaMemcpyDeviceToHost, 0);
//     fill<<<..., left>>>(memory, 3);   cudaStreamSynchronize(0);
static void as_it_was(weir_device *device, weir_queue *left, weir_queue *right, weir_buffer *memory,
                      weir_buffer *host)
{
    const unsigned char values[3] = {1, 2, 3};
    weir_queue *legacy;
    WEIR_CHECK(weir_legacy_queue(device, &legacy));
    WEIR_CHECK(weir_queue_fill(left, memory, 0, BYTES / 2, &values[0], 1));
    WEIR_CHECK(weir_queue_fill(right, memory, BYTES / 2, BYTES / 2, &values[1], 1));
    WEIR_CHECK(weir_queue_copy(legacy, host, 0, memory, 0, BYTES));         // waits for both
    WEIR_CHECK(weir_queue_fill(left, memory, 0, BYTES / 2, &values[2], 1)); // waits for the copy
    WEIR_CHECK(weir_queue_sync(legacy, WEIR_FOREVER));
}

// The same with explicit waits: the copy waits for the data that it reads, and work that
// overwrites the data waits for the copy. The right queue does not wait.
static void as_it_should_be(weir_device *device, weir_queue *left, weir_queue *right,
                            weir_buffer *memory, weir_buffer *host)
{
    const unsigned char values[3] = {1, 2, 3};
    struct weir_event filled[2], copied;
    weir_queue *copies; // this thread's queue: --default-stream per-thread
    WEIR_CHECK(weir_thread_queue(device, &copies));
    WEIR_CHECK(weir_queue_fill(left, memory, 0, BYTES / 2, &values[0], 1));
    WEIR_CHECK(weir_queue_record(left, &filled[0]));
    WEIR_CHECK(weir_queue_fill(right, memory, BYTES / 2, BYTES / 2, &values[1], 1));
    WEIR_CHECK(weir_queue_record(right, &filled[1]));
    for (int i = 0; i < 2; i++)
        WEIR_CHECK(weir_queue_wait(copies, filled[i]));
    WEIR_CHECK(weir_queue_copy(copies, host, 0, memory, 0, BYTES));
    WEIR_CHECK(weir_queue_record(copies, &copied));
    WEIR_CHECK(weir_queue_wait(left, copied));
    WEIR_CHECK(weir_queue_fill(left, memory, 0, BYTES / 2, &values[2], 1));
    WEIR_CHECK(weir_event_sync(copied, WEIR_FOREVER));
    WEIR_CHECK(weir_queue_sync(left, WEIR_FOREVER)); // or the last fill could fail unnoticed
}

static int is_right(weir_buffer *host)
{
    void *pointer;
    int right = 1;
    WEIR_CHECK(weir_host_begin(host, 0, BYTES, WEIR_ACCESS_READ, &pointer));
    const unsigned char *bytes = pointer;
    for (int i = 0; i < BYTES; i++)
        right = right && bytes[i] == (i < BYTES / 2 ? 1 : 2);
    WEIR_CHECK(weir_host_end(host, 0, BYTES, WEIR_ACCESS_READ));
    return right;
}

int main(void)
{
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *left, *right;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &left));
    WEIR_CHECK(weir_queue_create(device, NULL, &right));
    weir_buffer *memory = buffer_of(device, WEIR_PLACE_DEVICE);
    weir_buffer *host = buffer_of(device, WEIR_PLACE_HOST);

    as_it_was(device, left, right, memory, host);
    const int first = is_right(host);
    as_it_should_be(device, left, right, memory, host);
    const int second = is_right(host);
    printf("as it was: %s; as it should be: %s\n", first ? "right" : "wrong",
           second ? "right" : "wrong");

    // A program must not destroy a queue that the library created.
    weir_queue *mine;
    WEIR_CHECK(weir_thread_queue(device, &mine));
    weir_queue_destroy(&mine);
    printf("%s\n", weir_last_error()->message);

    weir_buffer_destroy(&memory), weir_buffer_destroy(&host);
    weir_queue_destroy(&left), weir_queue_destroy(&right);
    WEIR_CHECK(weir_device_close(&device)); // also destroys the thread's queue and the legacy
                                            // queue
    WEIR_CHECK(weir_close(&runtime));
    return first && second ? 0 : 1;
}
