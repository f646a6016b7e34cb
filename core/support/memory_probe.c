// See the header. msync() with MS_ASYNC writes nothing on Linux, and fails if a page of the range is
// not mapped; it looks at mappings, not at pages, so a large range costs no more than a small one.
#define _GNU_SOURCE // RTLD_DEFAULT
#include "core/support/memory_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *probe_mapping(const void *memory, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)memory & ~(page - 1);
    const int error = errno;
    const int result = msync((void *)begin, (uintptr_t)memory + size - begin, MS_ASYNC);
    const bool gone = result != 0 && errno == ENOMEM;
    errno = error;
    return gone ? "is not mapped any more" : NULL;
}

typedef void *(*poison_function)(void *begin, size_t size);

const char *weir__memory_probe(const void *memory, size_t size)
{
    const char *why = probe_mapping(memory, size);
    if (why)
        return why;
    void *symbol = dlsym(RTLD_DEFAULT, "__asan_region_is_poisoned");
    poison_function is_poisoned;
    *(void **)&is_poisoned = symbol;
    return symbol && is_poisoned((void *)(uintptr_t)memory, size)
               ? "was freed, says the address sanitizer"
               : NULL;
}
