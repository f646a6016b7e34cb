// A bundle is the only structure of the user that modules read directly, so everything that
// they may dereference is checked here. It has the layout of the headers with which its program was
// compiled, which may be older or newer than the library's.
#include "core/program/bundle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
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

// An array whose elements begin with a size_t of their size, the distance between them: `least`
// bytes, or more of a newer header's.
static weir_status check_array(const struct check *check, const char *field, const void *elements,
                               uint32_t count, size_t least)
{
    size_t size;
    if (count == 0)
        return WEIR_OK;
    if (!elements)
        return refuse(check, field);
    memcpy(&size, elements, sizeof size);
    if (size >= least)
        return WEIR_OK;
    return weir__fail_at(NULL, 0, check->label, WEIR_ERROR_INVALID,
                         "set struct_size to sizeof, or use what weir_kernels generates",
                         "weir_program_create: bundle%s: an element of `%s` has %zu bytes, but "
                         "must have %zu at least",
                         check->part, field, size, least);
}

static weir_status check_image(struct check *check, const struct weir_image *image, uint32_t index)
{
    snprintf(check->part, sizeof check->part, ", image %" PRIu32, index);
    if (!image->format || !image->target)
        return refuse(check, image->format ? "target" : "format");
    return image->data ? WEIR_OK : refuse(check, "data");
}

static weir_status check_parameter(const struct check *check,
                                   const struct weir_parameter *parameter)
{
    if (!parameter->name || !parameter->type_name)
        return refuse(check, parameter->name ? "type_name" : "name");
    if (parameter->kind >= WEIR_PARAMETER_BUFFER && parameter->kind <= WEIR_PARAMETER_LOCAL)
        return WEIR_OK;
    return weir__fail_at(NULL, 0, check->label, WEIR_ERROR_INVALID,
                         "use the library that weir_kernels came with, or a newer one",
                         "weir_program_create: bundle%s: '%s' is of kind %d, which this library "
                         "does not know",
                         check->part, parameter->name, (int)parameter->kind);
}

static weir_status check_kernel(struct check *check, const struct weir_kernel_signature *kernel,
                                uint32_t index)
{
    snprintf(check->part, sizeof check->part, ", kernel %" PRIu32, index);
    if (!kernel->name)
        return refuse(check, "name");
    weir_status status =
        check_array(check, "parameters", kernel->parameters, kernel->parameter_count,
                    WEIR_SIZED_UP_TO(struct weir_parameter, constant));
    for (uint32_t i = 0; i < kernel->parameter_count && status == WEIR_OK; i++) {
        snprintf(check->part, sizeof check->part, ", kernel %" PRIu32 ", parameter %" PRIu32, index,
                 i);
        status = check_parameter(check, weir_signature_parameter(kernel, i));
    }
    return status;
}

weir_status weir__bundle_check(const struct weir_bundle *bundle, const char *label)
{
    struct check check = {.label = label};
    if (!WEIR_HAS(bundle, image_count))
        return weir__fail_at(NULL, 0, label, WEIR_ERROR_INVALID,
                             "set struct_size to sizeof, or use what weir_kernels generates",
                             "weir_program_create: the bundle has a struct_size of %zu",
                             (size_t)bundle->struct_size);
    weir_status status = check_array(&check, "kernels", bundle->kernels, bundle->kernel_count,
                                     WEIR_SIZED_UP_TO(struct weir_kernel_signature, grid_barrier));
    if (status == WEIR_OK)
        status = check_array(&check, "images", bundle->images, bundle->image_count,
                             WEIR_SIZED_UP_TO(struct weir_image, size));
    for (uint32_t i = 0; i < bundle->image_count && status == WEIR_OK; i++)
        status = check_image(&check, weir_bundle_image(bundle, i), i);
    for (uint32_t i = 0; i < bundle->kernel_count && status == WEIR_OK; i++)
        status = check_kernel(&check, weir_bundle_kernel(bundle, i), i);
    return status;
}
