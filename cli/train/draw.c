// The curve as a picture: the steps in groups, each with its mean and its range.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/common/plot.h"
#include "cli/train/train.h"

static struct cli_plot_point group_point(const float *values, uint64_t first, uint64_t end)
{
    struct cli_plot_point point = {.low = INFINITY, .high = -INFINITY};
    double sum = 0;
    for (uint64_t i = first; i < end; i++) {
        sum += (double)values[i];
        point.low = fmin(point.low, (double)values[i]);
        point.high = fmax(point.high, (double)values[i]);
    }
    point.x = (double)(first + end + 1) / 2;
    point.y = sum / (double)(end - first);
    return point;
}

static void add_curve(struct cli_plot *plot, const char *name, const float *values, uint64_t steps)
{
    struct cli_plot_series *series = cli_plot_series(plot, name);
    const uint64_t groups = steps < CLI_PLOT_POINTS_MAX ? steps : CLI_PLOT_POINTS_MAX;
    for (uint64_t i = 0; i < groups; i++)
        cli_plot_add(series, group_point(values, i * steps / groups, (i + 1) * steps / groups));
}

bool train_draw(const struct train_command *command)
{
    const struct weir_train_figures *figures = &command->figures;
    struct cli_plot *plot = calloc(1, sizeof *plot);
    if (!plot) {
        cli_error("no memory to draw the curve");
        return false;
    }
    snprintf(plot->title, sizeof plot->title, "weir train %s",
             train_program_name(command->options.program));
    snprintf(plot->subtitle, sizeof plot->subtitle,
             "%" PRIu64 " samples a step, %u rank%s; lines: least and largest of a group of steps",
             figures->samples, weir_comm_count(command->comm),
             weir_comm_count(command->comm) == 1 ? "" : "s");
    snprintf(plot->x_name, sizeof plot->x_name, "step");
    snprintf(plot->y_name, sizeof plot->y_name, "mean over the samples");
    add_curve(plot, "loss", figures->losses, figures->steps);
    add_curve(plot, "classified right", figures->right, figures->steps);
    const bool drawn = cli_plot_write(plot, command->options.curve);
    free(plot);
    return drawn;
}
