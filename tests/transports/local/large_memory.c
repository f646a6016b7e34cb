// NOLINTNEXTLINE(bugprone-reserved-identifier): for memfd_create()
#define _GNU_SOURCE
#include "tests/transports/local/large_memory.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned char *large_memory(void)
{
    const int file = memfd_create("large", MFD_CLOEXEC);
    unsigned char *memory =
        mmap(NULL, LARGE_MAPPED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool ok = file >= 0 && ftruncate(file, (off_t)LARGE_WINDOW) == 0 && memory != MAP_FAILED;
    const int protection = PROT_READ | PROT_WRITE;
    for (size_t at = 0; ok && at < LARGE_MAPPED - LARGE_WINDOW; at += LARGE_WINDOW)
        ok = mmap(memory + at, LARGE_WINDOW, protection, MAP_SHARED | MAP_FIXED, file, 0) !=
             MAP_FAILED;
    ok = ok && mprotect(memory + LARGE_MAPPED - LARGE_WINDOW, LARGE_WINDOW, protection) == 0;
    if (file >= 0)
        close(file);
    return ok ? memory : NULL;
}
