// The batches of a training run, on the device and in order. Overlapped, they are loaded ahead, and prepared ahead on a
// queue of their own; serial, each is loaded when it is asked for.
#ifndef WEIR_PIPELINES_TRAIN_FEED_H
#define WEIR_PIPELINES_TRAIN_FEED_H

#include <stdint.h>

#include "pipelines/train/train.h"

// Augmentation: a crop at a random place, a mirror image of every other one, random
// contrast and brightness, normalisation. On a queue, by the kernel of kernels/augment, whose README
// has the formulas; or on the host, with the same bits.

#define WEIR_TRAIN_AUGMENT_CHANNELS_MAX 4

// Closed.
struct weir_train_augment_params {
    uint32_t width; // of the images
    uint32_t height;
    uint32_t channels;   // 1 … 4
    uint32_t out_width;  // of what is cut out, 1 … width
    uint32_t out_height; // 1 … height
    uint32_t seed;
    float contrast;   // 0 … 1: images are multiplied by 1 - contrast … 1 + contrast
    float brightness; // >= 0: and get -brightness … brightness added, of 1
    float mean[WEIR_TRAIN_AUGMENT_CHANNELS_MAX];      // of each channel, of 1
    float deviation[WEIR_TRAIN_AUGMENT_CHANNELS_MAX]; // > 0
};

// Errors: WEIR_ERROR_INVALID, naming what is wrong.
weir_status weir_train_augment_check(const struct weir_train_augment_params *params);

// Bytes of `count` images: [count, height, width, channels], and of the results:
// float [count, out_height, out_width, channels].
size_t weir_train_augment_in_bytes(const struct weir_train_augment_params *params, uint32_t count);
size_t weir_train_augment_out_bytes(const struct weir_train_augment_params *params, uint32_t count);

// Submits the augmentation of `count` images, which are images `first` and on of the whole data. Both
// buffers begin with them. The parameters have passed the check; `kernel` is "augment" of kernels/augment.
//
// Errors: those of weir_queue_launch().
weir_status weir_train_augment_submit(weir_kernel *kernel, weir_queue *queue,
                                      const struct weir_train_augment_params *params,
                                      weir_buffer *images, weir_buffer *out, uint32_t count,
                                      uint64_t first);

// The same on the host.
void weir_train_augment_on_host(const struct weir_train_augment_params *params,
                                const unsigned char *images, float *out, uint32_t count,
                                uint64_t first);

typedef struct train_feed train_feed;

struct train_feed_params {
    const struct weir_train_run_params *run;
    weir_queue *queue;                               // that trains
    uint64_t first;                                  // step
    weir_train_model *encoder;                       // ENCDEC
    const struct weir_train_augment_params *augment; // AUGMENT
    struct weir_loader_statistics *figures; // gets those of the batches at the end; may be NULL
};

// `model_inputs` as in weir_train_model_facts, of the model that is trained. What is stored is to be destroyed after an
// error too.
weir_status train_feed_create(const struct train_feed_params *params, size_t model_inputs,
                              train_feed **out_feed);
// Waits for what is prepared ahead.
void train_feed_destroy(train_feed **feed);

// The next batch; `queue` waits for it on the device.
weir_status train_feed_next(train_feed *feed, struct weir_train_batch *out_batch);

// The work that uses it has been submitted.
weir_status train_feed_release(train_feed *feed);

#endif
