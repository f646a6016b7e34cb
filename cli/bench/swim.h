// What the two files of `weir bench swim` share: the work of the puzzle "Swimming in
// streams", and the ways of doing it.
//
// Three kinds of work, each `side` x `side` floats at a time: products of matrices;
// copies from the device to the host ("down"); copies from the host to the device
// ("up"). The host's side of a copy is a pinned buffer, copied in the queue, or plain
// memory, through weir_download() and weir_upload(), which return when it is done.
#ifndef WEIR_CLI_BENCH_SWIM_H
#define WEIR_CLI_BENCH_SWIM_H

#include "cli/bench/bench.h"
#include "pipelines/train/product.h"

enum {
    SWIM_RING = 8, // matrices that the products use in turn
    SWIM_PRODUCTS_MAX = 1000
};

enum swim_part {
    SWIM_PRODUCTS = 1,
    SWIM_DOWN = 2,
    SWIM_UP = 4,
    SWIM_ALL = 7
};

// The code that multiplies.
enum swim_product {
    SWIM_PORTABLE, // kernels/matmul
    SWIM_TWIN,     // its twin in CUDA C++, on tensor cores
    SWIM_BLAS,     // cuBLAS
    SWIM_TENSOR    // cuBLAS on tensor cores
};

// One way of doing some of the work.
struct swim_way {
    const char *key;
    const char *name;
    unsigned parts;
    bool pageable;
    bool spread; // a queue for each part, else one for all
    enum swim_product product;
};

// Products in one queue, and a light kernel over as many matrices: after them in the same
// queue, beside them in another queue, or in one of the highest priority.
enum swim_beside {
    SWIM_AFTER,
    SWIM_BESIDE,
    SWIM_FIRST
};

struct swim_times {
    double all_ms;   // from the first submit to the end of all work
    double host_ms;  // until the last call of the way returned
    double light_ms; // until the light kernels were done
};

struct swim {
    // Set by the command line.
    uint64_t side;
    uint64_t copies;
    uint64_t products; // 0: as many as last as long as the copies one way
    bool portable;     // no kernel or library that only one backend has

    size_t matrix_bytes;
    size_t all_bytes;      // of the copies, one way
    weir_queue *queues[3]; // products, down, up
    weir_queue *first;     // of the highest priority; NULL where there are none
    weir_program *program;
    weir_program *twin_program; // NULL where there is no CUDA
    weir_program *light_program;
    weir_kernel *matmul;
    weir_kernel *twin;
    weir_kernel *light;
    weir_buffer *factors; // SWIM_RING matrices
    weir_buffer *results; // and their squares
    weir_buffer *scaled;  // what the light kernel writes
    weir_buffer *down_from, *up_to;
    weir_buffer *down_pinned, *up_pinned;
    unsigned char *down_plain, *up_plain;
    void *read_back;                                        // for checks
    struct train_blas *blas;                                // NULL where there is no cuBLAS
    struct train_blas_product blas_products[2 * SWIM_RING]; // those on tensor cores last
};

// Makes queues, kernels and memory, and fills what is read.
void swim_open(struct swim *swim);

// Does the work once.
struct swim_times swim_run(struct swim *swim, const struct swim_way *way);
struct swim_times swim_run_beside(struct swim *swim, enum swim_beside beside,
                                  enum swim_product product);

// Clears what a way writes, runs the way, and compares every byte that it copied, and
// samples of its products, with their expected values.
void swim_check(struct swim *swim, const struct swim_way *way);
void swim_check_beside(struct swim *swim, enum swim_beside beside, enum swim_product product);

#endif
