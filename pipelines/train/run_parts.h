// What the files of a training run share.
#ifndef WEIR_PIPELINES_TRAIN_RUN_PARTS_H
#define WEIR_PIPELINES_TRAIN_RUN_PARTS_H

#include <stdint.h>

#include "pipelines/train/augment.h"
#include "pipelines/train/train.h"

// How samples are counted: pass k of a step on this rank reads from position
// train_position(step, k) on.
struct train_order {
    uint64_t seed;
    uint32_t rank;
    uint32_t ranks;
    uint32_t passes;
    uint32_t batch;
};

// The curve: the figures of each step, which the device writes and ranks add up, a window of steps at
// a time, so that neither waits for the other at each step.

enum {
    TRAIN_WINDOW = 64
};

struct train_curve {
    weir_comm *comm;
    struct train_curve_window {
        weir_buffer *sums; // DEVICE: struct weir_train_view of each step
        weir_buffer *copy; // HOST
        struct weir_event done;
        uint64_t first; // step
        uint32_t count; // of steps that are on their way; 0: none
    } windows[2];
    uint32_t current;
    uint64_t first; // step of the current window
    uint64_t samples;
    uint64_t known; // steps
    float *losses;  // of all steps
    float *right;
};

// Where the result of `step` is written, the sums over this rank's samples.
struct weir_train_view train_curve_place(const struct train_curve *curve, uint64_t step);

// The work of `step` has been submitted to `queue`. When that fills the window it is sent off, and the
// window before is read.
weir_status train_curve_step(struct train_curve *curve, weir_queue *queue, uint64_t step);

// Waits until the figures of all steps before `end` are known.
weir_status train_curve_flush(struct train_curve *curve, weir_queue *queue, uint64_t end);

// The feed: batches on the device, in order. Overlapped, they are loaded ahead, and prepared ahead
// on a queue of their own; serial, each is loaded when it is asked for.

typedef struct train_feed train_feed;

struct train_feed_params {
    const struct weir_train_run_params *run;
    struct train_order order;
    weir_queue *queue;                               // that trains
    uint64_t first;                                  // step
    weir_train_model *encoder;                       // ENCDEC
    const struct weir_train_augment_params *augment; // AUGMENT
};

// `model_inputs` as weir_train_model_inputs(). What is stored is to be destroyed after an error too.
weir_status train_feed_create(const struct train_feed_params *params, size_t model_inputs,
                              train_feed **out_feed);
// Waits for what is prepared ahead.
void train_feed_destroy(train_feed **feed);

// The next batch; `queue` waits for it on the device.
weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch);

// The work that uses it has been submitted.
weir_status train_feed_release(train_feed *feed);

enum {
    TRAIN_AHEAD = 2 // steps that are in flight at once
};

// What a run has.
struct train {
    const struct weir_train_run_params *params;
    struct train_order order;
    weir_device *device;
    weir_queue *queue;         // that trains
    weir_train_model *encoder; // ENCDEC
    weir_train_model *model;
    weir_train_optimizer *optimizer;
    uint32_t parameter_count;
    weir_buckets *buckets;
    struct weir_train_augment_params augment;
    train_feed *feed;
    struct train_curve curve;
    uint64_t first_step;
    struct weir_event submitted[TRAIN_AHEAD]; // the ends of the latest steps
    uint64_t checkpoint_ns;
};

// Creates what a run has but the feed and the state, after checking the parameters. `*train` is to be
// destroyed after an error too.
weir_status train_create(struct train *train, const struct weir_train_run_params *params);
void train_destroy(struct train *train);

// The state: sets parameters and optimizer from the seed or the checkpoint, the same on all ranks.
weir_status train_state_begin(struct train *train);

// Writes the checkpoint after `steps` steps.
weir_status train_state_write(struct train *train, uint64_t steps);

// Stores the digest of the model's parameters, and how many numbers they are.
weir_status train_digest(struct train *train, struct weir_train_figures *figures);

#endif
