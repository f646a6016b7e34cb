// Shared by the files of the configuration. The only other user is the fuzzer,
// which passes text with zero bytes.
#ifndef WEIR_CORE_CONFIG_PARTS_H
#define WEIR_CORE_CONFIG_PARTS_H

#include "core/config/config.h"

enum {
    WEIR__CONFIG_WEIR_KEYS = 7,
    WEIR__CONFIG_COMM_KEYS = 6,
};

// One "key = value" of the file. The strings are stored after the structure.
struct weir__config_entry {
    struct weir__config_entry *next;
    const char *name;
    const char *value;
    const char *origin;
    unsigned line;
};

// One section of the file, with its entries in order.
struct weir__config_part {
    struct weir__config_part *next;
    struct weir__config_entry *entries;
    struct weir__config_entry *last;
    const char *origin;
    unsigned line;
    char name[WEIR__NAME_SIZE];
};

struct weir__config {
    char *label; // the file's name in messages
    struct weir__config_part *parts;
    struct weir_setting weir[WEIR__CONFIG_WEIR_KEYS];
    struct weir_setting comm[WEIR__CONFIG_COMM_KEYS];
    struct weir__config_owned *variables; // names and values that replaced those of the file
};

// Checks and reads the text of a setting. `section` is named in messages.
weir_status weir__config_read_value(struct weir_setting *setting, const char *section);

// Frees what weir__config_replace() has kept.
void weir__config_drop_variables(struct weir__config *config);

// Parses `size` bytes; checks lines, but no table. `label` names them in messages.
weir_status weir__config_create(const char *label, const char *text, size_t size,
                                struct weir__config **out_config);

// The section of that name, or NULL.
const struct weir__config_part *weir__config_find(const struct weir__config *config,
                                                  const char *name);

// Fails with WEIR_ERROR_CONFIG and "ORIGIN: MESSAGE".
weir_status weir__config_fail(const char *origin, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

// The message for memory that ran out.
weir_status weir__config_no_memory(void);

#endif
