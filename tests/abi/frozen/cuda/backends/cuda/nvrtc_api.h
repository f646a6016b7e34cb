// The part of NVRTC, CUDA's run-time compiler, that the backend uses. cu_check.c
// compares it with <nvrtc.h> where that is installed.
#ifndef WEIR_BACKENDS_CUDA_NVRTC_API_H
#define WEIR_BACKENDS_CUDA_NVRTC_API_H

#include <stddef.h>

#ifndef __NVRTC_H__
typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_COMPILATION = 6
};
#endif

// X(result, name, parameters). Error names first.
#define NVRTC_SYMBOLS(X)                                                                           \
    X(const char *, nvrtcGetErrorString, (nvrtcResult))                                            \
    X(nvrtcResult, nvrtcVersion, (int *, int *))                                                   \
    X(nvrtcResult, nvrtcGetNumSupportedArchs, (int *))                                             \
    X(nvrtcResult, nvrtcGetSupportedArchs, (int *))                                                \
    X(nvrtcResult, nvrtcCreateProgram,                                                             \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *))                                          \
    X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                  \
    X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                               \
    X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram, char *))                                     \
    X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                    \
    X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram, char *))                                          \
    X(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                      \
    X(nvrtcResult, nvrtcGetPTX, (nvrtcProgram, char *))

struct nvrtc_symbols {
#define NVRTC_SYMBOL(result, name, parameters) result(*name) parameters;
    NVRTC_SYMBOLS(NVRTC_SYMBOL)
#undef NVRTC_SYMBOL
};

#endif
