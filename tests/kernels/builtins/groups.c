// The groups of functions.
#include "tests/kernels/builtins/table.h"

const struct group *const groups[] = {&integer_group, &relational_group};
const size_t group_count = sizeof groups / sizeof *groups;
