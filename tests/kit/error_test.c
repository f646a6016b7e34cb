// The kit's errors from a driver's codes and from a compiler's log.
#include <weir/kit/error.h>

#include <stdarg.h>

#include "tests/kit/host.h"
#include "tests/support/test.h"

static const struct weir_kit_native table[] = {
    {2, WEIR_ERROR_OUT_OF_MEMORY, "NO_ROOM", "use less"},
    {5, WEIR_ERROR_UNSUPPORTED, NULL, NULL},
};
static const struct weir_kit_natives natives = {table, 2, "unknown error"};

static struct weir_error describe(int code, const char *name, const char *format, ...)
    WEIR_PRINTF(3, 4);

static struct weir_error describe(int code, const char *name, const char *format, ...)
{
    struct weir_error detail;
    va_list arguments;
    va_start(arguments, format);
    weir_kit_native_describe(&natives, &detail, "driver_call", code, name, format, arguments);
    va_end(arguments);
    return detail;
}

WEIR_TEST(KitError, KnownCodesHaveTheirStatusNameAndRemedy)
{
    const struct weir_error detail = describe(2, NULL, "a buffer of %d bytes", 7);
    EXPECT_INT_EQ(detail.status, WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_STR_EQ(detail.message, "a buffer of 7 bytes");
    EXPECT_STR_EQ(detail.native_call, "driver_call");
    EXPECT_STR_EQ(detail.native_name, "NO_ROOM");
    EXPECT_INT_EQ(detail.native_code, 2);
    EXPECT_STR_EQ(detail.remedy, "use less");
}

WEIR_TEST(KitError, TheDriversNameIsPreferred)
{
    EXPECT_STR_EQ(describe(2, "DRIVER_NO_ROOM", "x").native_name, "DRIVER_NO_ROOM");
    EXPECT_STR_EQ(describe(5, NULL, "x").native_name, "unknown error");
    EXPECT_STR_EQ(describe(5, NULL, "x").remedy, "");
}

WEIR_TEST(KitError, UnknownCodesAreErrorsOfTheDevice)
{
    const struct weir_error detail = describe(-77, NULL, "x");
    EXPECT_INT_EQ(detail.status, WEIR_ERROR_DEVICE);
    EXPECT_STR_EQ(detail.native_name, "unknown error");
    EXPECT_INT_EQ(detail.native_code, -77);
}

static const struct weir_kit_build failed = {
    .source = "third",
    .log = "warning: odd\nx.cl:3: error: no such thing  \nmore",
    .options = "-O2",
    .sought = "error:",
    .failed = true,
    .call = "compile",
    .code = 9,
    .name = "COMPILE_FAILED",
};

WEIR_TEST(KitError, ABuildThatFailsTellsTheLineThatMatters)
{
    struct kit_host *host = kit_host_reset();
    EXPECT_INT_EQ(weir_kit_build_report(&kit_test_host, &failed), WEIR_ERROR_BUILD);
    EXPECT_INT_EQ(host->level, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(host->message, failed.log);
    EXPECT_STR_EQ(host->error.message, "the program does not build with '-O2': "
                                       "x.cl:3: error: no such thing  \nmore");
    EXPECT_STR_EQ(host->error.native_name, "COMPILE_FAILED");
    EXPECT_INT_EQ(host->error.native_code, 9);
}

WEIR_TEST(KitError, ABuildWithoutALogSaysSo)
{
    struct kit_host *host = kit_host_reset();
    struct weir_kit_build build = failed;
    build.log = NULL;
    EXPECT_INT_EQ(weir_kit_build_report(&kit_test_host, &build), WEIR_ERROR_BUILD);
    EXPECT_CONTAINS(host->error.message, "there is no log");
    EXPECT_STR_EQ(host->message, "");
}

WEIR_TEST(KitError, WarningsOfAGoodBuildAreLogged)
{
    struct kit_host *host = kit_host_reset();
    struct weir_kit_build build = failed;
    build.failed = false;
    EXPECT_INT_EQ(weir_kit_build_report(&kit_test_host, &build), WEIR_OK);
    EXPECT_INT_EQ(host->level, WEIR_LOG_INFO);
    EXPECT_STR_EQ(host->source, "third");
    EXPECT_UINT_EQ(host->error_count, 0);
}
