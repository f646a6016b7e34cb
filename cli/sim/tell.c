// What is printed and drawn of runs: reports, rows, pictures of their operations, and curves of sweeps.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

#include "base/c_locale.h"
#include "base/json/json.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "cli/common/plot.h"
#include "cli/sim/sim.h"
#include "report/report.h"

static void add_head(struct weir_table *table)
{
    static const char *const head[] = {"gpu",  "span",  "of the first", "copies hidden",
                                       "idle", "bound", "what if"};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        weir_table_add(table, "%s", head[i]);
}

static void add_point(struct weir_table *table, const struct sweep_point *point, double first_ns)
{
    char text[WEIR_TEXT_QUANTITY_SIZE];
    weir_table_add(table, "%s", weir_text_duration(text, point->span_ns));
    weir_table_add(table, first_ns > 0 ? "%.3f" : "n/a", point->span_ns / first_ns);
    weir_table_add(table, isnan(point->hidden) ? "n/a" : "%.1f %%", 100 * point->hidden);
    weir_table_add(table, "%.1f %%", 100 * point->idle);
    weir_table_add(table, "%s %s", weir_text_duration(text, point->bound_ns), point->bound_engine);
}

static void add_row(struct weir_table *table, const struct sim_run *run, double first_ns)
{
    struct sweep_point point;
    cli_sim_take(run, &point);
    weir_table_add(table, "%s", run->gpu);
    add_point(table, &point, first_ns);
    weir_table_add(table, "%s", *run->what_if ? run->what_if : "-");
}

int cli_sim_tell(const struct sim_runs *runs)
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
    add_head(&table);
    for (size_t i = 0; i < runs->count; i++)
        add_row(&table, &runs->items[i], first);
    cli_table_print(&table, stdout, 0);
    return CLI_OK;
}

static json_t *run_json(const struct sim_run *run)
{
    json_t *object = json_object();
    char *text = weir_report_json(run->report);
    cli_json_set(object, "gpu", cli_json_string(run->gpu));
    cli_json_set(object, "what_if", cli_json_string(run->what_if));
    cli_json_set(object, "trace", cli_json_string(run->trace));
    cli_json_set(object, "report", text ? weir_json_load(text, strlen(text), 0, NULL) : NULL);
    weir_report_free_text(&text);
    return object;
}

int cli_sim_tell_json(const struct sim_runs *runs)
{
    json_t *all = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < runs->count; i++)
        cli_json_append(list, run_json(&runs->items[i]));
    cli_json_set(all, "runs", list);
    return cli_json_print(all, CLI_OK);
}

// Sweeps.

enum {
    NAME_SIZE = 256
};

static double best_ns(const struct sweep *sweep, size_t run)
{
    return sweep->points[sweep->best[run / sweep->per_gpu]].span_ns;
}

static void add_sweep_head(struct weir_table *table, const struct sweep *sweep)
{
    static const char *const rest[] = {"span", "of the best", "copies hidden", "idle", "bound"};
    weir_table_add(table, "gpu");
    for (size_t i = 0; i < sweep->axis_count; i++)
        weir_table_add(table, "%s", sweep->axes[i].key);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        weir_table_add(table, "%s", rest[i]);
}

static void add_sweep_row(struct weir_table *table, const struct sweep *sweep, size_t run)
{
    struct sim_settings settings;
    sweep_settings(sweep, run, &settings);
    weir_table_add(table, "%s", sweep->gpus.items[run / sweep->per_gpu]);
    for (size_t i = 0; i < settings.count; i++)
        weir_table_add(table, "%s", settings.items[i].value);
    add_point(table, &sweep->points[run], best_ns(sweep, run));
}

static void tell_best(const struct sweep *sweep, size_t gpu)
{
    const size_t best = sweep->best[gpu];
    const size_t enough = sweep_enough(sweep, gpu);
    const double span_ns = sweep->points[best].span_ns;
    char name[NAME_SIZE];
    char text[WEIR_TEXT_QUANTITY_SIZE];
    sweep_name(sweep, best, name, sizeof name);
    printf("best on %s: %s, %s", sweep->gpus.items[gpu], name, weir_text_duration(text, span_ns));
    if (enough != best) {
        sweep_name(sweep, enough, name, sizeof name);
        printf("; %s takes %.1f %% more", name,
               100 * (sweep->points[enough].span_ns / span_ns - 1));
    }
    printf("\n");
}

int sweep_tell(const struct sweep *sweep)
{
    char alignment[SWEEP_AXES + 8];
    snprintf(alignment, sizeof alignment, "l%.*srrrrl", (int)sweep->axis_count, "rrrrrrrr");
    struct weir_table table = {.alignment = alignment};
    add_sweep_head(&table, sweep);
    for (size_t i = 0; i < sweep->gpus.count * sweep->per_gpu; i++)
        add_sweep_row(&table, sweep, i);
    cli_table_print(&table, stdout, 0);
    for (size_t i = 0; i < sweep->gpus.count; i++)
        tell_best(sweep, i);
    return CLI_OK;
}

static json_t *settings_json(const struct sweep *sweep, size_t run)
{
    struct sim_settings settings;
    json_t *object = json_object();
    sweep_settings(sweep, run, &settings);
    for (size_t i = 0; i < settings.count; i++)
        cli_json_set(object, settings.items[i].key, cli_json_string(settings.items[i].value));
    return object;
}

static json_t *sweep_run_json(const struct sweep *sweep, size_t run)
{
    const struct sweep_point *point = &sweep->points[run];
    json_t *object = json_object();
    cli_json_set(object, "gpu", cli_json_string(sweep->gpus.items[run / sweep->per_gpu]));
    cli_json_set(object, "settings", settings_json(sweep, run));
    cli_json_set(object, "span_ns", weir_json_count((uint64_t)point->span_ns));
    cli_json_set(object, "copies_hidden",
                 isnan(point->hidden) ? json_null() : json_real(point->hidden));
    cli_json_set(object, "idle", json_real(point->idle));
    cli_json_set(object, "bound_ns", weir_json_count((uint64_t)point->bound_ns));
    cli_json_set(object, "bound_engine", cli_json_string(point->bound_engine));
    return object;
}

static json_t *best_json(const struct sweep *sweep, size_t gpu)
{
    json_t *object = sweep_run_json(sweep, sweep->best[gpu]);
    cli_json_set(object, "within_1_percent", settings_json(sweep, sweep_enough(sweep, gpu)));
    cli_json_set(object, "trace", cli_json_string(sweep->traces[gpu]));
    return object;
}

int sweep_tell_json(const struct sweep *sweep)
{
    json_t *all = json_object();
    json_t *runs = json_array();
    json_t *best = json_array();
    for (size_t i = 0; i < sweep->gpus.count * sweep->per_gpu; i++)
        cli_json_append(runs, sweep_run_json(sweep, i));
    for (size_t i = 0; i < sweep->gpus.count; i++)
        cli_json_append(best, best_json(sweep, i));
    cli_json_set(all, "runs", runs);
    cli_json_set(all, "best", best);
    return cli_json_print(all, CLI_OK);
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
    return HEAD + ROW * run->report->lane_count;
}

static double longest(const struct sim_runs *runs)
{
    double ns = 1;
    for (size_t i = 0; i < runs->count; i++)
        ns = fmax(ns, span_of(&runs->items[i]));
    return ns;
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
        char text[32];
        const double x = x_of(ms * 1e6, most_ns);
        fprintf(to,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-opacity=\"0.35\"/>\n",
                x, TOP + HEAD, x, y + 5, CLI_PLOT_INK);
        snprintf(text, sizeof text, "%.6g", ms);
        cli_plot_label(to, x, y + 20, "text-anchor=\"middle\"", text);
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
    char text[16];
    snprintf(text, sizeof text, "%u", (unsigned)queue + 1);
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
            weir_trace_engine_colour(report->lanes[it->lane].engine));
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
    char title[256];
    char text[WEIR_TEXT_QUANTITY_SIZE];
    snprintf(title, sizeof title, "%s%s%s: %s", run->gpu, *run->what_if ? ", " : "", run->what_if,
             weir_text_duration(text, span_of(run)));
    cli_plot_label(to, LEFT, y + 20, "font-weight=\"600\"", title);
    for (uint32_t i = 0; i < report->lane_count; i++) {
        const double row = y + HEAD + ROW * (double)i;
        cli_plot_label(to, LEFT - 8, row + 14, "text-anchor=\"end\"",
                       weir_trace_engine_name(report->lanes[i].engine));
        put_lane(to, run, i, row, most_ns);
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
    const double most_ns = longest(runs);
    size_t y = TOP;
    put_axis(to, (double)(height_of_all(runs) - AXIS), most_ns);
    for (size_t i = 0; i < runs->count; i++) {
        put_run(to, &runs->items[i], (double)y, most_ns);
        y += height_of(&runs->items[i]);
    }
}

static void check_size(const struct sim_runs *runs)
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
}

int cli_sim_draw(const struct sim_runs *runs, const char *path)
{
    check_size(runs);
    return cli_picture_write(path, WIDTH, (int)height_of_all(runs), put_all, runs) ? CLI_OK
                                                                                   : CLI_FAILED;
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

static size_t series_count(const struct sweep *sweep)
{
    return sweep->gpus.count * (sweep->per_gpu / sweep->axes[0].values.count);
}

void sweep_check_plot(const struct sweep *sweep)
{
    const size_t most = has_numbers(&sweep->axes[0]) ? CLI_PLOT_POINTS_MAX : CLI_PLOT_GROUPS_MAX;
    if (series_count(sweep) > CLI_PLOT_SERIES_MAX || sweep->axes[0].values.count > most)
        cli_fail(CLI_USAGE,
                 "a plot has room for %d lines of %zu values, and these are %zu of %zu; name fewer "
                 "GPUs or values, or leave out --plot",
                 CLI_PLOT_SERIES_MAX, most, series_count(sweep), sweep->axes[0].values.count);
}

// "h200, queues=2".
static struct cli_plot_series *series_of(struct cli_plot *plot, const struct sweep *sweep,
                                         size_t run)
{
    char name[CLI_PLOT_TEXT];
    struct sim_settings settings;
    size_t used = 0;
    name[0] = '\0';
    weir_text_append(name, sizeof name, &used, "%s", sweep->gpus.items[run / sweep->per_gpu]);
    sweep_settings(sweep, run, &settings);
    for (size_t i = 1; i < settings.count; i++)
        weir_text_append(name, sizeof name, &used, ", %s=%s", settings.items[i].key,
                         settings.items[i].value);
    return cli_plot_series(plot, name);
}

static void plot_point(struct cli_plot *plot, const struct sweep *sweep, size_t run, bool numbers)
{
    const struct sweep_axis *axis = &sweep->axes[0];
    const char *value = axis->values.items[sweep_value(sweep, run, 0)];
    const double ms = sweep->points[run].span_ns / 1e6;
    cli_plot_add(series_of(plot, sweep, run),
                 (struct cli_plot_point){
                     .x = numbers ? number_of(value) : (double)cli_plot_group(plot, value),
                     .y = ms,
                     .low = ms,
                     .high = ms,
                 });
}

static int by_x(const void *a, const void *b)
{
    const struct cli_plot_point *x = a;
    const struct cli_plot_point *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

int sweep_plot(const struct sweep *sweep, const char *command, const char *path)
{
    const bool numbers = has_numbers(&sweep->axes[0]);
    struct cli_plot *plot = cli_allocate(1, sizeof *plot);
    const char *base = strrchr(command, '/');
    snprintf(plot->title, sizeof plot->title, "%s on modelled GPUs", base ? base + 1 : command);
    snprintf(plot->subtitle, sizeof plot->subtitle, "virtual time, from weir sim sweep");
    snprintf(plot->x_name, sizeof plot->x_name, "%s", sweep->axes[0].key);
    snprintf(plot->y_name, sizeof plot->y_name, "span, ms");
    plot->doubling = numbers && is_doubling(&sweep->axes[0]);
    for (size_t i = 0; i < sweep->gpus.count * sweep->per_gpu; i++)
        plot_point(plot, sweep, i, numbers);
    for (size_t i = 0; i < plot->series_count; i++)
        qsort(plot->series[i].points, plot->series[i].count, sizeof *plot->series[i].points, by_x);
    return cli_plot_write(plot, path) ? CLI_OK : CLI_FAILED;
}
