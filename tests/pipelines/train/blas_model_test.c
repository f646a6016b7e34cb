// Steps of a model with cuBLAS, on the tests' libcuda and libcublas: products run, and the sanitizers
// see that all that they read and write is there. No kernel of the model can run there, so the linker
// wraps launches, which do nothing, and kernels are one of the conformance suite's.
#include "kernels/conformance/conformance.h"
#include "tests/pipelines/train/rig.h"

weir_status __real_weir_program_create_at(weir_device *device,
                                          const struct weir_program_params *params,
                                          weir_program **out_program, const char *file, int line);
weir_status __wrap_weir_program_create_at(weir_device *device,
                                          const struct weir_program_params *params,
                                          weir_program **out_program, const char *file, int line);
weir_status __real_weir_kernel_create_at(weir_program *program, const char *name,
                                         weir_kernel **out_kernel, const char *file, int line);
weir_status __wrap_weir_kernel_create_at(weir_program *program, const char *name,
                                         weir_kernel **out_kernel, const char *file, int line);
weir_status __wrap_weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel,
                                        struct weir_extent grid, struct weir_extent block,
                                        const struct weir_argument *arguments, size_t count,
                                        const char *file, int line);
weir_status __wrap_weir_queue_launch_count_at(weir_queue *queue, weir_kernel *kernel, size_t items,
                                              const struct weir_argument *arguments, size_t count,
                                              const char *file, int line);

weir_status __wrap_weir_program_create_at(weir_device *device,
                                          const struct weir_program_params *params,
                                          weir_program **out_program, const char *file, int line)
{
    return __real_weir_program_create_at(device,
                                         WEIR_PARAMS(weir_program, .label = params->label,
                                                     .bundle = &conformance_kernels),
                                         out_program, file, line);
}

weir_status __wrap_weir_kernel_create_at(weir_program *program, const char *name,
                                         weir_kernel **out_kernel, const char *file, int line)
{
    return __real_weir_kernel_create_at(program, "scale", out_kernel, file, line);
}

weir_status __wrap_weir_queue_launch_at(weir_queue *queue, weir_kernel *kernel,
                                        struct weir_extent grid, struct weir_extent block,
                                        const struct weir_argument *arguments, size_t count,
                                        const char *file, int line)
{
    (void)queue, (void)kernel, (void)grid, (void)block;
    (void)arguments, (void)count, (void)file, (void)line;
    return WEIR_OK;
}

weir_status __wrap_weir_queue_launch_count_at(weir_queue *queue, weir_kernel *kernel, size_t items,
                                              const struct weir_argument *arguments, size_t count,
                                              const char *file, int line)
{
    (void)queue, (void)kernel, (void)items;
    (void)arguments, (void)count, (void)file, (void)line;
    return WEIR_OK;
}

// A number of the first gradient, which the backward pass writes last.
static void set_gradient(struct rig_scene *scene, float value)
{
    const struct weir_train_view view = scene->views[0];
    EXPECT_OK(weir_upload(scene->rig->queue, view.buffer, view.offset, &value, sizeof value));
}

static float get_gradient(struct rig_scene *scene)
{
    const struct weir_train_view view = scene->views[0];
    float value = -1;
    EXPECT_OK(weir_download(scene->rig->queue, &value, view.buffer, view.offset, sizeof value));
    return value;
}

// Bundles that were built without a toolkit have OpenCL C alone.
static bool has_cuda_images(void)
{
    for (uint32_t i = 0; i < conformance_kernels.image_count; i++)
        if (weir_image_sm(weir_bundle_image(&conformance_kernels, i)) > 0)
            return true;
    return false;
}

RIG_TEST(TrainBlasModel, TakesSteps)
{
    if (!has_cuda_images())
        WEIR_SKIP("the bundles of this build have no CUDA images");
    for (int element = WEIR_TRAIN_F32; element <= WEIR_TRAIN_BF16; element++) {
        own_scene scene = {0};
        struct weir_train_model_params params = rig_params(rig, RIG_CONVNET, 200);
        params.products = WEIR_TRAIN_CUBLAS;
        params.element = (weir_train_element)element;
        ASSERT_TRUE(rig_scene_open(&scene, rig, &params, 7));
        set_gradient(&scene, 1);
        for (int add = 0; add < 2; add++) {
            ASSERT_OK(weir_train_model_forward(scene.model, rig->queue, &scene.samples,
                                               (struct weir_train_view){scene.result, 0}, add));
            ASSERT_OK(weir_train_model_backward(scene.model, rig->queue, add, NULL, NULL));
        }
        // Of activations that nothing has set.
        EXPECT_DOUBLE_NE((double)get_gradient(&scene), 1);
    }
}
