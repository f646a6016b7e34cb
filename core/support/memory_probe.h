// What can be found out about memory of the program's without touching it.
#ifndef WEIR_CORE_SUPPORT_MEMORY_PROBE_H
#define WEIR_CORE_SUPPORT_MEMORY_PROBE_H

#include <stddef.h>

// Why the range may not be used any more: "is not mapped any more", or, in a program with the address
// sanitizer, "was freed"; NULL if nothing speaks against it. Pages that may not be read count as
// mapped, and so does memory that another mapping has taken since.
const char *weir__memory_probe(const void *memory, size_t size);

#endif
