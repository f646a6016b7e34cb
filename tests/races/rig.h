// What tests of the corpus and its table share: a runtime and a device for one run of a program, on the backend
// that WEIR_BACKEND names; the lines that a program marks; and how often a program computes a wrong result.
#ifndef WEIR_TESTS_RACES_RIG_H
#define WEIR_TESTS_RACES_RIG_H

#include "tests/races/race.h"

struct rig {
    weir_runtime *runtime;
    weir_device *device;
};

// With plugins, "" for none, and lines of a configuration, which may be NULL.
//
// Errors: those of weir_open() and weir_device_open().
weir_status rig_open(struct rig *rig, const char *plugins, const char *config);

// Errors: those of weir_device_close() and weir_close().
weir_status rig_close(struct rig *rig);

// Whether the program runs there, and whether it computes a result: on null kernels do nothing, and
// there are no native calls.
bool rig_can_run(const struct rig *rig, const struct race_pair *pair);
bool rig_has_result(const struct rig *rig, const struct race_pair *pair);

// False under the thread sanitizer, which sees the races of broken programs where threads do their work.
bool rig_may_race(void);

// The lines that a program of the corpus marks.
enum {
    MARKS_MAX = 4,
};

// One finding that the broken program has.
struct mark {
    char letter;       // '\0' for marks without one
    int first, second; // lines; 0: in a file that marks none, such as that of a pattern
};

struct marks {
    struct mark list[MARKS_MAX];
    size_t count;
};

// Reads the marks of a program from its source, which lies at `path`.
//
// Returns whether the program was found and has marks.
bool marks_read(const struct race_pair *pair, const char *path, struct marks *out_marks);

// Whether the finding is one of those that the broken program has.
bool marks_expect(const struct marks *marks, const struct race_pair *pair,
                  const struct weir_check_finding *finding);

// How often a program computes a wrong result, with the plugin `perturb` and without.
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
