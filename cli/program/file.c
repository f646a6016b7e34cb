// The name of a file that the program writes: the program may be in another directory by then.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/program/program.h"

static bool make_absolute(const char *path, char *text, size_t size)
{
    char directory[PATH_MAX];
    int length;
    if (path[0] == '/') {
        length = snprintf(text, size, "%s", path);
    } else if (getcwd(directory, sizeof directory)) {
        length = snprintf(text, size, "%s/%s", directory, path);
    } else {
        cli_error("the working directory is gone; name the trace with --output /DIRECTORY/FILE");
        return false;
    }
    if (length < (int)size)
        return true;
    cli_error("%s: the name is too long for a trace; give another one with --output", path);
    return false;
}

// Removes an old trace, which could be mistaken for one that COMMAND wrote.
static bool clear(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return true;
    if (!S_ISREG(status.st_mode)) {
        cli_error("%s is not a regular file; name another one with --output", path);
        return false;
    }
    if (unlink(path) == 0)
        return true;
    cli_error("%s cannot be replaced: %s; name another one with --output", path, strerror(errno));
    return false;
}

int cli_program_take_trace(const char *path, char *text, size_t size)
{
    if (!make_absolute(path, text, size) || !clear(text))
        return CLI_USAGE;
    return cli_can_write(text) ? CLI_OK : CLI_FAILED;
}
