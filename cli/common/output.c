// JSON and tables, of which an error is printed where memory runs out.
#include "cli/common/output.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/cli.h"

static _Thread_local bool lost;

void cli_json_set(json_t *object, const char *key, json_t *value)
{
    bool ok = !lost;
    weir_json_set(object, key, value, &ok);
    lost = !ok;
}

void cli_json_append(json_t *list, json_t *value)
{
    bool ok = !lost;
    weir_json_append(list, value, &ok);
    lost = !ok;
}

char *cli_json_text(json_t *value, size_t flags, size_t *out_size)
{
    const bool ok = !lost;
    lost = false;
    return weir_json_text(value, ok, flags, out_size);
}

int cli_json_print_as(json_t *value, size_t flags, int code)
{
    size_t size;
    char *text = cli_json_text(value, flags, &size);
    if (!text) {
        cli_error("no memory to write the JSON text");
        return code == CLI_OK ? CLI_FAILED : code;
    }
    fwrite(text, 1, size, stdout);
    free(text);
    return code;
}

int cli_json_print(json_t *value, int code)
{
    return cli_json_print_as(value, CLI_JSON_TEXT, code);
}

json_t *cli_json_string(const char *text)
{
    const size_t size = strlen(text);
    char *copy = malloc(size + 1);
    if (!copy)
        return NULL;
    for (size_t at = 0, length; at < size; at += length) {
        length = weir_text_character(text + at, size - at);
        if (length > 0)
            memcpy(copy + at, text + at, length);
        else
            copy[at] = '?', length = 1;
    }
    json_t *string = json_stringn(copy, size);
    free(copy);
    return string;
}

void cli_table_print(struct weir_table *table, FILE *to, size_t indent)
{
    struct weir_long_text text = {0};
    weir_table_end(table, indent, &text);
    if (text.failed)
        cli_error("no memory for a table");
    else if (text.text)
        fputs(text.text, to);
    free(text.text);
}
