// Text that grows, and tables of text with aligned columns. Numbers have a decimal point in every
// locale.
//
// If memory runs out, nothing is added from then on, and `failed` is set.
// Threads: a text or a table is used by one thread at a time.
#ifndef WEIR_BASE_TABLE_H
#define WEIR_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Zeroed before use.
//
// Ownership: `text` is the user's, to be freed with free().
struct weir_long_text {
    char *text; // NULL until something is added
    size_t used;
    size_t capacity;
    bool failed;
};

void weir_long_text_add(struct weir_long_text *text, const char *format, ...)
    WEIR_TEXT_PRINTF(2, 3);

// Adds so many bytes.
void weir_long_text_put(struct weir_long_text *text, const char *from, size_t size);
// Adds a text of unknown origin, such as a label, escaped as weir_text_escape() does it.
void weir_long_text_add_shown(struct weir_long_text *text, const char *from);

#define WEIR_TABLE_COLUMNS 64

// Zeroed but for `alignment`, one letter for each of at most WEIR_TABLE_COLUMNS columns: l or
// r. Cells are added row by row.
struct weir_table {
    const char *alignment;
    char **cells;
    size_t count;
    size_t capacity;
    bool failed;
};

// Adds the next cell, escaped as weir_text_escape() does it: labels stand in tables. Where the format has tabs it
// adds a cell for each part, and no text that comes from elsewhere is to be among them: it may have tabs of its own.
void weir_table_add(struct weir_table *table, const char *format, ...) WEIR_TEXT_PRINTF(2, 3);

// Adds all rows to the text, two spaces between columns and `indent` spaces before each row,
// and empties the table. A table that failed adds nothing, and the text then has failed too.
void weir_table_end(struct weir_table *table, size_t indent, struct weir_long_text *text);

// Frees the cells; the table is empty afterwards.
void weir_table_finish(struct weir_table *table);

#endif
