// A list, because a process opens few runtimes.
#include "report/output_path.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/trace.h"

// The files that runtimes of this process have written, so that none is overwritten.
struct written {
    struct written *next;
    char path[];
};

static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static struct written *written_files;

static bool is_written(const char *path)
{
    const struct written *file = written_files;
    while (file && strcmp(file->path, path) != 0)
        file = file->next;
    return file != NULL;
}

// "a/trace.json.gz" becomes "a/trace.2.json.gz".
static void number_path(const char *path, unsigned number, char *text, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *point = *name ? strchr(name + 1, '.') : NULL;
    if (number == 1)
        snprintf(text, size, "%s", path);
    else if (point)
        snprintf(text, size, "%.*s.%u%s", (int)(point - path), path, number, point);
    else
        snprintf(text, size, "%s.%u", path, number);
}

// Whether the path names something other than a regular file: a pipe, /dev/null.
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static void claim(const char *wanted, char *path)
{
    unsigned number = 1;
    number_path(wanted, number, path, WEIR_OUTPUT_PATH_SIZE);
    if (is_special(wanted))
        return;
    pthread_mutex_lock(&written_lock);
    while (is_written(path) && number < 9999)
        number_path(wanted, ++number, path, WEIR_OUTPUT_PATH_SIZE);
    struct written *file = malloc(sizeof *file + strlen(path) + 1);
    if (file) {
        memcpy(file->path, path, strlen(path) + 1);
        file->next = written_files;
        written_files = file;
    }
    pthread_mutex_unlock(&written_lock);
}

void weir_output_path_give_back(const char *path)
{
    pthread_mutex_lock(&written_lock);
    for (struct written **at = &written_files; *at; at = &(*at)->next) {
        struct written *file = *at;
        if (strcmp(file->path, path) != 0)
            continue;
        *at = file->next;
        free(file);
        break;
    }
    pthread_mutex_unlock(&written_lock);
}

bool weir_output_path_claim(const char *wanted, char *path)
{
    char text[WEIR_OUTPUT_PATH_SIZE - 16];
    path[0] = '\0';
    if (!weir_trace_path(wanted, (uint64_t)getpid(), text, sizeof text))
        return false;
    if (text[0])
        claim(text, path);
    return true;
}

void weir_output_path_remove(const char *path)
{
    if (!is_special(path))
        unlink(path);
}
