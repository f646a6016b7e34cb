// `weir sim`: programs on modelled GPUs, and what kernels cost.
//
//   runs.c     a program on modelled GPUs, once for each, and the command
//   sweep.c    the same with each of many settings
//   once.c     one run, and what it changes, of the model and of the program
//   learn.c    `weir sim learn`: what kernels cost, from traces
//   fit.c      what that is made of; see fit.h
//
// Ownership and errors are those of cli/common/own.h.
#ifndef WEIR_CLI_SIM_H
#define WEIR_CLI_SIM_H

#include <limits.h>

#include <weir/report.h>

#include "base/table.h"
#include "cli/common/options.h"
#include "cli/common/own.h"
#include "cli/program/program.h"

enum {
    SIM_SETTINGS = 16,
    SIM_LIST = 64,
};

// once.c

enum sim_owner {
    SIM_OF_MODEL,   // a key of [gpu]
    SIM_OF_PLACES,  // words of COMMAND have {KEY} or {KEY=VALUE}
    SIM_OF_OPTION,  // COMMAND has an option --KEY VALUE or --KEY=VALUE
    SIM_OF_SECTION, // SECTION.KEY of the configuration
};

struct sim_setting {
    const char *key;
    const char *value; // NULL: as it is without the setting
    enum sim_owner owner;
};

struct sim_settings {
    struct sim_setting items[SIM_SETTINGS];
    size_t count;
};

// A list of the command line, cut at its commas.
struct sim_list {
    char *items[SIM_LIST]; // without spaces around them; none is empty
    size_t count;
};

// `text` NULL has no items. `option` is what the command line calls it.
void cli_sim_list_read(struct sim_list *list, const char *text, const char *option);

// Cuts "KEY=VALUE". False if either is empty.
bool cli_sim_cut(char *text, char **out_key, char **out_value);

struct sim_run {
    const char *gpu;
    struct sim_settings settings;
    char *what_if;  // all settings, for people; "": none
    char *changes;  // those of the model
    char **command; // with its own
    // In the program's environment, those of the configuration; texts are the run's.
    const char *variables[SIM_SETTINGS];
    size_t variable_count;
    const char *trace;   // NULL: not named yet
    weir_report *report; // after the run
};

// Makes a run of COMMAND with these settings, of which it finds the owners.
void cli_sim_make_run(struct sim_run *run, const char *gpu, char *const *command,
                      struct sim_settings settings);

struct sim_common {
    const char *costs; // NULL: none
    const char *host;  // NULL: as configured
    const char *scale; // the same
    const char *output;
    bool json;
};

// The options that a sweep has too.
#define SIM_OPTIONS(common)                                                                        \
    {"costs", "FILE", "what kernels cost, from weir sim learn", CLI_FILE, &(common)->costs, 0, 0}, \
        {"scale",                                                                                  \
         "F",                                                                                      \
         "kernels without a cost, and costs of a processor, take\nF times what they take here, "   \
         "such as 0.05",                                                                           \
         CLI_TEXT,                                                                                 \
         &(common)->scale,                                                                         \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        "host", "HOW", "how the host's time passes: fixed, the default, or none", CLI_TEXT,        \
            &(common)->host, 0, 0                                                                  \
    }

// Puts what all runs have into the environment.
void cli_sim_prepare(const struct sim_common *common);

// Names the trace of a run, and removes an old one: the third one's, of my/h200.ini, is
// "run.3.h200.json" if `output` is "run.json". With number 0 it is `output`.
void cli_sim_name_trace(struct sim_run *run, const char *output, size_t number);

// Ends the command unless the model can be used.
void cli_sim_check(const struct sim_run *run);

// Runs the program, whose standard output is `output`, and reads the report. Returns an exit code.
// Ownership: the report is the caller's.
int cli_sim_once(struct sim_run *run, int output);

// runs.c

// What a run gave.
struct sim_point {
    double span_ns;
    double hidden; // the share of the copies' time with compute beside it; NAN: n/a
    double idle;   // the share of the span
    double bound_ns;
    char bound_engine[24];
};

// Of a run that has its report.
void cli_sim_take(const struct sim_run *run, struct sim_point *out_point);

// Adds five columns: the span, how many times `first_ns` that is, the shares, and the bound.
void cli_sim_add_point(struct weir_table *table, const struct sim_point *point, double first_ns);

// The members of the command.
int cli_sim_learn(int argc, char **argv);
int cli_sim_sweep(int argc, char **argv);

#endif
