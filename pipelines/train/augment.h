// Augmentation of images: a crop at a random place, a mirror image of every other one, random
// contrast and brightness, normalisation. On a queue, by the kernel of kernels/augment, whose README
// has the formulas; or on the host, with the same bits.
#ifndef WEIR_PIPELINES_TRAIN_AUGMENT_H
#define WEIR_PIPELINES_TRAIN_AUGMENT_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct weir_train_augment weir_train_augment;

// Errors: WEIR_ERROR_INVALID, naming what is wrong.
weir_status weir_train_augment_check(const struct weir_train_augment_params *params);

// Ownership: the caller's, until weir_train_augment_destroy(). Outlived by `device`.
// Errors: those of weir_train_augment_check() and weir_program_create().
weir_status weir_train_augment_create(weir_device *device,
                                      const struct weir_train_augment_params *params,
                                      weir_train_augment **out_augment);

// Never waits. NULL and a pointer to NULL are accepted.
void weir_train_augment_destroy(weir_train_augment **augment);

// Bytes of `count` images: [count, height, width, channels], and of the results:
// float [count, out_height, out_width, channels].
size_t weir_train_augment_in_bytes(const struct weir_train_augment_params *params, uint32_t count);
size_t weir_train_augment_out_bytes(const struct weir_train_augment_params *params, uint32_t count);

// Submits the augmentation of `count` images, which are images `first` and on of the whole data. Both
// buffers begin with them.
//
// Threads: safe.
// Errors: those of weir_queue_launch().
weir_status weir_train_augment_submit(weir_train_augment *augment, weir_queue *queue,
                                      weir_buffer *images, weir_buffer *out, uint32_t count,
                                      uint64_t first);

// The same on the host. The parameters are those of a weir_train_augment_create() that has succeeded.
void weir_train_augment_on_host(const struct weir_train_augment_params *params,
                                const unsigned char *images, float *out, uint32_t count,
                                uint64_t first);

// Images as numbers about 0, made from bytes on the device: what weir_train_data_fill() makes on the host,
// to the bit.

typedef struct weir_train_centre weir_train_centre;

// For `count` bytes, whose numbers it has memory for.
//
// Ownership: the caller's, until weir_train_centre_destroy(). Outlived by `device`.
// Errors: WEIR_ERROR_OUT_OF_MEMORY; those of weir_program_create() and weir_buffer_create().
weir_status weir_train_centre_create(weir_device *device, size_t count, bool whole,
                                     weir_train_centre **out_centre);

// Never waits. NULL and a pointer to NULL are accepted.
void weir_train_centre_destroy(weir_train_centre **centre);

// Submits the conversion of the bytes with which `images` begins, and stores where the numbers will be:
// float [count], the same memory each time.
//
// Errors: those of weir_queue_launch().
weir_status weir_train_centre_submit(weir_train_centre *centre, weir_queue *queue,
                                     weir_buffer *images, weir_buffer **out_numbers);

#ifdef __cplusplus
}
#endif

#endif
