// A program on modelled GPUs: it runs once for each, and once more for each with --what-if, or, as a sweep, once
// for each combination of values.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/table.h"
#include "cli/common/progress.h"
#include "cli/program/program.h"
#include "cli/sim/sim.h"

static const char about[] =
    "Runs COMMAND, any program that uses Weir, with the plugins `sim` and "
    "`trace` in its chain, and\n"
    "prints the report on its trace: the work runs on the backend that is "
    "configured, and its times\n"
    "are those of the GPU of that name. With several GPUs, or with "
    "--what-if, COMMAND runs once for\n"
    "each, and a table has a row for each. What COMMAND prints goes to "
    "standard error. Options come\n"
    "before COMMAND; what follows it are its arguments. A key of --what-if is one of the\n"
    "model's, unless COMMAND has an option --KEY or {KEY=VALUE} in a word.\n"
    "\n"
    "  weir sim --gpu h200 --costs kernels.ini ./program\n"
    "  weir sim --gpu c1060,k20c,h200 --what-if copy_engines=1 ./program";

// What both forms take.
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

struct options {
    const char *gpus;
    const char *changes;
    const char *picture;
    struct sim_common common;
};

static char **parse(struct options *out, int argc, char **argv)
{
    struct sim_common *common = &out->common;
    const struct cli_option options[] = {
        {"gpu", "NAME,...",
         "the GPUs: names of models, such as h200, or INI files,\nwith a / in their names, or .ini "
         "at their end",
         CLI_TEXT, &out->gpus, 0, 0},
        {"what-if", "KEY=VALUE,...", "also with these keys changed, of the models or of COMMAND",
         CLI_TEXT, &out->changes, 0, 0},
        SIM_OPTIONS(common),
        {"output", "FILE",
         "write the trace to FILE; without it, sim.json. The names\nof several get the GPU's "
         "before the end",
         CLI_FILE, &common->output, 0, 0},
        {"picture", "FILE.svg", "also draw the runs into this file, one below the other", CLI_FILE,
         &out->picture, 0, 0},
        {"json", NULL, "print the reports as one JSON object", CLI_FLAG, &common->json, 0, 0},
        {"quiet", NULL, "print nothing but errors and the report", CLI_FLAG, &common->quiet, 0, 0},
    };
    struct cli_usage usage =
        CLI_FORM_PROGRAM("weir sim", "COMMAND [ARGUMENT]...", about, "weir-sim(1)", options);
    usage.beside = &sim_others;
    char **command = cli_program_parse(&usage, argc, argv);
    if (!out->gpus)
        cli_fail(CLI_USAGE, "weir sim needs a GPU, such as --gpu h200");
    return command;
}

// The runs.

static void read_changes(const struct sim_list *changes, char *const *command,
                         struct sim_settings *settings)
{
    if (changes->count > SIM_SETTINGS)
        cli_fail(CLI_USAGE, "--what-if changes %d keys at most", SIM_SETTINGS);
    for (size_t i = 0; i < changes->count; i++) {
        char *key;
        char *value;
        if (!cli_sim_cut(changes->items[i], &key, &value))
            cli_fail(CLI_USAGE, "--what-if is KEY=VALUE,..., such as copy_engines=1,slots=2");
        settings->items[settings->count++] = (struct sim_setting){.key = key, .value = value};
    }
    cli_sim_settle(settings, command);
}

static void add_run(struct sim_runs *runs, const char *gpu, char *const *command,
                    const struct sim_settings *settings)
{
    if (runs->count == SIM_RUNS)
        cli_fail(CLI_USAGE, "weir sim runs a program %d times at most; name fewer GPUs", SIM_RUNS);
    cli_sim_make_run(&runs->items[runs->count++], gpu, command, settings);
}

static void make_runs(struct sim_runs *runs, const struct options *options, char *const *command)
{
    struct sim_list gpus, changes;
    struct sim_settings settings = {.count = 0};
    cli_sim_list_read(&gpus, options->gpus, "--gpu");
    cli_sim_list_read(&changes, options->changes, "--what-if");
    read_changes(&changes, command, &settings);
    struct sim_settings without = settings;
    for (size_t i = 0; i < without.count; i++)
        without.items[i].value = NULL;
    for (size_t i = 0; i < gpus.count; i++) {
        add_run(runs, gpus.items[i], command, &without);
        if (settings.count)
            add_run(runs, gpus.items[i], command, &settings);
    }
    if (gpus.count == 0)
        cli_fail(CLI_USAGE, "--gpu names no GPU; write one, such as --gpu h200");
}

CLI_DESTROYER(destroy_report, weir_report_destroy)

static void run_all(struct sim_runs *runs, const char *output)
{
    for (size_t i = 0; i < runs->count; i++)
        cli_sim_name_trace(&runs->items[i], output, runs->count > 1 ? i + 1 : 0);
    for (size_t i = 0; i < runs->count; i++)
        cli_sim_check(&runs->items[i]);
    for (size_t i = 0; i < runs->count; i++) {
        cli_own(destroy_report, &runs->items[i].report, NULL);
        cli_go_on(cli_sim_once(&runs->items[i], STDERR_FILENO));
    }
}

static int tell(const struct sim_runs *runs, const struct sim_common *common)
{
    for (size_t i = 0; i < runs->count && !common->quiet; i++)
        cli_note("%s: the trace of %s%s%s", runs->items[i].trace, runs->items[i].gpu,
                 *runs->items[i].what_if ? " with " : "", runs->items[i].what_if);
    return common->json ? cli_sim_tell_json(runs) : cli_sim_tell(runs);
}

int cli_sim_run(int argc, char **argv)
{
    static struct sim_runs runs;
    struct options options = {.common.output = "sim.json"};
    char **command = parse(&options, argc, argv);
    make_runs(&runs, &options, command);
    cli_need_writable(options.picture);
    cli_sim_prepare(&options.common);
    run_all(&runs, options.common.output);
    if (options.picture)
        cli_go_on(cli_sim_draw(&runs, options.picture));
    return tell(&runs, &options.common);
}

// Sweeps: the values, and which of them a run has.

// "1..8". False if it is none.
static bool read_range(const char *text, long *out_first, long *out_last)
{
    char *end;
    *out_first = strtol(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0)
        return false;
    const char *last = end + 2;
    *out_last = strtol(last, &end, 10);
    return end > last && *end == '\0' && *out_first >= 0 && *out_first <= *out_last;
}

// Ranges become lists.
static void read_values(struct sweep_axis *axis, const char *values)
{
    struct weir_long_text text = {0};
    struct sim_list list;
    cli_sim_list_read(&list, values, "--over");
    for (size_t i = 0; i < list.count; i++) {
        long first;
        long last;
        if (!read_range(list.items[i], &first, &last)) {
            weir_long_text_add(&text, "%s,", list.items[i]);
            continue;
        }
        for (long value = first; value <= last && value <= first + SIM_LIST; value++)
            weir_long_text_add(&text, "%ld,", value);
    }
    cli_sim_list_read(&axis->values, cli_take_text(&text), "--over");
}

static void add_axis(struct sweep *sweep, const char *over)
{
    char *values;
    struct sweep_axis *axis = &sweep->axes[sweep->axis_count++];
    if (!cli_sim_cut(cli_copy(over), &axis->key, &values) || strspn(values, ", ") == strlen(values))
        cli_fail(CLI_USAGE, "--over is KEY=VALUE,..., such as slots=1,2,3 or slots=1..3, not '%s'",
                 over);
    for (size_t i = 0; i + 1 < sweep->axis_count; i++)
        if (strcmp(sweep->axes[i].key, axis->key) == 0)
            cli_fail(CLI_USAGE, "--over %s is given twice; list all its values once", axis->key);
    read_values(axis, values);
}

static void make_points(struct sweep *sweep)
{
    const size_t gpus = sweep->gpus.count;
    sweep->per_gpu = 1;
    for (size_t i = 0; i < sweep->axis_count && sweep->per_gpu <= SWEEP_RUNS; i++)
        sweep->per_gpu *= sweep->axes[i].values.count;
    if (sweep->per_gpu * gpus > SWEEP_RUNS)
        cli_fail(CLI_USAGE, "these are more than %d runs; name fewer values", SWEEP_RUNS);
    sweep->points = cli_allocate(sweep->per_gpu * gpus, sizeof *sweep->points);
    sweep->best = cli_allocate(gpus, sizeof *sweep->best);
    sweep->traces = cli_allocate(gpus, sizeof *sweep->traces);
}

static void make_sweep(struct sweep *sweep, const char *gpus, const struct cli_list *over)
{
    cli_sim_list_read(&sweep->gpus, gpus, "--gpu");
    if (sweep->gpus.count == 0)
        cli_fail(CLI_USAGE, "--gpu names no GPU; write one, such as --gpu h200");
    if (over->count > SWEEP_AXES)
        cli_fail(CLI_USAGE, "--over is given %d times at most", SWEEP_AXES);
    for (size_t i = 0; i < over->count; i++)
        add_axis(sweep, over->items[i]);
    make_points(sweep);
}

size_t sweep_value(const struct sweep *sweep, size_t run, size_t axis)
{
    for (size_t i = sweep->axis_count; i-- > axis + 1;)
        run /= sweep->axes[i].values.count;
    return run % sweep->axes[axis].values.count;
}

void sweep_settings(const struct sweep *sweep, size_t run, struct sim_settings *settings)
{
    settings->count = sweep->axis_count;
    for (size_t i = 0; i < sweep->axis_count; i++)
        settings->items[i] = (struct sim_setting){
            .key = sweep->axes[i].key,
            .value = sweep->axes[i].values.items[sweep_value(sweep, run, i)],
        };
}

void sweep_name(const struct sweep *sweep, size_t run, char *text, size_t size)
{
    struct sim_settings settings;
    size_t used = 0;
    text[0] = '\0';
    sweep_settings(sweep, run, &settings);
    for (size_t i = 0; i < settings.count; i++)
        weir_text_append(text, size, &used, "%s%s=%s", i ? ", " : "", settings.items[i].key,
                         settings.items[i].value);
}

size_t sweep_enough(const struct sweep *sweep, size_t gpu)
{
    size_t run = gpu * sweep->per_gpu;
    while (sweep->points[run].span_ns > 1.01 * sweep->points[sweep->best[gpu]].span_ns)
        run++;
    return run;
}

// Sweeps: the command line, and the runs.

static const char about_sweep[] =
    "Runs COMMAND, any program that uses Weir, on modelled GPUs, as weir sim does, once for each\n"
    "combination of values, prints a row for each, and tells the best: the one whose work takes\n"
    "least from its first start to its last end. A KEY is one of COMMAND, which has an option "
    "--KEY\n"
    "or {KEY} in a word, or else one of the models. What COMMAND prints on standard output is\n"
    "dropped. Options come before COMMAND; what follows it are its arguments.\n"
    "\n"
    "  weir sim sweep --gpu h200 --over slots=1..8 ./program --slots 3";

struct sweep_options {
    const char *gpus;
    struct cli_list over;
    const char *plot;
    struct sim_common common;
};

static char **parse_sweep(struct sweep_options *out, int argc, char **argv)
{
    struct sim_common *common = &out->common;
    const struct cli_option options[] = {
        {"gpu", "NAME,...", "the GPUs, as in weir sim", CLI_TEXT, &out->gpus, 0, 0},
        {"over", "KEY=VALUE,...",
         "the values of a key; 1..8 are all of these. Given once\nfor each key; the first is the "
         "plot's axis",
         CLI_LIST, &out->over, 0, 0},
        {"plot", "FILE.svg", "also draw the curves into this file", CLI_FILE, &out->plot, 0, 0},
        SIM_OPTIONS(common),
        {"output", "FILE",
         "write the best run's trace to FILE; without it, sim.json.\nThe names of several GPUs' "
         "get "
         "the GPU's before the end",
         CLI_FILE, &common->output, 0, 0},
        {"json", NULL, "print the figures as one JSON object", CLI_FLAG, &common->json, 0, 0},
        {"quiet", NULL, "print nothing but errors and the table", CLI_FLAG, &common->quiet, 0, 0},
    };
    const struct cli_usage usage = CLI_FORM_PROGRAM("weir sim sweep", "COMMAND [ARGUMENT]...",
                                                    about_sweep, "weir-sim(1)", options);
    char **command = cli_program_parse(&usage, argc, argv);
    if (!out->gpus || out->over.count == 0)
        cli_fail(CLI_USAGE, "weir sim sweep needs %s",
                 out->gpus ? "values, such as --over slots=1,2,3" : "a GPU, such as --gpu h200");
    return command;
}

// Running.

static void make_run(const struct sweep *sweep, size_t number, char *const *command,
                     struct sim_run *run)
{
    struct sim_settings settings;
    sweep_settings(sweep, number, &settings);
    cli_sim_settle(&settings, command);
    cli_sim_make_run(run, sweep->gpus.items[number / sweep->per_gpu], command, &settings);
}

static size_t run_count(const struct sweep *sweep)
{
    return sweep->gpus.count * sweep->per_gpu;
}

void cli_sim_take(const struct sim_run *run, struct sweep_point *point)
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
static void keep(struct sweep *sweep, size_t number, const struct sim_run *run)
{
    const size_t gpu = number / sweep->per_gpu;
    const bool first = number % sweep->per_gpu == 0;
    if (!first && sweep->points[number].span_ns >= sweep->points[sweep->best[gpu]].span_ns) {
        unlink(run->trace);
        return;
    }
    sweep->best[gpu] = number;
    if (rename(run->trace, sweep->traces[gpu]) != 0)
        cli_fail(CLI_FAILED, "%s cannot become %s: %s", run->trace, sweep->traces[gpu],
                 strerror(errno));
}

static void run_one(struct sweep *sweep, size_t number, struct sim_run *run, const char *output,
                    int sink)
{
    cli_sim_name_trace(run, output, run_count(sweep) + 1);
    const int code = cli_sim_once(run, sink);
    if (code == CLI_OK)
        cli_sim_take(run, &sweep->points[number]);
    weir_report_destroy(&run->report);
    if (code == CLI_OK)
        keep(sweep, number, run);
    else
        unlink(run->trace);
    cli_go_on(code);
}

static void name_traces(struct sweep *sweep, const char *output)
{
    for (size_t i = 0; i < sweep->gpus.count; i++) {
        struct sim_run run = {.gpu = sweep->gpus.items[i]};
        cli_sim_name_trace(&run, output, sweep->gpus.count > 1 ? i + 1 : 0);
        sweep->traces[i] = run.trace;
    }
}

static void end_progress(void *object, void *with)
{
    (void)with;
    cli_progress_end(object);
    cli_program_end_series();
}

// Finds what is wrong with a model before anything runs.
static void sweep_all(struct sweep *sweep, char *const *command, const struct sim_common *common)
{
    static struct cli_progress progress;
    const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct sim_run *runs = cli_allocate(run_count(sweep), sizeof *runs);
    if (sink < 0)
        cli_fail(CLI_FAILED, "/dev/null cannot be written: %s", strerror(errno));
    for (size_t i = 0; i < run_count(sweep); i++) {
        make_run(sweep, i, command, &runs[i]);
        cli_sim_check(&runs[i]);
    }
    name_traces(sweep, common->output);
    cli_progress_start(&progress, !common->quiet, run_count(sweep), "runs/s");
    cli_program_begin_series();
    cli_own(end_progress, &progress, NULL);
    for (size_t i = 0; i < run_count(sweep); i++) {
        run_one(sweep, i, &runs[i], common->output, sink);
        cli_go_on(cli_program_signal() ? CLI_SIGNALLED + cli_program_signal() : CLI_OK);
        cli_progress_update(&progress, i + 1, sweep->gpus.items[i / sweep->per_gpu]);
    }
    cli_progress_end(&progress);
    close(sink);
}

int cli_sim_sweep(int argc, char **argv)
{
    struct sweep_options options = {.common.output = "sim.json"};
    static struct sweep sweep;
    char **command = parse_sweep(&options, argc, argv);
    make_sweep(&sweep, options.gpus, &options.over);
    if (options.plot)
        sweep_check_plot(&sweep);
    cli_need_writable(options.plot);
    cli_sim_prepare(&options.common);
    sweep_all(&sweep, command, &options.common);
    if (options.plot)
        cli_go_on(sweep_plot(&sweep, command[0], options.plot));
    for (size_t i = 0; i < sweep.gpus.count && !options.common.quiet; i++)
        cli_note("%s: the trace of the best on %s", sweep.traces[i], sweep.gpus.items[i]);
    return options.common.json ? sweep_tell_json(&sweep) : sweep_tell(&sweep);
}
