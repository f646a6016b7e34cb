// See shared.h.
#include "patterns/shared.h"

#include <stdarg.h>

#include "base/sized.h"

weir_status weir__pattern_fail(const char *label, weir_status status, const char *remedy,
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

weir_status weir__pattern_refuse_null(const char *function, const char *name)
{
    return weir__pattern_refuse(NULL, "create it first; destroying it sets the pointer to NULL",
                                "%s: %s is NULL", function, name);
}

weir_status weir__pattern_no_memory(const char *label, const char *what)
{
    return weir__pattern_fail(label, WEIR_ERROR_OUT_OF_MEMORY, NULL, "no memory for %s", what);
}

static weir_status refuse(const struct weir_sized_refusal *refusal)
{
    return weir__pattern_refuse(NULL, refusal->remedy, "%s", refusal->message);
}

weir_status weir__pattern_params(const char *function, const char *type, const void *params,
                                 void *known, size_t size)
{
    struct weir_sized_refusal refusal;
    if (!params)
        return weir__pattern_refuse(NULL, "pass params", "%s: params is NULL", function);
    if (weir_sized_read(function, type, params, known, size, &refusal))
        return WEIR_OK;
    return refuse(&refusal);
}

weir_status weir__pattern_item(const char *function, const char *type, const void *item,
                               size_t given_size, void *known, size_t size)
{
    struct weir_sized_refusal refusal;
    if (weir_sized_read_item(function, type, item, given_size, known, size, &refusal))
        return WEIR_OK;
    return refuse(&refusal);
}

void weir__pattern_forget(void)
{
    if (weir_last_error()->status != WEIR_OK)
        weir_error_set(NULL);
}

weir_status weir__pattern_callback_failed(const char *label, const char *what, weir_status status)
{
    if (status < 0 && weir_last_error()->status == status)
        return status;
    return weir__pattern_fail(label, status < 0 ? status : WEIR_ERROR_INVALID,
                              status < 0 ? NULL : "return WEIR_OK or an error",
                              "%s returned %s: %s", what, weir_status_name(status),
                              weir_status_text(status));
}

void weir__pattern_note(struct weir__pattern_first *first, weir_status status)
{
    if (first->status < 0 || (status >= 0 && first->status != WEIR_OK))
        return;
    first->status = status;
    if (status < 0)
        first->error = *weir_last_error();
}

weir_status weir__pattern_first(const struct weir__pattern_first *first)
{
    return first->status < 0 ? weir_error_set(&first->error) : first->status;
}

weir_status weir__pattern_placed(weir_status status, const char *file, int line)
{
    if (status >= 0 || !file || weir_last_error()->status != status || weir_last_error()->file)
        return status;
    struct weir_error error = *weir_last_error();
    error.file = file;
    error.line = line;
    return weir_error_set(&error);
}

weir_status weir__pattern_queue(weir_device *device, int32_t priority, bool timing,
                                struct weir__place place, weir_queue **out_queue,
                                const char *format, ...)
{
    char label[2 * WEIR__PATTERN_LABEL_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(label, sizeof label, format, arguments);
    va_end(arguments);
    return weir_queue_create_at(device,
                                WEIR_PARAMS(weir_queue, .label = label, .priority = priority,
                                            .timing = timing),
                                out_queue, place.file, place.line);
}
