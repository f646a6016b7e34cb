// The wire within a process: a hub, which the groups of all its ranks share. A rank shows its memory,
// and the others copy from there.
//
// Ranks agree by tickets: each takes its next one when it comes to a call, between two phases, and at
// the end; and goes on when all have as many. What a rank shows for a call stays until all have
// taken the ticket at its end.
//
// A rank whose call has failed waits for copies from its memory that are under way, and only for those.
#ifndef WEIR_LOCAL_HUB_H
#define WEIR_LOCAL_HUB_H

#include <pthread.h>

#include "transports/local/local.h"

// A message that waits for its receiver.
struct hub_post {
    struct hub_post *next;
    struct local_head head;
    const void *memory;
    bool received;
};

struct hub_rank {
    bool here; // has joined
    bool left;
    bool shrinks; // has come to go on with the ranks that are left
    bool waits;   // for `awaits`
    uint32_t awaits;
    struct local_head waiting; // the call in which it does
    bool has_head;
    struct local_head head; // its latest collective
    const char *src;
    char *dst;
    uint64_t ticket;
    uint32_t readers; // copies from its memory that are under way
};

struct hub {
    struct hub *next; // in the list of hubs that are not complete
    const struct weir_host *host;
    pthread_mutex_t lock; // guards all that follows
    pthread_cond_t changed;
    uint32_t count;
    uint32_t joined;
    uint32_t members; // groups that have not left
    bool complete;    // all have joined, whatever has failed since
    bool failed;
    struct local_cause cause;
    bool shrunk; // the ranks that go on are known
    struct hub_rank *ranks;
    struct hub_post **posts; // the oldest from rank i to rank j at i * count + j
    uint64_t id;
    char name[];
};

struct hub_group {
    struct local_group local;
    struct hub *hub;
    char circle[LOCAL_CAUSE_SIZE]; // of the wait that has just ended; "": it was in none
};

enum hub_outcome {
    HUB_THERE,
    HUB_FAILED,
    HUB_LEFT,
    HUB_LATE,
    HUB_OTHER
};

extern const struct local_wire local_hub_wire;

struct hub *local_hub_of(const struct local_run *run);
// With the lock: waits for a change. False at the deadline.
bool local_hub_wait(struct hub *hub, uint64_t deadline_ns);
// With the lock, around a wait for `peer` within a call. The end returns which rank has kept this one waiting:
// the peer or, if it was late because another one was, that one.
void local_hub_begin_wait(const struct local_run *run, uint32_t peer);
uint32_t local_hub_end_wait(const struct local_run *run, enum hub_outcome outcome);
// The failure for an outcome that is not HUB_THERE; `head` is the peer's call, if `has_head`.
bool local_hub_failure(const struct local_run *run, enum hub_outcome outcome, uint32_t peer,
                       bool has_head, const struct local_head *head);
// Waits for copies from this rank's memory that are under way; the group has failed.
void local_hub_drain(const struct local_run *run);
bool local_hub_messages(struct local_run *run);
weir_status local_hub_split(struct local_run *run, const struct local_part *part,
                            struct local_group **out_group);
void local_hub_leave(struct local_group *group);
weir_status local_hub_shrink(struct local_group *group, const struct weir_transport_shrink *shrink,
                             struct local_group **out_group);

#endif
