// A program whose host reads what a queue may still write.
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

static void must(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

int main(void)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .size = 1,
                                              .placement = WEIR_PLACE_HOST};
    const unsigned char seven = 7;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    void *pointer;

    must(weir_open(NULL, &runtime));
    must(weir_device_open(runtime, NULL, &device));
    must(weir_queue_create(device, NULL, &queue));
    must(weir_buffer_create(device, &params, &buffer));
    must(weir_host_begin(buffer, 0, 1, WEIR_ACCESS_WRITE, &pointer));
    *(unsigned char *)pointer = 0;
    must(weir_host_end(buffer, 0, 1, WEIR_ACCESS_WRITE));
    must(weir_queue_fill(queue, buffer, 0, 1, &seven, 1));
    must(weir_host_begin(buffer, 0, 1, WEIR_ACCESS_READ, &pointer));
    printf("%d\n", *(unsigned char *)pointer);
    must(weir_host_end(buffer, 0, 1, WEIR_ACCESS_READ));
    must(weir_queue_sync(queue, WEIR_FOREVER));

    weir_buffer_destroy(&buffer), weir_queue_destroy(&queue);
    must(weir_device_close(&device));
    must(weir_close(&runtime));
    return 0;
}
