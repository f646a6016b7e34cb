// Programs and kernels. Kernels do nothing, so every image of a bundle is accepted. A real backend
// chooses an image for the device, loads it, and gets the kernel's figures from the driver.
// Everything slow happens here, and nothing of it at the first launch.
#include "tests/abi/frozen/null/null.h"

weir_status null_program_create(const struct weir_link *link, weir_device *device,
                                weir_program *program, const struct weir_program_params *params,
                                void **out_data)
{
    (void)device;
    (void)program;
    *out_data = NULL;
    if (!params->bundle)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "give a bundle, which the build rule weir_kernels makes, or choose "
                              "another backend",
                              "the null backend has no compiler for source given at run time");
    if (params->bundle->image_count == 0)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "build the bundle with at least one image",
                              "bundle '%s' holds no image", params->bundle->name);
    return WEIR_OK;
}

void null_program_destroy(const struct weir_link *link, weir_program *program)
{
    (void)link;
    (void)program;
}

weir_status null_kernel_create(const struct weir_link *link, weir_program *program,
                               weir_kernel *kernel, const struct weir_kernel_signature *signature,
                               struct weir_kernel_info *info, void **out_data)
{
    (void)link;
    (void)program;
    (void)kernel;
    (void)signature;
    const struct weir_kernel_info mine = {
        .struct_size = sizeof mine,
        .max_block_items = 1024,
        .preferred_block_items = 1,
    };
    WEIR_WRITE(info, &mine);
    *out_data = NULL;
    return WEIR_OK;
}

void null_kernel_destroy(const struct weir_link *link, weir_kernel *kernel)
{
    (void)link;
    (void)kernel;
}
