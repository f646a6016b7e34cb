// The environment that adds a plugin to the chain of every runtime of a program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program/program.h"
#include "core/config/config.h"

_Static_assert(CLI_PROGRAM_PLUGINS_SIZE >= WEIR__CONFIG_LIST_LIMIT * (WEIR__NAME_SIZE + 2),
               "a list of plugins of the configuration has room");

static bool list_plugins(char names[][WEIR__NAME_SIZE], size_t *out_count)
{
    struct weir__config *config = NULL;
    const bool ok = weir__config_load(NULL, &config) >= 0 &&
                    weir__config_list(weir__config_weir(config, "plugins"), true, names,
                                      WEIR__CONFIG_LIST_LIMIT, out_count) >= 0;
    weir__config_destroy(&config);
    return ok;
}

bool cli_program_list_plugins(const char *without, char *text, size_t size)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    size_t count = 0;
    size_t used = 0;
    if (!list_plugins(names, &count))
        return false;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++)
        if (strcmp(names[i], without) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[i]);
    return true;
}

bool cli_program_add_plugin(const char *name)
{
    char others[CLI_PROGRAM_PLUGINS_SIZE];
    char text[sizeof others + WEIR__NAME_SIZE + 2];
    if (!cli_program_list_plugins(name, others, sizeof others))
        return false;
    snprintf(text, sizeof text, "%s%s%s", name, others[0] ? ", " : "", others);
    setenv("WEIR_PLUGINS", text, 1);
    return true;
}
