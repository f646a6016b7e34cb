// What kernels do with their pointers and images: what the driver tells of arguments, `const` for one.
#include <stdlib.h>
#include <string.h>

#include "layers/opencl/layer.h"

void access_table_free(struct access_table *table)
{
    free(table);
}

static bool ask(cl_kernel kernel, cl_uint index, cl_kernel_arg_info name, void *value, size_t size)
{
    return layer.driver->clGetKernelArgInfo(kernel, index, name, size, value, NULL) == CL_SUCCESS;
}

static struct parameter parameter_of(cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_address_qualifier memory = 0;
    cl_kernel_arg_access_qualifier image = CL_KERNEL_ARG_ACCESS_NONE;
    cl_kernel_arg_type_qualifier type = 0;
    if (!ask(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, &memory, sizeof memory))
        return (struct parameter){0, false};
    (void)ask(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, &image, sizeof image);
    (void)ask(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, &type, sizeof type);
    if (image == CL_KERNEL_ARG_ACCESS_READ_ONLY)
        return (struct parameter){WEIR_ACCESS_READ, true};
    if (image == CL_KERNEL_ARG_ACCESS_WRITE_ONLY)
        return (struct parameter){WEIR_ACCESS_WRITE, true};
    if (memory == CL_KERNEL_ARG_ADDRESS_CONSTANT || type & CL_KERNEL_ARG_TYPE_CONST)
        return (struct parameter){WEIR_ACCESS_READ, true};
    if (memory == CL_KERNEL_ARG_ADDRESS_GLOBAL || image != CL_KERNEL_ARG_ACCESS_NONE)
        return (struct parameter){0, false};
    return (struct parameter){0, true};
}

void access_of_kernel(struct kernel *kernel, cl_kernel handle, struct program *program)
{
    char name[256] = "kernel";
    (void)program;
    layer.driver->clGetKernelInfo(handle, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    kernel->name = place_keep(name);
    for (uint32_t i = 0; i < kernel->count; i++)
        kernel->parameters[i] = parameter_of(handle, i);
}
