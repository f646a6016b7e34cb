// The programs of the table, one for each type, and the groups of functions in them; generate.c
// lists these.
#ifndef WEIR_TESTS_KERNELS_BUILTINS_PROGRAMS_H
#define WEIR_TESTS_KERNELS_BUILTINS_PROGRAMS_H

#include <weir/program.h>

#include "tests/kernels/builtins/table.h"

struct program {
    const char *name; // "integer_char"
    const struct weir_bundle *bundle;
    const struct group *group;
    enum type type;
};

extern const struct program programs[];
extern const size_t program_count;

#endif
