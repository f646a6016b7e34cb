// See the header.
#include "pipelines/train/fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/sized.h"

weir_status train_fail(const char *label, weir_status status, const char *remedy,
                       const char *format, ...)
{
    struct weir_error error = {.status = status};
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    if (label)
        snprintf(error.object, sizeof error.object, "%s", label);
    if (remedy)
        snprintf(error.remedy, sizeof error.remedy, "%s", remedy);
    return weir_error_set(&error);
}

weir_status train_fail_memory(const char *label)
{
    return train_fail(label, WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory of the host is left");
}

weir_status train_params(const char *function, const char *type, const void *given, void *known,
                         size_t size)
{
    struct weir_sized_refusal refusal;
    if (!given)
        return train_fail(NULL, WEIR_ERROR_INVALID, "pass params", "%s: params is NULL", function);
    if (weir_sized_read(function, type, given, known, size, &refusal))
        return WEIR_OK;
    return train_fail(NULL, WEIR_ERROR_INVALID, refusal.remedy, "%s", refusal.message);
}
