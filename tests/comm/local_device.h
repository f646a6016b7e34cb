// What programs that are one rank of several processes have: a device, a queue and a buffer. An error ends the process.
#ifndef WEIR_TESTS_COMM_LOCAL_DEVICE_H
#define WEIR_TESTS_COMM_LOCAL_DEVICE_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

struct local {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
};

static inline void check(weir_status status)
{
    if (status < 0) {
        printf("%s\n", weir_last_error_text());
        exit(3);
    }
}

// The device is that of LOCAL_RANK, the rank's number on this machine; ranks share devices if there are fewer.
static inline void local_open(struct local *it, size_t size)
{
    const char *rank = getenv("LOCAL_RANK");
    char select[24];
    check(weir_open(NULL, &it->runtime));
    const size_t count = weir_device_count(it->runtime);
    snprintf(select, sizeof select, "%zu",
             rank && count > 0 ? (size_t)strtoul(rank, NULL, 10) % count : 0);
    check(weir_device_open(it->runtime,
                           WEIR_PARAMS(weir_device, .select = rank && count > 0 ? select : NULL),
                           &it->device));
    check(weir_queue_create(it->device, NULL, &it->queue));
    check(weir_buffer_create(it->device, WEIR_PARAMS(weir_buffer, .size = size), &it->buffer));
}

static inline void local_close(struct local *it)
{
    weir_buffer_destroy(&it->buffer), weir_queue_destroy(&it->queue);
    check(weir_device_close(&it->device));
    check(weir_close(&it->runtime));
}

#endif
