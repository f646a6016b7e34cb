// Every allocation of host memory by Weir and its modules goes through here, so
// that a test can assert that a loop allocates nothing.
#include "core/support/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/runtime.h>

#include "base/sized.h"

static atomic_uint_fast64_t allocations;
static atomic_uint_fast64_t driver_objects;

void *weir__allocate(size_t size)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return calloc(1, size ? size : 1);
}

void weir__release(void *pointer)
{
    free(pointer);
}

char *weir__copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir__allocate(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void weir__count_driver_object(void)
{
    atomic_fetch_add_explicit(&driver_objects, 1, memory_order_relaxed);
}

void weir_counters_read_sized(struct weir_counters *out_counters, size_t size)
{
    const struct weir_counters counters = {
        .allocations = atomic_load(&allocations),
        .driver_objects = atomic_load(&driver_objects),
    };
    if (out_counters)
        weir_sized_write(out_counters, size, &counters, sizeof counters);
}
