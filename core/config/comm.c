// The keys of [comm].
#include "core/config/config.h"

#include <string.h>

#include "core/config/parts.h"

static const struct weir_key keys[WEIR__CONFIG_COMM_KEYS] = {
    {
        .name = "transport",
        .type = WEIR_KEY_TEXT,
        .fallback = "local",
        .help = "The module that carries collectives between the memories of hosts.",
    },
    {
        .name = "rank",
        .type = WEIR_KEY_INTEGER,
        .fallback = "0",
        .maximum = UINT32_MAX - 1,
        .help = "This process's rank, if `count` is not 0.",
    },
    {
        .name = "count",
        .type = WEIR_KEY_INTEGER,
        .fallback = "0",
        .maximum = UINT32_MAX,
        .help = "The count of ranks; 0 means that the launcher's variables tell it and the rank.",
    },
    {
        .name = "rendezvous",
        .type = WEIR_KEY_TEXT,
        .fallback = "",
        .help = "Where the ranks meet: tcp://HOST:PORT, unix:PATH or file:PATH; nothing means that "
                "MASTER_ADDR and MASTER_PORT tell.",
    },
    {
        .name = "timeout",
        .type = WEIR_KEY_INTEGER,
        .fallback = "300",
        .minimum = 1,
        .maximum = 86400,
        .help = "Seconds until a communicator's creation, or a collective that is due, fails.",
    },
    {
        .name = "check",
        .type = WEIR_KEY_BOOLEAN,
        .fallback = "0",
        .help = "Whether all ranks compare a collective's arguments before it runs.",
    },
};

const struct weir_section weir__config_comm_table = {
    .struct_size = sizeof weir__config_comm_table,
    .name = "comm",
    .keys = keys,
    .key_count = WEIR__CONFIG_COMM_KEYS,
    .key_size = sizeof *keys,
};

const struct weir_setting *weir__config_comm(const struct weir__config *config, const char *key)
{
    for (size_t i = 0; i < WEIR__CONFIG_COMM_KEYS; i++)
        if (strcmp(key, keys[i].name) == 0)
            return &config->comm[i];
    return NULL;
}
