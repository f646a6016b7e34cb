// A cache on disk for the results of a driver's compiler. A cache that cannot be used is not an
// error: the functions then work as if it were empty, and log the reason.
//
// The key of an entry is a text that contains everything that the result depends on: the versions
// of Weir, of the driver and of the compiler, the device, the options, the source.
//
// Threads: safe; several processes may use one cache.
#ifndef WEIR_KIT_CACHE_H
#define WEIR_KIT_CACHE_H

#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_kit_cache weir_kit_cache;

// Opens the cache in the folder `name` of `directory`, or, if that is "", of `weir` in
// XDG_CACHE_HOME or HOME/.cache. Missing folders are created. `name` is also the source of log
// messages. At most 256 MiB are kept; the entries that were not used for the longest time are
// removed first.
//
// Returns NULL, after a log message, if there is no folder for it, or if another user could write
// to that folder.
//
// Ownership: the caller's, until weir_kit_cache_close(), which accepts a pointer to NULL.
weir_kit_cache *weir_kit_cache_open(const struct weir_host *host, const char *name,
                                    const char *directory);
void weir_kit_cache_close(weir_kit_cache **cache);

// Looks up an entry. Returns false, with NULL and 0 stored, if there is none, or if `cache` is
// NULL.
//
// Ownership: `*out_data` is the caller's, to be freed with free().
bool weir_kit_cache_read(const weir_kit_cache *cache, const char *key, void **out_data,
                         size_t *out_size);

// Stores an entry, replacing an older one with the same key. `cache` may be NULL.
void weir_kit_cache_write(const weir_kit_cache *cache, const char *key, const void *data,
                          size_t size);

// Returns a formatted text of any length, such as a key, or NULL if out of memory.
//
// Ownership: the caller's, to be freed with host->release.
char *weir_kit_format(const struct weir_host *host, const char *format, ...) WEIR_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
