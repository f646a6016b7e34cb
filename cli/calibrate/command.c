// The command line, the figures, and what becomes of them: the model as an INI file, a table, or JSON.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/table.h"
#include "cli/calibrate/calibrate.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/signals.h"

enum unit {
    WORD, // engine or stream
    NUMBER,
    GB_PER_S,
    NS,
};

static const struct about {
    const char *name;
    enum unit unit;
    const char *how;
} keys[CAL_KEYS] = {
#define X(key, name, unit, how) {name, unit, how},
    CAL_FIGURES(X)
#undef X
};

// Figures.

// A difference of times that is negative was too small to be measured.
struct cal_figure cal_median(struct calibration *c, cal_measure measure, size_t at)
{
    struct bench_samples samples = {.count = 0};
    if (!cli_clock_is_virtual())
        measure(c, at); // warms up
    while (samples.count < bench.turns) {
        if (cli_signal())
            cli_fail(CLI_SIGNALLED + cli_signal(), "interrupted: there is no model");
        samples.values[samples.count++] = measure(c, at);
    }
    const struct bench_spread spread = bench_spread(&samples);
    return (struct cal_figure){.measured = true,
                               .spreads = true,
                               .value = fmax(spread.median, 0),
                               .least = fmax(spread.minimum, 0),
                               .most = fmax(spread.maximum, 0)};
}

void cal_measure_figure(struct calibration *c, enum cal_key key, cal_measure measure)
{
    c->figures[key] = cal_median(c, measure, key);
}

void cal_figure_set(struct calibration *c, enum cal_key key, double value)
{
    c->figures[key] = (struct cal_figure){.measured = true, .value = value};
}

void cal_figure_leave(struct calibration *c, enum cal_key key, const char *why)
{
    c->figures[key] = (struct cal_figure){.why = why};
}

// What is written.

enum {
    VALUE_SIZE = 48,
};

static const char *show(enum unit unit, double value, char text[VALUE_SIZE])
{
    if (unit == WORD)
        return value > 0 ? "stream" : "engine";
    snprintf(text, VALUE_SIZE, unit == GB_PER_S ? "%.3f" : "%.0f", value);
    return text;
}

// The model.

static void write_head(struct weir_long_text *ini)
{
    const struct weir_device_info *info = weir_device_get_info(bench.device);
    weir_long_text_add(ini, "; %s, driver %s, backend %s: measured by weir calibrate %s; medians\n",
                       info->name, info->driver, weir_runtime_backend(bench.runtime),
                       weir_version());
    weir_long_text_add(ini, "; of %llu turns, with the least and the most.\n",
                       (unsigned long long)bench.turns);
    const bool processor = bench.limits->kind == WEIR_DEVICE_CPU;
    if (cli_clock_is_virtual())
        weir_long_text_add(ini, "; The times are those of a modelled GPU.\n");
    else if (processor)
        weir_long_text_add(ini, "; The device is the machine's processors: these are no figures of "
                                "a GPU.\n");
    weir_long_text_add(ini, "\n[gpu]\nname = %s\nkind = %s\n", info->name,
                       processor ? "cpu" : "gpu");
}

static void write_key(const struct cal_figure *figure, const struct about *about,
                      struct weir_long_text *ini)
{
    char value[VALUE_SIZE], least[VALUE_SIZE], most[VALUE_SIZE];
    if (!figure->measured) {
        weir_long_text_add(ini, "; %s was not measured: %s\n", about->name, figure->why);
        return;
    }
    weir_long_text_add(ini, "; %s", about->how);
    if (figure->spreads)
        weir_long_text_add(ini, "; %s to %s", show(about->unit, figure->least, least),
                           show(about->unit, figure->most, most));
    weir_long_text_add(ini, "\n%s = %s\n", about->name, show(about->unit, figure->value, value));
}

static void write_model(const struct calibration *c, struct weir_long_text *ini)
{
    write_head(ini);
    for (size_t i = 0; i < CAL_KEYS; i++)
        write_key(&c->figures[i], &keys[i], ini);
}

// The table.

static void add_number(struct weir_table *table, bool known, enum unit unit, double value,
                       const char *unknown)
{
    char text[VALUE_SIZE];
    weir_table_add(table, "%s", known ? show(unit, value, text) : unknown);
}

static void print_table(const struct calibration *c)
{
    struct weir_table table = {.alignment = "lrrrl"};
    for (size_t i = 0; i < CAL_KEYS; i++) {
        const struct cal_figure *figure = &c->figures[i];
        weir_table_add(&table, "%s", keys[i].name);
        add_number(&table, figure->measured, keys[i].unit, figure->value, "-");
        add_number(&table, figure->spreads, keys[i].unit, figure->least, "");
        add_number(&table, figure->spreads, keys[i].unit, figure->most, "");
        weir_table_add(&table, "%s", figure->measured ? keys[i].how : figure->why);
    }
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *spread_json(const struct cal_figure *figure)
{
    json_t *object = json_object();
    cli_json_set(object, "median", json_real(figure->value));
    cli_json_set(object, "least", json_real(figure->least));
    cli_json_set(object, "most", json_real(figure->most));
    return object;
}

static json_t *figure_json(const struct cal_figure *figure, const struct about *about)
{
    json_t *object = json_object();
    cli_json_set(object, "key", json_string(about->name));
    if (!figure->measured)
        cli_json_set(object, "not_measured", json_string(figure->why));
    else if (figure->spreads)
        cli_json_set(object, "value", spread_json(figure));
    else if (about->unit == WORD)
        cli_json_set(object, "value", json_string(figure->value > 0 ? "stream" : "engine"));
    else
        cli_json_set(object, "value", json_real(figure->value));
    cli_json_set(object, "how", json_string(about->how));
    return object;
}

static int print_json(const struct calibration *c)
{
    json_t *root = json_object();
    json_t *figures = json_array();
    const struct weir_device_info *info = weir_device_get_info(bench.device);
    for (size_t i = 0; i < CAL_KEYS; i++)
        cli_json_append(figures, figure_json(&c->figures[i], &keys[i]));
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "backend", cli_json_string(weir_runtime_backend(bench.runtime)));
    cli_json_set(root, "device", cli_json_string(info->name));
    cli_json_set(root, "driver", cli_json_string(info->driver));
    cli_json_set(root, "virtual", json_boolean(cli_clock_is_virtual()));
    cli_json_set(root, "turns", weir_json_count(bench.turns));
    cli_json_set(root, "figures", figures);
    return cli_json_print(root, CLI_OK);
}

static int report(void *user)
{
    const struct calibration *c = user;
    struct weir_long_text ini = {0};
    char message[512];
    write_model(c, &ini);
    const size_t size = ini.used;
    const char *text = cli_take_text(&ini);
    if (c->out && !weir_file_write(c->out, text, size, message, sizeof message))
        cli_fail(CLI_FAILED, "%s", message);
    if (bench.json)
        return print_json(c);
    if (c->out)
        print_table(c);
    else
        fputs(text, stdout);
    return CLI_OK;
}

// The command.

static const char description[] =
    "Measures a device and prints the model of it for the plugin sim: bandwidths and latencies of\n"
    "copies, alone and both ways, what submits, waits and memory that is not pinned take the\n"
    "host, engines, channels, graphs, kernels at once, and copies to another device. Each figure\n"
    "has how it was measured, and its spread. The machine should do nothing else meanwhile.\n\n"
    "  weir calibrate --output card.ini\n"
    "  weir sim --gpu card.ini ./program";

static void check(void *user)
{
    const struct calibration *c = user;
    cli_need_writable(c->out);
}

static void run(void *user)
{
    struct calibration *c = user;
    cli_signals_defer(NULL, NULL);
    cal_open(c);
    cal_measure_gate(c);
    cal_measure_copies(c);
    cal_measure_host(c);
    cal_measure_pageable(c);
    cal_measure_wake(c);
    cal_measure_engines(c);
    cal_measure_graphs(c);
    cal_measure_peers(c);
    bench.kept = bench.turns;
}

static int calibrate_main(int argc, char **argv)
{
    static struct calibration c;
    static const char *select;
    static const struct cli_option options[] = {
        {"output", "FILE", "write the model to FILE, and print a table", CLI_FILE, &c.out, 0, 0},
        {"device", "WHICH",
         "the device's index, or a part of its name; without it,\nthe "
         "configuration's",
         CLI_TEXT, &select, 0, 0},
    };
    static const struct bench_program program = {
        .group = "weir",
        .name = "calibrate",
        .manual = "weir-calibrate(1)",
        .about = description,
        .options = options,
        .option_count = BENCH_COUNT(options),
        .opens_device = true,
        .launches_nothing = true,
        .select = &select,
        .check = check,
        .run = run,
        .report = report,
    };
    return bench_main(&program, &c, argc, argv);
}

const struct cli_command cli_calibrate = {
    .name = "calibrate",
    .summary = "measure a device, for weir sim",
    .main = calibrate_main,
};
