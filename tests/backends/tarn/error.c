// Status and remedy of Tarn's results. Their names come from the driver.
#include <stdarg.h>

#include "trn.h"

static const struct weir_kit_native table[] = {
    {TARN_OUT_OF_MEMORY, WEIR_ERROR_OUT_OF_MEMORY, NULL,
     "destroy buffers that are no longer needed, use smaller ones, or weir_device_trim()"},
    {TARN_INVALID_VALUE, WEIR_ERROR_INVALID, NULL, NULL},
    {TARN_NOT_FOUND, WEIR_ERROR_NOT_FOUND, NULL, NULL},
    {TARN_ALREADY_REGISTERED, WEIR_ERROR_INVALID, NULL,
     "wrap the whole range once, or end its other registration first"},
    {TARN_NO_DEVICE, WEIR_ERROR_NO_DEVICE, NULL, NULL},
};
static const struct weir_kit_natives natives = {table, sizeof table / sizeof *table,
                                                "unknown result of Tarn"};

weir_status trn_error(const struct trn_module *module, const char *call, tarn_result result,
                      const char *format, ...)
{
    struct weir_error detail;
    va_list arguments;
    va_start(arguments, format);
    weir_kit_native_describe(&natives, &detail, call, (int)result,
                             module->tarn.tarn_result_name(result), format, arguments);
    va_end(arguments);
    return module->host->error(&detail, sizeof detail);
}
