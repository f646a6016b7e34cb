// How a connection becomes that of a rank: each is a stranger's until it is proven whose process has made it.
//
// At a socket of the machine the system says which user's process has come, and only this user's is let in. On
// the network both sides prove that they know the secret (below). Only then a byte of what it has said counts.
//
// A door waits in one place, with one deadline, for all that come: strangers have two seconds each, and of more than
// DOOR_GUESTS at a time the oldest one is sent away. So no number of them keeps a rank out, or this one waiting.
#ifndef WEIR_LOCAL_DOOR_H
#define WEIR_LOCAL_DOOR_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transports/local/socket.h"

// The secret that ranks of several machines share, and the proof that one knows it without telling it: each side
// sends a number that is used once, and the other one answers with an authentication code of it and of what it says
// (HMAC-SHA-512-256 of libsodium).

#define LOCAL_MAGIC "weirloc5" // what each side says begins so
#define LOCAL_NONCE_SIZE 32
#define LOCAL_PROOF_SIZE 32
#define LOCAL_SECRET_LEAST 16  // characters
#define LOCAL_SECRET_MOST 4096 // bytes of a file

struct local_secret {
    bool is_set;
    uint8_t key[32];
};

// A secret of the text.
bool local_secret_of(const char *text, size_t size, struct local_secret *out_secret);
// That of WEIR_COMM_SECRET, else of the file, whose path may be empty, else none. False with a sentence: too
// short, or a file that another user can read or write.
bool local_secret_read(const char *path, struct local_secret *out_secret, char *message,
                       size_t message_size);
// A number that tells groups and places apart. It proves nothing: secrets do, and the owner of a socket.
uint64_t local_token(void);

#define LOCAL_JOB_SIZE 64

enum local_purpose {
    LOCAL_TO_MEET = 1, // with rank 0
    LOCAL_TO_SEND,     // the connection for data
    LOCAL_TO_CONTROL
};

// Where a door is: sockets of one machine are reached within it alone.
struct local_where {
    uint8_t machine[16];
    uint32_t number; // of a socket of its machine
    uint32_t port;   // of the network; 0: nowhere
};

// What a rank says first.
struct local_hello {
    char magic[8];
    uint32_t purpose;
    uint32_t rank;
    uint32_t count; // these two to meet
    uint32_t unused;
    uint64_t token; // of the rendezvous, to meet; else of the group
    struct local_where where;
    char job[LOCAL_JOB_SIZE]; // of the launcher; "" if it tells none
};

// `purpose` keeps the proofs of both sides apart.
void local_prove(const struct local_secret *secret, const char *purpose,
                 const uint8_t nonce[LOCAL_NONCE_SIZE], const struct local_hello *hello,
                 uint8_t out_proof[LOCAL_PROOF_SIZE]);
bool local_is_proven(const struct local_secret *secret, const char *purpose,
                     const uint8_t nonce[LOCAL_NONCE_SIZE], const struct local_hello *hello,
                     const uint8_t proof[LOCAL_PROOF_SIZE]);

enum {
    DOOR_GUESTS = 64,
    DOOR_MACHINE = 0, // listeners
    DOOR_NETWORK = 1,
    DOOR_LISTENERS = 2,
    DOOR_POLLS = DOOR_LISTENERS + DOOR_GUESTS
};

// On the network, what a door says first, a rank answers with, and a door ends with.
struct local_challenge {
    char magic[8];
    uint8_t nonce[LOCAL_NONCE_SIZE];
};

struct local_answer {
    struct local_hello hello; // all that is sent at a socket of the machine
    uint8_t nonce[LOCAL_NONCE_SIZE];
    uint8_t proof[LOCAL_PROOF_SIZE];
};

// One that has come, until it has proven to be a rank, and then.
struct local_stranger {
    int connection;
    uint64_t deadline_ns;
    size_t got;
    uint8_t nonce[LOCAL_NONCE_SIZE];
    struct local_answer answer;
    struct local_address from;
};

struct local_door {
    int listeners[DOOR_LISTENERS]; // -1: none
    struct local_where where;
    const struct local_secret *secret;
    uint32_t refused; // which had another secret, or none
    uint32_t count;
    struct local_stranger strangers[DOOR_GUESTS]; // the oldest first
};

// An empty door of no listeners; `secret` must outlive it.
void local_door_init(struct local_door *door, const struct local_secret *secret);
// Listens at a socket of the machine with a number and, if `network` is an address, at a free port there. False
// with errno.
bool local_door_open(struct local_door *door, const struct local_address *network);
void local_door_close(struct local_door *door);

// Waits for the next rank. `polls` has `others` entries of the caller's, whose revents are set, and then room for
// DOOR_POLLS. True: one has come, whose connection is the caller's, or, where that is -1, one of the caller's own
// descriptors has something. False with errno: ETIMEDOUT at the deadline, else what the process lacks.
bool local_door_next(struct local_door *door, struct pollfd *polls, size_t others,
                     uint64_t deadline_ns, struct local_stranger *out_rank);

// Comes to another rank's door: a connection, or -1 with errno. EACCES: it does not take this secret; EPERM: it is
// another user's; EPROTO: it is no rank's.
int local_knock(const struct local_address *address, const struct local_secret *secret,
                struct local_hello *hello, uint64_t deadline_ns);

// A place on this machine, without a door.
struct local_where local_here(void);
// The address of a door: on this machine, or else at `far`, which is NULL or of size 0 where there is none. False: it is not
// reached.
bool local_find_door(const struct local_where *where, const struct local_address *far,
                     struct local_address *out_address);

#endif
