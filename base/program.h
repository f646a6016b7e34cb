// Programs of PATH.
//
// Threads: safe, as long as no thread changes the environment.
#ifndef WEIR_BASE_PROGRAM_H
#define WEIR_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

// Stores the path of the first program of that name; "", and returns false, if there is none.
bool weir_program_find(const char *name, char *out, size_t size);

// The same for the newest clang whose version its name has, before `clang` itself if that may be an old one.
bool weir_program_find_clang(char *out, size_t size);

#endif
