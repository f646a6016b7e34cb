// One rank, for tests that call a transport: the module that the program links. What a rank calls on each wire is here too.
#ifndef WEIR_TESTS_TRANSPORTS_RANK_H
#define WEIR_TESTS_TRANSPORTS_RANK_H

#include <weir/module/transport.h>

#include "tests/support/host.h"

#define RANKS_SECOND UINT64_C(1000000000)
// Long enough that a test fails by what it checks, and not by this, on a busy machine.
#define RANKS_PATIENCE (60 * RANKS_SECOND)

struct rank {
    void *group;
    uint32_t rank;
    uint32_t count;
    void *user;
    weir_status status;      // of join, and then of the body
    struct weir_error error; // the last one of the rank's thread
    uint64_t number;         // of rank_call()'s calls
    bool failed;             // its group, before it has left:
    struct weir_transport_cause cause;
};

const struct weir_transport_ops *ranks_ops(void);
// The opened transport; each program has its own function.
void *ranks_state(void);
// A call with `count` elements from `src` to `dst`, which are added up where its kind reduces; all else is 0.
struct weir_transport_call call_of(weir_collective kind, weir_datatype element, uint64_t count,
                                   const void *src, void *dst);
// Joins with ops->join; the error is in rank->error.
weir_status rank_join(struct rank *rank, const struct weir_transport_setup *setup);
// ops->run with what is not set of struct_size, line, file, number and timeout filled in.
weir_status rank_call(struct rank *rank, struct weir_transport_call call);
// Waits for all ranks.
weir_status rank_barrier(struct rank *rank);
// ops->split, the same as rank_call().
weir_status rank_split(struct rank *rank, struct weir_transport_split split, void **out_part);
void rank_leave(struct rank *rank);

// All ranks call these, which return WEIR_ERROR_INVALID for a wrong result.

// Sums whose rounding depends on the order of additions, of few elements and of many: the bits are those of a plain loop.
weir_status rank_sum_in_order(struct rank *rank);
// A ring: each rank sends to the next one, large messages, small ones and none.
weir_status rank_pass_on(struct rank *rank);
// Counts beyond 2^31, of two ranks.
weir_status rank_call_large(struct rank *rank);

#endif
