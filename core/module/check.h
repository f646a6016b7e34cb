// Checks a module's header, ops table and key table against <weir/module/module.h>. Separate
// from the loader so that it can be tested with tables only.
#ifndef WEIR_CORE_MODULE_CHECK_H
#define WEIR_CORE_MODULE_CHECK_H

#include <weir/module/transport.h>

// The reason why a module cannot be used, in one sentence, and the remedy.
struct weir__finding {
    char reason[384];
    char remedy[256];
};

// Checks `module`, found in a file named after `name`, and describes the first thing that is
// wrong in `*out_finding`. `kind` 0 accepts every kind. Nothing after the ABI number is
// read unless that number is WEIR_MODULE_ABI, nothing past `struct_size`, and no slot past
// `slot_count`.
bool weir__module_check(const struct weir_module *module, const char *name,
                        enum weir_module_kind kind, struct weir__finding *out_finding);

// Stores what this library knows of a module's header; what the header lacks is zero.
void weir__module_read(const struct weir_module *module, struct weir_module *out_module);

// The section of a configuration that the module's keys make.
struct weir_section weir__module_section(const struct weir_module *module);

// Stores the module's slots at full size: those past its `slot_count` are NULL. All are for a
// transport.
void weir__module_read_ops(const struct weir_module *module, struct weir_module_ops *out_ops);

// The same of a transport's functions. All are NULL for another kind.
void weir__module_read_transport(const struct weir_module *module,
                                 struct weir_transport_ops *out_ops);

// "backend", "plugin" or "transport".
const char *weir__module_kind_name(enum weir_module_kind kind);

#endif
