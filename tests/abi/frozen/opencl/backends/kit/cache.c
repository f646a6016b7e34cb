// The disk cache of base; its errors become log messages.
#include "tests/abi/frozen/opencl/api/weir/kit/cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/abi/frozen/opencl/base/disk_cache.h"

#define LIMIT_BYTES (256u << 20)

struct weir_kit_cache {
    const struct weir_host *host;
    weir_disk_cache *disk;
    char name[64];
};

weir_kit_cache *weir_kit_cache_open(const struct weir_host *host, const char *name,
                                    const char *directory)
{
    char message[512];
    const struct weir_disk_cache_params params = {
        .struct_size = sizeof params,
        .directory = directory[0] ? directory : NULL,
        .name = name,
        .limit_bytes = LIMIT_BYTES,
    };
    weir_kit_cache *cache = host->allocate(sizeof *cache);
    if (!cache)
        return NULL;
    cache->host = host;
    snprintf(cache->name, sizeof cache->name, "%s", name);
    cache->disk = weir_disk_cache_create(&params, message, sizeof message);
    if (!cache->disk) {
        host->log(WEIR_LOG_WARNING, name, message);
        host->release(cache);
        return NULL;
    }
    return cache;
}

void weir_kit_cache_close(weir_kit_cache **cache)
{
    if (!*cache)
        return;
    weir_disk_cache_destroy(&(*cache)->disk);
    (*cache)->host->release(*cache);
    *cache = NULL;
}

bool weir_kit_cache_read(const weir_kit_cache *cache, const char *key, void **out_data,
                         size_t *out_size)
{
    *out_data = NULL;
    *out_size = 0;
    return cache && weir_disk_cache_read(cache->disk, key, strlen(key), out_data, out_size);
}

void weir_kit_cache_write(const weir_kit_cache *cache, const char *key, const void *data,
                          size_t size)
{
    char message[512];
    if (cache &&
        !weir_disk_cache_write(cache->disk, key, strlen(key), data, size, message, sizeof message))
        cache->host->log(WEIR_LOG_WARNING, cache->name, message);
}

char *weir_kit_format(const struct weir_host *host, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : host->allocate((size_t)length + 1);
    if (!text)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
