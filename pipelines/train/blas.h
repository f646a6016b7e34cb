// cuBLAS, opened at run time, for products on queues of a CUDA device.
#ifndef WEIR_PIPELINES_TRAIN_BLAS_H
#define WEIR_PIPELINES_TRAIN_BLAS_H

#include <weir/weir.h>

struct train_blas;

// Opens the library at `path`, or the newest one that the dynamic linker finds, and makes a handle
// for the device.
//
// Errors: WEIR_ERROR_UNSUPPORTED if the device is none of CUDA's, or there is no such library or it
// lacks a function; WEIR_ERROR_DEVICE if it refuses the device.
weir_status train_blas_open(weir_device *device, const char *path, struct train_blas **out_blas);

// Waits for nothing but its own work: the queues that used it must be idle.
void train_blas_close(struct train_blas **blas);

// c = a b, or c + a b with `add`, row-major: a is m x k, b is k x n, c is m x n float32. Either
// factor may be stored as its transpose. Addresses are the device's.
struct train_blas_product {
    struct train_blas *blas;
    uint64_t a, b, c;
    uint32_t m, n, k;
    bool turned_a, turned_b, add;
    bool bf16;   // both factors; else they are float32
    bool narrow; // c is bf16 too, which is for callers that add no more to it
    bool tensor; // of float32: on tensor cores, which round the factors to TF32 first
};

// A native function (weir_queue_native()); `user` is a struct train_blas_product.
weir_status train_blas_multiply(const struct weir_native_queue *native, void *user);

#endif
