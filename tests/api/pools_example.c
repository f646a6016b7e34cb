// Frames with a short-lived intermediate result. One queue computes it, another one
// copies and frees it; the pool reuses the same few blocks.
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

enum {
    FRAMES = 200,
    RESULTS = 4
};

// Sizes differ from frame to frame, and still share blocks.
static size_t size_of(int frame)
{
    return (size_t)(61500 + 37 * (frame % 100));
}

static void submit(weir_pool *pool, weir_queue *maker, weir_queue *taker, int frame,
                   weir_buffer *result, struct weir_event *out_done)
{
    const unsigned char value = (unsigned char)frame;
    const size_t size = size_of(frame);
    weir_buffer *middle;
    struct weir_event made;

    WEIR_CHECK(weir_pool_allocate(pool, maker, size, &middle));
    WEIR_CHECK(weir_queue_fill(maker, middle, 0, size, &value, 1)); // a kernel, in a real
                                                                    // program
    WEIR_CHECK(weir_queue_record(maker, &made));

    WEIR_CHECK(weir_queue_wait(taker, made));
    WEIR_CHECK(weir_queue_copy(taker, result, 0, middle, 0, size));
    WEIR_CHECK(weir_pool_free(taker, &middle)); // after the copy; `middle` is NULL now
    WEIR_CHECK(weir_queue_record(taker, out_done));
}

static int is_right(weir_buffer *result, int frame)
{
    const size_t size = size_of(frame);
    void *bytes;
    WEIR_CHECK(weir_host_begin(result, 0, size, WEIR_ACCESS_READ, &bytes));
    const unsigned char *first = bytes;
    const int right = first[0] == (unsigned char)frame && memcmp(first, first + 1, size - 1) == 0;
    WEIR_CHECK(weir_host_end(result, 0, size, WEIR_ACCESS_READ));
    return right;
}

int main(void)
{
    const struct weir_pool_params memory = {.struct_size = sizeof memory, .label = "middle"};
    const struct weir_buffer_params on_host = {
        .struct_size = sizeof on_host,
        .size = 65536,
        .placement = WEIR_PLACE_HOST,
    };
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *maker, *taker;
    weir_pool *pool;
    weir_buffer *results[RESULTS];
    struct weir_event done[RESULTS];
    struct weir_pool_statistics figures;
    int right = 0;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &maker));
    WEIR_CHECK(weir_queue_create(device, NULL, &taker));
    WEIR_CHECK(weir_pool_create(device, &memory, &pool));
    for (int i = 0; i < RESULTS; i++)
        WEIR_CHECK(weir_buffer_create(device, &on_host, &results[i]));

    for (int frame = 0; frame < FRAMES + RESULTS; frame++) {
        const int slot = frame % RESULTS;
        if (frame >= RESULTS) {
            WEIR_CHECK(weir_event_sync(done[slot], WEIR_FOREVER));
            right += is_right(results[slot], frame - RESULTS);
        }
        if (frame < FRAMES)
            submit(pool, maker, taker, frame, results[slot], &done[slot]);
    }

    weir_pool_read_statistics(pool, &figures);
    printf("%d of %d frames right; %s\n", right, FRAMES,
           figures.high_bytes <= (RESULTS + 1) * 65536 ? "a block for each frame under way"
                                                       : "more memory than frames under way need");
    for (int i = 0; i < RESULTS; i++)
        weir_buffer_destroy(&results[i]);
    weir_pool_destroy(&pool);
    weir_queue_destroy(&maker), weir_queue_destroy(&taker);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return right == FRAMES && figures.high_bytes <= (RESULTS + 1) * 65536 ? 0 : 1;
}
