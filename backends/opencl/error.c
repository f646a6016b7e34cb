// The driver's functions, in the order of the list in symbols.h, and errors of its calls. The table of errors
// is backends/clc/error.c. What symbols.h and cl_api.h declare is compared at compile time with Khronos' headers,
// where these are installed.
#ifdef __has_include
#if __has_include(<CL/cl.h>) && __has_include(<CL/cl_ext.h>)
#define HAS_HEADERS
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
// Types that both declare must be the same, or this does not compile.
#include <CL/cl.h>
#include <CL/cl_ext.h>
#endif
#if __has_include(<CL/cl_icd.h>)
#define HAS_ICD
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#endif
#endif

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

#include "backends/clc/icd.h"
#include "backends/opencl/opencl.h"
#include "backends/opencl/symbols.h"

static const struct weir_kit_symbol table[] = {
#define OCL_SYMBOL(since, result, name, parameters) \
    {#name, offsetof(struct ocl_symbols, name), (since) > 12},
    OCL_SYMBOLS(OCL_SYMBOL)
#undef OCL_SYMBOL
};

// The first platform's functions are those of all.
static bool load_driver(const char *library, clc_get_platforms get, struct ocl_symbols *symbols,
                        char *message, size_t message_size)
{
    cl_platform_id platform;
    if (get(1, &platform, NULL) != CL_SUCCESS) {
        snprintf(message, message_size, "the driver %s has no platform", library);
        return false;
    }
    const clc_function *functions = clc_icd_functions(platform);
#define TAKE(place, name) memcpy(&symbols->name, &functions[place], sizeof(clc_function));
    OCL_PLACES(TAKE)
#undef TAKE
    symbols->clGetPlatformIDs = get;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const void *address;
        memcpy(&address, (const char *)symbols + table[i].offset, sizeof address);
        if (address || table[i].optional)
            continue;
        snprintf(message, message_size, "the driver %s lacks %s", library, table[i].name);
        return false;
    }
    return true;
}

bool ocl_symbols_load(const char *library, struct ocl_symbols *symbols, char *message,
                      size_t message_size)
{
    void *handle = weir_kit_library_open(&library, 1, message, message_size);
    const clc_get_platforms driver =
        handle && !dlsym(handle, "clGetPlatformIDs") ? clc_icd_platforms(handle) : NULL;
    if (driver)
        return load_driver(library, driver, symbols, message, message_size);
    return handle && weir_kit_symbols_load(handle, library, table, sizeof table / sizeof *table,
                                           symbols, message, message_size);
}

// Errors.

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

// Comparisons.

#ifdef HAS_HEADERS
#define OCL_CHECK_CONSTANT(name, value) _Static_assert((name) == (value), #name " differs");
OCL_CONSTANTS(OCL_CHECK_CONSTANT)
OCL_EXTENSION_CONSTANTS(OCL_CHECK_CONSTANT)
#undef OCL_CHECK_CONSTANT

#define OCL_CHECK_SYMBOL(since, result, name, parameters) \
    _Static_assert(_Generic(&name, result(*) parameters : 1, default : 0), #name " differs");
OCL_SYMBOLS(OCL_CHECK_SYMBOL)
#undef OCL_CHECK_SYMBOL

_Static_assert(sizeof(cl_buffer_region) == 2 * sizeof(size_t), "cl_buffer_region differs");
#endif

#ifdef HAS_ICD
#define OCL_CHECK_PLACE(place, name)                                                            \
    _Static_assert(offsetof(struct _cl_icd_dispatch, name) == (place) * sizeof(void (*)(void)), \
                   #name " has another place");
OCL_PLACES(OCL_CHECK_PLACE)
#undef OCL_CHECK_PLACE
#endif
