// A list, because a process opens few runtimes.
//
// Processes that write at the same time keep their names apart by a socket each, which is bound to a name of no
// file system: it leaves no file, and goes with the process. A lock on the file itself would not do, as some
// files are replaced each time they are written.
#define _GNU_SOURCE // SOCK_CLOEXEC, O_PATH, FNM_EXTMATCH

#include "report/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/table.h"

// With more names than this the last ones are kept from other processes by nothing.
#define MOST_SOCKETS 64

// The files that runtimes of this process have written, so that none is overwritten.
struct written {
    struct written *next;
    int socket; // -1: it is kept from other processes by nothing
    int folder; // with a socket
    char path[WEIR_OUTPUT_PATH_SIZE];
};

static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static struct written *written_files;
static unsigned socket_count;

static bool is_written(const char *path)
{
    const struct written *file = written_files;
    while (file && strcmp(file->path, path) != 0)
        file = file->next;
    return file != NULL;
}

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// The end of what stands before the first point.
static const char *end_of_stem(const char *path)
{
    const char *name = name_in(path);
    const char *point = *name ? strchr(name + 1, '.') : NULL;
    return point ? point : name + strlen(name);
}

// "a/trace.json.gz" becomes "a/trace.2.json.gz", or "a/trace.rank2.json.gz".
static void number_path(const char *path, const char *what, unsigned number, char *text,
                        size_t size)
{
    const char *end = end_of_stem(path);
    snprintf(text, size, "%.*s.%s%u%s", (int)(end - path), path, what, number, end);
}

// Whether the path names something other than a regular file: a pipe, /dev/null.
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

// The rank of this process in its job; 0 also without one.
static unsigned rank_of_job(void)
{
    static const char *const names[] = {"WEIR_COMM_RANK", "RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    const char *text = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !text; i++)
        text = getenv(names[i]);
    return text && *text && strlen(text) < 8 && text[strspn(text, "0123456789")] == '\0'
               ? (unsigned)strtoul(text, NULL, 10)
               : 0;
}

static void let_go(const struct written *file)
{
    if (file->socket >= 0)
        close(file->socket);
    if (file->folder >= 0)
        close(file->folder);
}

// Binds the socket for the path. False: another process has the name. The folder stands for all its names; it stays open
// with the socket, as the inode of a removed folder would be given to the next one. Its birth would not tell the two
// apart: that of a folder of an overlay changes with the first file in it.
static bool take(struct written *file)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[WEIR_OUTPUT_PATH_SIZE];
    struct stat status;
    const char *name = name_in(file->path);
    const size_t room = sizeof address.sun_path - 1;
    snprintf(folder, sizeof folder, "%.*s", (int)(name - file->path), file->path);
    file->folder =
        socket_count < MOST_SOCKETS ? open(*folder ? folder : ".", O_PATH | O_CLOEXEC) : -1;
    file->socket = file->folder >= 0 && fstat(file->folder, &status) == 0
                       ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
                       : -1;
    bool taken = false;
    if (file->socket >= 0) {
        const size_t length =
            (size_t)snprintf(address.sun_path + 1, room, "weir-output/%" PRIx64 "/%" PRIx64 "/%s",
                             (uint64_t)status.st_dev, (uint64_t)status.st_ino, name);
        const size_t used = length < room ? length : room - 1;
        const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used);
        if (bind(file->socket, (const struct sockaddr *)&address, size) == 0)
            return true;
        taken = errno == EADDRINUSE;
    }
    let_go(file);
    file->socket = file->folder = -1;
    return !taken;
}

static void claim(const char *wanted, char *path)
{
    struct written found = {.socket = -1, .folder = -1};
    snprintf(path, WEIR_OUTPUT_PATH_SIZE, "%s", wanted);
    if (is_special(wanted))
        return;
    pthread_mutex_lock(&written_lock);
    for (unsigned number = 1; number < 10000; number++) {
        if (number > 1)
            number_path(wanted, "", number, path, WEIR_OUTPUT_PATH_SIZE);
        memcpy(found.path, path, sizeof found.path);
        if (!is_written(path) && take(&found))
            break;
    }
    struct written *file = malloc(sizeof *file);
    if (file) {
        *file = found;
        file->next = written_files;
        written_files = file;
        socket_count += file->socket >= 0;
    } else {
        let_go(&found);
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
        socket_count -= file->socket >= 0;
        let_go(file);
        free(file);
        break;
    }
    pthread_mutex_unlock(&written_lock);
}

// The file that a name means in the process of that number, which stands for %p. False: there is no room.
static bool name_process(const char *name, uint64_t process, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (; *name; name++) {
        if (name[0] == '%' && name[1] == 'p') {
            weir_text_append(text, size, &used, "%llu", (unsigned long long)process);
            name++;
        } else {
            weir_text_append(text, size, &used, "%c", *name);
        }
        if (used + 32 > size)
            return false;
    }
    return true;
}

bool weir_output_path_name(const char *wanted, uint64_t process, char *path)
{
    char text[WEIR_OUTPUT_PATH_SIZE - 24];
    char named[32];
    const unsigned rank = rank_of_job();
    snprintf(named, sizeof named, ".rank%u", rank);
    path[0] = '\0';
    if (!name_process(wanted, process, text, sizeof text))
        return false;
    if (rank == 0 || !text[0] || strstr(wanted, "%p") || strstr(name_in(text), named) ||
        is_special(text))
        snprintf(path, WEIR_OUTPUT_PATH_SIZE, "%s", text);
    else
        number_path(text, "rank", rank, path, WEIR_OUTPUT_PATH_SIZE);
    return true;
}

bool weir_output_path_claim(const char *wanted, char *path)
{
    char text[WEIR_OUTPUT_PATH_SIZE];
    path[0] = '\0';
    if (!weir_output_path_name(wanted, (uint64_t)getpid(), text))
        return false;
    if (text[0])
        claim(text, path);
    return true;
}

// Files of a run.

// Adds what matches a part of a name.
static void add_part(struct weir_long_text *pattern, const char *from, const char *end)
{
    for (; from < end; from++) {
        const bool number = from[0] == '%' && from + 1 < end && from[1] == 'p';
        if (number)
            weir_long_text_add(pattern, "+([0-9])");
        else
            weir_long_text_add(pattern, strchr("\\?*+@![]()|", *from) ? "\\%c" : "%c", *from);
        from += number;
    }
}

bool weir_output_path_is_of(const char *name, const char *wanted)
{
    const char *rest = end_of_stem(wanted);
    struct weir_long_text pattern = {.text = NULL};
    add_part(&pattern, name_in(wanted), rest);
    weir_long_text_add(&pattern, "?(.+([0-9]))%s", strstr(rest, ".rank") ? "" : "?(.rank+([0-9]))");
    add_part(&pattern, rest, rest + strlen(rest));
    const bool matches = !pattern.failed && fnmatch(pattern.text, name, FNM_EXTMATCH) == 0;
    free(pattern.text);
    return matches;
}

void weir_output_path_remove(const char *path)
{
    if (!is_special(path))
        unlink(path);
}
