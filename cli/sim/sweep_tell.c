// A row for each run, then the best of each GPU.
#include <math.h>
#include <stdio.h>

#include "cli/common/json.h"
#include "cli/common/table.h"
#include "cli/sim/sweep.h"

enum {
    NAME_SIZE = 256
};

static double best_ns(const struct sweep *sweep, size_t run)
{
    return sweep->points[sweep->best[run / sweep->per_gpu]].span_ns;
}

static void add_head(struct weir_table *table, const struct sweep *sweep)
{
    static const char *const rest[] = {"span", "of the best", "copies hidden", "idle", "bound"};
    weir_table_add(table, "gpu");
    for (size_t i = 0; i < sweep->axis_count; i++)
        weir_table_add(table, "%s", sweep->axes[i].key);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        weir_table_add(table, "%s", rest[i]);
}

static void add_row(struct weir_table *table, const struct sweep *sweep, size_t run)
{
    const struct sweep_point *point = &sweep->points[run];
    struct sim_settings settings;
    char text[WEIR_TEXT_QUANTITY_SIZE];
    sweep_settings(sweep, run, &settings);
    weir_table_add(table, "%s", sweep->gpus.items[run / sweep->per_gpu]);
    for (size_t i = 0; i < settings.count; i++)
        weir_table_add(table, "%s", settings.items[i].value);
    weir_table_add(table, "%s", weir_text_duration(text, point->span_ns));
    weir_table_add(table, best_ns(sweep, run) > 0 ? "%.3f" : "n/a",
                   point->span_ns / best_ns(sweep, run));
    weir_table_add(table, isnan(point->hidden) ? "n/a" : "%.1f %%", 100 * point->hidden);
    weir_table_add(table, "%.1f %%", 100 * point->idle);
    weir_table_add(table, "%s %s", weir_text_duration(text, point->bound_ns), point->bound_engine);
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
    add_head(&table, sweep);
    for (size_t i = 0; i < sweep->gpus.count * sweep->per_gpu; i++)
        add_row(&table, sweep, i);
    cli_table_print(&table, stdout, 0);
    for (size_t i = 0; i < sweep->gpus.count; i++)
        tell_best(sweep, i);
    return CLI_OK;
}

static json_t *settings_json(const struct sweep *sweep, size_t run, bool *ok)
{
    struct sim_settings settings;
    json_t *object = json_object();
    sweep_settings(sweep, run, &settings);
    for (size_t i = 0; i < settings.count; i++)
        weir_json_set(object, settings.items[i].key, cli_json_string(settings.items[i].value), ok);
    return object;
}

static json_t *run_json(const struct sweep *sweep, size_t run, bool *ok)
{
    const struct sweep_point *point = &sweep->points[run];
    json_t *object = json_object();
    weir_json_set(object, "gpu", cli_json_string(sweep->gpus.items[run / sweep->per_gpu]), ok);
    weir_json_set(object, "settings", settings_json(sweep, run, ok), ok);
    weir_json_set(object, "span_ns", weir_json_count((uint64_t)point->span_ns), ok);
    weir_json_set(object, "copies_hidden",
                  isnan(point->hidden) ? json_null() : json_real(point->hidden), ok);
    weir_json_set(object, "idle", json_real(point->idle), ok);
    weir_json_set(object, "bound_ns", weir_json_count((uint64_t)point->bound_ns), ok);
    weir_json_set(object, "bound_engine", cli_json_string(point->bound_engine), ok);
    return object;
}

static json_t *best_json(const struct sweep *sweep, size_t gpu, bool *ok)
{
    json_t *object = run_json(sweep, sweep->best[gpu], ok);
    weir_json_set(object, "within_1_percent", settings_json(sweep, sweep_enough(sweep, gpu), ok),
                  ok);
    weir_json_set(object, "trace", cli_json_string(sweep->traces[gpu]), ok);
    return object;
}

int sweep_tell_json(const struct sweep *sweep)
{
    bool ok = true;
    json_t *all = json_object();
    json_t *runs = json_array();
    json_t *best = json_array();
    for (size_t i = 0; i < sweep->gpus.count * sweep->per_gpu; i++)
        weir_json_append(runs, run_json(sweep, i, &ok), &ok);
    for (size_t i = 0; i < sweep->gpus.count; i++)
        weir_json_append(best, best_json(sweep, i, &ok), &ok);
    weir_json_set(all, "runs", runs, &ok);
    weir_json_set(all, "best", best, &ok);
    return cli_json_print(all, ok, CLI_OK);
}
