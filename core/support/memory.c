// Every allocation of host memory by Weir and its modules goes through here, so
// that a test can assert that a loop allocates nothing.
#include "core/support/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/runtime.h>

#include "base/grow.h"
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

void *weir__grow(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count == *capacity)
        atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return weir_grow(items, count, capacity, size);
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

// See the header. Names lie in one static area and are never removed, so readers need no lock, and an error can
// be reported where memory has run out.
//
// A submit pays for a comparison of texts: a pointer leads to the name that it had last, which is compared,
// since a file of another library may lie where that of an unloaded one was.

enum {
    AREA_SIZE = 1 << 20,
    RECENT_BITS = 10,
    BUCKETS = 1024
};

struct name {
    struct name *next; // of its bucket, older
    char text[];
};

static _Alignas(struct name) unsigned char area[AREA_SIZE];
static atomic_size_t used; // at most AREA_SIZE
static _Atomic(const char *) recent[1 << RECENT_BITS];
static _Atomic(struct name *) buckets[BUCKETS];

static const char *find(const struct name *from, const struct name *end, const char *file)
{
    for (const struct name *at = from; at != end; at = at->next)
        if (strcmp(at->text, file) == 0)
            return at->text;
    return NULL;
}

// NULL: there is no room.
static struct name *store(const char *file)
{
    const size_t length = strlen(file);
    const size_t align = _Alignof(struct name);
    if (length > AREA_SIZE / 2)
        return NULL;
    const size_t size = (sizeof(struct name) + length + align) / align * align;
    size_t begin = atomic_load_explicit(&used, memory_order_relaxed);
    do {
        if (size > AREA_SIZE - begin)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&used, &begin, begin + size,
                                                    memory_order_relaxed, memory_order_relaxed));
    struct name *name = (struct name *)(void *)(area + begin);
    memcpy(name->text, file, length + 1);
    return name;
}

static const char *intern(const char *file)
{
    uint32_t hash = 2166136261;
    for (const char *at = file; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619;
    _Atomic(struct name *) *bucket = &buckets[hash % BUCKETS];
    struct name *first = atomic_load_explicit(bucket, memory_order_acquire);
    const char *known = find(first, NULL, file);
    struct name *name = known ? NULL : store(file);
    if (!name)
        return known ? known : "(file not kept)";
    do {
        // Another thread's may have come meanwhile. If it is the same, ours is lost.
        known = find(first, name->next, file);
        if (known)
            return known;
        name->next = first;
    } while (!atomic_compare_exchange_weak_explicit(bucket, &first, name, memory_order_release,
                                                    memory_order_acquire));
    return name->text;
}

const char *weir__file_name(const char *file)
{
    if (!file)
        return NULL;
    const uint64_t number = (uint64_t)(uintptr_t)file * UINT64_C(0x9e3779b97f4a7c15);
    _Atomic(const char *) *slot = &recent[number >> (64 - RECENT_BITS)];
    const char *name = atomic_load_explicit(slot, memory_order_acquire);
    if (!name || strcmp(name, file) != 0) {
        name = intern(file);
        atomic_store_explicit(slot, name, memory_order_release);
    }
    return name;
}
