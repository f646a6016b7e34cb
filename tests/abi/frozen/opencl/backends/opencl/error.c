// The table of errors is backends/clc/error.c.
#include <stdarg.h>

#include "tests/abi/frozen/opencl/backends/opencl/opencl.h"

weir_status ocl_native_error(const struct ocl_module *module, const char *call, cl_int code,
                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const weir_status status = clc_native_error_list(module->host, call, code, format, arguments);
    va_end(arguments);
    return status;
}
