// Texts, each stored once and numbered from 0 in the order of their addition. The C library's tree has them, which is
// balanced, so no file can contain texts that take long.
//
// Threads: one at a time for each table.
#ifndef WEIR_BASE_NAMES_H
#define WEIR_BASE_NAMES_H

#include <stddef.h>

struct weir_names;

// NULL if out of memory.
//
// Ownership: the caller's, until weir_names_destroy(), which accepts NULL.
struct weir_names *weir_names_create(void);
void weir_names_destroy(struct weir_names *names);

// Returns the number of the text, which is copied if it is new; SIZE_MAX if out of memory.
size_t weir_names_number(struct weir_names *names, const char *text);
// The number of a text that is there; SIZE_MAX: it is not.
size_t weir_names_find(const struct weir_names *names, const char *text);
// The copy of the text, at the same address each time; NULL if out of memory.
const char *weir_names_keep(struct weir_names *names, const char *text);
// The same, but NULL also for a new text with which the table would take more than `limit` bytes.
const char *weir_names_keep_within(struct weir_names *names, const char *text, size_t limit);

// Valid until weir_names_destroy().
const char *weir_names_text(const struct weir_names *names, size_t number);
size_t weir_names_count(const struct weir_names *names);

#endif
