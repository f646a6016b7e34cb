// The check of a bundle before a program is created from it.
#ifndef WEIR_CORE_PROGRAM_BUNDLE_H
#define WEIR_CORE_PROGRAM_BUNDLE_H

#include <weir/program.h>

// Refuses a bundle with NULL in a member that modules read. `label` is the
// program's.
weir_status weir__bundle_check(const struct weir_bundle *bundle, const char *label);

#endif
