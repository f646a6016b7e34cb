// One function for each part of the picture, from back to front. Coordinates are pixels of
// a fixed size; a viewer scales the picture.
#include "cli/common/plot.h"

#include <math.h>
#include <string.h>

#include "cli/common/own.h"

enum {
    WIDTH = 900,
    HEIGHT = 460,
    HEIGHT_ASLANT = 530, // with names of groups, which are slanted
    LEFT = 84,
    RIGHT = 700, // the legend is to the right of it
    TOP = 76,
    BOTTOM = 400,
    TICKS = 6
};

static const char *const colours[CLI_PLOT_SERIES_MAX] = {
    "#3b82d6", "#e0702a", "#2fa36b", "#c65aa8", "#b8901f", "#17a2b8",
    "#d64545", "#7c6ad8", "#6b8e23", "#a0683a", "#5a7d9a", "#999999",
};

struct scale {
    double low; // of x, or its logarithm
    double high;
    double top; // of y, which begins at 0
    double step;
};

struct cli_plot_series *cli_plot_series(struct cli_plot *plot, const char *name)
{
    for (size_t i = 0; i < plot->series_count; i++)
        if (strcmp(plot->series[i].name, name) == 0)
            return &plot->series[i];
    if (plot->series_count == CLI_PLOT_SERIES_MAX)
        return &plot->series[CLI_PLOT_SERIES_MAX - 1];
    struct cli_plot_series *series = &plot->series[plot->series_count++];
    snprintf(series->name, sizeof series->name, "%s", name);
    return series;
}

void cli_plot_add(struct cli_plot_series *series, struct cli_plot_point point)
{
    if (series->count == CLI_PLOT_POINTS_MAX)
        return;
    size_t at = series->count++;
    for (; at > 0 && series->points[at - 1].x > point.x; at--)
        series->points[at] = series->points[at - 1];
    series->points[at] = point;
}

size_t cli_plot_group(struct cli_plot *plot, const char *name)
{
    for (size_t i = 0; i < plot->group_count; i++)
        if (strcmp(plot->groups[i], name) == 0)
            return i;
    if (plot->group_count == CLI_PLOT_GROUPS_MAX)
        return CLI_PLOT_GROUPS_MAX - 1;
    snprintf(plot->groups[plot->group_count], CLI_PLOT_TEXT, "%s", name);
    return plot->group_count++;
}

// Scales.

static double along(const struct cli_plot *plot, double x)
{
    return plot->doubling ? log2(x > 0 ? x : 1) : x;
}

double cli_plot_step(double top)
{
    const double raw = top > 0 ? top / TICKS : 1.0 / TICKS;
    const double power = pow(10, floor(log10(raw)));
    const double digit = raw / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

// Ranges are cut off at one and a half times the highest median, so that a single slow
// turn does not squeeze the others against the axis.
static struct scale scale_of(const struct cli_plot *plot)
{
    struct scale scale = {.low = INFINITY, .high = -INFINITY, .top = 0};
    double highest = 0;
    for (size_t i = 0; i < plot->series_count; i++)
        for (size_t k = 0; k < plot->series[i].count; k++) {
            const struct cli_plot_point *point = &plot->series[i].points[k];
            scale.low = fmin(scale.low, along(plot, point->x));
            scale.high = fmax(scale.high, along(plot, point->x));
            scale.top = fmax(scale.top, point->y);
            highest = fmax(highest, point->high);
        }
    if (plot->level_name[0])
        scale.top = fmax(scale.top, plot->level);
    scale.top = fmin(fmax(scale.top, highest), 1.5 * scale.top);
    if (!(scale.low < scale.high)) {
        scale.low = (isfinite(scale.low) ? scale.low : 0) - 1;
        scale.high = scale.low + 2;
    }
    if (plot->group_count > 0) {
        scale.low = -0.5;
        scale.high = (double)plot->group_count - 0.5;
    }
    scale.step = cli_plot_step(scale.top);
    scale.top = scale.step * ceil(scale.top / scale.step + 1e-9);
    return scale;
}

static double x_of(const struct scale *scale, double x)
{
    const double margin = 18;
    return LEFT + margin +
           (x - scale->low) / (scale->high - scale->low) * (RIGHT - LEFT - 2 * margin);
}

static double y_of(const struct scale *scale, double y)
{
    return BOTTOM - y / scale->top * (BOTTOM - TOP);
}

// Text.

static void put_text(FILE *to, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(to, "&#%d;", c);
        else
            fputc(c < 0x20 || c > 0x7e ? '?' : c, to);
    }
}

void cli_plot_label(FILE *to, double x, double y, const char *attributes, const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    put_text(to, text);
    fprintf(to, "</text>\n");
}

// 1024 and its multiples as 1K, 1M, 1G.
static struct weir_quantity number_text(double value, bool binary)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    struct weir_quantity shown;
    size_t unit = 0;
    while (binary && value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    snprintf(shown.text, sizeof shown.text, "%.6g%s", value, units[unit]);
    return shown;
}

// Parts.

static int height_of(const struct cli_plot *plot)
{
    return plot->group_count > 0 ? HEIGHT_ASLANT : HEIGHT;
}

static void put_head(FILE *to, const struct cli_plot *plot)
{
    fprintf(to, "<title>");
    put_text(to, plot->title);
    fprintf(to,
            "</title>\n<defs><clipPath id=\"field\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
            "height=\"%d\"/></clipPath></defs>\n",
            LEFT, TOP - 4, RIGHT - LEFT, BOTTOM - TOP + 4);
    cli_plot_label(to, LEFT, 30, "font-size=\"18\" font-weight=\"600\"", plot->title);
    cli_plot_label(to, LEFT, 50, "", plot->subtitle);
}

static void put_y_axis(FILE *to, const struct cli_plot *plot, const struct scale *scale)
{
    const int count = (int)lround(scale->top / scale->step);
    for (int i = 0; i <= count; i++) {
        const double y = y_of(scale, scale->step * i);
        fprintf(to,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-opacity=\"%s\"/>\n",
                LEFT, y, RIGHT, y, CLI_PLOT_INK, i == 0 ? "1" : "0.25");
        cli_plot_label(to, LEFT - 8, y + 4, "text-anchor=\"end\"",
                       number_text(scale->step * i, false).text);
    }
    fprintf(to, "<text transform=\"translate(22 %d) rotate(-90)\" text-anchor=\"middle\">",
            (TOP + BOTTOM) / 2);
    put_text(to, plot->y_name);
    fprintf(to, "</text>\n");
}

static void put_x_tick(FILE *to, const struct cli_plot *plot, const struct scale *scale, double at)
{
    const double x = x_of(scale, at);
    fprintf(to, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"%s\"/>\n", x, BOTTOM, x,
            BOTTOM + 5, CLI_PLOT_INK);
    cli_plot_label(to, x, BOTTOM + 20, "text-anchor=\"middle\"",
                   number_text(plot->doubling ? exp2(at) : at, plot->doubling).text);
}

static void put_group_names(FILE *to, const struct cli_plot *plot, const struct scale *scale)
{
    for (size_t i = 0; i < plot->group_count; i++) {
        const double x = x_of(scale, (double)i);
        char attributes[96];
        snprintf(attributes, sizeof attributes,
                 "text-anchor=\"end\" transform=\"rotate(-35 %.1f %d)\"", x, BOTTOM + 16);
        cli_plot_label(to, x, BOTTOM + 20, attributes, plot->groups[i]);
    }
}

static void put_x_axis(FILE *to, const struct cli_plot *plot, const struct scale *scale)
{
    const double step = plot->doubling ? fmax(1, ceil((scale->high - scale->low) / 12))
                                       : cli_plot_step(scale->high - scale->low);
    if (plot->group_count > 0)
        put_group_names(to, plot, scale);
    const long first = lround(ceil(scale->low / step - 1e-9));
    const long last = plot->group_count > 0 ? first - 1 : lround(floor(scale->high / step + 1e-9));
    for (long i = first; i <= last; i++)
        put_x_tick(to, plot, scale, (double)i * step);
    cli_plot_label(to, (LEFT + RIGHT) / 2.0, height_of(plot) - 14, "text-anchor=\"middle\"",
                   plot->x_name);
}

static void put_range(FILE *to, const struct scale *scale, double x, double low, double high,
                      const char *colour)
{
    fprintf(to,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"1.5\" stroke-opacity=\"0.6\"/>\n",
            x, y_of(scale, low), x, y_of(scale, high), colour);
}

// Points are drawn too, because a series of a single point has no line.
static void put_line(FILE *to, const struct cli_plot *plot, const struct scale *scale,
                     const struct cli_plot_series *series, const char *colour)
{
    fprintf(to, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (size_t i = 0; i < series->count; i++)
        fprintf(to, "%.1f,%.1f ", x_of(scale, along(plot, series->points[i].x)),
                y_of(scale, series->points[i].y));
    fprintf(to, "\"/>\n");
    for (size_t i = 0; i < series->count; i++) {
        const struct cli_plot_point *point = &series->points[i];
        const double x = x_of(scale, along(plot, point->x));
        put_range(to, scale, x, point->low, point->high, colour);
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\" stroke=\"%s\"/>\n", x,
                y_of(scale, point->y), series->count == 1 ? "6" : "3.5", colour,
                series->count == 1 ? CLI_PLOT_INK : "none");
    }
}

static void put_bars(FILE *to, const struct cli_plot *plot, const struct scale *scale, size_t index,
                     const char *colour)
{
    const struct cli_plot_series *series = &plot->series[index];
    const double group = x_of(scale, 1) - x_of(scale, 0);
    const double width = fmin(48, 0.8 * group / (double)plot->series_count);
    const double shift = ((double)index - (double)(plot->series_count - 1) / 2) * width;
    for (size_t i = 0; i < series->count; i++) {
        const struct cli_plot_point *point = &series->points[i];
        const double x = x_of(scale, point->x) + shift;
        const double y = y_of(scale, point->y);
        fprintf(to,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
                "fill-opacity=\"0.85\"/>\n",
                x - 0.46 * width, y, 0.92 * width, fmax(0, BOTTOM - y), colour);
        put_range(to, scale, x, point->low, point->high, CLI_PLOT_INK);
    }
}

static void put_level(FILE *to, const struct cli_plot *plot, const struct scale *scale)
{
    if (!plot->level_name[0])
        return;
    const double y = y_of(scale, plot->level);
    fprintf(to,
            "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n",
            LEFT, y, RIGHT, y, CLI_PLOT_INK);
    cli_plot_label(to, RIGHT + 6, y + 4, "font-style=\"italic\"", plot->level_name);
}

// Below the top of the field, away from a level's name where that is possible.
static void put_legend(FILE *to, const struct cli_plot *plot, const struct scale *scale)
{
    double y = TOP + 6;
    for (size_t i = 0; i < plot->series_count; i++) {
        if (plot->level_name[0] && fabs(y - y_of(scale, plot->level)) < 18)
            y = y_of(scale, plot->level) + 22;
        fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
                RIGHT + 12, y - 6, colours[i]);
        cli_plot_label(to, RIGHT + 30, y + 5, "", plot->series[i].name);
        y += 20;
    }
}

static void put_plot(FILE *to, const void *user)
{
    const struct cli_plot *plot = user;
    const struct scale scale = scale_of(plot);
    put_head(to, plot);
    put_y_axis(to, plot, &scale);
    put_x_axis(to, plot, &scale);
    fprintf(to, "<g clip-path=\"url(#field)\">\n");
    for (size_t i = 0; i < plot->series_count; i++) {
        if (plot->group_count > 0)
            put_bars(to, plot, &scale, i, colours[i]);
        else
            put_line(to, plot, &scale, &plot->series[i], colours[i]);
    }
    fprintf(to, "</g>\n");
    put_level(to, plot, &scale);
    put_legend(to, plot, &scale);
}

void cli_plot_write(const struct cli_plot *plot, const char *path)
{
    cli_picture_write(path, WIDTH, height_of(plot), put_plot, plot);
}

void cli_picture_write(const char *path, int width, int height,
                       void (*put)(FILE *to, const void *user), const void *user)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to) {
        fprintf(to,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                "height=\"%d\" role=\"img\" font-family=\"system-ui, sans-serif\" "
                "font-size=\"13\" fill=\"%s\">\n",
                width, height, width, height, CLI_PLOT_INK);
        put(to, user);
        fprintf(to, "</svg>\n");
    }
    if (!to || fclose(to) != 0) {
        free(text);
        text = NULL;
    }
    if (!cli_write_file(path, text, size, "the picture"))
        cli_end(CLI_FAILED);
}
