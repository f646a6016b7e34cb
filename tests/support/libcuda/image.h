// An image for the tests' libcuda, in which an image only names kernels.
#ifndef WEIR_TESTS_SUPPORT_LIBCUDA_IMAGE_H
#define WEIR_TESTS_SUPPORT_LIBCUDA_IMAGE_H

#include <weir/program.h>

// A cubin with every kernel of //kernels/conformance. Static data. For one thread.
const struct weir_image *weir_test_image(void);

#endif
