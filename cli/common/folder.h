// Folders: one for the files of a command, in that of TMPDIR, else in /tmp; and what lies beside the program.
#ifndef WEIR_CLI_COMMON_FOLDER_H
#define WEIR_CLI_COMMON_FOLDER_H

#include <limits.h>

enum {
    CLI_FOLDER_NAME_MAX = 256,
    CLI_FOLDER_PATH_SIZE = PATH_MAX + CLI_FOLDER_NAME_MAX + 1,
};

struct cli_folder {
    char path[PATH_MAX];
};

// Creates it. `command` is a part of its name.
//
// Ownership: the command's, with the files in it. `folder` lives as long.
// Errors: they end the command.
void cli_folder_create(struct cli_folder *folder, const char *command);

// Stores the path of the file `name`, of at most CLI_FOLDER_NAME_MAX characters.
void cli_folder_place(const struct cli_folder *folder, const char *name,
                      char path[CLI_FOLDER_PATH_SIZE]);

// The path of a file that comes with the command: of an installation, or of a build tree. Both are from the folder
// above the program's.
//
// Ownership: the command's. Errors: that there is neither ends it, after "LACK: there is neither … nor …; REMEDY".
const char *cli_find_own(const char *installed, const char *built, int code, const char *lack,
                         const char *remedy);

#endif
