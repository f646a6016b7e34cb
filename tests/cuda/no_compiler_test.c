// A machine that lacks the driver's OpenCL, or has it by way of libOpenCL alone, and lacks NVRTC.
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/rig.h"

static const char twice[] =
    "__kernel void twice(__global const uint *in, __global uint *out, uint n) {}\n";

WEIR_TEST(CudaNoCompiler, Opencl)
{
    const char *loader = getenv("WEIR_TEST_LOADER");
    const bool has_loader = loader && strcmp(loader, "1") == 0;
    weir_program *program;
    struct rig rig;
    if (!rig_start(&rig))
        return;
    const weir_status status =
        weir_program_create(rig.device, WEIR_PARAMS(weir_program, .source = twice), &program);
    EXPECT_INT_EQ(status, has_loader ? WEIR_OK : WEIR_ERROR_UNSUPPORTED);
    if (!has_loader) {
        EXPECT_CONTAINS(weir_last_error_text(), "libnvidia-opencl.so.1, which cannot be loaded");
        EXPECT_CONTAINS(weir_last_error_text(), "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    }
    weir_program_destroy(&program);
    rig_finish(&rig);
}
