// The C side of GoogleTest: what the macros of test.h call. Tests include test.h; a header with
// additional assertions needs only weir_test_fail().
//
// Threads: the checks and weir_test_fail() may be called from any thread; the
// rest from the thread that runs the test.

#ifndef WEIR_TESTS_SUPPORT_TEST_SHIM_H
#define WEIR_TESTS_SUPPORT_TEST_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One test. WEIR_TEST defines it in static storage, and a program that makes
// its tests from a table may call weir_test_add() itself, before main's
// weir_test_main() runs. The strings and `test` itself must stay; `data` is
// the caller's and is reached through weir_test_data().
struct weir_test {
    const char *suite;
    const char *name;
    const char *file;
    int line;
    void (*run)(void);
    void *data;
    struct weir_test *next;
};

void weir_test_add(struct weir_test *test);

// The `data` of the running test.
void *weir_test_data(void);

// Reports a failure of the running test at `file`:`line`. The test goes on: a
// macro that should end it returns after the call. For assertions of other
// areas, whose macro is WEIR_TEST_ASSERT_(check_ok(__FILE__, __LINE__, #a, (a))):
//
//     static inline bool check_ok(const char *file, int line, const char *text, weir_status status)
//     {
//         if (status != WEIR_OK)
//             weir_test_fail(file, line, "%s is %s", text, weir_status_name(status));
//         return status == WEIR_OK;
//     }
void weir_test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Marks the running test as skipped; WEIR_SKIP also returns from it.
void weir_test_skip(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Sets a line that every later failure of this thread in this test repeats, for
// loops over a table: weir_test_note("row %zu", i). NULL removes it; it is gone
// when the next test starts.
void weir_test_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// True once the running test has failed.
bool weir_test_has_failed(void);

// Runs `body` in a child of this process, which ends as main() does, so that a sanitizer checks for leaks. A failure
// there, a signal, or two minutes fail the test. What is under test must not have been used in this process.
void weir_test_in_child(const char *file, int line, void (*body)(void));

// Makes a new, empty folder and returns its absolute path. It is removed with its contents when the
// program ends.
//
// Ownership: the string is the harness's and valid until the program ends.
const char *weir_test_temp_dir(void);

// The path of that name in such a folder, which is one for the program.
//
// Ownership: as weir_test_temp_dir().
const char *weir_test_path(const char *name);

// The path of a file that the test's Bazel rule names in `data`, given from the
// repository's root ("conf/reference.ini"). Outside Bazel it is taken from the
// current folder. The file need not exist.
//
// Ownership: as weir_test_temp_dir().
const char *weir_test_runfile(const char *path);

// A symbol of a shared library that is in `data`, which is opened and stays open; such as the controls of a driver that
// is made for tests. On error the test fails, and NULL is returned.
const void *weir_test_symbol(const char *library, const char *symbol);

// Each check returns whether it held, and reports the failure when not. The
// `_text` parameters are the source of the values.
bool weir_test_check_true(const char *file, int line, const char *text, bool value, bool expected);
// Of a call that returns a status: that it is WEIR_OK.
bool weir_test_check_ok(const char *file, int line, const char *text, intmax_t status);
bool weir_test_check_int(const char *file, int line, const char *a_text, const char *op,
                         const char *b_text, intmax_t a, intmax_t b);
bool weir_test_check_uint(const char *file, int line, const char *a_text, const char *op,
                          const char *b_text, uintmax_t a, uintmax_t b);
bool weir_test_check_double(const char *file, int line, const char *a_text, const char *op,
                            const char *b_text, double a, double b);
bool weir_test_check_ptr(const char *file, int line, const char *a_text, const char *op,
                         const char *b_text, const void *a, const void *b);
bool weir_test_check_str(const char *file, int line, const char *a_text, const char *op,
                         const char *b_text, const char *a, const char *b);
bool weir_test_check_near(const char *file, int line, const char *a_text, const char *b_text,
                          double a, double b, double tolerance);
bool weir_test_check_mem(const char *file, int line, const char *a_text, const char *b_text,
                         const void *a, const void *b, size_t size);
bool weir_test_check_contains(const char *file, int line, const char *text_text,
                              const char *part_text, const char *text, const char *part,
                              bool expected);

// Called by tests/support/main.cc.
int weir_test_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
