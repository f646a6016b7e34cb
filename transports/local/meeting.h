// How ranks meet: rank 0 opens a door and leaves at the rendezvous where it is, all others come there and say where
// their own doors are; after the last one has come rank 0 sends the whole list to each.
#ifndef WEIR_LOCAL_MEETING_H
#define WEIR_LOCAL_MEETING_H

#include <weir/module/transport.h>

#include "transports/local/door.h"
#include "transports/local/local.h"

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
