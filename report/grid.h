// Text that grows, and tables in it whose columns stand below each other.
#ifndef WEIR_REPORT_GRID_H
#define WEIR_REPORT_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/common.h>

// Zeroed to begin with. After a failure for want of memory nothing is added any more.
struct weir__text {
    char *text;
    size_t used;
    size_t capacity;
    bool failed;
};

void weir__text_add(struct weir__text *text, const char *format, ...) WEIR_PRINTF(2, 3);

// Zeroed but for `alignment`, one letter a column: l or r.
struct weir__grid {
    const char *alignment;
    char **cells;
    size_t count;
    size_t capacity;
    bool failed;
};

void weir__grid_add(struct weir__grid *grid, const char *format, ...) WEIR_PRINTF(2, 3);

// Adds all rows to the text, two spaces before and between columns, and empties the grid.
void weir__grid_end(struct weir__grid *grid, struct weir__text *text);

#endif
