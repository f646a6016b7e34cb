// Variables of the environment in place of what the file says.
#define _GNU_SOURCE // secure_getenv

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "core/config/parts.h"
#include "core/support/memory.h"

struct weir__config_owned {
    struct weir__config_owned *next;
    char *name;
    char *value;
};

static void add_upper(char *text, size_t size, size_t *used, const char *name)
{
    for (; *name && *used + 1 < size; name++)
        text[(*used)++] = *name == '-' ? '_' : weir_text_upper(*name);
    text[*used] = '\0';
}

// "WEIR_TRACE_FILE" for `file` of [trace].
static void name_variable(const char *section, const char *key, char *text, size_t size)
{
    size_t used = 0;
    add_upper(text, size, &used, "WEIR_");
    add_upper(text, size, &used, section);
    add_upper(text, size, &used, "_");
    add_upper(text, size, &used, key);
}

// The environment may change later, so the configuration keeps copies.
static weir_status keep(struct weir__config *config, const char *name, const char *value,
                        struct weir_setting *setting)
{
    struct weir__config_owned *owned = weir__allocate(sizeof *owned);
    if (!owned)
        return weir__config_no_memory();
    *owned = (struct weir__config_owned){.next = config->variables,
                                         .name = weir__copy_text(name),
                                         .value = weir__copy_text(value)};
    config->variables = owned;
    if (!owned->name || !owned->value)
        return weir__config_no_memory();
    setting->text = owned->value;
    setting->origin = owned->name;
    return WEIR_OK;
}

weir_status weir__config_replace(struct weir__config *config, const struct weir_section *section,
                                 struct weir_setting *settings)
{
    char name[256];
    for (uint32_t i = 0; i < section->key_count; i++) {
        name_variable(section->name, settings[i].key->name, name, sizeof name);
        const char *value = secure_getenv(name);
        weir_status status = value ? keep(config, name, value, &settings[i]) : WEIR_OK;
        if (value && status == WEIR_OK)
            status = weir__config_read_value(&settings[i], section->name);
        if (status < 0)
            return status;
    }
    return WEIR_OK;
}

void weir__config_drop_variables(struct weir__config *config)
{
    while (config->variables) {
        struct weir__config_owned *owned = config->variables;
        config->variables = owned->next;
        weir__release(owned->name);
        weir__release(owned->value);
        weir__release(owned);
    }
}
