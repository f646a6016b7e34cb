// A cache of results on disk, such as compiled programs. The key of a result is the input
// that it was made from.
//
// An entry is one file: the key, the data, and a check of both. A file is
// written beside its place and renamed into it, so other processes and threads see
// a whole entry or none. The key is stored and compared, so two keys with the same
// hash only take turns. An entry that is damaged, cut short or of another version
// counts as absent, and the next write replaces it. When the entries together
// exceed the limit, those that were not used for the longest time are removed
// until three quarters of it are left.
//
// An entry may be executed after it is read, so no entry is taken that another user could have
// put there:
// - the cache is refused unless its folder belongs to the user and nobody else may write to
//   it, and unless the same, or root in place of the user, holds for every folder above it.
//   A folder above it may be writable where only owners may rename (the sticky bit, as /tmp
//   has it);
// - an entry counts as absent unless it is a regular file of the user's that nobody else may
//   write to. Entries are created so, whatever the umask is;
// - names and checks of entries are hashes under a secret key, a file ".key" in the folder that
//   only the user may read. A key that is missing or not to be trusted is made anew, and older
//   entries are absent then.
//
// Threads: safe, and so are several processes.
#ifndef WEIR_BASE_DISK_CACHE_H
#define WEIR_BASE_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_disk_cache weir_disk_cache;

struct weir_disk_cache_params {
    size_t struct_size;
    // NULL: XDG_CACHE_HOME/weir, else HOME/.cache/weir. A relative path in
    // XDG_CACHE_HOME is ignored, as its specification wants. A set-user-ID program
    // has no default.
    const char *directory;
    const char *name;     // of the folder in it that holds the entries
    uint64_t limit_bytes; // of all entries together
};

// Opens a cache; folders that are missing are made. Returns NULL with a sentence
// in `message` when there is no place for it, or none that can be trusted.
//
// Ownership: the caller's, until weir_disk_cache_destroy().
weir_disk_cache *weir_disk_cache_create(const struct weir_disk_cache_params *params, char *message,
                                        size_t message_size);
void weir_disk_cache_destroy(weir_disk_cache **cache);

// The folder that holds the entries, without symbolic links.
const char *weir_disk_cache_folder(const weir_disk_cache *cache);

// Looks up the entry of a key, and marks it as used. Returns false, with
// NULL and 0 stored, if there is nothing.
//
// Ownership: `*out_data` is the caller's, to be freed with free().
bool weir_disk_cache_read(const weir_disk_cache *cache, const void *key, size_t key_size,
                          void **out_data, size_t *out_size);

// Stores data under a key, in place of an older entry.
//
// Errors: false with a sentence in `message`: a disk error, or an entry that
// exceeds the limit all by itself.
bool weir_disk_cache_write(const weir_disk_cache *cache, const void *key, size_t key_size,
                           const void *data, size_t size, char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif
