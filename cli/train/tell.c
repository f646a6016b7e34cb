// What a training run prints: its figures, and its losses as a plot.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/common/json.h"
#include "cli/common/plot.h"
#include "cli/common/table.h"
#include "cli/train/train.h"

// The curve as a picture: the steps in groups, each with its mean and its range.

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

// The figures of a run, as text and as JSON.

static uint64_t timed_steps(const struct weir_train_figures *figures)
{
    return figures->wall_ns ? figures->steps - figures->first_step - 1 : 0;
}

static double per_second(const struct weir_train_figures *figures)
{
    return figures->wall_ns ? (double)timed_steps(figures) * 1e9 / (double)figures->wall_ns : 0;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void add_sizes(struct weir_table *table, const struct train_command *command)
{
    const struct weir_train_figures *f = &command->figures;
    const struct weir_train_run_params *p = &command->params;
    const uint32_t ranks = weir_comm_count(command->comm);
    weir_table_add(table, "device");
    weir_table_add(table, "%s, module %s", weir_device_get_info(command->device)->name,
                   weir_runtime_backend(command->runtime));
    weir_table_add(table, "model");
    weir_table_add(table, "%s, %zu parameters, %s",
                   p->network == WEIR_TRAIN_MLP ? "mlp" : "convnet", f->parameters,
                   p->element == WEIR_TRAIN_BF16 ? "bf16" : "f32");
    weir_table_add(table, "step");
    weir_table_add(table, "%" PRIu64 " samples: %u rank%s, %u pass%s, %u samples each", f->samples,
                   ranks, plural(ranks), p->passes, p->passes == 1 ? "" : "es", p->batch);
}

static void add_losses(struct weir_table *table, const struct weir_train_figures *f)
{
    weir_table_add(table, "steps");
    if (f->steps > f->first_step)
        weir_table_add(table, "%" PRIu64 " to %" PRIu64, f->first_step + 1, f->steps);
    else
        weir_table_add(table, "none: the checkpoint has all %" PRIu64, f->steps);
    weir_table_add(table, "loss");
    weir_table_add(table, "%.4g at first, %.4g at last", (double)f->losses[0],
                   (double)f->losses[f->steps - 1]);
    weir_table_add(table, "right");
    weir_table_add(table, "%.1f %% of the samples at last", 100 * (double)f->right[f->steps - 1]);
}

static void add_times(struct weir_table *table, const struct weir_train_figures *f)
{
    char text[WEIR_TEXT_QUANTITY_SIZE];
    if (f->wall_ns == 0)
        return;
    weir_table_add(table, "time");
    weir_table_add(table, "%s for all steps but the first: %.1f steps/s, %.0f samples/s",
                   weir_text_duration(text, (double)f->wall_ns), per_second(f),
                   per_second(f) * (double)f->samples);
    if (f->checkpoint_ns > 0) {
        weir_table_add(table, "checkpoints");
        weir_table_add(table, "%s of that", weir_text_duration(text, (double)f->checkpoint_ns));
    }
}

static void add_gradients(struct weir_table *table, const struct weir_train_figures *f)
{
    char bytes[WEIR_TEXT_QUANTITY_SIZE], hidden[WEIR_TEXT_QUANTITY_SIZE],
        exposed[WEIR_TEXT_QUANTITY_SIZE];
    weir_table_add(table, "gradients");
    weir_table_add(table, "%s in %u bucket%s", weir_text_bytes(bytes, f->plan.bytes),
                   f->plan.bucket_count, plural(f->plan.bucket_count));
    if (f->buckets.timed_steps == 0)
        return;
    weir_table_add(table, "reduction");
    weir_table_add(table, "%s of a step hidden, %s exposed",
                   weir_text_duration(hidden, (double)f->buckets.hidden_ns /
                                                  (double)f->buckets.timed_steps),
                   weir_text_duration(exposed, (double)f->buckets.exposed_ns /
                                                   (double)f->buckets.timed_steps));
}

static void print_table(const struct train_command *command)
{
    const struct weir_train_figures *f = &command->figures;
    struct weir_table table = {.alignment = "ll"};
    char text[WEIR_TEXT_QUANTITY_SIZE];
    add_sizes(&table, command);
    add_losses(&table, f);
    add_times(&table, f);
    add_gradients(&table, f);
    if (f->loader.waits > 0) {
        weir_table_add(&table, "batches");
        weir_table_add(&table, "%" PRIu64 " of %" PRIu64 " were waited for, %s in all",
                       f->loader.waits, f->loader.delivered,
                       weir_text_duration(text, (double)f->loader.wait_ns));
    }
    weir_table_add(&table, "digest");
    weir_table_add(&table, "%016" PRIx64 " of the parameters", f->parameters_digest);
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *values(const float *numbers, uint64_t count, bool *ok)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++)
        weir_json_append(list, json_real((double)numbers[i]), ok);
    return list;
}

static json_t *buckets(const struct weir_train_figures *f, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "count", weir_json_count(f->plan.bucket_count), ok);
    weir_json_set(object, "bytes", weir_json_count(f->plan.bytes), ok);
    weir_json_set(object, "cap_bytes", weir_json_count(f->plan.cap_bytes), ok);
    weir_json_set(object, "first_bytes", weir_json_count(f->plan.first_bytes), ok);
    weir_json_set(object, "reductions", weir_json_count(f->buckets.reductions), ok);
    weir_json_set(object, "reduced_bytes", weir_json_count(f->buckets.reduced_bytes), ok);
    weir_json_set(object, "timed_steps", weir_json_count(f->buckets.timed_steps), ok);
    weir_json_set(object, "hidden_ns", weir_json_count(f->buckets.hidden_ns), ok);
    weir_json_set(object, "exposed_ns", weir_json_count(f->buckets.exposed_ns), ok);
    return object;
}

static json_t *loader(const struct weir_train_figures *f, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "delivered", weir_json_count(f->loader.delivered), ok);
    weir_json_set(object, "waits", weir_json_count(f->loader.waits), ok);
    weir_json_set(object, "wait_ns", weir_json_count(f->loader.wait_ns), ok);
    return object;
}

static void set_where(json_t *root, const struct train_command *command, bool *ok)
{
    const char *program = train_program_name(command->options.program);
    const char *device = weir_device_get_info(command->device)->name;
    weir_json_set(root, "weir", json_string(weir_version()), ok);
    weir_json_set(root, "program", json_string(program), ok);
    weir_json_set(root, "module", cli_json_string(weir_runtime_backend(command->runtime)), ok);
    weir_json_set(root, "device", cli_json_string(device), ok);
    weir_json_set(root, "ranks", weir_json_count(weir_comm_count(command->comm)), ok);
    weir_json_set(root, "serial", json_boolean(command->params.serial), ok);
}

static void set_figures(json_t *root, const struct weir_train_figures *f, bool *ok)
{
    char digest[24];
    snprintf(digest, sizeof digest, "%016" PRIx64, f->parameters_digest);
    weir_json_set(root, "parameters", weir_json_count(f->parameters), ok);
    weir_json_set(root, "parameters_digest", json_string(digest), ok);
    weir_json_set(root, "samples", weir_json_count(f->samples), ok);
    weir_json_set(root, "first_step", weir_json_count(f->first_step), ok);
    weir_json_set(root, "steps", weir_json_count(f->steps), ok);
    weir_json_set(root, "flop", json_real(f->flop), ok);
    weir_json_set(root, "wall_ns", weir_json_count(f->wall_ns), ok);
    weir_json_set(root, "checkpoint_ns", weir_json_count(f->checkpoint_ns), ok);
    weir_json_set(root, "steps_per_second", json_real(per_second(f)), ok);
    weir_json_set(root, "buckets", buckets(f, ok), ok);
    weir_json_set(root, "loader", loader(f, ok), ok);
    weir_json_set(root, "losses", values(f->losses, f->steps, ok), ok);
    weir_json_set(root, "right", values(f->right, f->steps, ok), ok);
}

int train_tell(const struct train_command *command)
{
    bool ok = true;
    if (!command->options.json) {
        print_table(command);
        return CLI_OK;
    }
    json_t *root = json_object();
    set_where(root, command, &ok);
    set_figures(root, &command->figures, &ok);
    return cli_json_print(root, ok, CLI_OK);
}
