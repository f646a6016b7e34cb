// Errors of the driver's calls. The table of errors is backends/clc/error.c.
#include <stdarg.h>
#include <stdio.h>

#include "backends/opencl/opencl.h"

weir_status ocl_native_error(const struct ocl_module *module, const char *call, cl_int code,
                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const weir_status status = clc_native_error_list(module->host, call, code, format, arguments);
    va_end(arguments);
    return status;
}

// The status is what PoCL gives a command that failed in any way, and not the error of that number.
static weir_status report_unknown(const struct ocl_module *module, const char *format,
                                  va_list arguments)
{
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    return weir_host_fail(module->host, WEIR_ERROR_DEVICE,
                          "the driver gives no cause; its log may (POCL_DEBUG=err for PoCL)",
                          "%s: its event ended with status -1", text);
}

weir_status ocl_event_error(const struct ocl_module *module, const char *call, cl_int code,
                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const weir_status status =
        code == -1 ? report_unknown(module, format, arguments)
                   : clc_native_error_list(module->host, call, code, format, arguments);
    va_end(arguments);
    return status;
}
