// NOLINTNEXTLINE(bugprone-reserved-identifier): for tdestroy()
#define _GNU_SOURCE
#include "base/names.h"

#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct name {
    const char *text; // after the structure
    size_t number;
};

struct weir_names {
    void *tree;          // of tsearch(), by the texts
    struct name **names; // by their numbers
    size_t count;
    size_t capacity;
    size_t bytes; // of the table
};

// What each text takes besides its bytes: allocations, its node of the tree and its pointers.
#define SHARE ((size_t)96)

struct weir_names *weir_names_create(void)
{
    return calloc(1, sizeof(struct weir_names));
}

void weir_names_destroy(struct weir_names *names)
{
    if (!names)
        return;
    tdestroy(names->tree, free);
    free(names->names);
    free(names);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

size_t weir_names_find(const struct weir_names *names, const char *text)
{
    const struct name key = {.text = text};
    struct name *const *node = tfind(&key, &names->tree, by_text);
    return node ? (*node)->number : SIZE_MAX;
}

size_t weir_names_number(struct weir_names *names, const char *text)
{
    const size_t known = weir_names_find(names, text);
    if (known != SIZE_MAX)
        return known;
    struct name **grown = weir_grow(names->names, names->count, &names->capacity, sizeof *grown);
    if (!grown)
        return SIZE_MAX;
    names->names = grown;
    const size_t size = strlen(text) + 1;
    struct name *name = malloc(sizeof *name + size);
    if (name)
        *name = (struct name){memcpy(name + 1, text, size), names->count};
    if (!name || !tsearch(name, &names->tree, by_text)) {
        free(name);
        return SIZE_MAX;
    }
    names->bytes += strlen(text) + 1 + SHARE;
    names->names[names->count] = name;
    return names->count++;
}

const char *weir_names_keep(struct weir_names *names, const char *text)
{
    const size_t number = weir_names_number(names, text);
    return number == SIZE_MAX ? NULL : weir_names_text(names, number);
}

const char *weir_names_keep_within(struct weir_names *names, const char *text, size_t limit)
{
    const size_t number = weir_names_find(names, text);
    const size_t size = strlen(text) + 1 + SHARE;
    if (number != SIZE_MAX)
        return weir_names_text(names, number);
    return size <= limit && names->bytes <= limit - size ? weir_names_keep(names, text) : NULL;
}

const char *weir_names_text(const struct weir_names *names, size_t number)
{
    return names->names[number]->text;
}

size_t weir_names_count(const struct weir_names *names)
{
    return names->count;
}
