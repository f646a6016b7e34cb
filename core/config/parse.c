// Checks entries against tables: sections, keys, and the form of values.
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini/ini.h"
#include "base/text.h"
#include "core/config/config.h"
#include "core/support/error.h"
#include "core/support/memory.h"

// Builds "PREFIXa, b, c" from names that are added one by one.
struct name_list {
    char text[200];
    size_t used;
};

static void name_list_add(struct name_list *list, const char *prefix, const char *name)
{
    weir_text_append(list->text, sizeof list->text, &list->used, "%s%s",
                     list->used == 0 ? prefix : ", ", name);
}

struct weir__config_entry *weir__config_keep(struct weir__config_entry **list, const char *section,
                                             const char *name, const char *value,
                                             const char *origin)
{
    const char *const texts[] = {section, name, value, origin};
    size_t sizes[4], size = 0;
    for (int i = 0; i < 4; i++)
        size += sizes[i] = texts[i] ? strlen(texts[i]) + 1 : 0;
    struct weir__config_entry *entry = weir__allocate(sizeof *entry + size);
    if (!entry)
        return NULL;
    const char **const copies[] = {&entry->section, &entry->name, &entry->value, &entry->origin};
    char *at = (char *)(entry + 1);
    for (int i = 0; i < 4; at += sizes[i++])
        if (texts[i])
            *copies[i] = memcpy(at, texts[i], sizes[i]);
    entry->next = *list;
    *list = entry;
    return entry;
}

static void drop(struct weir__config_entry *list)
{
    while (list) {
        struct weir__config_entry *next = list->next;
        weir__release(list);
        list = next;
    }
}

const struct weir__config_entry *weir__config_find(const struct weir__config *config,
                                                   const char *section, const char *name)
{
    const struct weir__config_entry *entry = config->entries;
    for (; entry; entry = entry->next)
        if (strcmp(entry->section, section) == 0 &&
            (name ? entry->name && strcmp(entry->name, name) == 0 : !entry->name))
            break;
    return entry;
}

const char *weir__config_section_name(const struct weir__config *config, size_t index)
{
    const struct weir__config_entry *entry = config->entries;
    while (entry && (entry->name || index-- > 0))
        entry = entry->next;
    return entry ? entry->section : NULL;
}

static weir_status unknown_section(const struct weir__config_entry *entry, const char *const *known,
                                   size_t count)
{
    struct name_list list = {.used = 0};
    for (size_t i = 0; i < count; i++)
        name_list_add(&list, "the sections are ", known[i]);
    const char *nearest = weir_text_nearest(entry->section, known, count);
    if (!nearest)
        return weir__config_fail(entry->origin, list.text, "unknown section [%s]", entry->section);
    return weir__config_fail(entry->origin, NULL, "unknown section [%s]; did you mean [%s]?",
                             entry->section, nearest);
}

weir_status weir__config_check_sections(const struct weir__config *config, const char *const *known,
                                        size_t count)
{
    for (const struct weir__config_entry *entry = config->entries; entry; entry = entry->next) {
        size_t i = 0;
        while (i < count && strcmp(entry->section, known[i]) != 0)
            i++;
        if (i == count)
            return unknown_section(entry, known, count);
    }
    return WEIR_OK;
}

static const struct weir_key *key_of(const struct weir_section *section, uint32_t index)
{
    return weir_key_at(section->keys, section->key_size, index);
}

static weir_status unknown_key(const struct weir__config_entry *entry,
                               const struct weir_section *section)
{
    struct name_list list = {.used = 0};
    const char *nearest = NULL;
    for (uint32_t i = 0; i < section->key_count; i++) {
        const char *name = key_of(section, i)->name;
        name_list_add(&list, "its keys are ", name);
        nearest = weir_text_nearer(entry->name, nearest, name);
    }
    if (!nearest)
        return weir__config_fail(entry->origin, list.used ? list.text : "the section has no keys",
                                 "unknown key '%s' in [%s]", entry->name, section->name);
    return weir__config_fail(entry->origin, NULL, "unknown key '%s' in [%s]; did you mean '%s'?",
                             entry->name, section->name, nearest);
}

// Digits with an optional '-', and one spelling for each number.
static bool is_decimal(const char *text)
{
    const char *digits = text + (*text == '-');
    size_t count = strspn(digits, "0123456789");
    return count > 0 && digits[count] == '\0' && (digits[0] != '0' || strcmp(text, "0") == 0);
}

static weir_status read_integer(struct weir_setting *setting, const char *section)
{
    const struct weir_key *key = setting->key;
    if (!is_decimal(setting->text))
        return weir__config_fail(setting->origin, "write digits alone, without leading zeros",
                                 "'%s' of [%s] needs a decimal number from %" PRId64 " to %" PRId64
                                 ", not '%s'",
                                 key->name, section, key->minimum, key->maximum, setting->text);
    errno = 0;
    long long value = strtoll(setting->text, NULL, 10);
    if (errno == ERANGE || value < key->minimum || value > key->maximum)
        return weir__config_fail(setting->origin, NULL,
                                 "'%s' of [%s] must be from %" PRId64 " to %" PRId64 ", not %s",
                                 key->name, section, key->minimum, key->maximum, setting->text);
    setting->integer = value;
    return WEIR_OK;
}

static weir_status read_boolean(struct weir_setting *setting, const char *section)
{
    if (strcmp(setting->text, "0") != 0 && strcmp(setting->text, "1") != 0)
        return weir__config_fail(setting->origin, NULL, "'%s' of [%s] must be 0 or 1, not '%s'",
                                 setting->key->name, section, setting->text);
    setting->integer = setting->text[0] - '0';
    return WEIR_OK;
}

static weir_status check_choice(const struct weir_setting *setting, const char *section)
{
    struct name_list list = {.used = 0};
    const char *nearest = NULL;
    for (const char *const *choice = setting->key->choices; choice && *choice; choice++) {
        if (strcmp(setting->text, *choice) == 0)
            return WEIR_OK;
        name_list_add(&list, "choose one of ", *choice);
        nearest = weir_text_nearer(setting->text, nearest, *choice);
    }
    if (!nearest)
        return weir__config_fail(setting->origin, list.text, "'%s' of [%s] cannot be '%s'",
                                 setting->key->name, section, setting->text);
    return weir__config_fail(setting->origin, list.text,
                             "'%s' of [%s] cannot be '%s'; did you mean '%s'?", setting->key->name,
                             section, setting->text, nearest);
}

weir_status weir__config_read_value(struct weir_setting *setting, const char *section)
{
    switch (setting->key->type) {
    case WEIR_KEY_TEXT:
        return WEIR_OK;
    case WEIR_KEY_INTEGER:
        return read_integer(setting, section);
    case WEIR_KEY_BOOLEAN:
        return read_boolean(setting, section);
    case WEIR_KEY_CHOICE:
        return check_choice(setting, section);
    }
    return weir__config_fail(setting->origin, "rebuild what declares the section",
                             "the table of [%s] gives '%s' the unknown type %d", section,
                             setting->key->name, (int)setting->key->type);
}

const struct weir_setting *weir__config_find_setting(const char *name,
                                                     const struct weir_section *section,
                                                     const struct weir_setting *settings)
{
    for (uint32_t i = 0; i < section->key_count; i++)
        if (strcmp(name, key_of(section, i)->name) == 0)
            return &settings[i];
    return NULL;
}

// A default of "" means none and is not checked against the type.
static weir_status fill_default(struct weir_setting *setting, const struct weir_key *key,
                                const char *section)
{
    *setting = (struct weir_setting){.key = key, .text = "", .origin = "default"};
    if (!key->fallback || key->fallback[0] == '\0')
        return WEIR_OK;
    setting->text = key->fallback;
    return weir__config_read_value(setting, section);
}

weir_status weir__config_section(const struct weir__config *config,
                                 const struct weir_section *section, struct weir_setting *settings)
{
    for (uint32_t i = 0; i < section->key_count; i++) {
        weir_status status = fill_default(&settings[i], key_of(section, i), section->name);
        if (status != WEIR_OK)
            return status;
    }

    for (const struct weir__config_entry *entry = config->entries; entry; entry = entry->next) {
        if (!entry->name || strcmp(entry->section, section->name) != 0)
            continue;
        const struct weir_setting *found =
            weir__config_find_setting(entry->name, section, settings);
        if (!found)
            return unknown_key(entry, section);
        struct weir_setting *setting = &settings[found - settings];
        setting->text = entry->value;
        setting->origin = entry->origin;
        weir_status status = weir__config_read_value(setting, section->name);
        if (status != WEIR_OK)
            return status;
    }
    return WEIR_OK;
}

// Copies the item of `length` bytes into `name`.
static weir_status take_item(const struct weir_setting *setting, const char *item, size_t length,
                             char name[WEIR__NAME_SIZE])
{
    const char *key = setting->key->name;
    if (length == 0)
        return weir__config_fail(setting->origin, "remove the extra comma",
                                 "'%s' has an empty name in '%s'", key, setting->text);
    if (weir_ini_name_length(item) < length)
        return weir__config_fail(setting->origin,
                                 "separate names by commas; they have letters, digits, '_' and '-'",
                                 "'%s' holds '%.*s', which is not a name", key, (int)length, item);
    if (length >= WEIR__NAME_SIZE)
        return weir__config_fail(setting->origin, "check its spelling",
                                 "'%s' holds a name of %zu characters, more than the limit of %d",
                                 key, length, WEIR__NAME_SIZE - 1);
    memcpy(name, item, length);
    name[length] = '\0';
    return WEIR_OK;
}

static weir_status check_repeat(const struct weir_setting *setting, char names[][WEIR__NAME_SIZE],
                                size_t last)
{
    for (size_t i = 0; i < last; i++)
        if (strcmp(names[i], names[last]) == 0)
            return weir__config_fail(setting->origin, "name it once", "'%s' names '%s' twice",
                                     setting->key->name, names[last]);
    return WEIR_OK;
}

weir_status weir__config_list(const struct weir_setting *setting, bool allow_repeats,
                              char names[][WEIR__NAME_SIZE], size_t max, size_t *out_count)
{
    static const char blanks[] = " \t";
    const char *at = setting->text + strspn(setting->text, blanks);
    size_t count = 0;
    *out_count = 0;

    for (bool more = *at != '\0'; more; count++) {
        at += strspn(at, blanks);
        size_t length = strcspn(at, ",");
        more = at[length] == ',';
        size_t shown = length;
        while (shown > 0 && strchr(blanks, at[shown - 1]))
            shown--;
        if (count == max)
            return weir__config_fail(setting->origin, NULL, "'%s' has more than %zu names",
                                     setting->key->name, max);
        weir_status status = take_item(setting, at, shown, names[count]);
        if (status == WEIR_OK && !allow_repeats)
            status = check_repeat(setting, names, count);
        if (status != WEIR_OK)
            return status;
        at += length + more;
    }
    *out_count = count;
    return WEIR_OK;
}

// Keeps the lines that base/ini/ini.h reads as sections and entries.

_Static_assert(WEIR_INI_NAME_SIZE == WEIR__NAME_SIZE &&
                   WEIR_INI_LINE_LIMIT == WEIR__CONFIG_LINE_LIMIT,
               "the language's limits are those of the configuration");

struct parser {
    struct weir__config *config;
    struct weir__config_entry **end;
    char *origin; // of the current line
    size_t origin_size;
    const char *section;
    unsigned section_count;
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

static void begin_line(struct parser *parser, unsigned line)
{
    snprintf(parser->origin, parser->origin_size, "%s:%u", parser->config->label, line);
}

// Keeps what the line says.
static weir_status add(struct parser *parser, const char *section, const char *name,
                       const char *value, unsigned line)
{
    struct weir__config_entry *entry =
        weir__config_keep(parser->end, section, name, value, parser->origin);
    if (!entry)
        return weir__config_no_memory();
    entry->line = line;
    parser->end = &entry->next;
    parser->section = entry->section;
    return WEIR_OK;
}

static weir_status begin_section(struct parser *parser, const char *name, unsigned line)
{
    const struct weir__config_entry *known = weir__config_find(parser->config, name, NULL);
    if (known)
        return weir__config_fail(parser->origin, "keep its keys together in one place",
                                 "section [%s] is already in line %u", name, known->line);
    if (parser->section_count++ == WEIR__CONFIG_SECTION_LIMIT)
        return weir__config_fail(parser->origin, NULL, "more than %d sections",
                                 WEIR__CONFIG_SECTION_LIMIT);
    return add(parser, name, NULL, NULL, line);
}

static weir_status add_entry(struct parser *parser, const char *name, const char *value,
                             unsigned line)
{
    const struct weir__config_entry *known =
        weir__config_find(parser->config, parser->section, name);
    if (known)
        return weir__config_fail(parser->origin, "keep one of them",
                                 "'%s' of [%s] is already set in line %u", name, parser->section,
                                 known->line);
    if (parser->entry_count++ == WEIR__CONFIG_KEY_LIMIT)
        return weir__config_fail(parser->origin, NULL, "more than %d keys", WEIR__CONFIG_KEY_LIMIT);
    return add(parser, parser->section, name, value, line);
}

static bool on_section(void *user, unsigned line, const char *name, size_t length)
{
    struct parser *parser = user;
    char section[WEIR__NAME_SIZE];
    begin_line(parser, line);
    snprintf(section, sizeof section, "%.*s", (int)length, name);
    parser->status = begin_section(parser, section, line);
    return parser->status == WEIR_OK;
}

static bool on_entry(void *user, unsigned line, const char *name, const char *value)
{
    struct parser *parser = user;
    begin_line(parser, line);
    parser->status = add_entry(parser, name, value, line);
    return parser->status == WEIR_OK;
}

static void on_refused(void *user, unsigned line, const char *remedy, const char *sentence)
{
    struct parser *parser = user;
    begin_line(parser, line);
    parser->status = weir__config_fail(parser->origin, remedy, "%s", sentence);
}

static weir_status parse(struct weir__config *config, const char *text, size_t size)
{
    static const struct weir_ini_handler handler = {
        .section = on_section,
        .entry = on_entry,
        .refuse = on_refused,
        .sectionless_remedy = "put it under [weir], or where it belongs",
    };
    struct parser parser = {.config = config,
                            .end = &config->entries,
                            .origin_size = strlen(config->label) + sizeof ":4294967295"};
    parser.origin = weir__allocate(parser.origin_size);
    if (!parser.origin || weir_ini_read(text, size, &handler, &parser) == WEIR_INI_NO_MEMORY)
        parser.status = weir__config_no_memory();
    weir__release(parser.origin);
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

void weir__config_destroy(struct weir__config **config)
{
    if (!config || !*config)
        return;
    drop((*config)->entries);
    drop((*config)->replaced);
    weir__release((*config)->label);
    weir__release(*config);
    *config = NULL;
}
