// A bundle is the only structure of the user that modules read directly, so everything that
// they may dereference is checked here.
#include "core/program/bundle.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/support/error.h"

struct check {
    const char *label;
    char part[64]; // of the bundle, after its name; "": itself
};

static weir_status refuse(const struct check *check, const char *field)
{
    return weir__fail_at(NULL, 0, check->label, WEIR_ERROR_INVALID,
                         "fill it in, or use what weir_kernels generates",
                         "weir_program_create: bundle%s: `%s` is NULL", check->part, field);
}

static weir_status check_image(struct check *check, const struct weir_image *image, uint32_t index)
{
    snprintf(check->part, sizeof check->part, ", image %" PRIu32, index);
    return image->data ? WEIR_OK : refuse(check, "data");
}

static weir_status check_kernel(struct check *check, const struct weir_kernel_signature *kernel,
                                uint32_t index)
{
    snprintf(check->part, sizeof check->part, ", kernel %" PRIu32, index);
    if (!kernel->name)
        return refuse(check, "name");
    if (!kernel->parameters && kernel->parameter_count > 0)
        return refuse(check, "parameters");
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const struct weir_parameter *parameter = &kernel->parameters[i];
        snprintf(check->part, sizeof check->part, ", kernel %" PRIu32 ", parameter %" PRIu32, index,
                 i);
        if (!parameter->name || !parameter->type_name)
            return refuse(check, parameter->name ? "type_name" : "name");
    }
    return WEIR_OK;
}

weir_status weir__bundle_check(const struct weir_bundle *bundle, const char *label)
{
    struct check check = {.label = label};
    weir_status status = WEIR_OK;
    if (!bundle->kernels && bundle->kernel_count > 0)
        return refuse(&check, "kernels");
    if (!bundle->images && bundle->image_count > 0)
        return refuse(&check, "images");
    for (uint32_t i = 0; i < bundle->image_count && status == WEIR_OK; i++)
        status = check_image(&check, &bundle->images[i], i);
    for (uint32_t i = 0; i < bundle->kernel_count && status == WEIR_OK; i++)
        status = check_kernel(&check, &bundle->kernels[i], i);
    return status;
}
