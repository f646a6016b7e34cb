// See the header. The C library's own functions are reached by the names that they keep for that.
#include "tests/memory/allocator.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

// Also for the C library and for modules, which find them in this program.
#pragma GCC visibility push(default)
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *pointer, size_t size);
void *aligned_alloc(size_t alignment, size_t size);
int posix_memalign(void **out, size_t alignment, size_t size);
void free(void *pointer);
#pragma GCC visibility pop

static atomic_long failing = -1;
static atomic_long calls;
static atomic_long live;

void weir_test_arm(long index)
{
    failing = -1;
    calls = 0;
    failing = index;
}

long weir_test_calls(void)
{
    return calls;
}

long weir_test_live(void)
{
    return live;
}

static bool fails_now(void)
{
    if (atomic_fetch_add(&calls, 1) != failing)
        return false;
    errno = ENOMEM;
    return true;
}

static void *counted(void *pointer)
{
    live += pointer != NULL;
    return pointer;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *pointer, size_t size)
{
    if (fails_now())
        return NULL;
    void *moved = __libc_realloc(pointer, size);
    live += !pointer && moved;
    live -= pointer && size == 0 && !moved;
    return moved;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *pointer = aligned_alloc(alignment, size);
    if (pointer)
        *out = pointer;
    return pointer ? 0 : ENOMEM;
}

void free(void *pointer)
{
    live -= pointer != NULL;
    __libc_free(pointer);
}

// Of a command.

__attribute__((constructor)) static void begin(void)
{
    const char *index = getenv("WEIR_TEST_FAIL_ALLOCATION");
    const char *wanted = getenv("WEIR_TEST_FAIL_RANK");
    const char *rank = getenv("RANK");
    if (index && (!wanted || (rank && strcmp(rank, wanted) == 0)))
        weir_test_arm(atol(index));
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("WEIR_TEST_ALLOCATION_COUNT");
    char text[32];
    if (!path)
        return;
    const int length = snprintf(text, sizeof text, "%ld\n", weir_test_calls());
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return;
    if (write(file, text, (size_t)length) != length)
        _exit(2);
    close(file);
}
