// What an operation costs on the null backend, without the plugin `sim` and with it: a million copies
// in both directions over eight queues, with a wait of the host for every thousandth.
//
//     chain_bench
#define _GNU_SOURCE // clock_gettime

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weir/weir.h>

enum {
    OPERATIONS = 1000000,
    QUEUES = 8,
};

static void must(weir_status status)
{
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text()), exit(1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run(weir_queue **queues, weir_buffer *memory, weir_buffer *host)
{
    for (int i = 0; i < OPERATIONS; i++) {
        weir_queue *queue = queues[i % QUEUES];
        must(i % 2 ? weir_queue_copy(queue, memory, 0, host, 0, 256)
                   : weir_queue_copy(queue, host, 0, memory, 0, 256));
        if (i % 1000 > 0)
            continue;
        struct weir_event event;
        must(weir_queue_record(queue, &event));
        must(weir_event_sync(event, WEIR_FOREVER));
    }
}

static double measure(const char *plugins)
{
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "bench.ini",
                                            .config_text = "[weir]\nbackend = null\n"
                                                           "[sim]\ngpu = h200\n",
                                            .plugins = plugins};
    struct weir_buffer_params buffer = {.struct_size = sizeof buffer, .size = 256};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queues[QUEUES];
    weir_buffer *memory;
    weir_buffer *host;
    must(weir_open(&params, &runtime));
    must(weir_device_open(runtime, NULL, &device));
    must(weir_buffer_create(device, &buffer, &memory));
    buffer.placement = WEIR_PLACE_HOST;
    must(weir_buffer_create(device, &buffer, &host));
    for (int i = 0; i < QUEUES; i++)
        must(weir_queue_create(device, NULL, &queues[i]));
    const double begin = seconds();
    run(queues, memory, host);
    const double end = seconds();
    for (int i = 0; i < QUEUES; i++)
        weir_queue_destroy(&queues[i]);
    weir_buffer_destroy(&memory);
    weir_buffer_destroy(&host);
    must(weir_device_close(&device));
    must(weir_close(&runtime));
    return end - begin;
}

int main(void)
{
    const double without = measure("");
    const double with = measure("sim");
    printf("%d operations: %.3f s without sim, %.3f s with it\n", OPERATIONS, without, with);
    return 0;
}
