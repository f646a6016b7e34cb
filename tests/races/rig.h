// A runtime and a device for one run of a program, on the backend that WEIR_BACKEND names.
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

#endif
