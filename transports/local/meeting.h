// How processes meet: rank 0 opens a door at the rendezvous, all others come there and say where their own doors
// are; after the last one has come rank 0 sends the whole list to each.
#ifndef WEIR_LOCAL_MEETING_H
#define WEIR_LOCAL_MEETING_H

#include "transports/local/place.h"

// How long an answer may take that is written, or read, in one go.
#define LOCAL_REPLY_NS (UINT64_C(500) * 1000 * 1000)

// What rank 0 answers a hello with; without a refusal a struct local_entry of each rank follows.
struct local_welcome {
    uint64_t token; // of the group
    uint32_t refused;
    char cause[LOCAL_CAUSE_SIZE];
};

// Where a rank's door is. An empty host is that of rank 0.
struct local_entry {
    char host[LOCAL_HOST_SIZE];
    struct local_machine machine;
    uint32_t number;
    uint32_t port;
};

// join() at "tcp://…", "unix:…" and "file:…". `maps_memory`: ranks of one machine share memory, as far as all have the
// setting. `secret_file`: a path, or "".
weir_status local_mesh_join(const struct weir_host *host, const struct weir_transport_setup *setup,
                            const char *secret_file, bool maps_memory,
                            struct local_group **out_group);

#define LOCAL_FILES_REMEDY \
    "raise the limit of open files (ulimit -n): each rank has two for each other rank"

#endif
