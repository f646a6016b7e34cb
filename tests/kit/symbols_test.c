// Libraries and functions that are looked up at run time.
#include <weir/kit/symbols.h>

#include "tests/support/test.h"

struct functions {
    double (*cos)(double);
    double (*nowhere)(double);
};

static const struct weir_kit_symbol table[] = {
    {"cos", offsetof(struct functions, cos), false},
    {"weir_is_nowhere", offsetof(struct functions, nowhere), true},
};

WEIR_TEST(Symbols, FillsATable)
{
    const char *const names[] = {"libweir_is_nowhere.so.9", "libm.so.6"};
    struct functions functions;
    char message[512];
    void *library = weir_kit_library_open(names, 2, message, sizeof message);
    ASSERT_NOT_NULL(library);
    ASSERT_TRUE(
        weir_kit_symbols_load(library, "libm.so.6", table, 2, &functions, message, sizeof message));
    EXPECT_DOUBLE_EQ(functions.cos(0.0), 1.0);
    EXPECT_TRUE(functions.nowhere == NULL);
}

WEIR_TEST(Symbols, NamesEveryLibraryThatIsMissing)
{
    const char *const names[] = {"libweir_is_nowhere.so.9", "libweir_is_nowhere.so"};
    char message[512];
    EXPECT_NULL(weir_kit_library_open(names, 2, message, sizeof message));
    EXPECT_CONTAINS(message, "libweir_is_nowhere.so.9: cannot open");
    EXPECT_CONTAINS(message, "; libweir_is_nowhere.so: cannot open");
}

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
