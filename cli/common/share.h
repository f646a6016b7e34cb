// Files that are installed with the command.
#ifndef WEIR_CLI_COMMON_SHARE_H
#define WEIR_CLI_COMMON_SHARE_H

#include <stdbool.h>
#include <stddef.h>

// The directory of the program's file, links resolved. False if /proc/self/exe cannot be
// read.
bool cli_program_directory(char *directory, size_t size);

// Stores the path of the shared file `name` in `path`: share/weir/NAME of an
// installation, else `build_path` of a build tree.
//
// Errors: false if there is neither, with both paths in `message`.
bool cli_share_file(const char *name, const char *build_path, char *path, size_t path_size,
                    char *message, size_t message_size);

#endif
