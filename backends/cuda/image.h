// The image that a program is made from.
#ifndef WEIR_BACKENDS_CUDA_IMAGE_H
#define WEIR_BACKENDS_CUDA_IMAGE_H

#include "backends/cuda/cu.h"

// An image, of a bundle or compiled from source.
struct cu_image {
    const void *data;
    const struct weir_bundle *bundle; // NULL: compiled from source
    char name[64];                    // for messages
};

// Chooses that of a bundle for the device.
weir_status cu_image_choose(const struct cu_device *device, const struct weir_bundle *bundle,
                            struct cu_image *chosen);

// Loads it as the program's module. Within the device's context.
weir_status cu_image_load(struct cu_program *program, const struct cu_image *chosen);

#endif
