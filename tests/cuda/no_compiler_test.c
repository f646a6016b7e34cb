// A machine that lacks the driver's OpenCL, and NVRTC.
#include "tests/cuda/rig.h"

static const char twice[] =
    "__kernel void twice(__global const uint *in, __global uint *out, uint n) {}\n";

WEIR_TEST(CudaNoCompiler, Opencl)
{
    weir_program *program;
    struct rig rig;
    if (!rig_start(&rig))
        return;
    const weir_status status =
        weir_program_create(rig.device, WEIR_PARAMS(weir_program, .source = twice), &program);
    EXPECT_INT_EQ(status, WEIR_ERROR_UNSUPPORTED);
    EXPECT_CONTAINS(weir_last_error_text(), "libnvidia-opencl.so.1, which cannot be loaded");
    EXPECT_CONTAINS(weir_last_error_text(), "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    weir_program_destroy(&program);
    rig_finish(&rig);
}
