#include <stdlib.h>

#include "cli/calibrate/calibrate.h"
#include "cli/common/options.h"
#include "cli/common/signals.h"

static const char about[] =
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
        .about = about,
        .manual = "weir-calibrate(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    size_t operands;
    return cli_parse(&usage, argc, argv, &operands, out_code);
}

static bool measure(struct calibration *c)
{
    return cal_measure_gate(c) && cal_measure_copies(c, CAL_UP) &&
           cal_measure_copies(c, CAL_DOWN) && cal_measure_copies(c, CAL_WITHIN) &&
           cal_measure_both(c) && cal_measure_host(c) && cal_measure_pageable(c) &&
           cal_measure_wake(c) && cal_measure_engines(c) && cal_measure_cold(c) &&
           cal_measure_graphs(c) && cal_measure_peers(c);
}

static void run(struct calibration *c)
{
    if (!cli_can_write(c->out) || !cli_signals_start()) {
        c->code = CLI_FAILED;
        return;
    }
    cli_signals_defer(NULL, NULL);
    const bool fine = cal_open(c) && measure(c);
    cli_signals_resume();
    if (fine)
        c->code = cal_report(c);
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
