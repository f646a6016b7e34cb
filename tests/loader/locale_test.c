// In a Turkish locale the upper case of 'i' is no 'I', and <ctype.h> follows the program's locale: names of
// variables and devices do not.
#define _POSIX_C_SOURCE 200809L // setenv

#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "tests/support/test.h"

#define NAME "tr_TR.UTF-8"

// Builds the locale, which few machines have. False: its source is missing.
static bool enter(void)
{
    const char *folder = getenv("TEST_TMPDIR");
    char command[1024];
    snprintf(command, sizeof command, "localedef -c -i tr_TR -f UTF-8 '%s/" NAME "' 2>&1",
             folder ? folder : "/tmp");
    if (setlocale(LC_ALL, NAME))
        return true;
    if (system(command) != 0)
        return false;
    setenv("LOCPATH", folder ? folder : "/tmp", 1);
    return setlocale(LC_ALL, NAME);
}

static weir_status open_null(weir_runtime **out_runtime)
{
    return weir_open(WEIR_PARAMS(weir_open, .config_path = "", .backend = "null", .plugins = "",
                                 .module_path = weir_test_runfile("backends/null")),
                     out_runtime);
}

WEIR_TEST(Locale, NamesOfVariablesAndDevicesAreAscii)
{
    weir_runtime *runtime;
    weir_device *device;
    if (!enter())
        WEIR_SKIP("localedef cannot make " NAME " here; package locales has its source");
    ASSERT_TRUE(toupper('i') != 'I');
    setenv("WEIR_NULL_DEVICES", "2", 1);
    ASSERT_OK(open_null(&runtime));
    EXPECT_UINT_EQ(weir_device_count(runtime), 2);
    EXPECT_OK(
        weir_device_open(runtime, WEIR_PARAMS(weir_device, .select = "NULL DEVICE 1"), &device));
    EXPECT_OK(weir_device_close(&device));
    EXPECT_OK(weir_close(&runtime));
    setlocale(LC_ALL, "C");
}
