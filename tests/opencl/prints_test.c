// What kernels print, of a driver with cl_arm_printf: the tests' library says that it has that, and hands
// over text when it is told to.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/libopencl/control.h"
#include "tests/support/test.h"

static const char library[] = "tests/support/libopencl/libOpenCL.so.1";
static char logged[1024];

static void keep_log(void *user, weir_log_level level, const char *source, const char *message)
{
    const size_t used = strlen(logged);
    (void)user;
    EXPECT_INT_EQ(level, WEIR_LOG_INFO);
    snprintf(logged + used, sizeof logged - used, "%s: %s|", source, message);
}

static const struct weir_test_opencl *shim(void)
{
    void *handle = dlopen(weir_test_runfile(library), RTLD_NOW | RTLD_LOCAL);
    const struct weir_test_opencl *found = handle ? dlsym(handle, WEIR_TEST_OPENCL_SYMBOL) : NULL;
    if (!found)
        weir_test_fail(__FILE__, __LINE__, "%s", dlerror());
    return found;
}

static weir_device *open_device(weir_runtime **out_runtime, int offered)
{
    char text[256];
    weir_device *device = NULL;
    shim()->offer_prints(offered);
    snprintf(text, sizeof text, "[weir]\nbackend = opencl\n[opencl]\nlibrary = %s\n", library);
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .config_path = "test.ini",
                                            .config_text = text,
                                            .module_path = weir_test_runfile("backends/opencl")};
    EXPECT_INT_EQ(weir_open(&params, out_runtime), WEIR_OK);
    EXPECT_INT_EQ(weir_device_open(*out_runtime, NULL, &device), WEIR_OK);
    return device;
}

static void hand_over(const char *text, size_t is_last)
{
    // No zero ends what a driver hands over.
    char bytes[64];
    const size_t size = strlen(text);
    memset(bytes, 'X', sizeof bytes);
    memcpy(bytes, text, size);
    EXPECT_TRUE(shim()->print(bytes, size, is_last));
}

WEIR_TEST(OpenclPrints, LinesInPieces)
{
    static const struct {
        const char *text;
        size_t is_last;
        const char *logged;
    } pieces[] = {
        {"one\ntwo\n", 0, "printf: one|printf: two|"},
        {"thr", 0, ""},
        {"", 0, ""},
        {"ee\nfo", 0, "printf: three|"},
        {"ur", 1, "printf: four|"},
        {"", 1, ""},
        {"\n\n", 1, "printf: |printf: |"},
        {"to the end", 0, ""},
    };
    weir_runtime *runtime;
    weir_log_set(keep_log, NULL, WEIR_LOG_INFO);
    weir_device *device = open_device(&runtime, 1);
    EXPECT_UINT_EQ(weir_device_limits(device)->printf_to_log, 1);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        logged[0] = '\0';
        hand_over(pieces[i].text, pieces[i].is_last);
        EXPECT_STR_EQ(logged, pieces[i].logged);
    }
    EXPECT_INT_EQ(weir_device_close(&device), WEIR_OK);
    EXPECT_STR_EQ(logged, "printf: to the end|");
    weir_log_set(NULL, NULL, WEIR_LOG_INFO);
    EXPECT_INT_EQ(weir_close(&runtime), WEIR_OK);
}

WEIR_TEST(OpenclPrints, WithoutTheExtension)
{
    weir_runtime *runtime;
    weir_device *device = open_device(&runtime, 0);
    EXPECT_UINT_EQ(weir_device_limits(device)->printf_to_log, 0);
    EXPECT_FALSE(shim()->print("x", 1, 1));
    EXPECT_INT_EQ(weir_device_close(&device), WEIR_OK);
    EXPECT_INT_EQ(weir_close(&runtime), WEIR_OK);
}
