// The memory of this process, for tests that it does not grow, and of what is done when there is none.
#ifndef WEIR_TESTS_SUPPORT_MEMORY_H
#define WEIR_TESTS_SUPPORT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

// How often the C code that is linked into this program, Weir's included, has called malloc,
// calloc, realloc, strdup or strndup so far. The linker wraps these; calls of shared objects are not counted.
unsigned long weir_test_allocations(void);

// Of these calls from now on number `index`, from 0, returns NULL; negative: none does.
void weir_test_fail_allocation(long index);

// Whether that call has come.
bool weir_test_allocation_failed(void);

// The resident memory of the process, including drivers; 0 if the system does not report it.
uint64_t weir_test_resident_bytes(void);

#endif
