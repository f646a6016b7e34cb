// Shared by the two kinds of data sets.
#ifndef WEIR_PIPELINES_TRAIN_DATA_PARTS_H
#define WEIR_PIPELINES_TRAIN_DATA_PARTS_H

#include "pipelines/train/data.h"

struct weir_train_data {
    struct weir_train_shape shape;
    size_t numbers; // of a sample
    uint32_t classes;
    uint64_t count;

    // A set from a seed.
    uint64_t seed;
    uint32_t noise;
    unsigned char *pictures; // [classes, numbers]

    // A set from files, which are in memory whole; NULL of a set from a seed.
    void *image_file, *label_file;
    const unsigned char *images, *labels;
};

// Fails with WEIR_ERROR_IO and "PATH: SENTENCE".
weir_status train_fail_file(const char *path, const char *remedy, const char *format, ...)
    WEIR_PRINTF(3, 4);

#endif
