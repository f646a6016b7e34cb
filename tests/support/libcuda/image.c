#include "tests/support/libcuda/image.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/conformance/conformance.h"

static size_t write_names(char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "fake image:");
    for (uint32_t i = 0; i < conformance_kernels.kernel_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, " %s",
                                 weir_bundle_kernel(&conformance_kernels, i)->name);
    if (used >= size)
        abort(); // the names need more room
    return used;
}

const struct weir_image *weir_test_image(void)
{
    static char text[4096];
    static struct weir_image image = {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90", text,
                                      0};
    if (image.size == 0)
        image.size = write_names(text, sizeof text);
    return &image;
}
