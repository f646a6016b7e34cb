// weir run: the table of the pipelines.
#include "cli/common/options.h"
#include "cli/run/run.h"

static int run_main(int argc, char **argv)
{
    const struct cli_command members[] = {cli_run_arr_coc};
    const struct cli_command group = {.what = "PIPELINE",
                                      .summary = "Runs a pipeline.",
                                      .members = members,
                                      .member_count = 1};
    return cli_dispatch(&group, "weir run", "weir-run(1)", argc, argv);
}

const struct cli_command cli_run = {
    .name = "run",
    .summary = "run a pipeline over images",
    .main = run_main,
};
