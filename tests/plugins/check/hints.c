// A program with a wait that orders nothing, and with a thread that fills what another one copies:
// pthread_join() orders the two, which the plugin is not told.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

static void must(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

static void *fill(void *user)
{
    void *pointer;
    must(weir_host_begin(user, 0, 16, WEIR_ACCESS_WRITE, &pointer));
    *(unsigned char *)pointer = 1;
    must(weir_host_end(user, 0, 16, WEIR_ACCESS_WRITE));
    return NULL;
}

int main(void)
{
    const struct weir_buffer_params host = {.struct_size = sizeof host,
                                            .size = 16,
                                            .placement = WEIR_PLACE_HOST};
    const struct weir_buffer_params device_memory = {.struct_size = sizeof host, .size = 16};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *a, *b;
    weir_buffer *from, *to;
    struct weir_event event;
    pthread_t thread;

    must(weir_open(NULL, &runtime));
    must(weir_device_open(runtime, NULL, &device));
    must(weir_queue_create(device, NULL, &a));
    must(weir_queue_create(device, NULL, &b));
    must(weir_buffer_create(device, &host, &from));
    must(weir_buffer_create(device, &device_memory, &to));
    pthread_create(&thread, NULL, fill, from);
    pthread_join(thread, NULL);
    must(weir_queue_copy(a, to, 0, from, 0, 16));
    must(weir_queue_record(a, &event));
    must(weir_queue_wait(b, event));
    must(weir_queue_wait(b, event));
    must(weir_queue_copy(b, from, 0, to, 0, 16));
    must(weir_queue_sync(b, WEIR_FOREVER));

    weir_buffer_destroy(&from), weir_buffer_destroy(&to);
    weir_queue_destroy(&a), weir_queue_destroy(&b);
    must(weir_device_close(&device));
    must(weir_close(&runtime));
    return 0;
}
