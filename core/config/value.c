// Checks entries against tables: sections, keys, and the form of values.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini/ini.h"
#include "base/text.h"
#include "core/config/parts.h"

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

const struct weir__config_part *weir__config_find(const struct weir__config *config,
                                                  const char *name)
{
    const struct weir__config_part *part = config->parts;
    while (part && strcmp(part->name, name) != 0)
        part = part->next;
    return part;
}

const char *weir__config_section_name(const struct weir__config *config, size_t index)
{
    const struct weir__config_part *part = config->parts;
    while (part && index-- > 0)
        part = part->next;
    return part ? part->name : NULL;
}

static weir_status unknown_section(const struct weir__config_part *part, const char *const *known,
                                   size_t count)
{
    struct name_list list = {.used = 0};
    for (size_t i = 0; i < count; i++)
        name_list_add(&list, "the sections are ", known[i]);
    const char *nearest = weir_text_nearest(part->name, known, count);
    if (!nearest)
        return weir__config_fail(part->origin, list.text, "unknown section [%s]", part->name);
    return weir__config_fail(part->origin, NULL, "unknown section [%s]; did you mean [%s]?",
                             part->name, nearest);
}

weir_status weir__config_check_sections(const struct weir__config *config, const char *const *known,
                                        size_t count)
{
    for (const struct weir__config_part *part = config->parts; part; part = part->next) {
        size_t i = 0;
        while (i < count && strcmp(part->name, known[i]) != 0)
            i++;
        if (i == count)
            return unknown_section(part, known, count);
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
    for (const char *const *choice = setting->key->choices; *choice; choice++) {
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

static struct weir_setting *find_setting(const char *name, const struct weir_section *section,
                                         struct weir_setting *settings)
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

    const struct weir__config_part *part = weir__config_find(config, section->name);
    const struct weir__config_entry *entry = part ? part->entries : NULL;
    for (; entry; entry = entry->next) {
        struct weir_setting *setting = find_setting(entry->name, section, settings);
        if (!setting)
            return unknown_key(entry, section);
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
