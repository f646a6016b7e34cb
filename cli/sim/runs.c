// A program on modelled GPUs: it runs once for each, and once more for each with --what-if; what is told of these
// runs, and a picture of their operations.
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "cli/common/output.h"
#include "cli/common/plot.h"
#include "cli/sim/sim.h"
#include "report/report.h"

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
        CLI_QUIET("print nothing but errors and the report"),
    };
    const struct cli_usage usage =
        CLI_FORM_PROGRAM("weir sim", "COMMAND [ARGUMENT]...", about, options);
    char **command = cli_program_parse(&usage, argc, argv);
    if (!out->gpus)
        cli_fail(CLI_USAGE, "weir sim needs a GPU, such as --gpu h200");
    return command;
}

enum {
    RUNS_MOST = 32,
};

struct sim_runs {
    struct sim_run items[RUNS_MOST];
    size_t count;
};

// The runs.

static void add_run(struct sim_runs *runs, const char *gpu, char *const *command,
                    const struct sim_settings *settings)
{
    if (runs->count == RUNS_MOST)
        cli_fail(CLI_USAGE, "weir sim runs a program %d times at most; name fewer GPUs", RUNS_MOST);
    cli_sim_make_run(&runs->items[runs->count++], gpu, command, *settings);
}

static void make_runs(struct sim_runs *runs, const struct options *options, char *const *command)
{
    struct sim_list gpus, changes;
    struct sim_settings settings = {.count = 0};
    cli_sim_list_read(&gpus, options->gpus, "--gpu");
    cli_sim_list_read(&changes, options->changes, "--what-if");
    if (changes.count > SIM_SETTINGS)
        cli_fail(CLI_USAGE, "--what-if changes %d keys at most", SIM_SETTINGS);
    struct sim_settings without = {.count = changes.count};
    for (size_t i = 0; i < changes.count; i++) {
        char *key, *value;
        if (!cli_sim_cut(changes.items[i], &key, &value))
            cli_fail(CLI_USAGE, "--what-if is KEY=VALUE,..., such as copy_engines=1,slots=2");
        without.items[i] = (struct sim_setting){.key = key};
        settings.items[settings.count++] = (struct sim_setting){.key = key, .value = value};
    }
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
        cli_own(destroy_report, &runs->items[i].report);
        cli_go_on(cli_sim_once(&runs->items[i], STDERR_FILENO));
    }
}

// What is told.

void cli_sim_take(const struct sim_run *run, struct sim_point *point)
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

void cli_sim_add_point(struct weir_table *table, const struct sim_point *point, double first_ns)
{
    weir_table_add(table, "%s", weir_text_duration(point->span_ns).text);
    weir_table_add(table, first_ns > 0 ? "%.3f" : "n/a", point->span_ns / first_ns);
    weir_table_add(table, isnan(point->hidden) ? "n/a" : "%.1f %%", 100 * point->hidden);
    weir_table_add(table, "%.1f %%", 100 * point->idle);
    weir_table_add(table, "%s %s", weir_text_duration(point->bound_ns).text, point->bound_engine);
}

static int tell_reports(const struct sim_runs *runs)
{
    if (runs->count == 1) {
        char *text = weir_report_text(runs->items[0].report);
        if (!text)
            return cli_weir_error();
        fputs(text, stdout);
        weir_report_free_text(&text);
        return CLI_OK;
    }
    const double first = (double)weir_report_get_summary(runs->items[0].report)->span_ns;
    struct weir_table table = {.alignment = "lrrrrll"};
    weir_table_add(&table, "gpu\tspan\tof the first\tcopies hidden\tidle\tbound\twhat if");
    for (size_t i = 0; i < runs->count; i++) {
        const struct sim_run *run = &runs->items[i];
        struct sim_point point;
        cli_sim_take(run, &point);
        weir_table_add(&table, "%s", run->gpu);
        cli_sim_add_point(&table, &point, first);
        weir_table_add(&table, "%s", *run->what_if ? run->what_if : "-");
    }
    cli_table_print(&table, stdout, 0);
    return CLI_OK;
}

static int tell_reports_json(const struct sim_runs *runs)
{
    json_t *list = json_array();
    for (size_t i = 0; i < runs->count; i++) {
        const struct sim_run *run = &runs->items[i];
        char *text = weir_report_json(run->report);
        json_t *report = text ? weir_json_load(text, strlen(text), 0, NULL) : NULL;
        weir_report_free_text(&text);
        cli_json_append(list, json_pack("{s:o, s:o, s:o, s:o}", "gpu", cli_json_string(run->gpu),
                                        "what_if", cli_json_string(run->what_if), "trace",
                                        cli_json_string(run->trace), "report", report));
    }
    return cli_json_print(json_pack("{s:o}", "runs", list), CLI_OK);
}

// Pictures: the operations of each run on one axis of time.

enum {
    WIDTH = 900,
    LEFT = 100,
    RIGHT = 880,
    TOP = 16,
    HEAD = 28, // of a run
    ROW = 20,
    AXIS = 48,
    PARTS_MOST = 8,         // of a row
    OPERATIONS_MOST = 4000, // of all runs
};

static double span_of(const struct sim_run *run)
{
    return (double)weir_report_get_summary(run->report)->span_ns;
}

static size_t height_of(const struct sim_run *run)
{
    return HEAD + ROW * weir_report_row_count(run->report, WEIR_REPORT_ENGINES);
}

static double x_of(double ns, double most_ns)
{
    return LEFT + ns / most_ns * (RIGHT - LEFT);
}

static void put_axis(FILE *to, double y, double most_ns)
{
    const double step = cli_plot_step(most_ns / 1e6);
    const int last = (int)floor(most_ns / 1e6 / step + 1e-9);
    for (int i = 0; i <= last; i++) {
        const double ms = step * i;
        const double x = x_of(ms * 1e6, most_ns);
        fprintf(to,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-opacity=\"0.35\"/>\n",
                x, TOP + HEAD, x, y + 5, CLI_PLOT_INK);
        cli_plot_label(to, x, y + 20, "text-anchor=\"middle\"", cli_text("%.6g", ms));
    }
    cli_plot_label(to, (LEFT + RIGHT) / 2.0, y + 38, "text-anchor=\"middle\"", "ms");
}

// Of a row, the ends of its parts: what runs beside others has a part of its own.
struct parts {
    uint64_t ends[PARTS_MOST];
    size_t count;
};

// The first free part; the last one if none is.
static size_t take_part(struct parts *parts, const struct weir__run *it)
{
    size_t part = 0;
    while (part + 1 < PARTS_MOST && part < parts->count && parts->ends[part] > it->begin)
        part++;
    parts->ends[part] = it->end;
    if (part >= parts->count)
        parts->count = part + 1;
    return part;
}

// The number of its queue, where there is room.
static void put_number(FILE *to, uint32_t queue, double x, double y, double width, double height)
{
    const char *text = cli_text("%u", (unsigned)queue + 1);
    if (height >= 12 && width >= 8 + 7 * (double)strlen(text))
        fprintf(to,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"11\" "
                "fill=\"#fff\">%s</text>\n",
                x + width / 2, y + height / 2 + 4, text);
}

static void put_bar(FILE *to, const struct sim_run *run, const struct weir__run *it, double y,
                    double height, double most_ns)
{
    const weir_report *report = run->report;
    const uint32_t queue = (uint32_t)report->trace->operations[it->operation].queue_index;
    const uint64_t begin_ns = weir_report_get_summary(report)->begin_ns;
    const double from = x_of((double)(it->begin - begin_ns), most_ns);
    const double end = x_of((double)(it->end - begin_ns), most_ns);
    fprintf(to, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n", from,
            y, fmax(end - from - 0.5, 2), height, // it is seen, however short it is
            weir_trace_engine_colour(weir__lane_engine(it->lane)));
    if (report->trace->queue_count > 1)
        put_number(to, queue, from, y, end - from, height);
}

// The runs of a report are in the order of their starts.
static void put_lane(FILE *to, const struct sim_run *run, uint32_t lane, double y, double most_ns)
{
    const weir_report *report = run->report;
    struct parts all = {.count = 0};
    struct parts parts = {.count = 0};
    for (size_t i = 0; i < report->run_count; i++)
        if (report->runs[i].lane == lane)
            take_part(&all, &report->runs[i]);
    for (size_t i = 0; i < report->run_count; i++) {
        if (report->runs[i].lane != lane)
            continue;
        const double height = (double)(ROW - 4) / (double)all.count;
        const size_t part = take_part(&parts, &report->runs[i]);
        put_bar(to, run, &report->runs[i], y + 2 + height * (double)part, height, most_ns);
    }
}

static void put_run(FILE *to, const struct sim_run *run, double y, double most_ns)
{
    const weir_report *report = run->report;
    cli_plot_label(to, LEFT, y + 20, "font-weight=\"600\"",
                   cli_text("%s%s%s: %s", run->gpu, *run->what_if ? ", " : "", run->what_if,
                            weir_text_duration(span_of(run)).text));
    y += HEAD;
    for (size_t i = 0; i < report->run_count; i++) {
        const uint32_t lane = report->runs[i].lane;
        if (report->runs[i].before > 0) // the first of a lane places it
            continue;
        cli_plot_label(to, LEFT - 8, y + 14, "text-anchor=\"end\"",
                       weir_trace_engine_name(weir__lane_engine(lane)));
        put_lane(to, run, lane, y, most_ns);
        y += ROW;
    }
}

static size_t height_of_all(const struct sim_runs *runs)
{
    size_t height = TOP + AXIS;
    for (size_t i = 0; i < runs->count; i++)
        height += height_of(&runs->items[i]);
    return height;
}

static void put_all(FILE *to, const void *user)
{
    const struct sim_runs *runs = user;
    double most_ns = 1;
    size_t y = TOP;
    for (size_t i = 0; i < runs->count; i++)
        most_ns = fmax(most_ns, span_of(&runs->items[i]));
    put_axis(to, (double)(height_of_all(runs) - AXIS), most_ns);
    for (size_t i = 0; i < runs->count; i++) {
        put_run(to, &runs->items[i], (double)y, most_ns);
        y += height_of(&runs->items[i]);
    }
}

static void draw(const struct sim_runs *runs, const char *path)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++)
        count += runs->items[i].report->run_count;
    if (count > OPERATIONS_MOST)
        cli_fail(
            CLI_FAILED,
            "--picture draws %d operations at most, and these are %zu; `weir trace html` shows any "
            "number",
            OPERATIONS_MOST, count);
    cli_picture_write(path, WIDTH, (int)height_of_all(runs), put_all, runs);
}

static int run_main(int argc, char **argv)
{
    static struct sim_runs runs;
    struct options options = {.common.output = "sim.json"};
    char **command = parse(&options, argc, argv);
    make_runs(&runs, &options, command);
    cli_need_writable(options.picture);
    cli_sim_prepare(&options.common);
    run_all(&runs, options.common.output);
    if (options.picture)
        draw(&runs, options.picture);
    for (size_t i = 0; i < runs.count; i++)
        cli_note("%s: the trace of %s%s%s", runs.items[i].trace, runs.items[i].gpu,
                 *runs.items[i].what_if ? " with " : "", runs.items[i].what_if);
    return options.common.json ? tell_reports_json(&runs) : tell_reports(&runs);
}

const struct cli_command cli_sim_members[] = {
    {.name = "learn", .summary = "what kernels cost, from traces", .main = cli_sim_learn},
    {.name = "sweep", .summary = "the best of many settings", .main = cli_sim_sweep},
    {0},
};

// A first word that is nearly one of a member's names is a slip.
int cli_sim(int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    const char *nearest = NULL;
    for (size_t i = 0; cli_sim_members[i].name && first[0] != '-'; i++)
        nearest = weir_text_nearer(first, nearest, cli_sim_members[i].name);
    if (nearest)
        cli_fail(CLI_USAGE, "weir sim has no '%s'; did you mean '%s'?", first, nearest);
    return run_main(argc, argv);
}
