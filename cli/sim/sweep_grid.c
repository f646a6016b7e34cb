// The values of a sweep, and its runs by number.
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "cli/sim/sweep.h"

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

// Ranges become lists, in a new text.
static char *expand(const struct sim_list *list)
{
    struct weir_long_text text = {0};
    for (size_t i = 0; i < list->count; i++) {
        long first;
        long last;
        if (!read_range(list->items[i], &first, &last)) {
            weir_long_text_add(&text, "%s,", list->items[i]);
            continue;
        }
        for (long value = first; value <= last && value <= first + SIM_LIST; value++)
            weir_long_text_add(&text, "%ld,", value);
    }
    if (!text.failed)
        return text.text;
    free(text.text);
    cli_error("no memory for --over");
    return NULL;
}

static bool read_values(struct sweep_axis *axis, const char *values)
{
    struct sim_list list;
    char *text = cli_sim_list_init(&list, values, "--over") && list.count ? expand(&list) : NULL;
    const bool fine = text && cli_sim_list_init(&axis->values, text, "--over");
    free(text);
    cli_sim_list_finish(&list);
    return fine;
}

static bool add_axis(struct sweep *sweep, const char *over)
{
    char *text = strdup(over);
    char *values;
    struct sweep_axis *axis = &sweep->axes[sweep->axis_count];
    if (!text) {
        cli_error("no memory for --over");
        return false;
    }
    sweep->texts[sweep->axis_count++] = text;
    if (!cli_sim_cut(text, &axis->key, &values) || strspn(values, ", ") == strlen(values)) {
        cli_error("--over is KEY=VALUE,..., such as slots=1,2,3 or slots=1..3, not '%s'", over);
        return false;
    }
    for (size_t i = 0; i + 1 < sweep->axis_count; i++)
        if (strcmp(sweep->axes[i].key, axis->key) == 0) {
            cli_error("--over %s is given twice; list all its values once", axis->key);
            return false;
        }
    return read_values(axis, values);
}

static bool add_axes(struct sweep *sweep, const struct cli_list *over)
{
    if (over->count > SWEEP_AXES) {
        cli_error("--over is given %d times at most", SWEEP_AXES);
        return false;
    }
    for (size_t i = 0; i < over->count; i++)
        if (!add_axis(sweep, over->items[i]))
            return false;
    return true;
}

static bool make_points(struct sweep *sweep)
{
    const size_t gpus = sweep->gpus.count;
    sweep->per_gpu = 1;
    for (size_t i = 0; i < sweep->axis_count && sweep->per_gpu <= SWEEP_RUNS; i++)
        sweep->per_gpu *= sweep->axes[i].values.count;
    if (sweep->per_gpu * gpus > SWEEP_RUNS) {
        cli_error("these are more than %d runs; name fewer values", SWEEP_RUNS);
        return false;
    }
    sweep->points = calloc(sweep->per_gpu * gpus, sizeof *sweep->points);
    sweep->best = calloc(gpus, sizeof *sweep->best);
    sweep->traces = calloc(gpus, sizeof *sweep->traces);
    if (sweep->points && sweep->best && sweep->traces)
        return true;
    cli_error("no memory for %zu runs", sweep->per_gpu * gpus);
    return false;
}

bool sweep_init(struct sweep *sweep, const char *gpus, const struct cli_list *over)
{
    if (!cli_sim_list_init(&sweep->gpus, gpus, "--gpu"))
        return false;
    if (sweep->gpus.count == 0) {
        cli_error("--gpu names no GPU; write one, such as --gpu h200");
        return false;
    }
    return add_axes(sweep, over) && make_points(sweep);
}

void sweep_finish(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->axis_count; i++) {
        cli_sim_list_finish(&sweep->axes[i].values);
        free(sweep->texts[i]);
    }
    cli_sim_list_finish(&sweep->gpus);
    free(sweep->points);
    free(sweep->best);
    free(sweep->traces);
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
