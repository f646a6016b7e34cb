// Images as numbers about 0, made from bytes on the device: what weir_train_data_fill() makes on the host,
// to the bit.
#ifndef WEIR_PIPELINES_TRAIN_CENTRE_H
#define WEIR_PIPELINES_TRAIN_CENTRE_H

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

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
