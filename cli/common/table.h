// Aligned columns of text on a stream.
#ifndef WEIR_CLI_COMMON_TABLE_H
#define WEIR_CLI_COMMON_TABLE_H

#include <stdio.h>

#include "base/table.h"

// Prints all rows, each after `indent` spaces and with two spaces between columns, and
// empties the table. If the table ran out of memory, an error is printed to stderr.
void cli_table_print(struct weir_table *table, FILE *to, size_t indent);

#endif
