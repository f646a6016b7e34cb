// See the header.
#include "tests/fuzz/damage.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

// A digit from `at` on becomes another one.
static void change_digit(struct damaged *damaged, size_t at, uint32_t *state)
{
    while (at < damaged->size && (damaged->bytes[at] < '0' || damaged->bytes[at] > '9'))
        at++;
    if (at < damaged->size)
        damaged->bytes[at] = (uint8_t)('0' + damage_below(state, 10));
}

void damage_change(struct damaged *damaged, uint32_t *state, const char *const *pieces,
                   size_t count)
{
    uint8_t copy[256];
    const size_t at = damage_below(state, damaged->size);
    const size_t left = damaged->size - at;
    const size_t length = damage_below(state, left < sizeof copy ? left : sizeof copy);
    const char *piece = pieces[damage_below(state, count)];
    switch (damage_below(state, 8)) {
    case 0:
        damage_erase(damaged, at, left > 0);
        break;
    case 1:
        damage_erase(damaged, at, length);
        break;
    case 2:
        damage_insert(damaged, at, piece, strlen(piece));
        break;
    case 3:
        if (left > 0)
            damaged->bytes[at] = (uint8_t)damage_below(state, 256);
        break;
    case 4:
        change_digit(damaged, at, state);
        break;
    case 5: // a part goes to another place, once more
        memcpy(copy, damaged->bytes + at, length);
        damage_insert(damaged, damage_below(state, damaged->size), copy, length);
        break;
    case 6: // one byte many times: over-long lines, names and numbers
        memset(copy, left > 0 ? damaged->bytes[at] : 'x', sizeof copy);
        damage_insert(damaged, at, copy, damage_below(state, sizeof copy));
        break;
    default: // cut off
        if (damage_below(state, 4) == 0)
            damaged->size = at;
    }
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

const char *damage_file(const uint8_t *bytes, size_t size)
{
    static char path[32];
    const char *folder = getenv("TEST_TMPDIR");
    if (!path[0] && chdir(folder ? folder : "/tmp") != 0)
        return NULL;
    snprintf(path, sizeof path, "fuzz-%ld", (long)getpid());
    FILE *file = fopen(path, "wb");
    if (!file)
        return NULL;
    const bool whole = fwrite(bytes, 1, size, file) == size;
    return fclose(file) == 0 && whole ? path : NULL;
}
