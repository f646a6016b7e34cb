// Ranges of memory in one list. It is short, so it is searched linearly.
#include "fake.h"

#include <stdlib.h>

struct range {
    struct range *next;
    uintptr_t start;
    size_t size;
    enum fake_kind kind;
    int device;
};

static struct range *ranges;

bool fake_memory_add(const void *pointer, size_t size, enum fake_kind kind, int device)
{
    struct range *range = malloc(sizeof *range);
    if (!range)
        return false;
    *range = (struct range){ranges, (uintptr_t)pointer, size, kind, device};
    ranges = range;
    fake_live++;
    return true;
}

size_t fake_memory_remove(const void *pointer, int kinds)
{
    for (struct range **at = &ranges; *at; at = &(*at)->next) {
        struct range *range = *at;
        if (range->start != (uintptr_t)pointer || !(range->kind & kinds))
            continue;
        const size_t size = range->size;
        *at = range->next;
        free(range);
        fake_live--;
        return size;
    }
    return 0;
}

bool fake_memory_holds(const void *pointer, size_t size, int kinds)
{
    const uintptr_t start = (uintptr_t)pointer;
    if (kinds & FAKE_DEVICE)
        kinds |= FAKE_MANAGED;
    for (const struct range *range = ranges; range; range = range->next) {
        if ((range->kind & kinds) && start >= range->start && size <= range->size &&
            start - range->start <= range->size - size)
            return true;
    }
    return false;
}

bool fake_memory_find(const void *pointer, const void **out_start, size_t *out_size,
                      enum fake_kind *out_kind, int *out_device)
{
    const uintptr_t byte = (uintptr_t)pointer;
    for (const struct range *range = ranges; range; range = range->next) {
        if (byte < range->start || byte - range->start >= range->size)
            continue;
        *out_start = (const void *)range->start;
        *out_size = range->size;
        *out_kind = range->kind;
        *out_device = range->device;
        return true;
    }
    return false;
}

bool fake_memory_overlaps(const void *pointer, size_t size)
{
    const uintptr_t start = (uintptr_t)pointer;
    for (const struct range *range = ranges; range; range = range->next) {
        if (start < range->start + range->size && range->start < start + size)
            return true;
    }
    return false;
}

size_t fake_memory_used(int device)
{
    size_t used = 0;
    for (const struct range *range = ranges; range; range = range->next)
        used += range->kind == FAKE_DEVICE && range->device == device ? range->size : 0;
    return used;
}

size_t fake_memory_pinned(void)
{
    size_t pinned = 0;
    for (const struct range *range = ranges; range; range = range->next)
        pinned += range->kind == FAKE_PINNED ? range->size : 0;
    return pinned;
}
