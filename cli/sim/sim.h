// `weir sim`: programs on modelled GPUs, and what kernels cost.
//
//   command.c  which form it is, and `weir sim learn`: what kernels cost, from traces
//   fit.c      what that is made of; see fit.h
//   run.c      a program on modelled GPUs, once for each, or with each of many settings
//   once.c     one run, and what it changes, of the model and of the program
//   tell.c     what is printed and drawn of runs
//
// Ownership and errors are those of cli/common/own.h.
#ifndef WEIR_CLI_SIM_H
#define WEIR_CLI_SIM_H

#include <limits.h>

#include <weir/report.h>

#include "cli/common/options.h"
#include "cli/common/own.h"
#include "cli/program/program.h"

enum {
    SIM_RUNS = 32,
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
    char *what_if;  // all settings, for people; "": none
    char *changes;  // those of the model
    char **command; // with its own
    // In the program's environment, those of the configuration; texts are the run's.
    struct cli_program_variable variables[SIM_SETTINGS];
    size_t variable_count;
    const char *trace;   // NULL: not named yet
    weir_report *report; // after the run
};

// Finds whose each key is.
void cli_sim_settle(struct sim_settings *settings, char *const *command);

// Makes a run of COMMAND with these settings, which were settled.
void cli_sim_make_run(struct sim_run *run, const char *gpu, char *const *command,
                      const struct sim_settings *settings);

struct sim_common {
    const char *costs; // NULL: none
    const char *host;  // NULL: as configured
    const char *scale; // the same
    const char *output;
    bool json;
    bool quiet;
};

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

// command.c: `weir sim learn` and `weir sim sweep`.
extern const struct cli_command sim_others;

// run.c. Each returns an exit code.
// `weir sim --gpu NAME COMMAND...`: argv[0] is "sim".
int cli_sim_run(int argc, char **argv);
int cli_sim_sweep(int argc, char **argv);

// run.c: many settings

enum {
    SWEEP_AXES = 8,
    SWEEP_RUNS = 4096,
    SWEEP_ENGINE_SIZE = 24,
};

// A key, and what it is set to.
struct sweep_axis {
    char *key;
    struct sim_list values; // at least one
};

// What a run gave.
struct sweep_point {
    double span_ns;
    double hidden; // the share of the copies' time with compute beside it; NAN: n/a
    double idle;   // the share of the span
    double bound_ns;
    char bound_engine[SWEEP_ENGINE_SIZE];
};

// Of a run that has its report.
void cli_sim_take(const struct sim_run *run, struct sweep_point *out_point);

// Runs are numbered: the GPU changes slowest, then the first axis, and the last one fastest.
struct sweep {
    struct sim_list gpus;
    struct sweep_axis axes[SWEEP_AXES];
    size_t axis_count;
    size_t per_gpu; // runs
    struct sweep_point *points;
    size_t *best;        // of each GPU, a run's number
    const char **traces; // of the best
};

// The values of that run.
void sweep_settings(const struct sweep *sweep, size_t run, struct sim_settings *settings);
// Which of an axis's values the run has.
size_t sweep_value(const struct sweep *sweep, size_t run, size_t axis);
// The first run of the best one's GPU that takes at most 1 % more.
size_t sweep_enough(const struct sweep *sweep, size_t gpu);
// "slots=3, queues=2"; ends in "..." if it does not fit.
void sweep_name(const struct sweep *sweep, size_t run, char *text, size_t size);

// tell.c: one report as text, or one row for each run. Each returns an exit code.
struct sim_runs {
    struct sim_run items[SIM_RUNS];
    size_t count;
};

int cli_sim_tell(const struct sim_runs *runs);
int cli_sim_tell_json(const struct sim_runs *runs);
// The operations of each run on one axis of time, a row for each engine, a colour for each queue.
int cli_sim_draw(const struct sim_runs *runs, const char *path);
int sweep_tell(const struct sweep *sweep);
int sweep_tell_json(const struct sweep *sweep);

// Ends the command unless the plot has room for all.
void sweep_check_plot(const struct sweep *sweep);
int sweep_plot(const struct sweep *sweep, const char *command, const char *path);

#endif
