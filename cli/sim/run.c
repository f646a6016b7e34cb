// The program runs once for each GPU, and once more for each with --what-if. The environment names the
// GPU, so that a model that cannot be used is found here, before the program is started.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/runtime.h>

#include "base/text.h"
#include "cli/program/program.h"
#include "cli/sim/sim.h"
#include "core/config/config.h"
#include "report/report.h"

static const char about[] = "Runs COMMAND, any program that uses Weir, with the plugins `sim` and "
                            "`trace` in its chain, and\n"
                            "prints the report on its trace: the work runs on the backend that is "
                            "configured, and its times\n"
                            "are those of the GPU of that name. With several GPUs, or with "
                            "--what-if, COMMAND runs once for\n"
                            "each, and a table has a row for each. What COMMAND prints goes to "
                            "standard error. Options come\n"
                            "before COMMAND; what follows it are its arguments.";

struct options {
    const char *gpus;
    const char *changes;
    const char *costs;
    const char *host;
    const char *output;
    bool json;
    bool quiet;
};

static bool parse(struct options *out, int argc, char **argv, char ***out_command, int *out_exit)
{
    const struct cli_option options[] = {
        {"gpu", "NAME,...",
         "the GPUs: names of models, such as h200, or INI files,\nwith a / in their names, or .ini "
         "at their end",
         CLI_TEXT, &out->gpus, 0, 0},
        {"what-if", "KEY=VALUE,...", "also with these keys of the models changed", CLI_TEXT,
         &out->changes, 0, 0},
        {"costs", "FILE", "what kernels cost, from weir sim learn", CLI_FILE, &out->costs, 0, 0},
        {"host", "HOW", "how the host's time passes: fixed, the default,\nmeasured, or none",
         CLI_TEXT, &out->host, 0, 0},
        {"output", "FILE",
         "write the trace to FILE; without it, sim.json. The names\nof several get the GPU's "
         "before the end",
         CLI_FILE, &out->output, 0, 0},
        {"json", NULL, "print the reports as one JSON object", CLI_FLAG, &out->json, 0, 0},
        {"quiet", NULL, "print nothing but errors and the report", CLI_FLAG, &out->quiet, 0, 0},
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

// The runs. `gpus` is cut at its commas.

static bool add_run(struct sim_runs *runs, const char *gpu, const char *changes)
{
    if (runs->count == SIM_RUNS) {
        cli_error("weir sim runs a program %d times at most; name fewer GPUs", SIM_RUNS);
        return false;
    }
    runs->items[runs->count++] = (struct sim_run){.gpu = gpu, .changes = changes};
    return true;
}

static bool add_runs(struct sim_runs *runs, char *gpus, const char *changes)
{
    char *rest = NULL;
    for (char *gpu = strtok_r(gpus, ", ", &rest); gpu; gpu = strtok_r(NULL, ", ", &rest))
        if (!add_run(runs, gpu, "") || (changes && !add_run(runs, gpu, changes)))
            return false;
    if (runs->count > 0)
        return true;
    cli_error("--gpu names no GPU; write one, such as --gpu h200");
    return false;
}

// "run.json" of the third run, of my/h200.ini, becomes "run.3.h200.json".
static int name_trace(struct sim_run *run, size_t number, const char *output)
{
    char name[PATH_MAX];
    const char *file = strrchr(run->gpu, '/') ? strrchr(run->gpu, '/') + 1 : run->gpu;
    const char *base = strrchr(output, '/') ? strrchr(output, '/') : output;
    const char *end = strchr(base + (base[0] == '.'), '.');
    const size_t stem = end ? (size_t)(end - output) : strlen(output);
    const int length = number == 0
                           ? snprintf(name, sizeof name, "%s", output)
                           : snprintf(name, sizeof name, "%.*s.%zu.%.*s%s", (int)stem, output,
                                      number, (int)strcspn(file, "."), file, end ? end : "");
    if (length >= (int)sizeof name) {
        cli_error("%s: the name is too long for a trace; give another one with --output", output);
        return CLI_USAGE;
    }
    return cli_program_take_trace(name, run->trace, sizeof run->trace);
}

// The environment of a run.

// A file of a model or of costs is the same wherever the program looks for it.
static void set_file(const char *variable, const char *path)
{
    char *absolute = realpath(path, NULL);
    setenv(variable, absolute ? absolute : path, 1);
    free(absolute);
}

static bool is_file(const char *gpu)
{
    const size_t length = strlen(gpu);
    return strchr(gpu, '/') || (length > 4 && strcmp(gpu + length - 4, ".ini") == 0);
}

static void set_run(const struct sim_run *run)
{
    if (is_file(run->gpu))
        set_file("WEIR_SIM_GPU", run->gpu);
    else
        setenv("WEIR_SIM_GPU", run->gpu, 1);
    setenv("WEIR_SIM_CHANGES", run->changes, 1);
    setenv("WEIR_TRACE_FILE", run->trace, 1);
}

static bool set_common(const struct options *options)
{
    if (options->costs)
        set_file("WEIR_SIM_COSTS", options->costs);
    if (options->host)
        setenv("WEIR_SIM_HOST", options->host, 1);
    // trace is the outermost: it sees the times of sim.
    return cli_program_add_plugin("sim") && cli_program_add_plugin("trace");
}

// Opens the plugin alone, which says what is wrong with the model.
static bool check_run(const struct sim_run *run)
{
    struct weir__config *config = NULL;
    weir_runtime *runtime = NULL;
    set_run(run);
    bool fine = weir__config_load(NULL, &config) >= 0;
    if (fine) {
        const struct weir_open_params params = {
            .struct_size = sizeof params,
            .config_path = "",
            .backend = "null",
            .plugins = "sim",
            .module_path = weir__config_weir(config, "module_path")->text,
        };
        fine = weir_open(&params, &runtime) >= 0;
    }
    weir_close(&runtime);
    weir__config_destroy(&config);
    return fine;
}

// Running.

static bool read_report(struct sim_run *run)
{
    struct weir_trace *trace = NULL;
    char message[512];
    const struct weir_report_params params = {.struct_size = sizeof params};
    if (!weir_trace_read(run->trace, NULL, &trace, message, sizeof message)) {
        cli_error("%s", message);
        return false;
    }
    if (weir__report_make(trace, &params, &run->report) == WEIR_OK)
        return true;
    cli_error("%s: %s", run->trace, weir_last_error_text());
    return false;
}

static int no_trace(const struct sim_run *run, const char *command, int code)
{
    if (code != CLI_OK) {
        cli_error("%s ended with %d on %s, and wrote no trace", command, code, run->gpu);
        return code;
    }
    cli_error("%s wrote no trace to %s: it opened no runtime of Weir's, or one whose plugins the "
              "program names itself; list trace and sim there",
              command, run->trace);
    return CLI_FAILED;
}

static int run_once(struct sim_run *run, char **command)
{
    const struct cli_program program = {.command = command, .output = STDERR_FILENO};
    struct cli_program_end end;
    struct stat status;
    set_run(run);
    if (!cli_program_run(&program, &end))
        return CLI_SETUP;
    if (stat(run->trace, &status) != 0)
        return no_trace(run, command[0], end.code);
    if (!read_report(run))
        return end.code ? end.code : CLI_FAILED;
    if (end.code)
        cli_error("%s ended with %d on %s", command[0], end.code, run->gpu);
    return end.code;
}

static int run_all(struct sim_runs *runs, char **command, const struct options *options)
{
    int code = CLI_OK;
    for (size_t i = 0; i < runs->count && code == CLI_OK; i++)
        code = name_trace(&runs->items[i], runs->count > 1 ? i + 1 : 0, options->output);
    for (size_t i = 0; i < runs->count && code == CLI_OK; i++)
        code = check_run(&runs->items[i]) ? CLI_OK : cli_weir_error();
    for (size_t i = 0; i < runs->count && code == CLI_OK; i++)
        code = run_once(&runs->items[i], command);
    return code;
}

static int tell(const struct sim_runs *runs, const struct options *options)
{
    for (size_t i = 0; i < runs->count && !options->quiet; i++)
        cli_note("%s: the trace of %s%s%s", runs->items[i].trace, runs->items[i].gpu,
                 *runs->items[i].changes ? " with " : "", runs->items[i].changes);
    return options->json ? cli_sim_tell_json(runs) : cli_sim_tell(runs);
}

int cli_sim_run(int argc, char **argv)
{
    struct options options = {.output = "sim.json"};
    struct sim_runs *runs = calloc(1, sizeof *runs);
    char **command;
    int code;
    if (!runs) {
        cli_error("no memory to run a program");
        return CLI_FAILED;
    }
    if (!parse(&options, argc, argv, &command, &code)) {
        free(runs);
        return code;
    }
    char *gpus = strdup(options.gpus);
    if (!gpus || !add_runs(runs, gpus, options.changes))
        code = gpus ? CLI_USAGE : CLI_FAILED;
    else if (!set_common(&options))
        code = cli_weir_error();
    else
        code = run_all(runs, command, &options);
    if (code == CLI_OK)
        code = tell(runs, &options);
    for (size_t i = 0; i < runs->count; i++)
        weir_report_destroy(&runs->items[i].report);
    free(gpus);
    free(runs);
    return code;
}
