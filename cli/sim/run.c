// The program runs once for each GPU, and once more for each with --what-if.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/program/program.h"
#include "cli/sim/sim.h"

static const char about[] =
    "Runs COMMAND, any program that uses Weir, with the plugins `sim` and "
    "`trace` in its chain, and\n"
    "prints the report on its trace: the work runs on the backend that is "
    "configured, and its times\n"
    "are those of the GPU of that name. With several GPUs, or with "
    "--what-if, COMMAND runs once for\n"
    "each, and a table has a row for each. What COMMAND prints goes to "
    "standard error. Options come\n"
    "before COMMAND; what follows it are its arguments. A key of --what-if is one of the\n"
    "model's, unless COMMAND has an option --KEY or {KEY=VALUE} in a word.\n"
    "\n"
    "  weir sim --gpu h200 --costs kernels.ini ./program\n"
    "  weir sim --gpu c1060,k20c,h200 --what-if copy_engines=1 ./program";

struct options {
    const char *gpus;
    const char *changes;
    const char *picture;
    struct sim_common common;
};

static bool parse(struct options *out, int argc, char **argv, char ***out_command, int *out_exit)
{
    struct sim_common *common = &out->common;
    const struct cli_option options[] = {
        {"gpu", "NAME,...",
         "the GPUs: names of models, such as h200, or INI files,\nwith a / in their names, or .ini "
         "at their end",
         CLI_TEXT, &out->gpus, 0, 0},
        {"what-if", "KEY=VALUE,...", "also with these keys changed, of the models or of COMMAND",
         CLI_TEXT, &out->changes, 0, 0},
        {"costs", "FILE", "what kernels cost, from weir sim learn", CLI_FILE, &common->costs, 0, 0},
        {"host", "HOW", "how the host's time passes: fixed, the default, or none",
         CLI_TEXT, &common->host, 0, 0},
        {"output", "FILE",
         "write the trace to FILE; without it, sim.json. The names\nof several get the GPU's "
         "before the end",
         CLI_FILE, &common->output, 0, 0},
        {"picture", "FILE.svg", "also draw the runs into this file, one below the other", CLI_FILE,
         &out->picture, 0, 0},
        {"json", NULL, "print the reports as one JSON object", CLI_FLAG, &common->json, 0, 0},
        {"quiet", NULL, "print nothing but errors and the report", CLI_FLAG, &common->quiet, 0, 0},
    };
    const struct cli_usage usage = {
        .command = "weir sim",
        .operands = "COMMAND [ARGUMENT]...",
        .about = about,
        .manual = "weir-sim(1)",
        .options = options,
        .option_count = sizeof options / sizeof *options,
    };
    if (!cli_program_parse(&usage, argc, argv, out_command, out_exit))
        return false;
    if (out->gpus)
        return true;
    cli_error("weir sim needs a GPU, such as --gpu h200");
    *out_exit = CLI_USAGE;
    return false;
}

// The runs.

static bool read_changes(const struct sim_list *changes, char *const *command,
                         struct sim_settings *settings)
{
    if (changes->count > SIM_SETTINGS) {
        cli_error("--what-if changes %d keys at most", SIM_SETTINGS);
        return false;
    }
    for (size_t i = 0; i < changes->count; i++) {
        char *key;
        char *value;
        if (!cli_sim_cut(changes->items[i], &key, &value)) {
            cli_error("--what-if is KEY=VALUE,..., such as copy_engines=1,slots=2");
            return false;
        }
        settings->items[settings->count++] = (struct sim_setting){.key = key, .value = value};
    }
    cli_sim_settle(settings, command);
    return true;
}

static bool add_run(struct sim_runs *runs, const char *gpu, char *const *command,
                    const struct sim_settings *settings)
{
    if (runs->count < SIM_RUNS)
        return cli_sim_run_init(&runs->items[runs->count++], gpu, command, settings);
    cli_error("weir sim runs a program %d times at most; name fewer GPUs", SIM_RUNS);
    return false;
}

static bool add_runs(struct sim_runs *runs, const struct sim_list *gpus, char *const *command,
                     const struct sim_settings *settings)
{
    struct sim_settings without = *settings;
    for (size_t i = 0; i < without.count; i++)
        without.items[i].value = NULL;
    for (size_t i = 0; i < gpus->count; i++)
        if (!add_run(runs, gpus->items[i], command, &without) ||
            (settings->count && !add_run(runs, gpus->items[i], command, settings)))
            return false;
    if (gpus->count == 0)
        cli_error("--gpu names no GPU; write one, such as --gpu h200");
    return gpus->count > 0;
}

static bool make_runs(struct sim_runs *runs, const struct options *options, char *const *command)
{
    struct sim_list gpus = {0};
    struct sim_list changes = {0};
    struct sim_settings settings = {.count = 0};
    const bool fine = cli_sim_list_init(&gpus, options->gpus, "--gpu") &&
                      cli_sim_list_init(&changes, options->changes, "--what-if") &&
                      read_changes(&changes, command, &settings) &&
                      add_runs(runs, &gpus, command, &settings);
    cli_sim_list_finish(&gpus);
    cli_sim_list_finish(&changes);
    return fine;
}

static int run_all(struct sim_runs *runs, const char *output)
{
    int code = CLI_OK;
    for (size_t i = 0; i < runs->count && code == CLI_OK; i++)
        code = cli_sim_name_trace(&runs->items[i], output, runs->count > 1 ? i + 1 : 0);
    for (size_t i = 0; i < runs->count && code == CLI_OK; i++)
        code = cli_sim_check(&runs->items[i]);
    for (size_t i = 0; i < runs->count && code == CLI_OK; i++)
        code = cli_sim_once(&runs->items[i], STDERR_FILENO);
    return code;
}

static int tell(const struct sim_runs *runs, const struct sim_common *common)
{
    for (size_t i = 0; i < runs->count && !common->quiet; i++)
        cli_note("%s: the trace of %s%s%s", runs->items[i].trace, runs->items[i].gpu,
                 *runs->items[i].what_if ? " with " : "", runs->items[i].what_if);
    return common->json ? cli_sim_tell_json(runs) : cli_sim_tell(runs);
}

static int run_and_tell(struct sim_runs *runs, const struct options *options, char **command)
{
    if (!make_runs(runs, options, command))
        return CLI_USAGE;
    if (!cli_can_write(options->picture))
        return CLI_FAILED;
    if (!cli_sim_prepare(&options->common))
        return cli_weir_error();
    int code = run_all(runs, options->common.output);
    if (code == CLI_OK && options->picture)
        code = cli_sim_draw(runs, options->picture);
    return code == CLI_OK ? tell(runs, &options->common) : code;
}

int cli_sim_run(int argc, char **argv)
{
    struct options options = {.common.output = "sim.json"};
    char **command;
    int code;
    if (!parse(&options, argc, argv, &command, &code))
        return code;
    struct sim_runs *runs = calloc(1, sizeof *runs);
    if (!runs) {
        cli_error("no memory to run a program");
        return CLI_FAILED;
    }
    code = run_and_tell(runs, &options, command);
    for (size_t i = 0; i < runs->count; i++)
        cli_sim_run_finish(&runs->items[i]);
    free(runs);
    return code;
}
