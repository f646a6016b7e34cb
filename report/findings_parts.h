// Shared by the files that write JSON.
#ifndef WEIR_REPORT_FINDINGS_PARTS_H
#define WEIR_REPORT_FINDINGS_PARTS_H

#include <jansson.h>

#include "report/findings.h"

// Adds a value and takes over the reference. A NULL value, which jansson's constructors return when
// memory runs out, sets `*ok` to false.
void weir__findings_set(json_t *object, const char *key, json_t *value, bool *ok);
void weir__findings_append(json_t *array, json_t *value, bool *ok);
void weir__findings_set_text(json_t *object, const char *key, const char *text, bool *ok);
void weir__findings_set_count(json_t *object, const char *key, uint64_t number, bool *ok);

// The text of `root`, which is released, with a newline at its end; NULL if `ok` is false or memory
// runs out.
char *weir__findings_dump(json_t *root, bool ok);

#endif
