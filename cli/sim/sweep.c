// A sweep: a program runs on modelled GPUs once for each combination of values; what is told of the runs, and curves.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "cli/common/output.h"
#include "cli/common/plot.h"
#include "cli/common/progress.h"
#include "cli/sim/sim.h"

enum {
    SWEEP_AXES = 8,
    SWEEP_RUNS = 4096,
};

// A key, and what it is set to.
struct sweep_axis {
    char *key;
    struct sim_list values; // at least one
};

// Runs are numbered: the GPU changes slowest, then the first axis, and the last one fastest.
struct sweep {
    struct sim_list gpus;
    struct sweep_axis axes[SWEEP_AXES];
    size_t axis_count;
    size_t per_gpu; // runs
    struct sim_run *runs;
    struct sim_point *points;
    size_t *best;        // of each GPU, a run's number
    const char **traces; // of the best
};

// The values, and which of them a run has.

// "1..8". False if it is none.
static bool read_range(const char *text, long *out_first, long *out_last)
{
    char *end;
    errno = 0;
    *out_first = strtol(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0)
        return false;
    const char *last = end + 2;
    *out_last = strtol(last, &end, 10);
    return errno == 0 && end > last && *end == '\0' && *out_first >= 0 && *out_first <= *out_last;
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
        for (long more = 0; more <= last - first && more <= SIM_LIST; more++)
            weir_long_text_add(&text, "%ld,", first + more);
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

static void make_sweep(struct sweep *sweep, const char *gpu, const struct weir_words *over)
{
    cli_sim_list_read(&sweep->gpus, gpu, "--gpu");
    const size_t gpus = sweep->gpus.count;
    if (gpus == 0)
        cli_fail(CLI_USAGE, "--gpu names no GPU; write one, such as --gpu h200");
    if (over->count > SWEEP_AXES)
        cli_fail(CLI_USAGE, "--over is given %d times at most", SWEEP_AXES);
    for (size_t i = 0; i < over->count; i++)
        add_axis(sweep, over->items[i]);
    sweep->per_gpu = 1;
    for (size_t i = 0; i < sweep->axis_count && sweep->per_gpu <= SWEEP_RUNS; i++)
        sweep->per_gpu *= sweep->axes[i].values.count;
    if (sweep->per_gpu * gpus > SWEEP_RUNS)
        cli_fail(CLI_USAGE, "these are more than %d runs; name fewer values", SWEEP_RUNS);
    sweep->runs = cli_allocate(sweep->per_gpu * gpus, sizeof *sweep->runs);
    sweep->points = cli_allocate(sweep->per_gpu * gpus, sizeof *sweep->points);
    sweep->best = cli_allocate(gpus, sizeof *sweep->best);
    sweep->traces = cli_allocate(gpus, sizeof *sweep->traces);
}

// The values of that run.
static void sweep_settings(const struct sweep *sweep, size_t run, struct sim_settings *settings)
{
    settings->count = sweep->axis_count;
    for (size_t i = sweep->axis_count; i-- > 0;) {
        const struct sweep_axis *axis = &sweep->axes[i];
        settings->items[i] =
            (struct sim_setting){.key = axis->key,
                                 .value = axis->values.items[run % axis->values.count]};
        run /= axis->values.count;
    }
}

// The first run of the best one's GPU that takes at most 1 % more.
static size_t sweep_enough(const struct sweep *sweep, size_t gpu)
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
    struct weir_words over;
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
        CLI_QUIET("print nothing but errors and the table"),
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir sim sweep", "COMMAND [ARGUMENT]...", about_sweep, options);
    char **command = cli_program_parse(&usage, argc, argv);
    if (!out->gpus || out->over.count == 0)
        cli_fail(CLI_USAGE, "weir sim sweep needs %s",
                 out->gpus ? "values, such as --over slots=1,2,3" : "a GPU, such as --gpu h200");
    return command;
}

// Running.

static size_t run_count(const struct sweep *sweep)
{
    return sweep->gpus.count * sweep->per_gpu;
}

// Its trace is kept if it is the GPU's best so far.
static void run_one(struct sweep *sweep, size_t number, const char *output, int sink)
{
    struct sim_run *run = &sweep->runs[number];
    cli_sim_name_trace(run, output, run_count(sweep) + 1);
    const size_t gpu = number / sweep->per_gpu;
    const int code = cli_sim_once(run, sink);
    if (code == CLI_OK)
        cli_sim_take(run, &sweep->points[number]);
    weir_report_destroy(&run->report);
    if (code != CLI_OK ||
        (number % sweep->per_gpu > 0 &&
         sweep->points[number].span_ns >= sweep->points[sweep->best[gpu]].span_ns)) {
        unlink(run->trace);
        cli_go_on(code);
        return;
    }
    sweep->best[gpu] = number;
    if (rename(run->trace, sweep->traces[gpu]) != 0)
        cli_fail(CLI_FAILED, "%s cannot become %s: %s", run->trace, sweep->traces[gpu],
                 strerror(errno));
}

static void name_traces(struct sweep *sweep, const char *output)
{
    for (size_t i = 0; i < sweep->gpus.count; i++) {
        struct sim_run run = {.gpu = sweep->gpus.items[i]};
        cli_sim_name_trace(&run, output, sweep->gpus.count > 1 ? i + 1 : 0);
        sweep->traces[i] = run.trace;
    }
}

CLI_DESTROYER(end_progress, cli_progress_end)

// Finds what is wrong with a model before anything runs.
static void sweep_all(struct sweep *sweep, char *const *command, const struct sim_common *common)
{
    static struct cli_progress progress;
    const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (sink < 0)
        cli_fail(CLI_FAILED, "/dev/null cannot be written: %s", strerror(errno));
    for (size_t i = 0; i < run_count(sweep); i++) {
        struct sim_settings settings;
        sweep_settings(sweep, i, &settings);
        cli_sim_make_run(&sweep->runs[i], sweep->gpus.items[i / sweep->per_gpu], command, settings);
        cli_sim_check(&sweep->runs[i]);
    }
    name_traces(sweep, common->output);
    cli_progress_start(&progress, true, run_count(sweep), "runs/s");
    cli_program_begin_series();
    cli_own(end_progress, &progress);
    for (size_t i = 0; i < run_count(sweep); i++) {
        run_one(sweep, i, common->output, sink);
        cli_go_on(cli_program_signal() ? CLI_SIGNALLED + cli_program_signal() : CLI_OK);
        cli_progress_update(&progress, i + 1, sweep->gpus.items[i / sweep->per_gpu]);
    }
    cli_progress_end(&progress);
    close(sink);
}

// What is told.

static void tell_best(const struct sweep *sweep, size_t gpu)
{
    const size_t best = sweep->best[gpu];
    const size_t enough = sweep_enough(sweep, gpu);
    const double span_ns = sweep->points[best].span_ns;
    printf("best on %s: %s, %s", sweep->gpus.items[gpu], sweep->runs[best].what_if,
           weir_text_duration(span_ns).text);
    if (enough != best)
        printf("; %s takes %.1f %% more", sweep->runs[enough].what_if,
               100 * (sweep->points[enough].span_ns / span_ns - 1));
    printf("\n");
}

static int tell_sweep(const struct sweep *sweep)
{
    struct weir_table table = {.alignment =
                                   cli_text("l%.*srrrrl", (int)sweep->axis_count, "rrrrrrrr")};
    weir_table_add(&table, "gpu");
    for (size_t i = 0; i < sweep->axis_count; i++)
        weir_table_add(&table, "%s", sweep->axes[i].key);
    weir_table_add(&table, "span\tof the best\tcopies hidden\tidle\tbound");
    for (size_t run = 0; run < run_count(sweep); run++) {
        const struct sim_settings *settings = &sweep->runs[run].settings;
        const size_t gpu = run / sweep->per_gpu;
        weir_table_add(&table, "%s", sweep->gpus.items[gpu]);
        for (size_t i = 0; i < settings->count; i++)
            weir_table_add(&table, "%s", settings->items[i].value);
        cli_sim_add_point(&table, &sweep->points[run], sweep->points[sweep->best[gpu]].span_ns);
    }
    cli_table_print(&table, stdout, 0);
    for (size_t i = 0; i < sweep->gpus.count; i++)
        tell_best(sweep, i);
    return CLI_OK;
}

static json_t *settings_json(const struct sim_settings *settings)
{
    json_t *object = json_object();
    for (size_t i = 0; i < settings->count; i++)
        cli_json_set(object, settings->items[i].key, cli_json_string(settings->items[i].value));
    return object;
}

static json_t *sweep_run_json(const struct sweep *sweep, size_t run)
{
    const struct sim_point *point = &sweep->points[run];
    return json_pack("{s:o, s:o, s:o, s:o, s:f, s:o, s:o}", "gpu",
                     cli_json_string(sweep->gpus.items[run / sweep->per_gpu]), "settings",
                     settings_json(&sweep->runs[run].settings), "span_ns",
                     weir_json_count((uint64_t)point->span_ns), "copies_hidden",
                     isnan(point->hidden) ? json_null() : json_real(point->hidden), "idle",
                     point->idle, "bound_ns", weir_json_count((uint64_t)point->bound_ns),
                     "bound_engine", cli_json_string(point->bound_engine));
}

static int tell_sweep_json(const struct sweep *sweep)
{
    json_t *runs = json_array();
    json_t *best = json_array();
    for (size_t i = 0; i < run_count(sweep); i++)
        cli_json_append(runs, sweep_run_json(sweep, i));
    for (size_t i = 0; i < sweep->gpus.count; i++) {
        json_t *object = sweep_run_json(sweep, sweep->best[i]);
        cli_json_set(object, "within_1_percent",
                     settings_json(&sweep->runs[sweep_enough(sweep, i)].settings));
        cli_json_set(object, "trace", cli_json_string(sweep->traces[i]));
        cli_json_append(best, object);
    }
    return cli_json_print(json_pack("{s:o, s:o}", "runs", runs, "best", best), CLI_OK);
}

// Curves.

// NAN: it is no number.
static double number_of(const char *text)
{
    char *end;
    const double number = weir_c_number(text, &end);
    return end > text && *end == '\0' && isfinite(number) ? number : NAN;
}

static bool has_numbers(const struct sweep_axis *axis)
{
    for (size_t i = 0; i < axis->values.count; i++)
        if (isnan(number_of(axis->values.items[i])))
            return false;
    return true;
}

// Each value is at least twice the one before.
static bool is_doubling(const struct sweep_axis *axis)
{
    double before = number_of(axis->values.items[0]);
    for (size_t i = 1; i < axis->values.count; i++) {
        const double value = number_of(axis->values.items[i]);
        if (!(before > 0 && value >= 2 * before))
            return false;
        before = value;
    }
    return axis->values.count > 2;
}

// Ends the command unless the plot has room for all.
static void check_plot(const struct sweep *sweep)
{
    const size_t most = has_numbers(&sweep->axes[0]) ? CLI_PLOT_POINTS_MAX : CLI_PLOT_GROUPS_MAX;
    const size_t values = sweep->axes[0].values.count;
    const size_t lines = run_count(sweep) / values;
    if (lines > CLI_PLOT_SERIES_MAX || values > most)
        cli_fail(CLI_USAGE,
                 "a plot has room for %d lines of %zu values, and these are %zu of %zu; name fewer "
                 "GPUs or values, or leave out --plot",
                 CLI_PLOT_SERIES_MAX, most, lines, values);
}

// On the line of "h200, queues=2".
static void plot_point(struct cli_plot *plot, const struct sweep *sweep, size_t run, bool numbers)
{
    const double ms = sweep->points[run].span_ns / 1e6;
    char name[CLI_PLOT_TEXT] = "";
    const struct sim_settings *settings = &sweep->runs[run].settings;
    const char *value = settings->items[0].value;
    size_t used = 0;
    weir_text_append(name, sizeof name, &used, "%s", sweep->gpus.items[run / sweep->per_gpu]);
    for (size_t i = 1; i < settings->count; i++)
        weir_text_append(name, sizeof name, &used, ", %s=%s", settings->items[i].key,
                         settings->items[i].value);
    cli_plot_add(cli_plot_series(plot, name),
                 (struct cli_plot_point){
                     .x = numbers ? number_of(value) : (double)cli_plot_group(plot, value),
                     .y = ms,
                     .low = ms,
                     .high = ms,
                 });
}

static void plot(const struct sweep *sweep, const char *command, const char *path)
{
    const bool numbers = has_numbers(&sweep->axes[0]);
    struct cli_plot *plot = cli_allocate(1, sizeof *plot);
    const char *base = strrchr(command, '/');
    snprintf(plot->title, sizeof plot->title, "%s on modelled GPUs", base ? base + 1 : command);
    snprintf(plot->subtitle, sizeof plot->subtitle, "virtual time, from weir sim sweep");
    snprintf(plot->x_name, sizeof plot->x_name, "%s", sweep->axes[0].key);
    snprintf(plot->y_name, sizeof plot->y_name, "span, ms");
    plot->doubling = numbers && is_doubling(&sweep->axes[0]);
    for (size_t i = 0; i < run_count(sweep); i++)
        plot_point(plot, sweep, i, numbers);
    cli_plot_write(plot, path);
}

int cli_sim_sweep(int argc, char **argv)
{
    struct sweep_options options = {.common.output = "sim.json"};
    static struct sweep sweep;
    char **command = parse_sweep(&options, argc, argv);
    make_sweep(&sweep, options.gpus, &options.over);
    if (options.plot)
        check_plot(&sweep);
    cli_need_writable(options.plot);
    cli_sim_prepare(&options.common);
    sweep_all(&sweep, command, &options.common);
    if (options.plot)
        plot(&sweep, command[0], options.plot);
    for (size_t i = 0; i < sweep.gpus.count; i++)
        cli_note("%s: the trace of the best on %s", sweep.traces[i], sweep.gpus.items[i]);
    return options.common.json ? tell_sweep_json(&sweep) : tell_sweep(&sweep);
}
