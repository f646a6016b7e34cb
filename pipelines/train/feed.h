// The batches of a training run, on the device and in order. Overlapped, they are loaded ahead, and prepared ahead on a
// queue of their own; serial, each is loaded when it is asked for.
#ifndef WEIR_PIPELINES_TRAIN_FEED_H
#define WEIR_PIPELINES_TRAIN_FEED_H

#include <stdint.h>

#include "pipelines/train/augment.h"
#include "pipelines/train/train.h"

// Which samples this rank reads in a pass: train.h.
struct train_order {
    uint64_t seed;
    uint32_t rank;
    uint32_t ranks;
    uint32_t passes;
    uint32_t batch;
};

typedef struct train_feed train_feed;

struct train_feed_params {
    const struct weir_train_run_params *run;
    struct train_order order;
    weir_queue *queue;                               // that trains
    uint64_t first;                                  // step
    weir_train_model *encoder;                       // ENCDEC
    const struct weir_train_augment_params *augment; // AUGMENT
};

// `model_inputs` as weir_train_model_inputs(), of the model that is trained. What is stored is to be destroyed after an error too.
weir_status train_feed_create(const struct train_feed_params *params, size_t model_inputs,
                              train_feed **out_feed);
// Waits for what is prepared ahead.
void train_feed_destroy(train_feed **feed);

// The next batch; `queue` waits for it on the device.
weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch);

// The work that uses it has been submitted.
weir_status train_feed_release(train_feed *feed);

// Zeros with `serial`.
void train_feed_get_statistics(const train_feed *feed, struct weir_loader_statistics *out);

#endif
