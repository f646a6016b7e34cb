// The driver's functions: found when the library is opened, and compared at compile time with the headers of
// NVIDIA and Khronos where these are installed.
//
// The library exports the newest version of each function under varying names. So only two
// functions are looked up by name: the one for the driver's version, which is needed to report a
// driver that is too old, and cuGetProcAddress, which returns each function in the requested
// version.
//
// cudaTypedefs.h has a type for each version of each function, so the pinned versions are compared too.
#ifdef __has_include
#if __has_include(<cudaTypedefs.h>)
#define HAS_CUDA
#include <cudaTypedefs.h>
#endif
#if __has_include(<cupti.h>) && __has_include(<cuda.h>)
#define HAS_CUPTI
#include <cupti.h>
#endif
#if __has_include(<nvrtc.h>)
#define HAS_NVRTC
#include <nvrtc.h>
#endif
#endif

#include <stdio.h>
#include <string.h>
#include <weir/kit/symbols.h>

#include "backends/cuda/libraries.h"

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
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *entry = &entries[i];
        void *address = NULL;
        if (bootstrap->get_address(entry->name, &address, entry->version, 0, NULL) != CUDA_SUCCESS)
            address = NULL;
        // ISO C has no conversion from an object pointer to a function pointer.
        memcpy((char *)symbols + entry->offset, &address, sizeof address);
        if (!address && entry->version <= CU_OLDEST_DRIVER) {
            snprintf(message, message_size, "the driver lacks %s", entry->name);
            return false;
        }
    }
    return true;
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

// Comparisons.

#ifdef HAS_CUDA
#define CU_CHECK_CONSTANT(name, value) _Static_assert((name) == (value), #name " differs");
CU_CONSTANTS(CU_CHECK_CONSTANT)
#undef CU_CHECK_CONSTANT

#define CU_CHECK_ATTRIBUTE(member, attribute, number) \
    _Static_assert((attribute) == (number), #attribute " differs");
CU_ATTRIBUTES(CU_CHECK_ATTRIBUTE)
#undef CU_CHECK_ATTRIBUTE

#define CU_CHECK_ENUMERATION(name) _Static_assert(sizeof(name) == 4, #name " has another size");
CU_ENUMERATIONS(CU_CHECK_ENUMERATION)
#undef CU_CHECK_ENUMERATION

#define CU_CHECK_MEMBER(structure, type, member)                                       \
    _Static_assert(offsetof(structure, member) == offsetof(CU_OWN(structure), member), \
                   #structure "." #member " is elsewhere");
#define CU_CHECK_STRUCTURE(name, members, rest)                                         \
    members(CU_CHECK_MEMBER, name) _Static_assert(sizeof(name) == sizeof(CU_OWN(name)), \
                                                  #name " has another size");
CU_STRUCTURES(CU_CHECK_STRUCTURE)
#undef CU_CHECK_MEMBER
#undef CU_CHECK_STRUCTURE
_Static_assert(sizeof(CUlaunchAttributeValue) == 64, "CUlaunchAttributeValue has another size");

// Declarations that an old toolkit lacks are only checked with a newer one.
#define CU_CHECK_SYMBOL(version, result, name, parameters)                                      \
    _Static_assert(_Generic((PFN_##name##_v##version)0, result(*) parameters : 1, default : 0), \
                   #name " differs");
#if CUDA_VERSION >= 12040
CU_SYMBOLS(CU_CHECK_SYMBOL)
#endif
#undef CU_CHECK_SYMBOL
#endif

#ifdef HAS_CUPTI
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

#ifdef HAS_NVRTC
#define NVRTC_CHECK_SYMBOL(result, name, parameters) \
    _Static_assert(_Generic(&name, result(*) parameters : 1, default : 0), #name " differs");
NVRTC_SYMBOLS(NVRTC_CHECK_SYMBOL)
#undef NVRTC_CHECK_SYMBOL

_Static_assert(NVRTC_SUCCESS == 0 && NVRTC_ERROR_COMPILATION == 6, "nvrtcResult differs");
_Static_assert(sizeof(nvrtcResult) == 4, "nvrtcResult has another size");
#endif
