#include "base/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"

struct weir_names {
    struct weir_siphash_key key;
    char **texts;
    size_t count;
    size_t capacity;
    size_t bytes;  // of the table
    size_t *slots; // number + 1, 0 is free
    size_t slot_count;
};

// What each text takes besides its bytes: an allocation, its pointer and up to four slots.
#define SHARE ((size_t)64)

struct weir_names *weir_names_create(void)
{
    struct weir_names *names = calloc(1, sizeof *names);
    if (names)
        (void)weir_siphash_random_key(&names->key);
    return names;
}

void weir_names_destroy(struct weir_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++)
        free(names->texts[i]);
    free(names->texts);
    free(names->slots);
    free(names);
}

static size_t slot_of(const struct weir_names *names, const char *text)
{
    size_t slot = (size_t)weir_siphash(&names->key, text, strlen(text)) & (names->slot_count - 1);
    while (names->slots[slot] > 0 && strcmp(names->texts[names->slots[slot] - 1], text) != 0)
        slot = (slot + 1) & (names->slot_count - 1);
    return slot;
}

static bool widen(struct weir_names *names)
{
    const size_t count = names->slot_count ? 2 * names->slot_count : 256;
    size_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
    for (size_t i = 0; i < names->count; i++)
        slots[slot_of(names, names->texts[i])] = i + 1;
    return true;
}

size_t weir_names_number(struct weir_names *names, const char *text)
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
    names->texts[names->count] = strdup(text);
    if (!names->texts[names->count])
        return SIZE_MAX;
    names->bytes += strlen(text) + 1 + SHARE;
    *slot = ++names->count;
    return names->count - 1;
}

const char *weir_names_keep(struct weir_names *names, const char *text)
{
    const size_t number = weir_names_number(names, text);
    return number == SIZE_MAX ? NULL : names->texts[number];
}

const char *weir_names_keep_within(struct weir_names *names, const char *text, size_t limit)
{
    const size_t number = names->slot_count > 0 ? names->slots[slot_of(names, text)] : 0;
    const size_t size = strlen(text) + 1 + SHARE;
    if (number > 0)
        return names->texts[number - 1];
    return size <= limit && names->bytes <= limit - size ? weir_names_keep(names, text) : NULL;
}

const char *weir_names_text(const struct weir_names *names, size_t number)
{
    return names->texts[number];
}

size_t weir_names_count(const struct weir_names *names)
{
    return names->count;
}
