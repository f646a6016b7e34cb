// cuBLAS on a device that is none of CUDA's.
#include "pipelines/train/blas.h"
#include "tests/pipelines/train/rig.h"

WEIR_TEST(TrainBlas, IsForCudaOnly)
{
    struct rig rig;
    struct weir_native_device native;
    struct train_blas *blas;
    ASSERT_TRUE(rig_open(&rig));
    ASSERT_OK(weir_device_get_native(rig.device, &native));
    if (weir_native_is(native.api, WEIR_NATIVE_CUDA)) {
        rig_close(&rig);
        WEIR_SKIP("this device is CUDA's");
    }
    EXPECT_INT_EQ(train_blas_open(rig.device, NULL, &blas), WEIR_ERROR_UNSUPPORTED);
    EXPECT_NULL(blas);
    EXPECT_CONTAINS(weir_last_error_text(), "the device is one of 'opencl', not of CUDA");
    EXPECT_CONTAINS(weir_last_error_text(), "let the library's kernels compute the products");
    rig_close(&rig);
}
