// Programs and kernels. Kernels do nothing, so every image of a bundle is accepted, and of source
// only the signatures of its kernels are read. A real backend chooses an image for the device, or
// compiles the source, and gets the kernel's figures from the driver. Everything slow happens here,
// and nothing of it at the first launch.
#include "backends/null/null.h"

weir_status null_program_create(const struct weir_link *link, weir_device *device,
                                weir_program *program, const struct weir_program_params *params,
                                void **out_data)
{
    *out_data = NULL;
    if (!params->bundle) {
        struct weir_kit_signatures *signatures;
        weir_status status = weir_kit_signatures_read(link->host, params->source, &signatures);
        *out_data = signatures;
        return status;
    }
    if (params->bundle->image_count == 0)
        return weir_host_fail(link->host, WEIR_ERROR_UNSUPPORTED,
                              "build the bundle with at least one image",
                              "bundle '%s' holds no image", params->bundle->name);
    return WEIR_OK;
}

void null_program_destroy(const struct weir_link *link, weir_program *program)
{
    link->host->release(null_signatures_of(link, program));
}

weir_status null_program_signatures(const struct weir_link *link, weir_program *program,
                                    const struct weir_kernel_signature **out_signatures,
                                    uint32_t *out_count)
{
    const struct weir_kit_signatures *signatures = null_signatures_of(link, program);
    *out_signatures = signatures->kernels;
    *out_count = signatures->kernel_count;
    return WEIR_OK;
}

weir_status null_kernel_create(const struct weir_link *link, weir_program *program,
                               weir_kernel *kernel, const struct weir_kernel_signature *signature,
                               struct weir_kernel_info *info, void **out_data)
{
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
}
