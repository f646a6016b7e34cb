// The transport "local": what its files share.
//
// A group's part that knows no wire (group.c) numbers and checks calls and keeps the first cause of a
// failure; call.c compares calls and says which piece of whose memory each rank needs for a collective, in one or two
// phases; a wire carries those pieces: hub.c within a process, mesh.c between processes.
//
// The arithmetic has one order: each element of a reduction is ((x0 + x1) + x2) + …, in the order of
// ranks, whatever the count of elements and whichever the wire.
#ifndef WEIR_LOCAL_LOCAL_H
#define WEIR_LOCAL_LOCAL_H

#include <stdbool.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#define LOCAL_LABEL_SIZE 64
#define LOCAL_FILE_SIZE 64
#define LOCAL_CAUSE_SIZE 384
#define LOCAL_CALL_SIZE 128
#define LOCAL_ELSEWHERE_SIZE 192
#define LOCAL_MAX_RANKS 4096u

// Reductions go through a buffer of this size, which stays in a core's own cache.
#define LOCAL_SEGMENT_BYTES ((size_t)128 << 10)

// What a rank sends at most in a call of a group of several machines: the beats of engines' communicators.
#define LOCAL_CONTROL_BYTES ((size_t)64 << 10)
#define LOCAL_MPI_REMEDY \
    "run it under mpirun with WEIR_COMM_TRANSPORT=mpi, which carries host memory between machines"

// What a rank says of a call to the ranks that take part, before the first byte.
enum { // kinds beside those of weir_collective
    LOCAL_SPLIT = 100,
    LOCAL_MEETING = 101,
};

struct local_head {
    uint32_t kind;
    uint32_t element;
    uint32_t reduction;
    uint32_t root;
    uint64_t count;
    uint64_t number;
    int32_t line;
    char file[LOCAL_FILE_SIZE]; // the end of the file's name; "" if it is not known
};

struct local_group;

// The first cause of a group's failure, as data and as a sentence.
struct local_cause {
    uint64_t number;
    uint32_t fault; // enum weir_transport_fault
    uint32_t rank;  // at fault; UINT32_MAX: none is known
    char text[LOCAL_CAUSE_SIZE];
};

// One collective of one rank.
struct local_run {
    struct local_group *group;
    struct local_head head;
    const void *src;
    void *dst;
    const struct weir_transport_part *parts;
    uint32_t part_count;
    uint64_t timeout_ns;
    uint64_t deadline_ns; // of weir_clock_now_ns(); UINT64_MAX: none
    bool differs; // another rank has called something else: the deadline is local_judge_by()'s
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

// One wire. Functions that return a bool have failed the group (local_fail()) when that is false.
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
    // Sets what other ranks must know of this one to reach it in a part.
    bool (*offer)(struct local_run *run, struct local_record *record);
    // Makes the group of the ranks whose record has this one's color. All of them call it.
    weir_status (*split)(struct local_run *run, const struct local_part *part,
                         struct local_group **out_group);
    // Keeps the cause unless there is one already, and tells the other ranks.
    void (*fail)(struct local_group *group, const struct local_cause *cause);
    // Copies the first cause, if there is one; `failed` its text.
    bool (*cause)(struct local_group *group, struct local_cause *out_cause);
    bool (*failed)(struct local_group *group, char *out_cause);
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

// call.c

// How many phases the kind has.
uint32_t local_phases(uint32_t kind);
// The piece of `owner` that `reader` needs in the phase. False if it needs none.
bool local_piece(const struct local_run *run, uint32_t phase, uint32_t reader, uint32_t owner,
                 struct local_piece *out_piece);

// How a rank gets the pieces where it reads the others' memory itself.
struct local_reads {
    bool (*copy)(struct local_run *run, uint32_t owner, const struct local_piece *piece);
    // Reduces `size` bytes, at most LOCAL_SEGMENT_BYTES, of each owner's piece, from `at` on.
    bool (*reduce_segment)(struct local_run *run, uint32_t phase, size_t at, size_t size);
};

// Gets all pieces that this rank needs in the phase.
bool local_read_pieces(struct local_run *run, uint32_t phase, const struct local_reads *reads);

struct local_head local_head_of(const struct weir_transport_call *call);
struct local_head local_head_of_split(const struct weir_transport_split *split, size_t record_size);
// Fails the group, for something on this rank alone: "all-reduce 17 of 'grads', app.c:120: " and the
// rest. Returns false.
bool local_fail(const struct local_run *run, const char *format, ...) WEIR_PRINTF(2, 3);
static inline bool local_is_reduction(uint32_t kind)
{
    return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

// Whether all ranks take part, and count it.
static inline bool local_is_numbered(uint32_t kind)
{
    return kind != WEIR_SEND && kind != WEIR_RECV && kind != WEIR_EXCHANGE;
}

// Part `index` of run->parts.
static inline const struct weir_transport_part *local_part_at(const struct local_run *run,
                                                              uint32_t index)
{
    const char *first = (const char *)run->parts;
    return (const struct weir_transport_part *)(const void *)(first +
                                                              index * run->parts->struct_size);
}
// Whether `peer`, which has called `theirs`, and this rank have called the same collective. Fails the
// group if not, and says both calls.
bool local_same(const struct local_run *run, uint32_t peer, const struct local_head *theirs);
bool local_is_same(const struct local_head *own, const struct local_head *theirs);
// What the ranks that have come to a collective have called.
struct local_met {
    const struct local_run *run;
    uint32_t come; // of the hub: the ranks before it have
    // Of another rank; NULL: it has not come.
    const struct local_head *(*head_of)(const struct local_met *met, uint32_t rank);
};
// Whether all that have come have called the same. Fails the group if not, and names the rank that
// differs from more than half of them.
bool local_judge(const struct local_met *met);
// Until when, after a difference, the other ranks are waited for.
uint64_t local_judge_by(uint64_t deadline_ns);
// The failure of a wait for `peer` at the deadline; `last` is its latest call, or NULL.
bool local_late(const struct local_run *run, uint32_t peer, const struct local_head *last);
// "recv (app.c:120)"; the other rank, whose head it may be, names its file as it likes.
void local_describe(const struct local_head *head, char *text, size_t size);
// A rank that waits for another one.
struct local_wait {
    uint32_t rank;
    uint32_t awaits;
    char call[LOCAL_CALL_SIZE];
};
// Appends it to a text of LOCAL_CAUSE_SIZE.
void local_append_wait(char *text, const struct local_wait *wait);
// The failure of a wait at the deadline where the last rank waits for the first one.
bool local_circle(const struct local_run *run, const char *waits);
// The same where it is known what the peer waits in meanwhile.
bool local_late_elsewhere(const struct local_run *run, uint32_t peer, const char *elsewhere);
// The failure of a wait for a peer that has left.
bool local_gone(const struct local_run *run, uint32_t peer, const struct local_head *last);
// The failure of a peer whose connections have ended.
bool local_died(const struct local_run *run, uint32_t peer, const struct local_head *last);

// group.c

// The phases of a collective, and its end.
bool local_carry(struct local_run *run);
// For the wires' `failed`.
bool local_failed(struct local_group *group, char *out_cause);
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
void local_describe_elsewhere(const struct local_group *group, const struct local_head *head,
                              uint32_t awaits, char text[LOCAL_ELSEWHERE_SIZE]);
// Visits the other groups of the rank, with a lock of all groups.
void local_for_others(const struct local_group *own,
                      void (*visit)(struct local_group *group, void *user), void *user);
// Copies a group, with that lock.
bool local_find_listed(bool (*is_it)(const struct local_group *group, const void *user),
                       const void *user, struct local_group *out_group);

weir_status local_shrink(void *group, const struct weir_transport_shrink *shrink, void **out_group);
// How long the ranks that are there wait for those that are not.
uint64_t local_shrink_patience(const struct weir_transport_shrink *shrink);
// The failure of a rank that has come too late.
weir_status local_shrink_without(const struct local_group *group);

// hub.c

// Rank setup->rank of a group whose ranks are threads of this process and name the same NAME.
weir_status local_hub_join(const struct weir_host *host, const struct weir_transport_setup *setup,
                           const char *name, struct local_group **out_group);

#endif
