// The chunk job of the raw peers: bytes of pinned memory are uploaded, a light kernel
// multiplies them as floats, and they are downloaded, in pieces, in every common order. The
// orders, the checks and the timing are here; a peer provides the calls.
#ifndef WEIR_TESTS_BENCH_PEERS_CHUNK_JOB_H
#define WEIR_TESTS_BENCH_PEERS_CHUNK_JOB_H

#include "tests/bench/peers/peer.h"

enum {
    CHUNK_QUEUES_MAX = 16,
    CHUNKS_MAX = 256,
    CHUNK_BLOCK = 256, // work-items of a block of the kernel
    CHUNK_EVENTS = 2 * CHUNKS_MAX
};

// The calls that a peer provides. All except `open`, `close` and `finish` return at once.
// Errors: false, after peer_fail().
struct chunk_calls {
    // Creates and destroys `count` queues, numbered from 0.
    bool (*open)(void *user, unsigned count);
    void (*close)(void *user);
    bool (*up)(void *user, unsigned queue, size_t offset, size_t size);
    bool (*multiply)(void *user, unsigned queue, size_t offset, size_t size, float factor);
    bool (*down)(void *user, unsigned queue, size_t offset, size_t size);
    // Downloads data that was not multiplied: a bare copy.
    bool (*down_bare)(void *user, unsigned queue, size_t offset, size_t size);
    bool (*record)(void *user, unsigned queue, unsigned event);
    bool (*wait)(void *user, unsigned queue, unsigned event);
    bool (*flush)(void *user, unsigned queue);
    bool (*finish)(void *user); // waits for all work of all queues
    // Fills the device's memory with values that are no result.
    bool (*spoil)(void *user);
    // What is submitted between the first two becomes a graph, which begins in queue 0 and which the third
    // submits there; close() destroys it. All NULL: there are no cases of graphs.
    bool (*capture)(void *user);
    bool (*end_capture)(void *user);
    bool (*launch)(void *user);
};

struct chunk_job {
    const struct chunk_calls *calls;
    void *user;
    float *src;  // pinned
    float *dst;  // pinned
    size_t size; // of chunk_size()
};

// `bytes`, rounded down to what every case can cut.
size_t chunk_size(uint64_t bytes);

// Numbers for `src`.
void chunk_fill(float *src, size_t size);

// How many of `dst` are not `factor` times those of chunk_fill().
size_t chunk_wrong(const float *dst, size_t size, float factor);

// Fills `src`, runs every case once and compares every number with the expected one.
bool chunk_check(struct chunk_job *job);

// Measures every case, with a peer_value() each.
bool chunk_round(struct chunk_job *job);

// peer_main() of a program that does this job, with the option --bytes; 1 GiB each way without.
int chunk_main(const struct peer *peer, void *user, uint64_t *bytes, int argc, char **argv);

#endif
