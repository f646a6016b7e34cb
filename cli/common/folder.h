// Folders: one for the files of a command, in that of TMPDIR, else in /tmp; and what lies beside the program.
#ifndef WEIR_CLI_COMMON_FOLDER_H
#define WEIR_CLI_COMMON_FOLDER_H

// Creates it, and returns its path. `command` is a part of its name.
//
// Ownership: the command's, with the files in it.
// Errors: they end the command.
const char *cli_folder_create(const char *command);

// The path of a file that comes with the command: of an installation, or of a build tree. Both are from the folder
// above the program's.
//
// Ownership: the command's. Errors: that there is neither ends it, after "LACK: there is neither … nor …; REMEDY".
const char *cli_find_own(const char *installed, const char *built, int code, const char *lack,
                         const char *remedy);

#endif
