// The first axis is the plot's, and each combination of the others is a line; or a colour of the bars, if
// the first axis has values that are no numbers.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/text.h"
#include "cli/common/plot.h"
#include "cli/sim/sweep.h"

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

bool sweep_can_plot(const struct sweep *sweep)
{
    const size_t most = has_numbers(&sweep->axes[0]) ? CLI_PLOT_POINTS_MAX : CLI_PLOT_GROUPS_MAX;
    if (series_count(sweep) <= CLI_PLOT_SERIES_MAX && sweep->axes[0].values.count <= most)
        return true;
    cli_error("a plot has room for %d lines of %zu values, and these are %zu of %zu; name fewer "
              "GPUs or values, or leave out --plot",
              CLI_PLOT_SERIES_MAX, most, series_count(sweep), sweep->axes[0].values.count);
    return false;
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

static void add_point(struct cli_plot *plot, const struct sweep *sweep, size_t run, bool numbers)
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
    struct cli_plot *plot = calloc(1, sizeof *plot);
    if (!plot) {
        cli_error("no memory to draw the plot");
        return CLI_FAILED;
    }
    const char *base = strrchr(command, '/');
    snprintf(plot->title, sizeof plot->title, "%s on modelled GPUs", base ? base + 1 : command);
    snprintf(plot->subtitle, sizeof plot->subtitle, "virtual time, from weir sim sweep");
    snprintf(plot->x_name, sizeof plot->x_name, "%s", sweep->axes[0].key);
    snprintf(plot->y_name, sizeof plot->y_name, "span, ms");
    plot->doubling = numbers && is_doubling(&sweep->axes[0]);
    for (size_t i = 0; i < sweep->gpus.count * sweep->per_gpu; i++)
        add_point(plot, sweep, i, numbers);
    for (size_t i = 0; i < plot->series_count; i++)
        qsort(plot->series[i].points, plot->series[i].count, sizeof *plot->series[i].points, by_x);
    const bool fine = cli_plot_write(plot, path);
    free(plot);
    return fine ? CLI_OK : CLI_FAILED;
}
