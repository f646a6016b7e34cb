// The memory of this process, for tests that it does not grow.
#ifndef WEIR_TESTS_SUPPORT_MEMORY_H
#define WEIR_TESTS_SUPPORT_MEMORY_H

#include <stdint.h>

// How often the C code that is linked into this program, Weir's included, has called malloc,
// calloc or realloc so far. The linker wraps these; calls of shared objects are not counted.
unsigned long weir_test_allocations(void);

// The resident memory of the process, including drivers; 0 if the system does not report it.
uint64_t weir_test_resident_bytes(void);

#endif
