// Vector clocks. An actor, which is a queue or a thread, has an index and counts what it does; its
// clock has for each index the count up to which the actor comes after that other one. Indexes are
// used again, with counts above all that the index had before.
//
// A queue's record names a point of the past, so an actor keeps its clock as it was then: a version
// for each time that the clock changed after a record. Old versions are dropped if the floor
// makes them useless, and beyond a fixed number of bytes; for a point before the oldest version
// that one is used, which can only hide an order that is missing.
//
// Threads: the caller's lock.
#ifndef WEIR_PLUGINS_CHECK_CLOCK_H
#define WEIR_PLUGINS_CHECK_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECK_VERSION_ENTRIES = 1 << 14, // counts that the versions of one actor have together
    CHECK_VERSIONS_LEAST = 8,        // of clocks however large
    CHECK_VERSIONS_MOST = 256,
};

struct check_actor {
    uint32_t index;
    bool exposed;      // a queue whose native one the program has
    uint64_t base;     // count of operation n is base + n
    uint64_t last;     // the highest count so far
    uint64_t *counts;  // the clock now; the actor's own entry is unused
    uint64_t recorded; // the last count that an event names
    uint64_t refused;  // the last operation that was not submitted after all
    uint64_t since;    // the clock is as it is from this count on
    const char *label; // for reports, as `id`; the caller's
    uint64_t id;
    // Versions, a ring.
    uint32_t version_first;
    uint32_t version_count;
    uint32_t version_most;               // a power of two
    uint32_t capacity;                   // of their clocks
    uint64_t until[CHECK_VERSIONS_MOST]; // the last count at which each was the clock
    uint64_t *versions;                  // their clocks, one after the other; NULL: none yet
};

// Zeroed before use.
struct check_actors {
    struct check_actor **all; // by index; NULL: free
    uint64_t
        *floor; // everything that is submitted from now on comes after these counts; of an index
                // that is free, after all that it had
    uint32_t count;    // of indexes that were ever used; never gets less
    uint32_t capacity; // of all clocks; a power of two
};

// `items`, with at least `wanted` in place of `count` of them, those added zeroed. NULL: no memory, and `items` stay.
void *check_grown(void *items, size_t count, size_t wanted, size_t size);
// The same of a clock. False: no memory, and it stays.
bool check_clock_grow(uint64_t **counts, uint32_t count, uint32_t wanted);

// All actors were removed.
void check_actors_finish(struct check_actors *actors);

// Gives the actor, all zero, an index and a clock of zeros. False: no memory.
bool check_actor_add(struct check_actors *actors, struct check_actor *actor);
// Everything that it did is below the floor from now on.
void check_actor_remove(struct check_actors *actors, struct check_actor *actor);

// All actors keep their clocks of now, as if events named their last counts. Counts of `split`, unless that is NULL,
// below `at` keep the clock that they have when those from `at` on learn more.
void check_actors_mark(struct check_actors *actors, struct check_actor *split, uint64_t at);

// The clock of the actor when it was at `count`. With a record at that count it is exact, else
// possibly a later one.
const uint64_t *check_actor_clock_at(const struct check_actor *actor, uint64_t count);

// From its count `at` on, the actor comes after everything before `count` of `producer`. Returns
// whether that is new.
bool check_actor_learn(struct check_actors *actors, struct check_actor *actor, uint64_t at,
                       const struct check_actor *producer, uint64_t count);
// The same for what a clock knows that is no actor's and has as many counts as theirs. `at` may be past where the
// actor was split.
bool check_actor_join(struct check_actors *actors, struct check_actor *actor, uint64_t at,
                      const uint64_t *counts);
// A clock of as many counts as those of actors learns it, too. It is no actor's, or the floor: then everything that is
// submitted from now on comes after it.
bool check_clock_join(const struct check_actors *actors, uint64_t *counts,
                      const struct check_actor *producer, uint64_t count);
// Everything that is submitted from now on comes after what the first `capacity` counts of a clock say.
void check_floor_join(struct check_actors *actors, const uint64_t *counts, uint32_t capacity);
// Whether what is submitted to `actor` now, or for NULL what the host does now, comes after `count`
// of the actor with that index.
static inline bool check_is_after(const struct check_actors *actors,
                                  const struct check_actor *actor, uint32_t index, uint64_t count)
{
    return actors->floor[index] >= count ||
           (actor && (actor->index == index || actor->counts[index] >= count));
}

#endif
