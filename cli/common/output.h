// JSON and aligned columns of text on stdout.
#ifndef WEIR_CLI_COMMON_OUTPUT_H
#define WEIR_CLI_COMMON_OUTPUT_H

#include <stdio.h>

#include "base/json/json.h"
#include "base/table.h"

// Forms of weir_json_text(). Numbers have as many digits as a float needs to be read back exactly.
#define CLI_JSON_TEXT (JSON_INDENT(2) | JSON_REAL_PRECISION(9))
#define CLI_JSON_LINE (JSON_COMPACT | JSON_REAL_PRECISION(9))

// Members and elements; `value` is released. What memory is lacking for is noted for the thread, which makes one
// document at a time, and the text is NULL then.
void cli_json_set(json_t *object, const char *key, json_t *value);
void cli_json_append(json_t *list, json_t *value);
// As weir_json_text().
char *cli_json_text(json_t *value, size_t flags, size_t *out_size);

// Prints `value` to stdout, releases it, and returns the exit code: `code`, or
// CLI_FAILED with a message if memory runs out. The form is CLI_JSON_TEXT, or `flags`.
int cli_json_print(json_t *value, int code);
int cli_json_print_as(json_t *value, size_t flags, int code);

// The text as a JSON string; bytes that are not UTF-8, such as those of file
// names, become '?'.
json_t *cli_json_string(const char *text);

// Prints all rows, each after `indent` spaces and with two spaces between columns, and
// empties the table. If the table ran out of memory, an error is printed to stderr.
void cli_table_print(struct weir_table *table, FILE *to, size_t indent);

#endif
