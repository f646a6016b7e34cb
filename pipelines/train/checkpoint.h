// Checkpoints: the parameters of a model, the state of its method and the progress of the
// program, in one safetensors file (<io/safetensors.h>) that is written to a temporary file, synced
// and renamed: after a kill at any time the path has the old checkpoint or the new one, whole.
//
//     layer0.weight, ...           the float32 parameters
//     layer0.weight.momentum, ...  the state; with Adam .mean and .square
//     progress                     U64 [2]: steps done, seed
//     program.NAME                 the program's own, such as its curve
//     checksum                     U64 [1]: of all others, against files that a disk or a copy has changed
//
// Threads: as the model.
#ifndef WEIR_PIPELINES_TRAIN_CHECKPOINT_H
#define WEIR_PIPELINES_TRAIN_CHECKPOINT_H

#include <weir/weir.h>

#include "io/safetensors.h"
#include "pipelines/train/model.h"

// As in the file.
struct weir_train_progress {
    uint64_t step; // steps that are done
    uint64_t seed;
};

// Waits for `queue`, copies everything to the host and writes the file. `extras`, F32 tensors whose names begin with
// "program.", are written too.
//
// Errors: WEIR_ERROR_IO with a sentence, and the path is as it was; WEIR_ERROR_OUT_OF_MEMORY; the queue's first
// failure.
weir_status weir_train_checkpoint_write(const char *path, weir_train_model *model,
                                        weir_queue *queue,
                                        const struct weir_train_progress *progress,
                                        const struct weir_io_tensor *extras, size_t extra_count);

// Reads the file, checks all of it, and only then uploads it; returns when it is on the device.
// `out_file` may be NULL; else it gets the file, for the program's own tensors.
//
// Ownership: `*out_file` is the caller's, until weir_io_safetensors_destroy().
// Errors: WEIR_ERROR_IO with a sentence: no such file, or one that is truncated, no safetensors file, without its
// checksum or with another one, of another network or method, with a tensor too many, or with numbers that are not
// finite. The model is as it was.
weir_status weir_train_checkpoint_read(const char *path, weir_train_model *model, weir_queue *queue,
                                       struct weir_train_progress *out_progress,
                                       weir_io_safetensors **out_file);

#endif
