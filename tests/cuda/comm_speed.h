// The parts of comm_check that measure: comm_check.c describes them.
#ifndef WEIR_TESTS_CUDA_COMM_SPEED_H
#define WEIR_TESTS_CUDA_COMM_SPEED_H

#include <stdbool.h>

#include <weir/weir.h>

#define COMM_SPEED_BYTES ((size_t)1 << 30)

// Prints a line, on rank 0 alone if all is well. Returns `good`.
bool comm_check(bool good, const char *format, ...);

// `buffer` has COMM_SPEED_BYTES, or 4 MiB for comm_submits().
void comm_speed(weir_queue *queue, weir_comm *comm, weir_buffer *buffer);
void comm_submits(weir_queue *queue, weir_comm *comm, weir_buffer *buffer);

#endif
