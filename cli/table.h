// Aligned columns of text.
#ifndef WEIR_CLI_TABLE_H
#define WEIR_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/common.h>

// Zeroed but for `alignment`, one letter a column: l or r. Cells are added row by
// row; a table that runs out of memory prints what it has.
struct cli_table {
    const char *alignment;
    char **cells;
    size_t count;
    size_t capacity;
};

// Adds the next cell.
void cli_table_add(struct cli_table *table, const char *format, ...) WEIR_PRINTF(2, 3);

// Prints all rows with two spaces between columns, each behind `indent` spaces, and
// frees the table's memory.
void cli_table_print(struct cli_table *table, FILE *to, int indent);

// Frees the table's memory; it is empty afterwards.
void cli_table_finish(struct cli_table *table);

#define CLI_TEXT_SIZE 32

// "85.2 ms", "1.24 s", and "54.5 MiB" in `text` of CLI_TEXT_SIZE bytes; both
// return it.
const char *cli_duration(char *text, double ns);
const char *cli_bytes(char *text, uint64_t bytes);

#endif
