// Shared by io/image.c and its two decoders; private to this folder.
#ifndef WEIR_IO_IMAGE_DECODER_H
#define WEIR_IO_IMAGE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "io/error.h"
#include "io/image.h"

// One file that is being decoded. If `rgb` is NULL, only the header is read.
struct weir_io_image_job {
    const char *path;
    FILE *stream;
    uint64_t max_pixels;
    unsigned char *rgb;
    size_t capacity;
    struct weir_io_image_info info;
    struct weir_io_error *error;
};

// Each fills `job->info`, and the pixels if `rgb` is not NULL. On failure the
// message is set and everything that the decoder library allocated is freed.
bool weir_io_png_decode(struct weir_io_image_job *job);
bool weir_io_jpeg_decode(struct weir_io_image_job *job);

// For the decoders, once `job->info` is known: true if the pixels fit the cap and
// the buffer.
bool weir_io_image_check_room(const struct weir_io_image_job *job);

#endif
