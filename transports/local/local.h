// The transport "local": what its files share.
//
// Groups are made in group.c, and calls in mesh.c. On one machine ranks compare their calls, wait for each other and move
// bytes in windows, memory that they share. Each two ranks have two connections (door.h says whose they may be).
// One carries messages, and between machines all that there is, in an order that both sides know from their calls. The
// other one, the control connection, carries only the cause of a failure, or that a rank leaves; its end without either is
// a rank that has died. After a failure the ranks that are left settle there which of them go on.
//
// Between machines this is the line of control for ranks whose devices' memory an engine carries: it takes barriers,
// messages and all-gathers of a few bytes. No thread serves the connections: a call looks after all of them while it waits.
//
// The arithmetic has one order: each element of a reduction is ((x0 + x1) + x2) + …, in the order of ranks, whatever the
// count of elements.
#ifndef WEIR_LOCAL_LOCAL_H
#define WEIR_LOCAL_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <weir/module/error.h>
#include <weir/module/transport.h>

#include "transports/kit/call.h"
#include "transports/local/door.h"

#define LOCAL_ELSEWHERE_SIZE 192
#define LOCAL_MAX_RANKS 4096u

// What a rank sends at most in a call of a group of several machines, without windows: the beats of engines' communicators.
#define LOCAL_CONTROL_BYTES ((size_t)64 << 10)

struct local_group;

// One collective of one rank.
struct local_run {
    struct weir_caller by;
    struct local_group *group;
    const struct weir_transport_call *call; // that of a split is an all-gather
    bool differs;    // another rank has called something else: the deadline is weir_judge_by()'s
    bool met;        // in windows: all have come, and have called the same
    size_t given_at; // what this rank has got in the last move, in the areas of the others
};

// What each rank says in a split.
struct local_record {
    int32_t color;
    int32_t key;
    uint64_t token; // of its part, if it is rank 0 there
    struct local_where door;
};

// One way of a data connection in a call: messages, each a head and its bytes, in the order of the parts of both sides.
struct mesh_way {
    bool busy;
    uint32_t next;                          // part, after the one that is under way:
    const struct weir_transport_part *part; // NULL: the collective's
    struct weir_head head;                  // what is received is compared as soon as it is there
    char *memory;
    size_t size;
    size_t done; // of the head and the bytes
};

// So many news of a control connection are read at a time: one that says things without end keeps no call from its
// deadline.
#define MESH_MOST_NEWS 64

// What control connections carry.
enum mesh_news_kind {
    MESH_FAILED = 1,
    MESH_LEAVES = 2,
    MESH_TELLS = 3, // these two of ranks that go on
    MESH_SETTLED = 4
};

struct mesh_news {
    uint32_t kind;
    uint32_t step;  // of TELLS, SETTLED, and of an attempt to go on that has FAILED
    uint64_t token; // SETTLED: of the list
    union {
        struct local_where door;             // TELLS
        struct weir_cause cause;             // FAILED
        uint8_t listed[LOCAL_MAX_RANKS / 8]; // SETTLED: a bit for each rank that goes on
    };
};

struct mesh_peer {
    int data;
    int control;
    struct local_address address; // of its door's host, or of the machine
    bool left;                    // its control connection has ended, or it has said that it leaves
    bool died;                    // it has not said so
    bool has_come;                // to the collective, with its head
    struct weir_head head;        // its latest collective, of number 0 before the first
    struct weir_head incoming;    // its next one
    struct mesh_way in;
    struct mesh_way out;
    struct mesh_news news;
    size_t news_size;   // received of it
    uint32_t told_step; // these two: what it has told last
    struct local_where told;
};

struct local_group {
    struct weir_group base;
    // These three for local_say_elsewhere(): the rank in the group of which this is a part.
    uint32_t origin_rank;
    uint32_t origin_count;
    struct local_group *next;
    pthread_mutex_t lock; // for a failure, and what is sent to control connections then
    bool elsewhere;       // the other groups of the rank have been told that it waits in this one
    struct mesh_window **windows; // of each rank; NULL: they are on several machines
    uint32_t stage;               // of this rank's
    bool eager;                   // there are no more ranks than processors
    struct local_secret secret;   // of ranks of other machines
    uint32_t step;                // attempts to go on after the failure
    bool left_out;                // they have gone on without this rank
    struct mesh_peer *peers;      // of this rank's own `incoming` is its call
    struct pollfd *polls;         // two of each rank, and those of a door
};

static inline struct local_run local_run_begin(struct local_group *group, struct weir_head head,
                                               uint64_t timeout_ns)
{
    return (struct local_run){.by = weir_caller_begin(&group->base, head, timeout_ns),
                              .group = group};
}

weir_status local_run_call(void *group, const struct weir_transport_call *call);
weir_status local_split(void *group, const struct weir_transport_split *split, void **out_part);
weir_status local_shrink(void *group, const struct weir_transport_shrink *shrink, void **out_group);
bool local_carries_data(const void *group);
void local_leave(void *group);

// Shows in the windows of the other groups of the rank what it does in this one.
void local_say_elsewhere(const struct local_group *own, const char *text);

// The call's bytes and its end: of a collective, or the parts of an exchange. False once that has failed the group.
bool local_carry(struct local_run *run);
// As weir_group.fail.
void local_mesh_fail(void *group, const struct weir_cause *cause);
// Receives the next news of a peer into peer->news, if all of it is there: anything but that it leaves.
bool local_mesh_next_news(struct mesh_peer *peer);
// Reads what a peer's control connection has. False once that has failed the group. The end of a peer
// does not: it may have sent all that this call needs.
bool local_mesh_read_news(const struct local_run *run, uint32_t index);

// An empty group with no connections; NULL if out of memory or of descriptors.
struct local_group *local_mesh_create(const struct weir_host *host, const char *label,
                                      uint32_t rank, uint32_t count);
void local_mesh_destroy(struct local_group *group);

struct local_shrink;

// Connects this rank with all others of the group, which do the same, and on one machine exchanges windows. The peers'
// addresses are where the doors of lower ranks are. `shrink` is NULL, or knows whether the wait for another rank is in
// vain. On failure writes the group's cause, unless the attempt has one or there is no memory.
bool local_mesh_connect(struct local_group *group, struct local_door *door, uint64_t token,
                        uint64_t deadline_ns, struct local_shrink *shrink);

// Bytes between the ranks of one machine, through memory that all of them have mapped: each copies to its window what
// others need of it, and they take it or add it up from there. That is a copy more than reading the others' memory, and
// between processes yet faster, for the kernel does not have to look up their pages; and ranks wait for each other by
// words in the windows, without messages.
//
// When a group is made each rank hands its window to each other one over their connection, as a descriptor of memory
// without a name whose size is sealed. What is read belongs to the group, and not to the caller, so a rank whose call has
// failed may return at once.

// A text that may be read while it changes: what is read then is some text.
struct window_text {
    _Atomic char at[LOCAL_ELSEWHERE_SIZE];
};

static inline void local_text_write(struct window_text *text, const char *from)
{
    for (size_t i = 0; i == 0 || (i < sizeof text->at && from[i - 1]); i++)
        atomic_store_explicit(&text->at[i], from[i], memory_order_relaxed);
}

// What a rank shows of its own.
struct mesh_window {
    _Atomic uint32_t stage;
    _Atomic uint32_t bell; // of its rank, which sleeps there
    _Atomic uint32_t asleep;
    _Atomic int cpu; // where its rank was when it came to the stage
    // Where its rank waits long: the rank for which it does, plus 1, and the call; and what it does in another group.
    _Atomic uint32_t awaits;
    _Atomic uint64_t waits_in_number;
    struct window_text waits_in;
    struct window_text elsewhere;
    // Of its collectives, at their first stages: an odd and an even one.
    struct weir_head heads[2];
};

// That of a rank; NULL: there are none.
static inline struct mesh_window *local_window_of(struct local_group *group, uint32_t rank)
{
    return group->windows ? group->windows[rank] : NULL;
}
#define LOCAL_WINDOW_BYTES ((size_t)1028 << 10)
// Makes this rank's window and gets those of the others. False with the group's cause, which stays "" if out of memory.
bool local_window_exchange(struct local_group *group, uint64_t deadline_ns);

// How ranks meet: rank 0 opens a door and leaves at the rendezvous where it is, all others come there and say where
// their own doors are; after the last one has come rank 0 sends the whole list to each.

// What rank 0 answers a hello with; without a refusal a struct local_entry of each rank follows.
struct local_welcome {
    uint64_t token;              // of the group
    char cause[WEIR_CAUSE_SIZE]; // of a refusal; "": it is none
};

// Where a rank's door is. An empty host is that of rank 0.
struct local_entry {
    char host[LOCAL_HOST_SIZE];
    struct local_where where;
};

// What rank 0 leaves at the place.
#define LOCAL_RENDEZVOUS "weir-rendezvous 4\n"
struct local_rendezvous {
    char magic[24]; // the text
    struct local_entry door;
    uint64_t token;
    uint8_t key[32]; // of the secret, for a file that other machines see
};

// The state of the transport.
struct local_transport {
    const struct weir_host *host;
    const char *secret_file; // a path, or ""; of the settings, which outlive this
};

// The module's join(), with a struct local_transport as the state. The group is a struct local_group.
weir_status local_join(void *state, const struct weir_transport_setup *setup, void **out_group);

#endif
