// The cache of programs on disk: messages, and when it is used.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/opencl/rig.h"

static void keep_log(void *user, weir_log_level level, const char *source, const char *text)
{
    (void)level;
    snprintf(user, 512, "%s: %s", source, text);
}

WEIR_TEST(OpenclCache, ARefusedOneIsAWarning)
{
    char log[512] = "";
    char text[512];
    weir_runtime *runtime;
    const char *folder = weir_test_temp_dir();
    ASSERT_INT_EQ(chmod(folder, 0777), 0);
    snprintf(text, sizeof text, "[weir]\nbackend = opencl\n[opencl]\ncache_dir = %s\n", folder);
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "test.ini",
                                            .config_text = text,
                                            .module_path = weir_test_runfile("backends/opencl")};
    weir_log_set(keep_log, log, WEIR_LOG_WARNING);
    EXPECT_INT_EQ(weir_open(&params, &runtime), WEIR_OK);
    weir_log_set(NULL, NULL, WEIR_LOG_WARNING);
    EXPECT_CONTAINS(log, "opencl: ");
    EXPECT_CONTAINS(log, "other users may put their own folders in it");
    EXPECT_INT_EQ(weir_close(&runtime), WEIR_OK);
}

// Makes a program, and counts the driver's calls about binaries.
static void count_binaries(unsigned play, long *out_written, long *out_read)
{
    struct opencl_rig rig;
    opencl_rig_begin(&rig, ""); // for its shim
    EXPECT_OK(weir_close(&rig.runtime));
    rig.shim->play(play);
    const long written = rig.shim->calls("clGetProgramInfo");
    const long read = rig.shim->calls("clCreateProgramWithBinary");
    opencl_rig_begin(&rig, "");
    EXPECT_OK(weir_device_open(rig.runtime, NULL, &rig.device));
    EXPECT_OK(
        weir_program_create(rig.device,
                            WEIR_PARAMS(weir_program,
                                        .source = "kernel void two(global int *x) { *x = 2; }"),
                            &rig.program));
    *out_written = rig.shim->calls("clGetProgramInfo") - written;
    *out_read = rig.shim->calls("clCreateProgramWithBinary") - read;
    opencl_rig_close(&rig);
}

// PoCL keeps what it compiles itself. To hand out a binary it would compile every kernel once more.
WEIR_TEST(OpenclCache, IsLeftToPocl)
{
    long written;
    long read;
    setenv("WEIR_OPENCL_CACHE", "1", 1);
    setenv("WEIR_OPENCL_CACHE_DIR", weir_test_temp_dir(), 1);
    for (int i = 0; i < 2; i++) {
        count_binaries(0, &written, &read);
        EXPECT_INT_EQ(written, 0);
        EXPECT_INT_EQ(read, 0);
    }
    count_binaries(WEIR_TEST_OPENCL_ANOTHER_NAME, &written, &read);
    EXPECT_INT_EQ(written, 2); // its size, and the binary
    EXPECT_INT_EQ(read, 0);
    count_binaries(WEIR_TEST_OPENCL_ANOTHER_NAME, &written, &read);
    EXPECT_INT_EQ(written, 0);
    EXPECT_INT_EQ(read, 1);
    unsetenv("WEIR_OPENCL_CACHE");
    unsetenv("WEIR_OPENCL_CACHE_DIR");
}
