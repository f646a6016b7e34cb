#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/folder.h"
#include "cli/common/own.h"

static void remove_folder(void *object)
{
    const char *folder = object;
    const struct dirent *entry;
    DIR *stream = opendir(folder);
    while (stream && (entry = readdir(stream)))
        unlinkat(dirfd(stream), entry->d_name, 0); // not "." and ".."
    if (stream)
        closedir(stream);
    rmdir(folder);
}

const char *cli_folder_create(const char *command)
{
    const char *named = getenv("TMPDIR");
    const char *parent = named && *named ? named : "/tmp";
    char *path = cli_text("%s/weir-%s-XXXXXX", parent, command);
    if (!mkdtemp(path))
        cli_fail(
            CLI_SETUP,
            "no folder for temporary files can be created in %s: %s; set TMPDIR to another one",
            parent, strerror(errno));
    cli_own(remove_folder, path);
    return path;
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
