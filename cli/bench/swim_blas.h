// Products by cuBLAS on a queue of Weir's, through <weir/interop.h>: with the ordinary
// units, and with tensor cores, which round the factors to TF32 first.
#ifndef WEIR_CLI_BENCH_SWIM_BLAS_H
#define WEIR_CLI_BENCH_SWIM_BLAS_H

#include <weir/weir.h>

typedef struct swim_blas swim_blas;

// Opens cuBLAS for products of `side` x `side` floats: `count` squares of matrices that
// are stored one after the other in `factors`, into `results`. `queue` must be idle.
//
// Ownership: the caller's, until swim_blas_close() with an idle queue.
// Errors: NULL, with a sentence in `message`; an empty one where the device is not CUDA's,
// so that no cuBLAS is expected.
swim_blas *swim_blas_open(weir_queue *queue, weir_buffer *factors, weir_buffer *results,
                          size_t side, size_t count, char *message, size_t message_size);
void swim_blas_close(swim_blas **blas, weir_queue *queue);

// Submits product `index`.
weir_status swim_blas_multiply(swim_blas *blas, weir_queue *queue, size_t index, bool tensor);

#endif
