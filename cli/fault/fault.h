// Shared by the files of `weir fault`: command.c, its options and its runs, and report.c, the operations that
// the plugin chose and what became of the runs.
#ifndef WEIR_CLI_FAULT_FAULT_H
#define WEIR_CLI_FAULT_FAULT_H

#include "base/text.h"
#include "cli/common/folder.h"
#include "cli/program/program.h"

struct fault_options {
    const char *fault; // one kind, or several with commas between them
    const char *kinds;
    const char *queue;
    const char *label;
    uint64_t at;
    uint64_t one_in;
    uint64_t seed;
    uint64_t every;
    uint64_t delay_ms;
    uint64_t limit_s; // 0: from the first run
    bool recovers;
    bool all;
    bool json;
    bool quiet;
};

// An operation that the plugin chose.
struct fault_item {
    uint64_t number;
    char kind[32];
    char queue[128];
    char label[128];
    char file[256]; // "" if unknown
    int line;
};

// Reads the list that the plugin wrote. None is an empty list.
//
// Ownership: `*out_items` is the caller's, to be freed with free().
// Errors: false after a message.
bool fault_list_read(const char *path, struct fault_item **out_items, size_t *out_count);

// "copy of 'frame' on queue 'up'", and "app.c:80" or "", in `text`; both return it.
const char *fault_item_text(const struct fault_item *item, char *text, size_t size);
const char *fault_item_place(const struct fault_item *item, char *text, size_t size);

enum fault_outcome {
    FAULT_TOLD,        // an exit status that is not 0, and the cause on its output
    FAULT_RECOVERED,   // exit status 0, where the options or the kind of fault allow it
    FAULT_NOT_REACHED, // this run took another course
    FAULT_CRASH,       // ended by a signal
    FAULT_HANG,        // killed after the limit
    FAULT_UNNOTICED,   // exit status 0
    FAULT_NO_CAUSE,    // another exit status, and no message of the fault
    FAULT_OUTCOMES,
};

static inline bool fault_is_finding(enum fault_outcome outcome)
{
    return outcome >= FAULT_CRASH;
}

struct fault_run {
    const char *fault;      // the kind
    struct fault_item item; // that got it, or was to get it
    enum fault_outcome outcome;
    int code;           // the program's, as in cli_program_end
    char last_line[96]; // of what it printed
    uint64_t digest;    // of all that it printed
};

struct fault_walk {
    char **command;
    const struct fault_options *options;
    struct fault_run *runs;
    size_t count;
    size_t capacity;
    size_t operations; // that were chosen, of all faults
    size_t counts[FAULT_OUTCOMES];
};

// Prints it; returns the exit code.
int fault_report_print(const struct fault_walk *walk);

#endif
