// The command line, the figures, and what becomes of them: the model as an INI file, a table, or JSON.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/table.h"
#include "cli/calibrate/calibrate.h"
#include "cli/common/json.h"
#include "cli/common/options.h"
#include "cli/common/signals.h"
#include "cli/common/table.h"

// Keys, each with how it is measured.

enum unit {
    WORD, // engine or stream
    NUMBER,
    GB_PER_S,
    NS,
};

static const char line[] = "the line through the times of all sizes";
static const char driver[] = "what the driver says";

static const struct about {
    const char *name;
    enum unit unit;
    const char *how;
} keys[CAL_KEYS] = {
    [CAL_QUEUE_KIND] = {"queues", WORD,
                        "whether a kernel that waits for a copy holds up one in another queue"},
    [CAL_CHANNELS] = {"channels", NUMBER,
                      "the first queue after another one whose kernel waits for that one's; 0: "
                      "none of 128"},
    [CAL_COPY_ENGINES] = {"copy_engines", NUMBER,
                          "whether an upload and a download at once take less than both in turn, "
                          "and a copy to another device and a download"},
    [CAL_COPY_CHANNELS] = {"copy_channels", NUMBER,
                           "with what number the engine of uploads takes those of 24 queues in "
                           "groups, each of which has every queue of that distance, in most turns"},
    [CAL_KERNELS] = {"kernels", NUMBER,
                     "how many kernels of one block, each in a queue of its own, take as long as "
                     "one"},
    [CAL_MULTIPROCESSORS] = {"multiprocessors", NUMBER, driver},
    [CAL_THREADS] = {"threads_per_multiprocessor", NUMBER, driver},
    [CAL_GREATEST_PRIORITY] = {"greatest_priority", NUMBER, driver},
    [CAL_H2D] = {"h2d_gb_per_s", GB_PER_S, line},
    [CAL_D2H] = {"d2h_gb_per_s", GB_PER_S, line},
    [CAL_H2D_BOTH] = {"h2d_both_gb_per_s", GB_PER_S,
                      "the same line, of copies while downloads keep the other direction busy"},
    [CAL_D2H_BOTH] = {"d2h_both_gb_per_s", GB_PER_S,
                      "the same line, of copies while uploads keep the other direction busy"},
    [CAL_D2D] = {"d2d_gb_per_s", GB_PER_S, line},
    [CAL_PEER] = {"peer_gb_per_s", GB_PER_S, line},
    [CAL_LATENCY] = {"copy_latency_ns", NS,
                     "the mean of the lines of uploads and of downloads, at no bytes"},
    [CAL_BOTH_LATENCY] = {"copy_both_latency_ns", NS,
                          "the same of the lines beside the other direction"},
    [CAL_PULL_LATENCY] = {"pull_latency_ns", NS,
                          "a copy of 4 KiB from another device, of many in a row, without the time "
                          "of its bytes and the signal"},
    [CAL_SIGNAL] = {"signal_ns", NS,
                    "a third of what an upload, a kernel and a download in turn take more than "
                    "each of them in a row"},
    [CAL_KERNEL_GAP] = {"kernel_gap_ns", NS,
                        "what a kernel takes longer in a queue, of many in a row, than in a graph"},
    [CAL_GRAPH_PAUSE] = {"graph_ns", NS,
                         "half of what a graph of a kernel and four branches after it takes, of "
                         "many in a queue, without its kernels"},
    [CAL_HOST_CALL] = {"host_call_ns", NS, "a function that does nothing, of many in a queue"},
    [CAL_SUBMIT_KERNEL] = {"submit_kernel_ns", NS,
                           "a launch, of many to four queues in turn, which are idle at first"},
    [CAL_SUBMIT_COPY] = {"submit_copy_ns", NS, "an upload or a download of 4 KiB, of as many"},
    [CAL_SUBMIT_MARK] = {"submit_mark_ns", NS,
                         "half of a record and a wait for it, of many between two busy queues"},
    [CAL_SUBMIT_GRAPH] = {"submit_graph_ns", NS, "a graph of one kernel, of as many to one queue"},
    [CAL_SUBMIT_BRANCH] =
        {"submit_branch_ns", NS,
         "a third of what a graph of four branches adds to the submit of one of two kernels"},
    [CAL_WAIT] = {"wait_ns", NS,
                  "what a copy of 1 MiB and the wait for it take, without the submit and the time "
                  "that a second copy adds"},
    [CAL_WAKE] = {"wake_ns", NS,
                  "what a copy of 4 MiB takes longer if another thread waits for it, and then "
                  "wakes the one that submitted it"},
    [CAL_STAGING] = {"staging_gb_per_s", GB_PER_S,
                     "memory that is not pinned, both ways, the difference of 1 and 3 MiB, which "
                     "one thread copies"},
    [CAL_STAGING_ALL] = {"staging_all_gb_per_s", GB_PER_S,
                         "the same of large copies, which several threads copy"},
};

// Figures.

// Samples of one turn after the other.
struct samples {
    size_t count;
    double values[CAL_TURNS_MOST];
};

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

// A difference of times that is negative was too small to be measured.
static double at_least_none(double value)
{
    return value > 0 ? value : 0;
}

static struct cal_figure figure_of(struct samples *samples)
{
    const size_t count = samples->count;
    double *values = samples->values;
    qsort(values, count, sizeof *values, compare_numbers);
    return (struct cal_figure){
        .measured = true,
        .spreads = true,
        .value = at_least_none((values[(count - 1) / 2] + values[count / 2]) / 2),
        .least = at_least_none(values[0]),
        .most = at_least_none(values[count - 1]),
    };
}

struct cal_figure cal_median(struct calibration *c, cal_measure measure, size_t at)
{
    struct samples samples = {0};
    // Virtual time needs no warming up.
    for (uint64_t turn = cli_clock_is_virtual(); turn <= c->turns && !c->code; turn++) {
        if (cli_signal())
            cal_fail(c, CLI_SIGNALLED + cli_signal(), "interrupted: there is no model");
        const double value = measure(c, at);
        if (turn > 0)
            samples.values[samples.count++] = value;
    }
    return c->code ? (struct cal_figure){.value = 0} : figure_of(&samples);
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

static const char *show(const struct cal_figure *figure, enum unit unit, double value,
                        char text[VALUE_SIZE])
{
    if (unit == WORD)
        snprintf(text, VALUE_SIZE, "%s", figure->value > 0 ? "stream" : "engine");
    else
        snprintf(text, VALUE_SIZE, unit == GB_PER_S ? "%.3f" : "%.0f",
                 unit == GB_PER_S ? value : round(value));
    return text;
}

// The model.

static void write_head(const struct calibration *c, struct weir_long_text *ini)
{
    const struct weir_device_info *info = weir_device_get_info(c->device);
    weir_long_text_add(ini, "; %s, driver %s, backend %s: measured by weir calibrate %s; medians\n",
                       info->name, info->driver, weir_runtime_backend(c->runtime), weir_version());
    weir_long_text_add(ini, "; of %llu turns, with the least and the most.\n",
                       (unsigned long long)c->turns);
    if (cli_clock_is_virtual())
        weir_long_text_add(ini, "; The times are those of a modelled GPU.\n");
    else if (c->limits->unified_memory && !c->limits->copy_engines_to_device)
        weir_long_text_add(ini, "; The device is the machine's processors: these are no figures of "
                                "a GPU.\n");
    weir_long_text_add(ini, "\n[gpu]\nname = %s\n", info->name);
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
        weir_long_text_add(ini, "; %s to %s", show(figure, about->unit, figure->least, least),
                           show(figure, about->unit, figure->most, most));
    weir_long_text_add(ini, "\n%s = %s\n", about->name,
                       show(figure, about->unit, figure->value, value));
}

static void write_model(const struct calibration *c, struct weir_long_text *ini)
{
    write_head(c, ini);
    for (size_t i = 0; i < CAL_KEYS; i++)
        write_key(&c->figures[i], &keys[i], ini);
}

// The table.

static void print_table(const struct calibration *c)
{
    struct weir_table table = {.alignment = "lrrrl"};
    char text[VALUE_SIZE];
    for (size_t i = 0; i < CAL_KEYS; i++) {
        const struct cal_figure *figure = &c->figures[i];
        const struct about *about = &keys[i];
        weir_table_add(&table, "%s", about->name);
        weir_table_add(&table, "%s",
                       figure->measured ? show(figure, about->unit, figure->value, text) : "-");
        weir_table_add(&table, "%s",
                       figure->spreads ? show(figure, about->unit, figure->least, text) : "");
        weir_table_add(&table, "%s",
                       figure->spreads ? show(figure, about->unit, figure->most, text) : "");
        weir_table_add(&table, "%s", figure->measured ? about->how : figure->why);
    }
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *spread_json(const struct cal_figure *figure, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "median", json_real(figure->value), ok);
    weir_json_set(object, "least", json_real(figure->least), ok);
    weir_json_set(object, "most", json_real(figure->most), ok);
    return object;
}

static json_t *figure_json(const struct cal_figure *figure, const struct about *about, bool *ok)
{
    json_t *object = json_object();
    weir_json_set(object, "key", json_string(about->name), ok);
    if (!figure->measured)
        weir_json_set(object, "not_measured", json_string(figure->why), ok);
    else if (figure->spreads)
        weir_json_set(object, "value", spread_json(figure, ok), ok);
    else if (about->unit == WORD)
        weir_json_set(object, "value", json_string(figure->value > 0 ? "stream" : "engine"), ok);
    else
        weir_json_set(object, "value", json_real(figure->value), ok);
    weir_json_set(object, "how", json_string(about->how), ok);
    return object;
}

static int print_json(const struct calibration *c)
{
    bool ok = true;
    json_t *root = json_object();
    json_t *figures = json_array();
    const struct weir_device_info *info = weir_device_get_info(c->device);
    for (size_t i = 0; i < CAL_KEYS; i++)
        weir_json_append(figures, figure_json(&c->figures[i], &keys[i], &ok), &ok);
    weir_json_set(root, "weir", json_string(weir_version()), &ok);
    weir_json_set(root, "backend", cli_json_string(weir_runtime_backend(c->runtime)), &ok);
    weir_json_set(root, "device", cli_json_string(info->name), &ok);
    weir_json_set(root, "driver", cli_json_string(info->driver), &ok);
    weir_json_set(root, "virtual", json_boolean(cli_clock_is_virtual()), &ok);
    weir_json_set(root, "turns", weir_json_count(c->turns), &ok);
    weir_json_set(root, "figures", figures, &ok);
    return cli_json_print(root, ok, CLI_OK);
}

static int report(struct calibration *c)
{
    struct weir_long_text ini = {0};
    char message[512] = "no memory for the model";
    int code = CLI_OK;
    write_model(c, &ini);
    if (ini.failed ||
        (c->out && !weir_file_write(c->out, ini.text, ini.used, message, sizeof message))) {
        cli_error("%s", message);
        code = CLI_FAILED;
    } else if (c->json) {
        code = print_json(c);
    } else if (c->out) {
        print_table(c);
    } else {
        fputs(ini.text, stdout);
    }
    free(ini.text);
    return code;
}

// The command.

static const char description[] =
    "Measures a device and prints the model of it for the plugin sim: bandwidths and latencies of\n"
    "copies, alone and both ways, what submits, waits and memory that is not pinned take the\n"
    "host, engines, channels, graphs, kernels at once, and copies to another device. Each figure\n"
    "has how it was measured, and its spread. The machine should do nothing else meanwhile.\n\n"
    "  weir calibrate --out card.ini\n"
    "  weir sim --gpu card.ini ./program";

static bool parse(struct calibration *c, int argc, char **argv, int *out_code)
{
    const struct cli_option options[] = {
        {"out", "FILE", "write the model to FILE, and print a table", CLI_FILE, &c->out, 0, 0},
        {"device", "WHICH",
         "the device's index, or a part of its name; without it,\nthe "
         "configuration's",
         CLI_TEXT, &c->select, 0, 0},
        {"turns", "N", "turns of each measurement (11)", CLI_COUNT, &c->turns, 1, CAL_TURNS_MOST},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &c->json, 0, 0},
        {"quiet", NULL, "print no notes on standard error", CLI_FLAG, &c->quiet, 0, 0},
        {"config", "F", "the INI file; without it, the one that WEIR_CONFIG\nnames, or none",
         CLI_FILE, &c->config, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir calibrate",
        .operands = "",
        .about = description,
        .manual = "weir-calibrate(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    size_t operands;
    return cli_parse(&usage, argc, argv, &operands, out_code);
}

static void measure(struct calibration *c)
{
    cal_open(c);
    cal_measure_gate(c);
    cal_measure_copies(c);
    cal_measure_host(c);
    cal_measure_pageable(c);
    cal_measure_wake(c);
    cal_measure_engines(c);
    cal_measure_graphs(c);
    cal_measure_peers(c);
}

static void run(struct calibration *c)
{
    if (!cli_can_write(c->out) || !cli_signals_start()) {
        c->code = CLI_FAILED;
        return;
    }
    cli_signals_defer(NULL, NULL);
    measure(c);
    cli_signals_resume();
    if (!c->code)
        c->code = report(c);
    cal_close(c);
    cli_signals_end();
}

static int calibrate_main(int argc, char **argv)
{
    struct calibration *c = calloc(1, sizeof *c);
    int code = CLI_FAILED;
    if (!c) {
        cli_error("no memory for the figures");
        return code;
    }
    c->turns = 11;
    if (parse(c, argc, argv, &code)) {
        cli_set_quiet(c->quiet);
        cli_log_to_stderr();
        run(c);
        code = c->code;
    }
    free(c);
    return code;
}

const struct cli_command cli_calibrate = {
    .name = "calibrate",
    .summary = "measure a device, for weir sim",
    .main = calibrate_main,
};
