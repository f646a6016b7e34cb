// What a driver's compiler made, kept on disk. A cache that cannot be used costs time and is
// no reason to fail: everything here goes on without one, and says so in the log.
//
// An entry is found by its key, a text of everything that the result depends on: the version
// of Weir, of the driver and of the compiler, the device, the options, the source.
//
// Threads: safe, and so are several processes.
#ifndef WEIR_KIT_CACHE_H
#define WEIR_KIT_CACHE_H

#include <weir/module/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_kit_cache weir_kit_cache;

// Opens the folder `name` in `directory`, or, where that is "", in `weir` in
// XDG_CACHE_HOME or HOME/.cache. Folders that are missing are made. `name` is also the
// source of log messages. At most 256 MiB are kept, the oldest leaving first.
//
// Returns NULL where there is no place for it, or somebody else could write to it.
//
// Ownership: the caller's, until weir_kit_cache_close(), which accepts a pointer to NULL.
weir_kit_cache *weir_kit_cache_open(const struct weir_host *host, const char *name,
                                    const char *directory);
void weir_kit_cache_close(weir_kit_cache **cache);

// Looks up an entry. False, with NULL and 0 stored, if there is none, or no cache.
//
// Ownership: `*out_data` is the caller's, to be freed with free().
bool weir_kit_cache_read(const weir_kit_cache *cache, const char *key, void **out_data,
                         size_t *out_size);

// Keeps an entry, in place of what was there. `cache` may be NULL.
void weir_kit_cache_write(const weir_kit_cache *cache, const char *key, const void *data,
                          size_t size);

// A formatted text of any length, such as a key; NULL without memory.
//
// Ownership: the caller's, to be given to host->release.
char *weir_kit_format(const struct weir_host *host, const char *format, ...) WEIR_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
