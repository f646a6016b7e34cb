// Virtual memory for counts beyond 2^31: one file of LARGE_WINDOW bytes, mapped again and again, but for the end,
// which is memory of its own and tells what has arrived.
#ifndef WEIR_TESTS_TRANSPORTS_LARGE_MEMORY_H
#define WEIR_TESTS_TRANSPORTS_LARGE_MEMORY_H

#include <stddef.h>

#define LARGE_WINDOW ((size_t)32 << 20)
#define LARGE_COUNT (((size_t)1 << 31) + 5)
#define LARGE_MAPPED (((size_t)1 << 31) + LARGE_WINDOW)

// LARGE_MAPPED bytes of zero, of which those from 2^31 on are its own; for munmap(). NULL: the system has none.
unsigned char *large_memory(void);

#endif
