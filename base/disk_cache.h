// A cache of results on disk, such as compiled programs. The key of a result is all of its input.
//
// An entry is one file: the key, the data, and a checksum of this. It is written to a temporary
// file and renamed, so other processes and threads see a whole entry or none. The key is stored and
// compared, so of two keys with the same hash each replaces the other's entry. An entry that is
// damaged, truncated or of another version counts as absent, and the next write replaces it. When
// the entries together exceed the limit, those that were not used for the longest time are removed
// until three quarters of the limit are left.
//
// An entry may be executed after it is read, so entries that another user could have written are
// not used:
// - the cache is refused unless its folder is no symbolic link, belongs to the user and is writable
//   by the user only. Entries are written to, and removed from, the folder that was opened, even if
//   its path leads elsewhere by then;
// - an entry counts as absent unless it is a regular file that belongs to the user and that no other
//   user may read or write (mode 0600). Entries are created so, whatever the umask is.
//
// Threads: safe; several processes may use one cache.
#ifndef WEIR_BASE_DISK_CACHE_H
#define WEIR_BASE_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct weir_disk_cache weir_disk_cache;

// Opens a cache and creates missing folders: `name` in `directory`, whose entries have at most `limit_bytes` together. The
// directory NULL is XDG_CACHE_HOME/weir, else HOME/.cache/weir: a relative path in XDG_CACHE_HOME is ignored, as its
// specification demands, and a set-user-ID program has no default. Returns NULL with a sentence in `message` if there is
// no folder for it, or none that can be trusted.
//
// Ownership: the caller's, until weir_disk_cache_destroy().
weir_disk_cache *weir_disk_cache_create(const char *directory, const char *name,
                                        uint64_t limit_bytes, char *message, size_t message_size);
void weir_disk_cache_destroy(weir_disk_cache **cache);

// Looks up the entry of a key, and marks it as used. Returns false, with NULL and 0 stored, if
// there is none.
//
// Ownership: `*out_data` is the caller's, to be freed with free().
bool weir_disk_cache_read(const weir_disk_cache *cache, const void *key, size_t key_size,
                          void **out_data, size_t *out_size);

// Stores data under a key, in place of an older entry.
//
// Errors: false with a sentence in `message`: a disk error, or an entry that alone exceeds the
// limit.
bool weir_disk_cache_write(const weir_disk_cache *cache, const void *key, size_t key_size,
                           const void *data, size_t size, char *message, size_t message_size);

#endif
