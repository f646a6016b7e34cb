// A hash table that only grows, up to a limit: most programs have few labels, and one that creates
// new ones all the time must not run out of memory because of this table.
#include <stdlib.h>
#include <string.h>

#include "tests/abi/frozen/trace/plugins/trace/parts.h"

#define SLOTS_AT_FIRST 256
#define BYTES_LIMIT ((size_t)8 << 20)

struct trace_name {
    struct trace_name *next;
    uint64_t hash;
    char text[];
};

static const char no_room[] = "(too many labels)";

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037); // FNV-1a
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

bool trace_names_init(struct trace_names *names)
{
    pthread_mutex_init(&names->lock, NULL);
    names->slot_count = SLOTS_AT_FIRST;
    names->slots = calloc(names->slot_count, sizeof *names->slots);
    return names->slots != NULL;
}

void trace_names_finish(struct trace_names *names)
{
    for (size_t i = 0; names->slots && i < names->slot_count; i++) {
        for (struct trace_name *name = names->slots[i]; name;) {
            struct trace_name *next = name->next;
            free(name);
            name = next;
        }
    }
    free(names->slots);
    pthread_mutex_destroy(&names->lock);
}

static void grow(struct trace_names *names)
{
    const size_t count = 2 * names->slot_count;
    struct trace_name **slots = calloc(count, sizeof *slots);
    if (!slots) // the table works without growing, with longer chains
        return;
    for (size_t i = 0; i < names->slot_count; i++) {
        for (struct trace_name *name = names->slots[i]; name;) {
            struct trace_name *next = name->next;
            name->next = slots[name->hash & (count - 1)];
            slots[name->hash & (count - 1)] = name;
            name = next;
        }
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = count;
}

static const char *keep(struct trace_names *names, const char *text, uint64_t hash)
{
    const size_t size = strlen(text) + 1;
    for (struct trace_name *name = names->slots[hash & (names->slot_count - 1)]; name;
         name = name->next)
        if (name->hash == hash && strcmp(name->text, text) == 0)
            return name->text;
    if (size > BYTES_LIMIT - names->bytes)
        return no_room;
    if (names->count > names->slot_count)
        grow(names);
    struct trace_name *name = malloc(sizeof *name + size);
    if (!name)
        return no_room;
    struct trace_name **slot = &names->slots[hash & (names->slot_count - 1)];
    name->hash = hash;
    name->next = *slot;
    memcpy(name->text, text, size);
    *slot = name;
    names->count++;
    names->bytes += sizeof *name + size < BYTES_LIMIT - names->bytes ? sizeof *name + size
                                                                     : BYTES_LIMIT - names->bytes;
    return name->text;
}

const char *trace_names_keep(struct trace_names *names, const char *text)
{
    if (!text || !*text)
        return "";
    const uint64_t hash = hash_of(text);
    pthread_mutex_lock(&names->lock);
    const char *kept = keep(names, text, hash);
    pthread_mutex_unlock(&names->lock);
    return kept;
}
