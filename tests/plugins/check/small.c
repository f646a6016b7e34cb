// small MODE: a program for the tests of `weir check`.
//
//     early   the host reads what a queue may still write
//     hints   a wait that orders nothing, and a thread that fills what another one copies: pthread_join() orders the
//             two, which the plugin is not told
//     killed  a missing wait, and a signal before the runtime is closed
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

enum {
    SIZE = 16
};

static weir_queue *a, *b;
static weir_buffer *host, *memory;

static void *fill(void *unused)
{
    void *pointer;
    (void)unused;
    WEIR_CHECK(weir_host_begin(host, 0, SIZE, WEIR_ACCESS_WRITE, &pointer));
    memset(pointer, 1, SIZE);
    WEIR_CHECK(weir_host_end(host, 0, SIZE, WEIR_ACCESS_WRITE));
    return NULL;
}

static void early(void)
{
    void *pointer;
    fill(NULL);
    WEIR_CHECK(weir_queue_fill(a, host, 0, SIZE, "\7", 1));
    WEIR_CHECK(weir_host_begin(host, 0, SIZE, WEIR_ACCESS_READ, &pointer));
    printf("%d\n", *(unsigned char *)pointer);
    WEIR_CHECK(weir_host_end(host, 0, SIZE, WEIR_ACCESS_READ));
    WEIR_CHECK(weir_queue_sync(a, WEIR_FOREVER));
}

static void hints(void)
{
    struct weir_event event;
    pthread_t thread;
    pthread_create(&thread, NULL, fill, NULL);
    pthread_join(thread, NULL);
    WEIR_CHECK(weir_queue_copy(a, memory, 0, host, 0, SIZE));
    WEIR_CHECK(weir_queue_record(a, &event));
    WEIR_CHECK(weir_queue_wait(b, event));
    WEIR_CHECK(weir_queue_wait(b, event));
    WEIR_CHECK(weir_queue_copy(b, host, 0, memory, 0, SIZE));
    WEIR_CHECK(weir_queue_sync(b, WEIR_FOREVER));
}

static void killed(void)
{
    WEIR_CHECK(weir_queue_fill(a, memory, 0, SIZE, "", 1));
    WEIR_CHECK(weir_queue_fill(b, memory, 0, SIZE, "", 1));
    raise(SIGTERM);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    weir_runtime *runtime;
    weir_device *device;
    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_queue_create(device, NULL, &a));
    WEIR_CHECK(weir_queue_create(device, NULL, &b));
    WEIR_CHECK(weir_buffer_create(
        device, WEIR_PARAMS(weir_buffer, .size = SIZE, .placement = WEIR_PLACE_HOST), &host));
    WEIR_CHECK(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = SIZE), &memory));
    (strcmp(mode, "early") == 0 ? early : strcmp(mode, "hints") == 0 ? hints : killed)();
    weir_buffer_destroy(&host), weir_buffer_destroy(&memory);
    weir_queue_destroy(&a), weir_queue_destroy(&b);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return 0;
}
