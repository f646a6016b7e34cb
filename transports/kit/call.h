// What is the same on each wire: the first cause of a failure and its sentence, and the segments of collectives.
#ifndef WEIR_TRANSPORTS_KIT_CALL_H
#define WEIR_TRANSPORTS_KIT_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#include "base/call/call.h"

#define WEIR_CAUSE_SIZE 384

// The first cause of a group's failure, as data and as a sentence.
struct weir_cause {
    uint32_t fault; // enum weir_transport_fault
    uint32_t rank;  // at fault; UINT32_MAX: none is known
    char text[WEIR_CAUSE_SIZE];
};

#define WEIR_GROUP_LABEL_SIZE 64

// A group as one of its ranks knows it: what a transport's own begins with.
struct weir_group {
    const struct weir_host *host;
    uint32_t rank;
    uint32_t count;
    char label[WEIR_GROUP_LABEL_SIZE];
    atomic_bool failed; // with the cause, which is written once; or the group could not be made
    struct weir_cause cause;
    // Keeps the cause unless there is one already, and tells the other ranks.
    void (*fail)(void *group, const struct weir_cause *cause);
};

// Of the transport's table.
void weir_group_place(const void *group, uint32_t *out_rank, uint32_t *out_count);
void weir_group_abort(void *group, const char *reason);
bool weir_group_cause(void *group, struct weir_transport_cause *out_cause);
// Tells the host the first cause, if there is one, and returns the status; without a remedy the front end says what to do.
weir_status weir_group_report(const void *group, weir_status status, const char *remedy);

// A rank in a call.
struct weir_caller {
    struct weir_head head;
    struct weir_group *group;
    uint64_t timeout_ns;
    uint64_t deadline_ns; // of weir_clock_now_ns(); it does not overflow by some seconds more
};

struct weir_caller weir_caller_begin(struct weir_group *group, struct weir_head head,
                                     uint64_t timeout_ns);

// Takes a cause that another process has told: its text, fault and rank are held to their ranges.
struct weir_cause weir_cause_heard(const struct weir_cause *told, uint32_t count);

// These fail the group, with "all-reduce 17 of 'grads', app.c:120: " and the rest, and return false.

// For what a rank has done; UINT32_MAX: it is not known which.
bool weir_caller_blame(const struct weir_caller *caller, enum weir_transport_fault fault,
                       uint32_t rank, const char *format, ...) WEIR_PRINTF(4, 5);
// For something on this rank alone.
#define weir_caller_fail(caller, ...) \
    weir_caller_blame((caller), WEIR_FAULT_OTHER, (caller)->group->rank, __VA_ARGS__)
// For a wait for `peer` at the deadline, and for one that has left or died, which is the fault; `last` is its latest call,
// of number 0 if it is not known.
bool weir_caller_late(const struct weir_caller *caller, uint32_t peer,
                      const struct weir_head *last);
bool weir_caller_lost(const struct weir_caller *caller, enum weir_transport_fault fault,
                      uint32_t peer, const struct weir_head *last);

// Whether `peer`, which has called `theirs`, and this rank have called the same. If not, that fails the group, and says
// both calls.
bool weir_caller_agrees(const struct weir_caller *caller, uint32_t peer,
                        const struct weir_head *theirs);
// Whether all that have come have called the same. If not, that fails the group, and names the rank that differs from
// more than half of all.
bool weir_caller_judge(const struct weir_caller *caller, weir_head_find *find, const void *user);
// Until when, after a difference, the other ranks are waited for.
uint64_t weir_judge_by(uint64_t deadline_ns);

// A collective in segments: from the caller's memory to what this rank gives, by one move between all ranks, and from
// what each has given to the caller's memory. Of a segment all is given before anything is written, so that a collective in
// place needs no other memory.

// Memory of a group, and what moves its bytes between the ranks.
struct weir_carrier {
    void *user;
    uint32_t rank;
    uint32_t count;
    // How many bytes a rank gives at most in one move; multiples of 8.
    size_t one;   // to all ranks or the root the same
    size_t each;  // to each rank others, for each
    size_t whole; // of a broadcast
    size_t
        small; // an all-reduce of at most so many takes one move: all ranks get all, and each adds it up
    // Where this rank writes what it gives in the next move. What has been given in the last one stays meanwhile.
    char *(*give)(void *user);
    // Moves what the ranks have given: in an ALL_GATHER or a GATHER `size` bytes of each, in a BROADCAST of the root, in an
    // ALL_TO_ALL or, of the root, a SCATTER so many for each rank. False: the group has failed.
    bool (*move)(void *user, weir_collective kind, size_t size);
    // What a rank has given this one in the last move.
    const char *(*given)(void *user, uint32_t from);
};

// Carries out a collective, without a move if it has no elements. False: a move was.
bool weir_carry(const struct weir_carrier *carrier, const struct weir_transport_call *call);

#endif
