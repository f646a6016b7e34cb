// The groups of functions.
#include "tests/kernels/builtins/table.h"

const struct group *const groups[] = {
    &integer_group,       &relational_group, &rounding_group, &exponential_group,
    &trigonometric_group, &native_group,     &common_group,   &conversion_group,
    &memory_group,        &copies_group,     &atomic_group,
};
const size_t group_count = sizeof groups / sizeof *groups;
