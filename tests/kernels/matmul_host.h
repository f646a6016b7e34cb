// kernels/matmul/matmul.cu on the host: a thread for each of the GPU's, one block after the other. What
// the GPU adds to C++ is written out as PTX defines it, so its fragments, copies and barriers are
// those of the kernel; the thread sanitizer sees its races.
#ifndef WEIR_TESTS_KERNELS_MATMUL_HOST_H
#define WEIR_TESTS_KERNELS_MATMUL_HOST_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// c = a b. A copy to shared memory is done when it begins if `early`, else when it is waited for: a GPU
// does it in between. Returns how often an instruction was used in a way that PTX does not allow.
unsigned matmul_on_host(const float *a, const float *b, float *c, unsigned m, unsigned n,
                        unsigned k, bool early);

#ifdef __cplusplus
}
#endif

#endif
