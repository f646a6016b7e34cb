// Tests in C, run and reported by GoogleTest.
//
//     #include "tests/support/test.h"
//
//     WEIR_TEST(Ring, KeepsOrder)
//     {
//         struct ring ring;
//         ASSERT_TRUE(ring_init(&ring, 4));
//         EXPECT_INT_EQ(ring_pop(&ring), 7);
//         ring_finish(&ring);
//     }
//
// with, in the BUILD file,
//
//     load("//tests/support:defs.bzl", "weir_c_test")
//     weir_c_test(name = "ring_test", srcs = ["ring_test.c"], deps = ["//base"])
//
// EXPECT_x reports a failure and continues; ASSERT_x also returns from the calling
// function, which must return void. Both print the source and the value of each
// side, and the C file and line. Each side is evaluated once.
//
// GoogleTest's options work: --gtest_filter=Ring.*, --gtest_list_tests,
// --gtest_repeat, --gtest_shuffle (through Bazel: --test_filter, --test_arg).

#ifndef WEIR_TESTS_SUPPORT_TEST_H
#define WEIR_TESTS_SUPPORT_TEST_H

#ifdef __cplusplus
#error "test.h is for tests in C; C++ tests use gtest/gtest.h"
#endif

#include "tests/support/test_shim.h"

// Defines and registers the test `suite`.`name`; a function body follows.
#define WEIR_TEST(suite_, name_)                                                    \
    static void weir_test_##suite_##_##name_(void);                                 \
    __attribute__((constructor)) static void weir_test_add_##suite_##_##name_(void) \
    {                                                                               \
        static struct weir_test test = {                                            \
            .suite = #suite_,                                                       \
            .name = #name_,                                                         \
            .file = __FILE__,                                                       \
            .line = __LINE__,                                                       \
            .run = weir_test_##suite_##_##name_,                                    \
        };                                                                          \
        weir_test_add(&test);                                                       \
    }                                                                               \
    static void weir_test_##suite_##_##name_(void)

// A test with a fixture: a body that gets `it_`, a pointer to a variable of `type_`. The test fails if `open_` is
// false; `close_` comes after it and the body, also if an assertion ended that.
#define WEIR_TEST_WITH(suite_, name_, type_, it_, open_, close_) \
    static void weir_test_with_##suite_##_##name_(type_ *it_);   \
    WEIR_TEST(suite_, name_)                                     \
    {                                                            \
        type_ weir_test_it_;                                     \
        type_ *const it_ = &weir_test_it_;                       \
        const bool weir_test_opened_ = (open_);                  \
        EXPECT_TRUE(weir_test_opened_);                          \
        if (weir_test_opened_)                                   \
            weir_test_with_##suite_##_##name_(it_);              \
        close_;                                                  \
    }                                                            \
    static void weir_test_with_##suite_##_##name_(type_ *it_)

// A test whose body runs between two statements. It is left out where the first one fails, and `close_` comes in any case.
#define WEIR_TEST_BETWEEN(suite_, name_, open_, close_)     \
    static void weir_test_between_##suite_##_##name_(void); \
    WEIR_TEST(suite_, name_)                                \
    {                                                       \
        open_;                                              \
        if (!weir_test_has_failed())                        \
            weir_test_between_##suite_##_##name_();         \
        close_;                                             \
    }                                                       \
    static void weir_test_between_##suite_##_##name_(void)

// A test whose body runs in a child: see weir_test_in_child().
#define WEIR_CHILD_TEST(suite_, name_)                                              \
    static void weir_test_child_##suite_##_##name_(void);                           \
    WEIR_TEST(suite_, name_)                                                        \
    {                                                                               \
        weir_test_in_child(__FILE__, __LINE__, weir_test_child_##suite_##_##name_); \
    }                                                                               \
    static void weir_test_child_##suite_##_##name_(void)

// Ends the test as skipped. The reason is a printf format with its arguments.
#define WEIR_SKIP(...)                                   \
    do {                                                 \
        weir_test_skip(__FILE__, __LINE__, __VA_ARGS__); \
        return;                                          \
    } while (0)

// Ends the test as failed. The reason is a printf format with its arguments.
#define WEIR_FAIL(...)                                   \
    do {                                                 \
        weir_test_fail(__FILE__, __LINE__, __VA_ARGS__); \
        return;                                          \
    } while (0)

#define WEIR_TEST_ASSERT_(check) \
    do {                         \
        if (!(check))            \
            return;              \
    } while (0)

// The sources come as strings, made where the argument is not yet expanded.
#define WEIR_TEST_TRUE_(text, a, want) weir_test_check_true(__FILE__, __LINE__, text, (a), (want))
#define WEIR_TEST_2_(kind, a_text, op, b_text, a, b) \
    weir_test_check_##kind(__FILE__, __LINE__, a_text, #op, b_text, (a), (b))
#define WEIR_TEST_3_(kind, a_text, b_text, a, b, c) \
    weir_test_check_##kind(__FILE__, __LINE__, a_text, b_text, (a), (b), (c))

#define EXPECT_TRUE(a) ((void)WEIR_TEST_TRUE_(#a, a, true))
#define ASSERT_TRUE(a) WEIR_TEST_ASSERT_(WEIR_TEST_TRUE_(#a, a, true))
#define EXPECT_FALSE(a) ((void)WEIR_TEST_TRUE_(#a, a, false))
#define ASSERT_FALSE(a) WEIR_TEST_ASSERT_(WEIR_TEST_TRUE_(#a, a, false))

#ifdef __clang_analyzer__
// For the analyzer, which cannot see into the checks.
#undef ASSERT_TRUE
#define ASSERT_TRUE(a) WEIR_TEST_ASSERT_(a)
#undef ASSERT_FALSE
#define ASSERT_FALSE(a) WEIR_TEST_ASSERT_(!(a))
#endif

// A call that returns WEIR_OK; where it does not, the library's error is told.
// IS_OK() is a condition, too.
#define IS_OK(call) weir_test_check_ok(__FILE__, __LINE__, #call, (call))
#define EXPECT_OK(call) ((void)weir_test_check_ok(__FILE__, __LINE__, #call, (call)))
#define ASSERT_OK(call) WEIR_TEST_ASSERT_(weir_test_check_ok(__FILE__, __LINE__, #call, (call)))
// The text of the library's last error has each of these parts.
#define EXPECT_ERROR(...)                                                       \
    do {                                                                        \
        const char *const parts_[] = {__VA_ARGS__};                             \
        for (size_t part_ = 0; part_ < sizeof parts_ / sizeof *parts_; part_++) \
            EXPECT_CONTAINS(weir_last_error_text(), parts_[part_]);             \
    } while (0)
// A call that returns `status`, with these parts in its error.
#define EXPECT_FAILURE(call, status, ...)                          \
    do {                                                           \
        (void)WEIR_TEST_2_(int, #call, ==, #status, call, status); \
        EXPECT_ERROR(__VA_ARGS__);                                 \
    } while (0)

// Signed integers of any width.
#define EXPECT_INT_EQ(a, b) ((void)WEIR_TEST_2_(int, #a, ==, #b, a, b))
#define ASSERT_INT_EQ(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(int, #a, ==, #b, a, b))
#define EXPECT_INT_NE(a, b) ((void)WEIR_TEST_2_(int, #a, !=, #b, a, b))
#define EXPECT_INT_LT(a, b) ((void)WEIR_TEST_2_(int, #a, <, #b, a, b))
#define ASSERT_INT_LT(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(int, #a, <, #b, a, b))
#define EXPECT_INT_LE(a, b) ((void)WEIR_TEST_2_(int, #a, <=, #b, a, b))
#define ASSERT_INT_LE(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(int, #a, <=, #b, a, b))
#define EXPECT_INT_GT(a, b) ((void)WEIR_TEST_2_(int, #a, >, #b, a, b))
#define ASSERT_INT_GT(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(int, #a, >, #b, a, b))
#define EXPECT_INT_GE(a, b) ((void)WEIR_TEST_2_(int, #a, >=, #b, a, b))
#define ASSERT_INT_GE(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(int, #a, >=, #b, a, b))

// Unsigned integers of any width, sizes and counts.
#define EXPECT_UINT_EQ(a, b) ((void)WEIR_TEST_2_(uint, #a, ==, #b, a, b))
#define ASSERT_UINT_EQ(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(uint, #a, ==, #b, a, b))
#define EXPECT_UINT_NE(a, b) ((void)WEIR_TEST_2_(uint, #a, !=, #b, a, b))
#define EXPECT_UINT_LT(a, b) ((void)WEIR_TEST_2_(uint, #a, <, #b, a, b))
#define ASSERT_UINT_LT(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(uint, #a, <, #b, a, b))
#define EXPECT_UINT_LE(a, b) ((void)WEIR_TEST_2_(uint, #a, <=, #b, a, b))
#define ASSERT_UINT_LE(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(uint, #a, <=, #b, a, b))
#define EXPECT_UINT_GT(a, b) ((void)WEIR_TEST_2_(uint, #a, >, #b, a, b))
#define ASSERT_UINT_GT(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(uint, #a, >, #b, a, b))
#define EXPECT_UINT_GE(a, b) ((void)WEIR_TEST_2_(uint, #a, >=, #b, a, b))
#define ASSERT_UINT_GE(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(uint, #a, >=, #b, a, b))

// Floating point, exactly; no comparison but NE holds for a NaN.
#define EXPECT_DOUBLE_EQ(a, b) ((void)WEIR_TEST_2_(double, #a, ==, #b, a, b))
#define ASSERT_DOUBLE_EQ(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(double, #a, ==, #b, a, b))
#define EXPECT_DOUBLE_LT(a, b) ((void)WEIR_TEST_2_(double, #a, <, #b, a, b))
#define EXPECT_DOUBLE_LE(a, b) ((void)WEIR_TEST_2_(double, #a, <=, #b, a, b))
#define EXPECT_DOUBLE_GT(a, b) ((void)WEIR_TEST_2_(double, #a, >, #b, a, b))

// Addresses.
#define EXPECT_PTR_EQ(a, b) ((void)WEIR_TEST_2_(ptr, #a, ==, #b, a, b))
#define EXPECT_PTR_NE(a, b) ((void)WEIR_TEST_2_(ptr, #a, !=, #b, a, b))

#define EXPECT_NULL(a) ((void)WEIR_TEST_2_(ptr, #a, ==, "NULL", a, NULL))
#define EXPECT_NOT_NULL(a) ((void)WEIR_TEST_2_(ptr, #a, !=, "NULL", a, NULL))
#define ASSERT_NOT_NULL(a) WEIR_TEST_ASSERT_(WEIR_TEST_2_(ptr, #a, !=, "NULL", a, NULL))

#ifdef __clang_analyzer__
#undef ASSERT_NOT_NULL
#define ASSERT_NOT_NULL(a) WEIR_TEST_ASSERT_((a) != NULL)
#endif

// Strings; NULL equals only NULL.
#define EXPECT_STR_EQ(a, b) ((void)WEIR_TEST_2_(str, #a, ==, #b, a, b))
#define ASSERT_STR_EQ(a, b) WEIR_TEST_ASSERT_(WEIR_TEST_2_(str, #a, ==, #b, a, b))
#define EXPECT_STR_NE(a, b) ((void)WEIR_TEST_2_(str, #a, !=, #b, a, b))

// The string `text` holds the string `part`; NULL holds nothing and is in nothing.
#define EXPECT_CONTAINS(text, part) ((void)WEIR_TEST_3_(contains, #text, #part, text, part, true))
#define EXPECT_NOT_CONTAINS(text, part) \
    ((void)WEIR_TEST_3_(contains, #text, #part, text, part, false))

// |a - b| <= tolerance.
#define EXPECT_NEAR(a, b, tolerance) ((void)WEIR_TEST_3_(near, #a, #b, a, b, tolerance))
#define ASSERT_NEAR(a, b, tolerance) WEIR_TEST_ASSERT_(WEIR_TEST_3_(near, #a, #b, a, b, tolerance))

// `size` bytes at `a` and `b`; the first difference is printed with its offset.
#define EXPECT_MEM_EQ(a, b, size) ((void)WEIR_TEST_3_(mem, #a, #b, a, b, size))
#define ASSERT_MEM_EQ(a, b, size) WEIR_TEST_ASSERT_(WEIR_TEST_3_(mem, #a, #b, a, b, size))

#endif
