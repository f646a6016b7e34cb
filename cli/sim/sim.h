// What the files of `weir sim` share.
//
//   command.c     which form it is
//   learn.c       what kernels cost, from traces; fit.h has the files that it is made of
//   run.c         a program on modelled GPUs: the command line, and one run for each GPU
//   tell.c        what is printed of it
//   picture.c     what is drawn of it
//   sweep*.c      a program with many settings: see sweep.h
//   once.c        one run
//   settings.c    what a run changes, of the model and of the program
#ifndef WEIR_CLI_SIM_H
#define WEIR_CLI_SIM_H

#include <limits.h>

#include <weir/report.h>

#include "cli/common/options.h"
#include "cli/program/program.h"

enum {
    SIM_RUNS = 32,
    SIM_SETTINGS = 16,
    SIM_LIST = 64,
};

// settings.c

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

// A list of the command line, cut at its commas. Zeroed before use.
struct sim_list {
    char *text;
    char *items[SIM_LIST]; // without spaces around them; none is empty
    size_t count;
};

// `text` NULL has no items. `option` is what the command line calls it.
//
// Errors: false after a message.
bool cli_sim_list_init(struct sim_list *list, const char *text, const char *option);
void cli_sim_list_finish(struct sim_list *list);

// Cuts "KEY=VALUE". False if either is empty.
bool cli_sim_cut(char *text, char **out_key, char **out_value);

struct sim_run {
    char *gpu;
    char *what_if;  // all settings, for people; "": none
    char *changes;  // those of the model
    char **command; // with its own
    // In the program's environment, those of the configuration; texts are the run's.
    struct cli_program_variable variables[SIM_SETTINGS];
    size_t variable_count;
    char trace[PATH_MAX];
    weir_report *report; // after the run
};

// Finds whose each key is.
void cli_sim_settle(struct sim_settings *settings, char *const *command);

// Makes a run of COMMAND with these settings, which were settled.
//
// Errors: false after a message; the run is then empty.
bool cli_sim_run_init(struct sim_run *run, const char *gpu, char *const *command,
                      const struct sim_settings *settings);
// Accepts a zeroed one.
void cli_sim_run_finish(struct sim_run *run);

// once.c

struct sim_common {
    const char *costs; // NULL: none
    const char *host;  // NULL: as configured
    const char *output;
    bool json;
    bool quiet;
};

// Puts what all runs have into the environment.
//
// Errors: false, with the thread's Weir error set.
bool cli_sim_prepare(const struct sim_common *common);

// Names the trace of a run, and removes an old one: the third one's, of my/h200.ini, is
// "run.3.h200.json" if `output` is "run.json". With number 0 it is `output`. Returns an exit code.
int cli_sim_name_trace(struct sim_run *run, const char *output, size_t number);

// Whether the model can be used. Returns an exit code, after a message if it is not CLI_OK.
int cli_sim_check(const struct sim_run *run);

// Runs the program, whose standard output is `output`, and reads the report. Returns an exit code.
int cli_sim_once(struct sim_run *run, int output);

// Each is in its <name>.c. Returns an exit code.
int cli_sim_learn(int argc, char **argv);
// `weir sim --gpu NAME COMMAND...`: argv[0] is "sim".
int cli_sim_run(int argc, char **argv);
int cli_sim_sweep(int argc, char **argv);

// tell.c: one report as text, or one row for each run; returns an exit code.
struct sim_runs {
    struct sim_run items[SIM_RUNS];
    size_t count;
};

int cli_sim_tell(const struct sim_runs *runs);
int cli_sim_tell_json(const struct sim_runs *runs);

// picture.c: the operations of each run on one axis of time, a row for each engine, a colour for each
// queue. Returns an exit code.
int cli_sim_draw(const struct sim_runs *runs, const char *path);

#endif
