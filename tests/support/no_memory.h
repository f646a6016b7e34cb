// Allocations that fail, for tests of what is done then.
#ifndef WEIR_TESTS_SUPPORT_NO_MEMORY_H
#define WEIR_TESTS_SUPPORT_NO_MEMORY_H

#include <stdbool.h>

// Of the calls of malloc, calloc, realloc, strdup and strndup from now on, number `index`, from 0,
// returns NULL; negative: none does. Of the C code that is linked into this program only, as for
// weir_test_allocations().
void weir_test_fail_allocation(long index);

// Whether that call has come.
bool weir_test_allocation_failed(void);

#endif
