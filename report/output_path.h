// Names of the files that plugins write: none is written by two runtimes of a process.
#ifndef WEIR_REPORT_OUTPUT_PATH_H
#define WEIR_REPORT_OUTPUT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_OUTPUT_PATH_SIZE 512

// Stores the name of a file in `path` of WEIR_OUTPUT_PATH_SIZE: with the process's number for
// %p, and with a number added if the module has given out the name in this process. An empty name
// stays empty. False if it is too long.
bool weir_output_path_claim(const char *wanted, char *path);

// The name may be given out again. An empty name is accepted.
void weir_output_path_give_back(const char *path);

// Removes the file if it is a regular file.
void weir_output_path_remove(const char *path);

#ifdef __cplusplus
}
#endif

#endif
