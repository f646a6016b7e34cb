// The table of names and offsets, generated from the list in symbols.h.
#include "tests/abi/frozen/opencl/backends/opencl/symbols.h"

#include "tests/abi/frozen/opencl/api/weir/kit/symbols.h"

static const struct weir_kit_symbol table[] = {
#define OCL_SYMBOL(since, result, name, parameters) \
    {#name, offsetof(struct ocl_symbols, name), (since) > 12},
    OCL_SYMBOLS(OCL_SYMBOL)
#undef OCL_SYMBOL
};

bool ocl_symbols_load(const char *library, struct ocl_symbols *symbols, char *message,
                      size_t message_size)
{
    void *handle = weir_kit_library_open(&library, 1, message, message_size);
    return handle && weir_kit_symbols_load(handle, library, table, sizeof table / sizeof *table,
                                           symbols, message, message_size);
}
