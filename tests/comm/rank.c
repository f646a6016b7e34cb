// One rank of a program in several processes: `rank STEPS` reduces STEPS times, and prints what came out, or why it did
// not. Ranks that fail are in tests/bench/failures.
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "tests/comm/local_device.h"

enum {
    N = 5000
};

static float numbers[N];

static void check(weir_status status)
{
    if (status < 0) {
        printf("%s\n", weir_last_error_text());
        exit(3);
    }
}

// Each step multiplies by the count of ranks.
static void run(weir_queue *queue, weir_comm *comm, weir_buffer *buffer, long steps)
{
    check(weir_upload(queue, buffer, 0, numbers, sizeof numbers));
    for (long step = 1; step <= steps; step++) {
        check(weir_queue_all_reduce(queue, comm, buffer, 0, buffer, 0, N, WEIR_F32, WEIR_SUM));
        check(weir_queue_sync(queue, WEIR_FOREVER));
    }
    check(weir_download(queue, numbers, buffer, 0, sizeof numbers));
    printf("rank %u of %u: %g\n", weir_comm_rank(comm), weir_comm_count(comm),
           (double)numbers[N - 1]);
}

int main(int argc, char **argv)
{
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *buffer;
    weir_comm *comm;
    for (int i = 0; i < N; i++)
        numbers[i] = 1;
    check(weir_open(NULL, &runtime));
    check(local_device_open(runtime, &device));
    check(weir_queue_create(device, NULL, &queue));
    check(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = sizeof numbers), &buffer));
    check(weir_comm_create(device, WEIR_PARAMS(weir_comm, .label = "grads"), &comm));
    run(queue, comm, buffer, argc > 1 ? strtol(argv[1], NULL, 10) : 1);
    weir_comm_destroy(&comm), weir_buffer_destroy(&buffer), weir_queue_destroy(&queue);
    check(weir_device_close(&device));
    check(weir_close(&runtime));
    return 0;
}
