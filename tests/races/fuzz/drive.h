// Random programs one after the other, and what is left of one that shows a difference.
#ifndef WEIR_TESTS_RACES_FUZZ_DRIVE_H
#define WEIR_TESTS_RACES_FUZZ_DRIVE_H

#include "tests/races/fuzz/program.h"

struct drive_result {
    uint64_t programs;
    uint64_t findings; // of all programs
    uint64_t with;     // programs with at least one
    bool different;    // the last program showed a difference
};

// Runs programs until one shows a difference, which is made as small as it gets and written to
// `text`: the difference, the calls, and the bytes in hexadecimal.
struct drive_result drive(enum ground_order order, uint64_t seed, uint64_t count, FILE *text);

// Runs the program of those hexadecimal digits, and writes its calls. Returns whether it agrees.
bool drive_one(enum ground_order order, const char *digits, FILE *text);

#endif
