// The first cause of a failure, and its sentence: the same on each wire.
#ifndef WEIR_TRANSPORTS_KIT_CALL_H
#define WEIR_TRANSPORTS_KIT_CALL_H

#include <stdbool.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#include "base/call/call.h"

#define WEIR_CAUSE_SIZE 384

// The first cause of a group's failure, as data and as a sentence.
struct weir_cause {
    uint64_t number;
    uint32_t fault; // enum weir_transport_fault
    uint32_t rank;  // at fault; UINT32_MAX: none is known
    char text[WEIR_CAUSE_SIZE];
};

// A rank in a call: what it has called, and what hears of a failure.
struct weir_caller {
    struct weir_head head;
    void *group;
    const char *label;
    uint32_t rank;
    uint32_t count;
    uint64_t timeout_ns;
    void (*fail)(void *group, const struct weir_cause *cause);
};

// A SEND or a RECV as an exchange of one part, which `*out_part` becomes; another call as it is.
static inline struct weir_transport_call weir_exchange_of(const struct weir_transport_call *call,
                                                          struct weir_transport_part *out_part)
{
    const bool receive = call->kind == WEIR_RECV;
    struct weir_transport_call exchange = *call;
    *out_part = (struct weir_transport_part){
        .struct_size = sizeof *out_part,
        .peer = call->root,
        .receive = receive,
        .element = call->element,
        .count = call->count,
        .memory = receive ? call->dst : (void *)(uintptr_t)call->src,
    };
    if (receive || call->kind == WEIR_SEND) {
        exchange.parts = out_part;
        exchange.part_count = 1;
    }
    return exchange;
}

// Takes a cause that another process has told: its text, fault and rank are held to their ranges.
struct weir_cause weir_cause_heard(const struct weir_cause *told, uint32_t count);

// These fail the group, with "all-reduce 17 of 'grads', app.c:120: " and the rest, and return false.

// For something on this rank alone.
bool weir_caller_fail(const struct weir_caller *caller, const char *format, ...) WEIR_PRINTF(2, 3);
// For what another rank has done; UINT32_MAX: it is not known which.
bool weir_caller_blame(const struct weir_caller *caller, enum weir_transport_fault fault,
                       uint32_t rank, const char *format, ...) WEIR_PRINTF(4, 5);
// For a wait for `peer` at the deadline, and for one that has left or died, which is the fault; `last` is its latest call,
// or NULL.
bool weir_caller_late(const struct weir_caller *caller, uint32_t peer,
                      const struct weir_head *last);
bool weir_caller_lost(const struct weir_caller *caller, enum weir_transport_fault fault,
                      uint32_t peer, const struct weir_head *last);

// Whether `peer`, which has called `theirs`, and this rank have called the same. If not, that fails the group, and says
// both calls.
bool weir_caller_agrees(const struct weir_caller *caller, uint32_t peer,
                        const struct weir_head *theirs);
// Whether all that have come have called the same. If not, that fails the group, and names the rank that differs from
// more than half of all. `head_of` of another rank is NULL if it has not come.
bool weir_caller_judge(const struct weir_caller *caller,
                       const struct weir_head *(*head_of)(const void *user, uint32_t rank),
                       const void *user);
// Until when, after a difference, the other ranks are waited for.
uint64_t weir_judge_by(uint64_t deadline_ns);

#endif
