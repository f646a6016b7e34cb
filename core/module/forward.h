// Functions for the slots that a module does not set, so that no call has to test a
// slot.
#ifndef WEIR_CORE_MODULE_FORWARD_H
#define WEIR_CORE_MODULE_FORWARD_H

#include <weir/module/module.h>

// Unset slots of a plugin forward to the next link; creates and destroys stay unset.
void weir__fill_slots_of_plugin(struct weir_module_ops *ops);

// Unset optional slots of a backend do what their lines in the ops table say.
void weir__fill_slots_of_backend(struct weir_module_ops *ops);

#endif
