// The open devices of a runtime, which keep it from being closed.
#ifndef WEIR_CORE_OBJECT_OPENED_H
#define WEIR_CORE_OBJECT_OPENED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/object/device.h"

// Puts a device that has been opened on its runtime's list, and takes it off.
void weir__opened_add(weir_device *device);
void weir__opened_remove(weir_device *device);

// Notes the line of the program that opened it.
void weir__opened_place(weir_device *device, const char *file, int line);

// WEIR_ERROR_INVALID, with their names and lines, while devices are open.
weir_status weir__opened_refuse(struct weir__shared *shared);

// What keeps a device or a runtime from being closed, as text: as much as an error's message has room for,
// and one line for each, for the log, where that is not all.

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
