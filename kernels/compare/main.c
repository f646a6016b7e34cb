// The program of weir_kernels_test, which defines the names of the bundles and of their headers.

#include "kernels/compare/compare.h"

#include WEIR_TWIN_HEADER
#include WEIR_OPENCL_HEADER

int main(int argc, char **argv)
{
    const struct compare_params params = {.twin = &WEIR_TWIN,
                                          .opencl = &WEIR_OPENCL,
                                          .cases = argc == 2 ? argv[1] : NULL};
    // Drivers keep what they compile, and Bazel's own HOME need not be writable.
    if (getenv("TEST_TMPDIR"))
        setenv("HOME", getenv("TEST_TMPDIR"), 1);
    if (params.cases)
        return compare_kernels(&params);
    fprintf(stderr, "usage: %s CASES.json\n", argv[0]);
    return 2;
}
