// A layer of OpenCL that counts calls, and writes "NAME COUNT" a line to the file of COUNT_CALLS at exit. It knows
// nothing of the layer that it is compared with. Its functions have no types: each counts, and jumps to the next layer's.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/opencl/entries.h"

#if !defined(__x86_64__)
#error "count_calls.c has code of x86-64 only"
#endif

enum entry {
#define NUMBER(name, how) NUMBER_##name,
    LAYER_ENTRIES(NUMBER)
#undef NUMBER
    ENTRIES
};

__attribute__((visibility("hidden"))) void (*count_calls_next[ENTRIES])(void);
__attribute__((visibility("hidden"))) unsigned long count_calls_made[ENTRIES];

#define JUMP(name, how)                          \
    "count_calls_" #name ":\n"                   \
    "lock incq count_calls_made + 8 * n(%rip)\n" \
    "jmp *count_calls_next + 8 * n(%rip)\n"      \
    ".set n, n + 1\n"
__asm__(".text\n.set n, 0\n" LAYER_ENTRIES(JUMP));
#undef JUMP

#define DECLARE(name, how) void count_calls_##name(void);
LAYER_ENTRIES(DECLARE)
#undef DECLARE

static void (*table[])(void) = {
#define ENTRY(name, how) count_calls_##name,
    LAYER_ENTRIES(ENTRY)
#undef ENTRY
};

static void write_counts(void)
{
    static const char *const names[] = {
#define NAME(name, how) #name,
        LAYER_ENTRIES(NAME)
#undef NAME
    };
    const char *path = getenv("COUNT_CALLS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    for (size_t i = 0; i < ENTRIES; i++)
        if (count_calls_made[i])
            fprintf(file, "%s %lu\n", names[i], count_calls_made[i]);
    fclose(file);
}

cl_int clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *out_size)
{
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION || (value && size < sizeof version))
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, &version, sizeof version);
    if (out_size)
        *out_size = sizeof version;
    return CL_SUCCESS;
}

cl_int clInitLayer(cl_uint count, const cl_icd_dispatch *next, cl_uint *out_count,
                   const cl_icd_dispatch **out_table)
{
    if (count < ENTRIES)
        return CL_INVALID_VALUE;
    memcpy(count_calls_next, next, sizeof count_calls_next);
    atexit(write_counts);
    *out_count = ENTRIES;
    *out_table = (const cl_icd_dispatch *)table;
    return CL_SUCCESS;
}
