// The frame of a peer: a program that does the same work as a Weir benchmark with
// another API, or with Weir in the same frame. It checks its results, then takes each of
// its measurements once per round, and prints one line of JSON per round.
//
//     {"peer": "raw_cuda_chunks", "device": "NVIDIA H200", "checked": 17}
//     {"round": 0, "ms": {"both_ways": 21.1, "one_queue": 42.5}}
//
// With --rounds N it measures N rounds. With --serve it measures one whenever it reads a
// line, until its input ends, so that side_by_side.py can alternate between several
// programs. A warm-up round comes first and is not printed. A program that cannot run
// here prints {"peer": ..., "skipped": "why"} and ends with status 0.
#ifndef WEIR_TESTS_BENCH_PEERS_PEER_H
#define WEIR_TESTS_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// --NAME VALUE on the command line: a text, or a number, in which K, M and G are binary.
struct peer_option {
    const char *name;
    const char *help;
    uint64_t *value; // the default, until it is given; NULL: a text
    uint64_t least;
    uint64_t most;
    const char **text; // "" until it is given
};

struct peer {
    const char *name;
    const char *about; // one line
    const struct peer_option *options;
    size_t option_count;
    // Sets everything up and checks every result. False after peer_skip() or
    // peer_fail(). close() is called in any case.
    bool (*open)(void *user);
    // Measures everything once, with a peer_value() for each figure.
    bool (*round)(void *user);
    void (*close)(void *user);
};

// The value that main() returns.
int peer_main(const struct peer *peer, void *user, int argc, char **argv);

// For the first line.
void peer_device(const char *name);
void peer_fact(const char *name, double value);
void peer_checked(uint64_t results);

// A figure of this round, in milliseconds.
void peer_value(const char *name, double ms);

// Both return false.
bool peer_skip(const char *format, ...);
bool peer_fail(const char *format, ...);

double peer_now_ms(void);

#endif
