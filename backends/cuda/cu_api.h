// The part of the CUDA driver API that the backend uses, declared here so that
// the module builds where no CUDA toolkit is installed. cu_check.c compares every
// line with <cuda.h> where that is installed. Names and values are NVIDIA's.
#ifndef WEIR_BACKENDS_CUDA_CU_API_H
#define WEIR_BACKENDS_CUDA_CU_API_H

#include <stddef.h>
#include <stdint.h>

// X(name, value). They are made into an enumeration unless <cuda.h> has them.
#define CU_CONSTANTS(X)                                          \
    X(CUDA_SUCCESS, 0)                                           \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                               \
    X(CUDA_ERROR_NO_DEVICE, 100)                                 \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                             \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                         \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                         \
    X(CUDA_ERROR_INVALID_PTX, 218)                               \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                      \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                   \
    X(CUDA_ERROR_INVALID_SOURCE, 300)                            \
    X(CUDA_ERROR_NOT_FOUND, 500)                                 \
    X(CUDA_ERROR_NOT_READY, 600)                                 \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                           \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                            \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                      \
    X(CUDA_ERROR_ASSERT, 710)                                    \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)            \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                      \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                       \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                        \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                     \
    X(CUDA_ERROR_INVALID_PC, 718)                                \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                             \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)              \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                    \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                    \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                    \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                     \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                     \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                     \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                         \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)              \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                        \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                \
    X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)          \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)          \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)           \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                    \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                             \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)        \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                                \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                     \
    X(CU_STREAM_NON_BLOCKING, 1)                                 \
    X(CU_EVENT_DEFAULT, 0)                                       \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                 \
    X(CU_EVENT_DISABLE_TIMING, 2)                                \
    X(CU_MEMORYTYPE_HOST, 1)                                     \
    X(CU_MEMORYTYPE_DEVICE, 2)                                   \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                          \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                            \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3)      \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)

// X(name, value). Macros in <cuda.h>.
#define CU_FLAGS(X)                   \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)    \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)   \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1) \
    X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)

// X(structure, member, offset), and X_SIZE(structure, size).
#define CU_LAYOUT(X, X_SIZE)                       \
    X(CUDA_MEMCPY2D, srcXInBytes, 0)               \
    X(CUDA_MEMCPY2D, srcY, 8)                      \
    X(CUDA_MEMCPY2D, srcMemoryType, 16)            \
    X(CUDA_MEMCPY2D, srcHost, 24)                  \
    X(CUDA_MEMCPY2D, srcDevice, 32)                \
    X(CUDA_MEMCPY2D, srcArray, 40)                 \
    X(CUDA_MEMCPY2D, srcPitch, 48)                 \
    X(CUDA_MEMCPY2D, dstXInBytes, 56)              \
    X(CUDA_MEMCPY2D, dstY, 64)                     \
    X(CUDA_MEMCPY2D, dstMemoryType, 72)            \
    X(CUDA_MEMCPY2D, dstHost, 80)                  \
    X(CUDA_MEMCPY2D, dstDevice, 88)                \
    X(CUDA_MEMCPY2D, dstArray, 96)                 \
    X(CUDA_MEMCPY2D, dstPitch, 104)                \
    X(CUDA_MEMCPY2D, WidthInBytes, 112)            \
    X(CUDA_MEMCPY2D, Height, 120)                  \
    X_SIZE(CUDA_MEMCPY2D, 128)                     \
    X(CUmemPoolProps, allocType, 0)                \
    X(CUmemPoolProps, handleTypes, 4)              \
    X(CUmemPoolProps, location.type, 8)            \
    X(CUmemPoolProps, location.id, 12)             \
    X(CUmemPoolProps, win32SecurityAttributes, 16) \
    X_SIZE(CUmemPoolProps, 88)

// The enumerations are 32 bits wide in the driver's ABI.
#define CU_ENUMERATIONS(X)  \
    X(CUresult)             \
    X(CUdevice_attribute)   \
    X(CUfunction_attribute) \
    X(CUjit_option)         \
    X(CUmemPool_attribute)  \
    X(CUmemorytype)         \
    X(CUdriverProcAddressQueryResult)

#ifndef CUDA_VERSION

typedef int CUresult;
typedef int CUdevice_attribute;
typedef int CUfunction_attribute;
typedef unsigned CUjit_option;
typedef unsigned CUmemPool_attribute;
typedef unsigned CUmemorytype;
typedef unsigned CUdriverProcAddressQueryResult;
typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

typedef struct CUDA_MEMCPY2D_st {
    size_t srcXInBytes;
    size_t srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes;
    size_t dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes;
    size_t Height;
} CUDA_MEMCPY2D;

// `reserved` also covers members that later versions named; all are zero here.
typedef struct CUmemPoolProps_st {
    unsigned allocType;
    unsigned handleTypes;
    struct {
        unsigned type;
        int id;
    } location;
    void *win32SecurityAttributes;
    unsigned char reserved[64];
} CUmemPoolProps;

enum {
#define CU_CONSTANT(name, value) name = value,
    CU_CONSTANTS(CU_CONSTANT) CU_FLAGS(CU_CONSTANT)
#undef CU_CONSTANT
};

#endif

#define CU_LAYOUT_OFFSET(structure, member, offset)                                       \
    _Static_assert(offsetof(structure, member) == (offset), #structure "." #member " is " \
                                                                       "elsewhere");
#define CU_LAYOUT_SIZE(structure, size) \
    _Static_assert(sizeof(structure) == (size), #structure " has another size");
CU_LAYOUT(CU_LAYOUT_OFFSET, CU_LAYOUT_SIZE)
#undef CU_LAYOUT_OFFSET
#undef CU_LAYOUT_SIZE

#endif
