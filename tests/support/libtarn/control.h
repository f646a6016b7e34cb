// Functions of libtarn for tests, which are not in tarn.h; look them up in the library.
#ifndef WEIR_TESTS_SUPPORT_LIBTARN_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBTARN_CONTROL_H

#include "tests/support/libtarn/tarn.h"

// The N-th call of function `name` from now on, counted from 1, fails with `result` and does
// nothing, except that functions that free something free it. 0: no call fails.
void tarn_test_fail(const char *name, long n, tarn_result result);
// The number of calls of the function so far; -1: there is no such function.
long tarn_test_calls(const char *name);
// The number of contexts, streams, events, modules and pieces of memory that exist.
long tarn_test_live(void);
// The name of the I-th function; NULL past the last.
const char *tarn_test_name(size_t i);

#endif
