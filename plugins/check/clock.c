// See the header. All clocks have the same capacity, which grows with the number of actors.
#include "plugins/check/clock.h"

#include <stdlib.h>
#include <string.h>

static size_t clock_bytes(uint32_t capacity)
{
    return capacity * sizeof(uint64_t);
}

void check_actors_finish(struct check_actors *actors)
{
    free(actors->all);
    free(actors->floor);
}

// Versions.

// Where the ring has it.
static uint32_t place_of(const struct check_actor *actor, uint32_t index)
{
    return (actor->version_first + index) & (actor->version_most - 1);
}

static uint64_t *version_at(const struct check_actor *actor, uint32_t index)
{
    return actor->versions + (size_t)place_of(actor, index) * actor->capacity;
}

// For one more: where there are several, drops those that the floor makes useless, and the oldest of too many.
static void make_room(const struct check_actors *actors, struct check_actor *actor)
{
    while (actor->version_count >= CHECK_VERSIONS_LEAST &&
           (actor->version_count == actor->version_most ||
            actor->until[place_of(actor, 0)] <= actors->floor[actor->index])) {
        actor->version_first++;
        actor->version_count--;
    }
    if (!actor->versions)
        actor->versions = malloc(actor->version_most * clock_bytes(actor->capacity));
}

// The clock is about to change for `at` and later. If out of memory, the earlier points share the new
// clock.
static void keep_version(const struct check_actors *actors, struct check_actor *actor, uint64_t at)
{
    const bool named = actor->recorded >= actor->since && actor->recorded < at;
    if (named)
        make_room(actors, actor);
    if (named && actor->versions) {
        const uint32_t index = actor->version_count++;
        memcpy(version_at(actor, index), actor->counts, clock_bytes(actor->capacity));
        actor->until[place_of(actor, index)] = at - 1;
    }
    actor->since = at;
}

void check_actors_mark(struct check_actors *actors, struct check_actor *split, uint64_t at)
{
    if (split)
        keep_version(actors, split, at);
    for (uint32_t i = 0; i < actors->count; i++)
        if (actors->all[i])
            actors->all[i]->recorded = actors->all[i]->last;
}

const uint64_t *check_actor_clock_at(const struct check_actor *actor, uint64_t count)
{
    if (count >= actor->since)
        return actor->counts;
    uint32_t low = 0;
    uint32_t high = actor->version_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (actor->until[place_of(actor, middle)] < count)
            low = middle + 1;
        else
            high = middle;
    }
    return low < actor->version_count ? version_at(actor, low) : actor->counts;
}

// Learning.

static bool knows(const uint64_t *counts, const uint64_t *others, uint32_t count)
{
    uint64_t less = 0;
    for (uint32_t i = 0; i < count; i++)
        less |= (uint64_t)(counts[i] < others[i]);
    return !less;
}

static void raise(uint64_t *restrict counts, const uint64_t *restrict others, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        counts[i] = counts[i] > others[i] ? counts[i] : others[i];
}

static void join(const struct check_actors *actors, uint64_t *restrict counts,
                 const struct check_actor *producer, uint64_t count)
{
    raise(counts, check_actor_clock_at(producer, count), actors->count);
    if (counts[producer->index] < count)
        counts[producer->index] = count;
}

bool check_actor_learn(struct check_actors *actors, struct check_actor *actor, uint64_t at,
                       const struct check_actor *producer, uint64_t count)
{
    if (producer == actor || actor->counts[producer->index] >= count)
        return false;
    keep_version(actors, actor, at);
    join(actors, actor->counts, producer, count);
    return true;
}

// What it says of the actor's own index is not looked at.
bool check_actor_join(struct check_actors *actors, struct check_actor *actor, uint64_t at,
                      const uint64_t *counts)
{
    const uint64_t own = actor->counts[actor->index];
    actor->counts[actor->index] = UINT64_MAX;
    const bool known = knows(actor->counts, counts, actors->count);
    actor->counts[actor->index] = own;
    if (!known && at > actor->since)
        keep_version(actors, actor, at);
    if (!known)
        raise(actor->counts, counts, actors->count);
    for (uint32_t i = actor->version_count; i > 0 && actor->until[place_of(actor, i - 1)] >= at;
         i--)
        raise(version_at(actor, i - 1), counts, actors->count);
    return !known;
}

bool check_clock_join(const struct check_actors *actors, uint64_t *counts,
                      const struct check_actor *producer, uint64_t count)
{
    const uint64_t *others = check_actor_clock_at(producer, count);
    if (counts[producer->index] >= count && knows(counts, others, actors->count))
        return false;
    join(actors, counts, producer, count);
    return true;
}

void check_floor_join(struct check_actors *actors, const uint64_t *counts, uint32_t capacity)
{
    raise(actors->floor, counts, actors->count < capacity ? actors->count : capacity);
}

// Coming and going.

void *check_grown(void *items, size_t count, size_t wanted, size_t size)
{
    if (count >= wanted)
        return items;
    unsigned char *grown = realloc(items, wanted * size);
    if (grown)
        memset(grown + count * size, 0, (wanted - count) * size);
    return grown;
}

bool check_clock_grow(uint64_t **counts, uint32_t count, uint32_t wanted)
{
    uint64_t *grown = check_grown(*counts, count, wanted, sizeof *grown);
    *counts = grown ? grown : *counts;
    return grown;
}

// The actor's clocks get that capacity, of which as many versions stay as fit. If out of memory, none do.
static void resize_versions(struct check_actor *actor, uint32_t capacity)
{
    const struct check_actor old = *actor;
    const uint32_t fit = CHECK_VERSION_ENTRIES / capacity;
    actor->capacity = capacity;
    actor->version_most = fit < CHECK_VERSIONS_LEAST  ? CHECK_VERSIONS_LEAST
                          : fit > CHECK_VERSIONS_MOST ? CHECK_VERSIONS_MOST
                                                      : fit;
    actor->version_first = actor->version_count = 0;
    actor->versions = NULL;
    if (old.versions)
        actor->versions = calloc(actor->version_most, clock_bytes(capacity));
    const uint32_t most = actor->versions ? actor->version_most : 0;
    const uint32_t lost = old.version_count > most ? old.version_count - most : 0;
    for (uint32_t i = lost; i < old.version_count; i++) {
        const uint32_t index = actor->version_count++;
        memcpy(version_at(actor, index), version_at(&old, i), clock_bytes(old.capacity));
        actor->until[index] = old.until[place_of(&old, i)];
    }
    free(old.versions);
}

// If memory ends on the way, some clocks are larger than `capacity` says.
static bool grow(struct check_actors *actors)
{
    const uint32_t count = actors->count;
    const uint32_t capacity = actors->capacity ? 2 * actors->capacity : 8;
    struct check_actor **all = check_grown(actors->all, count, capacity, sizeof *all);
    if (!all)
        return false;
    actors->all = all;
    bool grown = check_clock_grow(&actors->floor, count, capacity);
    for (uint32_t i = 0; grown && i < count; i++)
        grown = !all[i] || check_clock_grow(&all[i]->counts, count, capacity);
    for (uint32_t i = 0; grown && i < count; i++)
        if (all[i])
            resize_versions(all[i], capacity);
    if (grown)
        actors->capacity = capacity;
    return grown;
}

bool check_actor_add(struct check_actors *actors, struct check_actor *actor)
{
    uint32_t index = 0;
    while (index < actors->count && actors->all[index])
        index++;
    if (index == actors->capacity && !grow(actors))
        return false;
    actor->counts = calloc(actors->capacity, sizeof *actor->counts);
    if (!actor->counts)
        return false;
    resize_versions(actor, actors->capacity);
    if (index == actors->count)
        actors->count++;
    actors->all[index] = actor;
    actor->index = index;
    actor->base = actors->floor[index];
    actor->last = actor->base;
    return true;
}

void check_actor_remove(struct check_actors *actors, struct check_actor *actor)
{
    check_clock_join(actors, actors->floor, actor, actor->last);
    actors->all[actor->index] = NULL;
    free(actor->versions);
    free(actor->counts);
    actor->counts = NULL;
}
