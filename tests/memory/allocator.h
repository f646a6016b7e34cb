// An allocator for a whole process, C libraries and modules included, of which one call fails. Linked
// into a program it replaces the C library's; as a shared library it is preloaded into a command, which
// has it from the environment:
//
//     WEIR_TEST_FAIL_ALLOCATION=N   the N-th call of the process fails, from 0; none: only counted
//     WEIR_TEST_FAIL_RANK=R         only in the process whose RANK is R
//     WEIR_TEST_ALLOCATION_COUNT=F  the number of calls is written to the file F at the end
#ifndef WEIR_TESTS_MEMORY_ALLOCATOR_H
#define WEIR_TESTS_MEMORY_ALLOCATOR_H

#include <stdbool.h>

// Of all calls from now on, number `index`, from 0, returns NULL; negative: none does. Calls are counted
// from here.
void weir_test_arm(long index);

// Since weir_test_arm().
long weir_test_calls(void);

// Blocks that are allocated.
long weir_test_live(void);

#endif
