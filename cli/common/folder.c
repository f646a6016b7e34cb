#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/common/folder.h"
#include "cli/common/own.h"

static const char running[] = ".weir-running";

static void remove_files(const char *folder)
{
    struct cli_folder named;
    char path[CLI_FOLDER_PATH_SIZE];
    const struct dirent *entry;
    DIR *stream = opendir(folder);
    snprintf(named.path, sizeof named.path, "%s", folder);
    while (stream && (entry = readdir(stream))) {
        cli_folder_place(&named, entry->d_name, path);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(path);
    }
    if (stream)
        closedir(stream);
    rmdir(folder);
}

// The file, locked, or -1: there is none, it is another's, or a command that runs has it.
static int lock_folder(const char *folder, int flags)
{
    char path[CLI_FOLDER_PATH_SIZE];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, running);
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (file < 0)
        return -1;
    if (fstat(file, &status) == 0 && status.st_uid == geteuid() &&
        flock(file, LOCK_EX | LOCK_NB) == 0)
        return file;
    close(file);
    return -1;
}

// A new folder has its file at once, but not its lock.
static bool is_old(const char *folder)
{
    struct stat status;
    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           time(NULL) - status.st_mtime > 10;
}

static void remove_stale(const char *parent)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    DIR *stream = opendir(parent);
    while (stream && (entry = readdir(stream))) {
        if (strncmp(entry->d_name, "weir-", 5) != 0 ||
            snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) >= (int)sizeof path ||
            !is_old(path))
            continue;
        const int file = lock_folder(path, 0);
        if (file < 0)
            continue;
        remove_files(path);
        close(file);
    }
    if (stream)
        closedir(stream);
}

static void remove_folder(void *object, void *with)
{
    const struct cli_folder *folder = object;
    (void)with;
    remove_files(folder->path);
    if (folder->running >= 0)
        close(folder->running);
}

void cli_folder_create(struct cli_folder *folder, const char *command)
{
    const char *named = getenv("TMPDIR");
    const char *parent = named && *named ? named : "/tmp";
    const int length =
        snprintf(folder->path, sizeof folder->path, "%s/weir-%s-XXXXXX", parent, command);
    folder->running = -1;
    remove_stale(parent);
    errno = ENAMETOOLONG;
    if (length >= (int)sizeof folder->path || !mkdtemp(folder->path))
        cli_fail(
            CLI_SETUP,
            "no folder for temporary files can be created in %s: %s; set TMPDIR to another one",
            parent, strerror(errno));
    folder->running = lock_folder(folder->path, O_CREAT);
    cli_own(remove_folder, folder, NULL);
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
