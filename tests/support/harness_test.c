// The harness from the side of a passing test; failing.c is the other side.

#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int evaluations;

static int next_value(void)
{
    return ++evaluations;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

WEIR_TEST(Assertions, PassOnWhatHolds)
{
    const int value = 3;
    EXPECT_TRUE(value == 3);
    EXPECT_FALSE(value == 4);
    EXPECT_INT_EQ(value, 3);
    EXPECT_INT_NE(value, -3);
    EXPECT_INT_LT(INTMAX_MIN, INTMAX_MAX);
    EXPECT_INT_LE(value, 3);
    EXPECT_INT_GT(value, -1);
    EXPECT_INT_GE(value, 3);
    EXPECT_UINT_EQ(UINT64_MAX, UINT64_MAX);
    EXPECT_UINT_GT(UINT64_MAX, 1U);
    EXPECT_UINT_EQ(sizeof value, sizeof(int));
    EXPECT_DOUBLE_LT(1.0, 1.5);
    EXPECT_DOUBLE_NE((double)NAN, (double)NAN);
    EXPECT_PTR_EQ(&value, &value);
    EXPECT_PTR_NE(&value, &evaluations);
    EXPECT_NULL(NULL);
    EXPECT_NOT_NULL(&value);
    EXPECT_STR_EQ("weir", "weir");
    EXPECT_STR_EQ(NULL, NULL);
    EXPECT_STR_NE("weir", NULL);
    EXPECT_CONTAINS("a weir holds", "weir");
    EXPECT_NOT_CONTAINS("a weir holds", "dam");
    EXPECT_NEAR(1.0, 1.25, 0.25);
    EXPECT_NEAR((double)INFINITY, (double)INFINITY, 0.0);
    EXPECT_MEM_EQ("abc", "abd", 2);
    EXPECT_MEM_EQ(NULL, NULL, 0);
}

WEIR_TEST(Assertions, EvaluateEachSideOnce)
{
    evaluations = 0;
    EXPECT_INT_EQ(next_value(), 1);
    ASSERT_INT_EQ(2, next_value());
    EXPECT_TRUE(next_value() == 3);
    EXPECT_INT_EQ(evaluations, 3);
}

static void table_body(void)
{
    const char *data = weir_test_data();
    EXPECT_STR_EQ(data, "from the table");
}

static char table_data[] = "from the table";
static struct weir_test table_test = {
    .suite = "Table",
    .name = "HasItsData",
    .file = __FILE__,
    .line = __LINE__,
    .run = table_body,
    .data = table_data,
};

__attribute__((constructor)) static void add_table(void)
{
    weir_test_add(&table_test);
}

WEIR_TEST(TempDir, IsNewEachTimeAndWritable)
{
    const char *first = weir_test_temp_dir();
    const char *second = weir_test_temp_dir();
    ASSERT_STR_NE(first, second);
    ASSERT_TRUE(is_folder(first));
    ASSERT_TRUE(is_folder(second));
    ASSERT_CONTAINS(first, getenv("TEST_TMPDIR"));

    char path[4096];
    snprintf(path, sizeof path, "%s/file", first);
    FILE *file = fopen(path, "w");
    ASSERT_NOT_NULL(file);
    EXPECT_INT_EQ(fclose(file), 0);
}

WEIR_TEST(Runfile, IsFound)
{
    const char *path = weir_test_runfile("tests/support/failing.c");
    FILE *file = fopen(path, "r");
    ASSERT_NOT_NULL(file);
    fclose(file);
}

WEIR_TEST(Environment, HasPrivateWritableFolders)
{
    const char *const names[] = {"HOME", "POCL_CACHE_DIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        weir_test_note("variable %s", names[i]);
        const char *folder = getenv(names[i]);
        ASSERT_NOT_NULL(folder);
        EXPECT_TRUE(is_folder(folder));
    }
    EXPECT_CONTAINS(getenv("HOME"), getenv("TEST_TMPDIR"));
}
