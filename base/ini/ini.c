// inih splits a line into key, value and comment; but on its own it folds
// indented lines into the key above, cuts long lines and long section names
// silently, does not report a section without keys and gives no line numbers. So
// it reads through next_line(), which only passes lines that inih cannot misread,
// and its sections are not used.
//
// Debian's inih is configured by global variables that any code in the process
// may change. Each key that next_line() passes must therefore come back through
// on_key(), or the text is refused.
#include "base/ini/ini.h"

#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct reader {
    const struct weir_ini_handler *handler;
    void *user;
    const char *at;
    const char *end;
    unsigned line;
    bool in_section;
    bool key_pending; // passed to inih, not yet delivered
    enum weir_ini_end result;
};

size_t weir_ini_name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

static bool refuse(struct reader *reader, const char *remedy, const char *format, ...)
    WEIR_TEXT_PRINTF(3, 4);

static bool refuse(struct reader *reader, const char *remedy, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    reader->handler->refuse(reader->user, reader->line, remedy, sentence);
    reader->result = WEIR_INI_REFUSED;
    return false;
}

static bool stop_unless(struct reader *reader, bool more)
{
    if (!more)
        reader->result = WEIR_INI_STOPPED;
    return more;
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
    while (is_blank(*text))
        text++;
    return text;
}

// "kind NAME", with one space.
static bool is_of_kind(const struct reader *reader, const char *name, size_t length)
{
    const char *kind = reader->handler->kind;
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
    reader->in_section = true;
    return stop_unless(reader, reader->handler->section(reader->user, reader->line, name, length));
}

static bool check_key_line(struct reader *reader, const char *line)
{
    size_t length = weir_ini_name_length(line);
    const char *rest = skip_blanks(line + length);
    if (*line == '=')
        return refuse(reader, "write key = value", "there is no key before the '='");
    if (!strchr(line, '='))
        return refuse(reader, "write key = value, [section], or ; before a comment",
                      "'%s' is not a section, a key or a comment", line);
    if (*rest != '=')
        return refuse(reader, "write key = value; keys have letters, digits, '_' and '-'",
                      "'%.*s' cannot be a key", (int)strcspn(line, "="), line);
    if (!reader->in_section)
        return refuse(reader, reader->handler->sectionless_remedy,
                      "'%.*s' comes before the first section", (int)length, line);
    reader->key_pending = true;
    return true;
}

static bool check_line(struct reader *reader, const char *line)
{
    const char *start = skip_blanks(line);
    if (*start == '\0' || *start == ';' || *start == '#')
        return true;
    if (start != line)
        return refuse(reader, "start it in the first column", "the line is indented: '%s'", start);
    if (*line == '[')
        return take_section(reader, line);
    return check_key_line(reader, line);
}

static bool check_delivered(struct reader *reader)
{
    if (!reader->key_pending)
        return true;
    return refuse(reader, "find the code in this process that changes inih's ini_* variables",
                  "inih did not deliver the key of this line");
}

// Copies the next line, without its newline, into `line`.
static bool take_line(struct reader *reader, char *line, size_t size)
{
    if (!check_delivered(reader))
        return false;

    const char *start = reader->at;
    const char *newline = memchr(start, '\n', (size_t)(reader->end - start));
    const char *stop = newline ? newline : reader->end;
    reader->at = newline ? newline + 1 : reader->end;
    reader->line++;
    if (newline && stop > start && stop[-1] == '\r')
        stop--;
    if (reader->line == 1 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        start += 3;

    size_t length = (size_t)(stop - start);
    if (!check_bytes(reader, start, length))
        return false;
    if (length >= size)
        return refuse(reader, NULL, "the line does not fit inih's buffer of %zu bytes", size);
    memcpy(line, start, length);
    line[length] = '\0';
    return check_line(reader, line);
}

// inih's reader: ends the text at the first error.
static char *next_line(char *line, int size, void *stream)
{
    struct reader *reader = stream;
    if (reader->result != WEIR_INI_END || reader->at == reader->end)
        return NULL;
    return take_line(reader, line, (size_t)size) ? line : NULL;
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
    (void)section;
    if (!name || reader->result != WEIR_INI_END)
        return name == NULL;
    reader->key_pending = false;
    if (!value)
        value = "";
    return check_value(reader, name, value) &&
           stop_unless(reader, reader->handler->entry(reader->user, reader->line, name, value));
}

enum weir_ini_end weir_ini_read(const char *text, size_t size,
                                const struct weir_ini_handler *handler, void *user)
{
    struct reader reader = {.handler = handler, .user = user, .at = text, .end = text + size};
    const int result = ini_parse_stream(next_line, &reader, on_key, &reader);
    if (reader.result == WEIR_INI_END && result == -2)
        return WEIR_INI_NO_MEMORY;
    if (reader.result == WEIR_INI_END)
        check_delivered(&reader);
    return reader.result;
}
