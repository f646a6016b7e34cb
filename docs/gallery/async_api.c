// The host counts while the device adds.
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "docs/gallery/async_api_kernels.h"

int main(void)
{
    const unsigned count = 1 << 20;
    const size_t bytes = count * sizeof(int);
    weir_device *device;
    weir_queue *queue;
    weir_kernel *add;
    weir_buffer *host, *memory;
    struct weir_event begin, end;
    unsigned long rounds = 0;
    int64_t elapsed_ns;
    int *numbers;

    WEIR_CHECK(weir_device_open(NULL, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .timing = true), &queue));
    WEIR_CHECK(weir_kernel_load(device, &async_api_kernels, "add", &add));
    WEIR_CHECK(weir_buffer_pair(device, bytes, &memory, &host));
    WEIR_CHECK(weir_host_whole(host, WEIR_ACCESS_WRITE, &numbers));
    memset(numbers, 0, bytes);
    WEIR_CHECK(weir_host_whole_end(host, WEIR_ACCESS_WRITE));

    WEIR_CHECK(weir_queue_record(queue, &begin));
    WEIR_CHECK(weir_queue_copy(queue, memory, 0, host, 0, bytes));
    WEIR_CHECK(weir_queue_launch_count(queue, add, count, weir_whole_inout(memory), 26, count));
    WEIR_CHECK(weir_queue_copy(queue, host, 0, memory, 0, bytes));
    WEIR_CHECK(weir_queue_record(queue, &end));

    while (WEIR_TRY(weir_event_query(end)) == WEIR_NOT_READY)
        rounds++; // what the host has to do
    WEIR_CHECK(weir_event_elapsed_ns(begin, end, &elapsed_ns));

    unsigned wrong = 0;
    WEIR_CHECK(weir_host_whole(host, WEIR_ACCESS_READ, &numbers));
    for (unsigned i = 0; i < count; i++)
        wrong += numbers[i] != 26;
    WEIR_CHECK(weir_host_whole_end(host, WEIR_ACCESS_READ));
    printf("%.3f ms on the device, %lu rounds on the host, %u wrong\n", (double)elapsed_ns * 1e-6,
           rounds, wrong);

    weir_buffer_destroy(&host), weir_buffer_destroy(&memory);
    weir_kernel_destroy(&add), weir_queue_destroy(&queue);
    WEIR_CHECK(weir_device_close(&device));
    return wrong != 0;
}
