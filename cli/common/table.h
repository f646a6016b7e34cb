// Aligned columns of text on a stream.
#ifndef WEIR_CLI_COMMON_TABLE_H
#define WEIR_CLI_COMMON_TABLE_H

#include <stdio.h>

#include "base/table.h"

// Prints all rows with two spaces between columns, each behind `indent` spaces, and empties
// the table. One that ran out of memory is an error on stderr.
void cli_table_print(struct weir_table *table, FILE *to, size_t indent);

#endif
