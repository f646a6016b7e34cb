#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/folder.h"
#include "cli/common/own.h"

static void remove_folder(void *object)
{
    const struct cli_folder *folder = object;
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

void cli_folder_create(struct cli_folder *folder, const char *command)
{
    const char *named = getenv("TMPDIR");
    const char *parent = named && *named ? named : "/tmp";
    const int length =
        snprintf(folder->path, sizeof folder->path, "%s/weir-%s-XXXXXX", parent, command);
    errno = ENAMETOOLONG;
    if (length >= (int)sizeof folder->path || !mkdtemp(folder->path))
        cli_fail(
            CLI_SETUP,
            "no folder for temporary files can be created in %s: %s; set TMPDIR to another one",
            parent, strerror(errno));
    cli_own(remove_folder, folder);
}

void cli_folder_place(const struct cli_folder *folder, const char *name,
                      char path[CLI_FOLDER_PATH_SIZE])
{
    snprintf(path, CLI_FOLDER_PATH_SIZE, "%s/%s", folder->path, name);
}

const char *cli_find_own(const char *installed, const char *built, int code, const char *lack,
                         const char *remedy)
{
    char directory[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);
    directory[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(directory, '/');
    if (!slash)
        cli_fail(code,
                 "%s: /proc/self/exe cannot be read, so the folder of the program is not known; %s",
                 lack, remedy);
    *slash = '\0';
    const char *first = cli_text("%s/../%s", directory, installed);
    const char *second = cli_text("%s/../%s", directory, built);
    if (access(first, R_OK) == 0)
        return first;
    if (access(second, R_OK) != 0)
        cli_fail(code, "%s: there is neither %s nor %s; %s", lack, first, second, remedy);
    return second;
}
