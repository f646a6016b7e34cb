// JSON with jansson, also where memory runs out: jansson up to 2.14 goes on without the bytes that its scanner
// had no memory for, and writes outside of its memory; what it prints lacks the bytes that it had no memory for.
//
// Threads: safe; one text is read at a time.
#ifndef WEIR_BASE_JSON_JSON_H
#define WEIR_BASE_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

// As json_loadb(). `error` may be NULL; json_error_code() of it is json_error_out_of_memory where an
// allocation failed.
json_t *weir_json_load(const char *text, size_t size, size_t flags, json_error_t *error);

// Adds a value and takes over the reference. A NULL value, which jansson's constructors return when memory
// runs out, sets `*ok` to false.
void weir_json_set(json_t *object, const char *key, json_t *value, bool *ok);
void weir_json_append(json_t *array, json_t *value, bool *ok);

// A number; the largest that jansson has in place of a larger one.
json_t *weir_json_count(uint64_t number);

// The text of `value`, which is released, with a newline at its end. `flags` are those of json_dumps().
// `out_size` may be NULL.
//
// Ownership: the caller's, to be freed with free().
// Errors: NULL if `ok` is false or memory runs out.
char *weir_json_text(json_t *value, bool ok, size_t flags, size_t *out_size);

#endif
