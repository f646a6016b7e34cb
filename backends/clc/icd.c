// See the header.
#include "backends/clc/icd.h"

#include <dlfcn.h>
#include <string.h>

// The beginning of every object of such a driver.
struct _cl_platform_id {
    const clc_function *functions;
};

// ISO C has no conversion from an object pointer to a function pointer.
clc_get_platforms clc_icd_platforms(void *library)
{
    static const char name[] = "clIcdGetPlatformIDsKHR";
    void *(*extension)(const char *) = NULL;
    clc_get_platforms found = NULL;
    void *address = dlsym(library, "clGetExtensionFunctionAddress");
    memcpy(&extension, &address, sizeof extension);
    address = extension ? extension(name) : NULL;
    if (!address)
        address = dlsym(library, name);
    memcpy(&found, &address, sizeof found);
    return found;
}

const clc_function *clc_icd_functions(cl_platform_id platform)
{
    return platform->functions;
}
