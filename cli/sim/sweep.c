// A program runs once for each combination of GPU and values. What is kept of a run are its figures, and
// of each GPU the trace of the best run.
#include "cli/sim/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/progress.h"
#include "cli/program/program.h"

static const char about[] =
    "Runs COMMAND, any program that uses Weir, on modelled GPUs, as weir sim does, once for each\n"
    "combination of values, prints a row for each, and tells the best: the one whose work takes\n"
    "least from its first start to its last end. A KEY is one of COMMAND, which has an option "
    "--KEY\n"
    "or {KEY} in a word, or else one of the models. What COMMAND prints on standard output is\n"
    "dropped. Options come before COMMAND; what follows it are its arguments.\n"
    "\n"
    "  weir sim sweep --gpu h200 --over slots=1..8 ./program --slots 3";

struct options {
    const char *gpus;
    struct cli_list over;
    const char *plot;
    struct sim_common common;
};

static bool parse(struct options *out, int argc, char **argv, char ***out_command, int *out_exit)
{
    struct sim_common *common = &out->common;
    const struct cli_option options[] = {
        {"gpu", "NAME,...", "the GPUs, as in weir sim", CLI_TEXT, &out->gpus, 0, 0},
        {"over", "KEY=VALUE,...",
         "the values of a key; 1..8 are all of these. Given once\nfor each key; the first is the "
         "plot's axis",
         CLI_LIST, &out->over, 0, 0},
        {"plot", "FILE.svg", "also draw the curves into this file", CLI_FILE, &out->plot, 0, 0},
        {"costs", "FILE", "what kernels cost, from weir sim learn", CLI_FILE, &common->costs, 0, 0},
        {"host", "HOW", "how the host's time passes: fixed, the default, or none",
         CLI_TEXT, &common->host, 0, 0},
        {"output", "FILE",
         "write the best run's trace to FILE; without it, sim.json.\nThe names of several GPUs' "
         "get "
         "the GPU's before the end",
         CLI_FILE, &common->output, 0, 0},
        {"json", NULL, "print the figures as one JSON object", CLI_FLAG, &common->json, 0, 0},
        {"quiet", NULL, "print nothing but errors and the table", CLI_FLAG, &common->quiet, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir sim sweep",
        .operands = "COMMAND [ARGUMENT]...",
        .about = about,
        .manual = "weir-sim(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    if (!cli_program_parse(&usage, argc, argv, out_command, out_exit))
        return false;
    if (out->gpus && out->over.count > 0)
        return true;
    cli_error("weir sim sweep needs %s",
              out->gpus ? "values, such as --over slots=1,2,3" : "a GPU, such as --gpu h200");
    *out_exit = CLI_USAGE;
    return false;
}

// Running.

static bool init_run(const struct sweep *sweep, size_t number, char *const *command,
                     struct sim_run *run)
{
    struct sim_settings settings;
    sweep_settings(sweep, number, &settings);
    cli_sim_settle(&settings, command);
    return cli_sim_run_init(run, sweep->gpus.items[number / sweep->per_gpu], command, &settings);
}

static size_t run_count(const struct sweep *sweep)
{
    return sweep->gpus.count * sweep->per_gpu;
}

// Finds what is wrong with a model before anything runs.
static int check_all(const struct sweep *sweep, char *const *command)
{
    int code = CLI_OK;
    for (size_t i = 0; i < run_count(sweep) && code == CLI_OK; i++) {
        struct sim_run run = {0};
        code = init_run(sweep, i, command, &run) ? cli_sim_check(&run) : CLI_FAILED;
        cli_sim_run_finish(&run);
    }
    return code;
}

static void take(const struct sim_run *run, struct sweep_point *point)
{
    const struct weir_report_summary *summary = weir_report_get_summary(run->report);
    struct weir_report_overlap overlap;
    point->span_ns = (double)summary->span_ns;
    point->idle = summary->span_ns > 0 ? (double)summary->idle_ns / point->span_ns : 0;
    point->bound_ns = (double)summary->bound_ns;
    snprintf(point->bound_engine, sizeof point->bound_engine, "%s",
             summary->bound_engine ? summary->bound_engine : "");
    const bool applies =
        weir_report_get_overlap(run->report, "copy", "compute", &overlap) >= 0 && overlap.applies;
    point->hidden = applies ? overlap.least : NAN;
}

// Its trace is kept if it is the GPU's best so far.
static int keep(struct sweep *sweep, size_t number, const struct sim_run *run)
{
    const size_t gpu = number / sweep->per_gpu;
    const bool first = number % sweep->per_gpu == 0;
    if (!first && sweep->points[number].span_ns >= sweep->points[sweep->best[gpu]].span_ns) {
        unlink(run->trace);
        return CLI_OK;
    }
    sweep->best[gpu] = number;
    if (rename(run->trace, sweep->traces[gpu]) == 0)
        return CLI_OK;
    cli_error("%s cannot become %s: %s", run->trace, sweep->traces[gpu], strerror(errno));
    return CLI_FAILED;
}

static int run_one(struct sweep *sweep, size_t number, char *const *command, const char *output,
                   int sink)
{
    struct sim_run run;
    if (!init_run(sweep, number, command, &run))
        return CLI_FAILED;
    int code = cli_sim_name_trace(&run, output, run_count(sweep) + 1);
    if (code == CLI_OK)
        code = cli_sim_once(&run, sink);
    if (code == CLI_OK)
        take(&run, &sweep->points[number]);
    if (code == CLI_OK)
        code = keep(sweep, number, &run);
    else
        unlink(run.trace);
    cli_sim_run_finish(&run);
    return code;
}

static int name_traces(struct sweep *sweep, const char *output)
{
    int code = CLI_OK;
    for (size_t i = 0; i < sweep->gpus.count && code == CLI_OK; i++) {
        struct sim_run run = {.gpu = sweep->gpus.items[i]};
        code = cli_sim_name_trace(&run, output, sweep->gpus.count > 1 ? i + 1 : 0);
        snprintf(sweep->traces[i], sizeof sweep->traces[i], "%s", run.trace);
    }
    return code;
}

static int run_all(struct sweep *sweep, char *const *command, const struct sim_common *common)
{
    struct cli_progress progress;
    const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (sink < 0) {
        cli_error("/dev/null cannot be written: %s", strerror(errno));
        return CLI_FAILED;
    }
    int code = name_traces(sweep, common->output);
    cli_progress_start(&progress, !common->quiet, run_count(sweep), "runs/s");
    cli_program_begin_series();
    for (size_t i = 0; i < run_count(sweep) && code == CLI_OK; i++) {
        code = run_one(sweep, i, command, common->output, sink);
        if (code == CLI_OK && cli_program_signal())
            code = CLI_SIGNALLED + cli_program_signal();
        cli_progress_update(&progress, i + 1, sweep->gpus.items[i / sweep->per_gpu]);
    }
    cli_program_end_series();
    cli_progress_end(&progress);
    close(sink);
    return code;
}

static int run_and_tell(struct sweep *sweep, const struct options *options, char **command)
{
    const struct sim_common *common = &options->common;
    if (!sweep_init(sweep, options->gpus, &options->over) ||
        (options->plot && !sweep_can_plot(sweep)))
        return CLI_USAGE;
    if (!cli_can_write(options->plot))
        return CLI_FAILED;
    if (!cli_sim_prepare(common))
        return cli_weir_error();
    int code = check_all(sweep, command);
    if (code == CLI_OK)
        code = run_all(sweep, command, common);
    if (code == CLI_OK && options->plot)
        code = sweep_plot(sweep, command[0], options->plot);
    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < sweep->gpus.count && !common->quiet; i++)
        cli_note("%s: the trace of the best on %s", sweep->traces[i], sweep->gpus.items[i]);
    return common->json ? sweep_tell_json(sweep) : sweep_tell(sweep);
}

int cli_sim_sweep(int argc, char **argv)
{
    struct options options = {.common.output = "sim.json"};
    struct sweep sweep = {.axis_count = 0};
    char **command;
    int code;
    if (!parse(&options, argc, argv, &command, &code))
        return code;
    code = run_and_tell(&sweep, &options, command);
    sweep_finish(&sweep);
    return code;
}
