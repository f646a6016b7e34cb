// A line is checked as a whole, and inih then splits that of a key into key, value and comment. On its own inih folds
// indented lines into the key above, cuts long lines and long section names silently, does not report a section
// without keys and gives no line numbers.
//
// Debian's inih is configured by global variables that any code in the process may change: a key that it does not
// deliver is refused.
#include "base/ini/ini.h"

#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/names.h"
#include "base/text.h"

struct reader {
    const struct weir_ini_rules *rules;
    struct weir_ini *ini;
    unsigned line;
    size_t section_count;
    size_t section; // the index of its entry
    bool delivered; // the key of the line, by inih
    struct weir_ini_refusal *refusal;
};

#ifdef INI_MAX_LINE
_Static_assert(INI_MAX_LINE > WEIR_INI_LINE_LIMIT, "a line fits inih's buffer");
#endif

size_t weir_ini_name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

WEIR_TEXT_PRINTF(3, 4)
static bool refuse(struct reader *reader, const char *remedy, const char *format, ...)
{
    struct weir_ini_refusal *refusal = reader->refusal;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(refusal->sentence, sizeof refusal->sentence, format, arguments);
    va_end(arguments);
    refusal->line = reader->line;
    refusal->remedy = remedy;
    return false;
}

// The refusal of line 0 is that of a text for which there is no memory.
static bool add(struct reader *reader, const char *section, const char *key, const char *value)
{
    struct weir_ini *ini = reader->ini;
    struct weir_ini_entry *entries =
        weir_grow(ini->entries, ini->count, &ini->capacity, sizeof *entries);
    if (!entries)
        return false;
    ini->entries = entries;
    struct weir_ini_entry *entry = &entries[ini->count++];
    *entry = (struct weir_ini_entry){.line = reader->line,
                                     .section = weir_names_keep(ini->texts, section),
                                     .key = key ? weir_names_keep(ini->texts, key) : NULL,
                                     .value = value ? weir_names_keep(ini->texts, value) : NULL};
    return entry->section && !key == !entry->key && !value == !entry->value;
}

static bool check_bytes(struct reader *reader, const char *line, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)line;
    if (length > WEIR_INI_LINE_LIMIT)
        return refuse(reader, "shorten it", "the line has %zu bytes, more than the limit of %d",
                      length, WEIR_INI_LINE_LIMIT);
    size_t step;
    for (size_t i = 0; i < length; i += step) {
        step = weir_text_character(line + i, length - i);
        if (step == 0)
            return refuse(reader, "save the file as UTF-8", "byte %zu of the line is not UTF-8",
                          i + 1);
        if ((bytes[i] < 0x20 && bytes[i] != '\t') || bytes[i] == 0x7f)
            return refuse(reader, "remove it; the file is plain text",
                          "byte %zu of the line is a control character (0x%02x)", i + 1, bytes[i]);
    }
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

// "kind NAME", with one space.
static bool is_of_kind(const struct reader *reader, const char *name, size_t length)
{
    const char *kind = reader->rules->kind;
    const size_t kind_length = kind ? strlen(kind) : 0;
    return kind && length > kind_length + 1 && strncmp(name, kind, kind_length) == 0 &&
           name[kind_length] == ' ' && !is_blank(name[kind_length + 1]) &&
           !is_blank(name[length - 1]);
}

static bool check_section_name(struct reader *reader, const char *name, size_t length)
{
    if (length == 0)
        return refuse(reader, "write [name]", "the section name is empty");
    if (is_of_kind(reader, name, length))
        return true;
    if (weir_ini_name_length(name) < length)
        return refuse(reader, "use letters, digits, '_' and '-'",
                      "'%.*s' cannot be the name of a section", (int)length, name);
    if (length >= WEIR_INI_NAME_SIZE)
        return refuse(reader, "check its spelling",
                      "the section name has %zu characters, more than the limit of %d", length,
                      WEIR_INI_NAME_SIZE - 1);
    return true;
}

static bool take_section(struct reader *reader, const char *line)
{
    const char *name = line + 1;
    const char *close = strchr(name, ']');
    if (!close)
        return refuse(reader, "write [name]", "the section name has no ']'");
    size_t length = (size_t)(close - name);
    if (!check_section_name(reader, name, length))
        return false;
    const char *rest = skip_blanks(close + 1);
    if (*rest != '\0' && (*rest != ';' || rest == close + 1))
        return refuse(reader, "start a new line, or put ' ;' before a comment",
                      "there is text after [%.*s]: '%s'", (int)length, name, close + 1);
    char section[WEIR_INI_LINE_LIMIT + 1];
    snprintf(section, sizeof section, "%.*s", (int)length, name);
    for (size_t i = 0; i < reader->ini->count; i++)
        if (!reader->ini->entries[i].key && strcmp(reader->ini->entries[i].section, section) == 0)
            return refuse(reader, "keep its keys together in one place",
                          "section [%s] is already in line %u", section,
                          reader->ini->entries[i].line);
    if (reader->section_count++ == reader->rules->section_limit)
        return refuse(reader, NULL, "more than %zu sections", reader->rules->section_limit);
    reader->section = reader->ini->count;
    return add(reader, section, NULL, NULL);
}

static bool check_value(struct reader *reader, const char *name, const char *value)
{
    if (strchr(value, ';'))
        return refuse(reader, "put a space before the ';' of a comment",
                      "the value of '%s' holds a ';'", name);
    for (const char *hash = strchr(value, '#'); hash; hash = strchr(hash + 1, '#'))
        if (hash == value || is_blank(hash[-1]))
            return refuse(reader, "a comment after a value starts with ' ;'",
                          "the value of '%s' holds a '#'", name);
    return true;
}

// inih's handler: 0 stops. A later inih may announce sections with a NULL name.
static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct reader *reader = user;
    if (!name)
        return 1;
    reader->delivered = true;
    value = value ? value : "";
    if (!check_value(reader, name, value))
        return 0;
    const struct weir_ini_entry *entries = reader->ini->entries;
    const char *in = entries[reader->section].section;
    for (size_t i = reader->section + 1; i < reader->ini->count; i++)
        if (strcmp(entries[i].key, name) == 0)
            return refuse(reader, "keep one of them", "'%s' of [%s] is already set in line %u",
                          name, in, entries[i].line);
    if (reader->ini->count - reader->section > WEIR_INI_KEY_LIMIT)
        return refuse(reader, "a key stands once", "[%s] has more than %d keys", in,
                      WEIR_INI_KEY_LIMIT);
    return add(reader, in, name, value);
}

static bool take_entry(struct reader *reader, const char *line)
{
    const size_t length = weir_ini_name_length(line);
    if (*line == '=')
        return refuse(reader, "write key = value", "there is no key before the '='");
    if (!strchr(line, '='))
        return refuse(reader, "write key = value, [section], or ; before a comment",
                      "'%s' is not a section, a key or a comment", line);
    if (*skip_blanks(line + length) != '=')
        return refuse(reader, "write key = value; keys have letters, digits, '_' and '-'",
                      "'%.*s' cannot be a key", (int)strcspn(line, "="), line);
    if (reader->section_count == 0)
        return refuse(reader, reader->rules->sectionless_remedy,
                      "'%.*s' comes before the first section", (int)length, line);
    reader->delivered = false;
    const int code = ini_parse_string(line, on_key, reader);
    if (code != -2 && !reader->delivered)
        return refuse(
            reader,
            "find the code in this process that changes inih's ini_* variables, or the inih "
            "that takes only shorter lines",
            "inih did not deliver the key of this line");
    return code == 0;
}

static bool take_line(struct reader *reader, const char *text, size_t length)
{
    char line[WEIR_INI_LINE_LIMIT + 1];
    if (!check_bytes(reader, text, length))
        return false;
    memcpy(line, text, length);
    line[length] = '\0';
    const char *start = skip_blanks(line);
    if (*start == '\0' || *start == ';' || *start == '#')
        return true;
    if (start != line)
        return refuse(reader, "start it in the first column", "the line is indented: '%s'", start);
    return *line == '[' ? take_section(reader, line) : take_entry(reader, line);
}

void weir_ini_finish(struct weir_ini *ini)
{
    free(ini->entries);
    weir_names_destroy(ini->texts);
    *ini = (struct weir_ini){.entries = NULL};
}

bool weir_ini_read(const char *text, size_t size, const struct weir_ini_rules *rules,
                   struct weir_ini *out_ini, struct weir_ini_refusal *out_refusal)
{
    struct reader reader = {.rules = rules, .ini = out_ini, .refusal = out_refusal};
    const char *const end = text + size;
    const char *at = text;
    *out_ini = (struct weir_ini){.texts = weir_names_create()};
    *out_refusal = (struct weir_ini_refusal){.sentence = "there is no memory to read it"};
    bool more = out_ini->texts;
    if (size >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (more && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline ? newline : end;
        const bool returns = newline && next > at && next[-1] == '\r';
        reader.line++;
        more = take_line(&reader, at, (size_t)(next - at) - returns);
        at = newline ? newline + 1 : end;
    }
    if (!more)
        weir_ini_finish(out_ini);
    return more;
}
