// The part of the OpenCL API that Weir uses, declared here so that modules build where no
// OpenCL headers are installed. backends/clc/symbols.c compares every line with
// <CL/cl.h> where that is installed. Names and values are Khronos'.
#ifndef WEIR_BACKENDS_CLC_CL_API_H
#define WEIR_BACKENDS_CLC_CL_API_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

typedef cl_bitfield cl_device_type;
typedef cl_uint cl_command_queue_info;
typedef cl_uint cl_mem_info;
typedef cl_uint cl_platform_info;
typedef cl_uint cl_device_info;
typedef intptr_t cl_context_properties;
typedef cl_bitfield cl_command_queue_properties;
typedef cl_bitfield cl_queue_properties;
typedef cl_bitfield cl_device_svm_capabilities;
typedef cl_bitfield cl_mem_flags;
typedef cl_bitfield cl_svm_mem_flags;
typedef cl_uint cl_buffer_create_type;
typedef cl_bitfield cl_map_flags;
typedef cl_uint cl_program_info;
typedef cl_uint cl_program_build_info;
typedef cl_uint cl_kernel_info;
typedef cl_uint cl_kernel_arg_info;
typedef cl_uint cl_kernel_arg_address_qualifier;
typedef cl_bitfield cl_kernel_arg_type_qualifier;
typedef cl_uint cl_kernel_work_group_info;
typedef cl_uint cl_event_info;
typedef cl_uint cl_profiling_info;

// X(name, value). They become an enumeration unless <CL/cl.h> has them.
#define OCL_CONSTANTS(X)                                    \
    X(CL_SUCCESS, 0)                                        \
    X(CL_DEVICE_NOT_FOUND, -1)                              \
    X(CL_OUT_OF_HOST_MEMORY, -6)                            \
    X(CL_FALSE, 0)                                          \
    X(CL_TRUE, 1)                                           \
    X(CL_PLATFORM_VERSION, 0x0901)                          \
    X(CL_PLATFORM_NAME, 0x0902)                             \
    X(CL_DEVICE_TYPE, 0x1000)                               \
    X(CL_DEVICE_MAX_COMPUTE_UNITS, 0x1002)                  \
    X(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 0x1003)           \
    X(CL_DEVICE_MAX_WORK_GROUP_SIZE, 0x1004)                \
    X(CL_DEVICE_MAX_WORK_ITEM_SIZES, 0x1005)                \
    X(CL_DEVICE_ADDRESS_BITS, 0x100D)                       \
    X(CL_DEVICE_MAX_MEM_ALLOC_SIZE, 0x1010)                 \
    X(CL_DEVICE_MEM_BASE_ADDR_ALIGN, 0x1019)                \
    X(CL_DEVICE_GLOBAL_MEM_SIZE, 0x101F)                    \
    X(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 0x1020)           \
    X(CL_DEVICE_LOCAL_MEM_SIZE, 0x1023)                     \
    X(CL_DEVICE_PROFILING_TIMER_RESOLUTION, 0x1025)         \
    X(CL_DEVICE_AVAILABLE, 0x1027)                          \
    X(CL_DEVICE_COMPILER_AVAILABLE, 0x1028)                 \
    X(CL_DEVICE_NAME, 0x102B)                               \
    X(CL_DRIVER_VERSION, 0x102D)                            \
    X(CL_DEVICE_VERSION, 0x102F)                            \
    X(CL_DEVICE_EXTENSIONS, 0x1030)                         \
    X(CL_DEVICE_HOST_UNIFIED_MEMORY, 0x1035)                \
    X(CL_DEVICE_SVM_CAPABILITIES, 0x1053)                   \
    X(CL_DEVICE_TYPE_CPU, 1 << 1)                           \
    X(CL_DEVICE_TYPE_GPU, 1 << 2)                           \
    X(CL_DEVICE_TYPE_ACCELERATOR, 1 << 3)                   \
    X(CL_DEVICE_SVM_FINE_GRAIN_BUFFER, 1 << 1)              \
    X(CL_DEVICE_SVM_FINE_GRAIN_SYSTEM, 1 << 2)              \
    X(CL_CONTEXT_PLATFORM, 0x1084)                          \
    X(CL_QUEUE_CONTEXT, 0x1090)                             \
    X(CL_QUEUE_DEVICE, 0x1091)                              \
    X(CL_QUEUE_PROPERTIES, 0x1093)                          \
    X(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1 << 0)       \
    X(CL_QUEUE_PROFILING_ENABLE, 1 << 1)                    \
    X(CL_MEM_READ_WRITE, 1 << 0)                            \
    X(CL_MEM_WRITE_ONLY, 1 << 1)                            \
    X(CL_MEM_READ_ONLY, 1 << 2)                             \
    X(CL_MEM_USE_HOST_PTR, 1 << 3)                          \
    X(CL_MEM_ALLOC_HOST_PTR, 1 << 4)                        \
    X(CL_MEM_SVM_FINE_GRAIN_BUFFER, 1 << 10)                \
    X(CL_MEM_OBJECT_BUFFER, 0x10F0)                         \
    X(CL_MEM_TYPE, 0x1100)                                  \
    X(CL_MEM_FLAGS, 0x1101)                                 \
    X(CL_MEM_SIZE, 0x1102)                                  \
    X(CL_MEM_CONTEXT, 0x1106)                               \
    X(CL_MEM_ASSOCIATED_MEMOBJECT, 0x1107)                  \
    X(CL_MEM_OFFSET, 0x1108)                                \
    X(CL_BUFFER_CREATE_TYPE_REGION, 0x1220)                 \
    X(CL_MAP_READ, 1 << 0)                                  \
    X(CL_MAP_WRITE, 1 << 1)                                 \
    X(CL_PROGRAM_BINARY_SIZES, 0x1165)                      \
    X(CL_PROGRAM_BINARIES, 0x1166)                          \
    X(CL_PROGRAM_BUILD_LOG, 0x1183)                         \
    X(CL_KERNEL_FUNCTION_NAME, 0x1190)                      \
    X(CL_KERNEL_NUM_ARGS, 0x1191)                           \
    X(CL_KERNEL_ARG_ADDRESS_QUALIFIER, 0x1196)              \
    X(CL_KERNEL_ARG_TYPE_NAME, 0x1198)                      \
    X(CL_KERNEL_ARG_TYPE_QUALIFIER, 0x1199)                 \
    X(CL_KERNEL_ARG_NAME, 0x119A)                           \
    X(CL_KERNEL_ARG_ADDRESS_GLOBAL, 0x119B)                 \
    X(CL_KERNEL_ARG_ADDRESS_LOCAL, 0x119C)                  \
    X(CL_KERNEL_ARG_ADDRESS_CONSTANT, 0x119D)               \
    X(CL_KERNEL_ARG_ADDRESS_PRIVATE, 0x119E)                \
    X(CL_KERNEL_ARG_TYPE_CONST, 1 << 0)                     \
    X(CL_KERNEL_WORK_GROUP_SIZE, 0x11B0)                    \
    X(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, 0x11B1)            \
    X(CL_KERNEL_LOCAL_MEM_SIZE, 0x11B2)                     \
    X(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, 0x11B3) \
    X(CL_EVENT_COMMAND_EXECUTION_STATUS, 0x11D3)            \
    X(CL_COMPLETE, 0)                                       \
    X(CL_PROFILING_COMMAND_QUEUED, 0x1280)                  \
    X(CL_PROFILING_COMMAND_START, 0x1282)                   \
    X(CL_PROFILING_COMMAND_END, 0x1283)

// From <CL/cl_ext.h>.
#define OCL_EXTENSION_CONSTANTS(X)        \
    X(CL_PLATFORM_NOT_FOUND_KHR, -1001)   \
    X(CL_QUEUE_PRIORITY_KHR, 0x1096)      \
    X(CL_QUEUE_PRIORITY_HIGH_KHR, 1 << 0) \
    X(CL_QUEUE_PRIORITY_LOW_KHR, 1 << 2)

#ifndef CL_VERSION_1_0

typedef struct _cl_buffer_region {
    size_t origin;
    size_t size;
} cl_buffer_region;

enum {
#define OCL_CONSTANT(name, value) name = value,
    OCL_CONSTANTS(OCL_CONSTANT) OCL_EXTENSION_CONSTANTS(OCL_CONSTANT)
#undef OCL_CONSTANT
};

// Too large for an enumeration.
#define CL_DEVICE_TYPE_ALL ((cl_device_type)0xFFFFFFFF)

#endif

// cl_nv_device_attribute_query, which Debian's headers declare in part.
#define OCL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define OCL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV 0x4001
#define OCL_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT_NV 0x4007

#endif
