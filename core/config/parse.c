// Parses lines into sections and entries. inih splits a line into key, value and
// comment; but on its own it folds indented lines into the key above, cuts long
// lines and long section names silently, does not report a section without keys
// and gives no line numbers. So it reads through next_line(), which only passes
// lines that inih cannot misread, and keeps the sections itself.
//
// Debian's inih is configured by global variables that any code in the process
// may change. Each key that next_line() passes must therefore come back through
// on_key(), or the file is refused.
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/config/parts.h"
#include "core/support/error.h"
#include "core/support/memory.h"

struct parser {
    struct weir__config *config;
    const char *at;
    const char *end;
    unsigned line;
    struct weir__config_part *part; // the section of the current line
    unsigned part_count;
    unsigned entry_count;
    bool key_pending; // passed to inih, not yet delivered
    weir_status status;
};

weir_status weir__config_fail(const char *origin, const char *remedy, const char *format, ...)
{
    char message[sizeof((struct weir_error *)0)->message];
    va_list arguments;
    va_start(arguments, format);
    weir_text_vabout(message, sizeof message, origin, format, arguments);
    va_end(arguments);
    return weir__fail(WEIR_ERROR_CONFIG, remedy, "%s", message);
}

weir_status weir__config_no_memory(void)
{
    return weir__fail(WEIR_ERROR_OUT_OF_MEMORY, NULL,
                      "there is no memory left to hold the configuration");
}

size_t weir__config_name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
}

static size_t origin_size(const struct parser *parser)
{
    return strlen(parser->config->label) + sizeof ":4294967295";
}

static void write_origin(char *text, const struct parser *parser)
{
    snprintf(text, origin_size(parser), "%s:%u", parser->config->label, parser->line);
}

static weir_status refuse(const struct parser *parser, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

static weir_status refuse(const struct parser *parser, const char *remedy, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);

    char *origin = weir__allocate(origin_size(parser));
    if (!origin)
        return weir__config_no_memory();
    write_origin(origin, parser);
    weir_status status = weir__config_fail(origin, remedy, "%s", sentence);
    weir__release(origin);
    return status;
}

static weir_status check_bytes(const struct parser *parser, const char *line, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)line;
    if (length > WEIR__CONFIG_LINE_LIMIT)
        return refuse(parser, "shorten it", "the line has %zu bytes, more than the limit of %d",
                      length, WEIR__CONFIG_LINE_LIMIT);
    size_t step;
    for (size_t i = 0; i < length; i += step) {
        step = weir_text_character(line + i, length - i);
        if (step == 0)
            return refuse(parser, "save the file as UTF-8", "byte %zu of the line is not UTF-8",
                          i + 1);
        if ((bytes[i] < 0x20 && bytes[i] != '\t') || bytes[i] == 0x7f)
            return refuse(parser, "remove it; the file is plain text",
                          "byte %zu of the line is a control character (0x%02x)", i + 1, bytes[i]);
    }
    return WEIR_OK;
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

static weir_status begin_section(struct parser *parser, const char *name, size_t length)
{
    struct weir__config_part **link = &parser->config->parts;
    for (; *link; link = &(*link)->next)
        if (strncmp((*link)->name, name, length) == 0 && (*link)->name[length] == '\0')
            return refuse(parser, "keep its keys together in one place",
                          "section [%s] is already in line %u", (*link)->name, (*link)->line);
    if (parser->part_count == WEIR__CONFIG_SECTION_LIMIT)
        return refuse(parser, NULL, "more than %d sections", WEIR__CONFIG_SECTION_LIMIT);

    struct weir__config_part *part = weir__allocate(sizeof *part + origin_size(parser));
    if (!part)
        return weir__config_no_memory();
    memcpy(part->name, name, length);
    write_origin((char *)(part + 1), parser);
    part->origin = (const char *)(part + 1);
    part->line = parser->line;
    *link = part;
    parser->part = part;
    parser->part_count++;
    return WEIR_OK;
}

static weir_status check_section_line(struct parser *parser, const char *line)
{
    const char *name = line + 1;
    const char *close = strchr(name, ']');
    if (!close)
        return refuse(parser, "write [name]", "the section name has no ']'");
    size_t length = (size_t)(close - name);
    if (length == 0)
        return refuse(parser, "write [name]", "the section name is empty");
    if (weir__config_name_length(name) < length)
        return refuse(parser, "use letters, digits, '_' and '-'",
                      "'%.*s' cannot be the name of a section", (int)length, name);
    if (length >= WEIR__NAME_SIZE)
        return refuse(parser, "check its spelling",
                      "the section name has %zu characters, more than the limit of %d", length,
                      WEIR__NAME_SIZE - 1);
    const char *rest = skip_blanks(close + 1);
    if (*rest != '\0' && (*rest != ';' || rest == close + 1))
        return refuse(parser, "start a new line, or put ' ;' before a comment",
                      "there is text after [%.*s]: '%s'", (int)length, name, close + 1);
    return begin_section(parser, name, length);
}

static weir_status check_key_line(struct parser *parser, const char *line)
{
    size_t length = weir__config_name_length(line);
    const char *rest = skip_blanks(line + length);
    if (*line == '=')
        return refuse(parser, "write key = value", "there is no key before the '='");
    if (!strchr(line, '='))
        return refuse(parser, "write key = value, [section], or ; before a comment",
                      "'%s' is not a section, a key or a comment", line);
    if (*rest != '=')
        return refuse(parser, "write key = value; keys have letters, digits, '_' and '-'",
                      "'%.*s' cannot be a key", (int)strcspn(line, "="), line);
    if (!parser->part)
        return refuse(parser, "put it under [weir], or where it belongs",
                      "'%.*s' comes before the first section", (int)length, line);
    parser->key_pending = true;
    return WEIR_OK;
}

static weir_status check_line(struct parser *parser, const char *line)
{
    const char *start = skip_blanks(line);
    if (*start == '\0' || *start == ';' || *start == '#')
        return WEIR_OK;
    if (start != line)
        return refuse(parser, "start it in the first column", "the line is indented: '%s'", start);
    if (*line == '[')
        return check_section_line(parser, line);
    return check_key_line(parser, line);
}

static weir_status check_delivered(const struct parser *parser)
{
    if (!parser->key_pending)
        return WEIR_OK;
    return refuse(parser, "find the code in this process that changes inih's ini_* variables",
                  "inih did not deliver the key of this line");
}

// Copies the next line, without its newline, into `line`.
static weir_status take_line(struct parser *parser, char *line, size_t size)
{
    weir_status status = check_delivered(parser);
    if (status != WEIR_OK)
        return status;

    const char *start = parser->at;
    const char *newline = memchr(start, '\n', (size_t)(parser->end - start));
    const char *stop = newline ? newline : parser->end;
    parser->at = newline ? newline + 1 : parser->end;
    parser->line++;
    if (newline && stop > start && stop[-1] == '\r')
        stop--;
    if (parser->line == 1 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        start += 3;

    size_t length = (size_t)(stop - start);
    status = check_bytes(parser, start, length);
    if (status != WEIR_OK)
        return status;
    if (length >= size)
        return refuse(parser, NULL, "the line does not fit inih's buffer of %zu bytes", size);
    memcpy(line, start, length);
    line[length] = '\0';
    return check_line(parser, line);
}

// inih's reader: ends the text at the first error.
static char *next_line(char *line, int size, void *stream)
{
    struct parser *parser = stream;
    if (parser->status != WEIR_OK || parser->at == parser->end)
        return NULL;
    parser->status = take_line(parser, line, (size_t)size);
    return parser->status == WEIR_OK ? line : NULL;
}

static weir_status check_value(const struct parser *parser, const char *name, const char *value)
{
    if (strchr(value, ';'))
        return refuse(parser, "put a space before the ';' of a comment",
                      "the value of '%s' holds a ';'", name);
    for (const char *hash = strchr(value, '#'); hash; hash = strchr(hash + 1, '#'))
        if (hash == value || is_blank(hash[-1]))
            return refuse(parser, "a comment after a value starts with ' ;'",
                          "the value of '%s' holds a '#'", name);
    return WEIR_OK;
}

static weir_status check_unique(const struct parser *parser, const char *name)
{
    const struct weir__config_entry *entry = parser->part->entries;
    for (; entry; entry = entry->next)
        if (strcmp(entry->name, name) == 0)
            return refuse(parser, "keep one of them", "'%s' of [%s] is already set in line %u",
                          name, parser->part->name, entry->line);
    if (parser->entry_count == WEIR__CONFIG_KEY_LIMIT)
        return refuse(parser, NULL, "more than %d keys", WEIR__CONFIG_KEY_LIMIT);
    return WEIR_OK;
}

static weir_status add_entry(struct parser *parser, const char *name, const char *value)
{
    size_t name_size = strlen(name) + 1;
    size_t value_size = strlen(value) + 1;
    struct weir__config_entry *entry =
        weir__allocate(sizeof *entry + name_size + value_size + origin_size(parser));
    if (!entry)
        return weir__config_no_memory();

    char *text = (char *)(entry + 1);
    entry->name = memcpy(text, name, name_size);
    entry->value = memcpy(text + name_size, value, value_size);
    write_origin(text + name_size + value_size, parser);
    entry->origin = text + name_size + value_size;
    entry->line = parser->line;

    struct weir__config_part *part = parser->part;
    *(part->last ? &part->last->next : &part->entries) = entry;
    part->last = entry;
    parser->entry_count++;
    return WEIR_OK;
}

// inih's handler: 0 stops. A later inih may announce sections with a NULL name.
static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct parser *parser = user;
    (void)section;
    if (!name || parser->status != WEIR_OK)
        return name == NULL;
    parser->key_pending = false;
    if (!value)
        value = "";
    parser->status = check_value(parser, name, value);
    if (parser->status == WEIR_OK)
        parser->status = check_unique(parser, name);
    if (parser->status == WEIR_OK)
        parser->status = add_entry(parser, name, value);
    return parser->status == WEIR_OK;
}

static weir_status parse(struct weir__config *config, const char *text, size_t size)
{
    struct parser parser = {.config = config, .at = text, .end = text + size};
    int result = ini_parse_stream(next_line, &parser, on_key, &parser);
    if (parser.status != WEIR_OK)
        return parser.status;
    if (result == -2)
        return weir__config_no_memory();
    return check_delivered(&parser);
}

weir_status weir__config_create(const char *label, const char *text, size_t size,
                                struct weir__config **out_config)
{
    weir_status status = WEIR_OK;
    *out_config = NULL;

    struct weir__config *config = weir__allocate(sizeof *config);
    if (config)
        config->label = weir__copy_text(label);
    if (!config || !config->label)
        status = weir__config_no_memory();
    else
        status = parse(config, text, size);
    if (status != WEIR_OK)
        weir__config_destroy(&config);
    *out_config = config;
    return status;
}

static void destroy_part(struct weir__config_part *part)
{
    while (part->entries) {
        struct weir__config_entry *entry = part->entries;
        part->entries = entry->next;
        weir__release(entry);
    }
    weir__release(part);
}

void weir__config_destroy(struct weir__config **config)
{
    if (!config || !*config)
        return;
    while ((*config)->parts) {
        struct weir__config_part *part = (*config)->parts;
        (*config)->parts = part->next;
        destroy_part(part);
    }
    for (size_t i = 0; i < WEIR__CONFIG_WEIR_KEYS; i++)
        weir__release((*config)->owned[i]);
    weir__config_drop_variables(*config);
    weir__release((*config)->label);
    weir__release(*config);
    *config = NULL;
}
