// Compares symbols.h, nvrtc_api.h and cupti_api.h with NVIDIA's headers at compile time,
// and driver_cl.h with Khronos'; without those, or in use, this file is empty. cudaTypedefs.h has a type
// for each version of each function, so the pinned versions are checked too.
#ifdef __has_include
#if __has_include(<cudaTypedefs.h>)

#include <cudaTypedefs.h>

#include "backends/cuda/symbols.h"

#define CU_CHECK_CONSTANT(name, value) _Static_assert((name) == (value), #name " differs");
CU_CONSTANTS(CU_CHECK_CONSTANT)
CU_FLAGS(CU_CHECK_CONSTANT)
#undef CU_CHECK_CONSTANT

#define CU_CHECK_ENUMERATION(name) _Static_assert(sizeof(name) == 4, #name " has another size");
CU_ENUMERATIONS(CU_CHECK_ENUMERATION)
#undef CU_CHECK_ENUMERATION

// Declarations that an old toolkit lacks are only checked with a newer one.
#define CU_CHECK_SYMBOL(version, result, name, parameters)                                      \
    _Static_assert(_Generic((PFN_##name##_v##version)0, result(*) parameters : 1, default : 0), \
                   #name " differs");
#if CUDA_VERSION >= 12040
CU_SYMBOLS(CU_CHECK_SYMBOL)
#endif
#undef CU_CHECK_SYMBOL

#endif
#if __has_include(<cupti.h>) && __has_include(<cuda.h>)

#include <cupti.h>

#include "backends/cuda/cupti_api.h"

#define CUPTI_CHECK_CONSTANT(name, value) _Static_assert((int)(name) == (value), #name " differs");
CUPTI_CONSTANTS(CUPTI_CHECK_CONSTANT)
#undef CUPTI_CHECK_CONSTANT

#define CUPTI_CHECK_CALL(name, number) \
    _Static_assert(CUPTI_DRIVER_TRACE_CBID_##name == (number), #name " has another number");
CUPTI_CALLS(CUPTI_CHECK_CALL)
#undef CUPTI_CHECK_CALL

// The names of the structures change with the version.
#define CUPTI_CHECK_RECORD(kind, structure, start_at, end_at, correlation_at)  \
    _Static_assert(offsetof(structure, start) == (start_at) &&                 \
                       offsetof(structure, end) == (end_at) &&                 \
                       offsetof(structure, correlationId) == (correlation_at), \
                   #structure " is laid out differently");
#if CUPTI_API_VERSION >= 130000
CUPTI_TIMED_RECORDS(CUPTI_CHECK_RECORD)
#endif
#undef CUPTI_CHECK_RECORD

_Static_assert(
    offsetof(CUpti_ActivityExternalCorrelation, externalKind) == CUPTI_EXTERNAL_KIND_AT &&
        offsetof(CUpti_ActivityExternalCorrelation, externalId) == CUPTI_EXTERNAL_ID_AT &&
        offsetof(CUpti_ActivityExternalCorrelation, correlationId) == CUPTI_EXTERNAL_CORRELATION_AT,
    "CUpti_ActivityExternalCorrelation is laid out differently");
_Static_assert(sizeof(CUptiResult) == 4 && sizeof(CUpti_ActivityKind) == 4 &&
                   sizeof(CUpti_ExternalCorrelationKind) == 4 && sizeof(CUpti_CallbackId) == 4,
               "an enumeration of CUPTI has another size");

#define CUPTI_CHECK_SYMBOL(optional, result, name, parameters) \
    _Static_assert(_Generic(&name, result(*) parameters : 1, default : 0), #name " differs");
CUPTI_SYMBOLS(CUPTI_CHECK_SYMBOL)
#undef CUPTI_CHECK_SYMBOL

#endif
#if __has_include(<nvrtc.h>)

#include <nvrtc.h>

#include "backends/cuda/nvrtc_api.h"

#define NVRTC_CHECK_SYMBOL(result, name, parameters) \
    _Static_assert(_Generic(&name, result(*) parameters : 1, default : 0), #name " differs");
NVRTC_SYMBOLS(NVRTC_CHECK_SYMBOL)
#undef NVRTC_CHECK_SYMBOL

_Static_assert(NVRTC_SUCCESS == 0 && NVRTC_ERROR_COMPILATION == 6, "nvrtcResult differs");
_Static_assert(sizeof(nvrtcResult) == 4, "nvrtcResult has another size");

#endif
#if __has_include(<CL/cl_icd.h>)

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>

#include "backends/cuda/driver_cl.h"

#define CU_CHECK_PLACE(index, name)                                                             \
    _Static_assert(offsetof(struct _cl_icd_dispatch, name) == (index) * sizeof(void (*)(void)), \
                   #name " has another place");
#define CU_CHECK_CL_SYMBOL(index, result, name, parameters) CU_CHECK_PLACE(index, name)
CU_CL_SYMBOLS(CU_CHECK_CL_SYMBOL)
CU_CL_PLACES(CU_CHECK_PLACE)
#undef CU_CHECK_CL_SYMBOL
#undef CU_CHECK_PLACE

#endif
#endif

// ISO C requires a declaration in every file.
typedef int cu_check_done;
