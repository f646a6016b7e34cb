#include <stdio.h>
#include <weir/weir.h>

enum {
    N = 1024
};

int main(void)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "grads"};
    const struct weir_buffer_params memory = {.struct_size = sizeof memory, .size = N * 4};
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_buffer *grads;
    weir_comm *comm;
    float numbers[N];

    WEIR_CHECK(weir_open(NULL, &runtime));
    WEIR_CHECK(weir_device_open(runtime, NULL, &device));
    WEIR_CHECK(weir_comm_create(device, &params, &comm)); // waits for the other ranks
    WEIR_CHECK(weir_queue_create(device, NULL, &queue));
    WEIR_CHECK(weir_buffer_create(device, &memory, &grads));

    for (int i = 0; i < N; i++)
        numbers[i] = (float)(i + (int)weir_comm_rank(comm));
    WEIR_CHECK(weir_upload(queue, grads, 0, numbers, sizeof numbers));
    WEIR_CHECK(weir_queue_all_reduce(queue, comm, grads, 0, grads, 0, N, WEIR_F32, WEIR_AVERAGE));
    WEIR_CHECK(weir_download(queue, numbers, grads, 0, sizeof numbers));
    printf("rank %u of %u: %g\n", weir_comm_rank(comm), weir_comm_count(comm), numbers[N - 1]);

    weir_buffer_destroy(&grads), weir_queue_destroy(&queue), weir_comm_destroy(&comm);
    WEIR_CHECK(weir_device_close(&device));
    WEIR_CHECK(weir_close(&runtime));
    return 0;
}
