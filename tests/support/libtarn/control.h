// What a test can do with libtarn beyond what is in tarn.h: look these up in the library.
#ifndef WEIR_TESTS_SUPPORT_LIBTARN_CONTROL_H
#define WEIR_TESTS_SUPPORT_LIBTARN_CONTROL_H

#include "tests/support/libtarn/tarn.h"

// The N-th call from now on of function `name`, from 1, fails with `result` and does nothing, but
// for those that give something back: they do so all the same. 0: none fails.
void tarn_test_fail(const char *name, long n, tarn_result result);
// How often the function was called so far; -1: there is none of that name.
long tarn_test_calls(const char *name);
// Contexts, streams, events, modules and pieces of memory that exist.
long tarn_test_live(void);
// The name of the I-th function; NULL: there are no more.
const char *tarn_test_name(size_t i);

#endif
