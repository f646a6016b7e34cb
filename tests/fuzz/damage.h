// Shared by the fuzzers: bytes that are damaged step by step, in the same
// way on every run.
#ifndef WEIR_TESTS_FUZZ_DAMAGE_H
#define WEIR_TESTS_FUZZ_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

struct damaged {
    uint8_t *bytes;
    size_t size;
    size_t room;
};

// xorshift32, from 0 to `limit` - 1; 0 if `limit` is.
size_t damage_below(uint32_t *state, size_t limit);

// Does not change the bytes if there is not enough room.
void damage_insert(struct damaged *damaged, size_t at, const void *bytes, size_t size);
void damage_erase(struct damaged *damaged, size_t at, size_t size);

// Changes a text in one way: some of it goes, comes again, or is another; `pieces` are some of what it is made of.
void damage_change(struct damaged *damaged, uint32_t *state, const char *const *pieces,
                   size_t count);

// Calls `check` with a block of exactly that size, so that a sanitizer notices reads past it.
const char *damage_check(const char *(*check)(const uint8_t *bytes, size_t size),
                         const uint8_t *bytes, size_t size);

// Writes the bytes to a file, without the sync of base/file.h. NULL if that failed. Its name is short, since messages cut long
// ones: the process goes to the test's folder.
const char *damage_file(const uint8_t *bytes, size_t size);

#endif
