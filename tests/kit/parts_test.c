// The kit's errors from a driver's codes and from a compiler's log.
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/kit/cache.h>
#include <weir/kit/error.h>
#include <weir/kit/symbols.h>

#include "tests/support/host.h"
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

WEIR_TEST(KitError, CodesHaveTheirStatusNameAndRemedy)
{
    const struct weir_error detail = describe(2, NULL, "a buffer of %d bytes", 7);
    EXPECT_INT_EQ(detail.status, WEIR_ERROR_OUT_OF_MEMORY);
    EXPECT_STR_EQ(detail.message, "a buffer of 7 bytes");
    EXPECT_STR_EQ(detail.native_call, "driver_call");
    EXPECT_STR_EQ(detail.native_name, "NO_ROOM");
    EXPECT_INT_EQ(detail.native_code, 2);
    EXPECT_STR_EQ(detail.remedy, "use less");
    // The driver's name is preferred.
    EXPECT_STR_EQ(describe(2, "DRIVER_NO_ROOM", "x").native_name, "DRIVER_NO_ROOM");
    EXPECT_STR_EQ(describe(5, NULL, "x").native_name, "unknown error");
    EXPECT_STR_EQ(describe(5, NULL, "x").remedy, "");
    const struct weir_error unknown = describe(-77, NULL, "x");
    EXPECT_INT_EQ(unknown.status, WEIR_ERROR_DEVICE);
    EXPECT_STR_EQ(unknown.native_name, "unknown error");
    EXPECT_INT_EQ(unknown.native_code, -77);
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

WEIR_TEST(KitError, ABuildTellsTheLineThatMatters)
{
    struct test_host_state *host = test_host_reset();
    EXPECT_INT_EQ(weir_kit_build_report(&test_host, &failed), WEIR_ERROR_BUILD);
    EXPECT_INT_EQ(host->level, WEIR_LOG_ERROR);
    EXPECT_STR_EQ(host->message, failed.log);
    EXPECT_STR_EQ(host->error.message, "the program does not build with '-O2': "
                                       "x.cl:3: error: no such thing  \nmore");
    EXPECT_STR_EQ(host->error.native_name, "COMPILE_FAILED");
    EXPECT_INT_EQ(host->error.native_code, 9);

    struct weir_kit_build build = failed;
    test_host_reset();
    build.log = NULL;
    EXPECT_INT_EQ(weir_kit_build_report(&test_host, &build), WEIR_ERROR_BUILD);
    EXPECT_CONTAINS(host->error.message, "there is no log");
    EXPECT_STR_EQ(host->message, "");

    // The warnings of a good build are logged.
    test_host_reset();
    build = failed;
    build.failed = false;
    EXPECT_OK(weir_kit_build_report(&test_host, &build));
    EXPECT_INT_EQ(host->level, WEIR_LOG_INFO);
    EXPECT_STR_EQ(host->source, "third");
    EXPECT_UINT_EQ(host->error_count, 0);
}

// The kit's cache on disk: with a place, without one, and full.

WEIR_TEST(KitCache, WithoutAPlaceEverythingGoesOn)
{
    struct test_host_state *host = test_host_reset();
    void *data;
    size_t size;
    weir_kit_cache *cache = weir_kit_cache_open(&test_host, "third", "/dev/null/nowhere");
    EXPECT_NULL(cache);
    EXPECT_INT_EQ(host->level, WEIR_LOG_WARNING);
    EXPECT_STR_EQ(host->source, "third");
    EXPECT_CONTAINS(host->message, "/dev/null");
    weir_kit_cache_write(cache, "key", "binary", 6);
    EXPECT_FALSE(weir_kit_cache_read(cache, "key", &data, &size));
    EXPECT_UINT_EQ(size, 0);
    weir_kit_cache_close(&cache);
    EXPECT_INT_EQ(test_host_blocks(), 0);
}

WEIR_TEST(KitCache, WhatCannotBeKeptIsLogged)
{
    struct test_host_state *host = test_host_reset();
    const char *folder = weir_test_temp_dir();
    char entries[600];
    weir_kit_cache *cache = weir_kit_cache_open(&test_host, "third", folder);
    ASSERT_NOT_NULL(cache);
    snprintf(entries, sizeof entries, "%s/third", folder);
    ASSERT_INT_EQ(rmdir(entries), 0);
    weir_kit_cache_write(cache, "key", "binary", 6);
    EXPECT_INT_EQ(host->level, WEIR_LOG_WARNING);
    EXPECT_STR_EQ(host->source, "third");
    EXPECT_TRUE(host->message[0] != '\0');
    weir_kit_cache_close(&cache);
}

// Libraries and functions that are looked up at run time.

WEIR_TEST(Symbols, NamesTheFirstThatAreMissing)
{
    static const struct weir_kit_symbol missing[] = {
        {"cos", 0, false},     {"weir_a", 8, false},  {"weir_b", 16, true},  {"weir_c", 24, false},
        {"weir_d", 32, false}, {"weir_e", 40, false}, {"weir_f", 48, false}, {"weir_g", 56, false},
    };
    const char *const name = "libm.so.6";
    void *functions[8];
    char message[512];
    void *library = weir_kit_library_open(&name, 1, message, sizeof message);
    ASSERT_NOT_NULL(library);
    EXPECT_FALSE(
        weir_kit_symbols_load(library, name, missing, 8, functions, message, sizeof message));
    EXPECT_STR_EQ(message, "libm.so.6 lacks weir_a weir_c weir_d weir_e and 2 more functions");
}
