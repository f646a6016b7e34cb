// The module of a plugin for tests, and the function that exports it.
#ifndef WEIR_TESTS_PLUGINS_PLUGIN_H
#define WEIR_TESTS_PLUGINS_PLUGIN_H

#include <weir/module/module.h>

// Designated members of struct weir_module may follow the table.
#define TEST_PLUGIN(plugin, table, ...)                                                          \
    static const struct weir_module module_info = {.abi = WEIR_MODULE_ABI,                       \
                                                   .struct_size = sizeof(struct weir_module),    \
                                                   .kind = WEIR_MODULE_PLUGIN,                   \
                                                   .name = (plugin),                             \
                                                   .version = WEIR_VERSION_STRING,               \
                                                   .build_id = "",                               \
                                                   .sanitizer = WEIR_MODULE_SANITIZER,           \
                                                   .key_size = sizeof(struct weir_key),          \
                                                   .slot_count = WEIR_MODULE_SLOT_COUNT,         \
                                                   .operation_kinds = WEIR_OPERATION_KINDS,      \
                                                   .ops = &(table),                              \
                                                   __VA_ARGS__};                                 \
    const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host) \
    {                                                                                            \
        (void)host_abi;                                                                          \
        (void)host;                                                                              \
        return &module_info;                                                                     \
    }

#endif
