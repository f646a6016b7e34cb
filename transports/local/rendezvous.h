// How processes meet: rank 0 listens at the rendezvous, all others connect to it and tell their rank and
// where they listen; after the last has come rank 0 sends the whole list to each.
#ifndef WEIR_LOCAL_RENDEZVOUS_H
#define WEIR_LOCAL_RENDEZVOUS_H

#include "transports/local/tcp.h"

struct meeting {
    const struct weir_host *host;
    const struct weir_transport_setup *setup;
    bool reads_memory;
    bool maps_memory;
    uint64_t deadline_ns;
    struct local_address place;      // where rank 0 listens
    bool any;                        // it is no loopback address
    uint64_t token;                  // of the group; a file has it too
    int connection;                  // to rank 0
    int listener;                    // of this rank
    uint16_t port;                   // of `listener`
    struct local_address *addresses; // out: where each rank listens
    weir_status status;              // of a failure
    const char *remedy;
    char cause[LOCAL_CAUSE_SIZE];
};

// Writes "'grads': " and the rest as the cause, and returns false.
bool local_meeting_fail(struct meeting *meeting, weir_status status, const char *remedy,
                        const char *format, ...) WEIR_PRINTF(4, 5);

// Set `place` and, of rank 0, `listener`, of others `connection`. "tcp://HOST:PORT"; "file:PATH", which rank 0 writes.
bool local_meeting_at_port(struct meeting *meeting, const char *host_and_port);
bool local_meeting_at_file(struct meeting *meeting, const char *path);

// Waits for all ranks, or for rank 0, and fills in the addresses.
bool local_meeting_receive(struct meeting *meeting);
bool local_meeting_attend(struct meeting *meeting);
// Of a rank 0: whether another one waits at `place` already, which has told so. That is the cause then.
bool local_meeting_is_taken(struct meeting *meeting);

// join() at "tcp://…" and at "file:…"; with `reads_memory`, ranks of one machine read each other's
// memory if they can, and with `maps_memory` besides map memory of each other's.
weir_status local_tcp_join(const struct weir_host *host, const struct weir_transport_setup *setup,
                           bool reads_memory, bool maps_memory, struct local_group **out_group);

#define LOCAL_FILES_REMEDY \
    "raise the limit of open files (ulimit -n): each rank has two for each other rank"

#endif
