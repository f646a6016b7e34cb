// Calls of Weir that fail on request. What is linked with this has the linker wrap the calls that create objects,
// submit work or wait for it.
#ifndef WEIR_TESTS_PIPELINES_FAILING_CALLS_H
#define WEIR_TESTS_PIPELINES_FAILING_CALLS_H

#include <stdbool.h>

// The n-th of the calls from now on, from 1, fails with WEIR_ERROR_DEVICE and "made to fail: " with its name;
// 0: none does.
void failing_call(int n);

// Whether that call has come.
bool failing_call_came(void);

#endif
