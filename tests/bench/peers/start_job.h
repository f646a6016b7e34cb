// The job of the peers that start: a process of its own, from before it is made until the first result of a
// kernel is on the host and compared. A round makes one such process, which is this program again.
#ifndef WEIR_TESTS_BENCH_PEERS_START_JOB_H
#define WEIR_TESTS_BENCH_PEERS_START_JOB_H

#include "tests/bench/peers/peer.h"

enum {
    START_NUMBERS = 1024,
    START_STEPS_MAX = 9
};

struct start_step {
    const char *name;
    bool (*run)(void *user); // false after peer_skip() or peer_fail()
};

struct start_job {
    const char *name; // of the peer
    const char *about;
    // Peers that are compared give steps that do the same the same name. The last one stores the results of the kernel "scale" for factor 2 in `results`.
    struct start_step steps[START_STEPS_MAX];
    size_t step_count;
    void (*end)(void *user); // frees what the steps made; they may have failed
    void *user;
    float numbers[START_NUMBERS];
    float results[START_NUMBERS];
};

// The value that main() returns. Figures: `first_result`, from before the process was made; `main`, until its
// main() began; each step's time; `close`, the time of end(); `exit`, from there until the process had ended; `ended`, from
// before it was made until then.
int start_main(struct start_job *job, int argc, char **argv);

#endif
