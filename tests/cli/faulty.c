// For fault_test.sh: a program that deals with an error as its argument says, well or badly.
//
//     faulty told|silent|ignore|crash|hang|stop|fail|retry|late
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

static const char *mode;

static void react(weir_status status)
{
    if (status >= 0 || strcmp(mode, "ignore") == 0)
        return;
    if (strcmp(mode, "crash") == 0)
        raise(SIGABRT);
    while (strcmp(mode, "hang") == 0)
        pause();
    if (strcmp(mode, "silent") == 0)
        fprintf(stderr, "something is wrong\n");
    else
        fprintf(stderr, "%s\n", weir_last_error_text());
    exit(strcmp(mode, "stop") == 0 ? 0 : 3);
}

// One copy; with "retry" a second time after an error.
static weir_status copy(weir_queue *queue, weir_buffer *to, weir_buffer *from)
{
    weir_status status = weir_queue_copy(queue, to, 0, from, 0, 4);
    if (status == WEIR_OK)
        status = weir_queue_sync(queue, WEIR_FOREVER);
    if (status == WEIR_OK || strcmp(mode, "retry") != 0)
        return status;
    react(weir_queue_recover(queue));
    react(weir_queue_copy(queue, to, 0, from, 0, 4));
    return weir_queue_sync(queue, WEIR_FOREVER);
}

static void work(weir_device *device)
{
    const struct weir_queue_params params = {.struct_size = sizeof params, .label = "work"};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory,
                                              .label = "memory",
                                              .size = 4};
    weir_queue *queue = NULL;
    weir_buffer *a = NULL, *b = NULL;
    react(weir_queue_create(device, &params, &queue));
    react(weir_buffer_create(device, &memory, &a));
    react(weir_buffer_create(device, &memory, &b));
    if (queue && a && b)
        react(copy(queue, b, a));
    weir_buffer_destroy(&a);
    weir_buffer_destroy(&b);
    weir_queue_destroy(&queue);
}

int main(int argc, char **argv)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    mode = argc > 1 ? argv[1] : "told";
    if (strcmp(mode, "fail") == 0) {
        fprintf(stderr, "it never works\n");
        return 5;
    }
    if (strcmp(mode, "late") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    if (weir_open(NULL, &runtime) < 0) {
        fprintf(stderr, "%s\n", weir_last_error_text());
        return 4;
    }
    react(weir_device_open(runtime, NULL, &device));
    if (device)
        work(device);
    WEIR_IGNORE(weir_device_close(&device));
    react(weir_close(&runtime));
    printf("done\n");
    return 0;
}
