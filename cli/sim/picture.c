// Coordinates are pixels of a fixed size; a viewer scales the picture.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/common/plot.h"
#include "cli/sim/sim.h"
#include "report/report.h"

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

static void put_bar(FILE *to, const struct sim_run *run, const struct weir__run *it, double y,
                    double height, double most_ns)
{
    const weir_report *report = run->report;
    const uint64_t begin_ns = weir_report_get_summary(report)->begin_ns;
    const double from = x_of((double)(it->begin - begin_ns), most_ns);
    const double end = x_of((double)(it->end - begin_ns), most_ns);
    fprintf(to,
            "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
            "fill-opacity=\"0.85\"/>\n",
            from, y, fmax(end - from - 0.5, 0.5), height,
            cli_plot_colour(report->trace->operations[it->operation].queue_index));
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

static void put_all(FILE *to, const struct sim_runs *runs)
{
    const double most_ns = longest(runs);
    size_t height = TOP + AXIS;
    for (size_t i = 0; i < runs->count; i++)
        height += height_of(&runs->items[i]);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" width=\"%d\" "
            "height=\"%zu\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\" "
            "fill=\"%s\">\n",
            WIDTH, height, WIDTH, height, CLI_PLOT_INK);
    put_axis(to, (double)(height - AXIS), most_ns);
    size_t y = TOP;
    for (size_t i = 0; i < runs->count; i++) {
        put_run(to, &runs->items[i], (double)y, most_ns);
        y += height_of(&runs->items[i]);
    }
    fprintf(to, "</svg>\n");
}

static bool is_small_enough(const struct sim_runs *runs)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++)
        count += runs->items[i].report->run_count;
    if (count <= OPERATIONS_MOST)
        return true;
    cli_error(
        "--picture draws %d operations at most, and these are %zu; `weir trace html` shows any "
        "number",
        OPERATIONS_MOST, count);
    return false;
}

int cli_sim_draw(const struct sim_runs *runs, const char *path)
{
    char message[512] = "no memory to draw the picture";
    char *text = NULL;
    size_t size = 0;
    if (!is_small_enough(runs))
        return CLI_FAILED;
    FILE *to = open_memstream(&text, &size);
    if (to)
        put_all(to, runs);
    const bool fine =
        to && fclose(to) == 0 && weir_file_write(path, text, size, message, sizeof message);
    free(text);
    if (!fine)
        cli_error("%s", message);
    return fine ? CLI_OK : CLI_FAILED;
}
