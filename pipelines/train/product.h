// One product of a pass: prepared when the model is created, submitted in each step. And the sums of a
// matrix's columns, which biases take.
#ifndef WEIR_PIPELINES_TRAIN_PRODUCT_H
#define WEIR_PIPELINES_TRAIN_PRODUCT_H

#include <weir/weir.h>

#include "patterns/shared.h"

// cuBLAS, opened at run time, for products on queues of a CUDA device.

struct train_blas;

// Opens the library at `path`, or the newest one that the dynamic linker finds, and makes a handle
// for the device.
//
// Errors: WEIR_ERROR_UNSUPPORTED if the device is none of CUDA's, or there is no such library or it
// lacks a function; WEIR_ERROR_DEVICE if it refuses the device.
weir_status train_blas_open(weir_device *device, const char *path, struct train_blas **out_blas);

// Waits for nothing but its own work: the queues that used it must be idle.
void train_blas_close(struct train_blas **blas);

// Bytes of a buffer.
struct train_range {
    weir_buffer *buffer;
    size_t offset;
    size_t size;
};

// c = a b, or c + a b with `add`, row-major: a is m x k, b is k x n, c is m x n float32. Either
// factor may be stored as its transpose.
struct train_product {
    struct train_range a, b, c;
    uint32_t m, n, k;
    bool turned_a, turned_b; // stored as the transpose
    bool add;                // to what is in c
    // With cuBLAS.
    bool narrow; // c is bf16, which is for callers that add no more to it
    bool tensor; // of float32: on tensor cores, which round the factors to TF32 first
    const struct train_engine *engine;
    uint64_t at_a, at_b, at_c; // the device's addresses
    // Without it.
    uint32_t span, parts; // of the depth
};

// The native function of a product that was prepared (weir_queue_native()); `user` is the product.
weir_status train_blas_multiply(const struct weir_native_queue *native, void *user);

// What products are computed with.
struct train_engine {
    weir_kernel *product;
    weir_kernel *sum_parts;
    weir_kernel *column_sums;
    weir_buffer *parts;      // for products and sums in several parts
    struct train_blas *blas; // NULL: by kernels
    bool bf16;
};

// Chooses the parts. Their bytes are returned; 0 for one part.
uint64_t train_product_divide(struct train_product *product);

// Looks up the addresses that a native call needs; does nothing without cuBLAS. Until then, and
// after the ranges were changed, the product must not be submitted.
weir_status train_product_prepare(const struct train_engine *engine, struct train_product *product);

// Submits it. `product` must stay as it is until the queue has done it.
weir_status train_product_submit(const struct train_engine *engine, weir_queue *queue,
                                 struct train_product *product);

// The sums of the columns of `from`, rows x columns elements, in `to`, or added to what is there.
struct train_columns {
    struct train_range from, to;
    uint32_t rows, columns;
    bool add;
};

// The bytes of their parts; 0 for one part.
uint64_t train_columns_divide(uint32_t rows, uint32_t columns);

weir_status train_columns_submit(const struct train_engine *engine, weir_queue *queue,
                                 const struct train_columns *columns);

// How the files of this folder report what they refuse: as the patterns do.

// Fails with WEIR_ERROR_IO and "PATH: SENTENCE".
weir_status train_fail_file(const char *path, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

#endif
