// Writing JSON to stdout, or as one text for a file.
#ifndef WEIR_CLI_COMMON_JSON_H
#define WEIR_CLI_COMMON_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

// Adds a value to an object or an array and takes over the reference. A NULL value, which
// jansson's constructors return when memory runs out, sets `*ok` to false.
void cli_json_set(json_t *object, const char *key, json_t *value, bool *ok);
void cli_json_append(json_t *array, json_t *value, bool *ok);

// The text, ending in a newline, or NULL if out of memory. Numbers have as many
// digits as a float needs to be read back exactly.
//
// Ownership: the caller's, to be freed with free().
char *cli_json_text(const json_t *value, size_t *out_size);

// The same in one line.
char *cli_json_line(const json_t *value, size_t *out_size);

// Prints `value` to stdout, releases it, and returns the exit code: `code`, or
// CLI_FAILED with a message when `ok` is false or memory runs out.
int cli_json_print(json_t *value, bool ok, int code);
int cli_json_print_line(json_t *value, bool ok, int code);

// A number as a JSON integer; above INT64_MAX, which is the largest that readers take, that.
json_t *cli_json_count(uint64_t number);

// The text as a JSON string; bytes that are not UTF-8, such as those of file
// names, become '?'.
json_t *cli_json_string(const char *text);

#endif
