// A folder for the files of one command, in the folder that TMPDIR names, else in /tmp.
#ifndef WEIR_CLI_COMMON_FOLDER_H
#define WEIR_CLI_COMMON_FOLDER_H

#include <limits.h>
#include <stdbool.h>

enum {
    CLI_FOLDER_NAME_MAX = 256,
    CLI_FOLDER_PATH_SIZE = PATH_MAX + CLI_FOLDER_NAME_MAX + 1,
};

struct cli_folder {
    char path[PATH_MAX];
};

// Creates it, empty. `command` is a part of its name.
//
// Errors: false after a message.
bool cli_folder_create(struct cli_folder *folder, const char *command);

// Removes it, and the files in it.
void cli_folder_remove(const struct cli_folder *folder);

// Stores the path of the file `name`, of at most CLI_FOLDER_NAME_MAX characters.
void cli_folder_place(const struct cli_folder *folder, const char *name,
                      char path[CLI_FOLDER_PATH_SIZE]);

#endif
