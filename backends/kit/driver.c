// A driver's library: its functions, and reports of its errors and of builds with its compiler.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <weir/kit/error.h>
#include <weir/kit/symbols.h>
#include <weir/module/error.h>

#include "base/text.h"

const struct weir_kit_native *weir_kit_native_find(const struct weir_kit_natives *natives, int code)
{
    for (size_t i = 0; i < natives->count; i++) {
        if (natives->entries[i].code == code)
            return &natives->entries[i];
    }
    return NULL;
}

const char *weir_kit_native_name(const struct weir_kit_natives *natives, int code)
{
    const struct weir_kit_native *native = weir_kit_native_find(natives, code);
    return native && native->name ? native->name : natives->unknown;
}

void weir_kit_native_describe(const struct weir_kit_natives *natives, struct weir_error *detail,
                              const char *call, int code, const char *name, const char *format,
                              va_list arguments)
{
    const struct weir_kit_native *native = weir_kit_native_find(natives, code);
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

// Removes trailing spaces and newlines.
static void cut_end(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
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
             build->options,
             told ? weir_text_line_with(build->log, build->sought) : "there is no log");
    cut_end(detail.message);
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
