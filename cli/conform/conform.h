// What the files of `weir conform` share. The suite is a program of its own; the
// command runs it as a child process and reads its output, so that a test that crashes or
// hangs is one failure and the other tests still run.
#ifndef WEIR_CLI_CONFORM_H
#define WEIR_CLI_CONFORM_H

#include "cli/common/cli.h"

enum conform_outcome {
    CONFORM_NOT_RUN,
    CONFORM_PASSED,
    CONFORM_FAILED,
    CONFORM_SKIPPED,     // by a limit of the device
    CONFORM_UNSUPPORTED, // permanently, on the suite's list
};

struct conform_result {
    char *name; // "Suite.Name"
    enum conform_outcome outcome;
    uint64_t ms;
    char *text; // what a failed test printed, why one was skipped; else NULL
};

struct conform {
    const char *program; // the suite's file
    uint64_t test_limit_seconds;
    struct conform_result *results;
    size_t count;
    uint64_t expected_failures; // tests that fail as the suite's list says; they pass
    char *exit_text;            // the failure after the last test; else NULL
    uint64_t elapsed_ns;
    // The chain.
    char module[64];
    char plugins[256];
    char device[256];
    char platform[256];
    char driver[256];
};

// Fills `results` with the tests that `filter` matches: GoogleTest's patterns.
//
// Errors: false, after a message.
bool conform_list(struct conform *conform, const char *filter);

// Runs them all. Afterwards each has an outcome; CONFORM_NOT_RUN remains only after an
// interrupt (cli/common/signals.h).
//
// Errors: false, after a message, when the suite cannot be started.
bool conform_run(struct conform *conform);

size_t conform_count(const struct conform *conform, enum conform_outcome outcome);

void conform_finish(struct conform *conform);

#endif
