// The library exports the newest version of each function under varying names. So only two
// functions are looked up by name: the one for the driver's version, which is needed to report a
// driver that is too old, and cuGetProcAddress, which returns each function in the requested
// version.
#include "tests/abi/frozen/cuda/backends/cuda/symbols.h"

#include <stdio.h>
#include <string.h>
#include "tests/abi/frozen/cuda/api/weir/kit/symbols.h"

#include "tests/abi/frozen/cuda/base/text.h"

#define NAMED_AT_MOST 4

struct entry {
    const char *name;
    int version;
    size_t offset;
};

static const struct entry entries[] = {
#define CU_SYMBOL(version, result, name, parameters) \
    {#name, version, offsetof(struct cu_symbols, name)},
    CU_SYMBOLS(CU_SYMBOL)
#undef CU_SYMBOL
};

struct bootstrap {
    CUresult (*get_version)(int *);
    CUresult (*get_address)(const char *, void **, int, cuuint64_t,
                            CUdriverProcAddressQueryResult *);
};

static const struct weir_kit_symbol bootstrap_table[] = {
    {"cuDriverGetVersion", offsetof(struct bootstrap, get_version), false},
    {"cuGetProcAddress_v2", offsetof(struct bootstrap, get_address), true},
};

static bool find_all(const struct bootstrap *bootstrap, struct cu_symbols *symbols, char *message,
                     size_t message_size)
{
    size_t used = 0;
    size_t missing = 0;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *entry = &entries[i];
        void *address = NULL;
        if (bootstrap->get_address(entry->name, &address, entry->version, 0, NULL) != CUDA_SUCCESS)
            address = NULL;
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy((char *)symbols + entry->offset, &address, sizeof address);
        if (address || entry->version > CU_OLDEST_DRIVER)
            continue;
        if (missing++ == 0)
            weir_text_append(message, message_size, &used, "the driver lacks");
        if (missing <= NAMED_AT_MOST)
            weir_text_append(message, message_size, &used, " %s", entry->name);
    }
    if (missing > NAMED_AT_MOST)
        weir_text_append(message, message_size, &used, " and %zu more functions",
                         missing - NAMED_AT_MOST);
    return missing == 0;
}

bool cu_symbols_load(const char *library, struct cu_symbols *symbols, int *out_version,
                     char *message, size_t message_size)
{
    // Containers often have only the first, toolkits without a driver only the second.
    const char *names[] = {"libcuda.so.1", "libcuda.so"};
    const char *const *tried = library[0] ? &library : names;
    struct bootstrap bootstrap;
    *out_version = 0;

    void *handle = weir_kit_library_open(tried, library[0] ? 1 : 2, message, message_size);
    if (!handle || !weir_kit_symbols_load(handle, tried[0], bootstrap_table, 2, &bootstrap, message,
                                          message_size))
        return false;
    if (bootstrap.get_version(out_version) != CUDA_SUCCESS)
        *out_version = 0;
    if (bootstrap.get_address)
        return find_all(&bootstrap, symbols, message, message_size);
    snprintf(message, message_size,
             "the driver supports CUDA %d.%d, and this module needs %d.%d or newer",
             *out_version / 1000, *out_version % 1000 / 10, CU_OLDEST_DRIVER / 1000,
             CU_OLDEST_DRIVER % 1000 / 10);
    return false;
}
