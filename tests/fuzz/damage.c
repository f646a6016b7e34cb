// See the header.
#include "tests/fuzz/damage.h"

#include <stdlib.h>
#include <string.h>

size_t damage_below(uint32_t *state, size_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return limit > 0 ? *state % limit : 0;
}

void damage_insert(struct damaged *damaged, size_t at, const void *bytes, size_t size)
{
    if (size > damaged->room - damaged->size)
        return;
    memmove(damaged->bytes + at + size, damaged->bytes + at, damaged->size - at);
    memcpy(damaged->bytes + at, bytes, size);
    damaged->size += size;
}

void damage_erase(struct damaged *damaged, size_t at, size_t size)
{
    memmove(damaged->bytes + at, damaged->bytes + at + size, damaged->size - at - size);
    damaged->size -= size;
}

const char *damage_check(const char *(*check)(const uint8_t *bytes, size_t size),
                         const uint8_t *bytes, size_t size)
{
    uint8_t *block = malloc(size > 0 ? size : 1);
    if (!block)
        return "there is no memory for the bytes";
    memcpy(block, bytes, size);
    const char *broken = check(block, size);
    free(block);
    return broken;
}
