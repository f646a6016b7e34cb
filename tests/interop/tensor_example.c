// Passes a Weir buffer to another library as a DLPack tensor of 2 x 3 floats, and takes
// one back. The other library is this program: it adds up the elements.
#include <dlpack/dlpack.h>
#include <stdio.h>

#include <weir/weir.h>

static float sum_and_drop(DLManagedTensor *managed)
{
    const DLTensor *tensor = &managed->dl_tensor;
    const float *values = (const float *)((const char *)tensor->data + tensor->byte_offset);
    float sum = 0;
    for (int64_t row = 0; row < tensor->shape[0]; row++)
        for (int64_t column = 0; column < tensor->shape[1]; column++)
            sum += values[row * tensor->strides[0] + column * tensor->strides[1]];
    managed->deleter(managed); // Weir may free the memory now
    return sum;
}

static weir_status run(weir_device *device, weir_queue *queue)
{
    const int64_t shape[] = {2, 3};
    const float half = 0.5f;
    const struct weir_buffer_params params = {
        .struct_size = sizeof params,
        .size = 6 * sizeof half,
        .placement = WEIR_PLACE_HOST,
    };
    struct weir_tensor tensor = {
        .struct_size = sizeof tensor,
        .element = WEIR_ELEMENT_FLOAT,
        .bits = 32,
        .dimensions = 2,
        .shape = shape,
    };
    struct weir_tensor back = {.struct_size = sizeof back};
    DLManagedTensor *first = NULL;
    DLManagedTensor *second = NULL;
    weir_status status;
    if ((status = weir_buffer_create(device, &params, &tensor.buffer)) ||
        (status = weir_queue_fill(queue, tensor.buffer, 0, params.size, &half, sizeof half)) ||
        (status = weir_queue_sync(queue, WEIR_FOREVER)) || // the consumer does not wait
        (status = weir_dlpack_export(&tensor, &first)) ||
        (status = weir_dlpack_export(&tensor, &second)))
        return status;

    weir_buffer_destroy(&tensor.buffer); // the tensors hold the memory
    printf("the sum is %.1f\n", (double)sum_and_drop(first));
    if ((status = weir_dlpack_import(device, "back", second, &back)) < 0)
        return status;
    printf("%zu bytes came back\n", weir_buffer_size(back.buffer));
    weir_buffer_destroy(&back.buffer); // also frees the second tensor and the first buffer
    return WEIR_OK;
}

int main(void)
{
    weir_runtime *runtime = NULL;
    weir_device *device = NULL;
    weir_queue *queue = NULL;
    weir_status status = weir_open(NULL, &runtime);
    if (status == WEIR_OK)
        status = weir_device_open(runtime, NULL, &device);
    if (status == WEIR_OK)
        status = weir_queue_create(device, NULL, &queue);
    if (status == WEIR_OK)
        status = run(device, queue);
    if (status < 0)
        fprintf(stderr, "%s\n", weir_last_error_text());
    weir_queue_destroy(&queue);
    if (weir_device_close(&device) < 0 || weir_close(&runtime) < 0)
        status = weir_last_error()->status;
    return status == WEIR_OK ? 0 : 1;
}
