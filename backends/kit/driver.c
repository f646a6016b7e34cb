// A driver: the functions of its library, reports of its errors and of builds with its compiler, and the cache
// of what that has built.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/kit/cache.h>
#include <weir/kit/error.h>
#include <weir/kit/symbols.h>

#include "base/disk_cache.h"
#include "base/text.h"

static const struct weir_kit_native *find(const struct weir_kit_natives *natives, int code)
{
    for (size_t i = 0; i < natives->count; i++) {
        if (natives->entries[i].code == code)
            return &natives->entries[i];
    }
    return NULL;
}

const char *weir_kit_native_name(const struct weir_kit_natives *natives, int code)
{
    const struct weir_kit_native *native = find(natives, code);
    return native && native->name ? native->name : natives->unknown;
}

void weir_kit_native_describe(const struct weir_kit_natives *natives, struct weir_error *detail,
                              const char *call, int code, const char *name, const char *format,
                              va_list arguments)
{
    const struct weir_kit_native *native = find(natives, code);
    const char *remedy = native && native->remedy ? native->remedy : "";
    *detail = (struct weir_error){
        .status = native ? native->status : WEIR_ERROR_DEVICE,
        .native_code = code,
    };
    snprintf(detail->native_call, sizeof detail->native_call, "%s", call);
    snprintf(detail->native_name, sizeof detail->native_name, "%s",
             name ? name : weir_kit_native_name(natives, code));
    snprintf(detail->remedy, sizeof detail->remedy, "%s", remedy);
    vsnprintf(detail->message, sizeof detail->message, format, arguments);
}

// The first line with `part`, as many warnings may precede the first error; the whole where none has it.
static const char *line_with(const char *text, const char *part)
{
    const char *at = strstr(text, part);
    while (at && at > text && at[-1] != '\n')
        at--;
    return at ? at : text;
}

weir_status weir_kit_build_report(const struct weir_host *host, const struct weir_kit_build *build)
{
    const bool told = build->log && build->log[0];
    if (told)
        host->log(build->failed ? WEIR_LOG_ERROR : WEIR_LOG_INFO, build->source, build->log);
    if (!build->failed)
        return WEIR_OK;
    struct weir_error detail = {
        .status = WEIR_ERROR_BUILD,
        .native_code = build->code,
        .remedy = "mend the source or its options; the whole log went to the log callback",
    };
    snprintf(detail.native_call, sizeof detail.native_call, "%s", build->call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s", build->name);
    snprintf(detail.message, sizeof detail.message, "the program does not build with '%s': %s",
             build->options, told ? line_with(build->log, build->sought) : "there is no log");
    size_t length = strlen(detail.message);
    while (length > 0 && strchr("\n ", detail.message[length - 1]))
        detail.message[--length] = '\0';
    return host->error(&detail, sizeof detail);
}

// The library.

#define NAMED_AT_MOST 4

// RTLD_LOCAL hides the symbols of a driver and of its libraries from the program. RTLD_NOW reports
// an incomplete driver here and not at its first use.
void *weir_kit_library_open(const char *const *names, size_t count, char *message,
                            size_t message_size)
{
    size_t used = 0;
    weir_text_append(message, message_size, &used, "%s", "");
    for (size_t i = 0; i < count; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle)
            return handle;
        const char *reason = dlerror();
        weir_text_append(message, message_size, &used, "%s%s", used > 0 ? "; " : "",
                         reason ? reason : names[i]);
    }
    return NULL;
}

bool weir_kit_symbols_load(void *handle, const char *library, const struct weir_kit_symbol *table,
                           size_t count, void *functions, char *message, size_t message_size)
{
    size_t used = 0;
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(handle, table[i].name);
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy((char *)functions + table[i].offset, &address, sizeof address);
        if (address || table[i].optional)
            continue;
        if (missing++ == 0)
            weir_text_append(message, message_size, &used, "%s lacks", library);
        if (missing <= NAMED_AT_MOST)
            weir_text_append(message, message_size, &used, " %s", table[i].name);
    }
    if (missing > NAMED_AT_MOST)
        weir_text_append(message, message_size, &used, " and %zu more functions",
                         missing - NAMED_AT_MOST);
    return missing == 0;
}

// The cache: the disk cache of base; its errors become log messages.

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
    weir_kit_cache *cache = host->allocate(sizeof *cache);
    if (!cache)
        return NULL;
    cache->host = host;
    snprintf(cache->name, sizeof cache->name, "%s", name);
    cache->disk = weir_disk_cache_create(directory[0] ? directory : NULL, name, LIMIT_BYTES,
                                         message, sizeof message);
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
