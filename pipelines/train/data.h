// Labelled images for training: made from a seed, or read from files in MNIST's format (IDX,
// http://yann.lecun.com/exdb/mnist/). A sample is bytes [height, width, channels] and a label.
//
// Made samples depend on the seed and their index only, on every machine: an image of its class,
// with noise. Only the images of classes are stored, so there may be any number of samples.
//
// Threads: safe; a set does not change.
#ifndef WEIR_PIPELINES_TRAIN_DATA_H
#define WEIR_PIPELINES_TRAIN_DATA_H

#include <weir/weir.h>

#include "pipelines/train/model.h"

// Closed.
typedef struct weir_train_data {
    struct weir_train_shape shape; // of a set from a seed: at most 2^24 numbers
    size_t numbers;                // of a sample
    uint32_t classes; // of a set from a seed: 1 ... 65536; all their numbers at most 2^28
    uint64_t count;   // of samples, > 0

    // A set from a seed.
    uint64_t seed;
    uint32_t noise;          // 0 ... 255: the largest distance of a byte from that of its class
    unsigned char *pictures; // [classes, numbers]

    // A set from files, which are in memory whole; NULL of a set from a seed.
    void *image_file, *label_file;
    const unsigned char *images, *labels;
} weir_train_data;

// A set from a seed, of which the shape, the classes, the count, the seed and the noise are given.
//
// Errors: WEIR_ERROR_OUT_OF_MEMORY.
weir_status weir_train_data_make(const weir_train_data *given, weir_train_data **out_data);

// A set from two IDX files, such as train-images-idx3-ubyte and train-labels-idx1-ubyte: images of
// one channel (three dimensions), or of several (four: count, height, width, channels). The count of
// classes is the largest label and one.
//
// Errors: WEIR_ERROR_IO with a sentence: no such file, a file that is compressed, that is no IDX
// file or of another type, truncated, too long, without samples, or with another count than the
// labels'.
weir_status weir_train_data_open(const char *images_path, const char *labels_path,
                                 weir_train_data **out_data);

void weir_train_data_destroy(weir_train_data **data);

// The index of the sample at `position` of an endless order: each `count` positions are an epoch,
// which has each sample once, in an order of its own that depends on `seed`. With a batch of n
// samples in all, rank r of k reads positions step * n + r * (n / k) and on.
uint64_t weir_train_data_shuffled(const weir_train_data *data, uint64_t seed, uint64_t position);

// Writes the bytes of sample `index`, below the count, and returns its label.
uint32_t weir_train_data_bytes(const weir_train_data *data, uint64_t index, unsigned char *out);

#endif
