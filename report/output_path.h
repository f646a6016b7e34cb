// Names of the files that plugins write: none is written by two runtimes of a process, nor by two processes of
// this machine at the same time.
#ifndef WEIR_REPORT_OUTPUT_PATH_H
#define WEIR_REPORT_OUTPUT_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_OUTPUT_PATH_SIZE 512

// Stores the name that `wanted` means in the process of that number, which stands for %p: without %p, rank 1 of a job
// has "trace.rank1.json" for "trace.json", and rank 0 the name itself. An empty name stays empty, and one
// of a pipe or a device as it is. False if it is too long for `path` of WEIR_OUTPUT_PATH_SIZE.
bool weir_output_path_name(const char *wanted, uint64_t process, char *path);

// Whether a process of a job may write a file of that name, without a folder, for `wanted`.
bool weir_output_path_is_of(const char *name, const char *wanted);

// The same as weir_output_path_name() for this process, with a number added if the module has given out the name in
// this process, or another process has it: "trace.2.json".
bool weir_output_path_claim(const char *wanted, char *path);

// The name may be given out again. An empty name is accepted.
void weir_output_path_give_back(const char *path);

// Removes the file if it is a regular file.
void weir_output_path_remove(const char *path);

#endif
