// A diagnostic of clang's begins with "FILE:LINE:COLUMN: SEVERITY: "; sentences of the kernel
// compiler begin with "SEVERITY: ", or "FILE: SEVERITY: " where a file is at fault. The lines that
// show the source begin with blanks.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common/json.h"
#include "cli/kernels/kernels.h"

static const char *const severities[] = {"fatal error", "error", "warning", "note"};

struct diagnostic {
    const char *severity;
    const char *place; // FILE:LINE:COLUMN
    size_t place_length;
    const char *message;
    size_t message_length;
};

// The first place in the line where a severity stands.
static bool find_severity(const char *line, size_t length, struct diagnostic *out)
{
    for (size_t at = 0; at < length; at++) {
        if (at > 0 && (at < 2 || line[at - 1] != ' ' || line[at - 2] != ':'))
            continue;
        for (size_t i = 0; i < sizeof severities / sizeof *severities; i++) {
            const size_t size = strlen(severities[i]);
            if (length - at < size + 2 || strncmp(line + at, severities[i], size) != 0 ||
                strncmp(line + at + size, ": ", 2) != 0)
                continue;
            *out = (struct diagnostic){severities[i], line, at >= 2 ? at - 2 : 0,
                                       line + at + size + 2, length - at - size - 2};
            return true;
        }
    }
    return false;
}

// Takes ":NUMBER" off the end of the place.
static bool take_number(struct diagnostic *diagnostic, unsigned long *out)
{
    size_t start = diagnostic->place_length;
    while (start > 0 && isdigit((unsigned char)diagnostic->place[start - 1]))
        start--;
    if (start < 2 || start == diagnostic->place_length || diagnostic->place[start - 1] != ':')
        return false;
    *out = strtoul(diagnostic->place + start, NULL, 10);
    diagnostic->place_length = start - 1;
    return true;
}

static json_t *text_of(const char *text, size_t length)
{
    char *copy = strndup(text, length);
    json_t *value = copy ? cli_json_string(copy) : NULL;
    free(copy);
    return value;
}

static json_t *number_of(bool known, unsigned long number)
{
    return known ? cli_json_count(number) : json_null();
}

static void add(json_t *list, struct diagnostic diagnostic, bool *ok)
{
    unsigned long line = 0, column = 0;
    bool has_column = take_number(&diagnostic, &column);
    bool has_line = has_column && take_number(&diagnostic, &line);
    if (has_column && !has_line) { // there is one number only
        line = column;
        has_line = true;
        has_column = false;
    }
    json_t *entry = json_object();
    cli_json_set(entry, "file",
                 diagnostic.place_length > 0 ? text_of(diagnostic.place, diagnostic.place_length)
                                             : json_null(),
                 ok);
    cli_json_set(entry, "line", number_of(has_line, line), ok);
    cli_json_set(entry, "column", number_of(has_column, column), ok);
    cli_json_set(entry, "severity", json_string(diagnostic.severity), ok);
    cli_json_set(entry, "message", text_of(diagnostic.message, diagnostic.message_length), ok);
    cli_json_append(list, entry, ok);
}

json_t *kernels_diagnostics(const char *report, bool *ok)
{
    json_t *list = json_array();
    for (const char *line = report; *line;) {
        const size_t length = strcspn(line, "\n");
        struct diagnostic diagnostic;
        if (!isblank((unsigned char)*line) && find_severity(line, length, &diagnostic))
            add(list, diagnostic, ok);
        line += length + (line[length] == '\n');
    }
    return list;
}
