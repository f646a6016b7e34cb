// The wire between processes: two connections between each two ranks (door.h). One carries heads and bytes,
// in an order that both sides know from their calls. The other one, the control connection, carries
// only the cause of a failure, or that a rank leaves; its end without either is a rank that has died. A rank
// whose time is nearly over asks there for whom the others wait. After a failure the ranks that are left settle
// there which of them go on (below).
//
// Ranks of one machine have sockets of it, and share memory for what is large (window.h). Between machines this is
// the line of control for ranks whose devices' memory an engine carries: it takes a few bytes at a time.
//
// No thread serves them: a call looks after all connections while it waits.
#ifndef WEIR_LOCAL_MESH_H
#define WEIR_LOCAL_MESH_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "transports/local/door.h"
#include "transports/local/local.h"

// Bytes that are to be sent, or received, in the order of a peer's list.
struct mesh_span {
    struct mesh_span *next;
    char *at;
    size_t left;
    struct weir_head *head; // a head that is received: compared as soon as it is there
    const struct weir_transport_part *message; // whose head; NULL: the collective's
    struct mesh_message *lent;                 // whose bytes are taken when the span is there
};

struct mesh_list {
    struct mesh_span *first;
    struct mesh_span **end;
};

// Where a rank waits for no other one.
#define MESH_NONE UINT32_MAX

// So many news of a control connection are read at a time: one that says things without end keeps no call from its
// deadline.
#define MESH_MOST_NEWS 64

// What control connections carry.
enum mesh_news_kind {
    MESH_FAILED = 1,
    MESH_LEAVES = 2,
    MESH_TELLS = 3,   // these two as below
    MESH_SETTLED = 4, // a struct mesh_member for each follows
    MESH_ASKS = 5,    // for whom the peer waits, now and when that changes
    MESH_WAITS = 6,
    MESH_ELSEWHERE = 7 // it waits in another group, or waits no more
};

struct mesh_news {
    uint32_t kind;
    // SETTLED: how many members follow; ASKS: 0: no more; WAITS: for which rank
    uint32_t number;
    uint64_t value;          // TELLS: the value; SETTLED: the token of the list
    uint32_t step;           // of these two
    struct weir_cause cause; // FAILED; WAITS and ELSEWHERE: its text, the call in which it does
};

// A rank and what it has told.
struct mesh_member {
    uint64_t value;
    uint32_t rank;
    uint32_t unused;
};

struct mesh_peer {
    int data;
    int control;
    struct local_address address; // of its door's host, or of the machine
    bool left;                    // its control connection has ended, or it has said that it leaves
    bool died;                    // it has not said so
    bool asks;                    // it wants to know for whom this rank waits
    uint32_t awaits; // the rank for which it waits, as it has said; MESH_NONE: it has not
    char waits_in[WEIR_HEAD_TEXT_SIZE];   // the call in which it does
    char elsewhere[LOCAL_ELSEWHERE_SIZE]; // the one of another group; "": it has not said so
    bool has_come;                        // to the collective, with its head
    bool has_head;
    struct weir_head head;     // its latest collective
    struct weir_head incoming; // its next one
    struct mesh_list in;
    struct mesh_list out;
    struct mesh_span spans[4]; // of a collective: head and bytes, each way
    struct mesh_message *lent; // to it, and not yet taken
    struct mesh_news news;
    size_t news_size;   // received of it
    uint32_t told_step; // these two: what it has told last
    uint64_t told;
};

struct mesh_group {
    struct local_group local;
    pthread_mutex_t lock; // guards `failed`, `cause` and what is sent to control connections
    uint32_t awaits;      // MESH_NONE: this rank does not wait
    bool elsewhere;       // the other groups of the rank have been told that it waits in this one
    uint64_t asked_ns; // the deadline of the call for which the others are asked; 0: they are not
    bool failed;
    struct weir_cause cause;
    bool in_process;              // all ranks are threads of this process
    struct local_room *room;      // theirs
    bool maps_memory;             // where it can: the setting `memory`
    struct mesh_windows *windows; // of all ranks; NULL: all bytes go over the connections
    bool eager;                   // there are no more ranks than processors
    int wake;                     // an eventfd: abort() while a call waits
    struct local_secret secret;   // of ranks of other machines
    struct local_door *door;      // of a split
    unsigned forks;               // before it was made: socket.h
    uint32_t step;                // of those that go on after a failure
    bool left_out;                // they have gone on without this rank
    char *staging;                // a segment of each rank, for reductions
    size_t segment;
    struct mesh_peer *peers; // this rank's own is unused
    struct pollfd *polls;
};

extern const struct local_wire local_mesh_wire;

struct mesh_group *local_mesh_of(const struct local_run *run);
// Receives the next news of a peer into peer->news, if all of it is there.
bool local_mesh_next_news(struct mesh_peer *peer);
// Within a wait for others, of which `first` is the first: tells those that have asked, asks when the time is nearly over.
// False at the deadline.
bool local_mesh_may_wait(struct local_run *run, uint32_t first);
void local_mesh_wait_ends(const struct local_run *run);
// Takes the head of a peer's collective. One that is another is judged when all are there.
void local_mesh_take_head(struct local_run *run, uint32_t index, const struct weir_head *head);
// Whether a peer sends no message, where it is to come to a collective.
bool local_mesh_sends_nothing(const struct local_run *run, uint32_t index);
// Reads what a peer's control connection has. False once that has failed the group. The end of a peer
// does not: it may have sent all that this call needs.
bool local_mesh_read_news(const struct local_run *run, uint32_t index);
// The data connection of a peer has ended, or its memory: fails the group with what its control
// connection says.
bool local_mesh_lost(const struct local_run *run, uint32_t index);
// Allocates the staging memory, once.
bool local_mesh_offer(struct local_run *run, struct local_record *record);
weir_status local_mesh_split(struct local_run *run, const struct local_part *part,
                             struct local_group **out_group);

// Opens a door at which ranks of the group reach this one. NULL with errno.
void local_mesh_door_close(const struct mesh_group *group, struct local_door *door);
// Where a peer's door with these numbers is.
weir_status local_mesh_shrink(struct local_group *group, const struct weir_transport_shrink *params,
                              struct local_group **out_group);

// An empty group with no connections; NULL if out of memory or of descriptors.
struct mesh_group *local_mesh_create(const struct weir_host *host, const char *label, uint32_t rank,
                                     uint32_t count);
void local_mesh_destroy(struct mesh_group *group);
// Whether this process is a child that has got the group by fork(), and has nothing of it but memory.
bool local_mesh_is_inherited(const struct mesh_group *group);

struct mesh_gather;

// Connects this rank with all others of the group, which do the same. `addresses` of ranks are where
// their doors are. `gather` is NULL, or knows whether the wait for another rank is in vain. On failure
// writes the cause, unless it was in vain.
bool local_mesh_connect(struct mesh_group *group, const struct local_address *addresses,
                        struct local_door *door, uint64_t token, uint64_t deadline_ns,
                        struct mesh_gather *gather, char *cause);

// After that: what all ranks must agree on.
bool local_mesh_begin(struct mesh_group *group, uint64_t token, uint64_t timeout_ns,
                      uint64_t deadline_ns, char *cause);

// Collects a record of each rank of a new group. False if that has failed the group.
bool local_mesh_all_gather(struct mesh_group *group, uint64_t timeout_ns, uint64_t deadline_ns,
                           const void *record, size_t size, void *records);

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

// Values of the second step.
enum {
    MESH_JOINED = 1,
    MESH_NOT_JOINED = 2,
    MESH_IN_VAIN = 3 // not, because another one has not
};

struct mesh_gather {
    struct mesh_group *whole;
    uint64_t patience_ns; // of the rank that gathers; the others have twice as much with it
    uint64_t deadline_ns; // of weir_clock_now_ns(), for all steps
    bool *awaited;        // the ranks of the step, as far as they are waited for
    bool in_vain;         // local_mesh_gather_is_in_vain() was
    bool settled;         // the list is there:
    uint32_t count;
    uint64_t token;
    struct mesh_member *members; // these two have room for all ranks of the whole
    struct mesh_member *spare;
};

// Bytes between the processes of one machine, through memory that all ranks have mapped: each copies to its window
// what others need of it, and they take it or add it up from there. That is a copy more than reading the others'
// memory, and yet faster, for the kernel does not have to look up their pages; and ranks wait for each other by words
// in the windows, without messages.
//
// Ranks agree on it when a group is made: each hands its window to each other one over their connection, as a
// descriptor of memory without a name whose size is sealed. What is read belongs to the group, and not to the caller,
// so a rank whose call has failed may return at once.

// Threads of one process have their windows in a room of the group, with no areas, and read each other's memory
// itself. A rank whose call has failed waits for the copies from its memory that are under way.

// What a rank shows of its own.
struct mesh_window {
    _Atomic uint32_t stage;
    _Atomic uint32_t bell; // of its rank, which sleeps there
    _Atomic uint32_t asleep;
    _Atomic int cpu; // where its rank was when it came to the stage
    // In a room:
    _Atomic bool closed;      // its memory may not be read any more
    _Atomic uint32_t readers; // copies from its memory that are under way
    const void *src;          // these two of its latest collective
    void *dst;
    int wake; // its group's plus 1; 0: it is not there
    // Of its collectives, at their first stages: an odd and an even one.
    struct weir_head heads[2];
};

struct local_room {
    struct local_room *next;
    uint64_t token;
    uint32_t members;
    struct mesh_window windows[];
};

// Enters the room of the token, which is made by the first rank and goes with the last; NULL: no memory.
struct local_room *local_room_enter(const struct local_group *group, uint64_t token, int wake);
void local_room_leave(const struct local_group *group, struct local_room *room);
// Ends the poll() of another rank's call.
void local_room_wake(struct local_room *room, uint32_t rank);

// Uses the room of the token. False: no memory.
bool local_window_enter(struct mesh_group *group, uint64_t token);
// Whether memory of the rank may be read, until unpin.
bool local_window_pin(struct mesh_group *group, uint32_t rank);
void local_window_unpin(struct mesh_group *group, uint32_t rank);
// After a failure: returns when no rank reads memory of this one any more.
void local_window_close(struct mesh_group *group);
// Wakes all ranks, which look whether one has failed.
void local_window_wake(struct mesh_group *group);
// Whether the rank has come to a collective to which this one has not, and its call.
bool local_window_is_ahead(struct mesh_group *group, uint32_t rank, struct weir_head *out_head);

// Exchanges windows, if all ranks can. False if that has failed the group.
bool local_window_agree(struct mesh_group *group, uint64_t timeout_ns, uint64_t deadline_ns);
void local_window_destroy(struct mesh_group *group);
// Whether the call's bytes go that way: the same answer on all ranks.
bool local_window_takes(const struct local_run *run);
// The parts of a collective. False once that has failed the group.
bool local_window_meet(struct local_run *run);
bool local_window_phase(struct local_run *run, uint32_t phase);
bool local_window_end(struct local_run *run);

#endif
