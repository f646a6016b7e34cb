// How processes meet: rank 0 opens a door at the rendezvous, all others come there and say where their own doors
// are; after the last one has come rank 0 sends the whole list to each.
#ifndef WEIR_LOCAL_MEETING_H
#define WEIR_LOCAL_MEETING_H

#include <sys/stat.h>
#include <weir/module/transport.h>

#include "transports/local/door.h"
#include "transports/local/local.h"

// The place where ranks meet: what a rendezvous names, and how rank 0 opens a door there and others find it.
//
//     process:NAME     a name in this process's memory
//     unix:PATH        a socket in a folder that this user alone can enter
//     tcp://HOST:PORT  on the machine that has HOST a socket in such a folder in /tmp, so that nothing listens on a
//                      network; where a secret is set and HOST is no loopback address, HOST's port too, for the ranks
//                      of other machines
//     file:PATH        a file that this user alone can read, made by rank 0, with a secret of its own and the
//                      numbers of its door; other machines see it on a file system of theirs

struct local_place {
    struct local_place *next; // of the names of this process
    const struct weir_transport_setup *setup;
    const char *secret_file; // the setting
    uint64_t deadline_ns;
    bool is_file;
    bool is_name;
    char path[512];               // of the socket or the file, or a name
    struct local_address socket;  // on this machine; size 0: this rank comes over the network
    struct local_address network; // size 0: none
    struct local_secret secret;
    uint64_t token;     // of the file or the name; else 0
    char unread[256];   // why the file has not been read; "": it has been, or is none
    struct stat bound;  // rank 0's socket, so that no other one is removed
    weir_status status; // of a failure, with:
    const char *remedy;
    char cause[WEIR_CAUSE_SIZE];
};

// That of WEIR_COMM_SECRET, else of the file, whose path may be empty, else none. False with a sentence: too
// short, or a file that another user can read or write.
bool local_secret_read(const char *path, struct local_secret *out_secret, char *message,
                       size_t message_size);

// Writes "'grads': " and the rest as the cause, and returns false.
bool local_place_fail(struct local_place *place, weir_status status, const char *remedy,
                      const char *format, ...) WEIR_PRINTF(4, 5);

// Of rank 0: opens a door, at the network too unless that is NULL. False with a cause.
bool local_place_listen(struct local_place *place, struct local_door *door,
                        const struct local_address *network);
// Of rank 0: opens the door there. False with a cause: among others, another rank 0 is there.
bool local_place_open(struct local_place *place, struct local_door *door);
// Of rank 0: closes the door, and what is at the place goes. False with a cause if another rank 0 has come to it since.
bool local_place_close(struct local_place *place, struct local_door *door);
// Of another rank: comes to rank 0, with patience until the deadline, and tells in `hello` where its own door is, which
// is opened. A connection, or -1 with a cause.
int local_place_knock(struct local_place *place, struct local_door *door,
                      struct local_hello *hello);
// The network address for a rank's own door; NULL: others do not come over the network.
const struct local_address *local_place_network(const struct local_place *place);

// How long an answer may take that is written, or read, in one go.
#define LOCAL_REPLY_NS (UINT64_C(500) * 1000 * 1000)

// What rank 0 answers a hello with; without a refusal a struct local_entry of each rank follows.
struct local_welcome {
    uint64_t token;              // of the group
    char cause[WEIR_CAUSE_SIZE]; // of a refusal; "": it is none
};

// Where a rank's door is. An empty host is that of rank 0.
struct local_entry {
    char host[LOCAL_HOST_SIZE];
    struct local_machine machine;
    uint32_t number;
    uint32_t port;
};

// What rank 0 writes to a file.
#define LOCAL_RENDEZVOUS "weir-rendezvous 3\n"
struct local_rendezvous {
    char magic[24]; // the text
    struct local_entry door;
    uint64_t token;
    uint8_t key[32]; // of the secret
};

// The state of the transport.
struct local_transport {
    const struct weir_host *host;
    const char *secret_file; // a path, or ""; of the settings, which outlive this
};

// The module's join(), with a struct local_transport as the state. The group is a struct local_group.
weir_status local_join(void *state, const struct weir_transport_setup *setup, void **out_group);

#define LOCAL_SECRET_REMEDY                                                                  \
    "set WEIR_COMM_SECRET to one text of 16 characters or more on all machines, or let the " \
    "ranks meet at file:PATH on a file system that all see"
#define LOCAL_FOLDER_REMEDY \
    "name a socket in a folder of yours that no other user can enter (chmod 700)"
#define LOCAL_PLACE_REMEDY                                                                  \
    "name a place where the ranks meet, such as in WEIR_COMM_RENDEZVOUS: tcp://HOST:PORT, " \
    "unix:PATH, file:PATH, or for ranks of one process process:NAME"
#define LOCAL_FILES_REMEDY \
    "raise the limit of open files (ulimit -n): each rank has two for each other rank"

#endif
