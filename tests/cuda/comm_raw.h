// NCCL's own calls, beside Weir in one process: a communicator of the same ranks, on the stream of the same
// queue's device.
#ifndef WEIR_TESTS_CUDA_COMM_RAW_H
#define WEIR_TESTS_CUDA_COMM_RAW_H

#include <weir/weir.h>

// Uses the library that Weir has loaded, and `comm` to pass the id on. False: comm_raw_reason() says why.
bool comm_raw_open(weir_queue *queue, weir_comm *comm, weir_buffer *buffer);
const char *comm_raw_reason(void);
void comm_raw_close(void);

// In place, of float32.
bool comm_raw_all_reduce(size_t bytes);
bool comm_raw_finish(void);

// So many of them captured in a graph, and a launch of that. The one before is destroyed.
bool comm_raw_capture(size_t bytes, int calls);
bool comm_raw_launch(void);

#endif
