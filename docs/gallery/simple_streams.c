// A kernel and the copy of its result, as a whole and in four parts.
#include <stdio.h>
#include <weir/weir.h>

#include "docs/gallery/simple_streams_kernels.h"

enum {
    COUNT = 1 << 20,
    PARTS = 4,
    STEPS = 5
};

static double run(weir_queue **queues, int parts, int value, weir_kernel *set, weir_buffer *host,
                  weir_buffer *memory)
{
    const unsigned count = COUNT / (unsigned)parts;
    const size_t size = count * sizeof(int);
    struct weir_event begin, end;
    int64_t elapsed_ns;
    WEIR_CHECK(weir_queue_record(queues[0], &begin));
    for (int i = 0; i < parts; i++) {
        const size_t at = (size_t)i * size;
        WEIR_CHECK(weir_queue_launch_count(queues[i], set, count, weir_out(memory, at, size), value,
                                           count, STEPS));
        WEIR_CHECK(weir_queue_copy(queues[i], host, at, memory, at, size));
    }
    for (int i = 1; i < parts; i++)
        WEIR_CHECK(weir_queue_after(queues[0], queues[i]));
    WEIR_CHECK(weir_queue_record(queues[0], &end));
    WEIR_CHECK(weir_event_sync(end, WEIR_FOREVER));
    WEIR_CHECK(weir_event_elapsed_ns(begin, end, &elapsed_ns));
    return (double)elapsed_ns * 1e-6;
}

static unsigned count_wrong(weir_buffer *host, int value)
{
    const int *numbers;
    unsigned wrong = 0;
    WEIR_CHECK(weir_host_whole(host, WEIR_ACCESS_READ, &numbers));
    for (unsigned i = 0; i < COUNT; i++)
        wrong += numbers[i] != STEPS * value;
    WEIR_CHECK(weir_host_whole_end(host, WEIR_ACCESS_READ));
    return wrong;
}

int main(void)
{
    weir_device *device;
    weir_queue *queues[PARTS];
    weir_kernel *set;
    weir_buffer *host, *memory;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    for (int i = 0; i < PARTS; i++)
        WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .timing = true), &queues[i]));
    WEIR_CHECK(weir_kernel_load(device, &simple_streams_kernels, "set", &set));
    WEIR_CHECK(weir_buffer_pair(device, COUNT * sizeof(int), &memory, &host));

    const double whole_ms = run(queues, 1, 3, set, host, memory);
    unsigned wrong = count_wrong(host, 3);
    const double parts_ms = run(queues, PARTS, 7, set, host, memory);
    wrong += count_wrong(host, 7);
    printf("whole %.3f ms, in parts %.3f ms, %u wrong\n", whole_ms, parts_ms, wrong);

    weir_buffer_destroy(&host), weir_buffer_destroy(&memory), weir_kernel_destroy(&set);
    for (int i = 0; i < PARTS; i++)
        weir_queue_destroy(&queues[i]);
    WEIR_CHECK(weir_device_close(&device));
    return wrong != 0;
}
