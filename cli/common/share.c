#include "cli/common/share.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
