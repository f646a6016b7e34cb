// The products that cuBLAS computes: the tests' libcublas on the tests' libcuda, or the real ones.
// WEIR_TEST_CUBLAS is the path of a libcublas.so that the dynamic linker does not find, and
// WEIR_TEST_FAKE says that these are the tests' own.
#include <math.h>
#include <stdlib.h>

#include "tests/pipelines/train/product_cases.h"

// NULL: the one that the linker finds.
static const char *cublas_path(void)
{
    const char *path = getenv("WEIR_TEST_CUBLAS");
    return path && *path ? path : NULL;
}

static weir_status open_blas(const struct rig *rig, struct train_blas **out_blas)
{
    return train_blas_open(rig->device, cublas_path(), out_blas);
}

RIG_TEST(TrainBlas, ProductsAreExact)
{
    struct train_engine engine = {NULL};
    ASSERT_OK(open_blas(rig, &engine.blas));
    check_products(rig, &engine);
    engine.bf16 = true;
    check_products(rig, &engine);
    train_blas_close(&engine.blas);
}

static void expect_not_opened(const char *path, weir_status wanted, const char *part)
{
    struct rig rig;
    struct train_blas *blas;
    ASSERT_TRUE(rig_open(&rig));
    EXPECT_INT_EQ(train_blas_open(rig.device, path, &blas), wanted);
    EXPECT_NULL(blas);
    EXPECT_CONTAINS(weir_last_error_text(), part);
    rig_close(&rig);
}

WEIR_TEST(TrainBlas, WithoutALibrary)
{
    expect_not_opened("/none/libcublas.so", WEIR_ERROR_UNSUPPORTED,
                      "the library cannot be opened: /none/libcublas.so");
    expect_not_opened("libm.so.6", WEIR_ERROR_UNSUPPORTED,
                      "the library lacks the function cublasCreate_v2");
}

WEIR_TEST(TrainBlas, ALibraryThatRefuses)
{
    struct rig rig;
    struct train_blas_product product = {.m = 1, .n = 1, .k = 1};
    ASSERT_TRUE(rig_open(&rig));
    if (!getenv("WEIR_TEST_FAKE")) {
        rig_close(&rig);
        WEIR_SKIP("only the tests' libcublas refuses");
    }
    ASSERT_INT_EQ(setenv("FAKE_CUBLAS", "create", 1), 0);
    expect_not_opened(NULL, WEIR_ERROR_DEVICE, "cuBLAS refused the device");
    ASSERT_INT_EQ(setenv("FAKE_CUBLAS", "multiply", 1), 0);
    ASSERT_OK(open_blas(&rig, &product.blas));
    EXPECT_FAILURE(weir_queue_native_array(rig.queue, train_blas_multiply, &product, NULL, 0),
                   WEIR_ERROR_DEVICE, "cuBLAS refused a product");
    EXPECT_STR_EQ(weir_last_error()->native_call, "cublasGemmEx");
    unsetenv("FAKE_CUBLAS");
    ASSERT_OK(weir_queue_recover(rig.queue));
    train_blas_close(&product.blas);
    rig_close(&rig);
}

// On a real GPU: the gradients of both ways.
WEIR_TEST(TrainBlas, GivesTheGradientsOfKernels)
{
    struct rig rig;
    float result[2];
    ASSERT_TRUE(rig_open(&rig));
    if (getenv("WEIR_TEST_FAKE")) {
        rig_close(&rig);
        WEIR_SKIP("the kernels of models need a GPU");
    }
    for (int network = 0; network < RIG_NETWORKS; network++) {
        float *gradients[2];
        struct rig_scene scene;
        struct weir_train_model_params params = rig_params(&rig, (enum rig_network)network, 64);
        params.cublas = cublas_path();
        for (int way = 0; way < 2; way++) {
            params.products = way ? WEIR_TRAIN_CUBLAS : WEIR_TRAIN_KERNELS;
            ASSERT_TRUE(rig_scene_open(&scene, &rig, &params, 7));
            ASSERT_TRUE(rig_scene_run(&scene, result));
            gradients[way] = rig_scene_gradients(&scene);
            rig_scene_close(&scene);
        }
        for (size_t i = 0; i < scene.parameters; i++)
            EXPECT_NEAR((double)gradients[0][i], (double)gradients[1][i],
                        1e-4 * (1 + fabs((double)gradients[0][i])));
        free(gradients[0]);
        free(gradients[1]);
    }
    rig_close(&rig);
}
