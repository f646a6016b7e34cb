// What the files of `weir sim` share.
//
//   command.c  which form it is
//   learn.c    what kernels cost, from traces; fit.h has the files that it is made of
//   run.c      a program on modelled GPUs: the command line, and one run for each GPU
//   tell.c     what is printed
#ifndef WEIR_CLI_SIM_H
#define WEIR_CLI_SIM_H

#include <limits.h>

#include <weir/report.h>

#include "cli/common/options.h"

enum {
    SIM_RUNS = 32,
};

struct sim_run {
    const char *gpu;     // as the command line has it
    const char *changes; // "": none
    char trace[PATH_MAX];
    weir_report *report; // after the run
};

struct sim_runs {
    struct sim_run items[SIM_RUNS];
    size_t count;
};

// Each is in its <name>.c. Returns an exit code.
int cli_sim_learn(int argc, char **argv);
// `weir sim --gpu NAME COMMAND...`: argv[0] is "sim".
int cli_sim_run(int argc, char **argv);

// tell.c: one report as text, or one row for each run; returns an exit code.
int cli_sim_tell(const struct sim_runs *runs);
int cli_sim_tell_json(const struct sim_runs *runs);

#endif
