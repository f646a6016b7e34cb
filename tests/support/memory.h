// What memory this process takes, for tests that say that it stays the same.
#ifndef WEIR_TESTS_SUPPORT_MEMORY_H
#define WEIR_TESTS_SUPPORT_MEMORY_H

#include <stdint.h>

// How often the C code that is linked into this program, Weir's included, has called malloc,
// calloc or realloc so far. The linker wraps these; what shared objects call is not seen.
unsigned long weir_test_allocations(void);

// Memory of the process that is resident at the moment, drivers and all; 0 if the system does
// not tell.
uint64_t weir_test_resident_bytes(void);

#endif
