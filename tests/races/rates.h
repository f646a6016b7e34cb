// How often a program computes a wrong result, with the plugin `perturb` and without.
#ifndef WEIR_TESTS_RACES_RATES_H
#define WEIR_TESTS_RACES_RATES_H

#include "tests/races/race.h"

struct rates {
    int runs;
    int wrong; // of so many
    int first; // the first run that was wrong, from 1, which is its seed; 0: none
};

// Runs the program `runs` times, with seeds from 1 on if it is perturbed, or until a run is wrong.
// A device that cannot run it gives no runs.
//
// Returns the failure of weir_open() and the like.
weir_status rates_measure(const struct race_pair *pair, bool mended, bool perturbed, int runs,
                          bool until_wrong, struct rates *out_rates);

#endif
