// Counted host memory and the process-wide counters of <weir/runtime.h>.
#ifndef WEIR_CORE_SUPPORT_MEMORY_H
#define WEIR_CORE_SUPPORT_MEMORY_H

#include <stddef.h>

// Zeroed memory, counted; NULL if out of memory. Freed by weir__release().
void *weir__allocate(size_t size);
void weir__release(void *pointer);

// A counted copy of `text`, or NULL.
char *weir__copy_text(const char *text);

void weir__count_driver_object(void);

#endif
