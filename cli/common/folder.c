#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/folder.h"

bool cli_folder_create(struct cli_folder *folder, const char *command)
{
    const char *named = getenv("TMPDIR");
    const char *parent = named && *named ? named : "/tmp";
    const int length =
        snprintf(folder->path, sizeof folder->path, "%s/weir-%s-XXXXXX", parent, command);
    errno = ENAMETOOLONG;
    if (length < (int)sizeof folder->path && mkdtemp(folder->path))
        return true;
    cli_error("no folder for temporary files can be created in %s: %s; set TMPDIR to another one",
              parent, strerror(errno));
    return false;
}

void cli_folder_remove(const struct cli_folder *folder)
{
    char path[CLI_FOLDER_PATH_SIZE];
    const struct dirent *entry;
    DIR *stream = opendir(folder->path);
    while (stream && (entry = readdir(stream))) {
        cli_folder_place(folder, entry->d_name, path);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(path);
    }
    if (stream)
        closedir(stream);
    rmdir(folder->path);
}

void cli_folder_place(const struct cli_folder *folder, const char *name,
                      char path[CLI_FOLDER_PATH_SIZE])
{
    snprintf(path, CLI_FOLDER_PATH_SIZE, "%s/%s", folder->path, name);
}

bool cli_program_directory(char *directory, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", directory, size - 1);
    if (length <= 0)
        return false;
    directory[length] = '\0';
    char *slash = strrchr(directory, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

bool cli_share_file(const char *name, const char *build_path, char *path, size_t path_size,
                    char *message, size_t message_size)
{
    char directory[PATH_MAX];
    char installed[PATH_MAX + 64];
    if (!cli_program_directory(directory, sizeof directory)) {
        snprintf(message, message_size,
                 "/proc/self/exe cannot be read, so the folder of the program is not known");
        return false;
    }
    snprintf(installed, sizeof installed, "%s/../share/weir/%s", directory, name);
    snprintf(path, path_size, "%s", installed);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, path_size, "%s/../%s", directory, build_path);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(message, message_size, "there is neither %s nor %s", installed, path);
    return false;
}
