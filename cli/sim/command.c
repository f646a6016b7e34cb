#include "cli/sim/command.h"

#include "cli/common/options.h"
#include "cli/sim/sim.h"

static const struct cli_command members[] = {
    {.name = "learn", .summary = "what kernels cost, from traces", .main = cli_sim_learn},
};

static int sim_main(int argc, char **argv)
{
    const struct cli_command group = {
        .what = "COMMAND",
        .summary = "What kernels cost, for the model of a GPU.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    return cli_dispatch(&group, "weir sim", "weir-sim(1)", argc, argv);
}

const struct cli_command cli_sim = {
    .name = "sim",
    .summary = "what kernels cost, for the model of a GPU",
    .main = sim_main,
};
