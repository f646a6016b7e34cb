#include "tests/abi/frozen/trace/report/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/base/siphash.h"

struct weir__names {
    struct weir_siphash_key key; // names come from files
    char **texts;
    size_t count;
    size_t capacity;
    size_t *slots; // number + 1, 0 is free
    size_t slot_count;
};

struct weir__names *weir__names_create(void)
{
    struct weir__names *names = calloc(1, sizeof *names);
    if (names)
        (void)weir_siphash_random_key(&names->key);
    return names;
}

void weir__names_destroy(struct weir__names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->slots);
    free(names);
}

static size_t slot_of(const struct weir__names *names, const char *text)
{
    size_t slot = (size_t)weir_siphash(&names->key, text, strlen(text)) & (names->slot_count - 1);
    while (names->slots[slot] > 0 && strcmp(names->texts[names->slots[slot] - 1], text) != 0)
        slot = (slot + 1) & (names->slot_count - 1);
    return slot;
}

static int widen(struct weir__names *names)
{
    const size_t count = names->slot_count ? 2 * names->slot_count : 256;
    size_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return 0;
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
    for (size_t i = 0; i < names->count; i++)
        slots[slot_of(names, names->texts[i])] = i + 1;
    return 1;
}

static char *copy(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *it = malloc(size);
    if (it)
        memcpy(it, text, size);
    return it;
}

size_t weir__names_number(struct weir__names *names, const char *text)
{
    if (2 * names->count >= names->slot_count && !widen(names))
        return SIZE_MAX;
    size_t *slot = &names->slots[slot_of(names, text)];
    if (*slot > 0)
        return *slot - 1;
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity ? 2 * names->capacity : 64;
        char **texts = realloc(names->texts, capacity * sizeof *texts);
        if (!texts)
            return SIZE_MAX;
        names->texts = texts;
        names->capacity = capacity;
    }
    names->texts[names->count] = copy(text);
    if (!names->texts[names->count])
        return SIZE_MAX;
    *slot = ++names->count;
    return names->count - 1;
}

const char *weir__names_text(const struct weir__names *names, size_t number)
{
    return names->texts[number];
}

size_t weir__names_count(const struct weir__names *names)
{
    return names->count;
}
