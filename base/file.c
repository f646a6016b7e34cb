// The temporary file is created with O_EXCL under a generated name. mkstemp() sets the mode to
// 0600, and reading the umask in order to correct that is not safe in the presence of other
// threads. The name does not contain the destination's, which may already be as long as a name can
// be.
// NOLINTNEXTLINE(bugprone-reserved-identifier): for O_PATH, and strerror_r() that returns the text
#define _GNU_SOURCE
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define TEMPORARY_FORMAT ".weir-%ld-%u.tmp"

struct weir_file_writer {
    FILE *stream;
    int folder; // that of `name`; -1: not opened
    char *path;
    const char *name;   // the path's last component
    char temporary[64]; // beside it; "": there is none
    int error;
    bool is_private;
};

static atomic_uint temporary_count;

static const char *remedy_for(int error)
{
    switch (error) {
    case ENOENT:
        return "; create the directory first, or check the spelling";
    case ENOTDIR:
        return "; a part of this path is a file, not a directory";
    case EROFS:
        return "; choose a place on a file system that can be written";
    case EACCES:
    case EPERM:
        return "; check the permissions of the directory, or choose another place";
    case ENOSPC:
    case EDQUOT:
        return "; free some space or choose another place";
    case EFBIG:
        return "; raise the limit on file sizes (ulimit -f) or choose another place";
    case ENAMETOOLONG:
        return "; choose a shorter name";
    case EMFILE:
    case ENFILE:
        return "; close some files or raise the limit on open files (ulimit -n)";
    default:
        return "";
    }
}

static void explain(char *message, size_t size, const char *path, const char *what, int error)
{
    char reason[128];
    weir_text_about(message, size, path, "%s: %s (errno %d)%s", what,
                    strerror_r(error, reason, sizeof reason), error, remedy_for(error));
}

static void explain_open(char *message, size_t size, const char *path, int error)
{
    if (error == ENOENT)
        weir_text_about(message, size, path, "there is no such file; check the path");
    else if (error == EACCES)
        weir_text_about(message, size, path, "may not be read by this user; check its permissions");
    else
        explain(message, size, path, "cannot be opened", error);
}

static bool may_be_read(const struct stat *status, bool is_private, const char *path, char *message,
                        size_t message_size)
{
    if (!S_ISREG(status->st_mode)) {
        weir_text_about(message, message_size, path, "is %s; a regular file is needed",
                        S_ISDIR(status->st_mode) ? "a directory" : "a pipe or a device");
        return false;
    }
    if (is_private && (status->st_uid != geteuid() || (status->st_mode & 077) != 0)) {
        weir_text_about(message, message_size, path,
                        "another user may have written it, or can read it; it must belong to this "
                        "user, and no other user may read or write it (chmod 600)");
        return false;
    }
    return true;
}

static bool open_file(const char *path, bool is_private, int *out_descriptor, uint64_t *out_size,
                      char *message, size_t message_size)
{
    *out_descriptor = -1;
    *out_size = 0;
    // O_NONBLOCK: opening a pipe without a writer would never return.
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (is_private ? O_NOFOLLOW : 0);
    int descriptor = open(path, flags);
    if (descriptor < 0) {
        explain_open(message, message_size, path, errno);
        return false;
    }
    struct stat status;
    if (fstat(descriptor, &status) != 0) {
        explain(message, message_size, path, "cannot be examined", errno);
        close(descriptor);
        return false;
    }
    if (!may_be_read(&status, is_private, path, message, message_size)) {
        close(descriptor);
        return false;
    }
    *out_descriptor = descriptor;
    *out_size = (uint64_t)status.st_size;
    return true;
}

bool weir_file_open(const char *path, int *out_descriptor, uint64_t *out_size, char *message,
                    size_t message_size)
{
    return open_file(path, false, out_descriptor, out_size, message, message_size);
}

// O_NONBLOCK is for open() only: writing waits as usual.
int weir_file_open_to_write(const char *path, int flags)
{
    const int descriptor = open(path, flags | O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor >= 0)
        (void)fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    return descriptor;
}

bool weir_file_make_folders(const char *path, mode_t mode)
{
    const size_t length = strlen(path);
    char *part = strdup(path);
    bool made = part != NULL;
    for (size_t i = 1; i <= length && made; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        part[i] = '\0';
        made = mkdir(part, mode) == 0 || errno == EEXIST;
        part[i] = path[i];
    }
    free(part);
    return made;
}

bool weir_file_read_exactly(int descriptor, const char *path, void *data, size_t size,
                            char *message, size_t message_size)
{
    unsigned char *target = data;
    size_t done = 0;
    while (done < size) {
        ssize_t count = read(descriptor, target + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            explain(message, message_size, path, "cannot be read", errno);
            return false;
        }
        if (count == 0) {
            weir_text_about(message, message_size, path,
                            "ends %zu bytes early; it was cut short while it was read",
                            size - done);
            return false;
        }
        done += (size_t)count;
    }
    return true;
}

static bool read_file(const char *path, bool is_private, size_t limit_bytes, void **out_data,
                      size_t *out_size, char *message, size_t message_size)
{
    *out_data = NULL;
    *out_size = 0;
    int descriptor = -1;
    uint64_t size = 0;
    char *data = NULL;
    if (!open_file(path, is_private, &descriptor, &size, message, message_size))
        return false;

    if (size > limit_bytes || size >= SIZE_MAX) {
        weir_text_about(message, message_size, path,
                        "has %llu bytes, more than the %zu that are accepted here",
                        (unsigned long long)size, limit_bytes);
        goto fail;
    }
    data = malloc((size_t)size + 1);
    if (!data) {
        weir_text_about(message, message_size, path,
                        "needs %llu bytes of memory, which are not available",
                        (unsigned long long)size + 1);
        goto fail;
    }
    if (!weir_file_read_exactly(descriptor, path, data, (size_t)size, message, message_size))
        goto fail;

    close(descriptor);
    data[size] = '\0';
    *out_data = data;
    *out_size = (size_t)size;
    return true;

fail:
    free(data);
    close(descriptor);
    return false;
}

bool weir_file_read(const char *path, size_t limit_bytes, void **out_data, size_t *out_size,
                    char *message, size_t message_size)
{
    return read_file(path, false, limit_bytes, out_data, out_size, message, message_size);
}

bool weir_file_read_private(const char *path, size_t limit_bytes, void **out_data, size_t *out_size,
                            char *message, size_t message_size)
{
    return read_file(path, true, limit_bytes, out_data, out_size, message, message_size);
}

// The directory that the file is in, or -1. It need not be readable.
static int open_folder(int from, const char *path, const char *name)
{
    const size_t length = (size_t)(name - path);
    char *directory = from != AT_FDCWD || length == 0 ? strdup(".") : strndup(path, length);
    const int folder = directory ? openat(from, directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    free(directory);
    return folder;
}

// Opens a new file beside `writer->name` and keeps its name. Returns the descriptor, or -1.
static int create_temporary(struct weir_file_writer *writer)
{
    int descriptor;
    do {
        snprintf(writer->temporary, sizeof writer->temporary, TEMPORARY_FORMAT, (long)getpid(),
                 atomic_fetch_add(&temporary_count, 1));
        descriptor =
            openat(writer->folder, writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                   writer->is_private ? 0600 : 0666);
    } while (descriptor < 0 && (errno == EEXIST || errno == EINTR));
    if (descriptor < 0)
        writer->temporary[0] = '\0';
    return descriptor;
}

// Refuses paths that rename() would replace by mistake, or would refuse only at the end.
static bool may_be_replaced(const struct weir_file_writer *writer, mode_t *out_mode, char *message,
                            size_t message_size)
{
    const char *path = writer->path;
    struct stat status;
    *out_mode = 0;
    if (!*writer->name) {
        weir_text_about(message, message_size, path,
                        "cannot be written: the path names no file; add a file name");
        return false;
    }
    if (fstatat(writer->folder, writer->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if (S_ISREG(status.st_mode))
        *out_mode = status.st_mode & 0777;
    if (S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))
        return true;
    weir_text_about(message, message_size, path, "cannot be written: it is %s; choose another name",
                    S_ISDIR(status.st_mode) ? "a directory" : "a pipe or a device");
    return false;
}

weir_file_writer *weir_file_writer_create_in(int folder, const char *path, bool is_private,
                                             char *message, size_t message_size)
{
    mode_t mode = 0;
    int descriptor = -1;
    struct weir_file_writer *writer = calloc(1, sizeof *writer);
    if (!writer || !(writer->path = strdup(path))) {
        explain(message, message_size, path, "cannot be written", ENOMEM);
        free(writer);
        return NULL;
    }
    const char *slash = strrchr(writer->path, '/');
    writer->name = slash ? slash + 1 : writer->path;
    writer->folder = open_folder(folder, writer->path, writer->name);
    writer->is_private = is_private;
    if (writer->folder >= 0 && !may_be_replaced(writer, &mode, message, message_size))
        goto fail;
    descriptor = writer->folder < 0 ? -1 : create_temporary(writer);
    if (descriptor < 0) {
        explain(message, message_size, path, "cannot be written", errno);
        goto fail;
    }
    // Some file systems have no permissions; that is not an error.
    if (mode != 0 && !is_private)
        (void)fchmod(descriptor, mode);
    writer->stream = fdopen(descriptor, "wb");
    if (!writer->stream) {
        explain(message, message_size, path, "cannot be written", errno);
        close(descriptor);
        goto fail;
    }
    return writer;

fail:
    weir_file_writer_destroy(&writer);
    return NULL;
}

weir_file_writer *weir_file_writer_create(const char *path, char *message, size_t message_size)
{
    return weir_file_writer_create_in(AT_FDCWD, path, false, message, message_size);
}

bool weir_file_writer_append(weir_file_writer *writer, const void *data, size_t size)
{
    if (writer->error != 0)
        return false;
    if (size == 0)
        return true;
    errno = 0;
    const bool written = fwrite(data, 1, size, writer->stream) == size;
    if (!written)
        writer->error = errno != 0 ? errno : EIO;
    return written;
}

// Makes the new name durable. The file is already in place, and some file systems cannot sync a
// directory, so failures are ignored.
static void sync_directory_of(const struct weir_file_writer *writer)
{
    const int descriptor = openat(writer->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return;
    (void)fsync(descriptor);
    close(descriptor);
}

// Destroying the writer removes the temporary name, which the file keeps beside its own after linkat().
static int put_in_place(struct weir_file_writer *writer, bool is_new)
{
    const int folder = writer->folder;
    if (is_new)
        return linkat(folder, writer->temporary, folder, writer->name, 0);
    const int result = renameat(folder, writer->temporary, folder, writer->name);
    if (result == 0)
        writer->temporary[0] = '\0';
    return result;
}

static bool commit(weir_file_writer **writer_at, bool is_new, char *message, size_t message_size)
{
    struct weir_file_writer *writer = *writer_at;
    int error = writer->error;

    if (error == 0 && (fflush(writer->stream) != 0 || fsync(fileno(writer->stream)) != 0))
        error = errno;
    int closed = fclose(writer->stream);
    writer->stream = NULL;
    if (error == 0 && closed != 0)
        error = errno;
    if (error == 0 && put_in_place(writer, is_new) != 0)
        error = errno;

    if (error == 0)
        sync_directory_of(writer);
    else
        explain(message, message_size, writer->path, "could not be written, nothing was kept",
                error);
    weir_file_writer_destroy(writer_at);
    errno = error;
    return error == 0;
}

bool weir_file_writer_commit(weir_file_writer **writer, char *message, size_t message_size)
{
    return commit(writer, false, message, message_size);
}

bool weir_file_writer_commit_new(weir_file_writer **writer, char *message, size_t message_size)
{
    return commit(writer, true, message, message_size);
}

void weir_file_writer_destroy(weir_file_writer **writer_at)
{
    struct weir_file_writer *writer = *writer_at;
    *writer_at = NULL;
    if (!writer)
        return;
    if (writer->stream)
        (void)fclose(writer->stream);
    if (writer->temporary[0])
        (void)unlinkat(writer->folder, writer->temporary, 0);
    if (writer->folder >= 0)
        close(writer->folder);
    free(writer->path);
    free(writer);
}

bool weir_file_write(const char *path, const void *data, size_t size, char *message,
                     size_t message_size)
{
    weir_file_writer *writer = weir_file_writer_create(path, message, message_size);
    if (!writer)
        return false;
    weir_file_writer_append(writer, data, size);
    return weir_file_writer_commit(&writer, message, message_size);
}
