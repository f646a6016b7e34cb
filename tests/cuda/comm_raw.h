// NCCL's own calls, beside Weir in one process: on a stream of the queue's device.
#ifndef WEIR_TESTS_CUDA_COMM_RAW_H
#define WEIR_TESTS_CUDA_COMM_RAW_H

#include <weir/weir.h>

// Uses the library that Weir has loaded, and `comm` to pass the id on. False: comm_raw_reason() says why.
bool comm_raw_open(weir_queue *queue, weir_comm *comm, weir_buffer *buffer);
const char *comm_raw_reason(void);
void comm_raw_close(void);

// The communicator of a call: a new one of the same ranks, or NCCL's own of `comm`.
enum comm_raw_which {
    COMM_RAW_OTHER,
    COMM_RAW_SAME
};

// In place, of float32.
bool comm_raw_all_reduce(enum comm_raw_which which, size_t bytes);
bool comm_raw_finish(void);

// So many of them captured in a graph, and a launch of that. The one before is destroyed.
bool comm_raw_capture(size_t bytes, int calls);
bool comm_raw_launch(void);

// Prints what the driver's calls take that a submit makes beside NCCL's.
void comm_raw_driver_calls(void);

#endif
