// Training runs: a model, data and the ranks of a communicator in a loop. What
// `weir train` runs.
//
//     DDP         each rank has a part of each batch; gradients are added up over the ranks
//     ACCUMULATE  the same with several passes a step, and one reduction
//     AUGMENT     images are augmented as they are prepared
//     ENCDEC      a frozen encoder makes the features on which a head is trained, as images are prepared
//
// A step is `passes` passes over `batch` samples on each rank, and one update. Pass k of rank r in a
// step of n samples reads samples (k * ranks + r) * batch and on of these n, so one rank with K passes
// sees what K ranks with one pass see.
//
// Batches go to the device as bytes, and are prepared there. Overlapped, they are loaded ahead, copied by a queue of
// their own, and prepared on another one beside the training on the batch before, and buckets of gradients are reduced
// while the backward pass makes others. With `serial` there is one queue, and each of these waits for what is before
// it. Both ways compute the same bits.
//
// All ranks call it with the same parameters. Rank 0 alone reads and writes the checkpoint.
#ifndef WEIR_PIPELINES_TRAIN_TRAIN_H
#define WEIR_PIPELINES_TRAIN_TRAIN_H

#include <weir/weir.h>

#include "patterns/buckets.h"
#include "patterns/loader.h"
#include "pipelines/train/data.h"
#include "pipelines/train/model.h"

#define WEIR_TRAIN_STEPS_MAX UINT64_C(10000000)
#define WEIR_TRAIN_PASSES_MAX 1024
#define WEIR_TRAIN_BATCH_MAX 65536

typedef enum weir_train_program {
    WEIR_TRAIN_DDP = 1,
    WEIR_TRAIN_ACCUMULATE = 2,
    WEIR_TRAIN_AUGMENT = 3,
    WEIR_TRAIN_ENCDEC = 4,
} weir_train_program;

typedef enum weir_train_network {
    WEIR_TRAIN_MLP = 0,
    WEIR_TRAIN_CONVNET = 1,
} weir_train_network;

struct weir_train_run_params {
    weir_train_program program;
    weir_comm *comm; // of the device that trains
    const weir_train_data *data;
    bool serial;
    uint64_t steps;  // in all, those before a resumption too: 1 … WEIR_TRAIN_STEPS_MAX
    uint64_t batch;  // samples of a pass on each rank, 1 … WEIR_TRAIN_BATCH_MAX
    uint64_t passes; // of a step, 1 … WEIR_TRAIN_PASSES_MAX
    uint64_t seed;   // of parameters, order and augmentation

    // The network: of ENCDEC the encoder, which ends in `width` features; the head has one hidden
    // layer of `width` units.
    weir_train_network network;
    uint64_t hidden;   // MLP: hidden layers
    uint64_t width;    // MLP: their units
    uint64_t channels; // CONVNET: of its first layer
    weir_train_element element;
    weir_train_products products;
    bool
        exact; // inputs are integers, activations and their gradients rounded to multiples of 1/64:
               // the bits do not depend on how samples are divided into passes and ranks

    weir_train_method method;
    float rate; // of learning, above 0
    float momentum;

    size_t bucket_bytes; // as weir_buckets_params.cap_bytes
    weir_datatype wire;  // as there

    // AUGMENT: the sides of what is cut out, 0: seven eighths of each; and whether the host does it.
    uint64_t crop;
    bool augment_on_host;

    const char *checkpoint;    // a file; NULL: none
    uint64_t checkpoint_every; // steps, and at the end; 0: at the end alone
    bool resume;               // begins with the checkpoint, if there is one

    // Called on rank 0 when the figures of steps up to `step` are known, with the mean loss of the
    // last of them. May be NULL.
    void (*progress)(void *user, uint64_t step, float loss);
    void *user;
};

// What a run found. Closed.
struct weir_train_figures {
    uint64_t first_step; // that this call did, from 0; above 0 after a resumption
    uint64_t steps;
    uint64_t samples; // of a step, all ranks together
    // Of each step from 0 on, over the samples of all ranks: the mean loss, and the part that was
    // classified right. Those before first_step are the checkpoint's, and are known on rank 0 alone.
    float *losses;
    float *right;
    uint64_t parameters_digest; // FNV-1a of the parameters' bytes; the same on all ranks
    size_t parameters;          // how many numbers
    double flop;                // of a step on this rank: forward and backward
    // From the end of the first step of this call to the end of the last one, checkpoints included;
    // 0 if it did one step.
    uint64_t wall_ns;
    uint64_t checkpoint_ns; // in all, of that
    struct weir_buckets_plan plan;
    struct weir_buckets_statistics buckets;
    struct weir_loader_statistics loader; // zeros with `serial`
};

// Trains, and stores what it found in `*out_figures`, zeros after an error. When it fails on one
// rank the communicator is aborted with the cause, and all ranks return.
//
// Ownership: `*out_figures` is the caller's, until weir_train_figures_finish().
// Errors: WEIR_ERROR_INVALID for a crop or a checkpoint that does not fit; those of models, buckets, loaders and
// checkpoints; the first failure of a queue.
weir_status weir_train_run(const struct weir_train_run_params *params,
                           struct weir_train_figures *out_figures);

// Frees the arrays. Zeros are accepted.
void weir_train_figures_finish(struct weir_train_figures *figures);

#endif
