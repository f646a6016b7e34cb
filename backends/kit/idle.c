// What is given back later: deferred frees, registrations of memory, and blocks that are kept for reuse.
// `kept` counts the deferred frees, so a settle without any costs one load.
#include <stdatomic.h>
#include <weir/kit/idle.h>
#include <weir/module/error.h>

struct weir_kit_idle {
    struct weir_kit_idle_params params;
    atomic_size_t kept; // entries and unused registrations
    pthread_mutex_t lock;
    struct weir_kit_idle_entry *entries;
};

struct weir_kit_registration {
    struct weir_kit_registration *next;
    weir_kit_idle *idle; // of the last user, while the registration is unused
    char *pointer;
    size_t size;
    size_t users;
};

weir_status weir_kit_idle_create(const struct weir_kit_idle_params *params,
                                 weir_kit_idle **out_idle)
{
    weir_kit_idle *idle = params->host->allocate(sizeof *idle);
    *out_idle = idle;
    if (!idle)
        return weir_host_no_memory(params->host, "a device");
    idle->params = *params;
    pthread_mutex_init(&idle->lock, NULL);
    return WEIR_OK;
}

void weir_kit_idle_destroy(weir_kit_idle **idle)
{
    if (!*idle)
        return;
    pthread_mutex_destroy(&(*idle)->lock);
    (*idle)->params.host->release(*idle);
    *idle = NULL;
}

void weir_kit_idle_put(weir_kit_idle *idle, struct weir_kit_idle_entry *entry)
{
    pthread_mutex_lock(&idle->lock);
    entry->next = idle->entries;
    idle->entries = entry;
    atomic_fetch_add(&idle->kept, 1);
    pthread_mutex_unlock(&idle->lock);
}

void weir_kit_idle_settle(weir_kit_idle *idle)
{
    if (atomic_load_explicit(&idle->kept, memory_order_relaxed) > 0 &&
        idle->params.is_idle(idle->params.device))
        weir_kit_idle_drain(idle);
}

// Registrations.

static bool touches(const struct weir_kit_registration *registration, const char *pointer,
                    size_t size)
{
    return pointer < registration->pointer + registration->size &&
           registration->pointer < pointer + size;
}

// Removes unused registrations from the list: those of a device or, if `idle` is NULL, those that
// overlap a range.
static struct weir_kit_registration *take_unused(struct weir_kit_registrations *list,
                                                 const weir_kit_idle *idle, const char *pointer,
                                                 size_t size)
{
    struct weir_kit_registration *taken = NULL;
    pthread_mutex_lock(&list->lock);
    for (struct weir_kit_registration **at = &list->first; *at;) {
        struct weir_kit_registration *registration = *at;
        const bool wanted =
            idle ? registration->idle == idle : touches(registration, pointer, size);
        if (registration->users > 0 || !wanted) {
            at = &registration->next;
            continue;
        }
        *at = registration->next;
        registration->next = taken;
        taken = registration;
        atomic_fetch_sub(&registration->idle->kept, 1);
    }
    pthread_mutex_unlock(&list->lock);
    return taken;
}

static void unregister(const weir_kit_idle *idle, struct weir_kit_registration *taken)
{
    while (taken) {
        struct weir_kit_registration *next = taken->next;
        idle->params.unregister(idle->params.device, taken->pointer);
        idle->params.host->release(taken);
        taken = next;
    }
}

struct weir_kit_registration *weir_kit_registration_share(weir_kit_idle *idle, void *pointer,
                                                          size_t size)
{
    struct weir_kit_registrations *list = idle->params.registrations;
    const char *begin = pointer;
    unregister(idle, take_unused(list, NULL, pointer, size));
    pthread_mutex_lock(&list->lock);
    struct weir_kit_registration *registration = list->first;
    while (registration && (begin < registration->pointer ||
                            begin + size > registration->pointer + registration->size))
        registration = registration->next;
    // Another thread may have ended the last use since.
    if (registration && registration->users++ == 0)
        atomic_fetch_sub(&registration->idle->kept, 1);
    pthread_mutex_unlock(&list->lock);
    return registration;
}

struct weir_kit_registration *weir_kit_registration_add(weir_kit_idle *idle, void *pointer,
                                                        size_t size)
{
    struct weir_kit_registrations *list = idle->params.registrations;
    struct weir_kit_registration *registration = idle->params.host->allocate(sizeof *registration);
    if (!registration)
        return NULL;
    registration->pointer = pointer;
    registration->size = size;
    registration->users = 1;
    pthread_mutex_lock(&list->lock);
    registration->next = list->first;
    list->first = registration;
    pthread_mutex_unlock(&list->lock);
    return registration;
}

void weir_kit_registration_put(weir_kit_idle *idle, struct weir_kit_registration *registration)
{
    struct weir_kit_registrations *list = idle->params.registrations;
    pthread_mutex_lock(&list->lock);
    if (--registration->users == 0) {
        registration->idle = idle;
        atomic_fetch_add(&idle->kept, 1);
    }
    pthread_mutex_unlock(&list->lock);
}

bool weir_kit_registration_touches(const weir_kit_idle *idle, void *pointer, size_t size)
{
    struct weir_kit_registrations *list = idle->params.registrations;
    pthread_mutex_lock(&list->lock);
    const struct weir_kit_registration *at = list->first;
    while (at && !touches(at, pointer, size))
        at = at->next;
    pthread_mutex_unlock(&list->lock);
    return at;
}

void weir_kit_idle_drain(weir_kit_idle *idle)
{
    if (idle->params.registrations)
        unregister(idle, take_unused(idle->params.registrations, idle, NULL, 0));
    pthread_mutex_lock(&idle->lock);
    struct weir_kit_idle_entry *entry = idle->entries;
    idle->entries = NULL;
    pthread_mutex_unlock(&idle->lock);
    while (entry) {
        struct weir_kit_idle_entry *next = entry->next;
        entry->give_back(entry);
        atomic_fetch_sub(&idle->kept, 1);
        entry = next;
    }
}

// Blocks: an unordered list, since a program has few sizes of pinned buffers and rarely creates any.

#define SMALLEST_BLOCK 4096u

void weir_kit_blocks_init(struct weir_kit_blocks *blocks)
{
    blocks->first = NULL;
    pthread_mutex_init(&blocks->lock, NULL);
}

void weir_kit_blocks_finish(struct weir_kit_blocks *blocks)
{
    pthread_mutex_destroy(&blocks->lock);
}

size_t weir_kit_block_size(size_t size)
{
    size_t step = SMALLEST_BLOCK;
    while (step <= size / 16)
        step *= 2;
    return size <= SIZE_MAX - step ? (size + step - 1) / step * step : size;
}

struct weir_kit_block *weir_kit_block_take(struct weir_kit_blocks *blocks, size_t size,
                                           size_t limit)
{
    struct weir_kit_block **best = NULL;
    pthread_mutex_lock(&blocks->lock);
    for (struct weir_kit_block **at = &blocks->first; *at; at = &(*at)->next) {
        const size_t there = (*at)->size;
        if (there >= size && there <= limit && (!best || there < (*best)->size))
            best = at;
    }
    struct weir_kit_block *block = best ? *best : NULL;
    if (block)
        *best = block->next;
    pthread_mutex_unlock(&blocks->lock);
    return block;
}

void weir_kit_block_put(struct weir_kit_blocks *blocks, struct weir_kit_block *block)
{
    pthread_mutex_lock(&blocks->lock);
    block->next = blocks->first;
    blocks->first = block;
    pthread_mutex_unlock(&blocks->lock);
}

void weir_kit_blocks_empty(struct weir_kit_blocks *blocks,
                           void (*give_back)(void *device, struct weir_kit_block *block),
                           void *device)
{
    pthread_mutex_lock(&blocks->lock);
    struct weir_kit_block *block = blocks->first;
    blocks->first = NULL;
    pthread_mutex_unlock(&blocks->lock);
    while (block) {
        struct weir_kit_block *next = block->next;
        give_back(device, block);
        block = next;
    }
}
