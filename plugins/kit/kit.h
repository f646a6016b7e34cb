// What plugins share: what one asks of the chain that it is in and of an operation, and the module at the end of its
// sources.
//
// Threads: safe.
#ifndef WEIR_PLUGINS_KIT_KIT_H
#define WEIR_PLUGINS_KIT_KIT_H

#include <weir/module/error.h>
#include <weir/module/module.h>

// For plugins that may be in a chain once only. `remedy` says what to do about a second one.
//
// Errors: WEIR_ERROR_CONFIG if a link after this one is of the same plugin.
weir_status plugin_refuse_second(const struct weir_link *link, const char *remedy);

// How many bytes a collective reads, or writes if it writes more.
uint64_t plugin_collective_bytes(const struct weir_operation *operation);

// The number that the bits of a scalar argument are; 0 for a half, a pointer and a structure.
double plugin_scalar_value(weir_scalar scalar, uint64_t bits);

// The module of a plugin with the table `ops` and the texts `about`, and the function that exports it. `wants` as in
// struct weir_module.
#define PLUGIN_MODULE(plugin, plugin_keys, plugin_key_count, plugin_wants)                       \
    WEIR_MODULE(WEIR_MODULE_PLUGIN, plugin, WEIR_VERSION_STRING, WEIR_MODULE_OPS(ops),           \
                .keys = (plugin_keys), .key_count = (plugin_key_count), .wants = (plugin_wants), \
                .about = about)

#endif
