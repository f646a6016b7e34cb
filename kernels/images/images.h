// Images of OpenCL C over buffers: a source that names them, as one that has none.
//
//     __kernel void k(read_only image2d_t in)  { ... read_imagef(in, ...)
//
// becomes, with the functions of images.cl before it,
//
//     __kernel void k(const __global uint4 *restrict in__pixels, weir_image_layout in__layout)
//     { image2d_t in = WEIR__IMAGE(in); ... read_imagef(in, ...)
//
// so that every device runs the same arithmetic, and a launch passes a range of a buffer and a value. A sampler is
// a uint. Lines stay where they are.
//
// The text is that of a user, and need not be valid OpenCL C: it is passed once, and compilers tell what is wrong.
//
// Threads: safe.
#ifndef WEIR_KERNELS_IMAGES_IMAGES_H
#define WEIR_KERNELS_IMAGES_IMAGES_H

#include <stdbool.h>

#include "base/table.h"

// Whether the text names a type of images or samplers.
bool weir_images_are_named(const char *text);

// Adds the functions and the text to `out`, whose `failed` says if memory ran out. False: macros may hide parameters
// or samplers, which are found once the text is preprocessed; what could be seen is changed all the same.
bool weir_images_rewrite(const char *text, struct weir_long_text *out);

#endif
