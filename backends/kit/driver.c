// See the header.
#include <weir/kit/error.h>

#include <stdio.h>
#include <string.h>
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
