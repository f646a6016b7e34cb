// The stack of threads, for tests that it does not grow.
#ifndef WEIR_TESTS_SUPPORT_STACK_H
#define WEIR_TESTS_SUPPORT_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// How many bytes of their stacks threads used when they noted it. Zeroed before use.
struct weir_test_stack {
    atomic_size_t least;
    atomic_size_t most;
};

// Threads: safe.
void weir_test_stack_note(struct weir_test_stack *stack);

// Whether no thread used noticeably more than another.
bool weir_test_stack_is_flat(const struct weir_test_stack *stack);

#endif
