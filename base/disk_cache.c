// Owner and mode of the folder suffice, and so do those of the entries: no foreign entry is used even if the folder was
// writable for a while, or is replaced. What is written and removed is in the folder that was examined, through its
// descriptor, wherever its path leads by then.
#define _GNU_SOURCE // secure_getenv, and strerror_r that returns the text
#include "base/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"

#define ENTRY_SUFFIX ".entry"
#define ENTRY_NAME_SIZE (16 + sizeof ENTRY_SUFFIX) // a hash in hexadecimal, and the zero

struct weir_disk_cache {
    char *folder;
    int descriptor; // of the folder
    uint64_t limit_bytes;
};

// The beginning of a file, in the machine's own byte order: key and data follow.
struct entry_header {
    char magic[8];
    uint64_t check; // of the data; the key is compared
};

static const char magic[8] = {'w', 'e', 'i', 'r', 'c', 'a', '0', '4'};

static char *entry_path(const weir_disk_cache *cache, const void *key, size_t key_size)
{
    char *path;
    const uint64_t hash = weir_hash(0, key, key_size);
    return asprintf(&path, "%s/%016" PRIx64 ENTRY_SUFFIX, cache->folder, hash) < 0 ? NULL : path;
}

static bool cannot_be_used(const char *path, int error, char *message, size_t message_size)
{
    char reason[128];
    weir_text_about(message, message_size, path,
                    "the cache's folder cannot be made or opened: %s (errno %d); name another "
                    "place, or turn the cache off",
                    strerror_r(error, reason, sizeof reason), error);
    return false;
}

static bool open_folder(weir_disk_cache *cache, char *message, size_t message_size)
{
    struct stat status;
    if (!weir_file_make_folders(cache->folder, 0700))
        return cannot_be_used(cache->folder, errno, message, message_size);
    cache->descriptor = open(cache->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // The program may change its folder.
    char *absolute = cache->descriptor < 0 ? NULL : realpath(cache->folder, NULL);
    if (!absolute || fstat(cache->descriptor, &status) != 0) {
        const int error = errno;
        free(absolute);
        return cannot_be_used(cache->folder, error, message, message_size);
    }
    free(cache->folder);
    cache->folder = absolute;
    if (status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return true;
    weir_text_about(message, message_size, cache->folder,
                    "is not used as a cache: it must be a folder that belongs to this user and "
                    "that no other user may write to (chmod go-w); name another place, or turn the "
                    "cache off");
    return false;
}

static void no_memory(char *message, size_t message_size)
{
    snprintf(message, message_size, "no memory is left for the disk cache; free some memory");
}

static char *choose_folder(const char *named, const char *name, char *message, size_t message_size)
{
    const char *cache_home = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    const char *above = named, *between = "";
    char *folder;
    if (!named && cache_home && cache_home[0] == '/') {
        above = cache_home;
        between = "/weir";
    } else if (!named && home && home[0] == '/') {
        above = home;
        between = "/.cache/weir";
    }
    if (above)
        return asprintf(&folder, "%s%s/%s", above, between, name) < 0 ? NULL : folder;
    snprintf(message, message_size,
             "there is no place for the disk cache '%s'; set "
             "XDG_CACHE_HOME or HOME, name a folder, or turn the cache off",
             name);
    return NULL;
}

weir_disk_cache *weir_disk_cache_create(const char *directory, const char *name,
                                        uint64_t limit_bytes, char *message, size_t message_size)
{
    no_memory(message, message_size); // later failures replace the message
    weir_disk_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->descriptor = -1;
    cache->limit_bytes = limit_bytes;
    cache->folder = choose_folder(directory, name, message, message_size);
    if (!cache->folder || !open_folder(cache, message, message_size))
        weir_disk_cache_destroy(&cache);
    return cache;
}

void weir_disk_cache_destroy(weir_disk_cache **cache)
{
    if (!cache || !*cache)
        return;
    if ((*cache)->descriptor >= 0)
        close((*cache)->descriptor);
    free((*cache)->folder);
    free(*cache);
    *cache = NULL;
}

// Where the data begins; 0: it is no whole entry of this key.
static size_t data_of(const unsigned char *file, size_t file_size, const void *key, size_t key_size)
{
    struct entry_header header;
    if (file_size < sizeof header || key_size > file_size - sizeof header)
        return 0;
    const size_t at = sizeof header + key_size;
    memcpy(&header, file, sizeof header);
    return memcmp(header.magic, magic, sizeof magic) == 0 &&
                   memcmp(file + sizeof header, key, key_size) == 0 &&
                   header.check == weir_hash(0, file + at, file_size - at)
               ? at
               : 0;
}

bool weir_disk_cache_read(const weir_disk_cache *cache, const void *key, size_t key_size,
                          void **out_data, size_t *out_size)
{
    char message[256];
    void *file = NULL;
    size_t file_size = 0, at = 0;
    *out_data = NULL;
    *out_size = 0;

    char *path = entry_path(cache, key, key_size);
    if (path && weir_file_read_private(path, (size_t)cache->limit_bytes, &file, &file_size, message,
                                       sizeof message))
        at = data_of(file, file_size, key, key_size);
    if (at > 0) {
        *out_size = file_size - at;
        memmove(file, (unsigned char *)file + at, *out_size);
        *out_data = file;
        utimensat(AT_FDCWD, path, NULL, 0); // the time of the last use; a failure costs nothing
    } else {
        free(file);
    }
    free(path);
    return at > 0;
}

struct found_entry {
    char name[ENTRY_NAME_SIZE];
    uint64_t size;
    struct timespec used;
};

struct found_entries {
    struct found_entry *list;
    size_t count;
    size_t capacity;
    uint64_t total_bytes;
};

static void note_entry(struct found_entries *entries, const char *name, const struct stat *status)
{
    struct found_entry *list =
        weir_grow(entries->list, entries->count, &entries->capacity, sizeof *list);
    if (!list)
        return; // an entry that is not noted is not removed this time
    entries->list = list;
    struct found_entry *entry = &entries->list[entries->count++];
    memcpy(entry->name, name, sizeof entry->name);
    entry->size = (uint64_t)status->st_size;
    entry->used = status->st_mtim;
    entries->total_bytes += entry->size;
}

static void list_entries(int folder, DIR *stream, struct found_entries *entries)
{
    for (struct dirent *file = readdir(stream); file; file = readdir(stream)) {
        struct stat status;
        if (fstatat(folder, file->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (fnmatch("*" ENTRY_SUFFIX, file->d_name, 0) == 0 &&
            strlen(file->d_name) + 1 == ENTRY_NAME_SIZE)
            note_entry(entries, file->d_name, &status);
        else if (strncmp(file->d_name, ".weir-", 6) == 0 && time(NULL) - status.st_mtime > 3600)
            // Of a writer that was killed: none writes for an hour.
            unlinkat(folder, file->d_name, 0);
    }
}

static int by_age(const void *a, const void *b)
{
    const struct timespec *left = &((const struct found_entry *)a)->used;
    const struct timespec *right = &((const struct found_entry *)b)->used;
    if (left->tv_sec != right->tv_sec)
        return left->tv_sec < right->tv_sec ? -1 : 1;
    return left->tv_nsec < right->tv_nsec ? -1 : left->tv_nsec > right->tv_nsec;
}

// Another process may do the same at the same time: an entry that is already gone counts as
// removed.
static void trim(const weir_disk_cache *cache)
{
    struct found_entries entries = {.list = NULL};
    const int folder = openat(cache->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = folder < 0 ? NULL : fdopendir(folder);
    if (!stream) {
        if (folder >= 0)
            close(folder);
        return;
    }
    list_entries(folder, stream, &entries);
    if (entries.total_bytes > cache->limit_bytes) {
        const uint64_t goal = cache->limit_bytes / 4 * 3;
        qsort(entries.list, entries.count, sizeof *entries.list, by_age);
        for (size_t i = 0; i < entries.count && entries.total_bytes > goal; i++) {
            unlinkat(folder, entries.list[i].name, 0);
            entries.total_bytes -= entries.list[i].size;
        }
    }
    free(entries.list);
    closedir(stream);
}

bool weir_disk_cache_write(const weir_disk_cache *cache, const void *key, size_t key_size,
                           const void *data, size_t size, char *message, size_t message_size)
{
    struct entry_header header = {.check = weir_hash(0, data, size)};
    memcpy(header.magic, magic, sizeof magic);

    const uint64_t most = cache->limit_bytes;
    if (most < sizeof header || key_size > most - sizeof header ||
        size > most - sizeof header - key_size) {
        weir_text_about(message, message_size, cache->folder,
                        "an entry of %zu bytes exceeds the cache's limit of %" PRIu64
                        " and is not kept",
                        size, most);
        return false;
    }
    no_memory(message, message_size);
    char *path = entry_path(cache, key, key_size);
    weir_file_writer *writer =
        path ? weir_file_writer_create_in(cache->descriptor, path, true, message, message_size)
             : NULL;
    free(path);
    if (!writer)
        return false;
    weir_file_writer_append(writer, &header, sizeof header);
    weir_file_writer_append(writer, key, key_size);
    weir_file_writer_append(writer, data, size);
    if (!weir_file_writer_commit(&writer, message, message_size))
        return false;
    trim(cache);
    return true;
}
