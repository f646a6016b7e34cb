#include <stdio.h>
#include <weir/weir.h>

enum {
    BATCHES = 8,
    WORDS = 1024,
    BYTES = WORDS * sizeof(uint32_t)
};

// What would read a batch from a file, into one of the slots.
static void load(weir_buffer *slots, size_t slot, uint32_t batch)
{
    void *memory;
    WEIR_CHECK(weir_host_begin(slots, slot * BYTES, BYTES, WEIR_ACCESS_WRITE, &memory));
    for (size_t i = 0; i < WORDS; i++)
        ((uint32_t *)memory)[i] = 100 * (batch + 1);
    WEIR_CHECK(weir_host_end(slots, slot * BYTES, BYTES, WEIR_ACCESS_WRITE));
}

static void print(weir_buffer *results)
{
    void *memory;
    WEIR_CHECK(weir_host_begin(results, 0, BYTES, WEIR_ACCESS_READ, &memory));
    for (size_t i = 0; i < BATCHES; i++)
        printf("batch %zu: %u\n", i, (unsigned)((uint32_t *)memory)[i]);
    WEIR_CHECK(weir_host_end(results, 0, BYTES, WEIR_ACCESS_READ));
}

static void work(weir_queue *up, weir_queue *compute, weir_buffer *slots, weir_buffer *batch,
                 weir_buffer *results)
{
    struct weir_event copied[2], used[2];
    for (uint32_t i = 0; i < BATCHES; i++) {
        const size_t slot = i % 2;
#ifdef MENDED
        if (i >= 2) {
            WEIR_CHECK(weir_event_sync(copied[slot], WEIR_FOREVER)); // the host may load again
            WEIR_CHECK(weir_queue_wait(up, used[slot]));             // and so may the copy
        }
#endif
        load(slots, slot, i);
        WEIR_CHECK(weir_queue_copy(up, batch, slot * BYTES, slots, slot * BYTES, BYTES));
        WEIR_CHECK(weir_queue_record(up, &copied[slot]));
        WEIR_CHECK(weir_queue_wait(compute, copied[slot]));
        // In place of kernels: the result of a batch is its first word.
        WEIR_CHECK(weir_queue_copy(compute, results, i * sizeof(uint32_t), batch, slot * BYTES,
                                   sizeof(uint32_t)));
        WEIR_CHECK(weir_queue_record(compute, &used[slot]));
    }
    WEIR_CHECK(weir_queue_sync(compute, WEIR_FOREVER));
}

int main(void)
{
    const struct weir_buffer_params host = {.struct_size = sizeof host,
                                            .size = 2 * BYTES,
                                            .placement = WEIR_PLACE_HOST};
    const struct weir_buffer_params device_memory = {.struct_size = sizeof device_memory,
                                                     .size = 2 * BYTES};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *up, *compute;
    weir_buffer *slots, *batch, *results;

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &up));
    WEIR_CHECK(weir_queue_create(device, NULL, &compute));
    WEIR_CHECK(weir_buffer_create(device, &host, &slots));
    WEIR_CHECK(weir_buffer_create(device, &host, &results));
    WEIR_CHECK(weir_buffer_create(device, &device_memory, &batch));
    work(up, compute, slots, batch, results);
    print(results);
    weir_buffer_destroy(&slots), weir_buffer_destroy(&results), weir_buffer_destroy(&batch);
    weir_queue_destroy(&up), weir_queue_destroy(&compute);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return 0;
}
