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

// Submits what makes numbers about 0 of the `count` bytes b with which `images` begins, float [count] in `out`:
// (b - 128) / 64, from -2 up to 2, multiples of 1/64 and exact in bfloat16; with `whole` floor((b - 128) / 32), from
// -4 to 3. `kernel` is "centre" of kernels/augment.
//
// Errors: those of weir_queue_launch().
weir_status weir_train_centre_submit(weir_kernel *kernel, weir_queue *queue, weir_buffer *images,
                                     weir_buffer *out, size_t count, bool whole);

#ifdef __cplusplus
}
#endif

#endif
