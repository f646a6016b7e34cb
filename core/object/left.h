// What keeps a device or a runtime from being closed, as text: as much as an error's message has room for,
// and one line for each, for the log, where that is not all.
#ifndef WEIR_CORE_OBJECT_LEFT_H
#define WEIR_CORE_OBJECT_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__left {
    uint32_t count;
    uint32_t untold; // that `list` has no room for
    char list[400];  // ", the queue 'q' (created at a.c:3), ..."
    size_t used;
    char *lines; // of all, each with its NUL; NULL: none, or no memory for them
    size_t lines_used;
    size_t lines_size;
    bool lines_cut; // there was no memory for some of them
};

// Adds one; `listed`: to the list too. May be called with locks held. Zero is an empty one.
void weir__left_add(struct weir__left *left, const char *text, bool listed);

// Ends the list: what it has no room for is counted there.
void weir__left_end(struct weir__left *left);

// If the list has not all, logs a line for each: `prefix` and its text. Frees the lines. Without locks.
void weir__left_log(struct weir__left *left, const char *prefix);

#endif
