// The environment that adds a plugin to the chain of every runtime of a program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program/program.h"
#include "core/config/config.h"

enum {
    TEXT_SIZE = (WEIR__CONFIG_LIST_LIMIT + 1) * (WEIR__NAME_SIZE + 2),
};

static bool list_plugins(char names[][WEIR__NAME_SIZE], size_t *out_count)
{
    struct weir__config *config = NULL;
    const bool ok = weir__config_load(NULL, &config) >= 0 &&
                    weir__config_list(weir__config_weir(config, "plugins"), true, names,
                                      WEIR__CONFIG_LIST_LIMIT, out_count) >= 0;
    weir__config_destroy(&config);
    return ok;
}

bool cli_program_add_plugin(const char *name)
{
    char names[WEIR__CONFIG_LIST_LIMIT][WEIR__NAME_SIZE];
    char text[TEXT_SIZE];
    size_t count = 0;
    if (!list_plugins(names, &count))
        return false;
    size_t used = (size_t)snprintf(text, sizeof text, "%s", name);
    for (size_t i = 0; i < count && used < sizeof text; i++)
        if (strcmp(names[i], name) != 0)
            used += (size_t)snprintf(text + used, sizeof text - used, ", %s", names[i]);
    setenv("WEIR_PLUGINS", text, 1);
    return true;
}
