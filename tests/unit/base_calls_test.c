// Which functions of a text lead to another one.
#include "base/calls.h"

#include "tests/support/test.h"

#define CALLS(text, from) weir_calls((text), (from), "wait")

WEIR_TEST(BaseCalls, FindsCallsInBodies)
{
    static const char text[] = "__kernel void a(__global int *x)\n{\n    wait();\n}\n"
                               "kernel void b(int y) { x[0] = y; }\n";
    EXPECT_TRUE(CALLS(text, "a"));
    EXPECT_FALSE(CALLS(text, "b"));
    EXPECT_FALSE(weir_calls(text, "a", "sleep"));
}

WEIR_TEST(BaseCalls, FollowsFunctionsAndMacros)
{
    static const char text[] = "void outer(int);\n"
                               "static void inner(void) { if (1) { wait(); } }\n"
                               "#define STEP(x) do { \\\n    outer(x); \\\n} while (0)\n"
                               "void outer(int x) { inner(); }\n"
                               "kernel void a(void) { STEP(1); }\n"
                               "kernel void b(void) { step(1); }\n"
                               "void step(int x) { struct { int wait_; } y = {x}; }\n";
    EXPECT_TRUE(CALLS(text, "a"));
    EXPECT_TRUE(CALLS(text, "inner"));
    EXPECT_FALSE(CALLS(text, "b"));
    EXPECT_FALSE(CALLS(text, "step"));
}

WEIR_TEST(BaseCalls, SkipsCommentsAndStrings)
{
    EXPECT_FALSE(CALLS("void a(void) { /* wait(); \n } */ } // wait\n", "a"));
    EXPECT_FALSE(CALLS("void a(void) { print(\"wait } \\\" wait\"); c = '\\'' ; }\n", "a"));
    EXPECT_FALSE(CALLS("void a(void) { } /* wait", "a"));
    EXPECT_TRUE(CALLS("void a(void) { c = '{'; print(\"{\"); wait(); }\n", "a"));
}

WEIR_TEST(BaseCalls, ReadsNamesOfDefinitionsWithAttributes)
{
    static const char text[] =
        "__attribute__((always_inline)) void help(void) { wait(); }\n"
        "__kernel __attribute__((reqd_work_group_size(8, 4, 2))) void a(__global int *x)\n"
        "{\n    help();\n}\n"
        "__kernel __attribute__((reqd_work_group_size(8, 4, 2))) void b(__global int *x)\n"
        "{\n    __attribute__((opencl_unroll_hint)) for (;;) { }\n}\n";
    EXPECT_TRUE(CALLS(text, "a"));
    EXPECT_FALSE(CALLS(text, "b"));
}

WEIR_TEST(BaseCalls, CountsEveryBranch)
{
    EXPECT_TRUE(CALLS("#if 0\nvoid a(void) { wait(); }\n#else\nvoid a(void) { }\n#endif\n", "a"));
    EXPECT_TRUE(CALLS("void a(void)\n{\n#ifdef X\n    wait();\n#endif\n}\n", "a"));
}

// A kernel whose blocks wait must never be taken for one whose blocks do not.
WEIR_TEST(BaseCalls, IsTrueWhereItCannotTell)
{
    EXPECT_TRUE(CALLS("#define K(x) kernel void x##_k(void) { wait(); }\nK(a)\n", "a_k"));
    EXPECT_TRUE(CALLS("#if X\nvoid a(int x) {\n#else\nvoid a(long x) {\n#endif\n}\n"
                      "void b(void) { wait(); }\n",
                      "a"));
    EXPECT_TRUE(CALLS("void a(void) { } }\nvoid b(void) { wait(); }\n", "a"));
    EXPECT_FALSE(CALLS("K(a)\n", "a_k"));
}
