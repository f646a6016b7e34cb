// What plugins share: what one asks of the chain that it is in, and the module at the end of its sources.
#ifndef WEIR_PLUGINS_KIT_CHAIN_H
#define WEIR_PLUGINS_KIT_CHAIN_H

#include <string.h>

#include <weir/module/error.h>
#include <weir/module/module.h>

// For plugins that may be in a chain once only. `remedy` says what to do about a second one.
//
// Errors: WEIR_ERROR_CONFIG if a link after this one is of the same plugin.
static inline weir_status plugin_refuse_second(const struct weir_link *link, const char *remedy)
{
    for (const struct weir_link *at = link->next; at; at = at->next)
        if (strcmp(at->name, link->name) == 0)
            return weir_host_fail(link->host, WEIR_ERROR_CONFIG, remedy,
                                  "the plugin %.60s is twice in the chain", link->name);
    return WEIR_OK;
}

// The module of a plugin with the table `ops` and the texts `about`, and the function that exports it. `wants` as in
// struct weir_module.
#define PLUGIN_MODULE(plugin, plugin_keys, plugin_key_count, plugin_wants)                       \
    static const struct weir_module module_info = {                                              \
        .abi = WEIR_MODULE_ABI,                                                                  \
        .struct_size = sizeof(struct weir_module),                                               \
        .kind = WEIR_MODULE_PLUGIN,                                                              \
        .name = (plugin),                                                                        \
        .version = WEIR_VERSION_STRING,                                                          \
        .build_id = __VERSION__, /* the compiler's */                                            \
        .sanitizer = WEIR_MODULE_SANITIZER,                                                      \
        .keys = (plugin_keys),                                                                   \
        .key_count = (plugin_key_count),                                                         \
        .key_size = sizeof(struct weir_key),                                                     \
        .slot_count = WEIR_MODULE_SLOT_COUNT,                                                    \
        .operation_kinds = WEIR_OPERATION_KINDS,                                                 \
        .ops = &ops,                                                                             \
        .wants = (plugin_wants),                                                                 \
        .about = about,                                                                          \
    };                                                                                           \
    const struct weir_module *weir_module_query(uint32_t host_abi, const struct weir_host *host) \
    {                                                                                            \
        (void)host_abi;                                                                          \
        (void)host;                                                                              \
        return &module_info;                                                                     \
    }

#endif
