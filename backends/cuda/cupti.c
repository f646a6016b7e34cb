// CUPTI's library, and what it is told to record.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/kit/symbols.h>

#include "backends/cuda/libraries.h"

struct cupti_symbols cu_cupti;

bool cu_cupti_load(const char *setting, int driver, char *message, size_t size)
{
    static const struct weir_kit_symbol table[] = {
#define CUPTI_ENTRY(optional, result, name, parameters) \
    {#name, offsetof(struct cupti_symbols, name), optional},
        CUPTI_SYMBOLS(CUPTI_ENTRY)
#undef CUPTI_ENTRY
    };
    static const char *const for_13[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                         "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    const bool named = strcmp(setting, "auto") != 0;
    const bool recent = driver >= 13000;
    const char *const *names = named ? &setting : recent ? for_13 : for_13 + 1;
    const size_t count = named ? 1 : recent ? 4 : 3;
    if (!named && getenv("CUDA_INJECTION64_PATH")) {
        snprintf(message, size, "another profiler has it: CUDA_INJECTION64_PATH is set");
        return false;
    }
    void *handle = weir_kit_library_open(names, count, message, size);
    return handle && weir_kit_symbols_load(handle, names[0], table, sizeof table / sizeof *table,
                                           &cu_cupti, message, size);
}

static const unsigned kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE,       CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};

#define KIND_COUNT (sizeof kinds / sizeof *kinds)

// CUPTI writes external ids only for calls that are recorded themselves. So the calls that
// operations consist of are recorded, or all calls if CUPTI cannot select them.
void cu_cupti_record_calls(bool on, bool all_calls)
{
    if (all_calls || !cu_cupti.cuptiActivityEnableDriverApi) {
        if (on)
            cu_cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
        else
            cu_cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
        return;
    }
#define CALL(name, number) cu_cupti.cuptiActivityEnableDriverApi(number, on);
    CUPTI_CALLS(CALL)
#undef CALL
}

// Not every version has the activities of peer copies and graphs.
CUptiResult cu_cupti_enable(bool all_calls)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        CUptiResult result = cu_cupti.cuptiActivityEnable(kinds[i]);
        if (result != CUPTI_SUCCESS && kinds[i] != CUPTI_ACTIVITY_KIND_MEMCPY2 &&
            kinds[i] != CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
            return result;
    }
    cu_cupti_record_calls(true, all_calls);
    return CUPTI_SUCCESS;
}

void cu_cupti_disable(bool all_calls)
{
    cu_cupti_record_calls(false, all_calls);
    for (size_t i = 0; i < KIND_COUNT; i++)
        cu_cupti.cuptiActivityDisable(kinds[i]);
}
