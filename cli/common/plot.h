// A plot as an SVG file: lines over a scale, or bars over names, each point with its
// range. Colours are of medium lightness and the background is transparent, so that the
// plot is readable on light and on dark pages.
#ifndef WEIR_CLI_COMMON_PLOT_H
#define WEIR_CLI_COMMON_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    CLI_PLOT_SERIES_MAX = 12,
    CLI_PLOT_POINTS_MAX = 64,
    CLI_PLOT_GROUPS_MAX = 24,
    CLI_PLOT_TEXT = 96
};

struct cli_plot_point {
    double x; // of bars: the number of the group
    double y;
    double low;
    double high;
};

struct cli_plot_series {
    char name[CLI_PLOT_TEXT];
    struct cli_plot_point points[CLI_PLOT_POINTS_MAX]; // in rising order of x
    size_t count;
};

struct cli_plot {
    char title[CLI_PLOT_TEXT];
    char subtitle[2 * CLI_PLOT_TEXT];
    char x_name[CLI_PLOT_TEXT];
    char y_name[CLI_PLOT_TEXT];
    bool doubling; // x grows by doubling, and so do its ticks
    // With names of groups it is bars, else lines.
    char groups[CLI_PLOT_GROUPS_MAX][CLI_PLOT_TEXT];
    size_t group_count;
    struct cli_plot_series series[CLI_PLOT_SERIES_MAX];
    size_t series_count;
    // A level to compare with, named at its right end; none without a name.
    double level;
    char level_name[CLI_PLOT_TEXT];
};

// The series of this name, made if it is new; the last one when there are too many.
struct cli_plot_series *cli_plot_series(struct cli_plot *plot, const char *name);

// Adds a point at its place; one too many is left out.
void cli_plot_add(struct cli_plot_series *series, struct cli_plot_point point);

// The number of the group of this name, made if it is new.
size_t cli_plot_group(struct cli_plot *plot, const char *name);

// Parts, for pictures of another kind.

// Of text and axes: readable on white and on black.
#define CLI_PLOT_INK "#7d7d7d"

// 1, 2 or 5 times a power of ten, of which an axis up to `top` has at most six.
double cli_plot_step(double top);

// Writes an SVG file of what `put` prints into it, in one piece.
//
// Errors: they end the command.
void cli_picture_write(const char *path, int width, int height,
                       void (*put)(FILE *to, const void *user), const void *user);

// Text at that place, with further attributes of its element.
void cli_plot_label(FILE *to, double x, double y, const char *attributes, const char *text);

// Writes the file, in one piece.
//
// Errors: they end the command.
void cli_plot_write(const struct cli_plot *plot, const char *path);

#endif
