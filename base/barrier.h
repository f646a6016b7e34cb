// An asymmetric memory barrier: one side of a protocol bears the cost for both.
//
// Two threads that each store one variable and then load the other's need a full barrier between
// the two, or both may miss the other's store. Where one side is frequent and the other rare, the
// frequent side only keeps the compiler from reordering, and the rare side has the kernel run a
// barrier on every running thread of the process: membarrier(2). If the kernel lacks it, or a filter of
// system calls refuses it, each side runs a barrier of its own. A filter that comes after
// weir_barrier_init() has to let it through, or the program ends with a sentence.
#ifndef WEIR_BASE_BARRIER_H
#define WEIR_BASE_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/cold.h"

// Whether the kernel has membarrier(2). Set once by weir_barrier_init().
extern bool weir_barrier_is_shared;

// A full barrier of the calling thread: of two threads that call it, the later one sees the stores
// of the earlier one.
WEIR_COLD void weir_barrier_full(void);

// Before the first use; may be called often, from any thread.
void weir_barrier_init(void);

// Between the store and the load of the frequent side.
static inline void weir_barrier_light(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (!weir_barrier_is_shared)
        weir_barrier_full();
}

// Between the store and the load of the rare side. Takes some microseconds.
void weir_barrier_heavy(void);

#endif
