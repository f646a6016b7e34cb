// Keeps the lines that base/ini/ini.h reads as sections and entries.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/ini/ini.h"
#include "base/text.h"
#include "core/config/parts.h"
#include "core/support/error.h"
#include "core/support/memory.h"

_Static_assert(WEIR_INI_NAME_SIZE == WEIR__NAME_SIZE &&
                   WEIR_INI_LINE_LIMIT == WEIR__CONFIG_LINE_LIMIT,
               "the language's limits are those of the configuration");

struct parser {
    struct weir__config *config;
    struct weir__config_part *part; // the section of the current line
    unsigned line;
    unsigned part_count;
    unsigned entry_count;
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

static bool on_section(void *user, unsigned line, const char *name, size_t length)
{
    struct parser *parser = user;
    parser->line = line;
    parser->status = begin_section(parser, name, length);
    return parser->status == WEIR_OK;
}

static bool on_entry(void *user, unsigned line, const char *name, const char *value)
{
    struct parser *parser = user;
    parser->line = line;
    parser->status = check_unique(parser, name);
    if (parser->status == WEIR_OK)
        parser->status = add_entry(parser, name, value);
    return parser->status == WEIR_OK;
}

static void on_refused(void *user, unsigned line, const char *remedy, const char *sentence)
{
    struct parser *parser = user;
    parser->line = line;
    parser->status = refuse(parser, remedy, "%s", sentence);
}

static weir_status parse(struct weir__config *config, const char *text, size_t size)
{
    static const struct weir_ini_handler handler = {
        .section = on_section,
        .entry = on_entry,
        .refuse = on_refused,
        .sectionless_remedy = "put it under [weir], or where it belongs",
    };
    struct parser parser = {.config = config};
    if (weir_ini_read(text, size, &handler, &parser) == WEIR_INI_NO_MEMORY)
        return weir__config_no_memory();
    return parser.status;
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
