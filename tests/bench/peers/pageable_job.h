// The job of the peers that copy memory which is not pinned: up and down, of 4 KiB to 4 GiB, each
// call blocking until the copy is done. The sizes, the checks and the timing are here; a peer
// provides the calls.
#ifndef WEIR_TESTS_BENCH_PEERS_PAGEABLE_JOB_H
#define WEIR_TESTS_BENCH_PEERS_PAGEABLE_JOB_H

#include "tests/bench/peers/peer.h"

// One way of copying. Both copy `size` bytes, to or from the beginning of the device's memory.
// Errors: false, after peer_fail().
struct pageable_way {
    const char *name;
    bool (*up)(void *user, const void *from, size_t size);
    bool (*down)(void *user, void *to, size_t size);
    // Copies nothing of the program's memory: what the link can do.
    bool is_bound;
};

struct pageable_job {
    const struct pageable_way *ways;
    size_t way_count;
    void *user;
    uint64_t least; // the sizes are the powers of 4 KiB * 4^n from here
    uint64_t most;  // to here
    unsigned char *src;
    unsigned char *dst;
};

// Makes the program's memory, and compares the bytes that each way copies up and down.
bool pageable_open(struct pageable_job *job);
void pageable_close(struct pageable_job *job);

// Measures each way with each size: a peer_value() WAY_up_SIZE and WAY_down_SIZE, for a copy.
bool pageable_round(struct pageable_job *job);

// The options --least and --most.
enum {
    PAGEABLE_OPTIONS = 2
};
void pageable_options(struct pageable_job *job, struct peer_option out_options[PAGEABLE_OPTIONS]);

#endif
