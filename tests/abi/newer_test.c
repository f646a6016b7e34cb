// clang-tidy: -Ibazel-bin/tests/abi/newer -DLIBRARY_IS_NEWER=0
// A program whose headers are newer than the library, and one whose library is as new: what the
// program sets in appended fields is refused or taken, and what it reads there is zero or set.
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

#include "kernels/conformance/conformance.h"
#include "tests/support/own.h"
#include "tests/support/test.h"

static weir_runtime *runtime;
static weir_device *device;

static bool set_up(void)
{
    runtime = NULL;
    device = NULL;
    EXPECT_OK(weir_open(NULL, &runtime));
    EXPECT_OK(weir_device_open(runtime, NULL, &device));
    return device;
}

static void tear_down(void)
{
    EXPECT_OK(weir_device_close(&device));
    EXPECT_OK(weir_close(&runtime));
}

#define NEWER_TEST(name) WEIR_TEST_BETWEEN(Newer, name, ASSERT_TRUE(set_up()), tear_down())

static bool is_zero(const uint64_t newer[4])
{
    return (newer[0] | newer[1] | newer[2] | newer[3]) == 0;
}

// A call whose params have something in a field that an older library lacks.
static void expect_tail(weir_status status)
{
    EXPECT_INT_EQ(status, LIBRARY_IS_NEWER ? WEIR_OK : WEIR_ERROR_INVALID);
    if (!LIBRARY_IS_NEWER)
        EXPECT_CONTAINS(weir_last_error()->message, "is not zero");
}

NEWER_TEST(ParamsThatTheLibraryLacksAreRefused)
{
    own_buffer buffer = NULL;
    own_queue queue = NULL;
    own_pool pool = NULL;
    own_program program = NULL;

    expect_tail(weir_buffer_create(device, WEIR_PARAMS(weir_buffer, .size = 16, .newer = {[3] = 1}),
                                   &buffer));
    expect_tail(weir_queue_create(device, WEIR_PARAMS(weir_queue, .newer = {[3] = 1}), &queue));
    expect_tail(weir_pool_create(device, WEIR_PARAMS(weir_pool, .newer = {[3] = 1}), &pool));
    expect_tail(weir_program_create(device,
                                    WEIR_PARAMS(weir_program, .bundle = &conformance_kernels,
                                                .newer = {[3] = 1}),
                                    &program));
}

NEWER_TEST(ParamsOfOpeningThatTheLibraryLacksAreRefused)
{
    own_runtime other = NULL;
    own_device twin = NULL;
    expect_tail(weir_open(WEIR_PARAMS(weir_open, .newer = {[3] = 1}), &other));
    expect_tail(weir_device_open(runtime, WEIR_PARAMS(weir_device, .newer = {[3] = 1}), &twin));
}

WEIR_TEST(Newer, SectionsAndKeysThatTheLibraryLacksAreRefused)
{
    struct weir_key keys[] = {
        {.name = "first", .type = WEIR_KEY_TEXT, .fallback = ""},
        {.name = "second", .type = WEIR_KEY_TEXT, .fallback = "", .newer = {[3] = 1}},
    };
    struct weir_section section = {.struct_size = sizeof section,
                                   .name = "mine",
                                   .keys = keys,
                                   .key_count = 2,
                                   .key_size = sizeof keys[0]};
    const struct weir_section *const sections[] = {&section};
    const struct weir_open_params params = {.struct_size = sizeof params,
                                            .sections = sections,
                                            .section_count = 1};
    own_runtime other = NULL;

    expect_tail(weir_open(&params, &other));
    EXPECT_OK(weir_close(&other));
    keys[1].newer[3] = 0;
    section.newer[3] = 1;
    expect_tail(weir_open(&params, &other));
    EXPECT_OK(weir_close(&other));
    section.newer[3] = 0;
    EXPECT_OK(weir_open(&params, &other));
}

// The plugin, of the same headers, sets those of limits; a library that lacks them hands none of it on.
NEWER_TEST(WhatIsHandedOutOrFilledIsZeroWhereTheLibraryLacksIt)
{
    own_program program = NULL;
    own_kernel kernel = NULL;
    struct weir_counters counters;
    struct weir_device_info info;

    EXPECT_INT_EQ(is_zero(weir_device_limits(device)->newer), !LIBRARY_IS_NEWER);
    EXPECT_TRUE(is_zero(weir_device_get_info(device)->newer));
    EXPECT_TRUE(is_zero(weir_load_report_entry(weir_runtime_report(runtime), 0)->newer));
    EXPECT_OK(weir_program_create(device, WEIR_PARAMS(weir_program, .bundle = &conformance_kernels),
                                  &program));
    EXPECT_OK(weir_kernel_create(program, "vector_add", &kernel));
    EXPECT_TRUE(is_zero(weir_kernel_get_info(kernel)->newer));
    EXPECT_STR_EQ(weir_signature_parameter(weir_kernel_get_signature(kernel), 2)->name, "sum");
    memset(&counters, 0xff, sizeof counters);
    weir_counters_read(&counters);
    EXPECT_TRUE(is_zero(counters.newer));
    memset(&info, 0xff, sizeof info);
    EXPECT_OK(weir_device_describe(runtime, 0, &info));
    EXPECT_TRUE(is_zero(info.newer));
}

WEIR_TEST(Newer, ErrorsKeepWhatTheLibraryHas)
{
    struct weir_error error = {.status = WEIR_ERROR_IO, .line = 7, .newer = {1, 1, 1, 1}};

    snprintf(error.message, sizeof error.message, "a message");
    EXPECT_INT_EQ(weir_error_set(&error), WEIR_ERROR_IO);
    EXPECT_STR_EQ(weir_last_error()->message, "a message");
    EXPECT_INT_EQ(weir_last_error()->line, 7);
    EXPECT_INT_EQ(is_zero(weir_last_error()->newer), !LIBRARY_IS_NEWER);
    weir_error_set(NULL);
    EXPECT_TRUE(is_zero(weir_last_error()->newer));
}
