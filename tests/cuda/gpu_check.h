// Shared by the files of gpu_check.
#ifndef WEIR_TESTS_CUDA_GPU_CHECK_H
#define WEIR_TESTS_CUDA_GPU_CHECK_H

#include <weir/weir.h>

#include "tests/cuda/check.h"

struct bench {
    weir_runtime *runtime;
    weir_device *device;
    weir_queue *queue;
    weir_queue *other;
    weir_program *program;
    weir_kernel *iota;
    weir_kernel *spin;
    weir_buffer *memory; // DEVICE
    weir_buffer *pinned;
};

// Opens everything with the lines of a configuration, or NULL for that of the environment.
// False, without printing a line, if that fails.
bool start_with(struct bench *bench, const char *config);
void finish(struct bench *bench);

// On error the check fails and NULL is returned.
weir_buffer *buffer_of(const struct bench *bench, size_t size, weir_placement placement);

// gpu_faults.c

// The mode `fault`, and that of the processes that it starts. Returns 0 on success.
int run_faults(const char *program, const char *mode, const char *argument);

#endif
