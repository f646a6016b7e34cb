// What the files of `weir sim sweep` share.
//
//   sweep.c       the command line, and the runs
//   sweep_grid.c  the values, and which of them a run has
//   sweep_tell.c  what is printed
//   sweep_plot.c  what is drawn
#ifndef WEIR_CLI_SIM_SWEEP_H
#define WEIR_CLI_SIM_SWEEP_H

#include "cli/sim/sim.h"

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

// Runs are numbered: the GPU changes slowest, then the first axis, and the last one fastest.
struct sweep {
    struct sim_list gpus;
    struct sweep_axis axes[SWEEP_AXES];
    char *texts[SWEEP_AXES]; // that the axes point into
    size_t axis_count;
    size_t per_gpu; // runs
    struct sweep_point *points;
    size_t *best;             // of each GPU, a run's number
    char (*traces)[PATH_MAX]; // of the best
};

// sweep_grid.c

// Reads the lists of --gpu and --over into a zeroed sweep.
//
// Errors: false after a message.
bool sweep_init(struct sweep *sweep, const char *gpus, const struct cli_list *over);
// Also after sweep_init() failed.
void sweep_finish(struct sweep *sweep);

// The values of that run.
void sweep_settings(const struct sweep *sweep, size_t run, struct sim_settings *settings);
// Which of an axis's values the run has.
size_t sweep_value(const struct sweep *sweep, size_t run, size_t axis);
// The first run of the best one's GPU that takes at most 1 % more.
size_t sweep_enough(const struct sweep *sweep, size_t gpu);
// "slots=3, queues=2"; ends in "..." if it does not fit.
void sweep_name(const struct sweep *sweep, size_t run, char *text, size_t size);

// sweep_tell.c. Each returns an exit code.
int sweep_tell(const struct sweep *sweep);
int sweep_tell_json(const struct sweep *sweep);

// sweep_plot.c

// Whether the plot has room for all. False after a message.
bool sweep_can_plot(const struct sweep *sweep);
int sweep_plot(const struct sweep *sweep, const char *command, const char *path);

#endif
