// The check of a bundle that a program is to be made from.
#ifndef WEIR_CORE_PROGRAM_BUNDLE_H
#define WEIR_CORE_PROGRAM_BUNDLE_H

#include <weir/program.h>

// Refuses a bundle with NULL where a module reads. `label` is the program's.
weir_status weir__bundle_check(const struct weir_bundle *bundle, const char *label);

#endif
