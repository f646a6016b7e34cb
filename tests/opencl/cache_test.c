// The backend's messages about a cache that it does not use.
#include <stdio.h>
#include <sys/stat.h>

#include <weir/weir.h>

#include "tests/support/test.h"

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
