// An image for the tests' libcuda, in which an image only names kernels.
#ifndef WEIR_TESTS_SUPPORT_LIBCUDA_IMAGE_H
#define WEIR_TESTS_SUPPORT_LIBCUDA_IMAGE_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/program.h>

#include "kernels/conformance/conformance.h"

static inline size_t weir_test_write_names(char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "fake image:");
    for (uint32_t i = 0; i < conformance_kernels.kernel_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, " %s",
                                 weir_bundle_kernel(&conformance_kernels, i)->name);
    if (used >= size)
        abort(); // the names need more room
    return used;
}

// A cubin with every kernel of //kernels/conformance. Static data. For one thread.
static inline const struct weir_image *weir_test_image(void)
{
    static char text[4096];
    static struct weir_image image = {sizeof(struct weir_image), WEIR_IMAGE_CUBIN, "sm_90", text,
                                      0};
    if (image.size == 0)
        image.size = weir_test_write_names(text, sizeof text);
    return &image;
}

#endif
