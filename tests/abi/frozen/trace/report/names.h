// The texts of a report, each stored once and numbered in the order of their addition.
#ifndef WEIR_REPORT_NAMES_H
#define WEIR_REPORT_NAMES_H

#include <stddef.h>

struct weir__names;

struct weir__names *weir__names_create(void);
void weir__names_destroy(struct weir__names *names);

// Returns the number of the text, which is copied if it is new; SIZE_MAX if out of memory.
size_t weir__names_number(struct weir__names *names, const char *text);

const char *weir__names_text(const struct weir__names *names, size_t number);
size_t weir__names_count(const struct weir__names *names);

#endif
