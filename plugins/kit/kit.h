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

// The backend's link.
const struct weir_link *plugin_last_link(const struct weir_link *link);

// Stores the name of the process's program, "" if it is not known.
void plugin_program_name(char *name, size_t size);

// A copy or a fill, of whichever shape.
struct plugin_transfer {
    const weir_buffer *dst;
    const weir_buffer *src; // NULL: a fill
    uint64_t bytes;
};

// False: the operation is neither.
bool plugin_transfer_of(const struct weir_operation *operation,
                        struct plugin_transfer *out_transfer);

// How many bytes a collective reads, or writes if it writes more.
uint64_t plugin_collective_bytes(const struct weir_operation *operation);

// The number that the bits of a scalar argument are; 0 for a half, a pointer and a structure.
double plugin_scalar_value(weir_scalar scalar, uint64_t bits);

// Keys of a plugin, for its table.
#define PLUGIN_TEXT(key, or_else, about)                                             \
    {                                                                                \
        .name = (key), .type = WEIR_KEY_TEXT, .fallback = (or_else), .help = (about) \
    }
#define PLUGIN_SWITCH(key, or_else, about)                                              \
    {                                                                                   \
        .name = (key), .type = WEIR_KEY_BOOLEAN, .fallback = (or_else), .help = (about) \
    }
#define PLUGIN_CHOICE(key, or_else, words, about)                                          \
    {                                                                                      \
        .name = (key), .type = WEIR_KEY_CHOICE, .fallback = (or_else), .choices = (words), \
        .help = (about)                                                                    \
    }
#define PLUGIN_NUMBER(key, or_else, least, most, about)                                     \
    {                                                                                       \
        .name = (key), .type = WEIR_KEY_INTEGER, .fallback = (or_else), .minimum = (least), \
        .maximum = (most), .help = (about)                                                  \
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
