// A program that ends at its first error; its argument names the call that does not return WEIR_OK.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

static weir_status wait_for(weir_queue *queue, bool ready)
{
    return ready ? weir_queue_sync(queue, WEIR_FOREVER) : WEIR_TIMEOUT;
}

static weir_status own_error(void)
{
    return WEIR_ERROR_NOT_FOUND;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;

    WEIR_CHECK(weir_open(WEIR_PARAMS(weir_open, .backend = "null"), &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, WEIR_PARAMS(weir_queue, .label = "copy"), &queue));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = 64), &buffer));
    WEIR_CHECK(wait_for(queue, strcmp(mode, "timeout") != 0));
    if (WEIR_TRY(wait_for(queue, strcmp(mode, "try") != 0)) == WEIR_TIMEOUT)
        puts("late");
    if (strcmp(mode, "error") == 0)
        WEIR_CHECK(weir_queue_copy(queue, buffer, 60, buffer, 0, 8));
    if (strcmp(mode, "own") == 0)
        (void)WEIR_TRY(own_error());
    weir_buffer_destroy(&buffer);
    weir_queue_destroy(&queue);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    puts("done");
    return 0;
}
