// Counted host memory and the process-wide counters of <weir/runtime.h>.
#ifndef WEIR_CORE_SUPPORT_MEMORY_H
#define WEIR_CORE_SUPPORT_MEMORY_H

#include <stddef.h>

#include <weir/common.h>

// Zeroed memory, counted; NULL if out of memory. Freed by weir__release().
void *weir__allocate(size_t size);
void weir__release(void *pointer);

// weir_grow() of such memory; what is added is not zeroed.
void *weir__grow(void *items, size_t count, size_t *capacity, size_t size);

void weir__count_driver_object(void);

// Names of the source files of callers, kept. `__FILE__` lies in the library that made the call, which may be
// unloaded long before a plugin writes the operation's line, or a thread reads its last error.
//
// Threads: safe, without a lock.

// A name of the same text that is valid until the process ends; equal texts get the same name. NULL for NULL.
// The names of a process share 1 MiB of static memory: what does not fit is named "(file not kept)".
const char *weir__file_name(const char *file);

#endif
