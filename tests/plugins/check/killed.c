// A program with a missing wait that ends by a signal before it closes its runtime.
#include <signal.h>
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
    const struct weir_buffer_params params = {.struct_size = sizeof params, .size = 16};
    const unsigned char zero = 0;
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *a, *b;
    weir_buffer *buffer;

    must(weir_open(NULL, &runtime));
    must(weir_device_open(runtime, NULL, &device));
    must(weir_queue_create(device, NULL, &a));
    must(weir_queue_create(device, NULL, &b));
    must(weir_buffer_create(device, &params, &buffer));
    must(weir_queue_fill(a, buffer, 0, 16, &zero, 1));
    must(weir_queue_fill(b, buffer, 0, 16, &zero, 1));
    raise(SIGTERM);
    return 0;
}
