// Operands that are folders.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/run/run.h"

static bool is_folder(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

static bool add(struct run_paths *paths, char *path)
{
    char **list = path ? realloc(paths->list, (paths->count + 1) * sizeof *list) : NULL;
    if (!list) {
        free(path);
        cli_error("no memory for the list of images");
        return false;
    }
    paths->list = list;
    paths->list[paths->count++] = path;
    return true;
}

static bool has_image_name(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && dot != name && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    const bool ends = folder[strlen(folder) - 1] == '/';
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s%s", folder, ends ? "" : "/", name);
    return path;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool read_folder(const char *folder, DIR *stream, struct run_paths *paths)
{
    const size_t before = paths->count;
    const struct dirent *entry;
    while ((entry = readdir(stream)))
        if (has_image_name(entry->d_name) && !add(paths, join(folder, entry->d_name)))
            return false;
    if (paths->count == before) {
        cli_error("the folder '%s' has no image: no name in it ends in .jpg, .jpeg or .png",
                  folder);
        return false;
    }
    qsort(paths->list + before, paths->count - before, sizeof *paths->list, compare);
    return true;
}

static bool add_folder(struct run_paths *paths, const char *folder)
{
    DIR *stream = opendir(folder);
    if (!stream) {
        cli_error("the folder '%s' cannot be read: %s", folder, strerror(errno));
        return false;
    }
    const bool fine = read_folder(folder, stream, paths);
    closedir(stream);
    return fine;
}

bool run_list_paths(char **operands, size_t count, struct run_paths *paths)
{
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++)
        fine = is_folder(operands[i]) ? add_folder(paths, operands[i])
                                      : add(paths, strdup(operands[i]));
    return fine;
}

void run_free_paths(struct run_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->list[i]);
    free(paths->list);
    *paths = (struct run_paths){0};
}
