#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static void add_row(struct weir_table *table, const char *name, double value)
{
    weir_table_add(table, "%s", name);
    weir_table_add(table, "%.1f", value);
    weir_table_add(table, "ms");
}

WEIR_TEST(BaseTable, ColumnsStandBelowEachOther)
{
    struct weir_table table = {.alignment = "lrl"};
    struct weir_long_text text = {0};
    weir_long_text_add(&text, "times\n");
    add_row(&table, "copy", 1);
    add_row(&table, "a long name", 100.25);
    weir_table_end(&table, 2, &text);
    EXPECT_FALSE(text.failed);
    EXPECT_STR_EQ(text.text, "times\n"
                             "  copy           1.0  ms\n"
                             "  a long name  100.2  ms\n");
    EXPECT_SIZE_EQ(text.used, strlen(text.text));
    EXPECT_SIZE_EQ(table.count, 0);
    free(text.text);
}

WEIR_TEST(BaseTable, ACharacterOfSeveralBytesIsOneWide)
{
    struct weir_table table = {.alignment = "ll"};
    struct weir_long_text text = {0};
    weir_table_add(&table, "µs");
    weir_table_add(&table, "x");
    weir_table_add(&table, "abc");
    weir_table_add(&table, "y");
    weir_table_end(&table, 0, &text);
    EXPECT_STR_EQ(text.text, "µs   x\n"
                             "abc  y\n");
    free(text.text);
}

WEIR_TEST(BaseTable, CellsThatAreMissingAreEmpty)
{
    struct weir_table table = {.alignment = "lll"};
    struct weir_long_text text = {0};
    weir_table_add(&table, "a");
    weir_table_end(&table, 0, &text);
    EXPECT_STR_EQ(text.text, "a    \n");
    free(text.text);
}

// Labels stand in cells, and tables are printed.
WEIR_TEST(BaseTable, CellsAreEscaped)
{
    struct weir_table table = {.alignment = "ll"};
    struct weir_long_text text = {0};
    weir_table_add(&table, "%s", "a\x1b[2J\nb");
    weir_table_add(&table, "%s", "x");
    weir_table_add(&table, "c");
    weir_table_add(&table, "%s", "\xe2\x80\xae");
    weir_table_end(&table, 0, &text);
    weir_long_text_add_shown(&text, "d\n");
    EXPECT_STR_EQ(text.text, "a\\x1b[2J\\nb  x\nc            \\u202e\nd\\n");
    free(text.text);
}

WEIR_TEST(BaseTable, ManyRowsAndLongCells)
{
    struct weir_table table = {.alignment = "rl"};
    struct weir_long_text text = {0};
    char cell[3001];
    memset(cell, 'x', sizeof cell - 1);
    cell[sizeof cell - 1] = '\0';
    for (int i = 0; i < 100; i++) {
        weir_table_add(&table, "%d", i);
        weir_table_add(&table, "%s", cell);
    }
    weir_table_end(&table, 1, &text);
    EXPECT_FALSE(text.failed);
    EXPECT_SIZE_EQ(text.used, 100 * (1 + 2 + 2 + 3000 + 1));
    EXPECT_TRUE(strncmp(text.text, "  0  xxx", 8) == 0);
    free(text.text);
}
