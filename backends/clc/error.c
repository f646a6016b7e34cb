// Names of OpenCL's errors, the status each means, and the remedy where one is
// known. What is not in the table is reported by number.

#include "backends/clc/clc.h"

#define NO_MEMORY WEIR_ERROR_OUT_OF_MEMORY
#define FREE_MEMORY "destroy buffers that are no longer needed, or use smaller ones"
#define REOPEN "a kernel may have left its buffers' bounds; close and open the device again"

static const struct weir_kit_native table[] = {
    {-1, WEIR_ERROR_NO_DEVICE, "CL_DEVICE_NOT_FOUND", NULL},
    {-2, WEIR_ERROR_NO_DEVICE, "CL_DEVICE_NOT_AVAILABLE", "another program may hold the device"},
    {-3, WEIR_ERROR_UNSUPPORTED, "CL_COMPILER_NOT_AVAILABLE",
     "choose a device whose driver brings a compiler"},
    {-4, NO_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE", FREE_MEMORY},
    {-5, WEIR_ERROR_DEVICE, "CL_OUT_OF_RESOURCES",
     "the device is out of memory or of registers, or a kernel before this one failed"},
    {-6, NO_MEMORY, "CL_OUT_OF_HOST_MEMORY", FREE_MEMORY},
    {-7, WEIR_ERROR_DEVICE, "CL_PROFILING_INFO_NOT_AVAILABLE", NULL},
    {-8, WEIR_ERROR_INVALID, "CL_MEM_COPY_OVERLAP", NULL},
    {-9, WEIR_ERROR_DEVICE, "CL_IMAGE_FORMAT_MISMATCH", NULL},
    {-10, WEIR_ERROR_UNSUPPORTED, "CL_IMAGE_FORMAT_NOT_SUPPORTED", NULL},
    {-11, WEIR_ERROR_BUILD, "CL_BUILD_PROGRAM_FAILURE", NULL},
    {-12, WEIR_ERROR_DEVICE, "CL_MAP_FAILURE", NULL},
    {-13, WEIR_ERROR_INVALID, "CL_MISALIGNED_SUB_BUFFER_OFFSET",
     "use offsets that are multiples of limits.argument_alignment_bytes"},
    {-14, WEIR_ERROR_DEVICE, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", REOPEN},
    {-15, WEIR_ERROR_BUILD, "CL_COMPILE_PROGRAM_FAILURE", NULL},
    {-16, WEIR_ERROR_UNSUPPORTED, "CL_LINKER_NOT_AVAILABLE", NULL},
    {-17, WEIR_ERROR_BUILD, "CL_LINK_PROGRAM_FAILURE", NULL},
    {-18, WEIR_ERROR_DEVICE, "CL_DEVICE_PARTITION_FAILED", NULL},
    {-19, WEIR_ERROR_UNSUPPORTED, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
     "this driver keeps no signatures of such a program; give every kernel a parameter, or build "
     "it "
     "with weir_kernels"},
    {-30, WEIR_ERROR_DEVICE, "CL_INVALID_VALUE", NULL},
    {-31, WEIR_ERROR_DEVICE, "CL_INVALID_DEVICE_TYPE", NULL},
    {-32, WEIR_ERROR_DEVICE, "CL_INVALID_PLATFORM", NULL},
    {-33, WEIR_ERROR_DEVICE, "CL_INVALID_DEVICE", NULL},
    {-34, WEIR_ERROR_DEVICE, "CL_INVALID_CONTEXT", REOPEN},
    {-35, WEIR_ERROR_UNSUPPORTED, "CL_INVALID_QUEUE_PROPERTIES", NULL},
    {-36, WEIR_ERROR_DEVICE, "CL_INVALID_COMMAND_QUEUE", REOPEN},
    {-37, WEIR_ERROR_DEVICE, "CL_INVALID_HOST_PTR", NULL},
    {-38, WEIR_ERROR_DEVICE, "CL_INVALID_MEM_OBJECT", NULL},
    {-42, WEIR_ERROR_DEVICE, "CL_INVALID_BINARY", NULL},
    {-43, WEIR_ERROR_BUILD, "CL_INVALID_BUILD_OPTIONS",
     "check the program's options and build_options in [opencl]"},
    {-44, WEIR_ERROR_DEVICE, "CL_INVALID_PROGRAM", NULL},
    {-45, WEIR_ERROR_DEVICE, "CL_INVALID_PROGRAM_EXECUTABLE", NULL},
    {-46, WEIR_ERROR_NOT_FOUND, "CL_INVALID_KERNEL_NAME", NULL},
    {-47, WEIR_ERROR_DEVICE, "CL_INVALID_KERNEL_DEFINITION", NULL},
    {-48, WEIR_ERROR_DEVICE, "CL_INVALID_KERNEL", NULL},
    {-49, WEIR_ERROR_DEVICE, "CL_INVALID_ARG_INDEX", NULL},
    {-50, WEIR_ERROR_DEVICE, "CL_INVALID_ARG_VALUE", NULL},
    {-51, WEIR_ERROR_DEVICE, "CL_INVALID_ARG_SIZE",
     "the argument's size is not that of the kernel's parameter"},
    {-52, WEIR_ERROR_DEVICE, "CL_INVALID_KERNEL_ARGS", NULL},
    {-53, WEIR_ERROR_DEVICE, "CL_INVALID_WORK_DIMENSION", NULL},
    {-54, WEIR_ERROR_INVALID, "CL_INVALID_WORK_GROUP_SIZE",
     "use the block that the kernel requires, of at most its max_block_items"},
    {-55, WEIR_ERROR_INVALID, "CL_INVALID_WORK_ITEM_SIZE", "use a block within limits.max_block"},
    {-56, WEIR_ERROR_DEVICE, "CL_INVALID_GLOBAL_OFFSET", NULL},
    {-57, WEIR_ERROR_DEVICE, "CL_INVALID_EVENT_WAIT_LIST", NULL},
    {-58, WEIR_ERROR_DEVICE, "CL_INVALID_EVENT", NULL},
    {-59, WEIR_ERROR_UNSUPPORTED, "CL_INVALID_OPERATION", NULL},
    {-61, NO_MEMORY, "CL_INVALID_BUFFER_SIZE", "stay within limits.max_buffer_bytes"},
    {-63, WEIR_ERROR_INVALID, "CL_INVALID_GLOBAL_WORK_SIZE", "use a grid within limits.max_grid"},
    {-64, WEIR_ERROR_UNSUPPORTED, "CL_INVALID_PROPERTY", NULL},
    {-66, WEIR_ERROR_BUILD, "CL_INVALID_COMPILER_OPTIONS",
     "check the program's options and build_options in [opencl]"},
    {-1001, WEIR_ERROR_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR", NULL},
    // NVIDIA's, for a kernel that reads or writes where it must not.
    {-9999, WEIR_ERROR_DEVICE_LOST, "CL_ILLEGAL_ACCESS_NV", REOPEN},
};

static const struct weir_kit_natives natives = {table, sizeof table / sizeof *table,
                                                "unknown OpenCL error"};

const char *clc_native_name(cl_int code)
{
    return weir_kit_native_name(&natives, code);
}

weir_status clc_native_error(const struct weir_host *host, const char *call, cl_int code,
                             const char *format, ...)
{
    struct weir_error detail;
    va_list arguments;
    va_start(arguments, format);
    weir_kit_native_describe(&natives, &detail, call, code, NULL, format, arguments);
    va_end(arguments);
    return host->error(&detail, sizeof detail);
}
