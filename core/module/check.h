// Whether a module's header, ops table and key table are what <weir/module/module.h>
// asks for. Apart from the loader so that it can be tested on tables alone.
#ifndef WEIR_CORE_MODULE_CHECK_H
#define WEIR_CORE_MODULE_CHECK_H

#include <weir/module/module.h>

// The module ABI numbers that this library works with, WEIR_MODULE_ABI at the end.
#define WEIR__OLDEST_MODULE_ABI 1u

// Why something cannot be used, in one sentence, and what to do.
struct weir__finding {
    char reason[384];
    char remedy[256];
};

// Checks `module`, found in a file named after `name`, and describes the first
// thing that is wrong in `*out_finding`. `kind` 0 accepts either kind. Nothing
// behind the ABI number is read unless that number is in range, nothing behind
// `struct_size`, and no slot behind `slot_count`.
bool weir__module_check(const struct weir_module *module, const char *name,
                        enum weir_module_kind kind, struct weir__finding *out_finding);

// What the module asks for (enum weir_module_wants); 0 where its header has no place for it.
uint32_t weir__module_wants(const struct weir_module *module);

// Stores the module's slots at full size: those behind its `slot_count` are NULL.
void weir__module_read_ops(const struct weir_module *module, struct weir_module_ops *out_ops);

// "backend" or "plugin".
const char *weir__module_kind_name(enum weir_module_kind kind);

#endif
