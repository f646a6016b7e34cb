// What the ranks of a group that has failed settle over its control connections, which still stand:
// first which of them go on, and where each listens; then whether each has joined the others.
//
// Both are a step of one kind: each rank tells all others a value. The first rank that has told
// gathers: when those that it waits for have told or have gone, or its patience is at an end, it sends
// the list of ranks and values to all. A rank passes the list on to all others before it uses it, so
// that none goes on by a list that another one, which lives, never gets. If the rank that gathers
// goes, or says nothing for long, the next one gathers.
//
// A rank that stops for long and then goes on may gather a second list of the step. Its token is another one,
// so that at most one of their groups can be joined by all of its ranks.
#ifndef WEIR_LOCAL_TCP_GATHER_H
#define WEIR_LOCAL_TCP_GATHER_H

#include "transports/local/tcp.h"

// Values of the second step.
enum {
    TCP_JOINED = 1,
    TCP_NOT_JOINED = 2,
    TCP_IN_VAIN = 3 // not, because another one has not
};

struct tcp_gather {
    struct tcp_group *whole;
    uint64_t patience_ns; // of the rank that gathers; the others have twice as much with it
    uint64_t deadline_ns; // of weir_clock_now_ns(), for all steps
    bool *awaited;        // the ranks of the step, as far as they are waited for
    bool in_vain;         // local_tcp_gather_is_in_vain() was
    bool settled;         // the list is there:
    uint32_t count;
    uint64_t token;
    struct tcp_member *members; // these two have room for all ranks of the whole
    struct tcp_member *spare;
};

// Allocates the arrays. False if out of memory.
bool local_tcp_gather_create(struct tcp_gather *gather);
void local_tcp_gather_destroy(struct tcp_gather *gather);

// Steps have numbers, alike on all ranks: each attempt to go on has the next odd one and the one after it.
// The first step waits for all ranks, the second one for those of the first one's list.
void local_tcp_gather_begin(struct tcp_gather *gather);
void local_tcp_gather_begin_second(struct tcp_gather *gather);
// Tells all ranks the value, which is not 0.
void local_tcp_gather_tell(struct tcp_gather *gather, uint64_t value);
// Waits for the list, or gathers it. False at the deadline.
bool local_tcp_gather_settle(struct tcp_gather *gather);

// In the second step, before this rank tells: whether another rank has gone or has not joined.
bool local_tcp_gather_is_in_vain(struct tcp_gather *gather);
// Sets an entry for each rank of the whole, and reads what those with something have said.
void local_tcp_gather_polls(const struct tcp_gather *gather, struct pollfd *polls);
void local_tcp_gather_listen(struct tcp_gather *gather, const struct pollfd *polls);

#endif
