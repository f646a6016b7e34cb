// What a rank says of its call to the others, its comparison, and the sentences of failures: the same on each wire.
#ifndef WEIR_TRANSPORTS_KIT_CALL_H
#define WEIR_TRANSPORTS_KIT_CALL_H

#include <stdbool.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#define WEIR_HEAD_FILE_SIZE 64
#define WEIR_HEAD_TEXT_SIZE 128
#define WEIR_CAUSE_SIZE 384

// Kinds of calls beside those of weir_collective.
enum {
    WEIR_CALL_JOIN = 100,
    WEIR_CALL_SPLIT,
};

// What a rank says of a call to the ranks that take part, before the first byte.
struct weir_head {
    uint32_t kind;
    uint32_t element;
    uint32_t reduction;
    uint32_t root;
    uint64_t count;
    uint64_t number;
    uint64_t
        new_group; // from MPI's rank 0: the number of the group that a join or a split makes; not compared
    int32_t line;
    char file[WEIR_HEAD_FILE_SIZE]; // the end of the file's name; "" if it is not known
};

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

static inline bool weir_is_reduction(uint32_t kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

// Whether all ranks take part, and count it.
static inline bool weir_is_numbered(uint32_t kind)
{
    return kind != WEIR_SEND && kind != WEIR_RECV && kind != WEIR_EXCHANGE;
}

// A SEND or a RECV as the one part of an exchange.
static inline struct weir_transport_part weir_part_of(const struct weir_transport_call *call)
{
    const bool receive = call->kind == WEIR_RECV;
    return (struct weir_transport_part){
        .struct_size = sizeof(struct weir_transport_part),
        .peer = call->root,
        .receive = receive,
        .element = call->element,
        .count = call->count,
        .memory = receive ? call->dst : (void *)(uintptr_t)call->src,
    };
}

// What a kind does not use is 0, and so equal on all ranks.
struct weir_head weir_head_of(const struct weir_transport_call *call);
struct weir_head weir_head_of_line(uint32_t kind, uint64_t number, const char *file, int line);
// "all-reduce 16 (app.c:120)"; another rank names its file as it likes.
const char *weir_head_describe(const struct weir_head *head, char text[WEIR_HEAD_TEXT_SIZE]);
bool weir_head_equals(const struct weir_head *own, const struct weir_head *theirs);

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
