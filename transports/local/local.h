// The transport "local": what its files share.
//
// A group's part that knows no wire (group.c) checks calls, tells their failures, and says which piece of whose memory
// each rank needs for a collective, in one or two phases; a wire compares the calls of all ranks
// (transports/kit/call.h) and carries those pieces (mesh.c).
//
// The arithmetic has one order: each element of a reduction is ((x0 + x1) + x2) + …, in the order of
// ranks, whatever the count of elements and whichever the wire.
#ifndef WEIR_LOCAL_LOCAL_H
#define WEIR_LOCAL_LOCAL_H

#include <stdbool.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#include "transports/kit/call.h"

#define LOCAL_LABEL_SIZE 64
#define LOCAL_ELSEWHERE_SIZE 192
#define LOCAL_MAX_RANKS 4096u

// Reductions go through a buffer of this size, which stays in a core's own cache.
#define LOCAL_SEGMENT_BYTES ((size_t)128 << 10)

// What a rank sends at most in a call of a group of several machines: the beats of engines' communicators.
#define LOCAL_CONTROL_BYTES ((size_t)64 << 10)
#define LOCAL_MPI_REMEDY \
    "run it under mpirun with WEIR_COMM_TRANSPORT=mpi, which carries host memory between machines"

struct local_group;

// One collective of one rank.
struct local_run {
    struct weir_caller by;
    struct local_group *group;
    const void *src;
    void *dst;
    const struct weir_transport_part *parts;
    uint32_t part_count;
    uint64_t deadline_ns; // of weir_clock_now_ns(); UINT64_MAX: none
    bool differs; // another rank has called something else: the deadline is weir_judge_by()'s
    void *total;  // LOCAL_SEGMENT_BYTES for a reduction, else NULL
};

// A piece of the owner's memory that the reader needs in one phase.
struct local_piece {
    bool of_result; // of the owner's `dst`, else of its `src`
    bool reduced;   // added to the other owners' pieces for `target`, else copied there
    size_t offset;
    size_t size;
    size_t target; // an offset in the reader's `dst`
};

// What each rank says in a split.
struct local_record {
    int32_t color;
    int32_t key;
    uint32_t number; // of its door, on its machine and on the network; 0: it has none
    uint32_t port;
    uint64_t token; // of its part, if it is rank 0 there
};

// A part of a group.
struct local_part {
    const char *label;
    int32_t color;
    uint32_t rank;           // this one's there
    uint32_t count;          // 0: this rank gets no part
    const uint32_t *members; // ranks in the whole group, in the order of ranks in the part
    const struct local_record *records; // of all ranks of the whole group
};

// One wire. Functions that return a bool have failed the group (weir_caller_fail()) when that is false.
struct local_wire {
    // Tells all ranks the head, learns theirs, and compares.
    bool (*meet)(struct local_run *run);
    // Moves the pieces of one phase.
    bool (*phase)(struct local_run *run, uint32_t phase);
    // The end of a call, also of one that has failed: returns when no other rank reads this one's
    // memory for it any more.
    bool (*end)(struct local_run *run);
    // SEND, RECV and EXCHANGE: all of run->parts.
    bool (*messages)(struct local_run *run);
    // Sets what other ranks must know of this one to reach it in a part; NULL: nothing.
    bool (*offer)(struct local_run *run, struct local_record *record);
    // Makes the group of the ranks whose record has this one's color. All of them call it.
    weir_status (*split)(struct local_run *run, const struct local_part *part,
                         struct local_group **out_group);
    // Keeps the cause unless there is one already, and tells the other ranks.
    void (*fail)(struct local_group *group, const struct weir_cause *cause);
    // Whether there is a first cause, and copies it, unless that is NULL.
    bool (*cause)(struct local_group *group, struct weir_cause *out_cause);
    void (*leave)(struct local_group *group);
    // Makes a group of the ranks of this one, which has failed, that come here.
    weir_status (*shrink)(struct local_group *group, const struct weir_transport_shrink *shrink,
                          struct local_group **out_group);
};

// What every wire's group begins with.
struct local_group {
    const struct local_wire *wire;
    const struct weir_host *host;
    uint32_t rank;
    uint32_t count;
    bool spans_machines; // carries control only: LOCAL_CONTROL_BYTES
    char label[LOCAL_LABEL_SIZE];
    // These four for local_enlist(): the rank in the group of which this is a part.
    uint32_t origin_rank;
    uint32_t origin_count;
    bool listed;
    struct local_group *next;
};

// group.c

// How many phases the kind has.
uint32_t local_phases(uint32_t kind);
// The piece of `owner` that `reader` needs in the phase. False if it needs none.
bool local_piece(const struct local_run *run, uint32_t phase, uint32_t reader, uint32_t owner,
                 struct local_piece *out_piece);

// Part `index` of run->parts.
static inline const struct weir_transport_part *local_part_at(const struct local_run *run,
                                                              uint32_t index)
{
    const char *first = (const char *)run->parts;
    return (const struct weir_transport_part *)(const void *)(first +
                                                              index * run->parts->struct_size);
}

// A rank that waits for another one.
struct local_wait {
    uint32_t rank;
    uint32_t awaits;
    char call[WEIR_HEAD_TEXT_SIZE];
};
// Appends it to a text of WEIR_CAUSE_SIZE.
void local_append_wait(char *text, const struct local_wait *wait);
// The failure of a wait at the deadline where the last rank waits for the first one.
bool local_circle(const struct local_run *run, const char *waits);
// The same where it is known what the peer waits in meanwhile.
bool local_late_elsewhere(const struct local_run *run, uint32_t peer, const char *elsewhere);

// The phases of a collective, and its end.
bool local_carry(struct local_run *run);
// A call of this rank, which ends `timeout_ns` from now.
struct local_run local_run_begin(struct local_group *group, struct weir_head head,
                                 uint64_t timeout_ns);
weir_status local_run_call(void *group, const struct weir_transport_call *call);
weir_status local_split(void *group, const struct weir_transport_split *split, void **out_part);
bool local_carries_data(const void *group);
void local_place(const void *group, uint32_t *out_rank, uint32_t *out_count);
void local_abort(void *group, const char *reason);
bool local_first_cause(void *group, struct weir_transport_cause *out_cause);
void local_leave(void *group);

// From now on until local_delist() the group is known to the others of its rank. Again: nothing.
void local_enlist(struct local_group *group);
void local_enlist_part(const struct local_group *whole, struct local_group *part);
void local_delist(struct local_group *group);
// "all-reduce 1 (app.c:99) of 'part' for its rank 0".
void local_describe_elsewhere(const struct local_group *group, const struct weir_head *head,
                              uint32_t awaits, char text[LOCAL_ELSEWHERE_SIZE]);
// Visits the other groups of the rank, with a lock of all groups.
void local_for_others(const struct local_group *own,
                      void (*visit)(struct local_group *group, void *user), void *user);

weir_status local_shrink(void *group, const struct weir_transport_shrink *shrink, void **out_group);
// How long the ranks that are there wait for those that are not.
uint64_t local_shrink_patience(const struct weir_transport_shrink *shrink);
// The failure of a rank that has come too late.
weir_status local_shrink_without(const struct local_group *group);

#endif
