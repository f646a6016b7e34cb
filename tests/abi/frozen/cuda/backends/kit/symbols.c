// RTLD_LOCAL hides the symbols of a driver and of its libraries from the program. RTLD_NOW reports
// an incomplete driver here and not at its first use.
#include "tests/abi/frozen/cuda/api/weir/kit/symbols.h"

#include <dlfcn.h>
#include <string.h>

#include "tests/abi/frozen/cuda/base/text.h"

#define NAMED_AT_MOST 4

void *weir_kit_library_open(const char *const *names, size_t count, char *message,
                            size_t message_size)
{
    size_t used = 0;
    weir_text_append(message, message_size, &used, "%s", "");
    for (size_t i = 0; i < count; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle)
            return handle;
        const char *reason = dlerror();
        weir_text_append(message, message_size, &used, "%s%s", used > 0 ? "; " : "",
                         reason ? reason : names[i]);
    }
    return NULL;
}

bool weir_kit_symbols_load(void *handle, const char *library, const struct weir_kit_symbol *table,
                           size_t count, void *functions, char *message, size_t message_size)
{
    size_t used = 0;
    size_t missing = 0;
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(handle, table[i].name);
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy((char *)functions + table[i].offset, &address, sizeof address);
        if (address || table[i].optional)
            continue;
        if (missing++ == 0)
            weir_text_append(message, message_size, &used, "%s lacks", library);
        if (missing <= NAMED_AT_MOST)
            weir_text_append(message, message_size, &used, " %s", table[i].name);
    }
    if (missing > NAMED_AT_MOST)
        weir_text_append(message, message_size, &used, " and %zu more functions",
                         missing - NAMED_AT_MOST);
    return missing == 0;
}
