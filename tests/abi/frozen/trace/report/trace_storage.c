#include "tests/abi/frozen/trace/report/trace_storage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_SIZE = 1 << 18,
    ALIGNMENT = 16,
    FIRST_SLOTS = 1024,
    QUEUE_LIMIT = 1 << 24
};

struct weir__block {
    struct weir__block *next;
    size_t used;
    size_t size;
    _Alignas(ALIGNMENT) char data[];
};

void *weir__trace_allocate(struct weir_trace_storage *storage, size_t size)
{
    struct weir__block *block = storage->blocks;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!block || size > block->size - block->used) {
        const size_t wanted = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = malloc(sizeof *block + wanted);
        if (!block)
            return NULL;
        *block = (struct weir__block){.next = storage->blocks, .size = wanted};
        storage->blocks = block;
    }
    void *data = block->data + block->used;
    block->used += size;
    return data;
}

// The key is made at the first use. It is secret, so no file can be made whose texts or queues
// all meet in one slot.
static const struct weir_siphash_key *key_of(struct weir_trace_storage *storage)
{
    if (!storage->has_key)
        (void)weir_siphash_random_key(&storage->key);
    storage->has_key = true;
    return &storage->key;
}

// The slot of `text`, or the free one where it belongs.
static const char **slot_of(struct weir_trace_storage *storage, const char **texts, size_t slots,
                            const char *text)
{
    size_t at = (size_t)weir_siphash(key_of(storage), text, strlen(text)) & (slots - 1);
    while (texts[at] && strcmp(texts[at], text) != 0)
        at = (at + 1) & (slots - 1);
    return &texts[at];
}

static bool widen(struct weir_trace_storage *storage)
{
    const size_t slots = storage->text_slots ? 2 * storage->text_slots : FIRST_SLOTS;
    const char **texts = calloc(slots, sizeof *texts);
    if (!texts)
        return false;
    for (size_t i = 0; i < storage->text_slots; i++)
        if (storage->texts[i])
            *slot_of(storage, texts, slots, storage->texts[i]) = storage->texts[i];
    free(storage->texts);
    storage->texts = texts;
    storage->text_slots = slots;
    return true;
}

const char *weir__trace_intern(struct weir_trace_storage *storage, const char *text)
{
    if (!text || *text == '\0')
        return "";
    if (2 * storage->text_count >= storage->text_slots && !widen(storage))
        return NULL;
    const char **slot = slot_of(storage, storage->texts, storage->text_slots, text);
    if (*slot)
        return *slot;
    const size_t size = strlen(text) + 1;
    char *copy = weir__trace_allocate(storage, size);
    if (!copy)
        return NULL;
    memcpy(copy, text, size);
    storage->text_count++;
    *slot = copy;
    return copy;
}

void *weir__trace_grow(void *items, size_t count, size_t *capacity, size_t item_size)
{
    if (count < *capacity)
        return items;
    const size_t wanted = *capacity ? *capacity + *capacity / 2 : 64;
    void *grown = wanted <= SIZE_MAX / item_size ? realloc(items, wanted * item_size) : NULL;
    if (grown)
        *capacity = wanted;
    return grown;
}

static size_t queue_slot(const struct weir_trace *trace, uint64_t id)
{
    struct weir_trace_storage *storage = trace->storage;
    const size_t mask = storage->queue_slot_count - 1;
    size_t at = (size_t)weir_siphash(key_of(storage), &id, sizeof id) & mask;
    while (storage->queue_slots[at] > 0 && trace->queues[storage->queue_slots[at] - 1].id != id)
        at = (at + 1) & mask;
    return at;
}

struct weir_trace_queue *weir__trace_queue(const struct weir_trace *trace, uint64_t id)
{
    if (trace->storage->queue_slot_count == 0)
        return NULL;
    const uint32_t index = trace->storage->queue_slots[queue_slot(trace, id)];
    return index > 0 ? &trace->queues[index - 1] : NULL;
}

void weir__trace_index_queues(struct weir_trace *trace)
{
    struct weir_trace_storage *storage = trace->storage;
    if (storage->queue_slot_count == 0)
        return;
    memset(storage->queue_slots, 0, storage->queue_slot_count * sizeof *storage->queue_slots);
    for (size_t i = 0; i < trace->queue_count; i++)
        storage->queue_slots[queue_slot(trace, trace->queues[i].id)] = (uint32_t)i + 1;
}

static bool widen_queues(struct weir_trace *trace)
{
    struct weir_trace_storage *storage = trace->storage;
    const size_t count = storage->queue_slot_count ? 2 * storage->queue_slot_count : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    free(storage->queue_slots);
    storage->queue_slots = slots;
    storage->queue_slot_count = count;
    weir__trace_index_queues(trace);
    return true;
}

struct weir_trace_queue *weir__trace_add_queue(struct weir_trace *trace, uint64_t id)
{
    struct weir_trace_storage *storage = trace->storage;
    if (trace->queue_count >= QUEUE_LIMIT)
        return NULL;
    if (2 * trace->queue_count >= storage->queue_slot_count && !widen_queues(trace))
        return NULL;
    struct weir_trace_queue *queues =
        weir__trace_grow(trace->queues, trace->queue_count, &storage->queue_capacity,
                         sizeof *trace->queues);
    if (!queues)
        return NULL;
    trace->queues = queues;
    struct weir_trace_queue *queue = &queues[trace->queue_count++];
    *queue = (struct weir_trace_queue){.id = id, .label = "", .backend = ""};
    storage->queue_slots[queue_slot(trace, id)] = (uint32_t)trace->queue_count;
    return queue;
}

bool weir__trace_note(struct weir_trace *trace, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *note = weir__trace_intern(trace->storage, text);
    const char **notes = weir__trace_grow(trace->notes, trace->note_count,
                                          &trace->storage->note_capacity, sizeof *notes);
    if (notes)
        trace->notes = notes;
    if (!note || !notes)
        return false;
    notes[trace->note_count++] = note;
    return true;
}

void weir__trace_storage_finish(struct weir_trace_storage *storage)
{
    while (storage->blocks) {
        struct weir__block *next = storage->blocks->next;
        free(storage->blocks);
        storage->blocks = next;
    }
    free(storage->texts);
    free(storage->queue_slots);
    free(storage);
}
