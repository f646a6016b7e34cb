// What the files of `weir perturb` share: command.c, the command line and the runs, and tell.c, what is printed.
#ifndef WEIR_CLI_PERTURB_H
#define WEIR_CLI_PERTURB_H

#include <stdio.h>

#include "cli/common/options.h"
#include "cli/program/program.h"

struct settings {
    char **command;
    uint64_t first; // seed
    uint64_t seeds;
    const char *mode;
    const char *pair;
    bool compare; // standard output
    struct cli_list files;
    uint64_t limit_s; // 0: from the run without the plugin
    bool stop;        // at the first seed that changes the result
    bool json;
    bool quiet;
    char plugins[CLI_PROGRAM_PLUGINS_SIZE]; // without perturb
};

struct result {
    struct cli_program_end end;
    uint64_t took_ns;
    struct cli_content output;
    struct cli_content messages;
    struct cli_content files[CLI_LIST_LIMIT];
    struct cli_perturb_counts counts;
};

// A seed that changed the result.
struct change {
    uint64_t seed;
    struct cli_program_end end;
    uint64_t output_line; // 0: the same
    uint64_t file_lines[CLI_LIST_LIMIT];
    bool again; // a second run with the seed changed it to the same
};

struct summary {
    const struct settings *settings;
    const struct result *plain; // without the plugin
    uint64_t runs;
    uint64_t changed;
    struct change *changes; // the first ones
    size_t change_count;
    struct cli_perturb_counts counts; // of all runs
    int signal;                       // that ended it before the last seed; 0: none
};

enum {
    CHANGES_KEPT = 1000,
    CHANGES_SHOWN = 10,
};

void tell_change(const struct summary *summary, const struct change *change);
void tell_summary(const struct summary *summary);
int tell_json(const struct summary *summary, int code);

#endif
