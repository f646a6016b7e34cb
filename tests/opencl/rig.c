#include "tests/opencl/rig.h"

#include "kernels/conformance/conformance.h"

void opencl_rig_begin(struct opencl_rig *rig, const char *settings)
{
    char text[1024];
    *rig =
        (struct opencl_rig){.shim = weir_test_symbol(OPENCL_RIG_LIBRARY, WEIR_TEST_OPENCL_SYMBOL)};
    snprintf(text, sizeof text, "[weir]\nbackend = opencl\n%s[opencl]\nlibrary = %s\ncache = 0\n",
             settings, OPENCL_RIG_LIBRARY);
    EXPECT_OK(weir_open(WEIR_PARAMS(weir_open, .config_path = "test.ini", .config_text = text,
                                    .module_path = weir_test_runfile("lib/weir")),
                        &rig->runtime));
}

void opencl_rig_open(struct opencl_rig *rig, const char *settings)
{
    opencl_rig_begin(rig, settings);
    EXPECT_OK(weir_device_open(rig->runtime, NULL, &rig->device));
    EXPECT_OK(weir_queue_create(rig->device, NULL, &rig->queues[0]));
    EXPECT_OK(weir_queue_create(rig->device, NULL, &rig->queues[1]));
    rig->buffer = test_buffer(rig->device, "buffer", OPENCL_RIG_BYTES, WEIR_PLACE_DEVICE);
    rig->other = test_buffer(rig->device, "other", OPENCL_RIG_BYTES, WEIR_PLACE_DEVICE);
    EXPECT_OK(weir_program_load(rig->device, &conformance_kernels, &rig->program));
    EXPECT_OK(weir_kernel_create(rig->program, "iota", &rig->iota));
}

void opencl_rig_open_as(struct opencl_rig *rig, unsigned bits)
{
    opencl_rig_begin(rig, "");
    rig->shim->play(bits);
    EXPECT_OK(weir_close(&rig->runtime));
    opencl_rig_open(rig, "");
}

void opencl_rig_close(struct opencl_rig *rig)
{
    rig->shim->fail_launch(0, 0);
    weir_kernel_destroy(&rig->iota);
    weir_program_destroy(&rig->program);
    weir_buffer_destroy(&rig->other);
    weir_buffer_destroy(&rig->buffer);
    weir_queue_destroy(&rig->queues[1]);
    weir_queue_destroy(&rig->queues[0]);
    if (rig->device)
        EXPECT_OK(weir_device_close(&rig->device));
    EXPECT_OK(weir_close(&rig->runtime));
    rig->shim->play(0);
}

weir_kernel *opencl_rig_kernel(const struct opencl_rig *rig,
                               const struct weir_program_params *params, const char *name)
{
    own_program program = NULL;
    weir_kernel *kernel = NULL;
    if (IS_OK(weir_program_create(rig->device, params, &program)))
        EXPECT_OK(weir_kernel_create(program, name, &kernel));
    return kernel;
}

void opencl_rig_launch(const struct opencl_rig *rig, weir_queue *queue, weir_buffer *buffer,
                       uint32_t first)
{
    EXPECT_OK(weir_queue_launch(queue, rig->iota, weir_dim(1, 1, 1),
                                weir_dim(OPENCL_RIG_COUNT, 1, 1),
                                weir_out(buffer, 0, OPENCL_RIG_BYTES), first,
                                (uint32_t)OPENCL_RIG_COUNT));
}

void opencl_rig_expect_numbers(weir_queue *queue, weir_buffer *buffer, size_t offset,
                               uint32_t first)
{
    uint32_t numbers[OPENCL_RIG_COUNT] = {0};
    EXPECT_OK(weir_download(queue, numbers, buffer, offset, sizeof numbers));
    for (uint32_t i = 0; i < OPENCL_RIG_COUNT; i++)
        EXPECT_UINT_EQ(numbers[i], first + i);
}

void opencl_rig_expect_works(const struct opencl_rig *rig, weir_queue *queue, uint32_t first)
{
    opencl_rig_launch(rig, queue, rig->buffer, first);
    opencl_rig_expect_numbers(queue, rig->buffer, 0, first);
}

struct weir_event opencl_rig_fail(const struct opencl_rig *rig, int status)
{
    rig->shim->fail_launch(1, status);
    opencl_rig_launch(rig, rig->queues[0], rig->buffer, 1);
    return test_record(rig->queues[0]);
}

void opencl_rig_recover(const struct opencl_rig *rig)
{
    for (uint32_t i = 0; i < 2; i++)
        EXPECT_OK(weir_queue_recover(rig->queues[i]));
    for (uint32_t i = 0; i < 2; i++)
        opencl_rig_expect_works(rig, rig->queues[i], 9 + i);
}
