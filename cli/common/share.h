// Files that belong to the command: where its program lies, and its share folder.
#ifndef WEIR_CLI_COMMON_SHARE_H
#define WEIR_CLI_COMMON_SHARE_H

#include <stdbool.h>
#include <stddef.h>

// The directory of the program's file, links resolved. False if /proc does not tell.
bool cli_program_directory(char *directory, size_t size);

// Where `name` of this program's share folder lies, in `path`: share/weir of an
// installation, or `build_path` of a build tree.
//
// Errors: false, with both places in `message`.
bool cli_share_file(const char *name, const char *build_path, char *path, size_t path_size,
                    char *message, size_t message_size);

#endif
