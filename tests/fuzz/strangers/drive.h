// Rounds of all the fuzzers in turn.
#ifndef WEIR_TESTS_FUZZ_STRANGERS_DRIVE_H
#define WEIR_TESTS_FUZZ_STRANGERS_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DRIVE_FUZZERS = 7
};

struct drive_result {
    uint64_t rounds;
    uint64_t connections;
    uint64_t hellos;
    uint64_t believed[DRIVE_FUZZERS]; // let in, connected, joined, or a call that has ended well
    uint64_t late;                    // rounds that returned more than a second past the deadline
    uint64_t worst_ns;                // the worst of them
    uint64_t worst_round;
    double seconds;
    const char *broken; // the rule, or NULL
    uint64_t broken_round;
};

// The name of a fuzzer: round N is of fuzzer N % DRIVE_FUZZERS.
const char *drive_name(uint64_t round);

// Runs `rounds` from number `first` on, in at most `seconds`, and stops where a rule is broken. The same
// seed and number say the same bytes.
struct drive_result drive(uint64_t seed, uint64_t first, uint64_t rounds, double seconds);

#endif
