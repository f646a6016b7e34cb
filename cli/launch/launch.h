// Shared by the files of `weir launch`: command.c, options and what is printed of the ranks' end, and watch.c, the
// ranks and their lines from their start until the last of them has ended.
#ifndef WEIR_CLI_LAUNCH_LAUNCH_H
#define WEIR_CLI_LAUNCH_LAUNCH_H

#include <sys/types.h>

#include "cli/program/program.h"

enum {
    RANK_LIMIT = 1024,
};

struct launch_options {
    char **command;
    uint64_t count;
    uint64_t port; // 0: a free one
    uint64_t grace_s;
    bool no_prefix;
    bool json;
};

struct rank {
    pid_t process;
    int code;   // its exit status
    int signal; // that ended it; 0: none
    bool ended;
    bool stopped; // it ran when the launch told all ranks to end
    bool killed;  // it ran when the grace time was over
};

struct launch {
    const struct launch_options *options;
    struct rank *ranks;
    size_t started;
    size_t running;
    const char *port, *place; // MASTER_PORT, and where the ranks meet
    int first_failed;         // -1: none
    int signal;               // that this process got, which ends the ranks; 0: none
    int failure;              // an exit code, after an error of this process that was told; 0: none
    bool stopping;
    bool hurried;     // a second signal came before the grace time was over
    uint64_t kill_ns; // when `stopping`: at which ranks are killed
};

// Starts all ranks, writes their lines, and waits until they have ended.
void watch(struct launch *launch);

#endif
