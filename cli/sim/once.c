// One run of the program. The environment names the GPU, so that a model that cannot be used is found
// here, before the program is started.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/runtime.h>

#include "cli/program/program.h"
#include "cli/sim/sim.h"
#include "core/config/config.h"
#include "report/report.h"

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

bool cli_sim_prepare(const struct sim_common *common)
{
    if (common->costs)
        set_file("WEIR_SIM_COSTS", common->costs);
    if (common->host)
        setenv("WEIR_SIM_HOST", common->host, 1);
    // trace is the outermost: it sees the times of sim.
    return cli_program_add_plugin("sim") && cli_program_add_plugin("trace");
}

// Opens the plugin alone, which says what is wrong with the model.
int cli_sim_check(const struct sim_run *run)
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
        fine = weir_open_at(&params, &runtime, NULL, 0) >= 0;
    }
    const int code = fine ? CLI_OK : cli_weir_error();
    if (!fine && *run->changes)
        cli_note(
            "%s: taken for keys of the model, since COMMAND has neither an option --KEY nor a word "
            "with {KEY}; for the configuration write SECTION.KEY, as in pipeline.slots=2",
            run->changes);
    weir_close(&runtime);
    weir__config_destroy(&config);
    return code;
}

// Running.

int cli_sim_name_trace(struct sim_run *run, const char *output, size_t number)
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
    if (length < (int)sizeof name)
        return cli_program_take_trace(name, run->trace, sizeof run->trace);
    cli_error("%s: the name is too long for a trace; give another one with --output", output);
    return CLI_USAGE;
}

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

// "k20c", or "k20c with slots=3".
static const char *with(const struct sim_run *run)
{
    return *run->what_if ? " with " : "";
}

static int no_trace(const struct sim_run *run, int code)
{
    const char *command = run->command[0];
    if (code != CLI_OK) {
        cli_error("%s ended with %d on %s%s%s, and wrote no trace", command, code, run->gpu,
                  with(run), run->what_if);
        return code;
    }
    cli_error("%s wrote no trace to %s: it opened no runtime of Weir's, or one whose plugins the "
              "program names itself; list trace and sim there",
              command, run->trace);
    return CLI_FAILED;
}

int cli_sim_once(struct sim_run *run, int output)
{
    const struct cli_program program = {
        .command = run->command,
        .variables = run->variables,
        .variable_count = run->variable_count,
        .output = output,
    };
    struct cli_program_end end;
    struct stat status;
    set_run(run);
    if (!cli_program_run(&program, &end))
        return CLI_SETUP;
    if (stat(run->trace, &status) != 0)
        return no_trace(run, end.code);
    if (!read_report(run))
        return end.code ? end.code : CLI_FAILED;
    if (end.code)
        cli_error("%s ended with %d on %s%s%s", run->command[0], end.code, run->gpu, with(run),
                  run->what_if);
    return end.code;
}
