// What the programs for machines with GPUs print.
#ifndef WEIR_TESTS_CUDA_CHECK_H
#define WEIR_TESTS_CUDA_CHECK_H

#include <weir/weir.h>

extern int check_failures;
extern bool check_quiet; // good checks print nothing

// Prints a line, and counts it if it is bad. Returns `good`.
bool check(bool good, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
