// Names of OpenCL's errors, the status each means, and the remedy where one is
// known. What is not in the table is reported by number.
#include <stdarg.h>
#include <stdio.h>

#include "backends/opencl/opencl.h"

struct native {
    cl_int code;
    const char *name;
    weir_status status;
    const char *remedy;
};

#define NO_MEMORY WEIR_ERROR_OUT_OF_MEMORY
#define FREE_MEMORY "destroy buffers that are no longer needed, or use smaller ones"
#define REOPEN "a kernel may have left its buffers' bounds; close and open the device again"

static const struct native natives[] = {
    {-1, "CL_DEVICE_NOT_FOUND", WEIR_ERROR_NO_DEVICE, ""},
    {-2, "CL_DEVICE_NOT_AVAILABLE", WEIR_ERROR_NO_DEVICE, "another program may hold the device"},
    {-3, "CL_COMPILER_NOT_AVAILABLE", WEIR_ERROR_UNSUPPORTED,
     "choose a device whose driver brings a compiler"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE", NO_MEMORY, FREE_MEMORY},
    {-5, "CL_OUT_OF_RESOURCES", WEIR_ERROR_DEVICE,
     "the device is out of memory or of registers, or a kernel before this one failed"},
    {-6, "CL_OUT_OF_HOST_MEMORY", NO_MEMORY, FREE_MEMORY},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE", WEIR_ERROR_DEVICE, ""},
    {-8, "CL_MEM_COPY_OVERLAP", WEIR_ERROR_INVALID, ""},
    {-9, "CL_IMAGE_FORMAT_MISMATCH", WEIR_ERROR_DEVICE, ""},
    {-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED", WEIR_ERROR_UNSUPPORTED, ""},
    {-11, "CL_BUILD_PROGRAM_FAILURE", WEIR_ERROR_BUILD, ""},
    {-12, "CL_MAP_FAILURE", WEIR_ERROR_DEVICE, ""},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET", WEIR_ERROR_INVALID,
     "use offsets that are multiples of limits.argument_alignment_bytes"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST", WEIR_ERROR_DEVICE, REOPEN},
    {-15, "CL_COMPILE_PROGRAM_FAILURE", WEIR_ERROR_BUILD, ""},
    {-16, "CL_LINKER_NOT_AVAILABLE", WEIR_ERROR_UNSUPPORTED, ""},
    {-17, "CL_LINK_PROGRAM_FAILURE", WEIR_ERROR_BUILD, ""},
    {-18, "CL_DEVICE_PARTITION_FAILED", WEIR_ERROR_DEVICE, ""},
    {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", WEIR_ERROR_UNSUPPORTED,
     "this driver keeps no signatures of such a program; give every kernel a parameter, or build "
     "it "
     "with weir_kernels"},
    {-30, "CL_INVALID_VALUE", WEIR_ERROR_DEVICE, ""},
    {-31, "CL_INVALID_DEVICE_TYPE", WEIR_ERROR_DEVICE, ""},
    {-32, "CL_INVALID_PLATFORM", WEIR_ERROR_DEVICE, ""},
    {-33, "CL_INVALID_DEVICE", WEIR_ERROR_DEVICE, ""},
    {-34, "CL_INVALID_CONTEXT", WEIR_ERROR_DEVICE, REOPEN},
    {-35, "CL_INVALID_QUEUE_PROPERTIES", WEIR_ERROR_UNSUPPORTED, ""},
    {-36, "CL_INVALID_COMMAND_QUEUE", WEIR_ERROR_DEVICE, REOPEN},
    {-37, "CL_INVALID_HOST_PTR", WEIR_ERROR_DEVICE, ""},
    {-38, "CL_INVALID_MEM_OBJECT", WEIR_ERROR_DEVICE, ""},
    {-42, "CL_INVALID_BINARY", WEIR_ERROR_DEVICE, ""},
    {-43, "CL_INVALID_BUILD_OPTIONS", WEIR_ERROR_BUILD,
     "check the program's options and build_options in [opencl]"},
    {-44, "CL_INVALID_PROGRAM", WEIR_ERROR_DEVICE, ""},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE", WEIR_ERROR_DEVICE, ""},
    {-46, "CL_INVALID_KERNEL_NAME", WEIR_ERROR_NOT_FOUND, ""},
    {-47, "CL_INVALID_KERNEL_DEFINITION", WEIR_ERROR_DEVICE, ""},
    {-48, "CL_INVALID_KERNEL", WEIR_ERROR_DEVICE, ""},
    {-49, "CL_INVALID_ARG_INDEX", WEIR_ERROR_DEVICE, ""},
    {-50, "CL_INVALID_ARG_VALUE", WEIR_ERROR_DEVICE, ""},
    {-51, "CL_INVALID_ARG_SIZE", WEIR_ERROR_DEVICE,
     "the argument's size is not that of the kernel's parameter"},
    {-52, "CL_INVALID_KERNEL_ARGS", WEIR_ERROR_DEVICE, ""},
    {-53, "CL_INVALID_WORK_DIMENSION", WEIR_ERROR_DEVICE, ""},
    {-54, "CL_INVALID_WORK_GROUP_SIZE", WEIR_ERROR_INVALID,
     "use the block that the kernel requires, of at most its max_block_items"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE", WEIR_ERROR_INVALID, "use a block within limits.max_block"},
    {-56, "CL_INVALID_GLOBAL_OFFSET", WEIR_ERROR_DEVICE, ""},
    {-57, "CL_INVALID_EVENT_WAIT_LIST", WEIR_ERROR_DEVICE, ""},
    {-58, "CL_INVALID_EVENT", WEIR_ERROR_DEVICE, ""},
    {-59, "CL_INVALID_OPERATION", WEIR_ERROR_UNSUPPORTED, ""},
    {-61, "CL_INVALID_BUFFER_SIZE", NO_MEMORY, "stay within limits.max_buffer_bytes"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE", WEIR_ERROR_INVALID, "use a grid within limits.max_grid"},
    {-64, "CL_INVALID_PROPERTY", WEIR_ERROR_UNSUPPORTED, ""},
    {-66, "CL_INVALID_COMPILER_OPTIONS", WEIR_ERROR_BUILD,
     "check the program's options and build_options in [opencl]"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", WEIR_ERROR_NO_DEVICE, ""},
    // NVIDIA's, for a kernel that reads or writes where it must not.
    {-9999, "CL_ILLEGAL_ACCESS_NV", WEIR_ERROR_DEVICE_LOST, REOPEN},
};

static const struct native *find(cl_int code)
{
    for (size_t i = 0; i < sizeof natives / sizeof *natives; i++) {
        if (natives[i].code == code)
            return &natives[i];
    }
    return NULL;
}

const char *ocl_native_name(cl_int code)
{
    const struct native *native = find(code);
    return native ? native->name : "unknown OpenCL error";
}

weir_status ocl_native_error(const struct ocl_module *module, const char *call, cl_int code,
                             const char *format, ...)
{
    const struct native *native = find(code);
    struct weir_error detail = {
        .status = native ? native->status : WEIR_ERROR_DEVICE,
        .native_code = code,
    };
    snprintf(detail.native_call, sizeof detail.native_call, "%s", call);
    snprintf(detail.native_name, sizeof detail.native_name, "%s", ocl_native_name(code));
    snprintf(detail.remedy, sizeof detail.remedy, "%s", native ? native->remedy : "");

    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail.message, sizeof detail.message, format, arguments);
    va_end(arguments);
    return module->host->error(&detail);
}
