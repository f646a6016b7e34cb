// json_dumps() silently drops bytes when memory runs out while it writes, so the text
// is measured first and then written into a buffer of that size.
#include "cli/common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"

#define PRECISION JSON_REAL_PRECISION(9)
#define FLAGS (JSON_INDENT(2) | PRECISION)

void cli_json_set(json_t *object, const char *key, json_t *value, bool *ok)
{
    if (json_object_set_new(object, key, value) != 0)
        *ok = false;
}

void cli_json_append(json_t *array, json_t *value, bool *ok)
{
    if (json_array_append_new(array, value) != 0)
        *ok = false;
}

static char *make_text(const json_t *value, size_t flags, size_t *out_size)
{
    const size_t size = json_dumpb(value, NULL, 0, flags);
    char *text = size > 0 ? malloc(size + 2) : NULL;
    *out_size = 0;
    if (!text)
        return NULL;
    if (json_dumpb(value, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    text[size] = '\n';
    text[size + 1] = '\0';
    *out_size = size + 1;
    return text;
}

char *cli_json_text(const json_t *value, size_t *out_size)
{
    return make_text(value, FLAGS, out_size);
}

char *cli_json_line(const json_t *value, size_t *out_size)
{
    return make_text(value, JSON_COMPACT | PRECISION, out_size);
}

static int print(json_t *value, bool ok, size_t flags, int code)
{
    size_t size;
    char *text = ok && value ? make_text(value, flags, &size) : NULL;
    json_decref(value);
    if (!text) {
        cli_error("no memory to write the JSON text");
        return code == CLI_OK ? CLI_FAILED : code;
    }
    fwrite(text, 1, size, stdout);
    free(text);
    return code;
}

int cli_json_print(json_t *value, bool ok, int code)
{
    return print(value, ok, FLAGS, code);
}

int cli_json_print_line(json_t *value, bool ok, int code)
{
    return print(value, ok, JSON_COMPACT | PRECISION, code);
}

json_t *cli_json_count(uint64_t number)
{
    return json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number);
}

json_t *cli_json_string(const char *text)
{
    json_t *string = json_string(text);
    if (string)
        return string;
    // Not UTF-8, or out of memory; in that case the next call fails too.
    char copy[4096];
    size_t used = 0;
    for (; *text && used + 1 < sizeof copy; text++)
        copy[used++] = (unsigned char)*text < 0x80 ? *text : '?';
    copy[used] = '\0';
    return json_string(copy);
}
