// The load report as data and as text.
#include "core/module/load_report.h"
#include "tests/support/test.h"

static const struct weir_load_entry missing = {
    .module = "cuda",
    .path = "lib/weir/weir_cuda.so",
    .outcome = WEIR_LOAD_MISSING,
    .reason = "there is no such file",
    .abi_wanted = 1,
};

static const struct weir_load_entry used = {
    .module = "null",
    .path = "lib/weir/weir_null.so",
    .outcome = WEIR_LOAD_USED,
    .abi_wanted = 1,
    .abi_seen = 1,
    .version = "0.1.0",
};

WEIR_TEST(LoadReport, KeepsCopiesInOrder)
{
    weir_load_report *report = weir__load_report_create();
    char name[] = "cuda";
    struct weir_load_entry entry = missing;

    entry.module = name;
    weir__load_report_add(report, &entry);
    name[0] = 'x';
    for (size_t i = 0; i < 20; i++)
        weir__load_report_add(report, &used);
    ASSERT_SIZE_EQ(weir_load_report_count(report), 21);
    EXPECT_STR_EQ(weir_load_report_entry(report, 0)->module, "cuda");
    EXPECT_STR_EQ(weir_load_report_entry(report, 0)->version, "");
    EXPECT_STR_EQ(weir_load_report_entry(report, 20)->module, "null");
    EXPECT_NULL(weir_load_report_entry(report, 21));
    weir_load_report_destroy(&report);
}

WEIR_TEST(LoadReport, Text)
{
    weir_load_report *report = weir__load_report_create();

    weir__load_report_set_origin(report, "weir.ini:3");
    weir__load_report_add(report, &missing);
    weir__load_report_add(report, &used);
    weir__load_report_set_driver(report, "driver 7", 2);
    weir__load_report_set_remedy(report, "install the CUDA module");
    EXPECT_STR_EQ(
        weir_load_report_text(report),
        "modules, requested by weir.ini:3:\n"
        "  cuda: missing, lib/weir/weir_cuda.so\n"
        "    there is no such file\n"
        "  null: used, lib/weir/weir_null.so\n"
        "    module ABI 1, this library's is 1; version 0.1.0; driver driver 7; 2 devices\n"
        "what to do: install the CUDA module\n");
    EXPECT_STR_EQ(weir_load_report_origin(report), "weir.ini:3");
    EXPECT_STR_EQ(weir_load_report_remedy(report), "install the CUDA module");
    weir_load_report_destroy(&report);
}

WEIR_TEST(LoadReport, WhatAModuleSaysAboutItself)
{
    static const char *const pairs[] = {"summary", "Runs nothing.", "needs", "libmade", NULL};
    static const char *const half[] = {"summary", NULL};
    weir_load_report *report = weir__load_report_create();
    struct weir_load_entry talks = used;

    talks.about = pairs;
    weir__load_report_add(report, &talks);
    talks.about = half;
    weir__load_report_add(report, &talks);
    EXPECT_STR_EQ(weir_load_report_entry(report, 0)->about[3], "libmade");
    EXPECT_STR_EQ(weir_load_report_text(report),
                  "modules:\n"
                  "  null: used, lib/weir/weir_null.so\n"
                  "    module ABI 1, this library's is 1; version 0.1.0\n"
                  "    summary: Runs nothing.\n"
                  "    needs: libmade\n"
                  "  null: used, lib/weir/weir_null.so\n"
                  "    module ABI 1, this library's is 1; version 0.1.0\n");
    weir_load_report_destroy(&report);
}

WEIR_TEST(LoadReport, RefusesTheLastUsedEntryOfAModule)
{
    weir_load_report *report = weir__load_report_create();
    struct weir_load_entry other = used;

    other.module = "other";
    weir__load_report_add(report, &used);
    weir__load_report_add(report, &used);
    weir__load_report_add(report, &other);
    weir__load_report_refuse(report, "null", "it does not open");
    weir__load_report_refuse(report, "unknown", "never seen");
    EXPECT_INT_EQ(weir_load_report_entry(report, 0)->outcome, WEIR_LOAD_USED);
    EXPECT_INT_EQ(weir_load_report_entry(report, 1)->outcome, WEIR_LOAD_REFUSED);
    EXPECT_STR_EQ(weir_load_report_entry(report, 1)->reason, "it does not open");
    EXPECT_INT_EQ(weir_load_report_entry(report, 2)->outcome, WEIR_LOAD_USED);
    EXPECT_CONTAINS(weir_load_report_text(report), "null: refused");
    weir_load_report_destroy(&report);
}

WEIR_TEST(LoadReport, LivesUntilTheLastOwner)
{
    weir_load_report *report = weir__load_report_create();
    weir_load_report *second = weir__load_report_retain(report);

    weir__load_report_add(report, &used);
    weir_load_report_destroy(&report);
    EXPECT_NULL(report);
    EXPECT_SIZE_EQ(weir_load_report_count(second), 1);
    weir_load_report_destroy(&second);
}

WEIR_TEST(LoadReport, AcceptsNull)
{
    weir_load_report *report = NULL;

    weir__load_report_add(report, &used);
    weir__load_report_set_driver(report, "x", 1);
    weir__load_report_refuse(report, "null", "x");
    weir__load_report_set_origin(report, "x");
    weir__load_report_set_remedy(report, "x");
    EXPECT_NULL(weir__load_report_retain(report));
    EXPECT_SIZE_EQ(weir_load_report_count(report), 0);
    EXPECT_NULL(weir_load_report_entry(report, 0));
    EXPECT_STR_EQ(weir_load_report_text(report), "");
    EXPECT_STR_EQ(weir_load_report_origin(report), "");
    EXPECT_STR_EQ(weir_load_report_remedy(report), "");
    weir_load_report_destroy(&report);
    weir_load_report_destroy(NULL);
}
