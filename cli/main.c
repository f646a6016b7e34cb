// The `weir` command: which commands there are. Each is in its cmd_<name>.c.
#include <signal.h>

#include "cli/cli.h"
#include "cli/options.h"

static int run_main(int argc, char **argv)
{
    const struct cli_command members[] = {cli_run_arr_coc};
    const struct cli_command group = {.what = "PIPELINE",
                                      .summary = "Runs a pipeline.",
                                      .members = members,
                                      .member_count = 1};
    return cli_dispatch(&group, "weir run", "weir-run(1)", argc, argv);
}

static int config_main(int argc, char **argv)
{
    const struct cli_command members[] = {cli_config_check};
    const struct cli_command group = {.what = "COMMAND",
                                      .summary = "Looks at configuration files.",
                                      .members = members,
                                      .member_count = 1};
    return cli_dispatch(&group, "weir config", "weir-config(1)", argc, argv);
}

int main(int argc, char **argv)
{
    const struct cli_command members[] = {
        {.name = "run", .summary = "run a pipeline over images", .main = run_main},
        cli_doctor,
        cli_devices,
        {.name = "config", .summary = "check a configuration file", .main = config_main},
        cli_bench,
        cli_conform,
        cli_trace,
    };
    const struct cli_command weir = {
        .what = "COMMAND",
        .summary = "Multi-stage GPU pipelines on the backend that an INI file selects.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    // A file beyond the size limit is then an error of write(), with a sentence.
    signal(SIGXFSZ, SIG_IGN);
    return cli_flush(cli_dispatch(&weir, "weir", "weir(1)", argc, argv));
}
