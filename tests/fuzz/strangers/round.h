// Fuzzers of what arrives from strangers and from peers: in each round a hostile side, on a thread of its own, says
// damaged things to the real functions, which the caller runs.
//
// In every round: nothing more is believed than what was said rightly; the function returns soon after its
// deadline; and no descriptor and no memory is left.
#ifndef WEIR_TESTS_FUZZ_STRANGERS_ROUND_H
#define WEIR_TESTS_FUZZ_STRANGERS_ROUND_H

#include <pthread.h>
#include <stdatomic.h>
#include <weir/module/module.h>

#include "transports/local/local.h"

#define ROUND_MS UINT64_C(1000000)

enum {
    ROUND_OPEN = 256,
    ROUND_PEERS = 3 // of most rounds, with the rank under test
};

// What all rounds have.
struct world {
    const struct weir_host *host;
    char folder[128]; // of this user alone
    char secret_file[160];
    struct local_secret secret;
    struct local_secret other;
    struct local_address loopback;
    struct local_address network; // size 0: this machine has no address that others reach
};

struct round {
    const struct world *world;
    uint32_t state; // of damage_below(); the hostile side's, once it has begun
    void (*attack)(struct round *round);
    pthread_t thread;
    atomic_bool returned; // the functions under test have
    uint64_t hellos;
    uint64_t believed;
    uint64_t over_ns;            // the latest return past a deadline
    const char *broken;          // the rule
    struct weir_head head;       // of the call under test
    bool said_head[ROUND_PEERS]; // that one, by each rank
    uint32_t open_count;
    int open[ROUND_OPEN]; // of the hostile side
};

// The fuzzers, of one round each.
void round_of_door(struct round *round);
void round_of_knock(struct round *round);
void round_of_meeting(struct round *round);
void round_of_guest(struct round *round);
void round_of_call(struct round *round);
void round_of_shrink(struct round *round);

// Starts the hostile side, and waits for its end.
void round_begin(struct round *round, void (*attack)(struct round *round));
void round_end(struct round *round);
// A function with that deadline has returned.
void round_returned(struct round *round, uint64_t deadline_ns);

// One of `parts` times.
bool round_is_one_of(struct round *round, size_t parts);
// Changes some of the bytes.
void round_damage(struct round *round, void *bytes, size_t size);
// Says it, at times in two pieces or only some of it: whether all was said.
bool round_say(struct round *round, int connection, const void *bytes, size_t size);
bool round_hear(int connection, void *bytes, size_t size);
// Keeps a descriptor until the end of the round; -1 stays -1.
int round_keep(struct round *round, int descriptor);
int round_connect(struct round *round, const struct local_address *address);
int round_listen(struct round *round, const struct local_address *address, uint32_t *out_number);
// Waits a short time.
int round_accept(struct round *round, int listener);

// Comes to a door and says the hello, which it may damage: whether a door with the world's secret must take
// it for a rank's. `*out_connection`: -1, or the connection.
bool round_hello(struct round *round, const struct local_address *address,
                 struct local_hello *hello, size_t damaged_one_of, int *out_connection);

// Offers a window on a peer's connection for data, as when a group is made, or what is none: whether it was one.
bool round_offer(struct round *round, int data);
// Says anything that a peer could, and what none does, on the connections of ROUND_PEERS ranks: some pieces, or at
// times without an end until the functions have returned. `kinds`: the news among which it chooses.
void round_chatter(struct round *round, const int *data, const int *control, uint32_t kinds);

#endif
