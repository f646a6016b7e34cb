// Shared by the files of the times from CUPTI: activity_start.c starts it and numbers operations,
// activity.c reads its records.
#ifndef WEIR_BACKENDS_CUDA_ACTIVITY_PARTS_H
#define WEIR_BACKENDS_CUDA_ACTIVITY_PARTS_H

#include "backends/cuda/cu.h"
#include "backends/cuda/cupti_api.h"

enum {
    CU_SEQUENCE_BITS = 40, // of an operation's number; above them is its queue's
    CU_PROBE = 0,          // a number that no queue has
};

#define CU_SEQUENCE_MASK ((UINT64_C(1) << CU_SEQUENCE_BITS) - 1)

// activity_start.c: set before CUPTI is first called.
extern struct cupti_symbols cu_cupti;

// activity.c

// False: out of memory. What there is is freed with cu_activity_free().
bool cu_activity_allocate(void);
void cu_activity_free(void);

// CUPTI's callbacks, which it calls on threads of its own or during a delivery.
void cu_activity_request(uint8_t **out_buffer, size_t *out_size, size_t *out_records);
void cu_activity_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                          size_t used);

// Makes CUPTI deliver its records now.
void cu_activity_deliver(uint32_t flag);

// Gives the queue's watch a number; false if there is none left.
bool cu_activity_number(struct cu_queue *queue);
void cu_activity_drop_number(const struct cu_queue *queue);

// Whether a record of the number CU_PROBE has come since it was forgotten, and its times on the host's
// clock.
void cu_activity_forget_probe(void);
bool cu_activity_probe(uint64_t *out_start_ns, uint64_t *out_end_ns);

#endif
