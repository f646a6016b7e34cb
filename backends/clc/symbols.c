// The functions of OpenCL, in the order of the list in symbols.h.
#include "backends/clc/symbols.h"

#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

static const struct weir_kit_symbol table[] = {
#define OCL_SYMBOL(since, name) {#name, offsetof(struct ocl_symbols, name), (since) > 12},
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
#define TAKE(since, name)                                                                          \
    if ((since) <= version)                                                                        \
        memcpy(&symbols->name, &functions[offsetof(cl_icd_dispatch, name) / sizeof(any_function)], \
               sizeof(any_function));
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
