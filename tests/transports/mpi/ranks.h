// What the parts of the program `ranks` share: one rank under mpirun, which calls the transport's functions
// directly.
#ifndef WEIR_TESTS_TRANSPORTS_MPI_RANKS_H
#define WEIR_TESTS_TRANSPORTS_MPI_RANKS_H

#include <weir/module/transport.h>

#include "tests/transports/host.h"

#define SECOND UINT64_C(1000000000)
#define PATIENCE (120 * SECOND)

// Ends the program if the condition does not hold.
#define EXPECT(condition) expect(condition, #condition, __FILE__, __LINE__)
void expect(bool condition, const char *what, const char *file, int line);

extern const struct weir_transport_ops *ops;
extern void *state;
extern uint32_t rank;
extern uint32_t count;
extern uint64_t next; // the number of the latest call

weir_status open_library(const char *library);
weir_status try_join(const char *rendezvous, uint64_t timeout_ns, void **out_group);
void *join_all(void);
weir_status try_split(void *group, int32_t color, int32_t key, void **out_part);
// What is not set of size, number, timeout and file is filled in.
weir_status run(void *group, struct weir_transport_call call);
uint64_t sum_of_ranks(void *group, uint64_t value);

// ranks_calls.c

void do_collectives(void);
void do_order(void);
void do_large(void);
void do_messages(void);
void do_groups(void);

// ranks_failures.c: this rank's message is printed, and mpi_test.sh compares it.

void report(weir_status status);
void do_mismatch(uint32_t odd);
void do_message_mismatch(void);
void do_absent(const char *how, uint32_t absent);
void do_abort(bool receives);
void do_fail(void);
void do_own(const char *library, const char *how);
void do_memory(long enough, bool in_message);
void do_wrong_place(void);
void do_missing(void);

#endif
