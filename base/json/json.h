// Reads JSON with jansson, also where memory runs out: jansson up to 2.14 goes on without the bytes that
// its scanner had no memory for, and writes outside of its memory.
//
// Threads: safe; one text is read at a time.
#ifndef WEIR_BASE_JSON_JSON_H
#define WEIR_BASE_JSON_JSON_H

#include <stddef.h>

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

// As json_loadb(). `error` may be NULL; json_error_code() of it is json_error_out_of_memory where an
// allocation failed.
json_t *weir_json_load(const char *text, size_t size, size_t flags, json_error_t *error);

#ifdef __cplusplus
}
#endif

#endif
