// What the files of the job `ddp` share: a step of data-parallel training whose layers are all
// alike, as products of matrices.
//
// Of each layer the forward pass computes Y = X W, the backward pass dW = X^T dY and dX = dY W^T; X is
// batch x width and W width x width. The last layer's dW comes first, and so does its bucket.
#ifndef WEIR_TESTS_BENCH_JOBS_DDP_H
#define WEIR_TESTS_BENCH_JOBS_DDP_H

#include "cli/bench/comm.h"
#include "patterns/buckets.h"
#include "pipelines/train/product.h"

enum {
    DDP_BUCKETS_MAX = BENCH_LIST_MAX,
    DDP_LAYERS_MAX = 1024
};

// The ways of one step.
enum ddp_way {
    DDP_COMPUTE,     // no reduction
    DDP_COMMUNICATE, // the reductions alone
    DDP_SERIAL,      // the reductions after the backward pass
    DDP_OVERLAPPED,  // beside it
    DDP_RAW,         // the same without Weir
};

// For people: "overlapped".
const char *ddp_way_name(enum ddp_way way);

struct ddp {
    // The command line. 0: by the device.
    const char *config;
    const char *cublas; // the file; NULL: the linker's
    const char *nccl;   // the same, for the raw step
    uint64_t layers;
    uint64_t width;

    struct bench_ranks all; // one of this process
    struct bench_rank *place;
    weir_program *program;
    struct train_engine engine;
    weir_buffer *weights;     // of all layers
    weir_buffer *activations; // of the input and all layers
    weir_buffer *gradients;   // two of dY, in turn
    weir_buckets *buckets[DDP_BUCKETS_MAX];
    struct train_product *forward; // of each layer, and after them:
    struct train_product *back;    // dX; unused of the first layer
    struct train_product *weight;  // dW, with the buckets of each index: [index * layers + layer]
    struct bench_list batches, caps, element;
    bool bf16;
    bool blas;           // products are cuBLAS's
    bool computes;       // products give numbers
    size_t element_size; // of all matrices
    size_t batch_max;
    size_t batch;        // of the products as they are
    struct ddp_raw *raw; // NULL: there is none
};

// Makes memory, products and buckets for the largest batch, and fills what is read.
void ddp_open(struct ddp *ddp);

// Prepares the products for a batch. The queues are idle.
void ddp_set_batch(struct ddp *ddp, size_t batch);

// The milliseconds of one step, by the slowest rank, with the buckets of that index.
double ddp_time(struct ddp *ddp, enum ddp_way way, size_t buckets);

// Compares the averages of the ways that reduce, with all buckets, with those of plain all-reduces. Sets
// `computes`. What products are, tests/pipelines/train tests.
void ddp_check(struct ddp *ddp);

// ddp_raw.c

// NULL, with the reason in `message`, where there is no NCCL, or no cuBLAS.
struct ddp_raw *ddp_raw_open(struct ddp *ddp, char *message, size_t size);
const char *ddp_raw_name(const struct ddp_raw *raw); // "NCCL 2.28.9"

// One overlapped step with the buckets of that index. Waits for its end.
void ddp_raw_step(const struct ddp *ddp, size_t buckets);

#endif
