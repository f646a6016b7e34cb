// The functions of OpenCL, in the order of the list in symbols.h. What symbols.h and cl_api.h declare is compared at
// compile time with Khronos' headers, where these are installed.
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

#include "backends/clc/symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

static const struct weir_kit_symbol table[] = {
#define OCL_SYMBOL(since, place, result, name, parameters) \
    {#name, offsetof(struct ocl_symbols, name), (since) > 12},
    OCL_SYMBOLS(OCL_SYMBOL)
#undef OCL_SYMBOL
};

// A driver.

typedef void (*any_function)(void);

// The beginning of every object of a driver.
struct object {
    const any_function *functions;
};

// ISO C has no conversion from an object pointer to a function pointer.
ocl_get_platforms ocl_driver_platforms(void *library)
{
    static const char name[] = "clIcdGetPlatformIDsKHR";
    void *(*extension)(const char *) = NULL;
    ocl_get_platforms found = NULL;
    void *address = dlsym(library, "clGetExtensionFunctionAddress");
    memcpy(&extension, &address, sizeof extension);
    address = extension ? extension(name) : NULL;
    if (!address)
        address = dlsym(library, name);
    memcpy(&found, &address, sizeof found);
    return found;
}

uint32_t ocl_version(const char *text)
{
    static const char before[] = "OpenCL ";
    if (strncmp(text, before, strlen(before)) != 0)
        return 12;
    char *point;
    const unsigned long major = strtoul(text + strlen(before), &point, 10);
    const unsigned long minor = *point == '.' ? strtoul(point + 1, NULL, 10) : 0;
    return (uint32_t)(10 * major + minor);
}

// Takes the functions of OpenCL `version`, with whose last one a driver's table ends.
static void take(const any_function *functions, uint32_t version, struct ocl_symbols *symbols)
{
#define TAKE(since, place, result, name, parameters) \
    if ((since) <= version)                          \
        memcpy(&symbols->name, &functions[place], sizeof(any_function));
    OCL_SYMBOLS(TAKE)
#undef TAKE
}

bool ocl_driver_symbols(cl_platform_id platform, struct ocl_symbols *symbols)
{
    const any_function *functions = ((const struct object *)(const void *)platform)->functions;
    char text[256] = "";
    *symbols = (struct ocl_symbols){0};
    take(functions, 10, symbols);
    if (symbols->clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof text - 1, text, NULL) !=
        CL_SUCCESS)
        return false;
    const uint32_t version = ocl_version(text);
    take(functions, version, symbols);
    return version >= 12;
}

// The first platform's functions are those of all.
static bool load_driver(const char *library, ocl_get_platforms get, struct ocl_symbols *symbols,
                        char *message, size_t message_size)
{
    cl_platform_id platform;
    if (get(1, &platform, NULL) != CL_SUCCESS) {
        snprintf(message, message_size, "the driver %s has no platform", library);
        return false;
    }
    if (!ocl_driver_symbols(platform, symbols)) {
        snprintf(message, message_size, "the platform of the driver %s has no OpenCL 1.2", library);
        return false;
    }
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
    const ocl_get_platforms driver =
        handle && !dlsym(handle, "clGetPlatformIDs") ? ocl_driver_platforms(handle) : NULL;
    if (driver)
        return load_driver(library, driver, symbols, message, message_size);
    return handle && weir_kit_symbols_load(handle, library, table, sizeof table / sizeof *table,
                                           symbols, message, message_size);
}

// Comparisons.

#ifdef HAS_HEADERS
#define OCL_CHECK_CONSTANT(name, value) _Static_assert((name) == (value), #name " differs");
OCL_CONSTANTS(OCL_CHECK_CONSTANT)
OCL_EXTENSION_CONSTANTS(OCL_CHECK_CONSTANT)
#undef OCL_CHECK_CONSTANT

#define OCL_CHECK_SYMBOL(since, place, result, name, parameters) \
    _Static_assert(_Generic(&name, result(*) parameters : 1, default : 0), #name " differs");
OCL_SYMBOLS(OCL_CHECK_SYMBOL)
#undef OCL_CHECK_SYMBOL

_Static_assert(sizeof(cl_buffer_region) == 2 * sizeof(size_t), "cl_buffer_region differs");
#endif

#ifdef HAS_ICD
#define OCL_CHECK_PLACE(since, place, result, name, parameters)                                 \
    _Static_assert(offsetof(struct _cl_icd_dispatch, name) == (place) * sizeof(void (*)(void)), \
                   #name " has another place");
OCL_SYMBOLS(OCL_CHECK_PLACE)
#undef OCL_CHECK_PLACE
#endif
